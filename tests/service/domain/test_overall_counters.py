"""Counters of limits over all segments, and of open loans, against plain sums."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.service.domain.clock import DAY
from lenience.service.domain.open_loans import (
    OpenEvidence,
    OpenLoans,
    ages_digest,
    ages_of,
    decode_open_loans,
    encode_open_loans,
    same,
    with_open_loans,
)
from lenience.service.domain.overall import (
    OVERALL_CAP,
    OVERALL_LOSS_CAP,
    PERIOD_CAPACITY,
    Capacity,
    OverallLimits,
    OverallUse,
    UseChange,
    month_of,
    period_name,
)
from lenience.service.domain.rule import Counts


def time_of(year: int, month: int, day: int = 1) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1e6)


@pytest.mark.parametrize("seed", range(5))
def test_use_is_the_sum_of_what_was_accepted(seed: int) -> None:
    rng = random.Random(seed)
    use, now = OverallUse(), time_of(2024, 1)
    charged: list[tuple[int, float]] = []  # the month and the loss of each acceptance that was not taken back
    open_losses: list[float] = []
    for _ in range(60):
        now += rng.randrange(25 * DAY)
        month = month_of(now)
        if charged and rng.random() < 0.3:  # a person takes an acceptance back, which is pending
            place = rng.randrange(len(charged))
            back, loss = charged.pop(place)
            open_losses.pop(place)
            use = use.after(now, UseChange(-1, -1, loss, back))
        else:
            loss = float(rng.randrange(1, 100))
            charged.append((month, loss))
            open_losses.append(loss)
            use = use.after(now, UseChange(1, 1, loss))
        in_month = [loss for at, loss in charged if at == month]
        in_year = [loss for at, loss in charged if at // 12 == month // 12]
        assert use == OverallUse(
            month, len(in_month), sum(in_month), len(in_year), sum(in_year), len(open_losses), sum(open_losses)
        )
        assert use.used(Capacity(acceptances=5)) == len(in_month)
        assert use.used(Capacity(acceptances=5, per="year")) == len(in_year)
        assert use.used(Capacity(loss=5.0)) == sum(in_month)
        assert use.used(Capacity(loss=5.0, per="year")) == sum(in_year)


def test_an_outcome_gives_back_what_is_open_and_no_capacity() -> None:
    use = OverallUse(month_of(0), 3, 30.0, 4, 40.0, 2, 15.0)
    one = use.after(0, UseChange(0, -1, 5.0))
    assert one == OverallUse(month_of(0), 3, 30.0, 4, 40.0, 1, 10.0)
    assert one.after(0, UseChange(0, -1, 9.0)).at_risk == 0.0  # nothing is pending
    assert OverallUse(month_of(0), 1, 1.0, 1, 1.0).after(0, UseChange(-1, 0, 5.0)) == OverallUse(month_of(0))
    assert use.at(time_of(1969, 1)) is use
    assert use.at(time_of(1970, 2)) == OverallUse(month_of(0) + 1, 0, 0.0, 4, 40.0, 2, 15.0)
    assert use.at(time_of(1971, 1)) == OverallUse(month_of(0) + 12, 0, 0.0, 0, 0.0, 2, 15.0)


def test_a_limit_is_reached_exactly() -> None:
    use = OverallUse(month_of(0), 3, 30.0, 4, 40.0, 2, 15.0)
    assert OverallLimits(cap=2).full(use) == OVERALL_CAP
    assert OverallLimits(cap=3).full(use) is None
    assert OverallLimits(Capacity(acceptances=3)).full(use) == PERIOD_CAPACITY
    assert OverallLimits(Capacity(acceptances=4)).full(use) is None
    assert OverallLimits(Capacity(acceptances=4, per="year")).full(use) == PERIOD_CAPACITY
    assert OverallLimits(Capacity(loss=1.0)).full(use) is None
    small, large = Offer(20, 0.5), Offer(22, 0.5)  # losses of 10 and 11
    for limits, rule in (
        (OverallLimits(cap_amount=25.0), OVERALL_LOSS_CAP),
        (OverallLimits(Capacity(loss=40.0)), PERIOD_CAPACITY),
        (OverallLimits(Capacity(loss=50.0, per="year")), PERIOD_CAPACITY),
    ):
        assert limits.exceeded(use, small) is None
        assert limits.exceeded(use, large) == rule
        assert list(limits.fitting(use, [large, small])) == [small]
    assert OverallLimits(Capacity(acceptances=1)).exceeded(use, large) is None
    assert Capacity(acceptances=3).use(large) == Capacity(loss=9.0).use(None) == 1.0
    assert Capacity(loss=9.0).use(large) == 11.0
    assert (Capacity(acceptances=3).per_year, Capacity(loss=9.0, per="year").per_year) == (36.0, 9.0)
    assert [period_name("month", month_of(time_of(2024, month))) for month in (1, 12)] == ["2024-01", "2024-12"]


@pytest.mark.parametrize(
    ("given", "valid"),
    [
        ({"acceptances": 1}, True),
        ({"acceptances": 10**9}, True),
        ({"acceptances": 0}, False),
        ({"acceptances": 10**9 + 1}, False),
        ({"loss": 1e-9}, True),
        ({"loss": 1e15}, True),
        ({"loss": 0.9e-9}, False),
        ({"loss": 1.1e15}, False),
        ({}, False),
        ({"acceptances": 1, "loss": 1}, False),
        ({"acceptances": 1, "per": "week"}, False),
    ],
)
def test_which_capacities_there_are(given: dict[str, Any], valid: bool) -> None:
    text = msgspec.json.encode(given)
    if valid:
        assert msgspec.json.decode(text, type=Capacity) == Capacity(**given)
    else:
        with pytest.raises((msgspec.ValidationError, InputError)):
            msgspec.json.decode(text, type=Capacity)


def test_open_loans_take_their_share_with_them() -> None:
    evidence = (OpenEvidence(1, 4.0, 3.0), OpenEvidence(2, 0.0, -0.5), OpenEvidence(3, 0.0, 0.0))
    loans = OpenLoans(at=10 * DAY, seq=50, number=8, evidence=evidence)
    loans.settle(49)
    loans.settle(50)  # a decision after the count
    loans.settle(51)
    assert loans.settled == 1
    loans.settle(7)
    counts = Counts(arrivals=20, accepted=15, pending=9, successes=4, failures=2, at_risk=7.5)
    added = loans.add_to(counts, 1)
    assert (added.open, added.open_outcomes, added.open_successes) == (6, 3.0, 2.25)
    assert (added.arrivals, added.accepted, added.pending) == (20, 15, 9)
    assert (added.successes, added.failures, added.at_risk) == (4, 2, 7.5)
    assert loans.add_to(counts, 2).open_successes == -0.375
    assert loans.add_to(counts, 3) is counts
    assert loans.add_to(counts, 4) is counts
    assert with_open_loans(counts, None, 1) is counts
    assert with_open_loans(counts, loans, 1) == added
    for _ in range(9):
        loans.settle(1)
    assert loans.add_to(counts, 1) is counts
    assert decode_open_loans(encode_open_loans(loans)) == loans
    assert encode_open_loans(None) is None
    assert decode_open_loans(None) is None


def test_open_loans_are_counted_once_a_day_for_all_versions() -> None:
    loans = OpenLoans(10 * DAY + 5, 0, 1, (OpenEvidence(1, 1.0, 1.0), OpenEvidence(2, 1.0, 1.0)))
    assert loans.is_current(11 * DAY - 1, [1])
    assert loans.is_current(10 * DAY, [1, 2])
    assert not loans.is_current(11 * DAY, [1])
    assert not loans.is_current(10 * DAY, [1, 3])
    assert ages_of([0, DAY - 1, DAY, 9 * DAY], DAY) == {1: 1, 0: 3}  # a time that is ahead counts as now
    assert ages_digest({1: 2, 3: 4}) == ages_digest({3: 4, 1: 2}) != ages_digest({1: 4, 3: 2})


def test_evidence_is_the_same_up_to_rounding() -> None:
    stated = OpenEvidence(1, 4.0, 3.0)
    assert same(stated, (4.0 + 1.5e-9, 3.0 - 1.5e-9), 2)
    assert not same(stated, (4.0 + 2.5e-9, 3.0), 2)
    assert not same(stated, (4.0, 3.0 - 2.5e-9), 2)
    assert same(stated, (4.0 - 0.9e-9, 3.0), 0)
    assert not same(stated, (4.0 - 1.1e-9, 3.0), 0)
