"""Timing curves that are learnt from open and closed loans, against plain loops and known laws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief
from lenience.core.errors import InputError
from lenience.models import TimingCurves, learn_timing, mature_belief


class Loans(NamedTuple):
    """Simulated loans: the age in days, 0 success, 1 failure, 2 open, and the segment."""

    age: NDArray[np.int64]
    kind: NDArray[np.int64]
    segment: NDArray[np.int64]

    def learn(self, by_segment: bool = True, alternatives: int = 16) -> TimingCurves:
        good, bad, still_open = (self.kind == kind for kind in range(3))
        segments = list(self.segment) if by_segment else None
        return learn_timing(self.age, good, bad, still_open, segments, alternatives)

    def belief(self, segment: int) -> Belief:
        """The flat prior with the known outcomes of a segment."""
        good, bad = (int(((self.kind == kind) & (self.segment == segment)).sum()) for kind in (0, 1))
        return Belief(2 + good + bad, 1 + good)

    def matured(self, segment: int, curves: TimingCurves) -> Belief:
        return mature_belief(self.belief(segment), self.age[(self.kind == 2) & (self.segment == segment)], curves)


def simulate(rates: list[float], size: int, days: int, seed: int) -> Loans:
    """Draw loans decided over some days: half are repaid after 1,095 days, others earlier, failures before."""
    random = np.random.default_rng(seed)
    segment = np.repeat(np.arange(len(rates)), size)
    open_for = random.uniform(0, days, segment.size)
    good = random.random(segment.size) < np.array(rates)[segment]
    repaid = np.where(random.random(segment.size) < 0.5, random.uniform(60, 1095, segment.size), 1095)
    takes = np.where(good, repaid, 60 + random.gamma(2, 200, segment.size))
    closed = takes <= open_for
    kind = np.where(closed, np.where(good, 0, 1), 2)
    return Loans(np.floor(np.minimum(takes, open_for)).astype(np.int64), kind, segment)


def incidence(loans: Loans) -> tuple[list[float], list[float]]:
    """Aalen and Johansen's shares of all loans that have succeeded and failed by each day, by a double loop."""
    everything_open, shares = 1.0, (0.0, 0.0)
    good, bad = [], []
    for day in range(int(loans.age.max()) + 1):
        at_risk = sum(1 for age in loans.age if age >= day)
        events = [sum(1 for age, one in zip(*loans[:2], strict=True) if age == day and one == kind) for kind in (0, 1)]
        shares = (shares[0] + everything_open * events[0] / at_risk, shares[1] + everything_open * events[1] / at_risk)
        everything_open *= 1 - sum(events) / at_risk
        good.append(shares[0])
        bad.append(shares[1])
    return good, bad


def test_one_segment_is_aalen_johansen() -> None:
    """The rates at which both laws fill up are the cumulative incidences; the imagined loan is undone here."""
    loans = simulate([0.8], 60, 90, seed=4)
    loans = loans._replace(kind=np.where(np.arange(60) % 3 == 0, loans.kind, np.arange(60) % 2))
    curves = loans.learn(alternatives=0)
    good, bad = incidence(loans)
    everything = 1 - np.array(good) - np.array(bad)
    for arrived, shares, outcomes, total in [
        (good, curves.success_open, curves.successes, good[-1] + 0.5 * everything[-1]),
        (bad, curves.failure_open, curves.failures, bad[-1] + 0.5 * everything[-1]),
    ]:
        law = 1 - np.array(arrived) / total
        expected = (outcomes * law + everything) / (outcomes + 1)
        assert shares == pytest.approx(expected, abs=1e-6)
    assert curves.unresolved == pytest.approx(everything[-1], abs=1e-12)
    assert len(curves.ages) == loans.age.max() + 1


def test_learns_the_true_laws() -> None:
    curves = simulate([0.9, 0.7, 0.5], 4_000, 1_500, seed=5).learn(alternatives=0)
    good, bad = curves.open_shares(600)
    assert good == pytest.approx(0.5 + 0.5 * (1095 - 600) / 1035, abs=0.03)
    assert bad == pytest.approx((1 + 540 / 200) * np.exp(-540 / 200), abs=0.03)
    assert curves.unresolved < 0.01
    assert curves.successes + curves.failures + curves.still_open == 12_000


def test_open_loans_correct_the_rates() -> None:
    rates = [0.95, 0.85, 0.7, 0.55]
    loans = simulate(rates, 2_500, 1_500, seed=6)
    curves = loans.learn()
    before = max(abs(loans.belief(x).mean - rate) for x, rate in enumerate(rates))
    after = max(abs(loans.matured(x, curves).mean - rate) for x, rate in enumerate(rates))
    assert before > 0.06
    assert after < 0.025


def test_beliefs_are_calibrated() -> None:
    """The root mean square of z over simulated portfolios is near 1; known outcomes alone are far off."""
    z, alone = [], []
    for seed in range(12):
        rates = [float(rate) for rate in np.random.default_rng(seed).beta(8, 2, 4)]
        loans = simulate(rates, 500, 1_500, seed + 100)
        curves = loans.learn(alternatives=8)
        for x, rate in enumerate(rates):
            after, known = loans.matured(x, curves), loans.belief(x)
            z.append((after.mean - rate) / after.variance**0.5)
            alone.append((known.mean - rate) / known.variance**0.5)
    assert 0.75 < np.sqrt(np.mean(np.square(z))) < 1.25
    assert np.sqrt(np.mean(np.square(alone))) > 2


def test_unresolved_loans_widen_the_belief_of_one_segment() -> None:
    """Nothing is mature: the data do not say what becomes of loans that are open at the last age."""
    loans = simulate([0.85], 2_000, 700, seed=7)
    curves = loans.learn()
    after = loans.matured(0, curves)
    assert curves.unresolved > 0.4
    assert after.variance**0.5 == pytest.approx(curves.unresolved / 12**0.5, rel=0.3)
    assert after.n < 30


def test_segments_with_different_rates_resolve_the_end() -> None:
    rates = [0.95, 0.8, 0.6]
    loans = simulate(rates, 3_000, 800, seed=8)
    curves = loans.learn()
    assert curves.unresolved > 0.4
    for x, rate in enumerate(rates):
        assert loans.belief(x).mean < rate - 0.05
        assert loans.matured(x, curves).mean == pytest.approx(rate, abs=0.06)


def test_without_failures_open_loans_say_nothing() -> None:
    curves = learn_timing([10, 20, 15], [50, 50, 0], [0, 0, 0], [0, 0, 30])
    assert curves.success_open == pytest.approx(curves.failure_open, abs=0.01)
    belief = mature_belief(Belief(102, 101), [15] * 30, curves)
    assert (belief.mean, belief.n) == pytest.approx((101 / 102, 102), rel=0.02)


def test_everything_closed() -> None:
    curves = learn_timing([10, 20], [0, 8], [4, 0], [0, 0], alternatives=0)
    assert curves.unresolved == pytest.approx(0, abs=1e-12)
    # Of five failures (one imagined, with the timing of all twelve outcomes) 2/3 of one is open after day 10.
    assert curves.open_shares(10) == pytest.approx(((8 + 2 / 3) / 9, 2 / 3 / 5))
    assert curves.open_shares(25) == pytest.approx((0, 0), abs=1e-9)


def test_long_data_are_counted_by_several_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of 40 days give nearly the same rates as days."""
    loans = simulate([0.9, 0.6], 3_000, 1_400, seed=10)
    loans = loans._replace(kind=np.where(loans.age >= 1_000, 2, loans.kind))  # no jump at the end of the term
    daily = loans.learn(alternatives=0)
    monkeypatch.setattr("lenience.models.timing.MOST_INTERVALS", 35)
    coarse = loans.learn(alternatives=0)
    assert len(coarse.ages) < 40
    for x in range(2):
        assert loans.matured(x, coarse).mean == pytest.approx(loans.matured(x, daily).mean, abs=0.001)


def test_few_ages_lose_little(monkeypatch: pytest.MonkeyPatch) -> None:
    loans = simulate([0.9, 0.6], 3_000, 1_400, seed=10)
    few = loans.learn(alternatives=0)
    monkeypatch.setattr("lenience.models.timing.MOST_AGES", 2_000)
    every = loans.learn(alternatives=0)
    differences = [
        abs(a - b) for age in every.ages for a, b in zip(few.open_shares(age), every.open_shares(age), strict=True)
    ]
    assert max(differences) < 0.015


def test_many_segments_and_days_stay_small() -> None:
    rows = 6_000
    random = np.random.default_rng(9)
    ages, good, bad, still_open = (random.integers(0, highest, rows) for highest in (4_000, 3, 2, 3))
    names = [f"s{i % 700}" for i in range(rows)]
    curves = learn_timing(ages, good, bad, still_open, names, alternatives=2)
    assert len(curves.ages) <= 96
    assert len(curves.alternatives) == 2
    assert curves == learn_timing(ages, good, bad, still_open, names, alternatives=2)


@pytest.mark.parametrize(
    ("rows", "field", "code"),
    [
        (([1, 2], [0, 0], [0, 0], [3, 4]), "successes", "insufficient_data"),
        (([], [], [], []), "successes", "insufficient_data"),
        (([1, 2], [1], [0, 0], [3, 4]), "successes", "length_mismatch"),
        (([1, -2], [1, 1], [0, 0], [3, 4]), "ages", "invalid_value"),
        (([1, 2], [1, 1], [0, 0], [3, 4], ["a"]), "segments", "length_mismatch"),
    ],
)
def test_invalid_counts(rows: tuple[list[object], ...], field: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        learn_timing(*rows)  # type: ignore[arg-type]
    assert (error.value.field, error.value.code) == (field, code)
