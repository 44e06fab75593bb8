"""Timing curves that are learnt from open and closed loans, against plain loops and known laws."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief
from lenience.core.errors import InputError
from lenience.models import TimingCurves, learn_timing, mature_belief
from lenience.models.timing import _averaged, _estimate, _Laws, _similar, _starts, _Table


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
    # Their share that succeeds is Beta(¼, ¼), which is wider than uniform.
    assert after.variance**0.5 == pytest.approx(curves.unresolved / 6**0.5, rel=0.15)
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
        assert loans.matured(x, coarse).mean == pytest.approx(loans.matured(x, daily).mean, abs=0.004)


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


def product_limit(events: list[float], leaving: list[float]) -> list[float]:
    """Kaplan and Meier's share without an event after each interval, one interval at a time."""
    share, result = 1.0, []
    for t, count in enumerate(events):
        if count > 0:
            share *= 1.0 - count / sum(leaving[t:])
        result.append(max(share, 0.0))
    return result


def success_chance_of(rate: float, good: float, bad: float) -> float:
    total = rate * good + (1 - rate) * bad
    return rate * good / total if total > 0 else rate


def estimated_plainly(good: Any, bad: Any, still_open: Any, unresolved: float, steps: int) -> tuple[Any, Any, float]:
    """Both laws with their imagined loan, and the log-likelihood, by sums over groups and intervals."""
    groups, length = good.shape
    events = [float(good[:, t].sum()) for t in range(length)], [float(bad[:, t].sum()) for t in range(length)]
    loans = [events[0][t] + events[1][t] + float(still_open[:, t].sum()) for t in range(length)]
    both = [one + other for one, other in zip(*events, strict=True)]
    everything_open = product_limit(both, loans)
    end = max(t for t in range(length) if both[t] > 0)
    shares, arrived = [0.0, 0.0], ([], [])  # type: ignore[var-annotated]
    for t in range(length):
        before = everything_open[t - 1] if t else 1.0
        for kind in (0, 1):
            shares[kind] += before * events[kind][t] / sum(loans[t:]) if sum(loans[t:]) else 0.0
            arrived[kind].append(shares[kind])
    rate = shares[0] + unresolved * (1 - shares[0] - shares[1])
    laws = [[1 - one / total for one in arrived[kind]] for kind, total in ((0, rate), (1, 1 - rate))]
    rates = [rate] * groups
    last = [float(still_open[g, end:].sum()) for g in range(groups)]
    for _ in range(steps):
        average = sum(n * r for n, r in zip(last, rates, strict=True)) / sum(last) if sum(last) else rate
        left, new_rates = ([0.0] * (end + 1), [0.0] * (end + 1)), []
        for g in range(groups):
            successes = float(good[g].sum())
            for t in range(end):
                chance = success_chance_of(rates[g], laws[0][t], laws[1][t])
                left[0][t] += still_open[g, t] * chance
                left[1][t] += still_open[g, t] * (1 - chance)
                successes += still_open[g, t] * chance
            chance = success_chance_of(rates[g], unresolved * (1 - average), (1 - unresolved) * average)
            left[0][end] += last[g] * chance
            left[1][end] += last[g] * (1 - chance)
            everyone = float((good[g] + bad[g] + still_open[g]).sum())
            new_rates.append((successes + last[g] * chance + rate) / (everyone + 1))
        rates = new_rates
        for kind in (0, 1):
            known = events[kind][: end + 1]
            law = product_limit(known, [one + other for one, other in zip(known, left[kind], strict=True)])
            laws[kind] = law + [law[-1]] * (length - len(law))
    logarithm = 0.0
    for g in range(groups):
        for t in range(length):
            chances = [rates[g] * (laws[0][t - 1] if t else 1.0) - rates[g] * laws[0][t]]
            chances.append((1 - rates[g]) * ((laws[1][t - 1] if t else 1.0) - laws[1][t]))
            chances.append(rates[g] * laws[0][t] + (1 - rates[g]) * laws[1][t])
            for count, chance in zip((good[g, t], bad[g, t], still_open[g, t]), chances, strict=True):
                logarithm += float(count) * math.log(chance) if count else 0.0
    imagined = [
        [
            (sum(events[kind]) * one + all_open) / (sum(events[kind]) + 1)
            for one, all_open in zip(law, everything_open, strict=True)
        ]
        for kind, law in enumerate(laws)
    ]
    return imagined[0], imagined[1], logarithm


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("unresolved", [0.2, 0.7])
def test_laws_of_several_groups_against_plain_loops(
    seed: int, unresolved: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 1 + 10 * seed
    monkeypatch.setattr("lenience.models.timing.ITERATIONS", steps)
    random = np.random.default_rng(seed)
    counts = [random.integers(0, most, (3, 7)).astype(float) for most in (6, 4, 5)]
    counts[0][:, 6] = counts[1][:, 6] = 0  # nothing is known of the last interval
    counts[0][1, :], counts[2][:, 5] = 0, 3
    laws = _estimate(_Table(counts[0], counts[1], counts[2], 1), unresolved)
    good, bad, logarithm = estimated_plainly(counts[0], counts[1], counts[2], unresolved, steps)
    assert laws.success_open == pytest.approx(good, abs=2e-5)
    assert laws.failure_open == pytest.approx(bad, abs=2e-5)
    assert laws.log_likelihood == pytest.approx(logarithm, abs=1e-4)


def test_counts_are_added_by_group_and_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.models.timing.MOST_INTERVALS", 4)
    ages, segment = np.array([0, 1, 5, 9, 9]), np.array([0, 1, 0, 1, 0])
    counts = np.array([[1, 2, 0, 4, 0], [0, 1, 1, 0, 2], [5, 0, 0, 3, 1]], dtype=float)
    table = _Table.of(ages, counts, segment)
    assert table.days == 3
    assert table.successes.tolist() == [[1, 0, 0, 0], [2, 0, 0, 4]]
    assert table.failures.tolist() == [[0, 1, 0, 2], [1, 0, 0, 0]]
    assert table.still_open.tolist() == [[5, 0, 0, 1], [0, 0, 0, 3]]


def test_segments_with_similar_rates_form_groups_of_similar_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.models.timing.MOST_GROUPS", 3)
    good, bad, still_open = [9, 1, 5, 8, 2, 5], [1, 9, 5, 2, 8, 5], [0, 0, 10, 0, 0, 10]
    counts = np.array([good, bad, still_open], dtype=float)
    # By rate: 1 (10 loans), 4 (10), 2 (20), 5 (20), 3 (10), 0 (10). Thirds of the 80 loans end at 27 and 53.
    assert _similar(counts, np.arange(6)).tolist() == [2, 0, 1, 2, 0, 2]
    assert _similar(counts[:, :3], np.arange(3)).tolist() == [0, 1, 2]


def test_curves_have_ages_where_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.models.timing.MOST_AGES", 8)
    shares = np.array([1.0] * 20 + [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0] + [0.0] * 20)
    starts = _starts(_Laws(shares, shares, 0.0, 0.5, 0.0))
    assert starts[0] == 0
    assert 5 <= len(starts) <= 8
    assert np.all((starts[1:] >= 20) & (starts[1:] <= 31))
    assert np.ptp(np.diff(starts[1:])) <= 1  # it falls evenly, so the ages are evenly apart
    averaged = _averaged(shares, starts)
    for i, start in enumerate(starts.tolist()):
        end = starts[i + 1] if i + 1 < len(starts) else len(shares)
        assert averaged[i] == pytest.approx(shares[start:end].mean(), abs=1e-9)
    assert _starts(_Laws(shares[:8], shares[:8], 0.0, 0.5, 0.0)).tolist() == list(range(8))
