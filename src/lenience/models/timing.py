"""Learn when successes and failures arrive, from loans of which some are still open (:func:`learn_timing`).

The model. Loans of segment x succeed with probability p_x. Successes take a time with the law S₁, failures one with the
law S₀; both laws are the same in all segments, and when a loan was decided says nothing about them. A loan of age t has
the likelihood p_x f₁, (1 − p_x) f₀ or, if it is open, p_x S₁(t) + (1 − p_x) S₀(t).

The estimate. Competing risks (Aalen and Johansen 1978) over all segments give the start. Then two steps alternate
(expectation and maximisation): the chance w that each open loan succeeds, given its age and its segment's rate; and,
with these weights, the rates p_x and one product-limit estimate (Kaplan and Meier 1958) for each law. With one segment
the start is already the solution.

The end of the data. Loans that are still open at the last age at which an outcome arrived are ``unresolved``: the data
do not say which share of them succeeds. Before the data it is Beta(¼, ¼), which is wide: nearly all of them may
succeed, or nearly none. The estimate takes its median, the alternatives its quantiles, given what several segments say.

Few outcomes. The last failure of three says little about how long failures take. So one imagined loan of each kind,
with the timing of all outcomes together, is added to each law. With no failure at all both laws are the same, and open
loans say nothing.

Uncertainty. Each alternative repeats the estimate with random weights of the loans (the Bayesian bootstrap, Rubin 1981)
and with another share of the unresolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.validation import listed, whole
from lenience.models.maturing import OpenShares, TimingCurves, checked_numbers

Rows = NDArray[np.float64]

ALTERNATIVES = 16
MOST_AGES = 96  # of the curves
MOST_INTERVALS = 2_000  # of the estimate: longer data are counted by several days at once
MOST_GROUPS = 12  # of segments with similar rates
GRID = 16  # shares of the unresolved loans that are tried at once
REFINEMENTS = 3
UNLIKELY = 1e-5  # a share that is less likely than the best by this factor is left out
UNRESOLVED = 0.25  # the share of the unresolved that succeed is Beta(¼, ¼) before the data
ITERATIONS = 1_000
CONVERGED = 1e-8
SEED = 20_190_611  # any fixed number: the same data give the same curves


def learn_timing(
    ages: ArrayLike,
    successes: ArrayLike,
    failures: ArrayLike,
    still_open: ArrayLike,
    segments: Sequence[object] | None = None,
    alternatives: int = ALTERNATIVES,
) -> TimingCurves:
    """Learn how long successes and failures take, from counts of accepted loans by age.

    A row counts the loans of one age, and of one segment if segments are given. The age of a closed loan is the time
    from the decision to the outcome. The age of an open loan is the time from the decision to today.

    Parameters
    ----------
    ages : array_like
        The age of each row, in days; at least 0. Fractions of a day are ignored.
    successes : array_like
        The number of successes of each row.
    failures : array_like
        The number of failures of each row.
    still_open : array_like
        The number of open loans of each row.
    segments : sequence, optional
        The segment of each row. Without it all rows are one segment.
    alternatives : int, default 16
        The number of equally likely curves that express the uncertainty; 0 for none.

    Returns
    -------
    TimingCurves
        The curves.

    Raises
    ------
    InputError
        If lengths differ, a number is negative, or there is no outcome at all.

    Examples
    --------
    Of 300 loans 30 failed after 60 days and 90 were repaid after 300 days. The other 180 are 100 days old:

    >>> curves = learn_timing(ages=[60, 300, 100], successes=[0, 90, 0], failures=[30, 0, 0], still_open=[0, 0, 180])
    >>> [round(share, 2) for share in curves.open_shares(100)]
    [1.0, 0.03]
    >>> curves.unresolved
    0.0
    """
    table = _Table.of(*_checked(ages, successes, failures, still_open, segments))
    events = table.successes.sum() + table.failures.sum()
    if events == 0:
        raise InputError.because(
            "must contain at least one success or failure: without an outcome nothing can be learnt about timing",
            ("successes", "failures"),
            value=0,
            code="insufficient_data",
        )
    pairs = whole("alternatives", alternatives)
    random = np.random.default_rng(SEED)
    *likely, middle = _likely_shares(table, [*((np.arange(pairs) + 0.5) / max(pairs, 1)), 0.5])
    best = _estimate(table, middle)
    others = [_estimate(table.reweighted(random), share) for share in random.permutation(likely)]
    starts = _starts(best)
    # A share belongs to the end of its interval, so it holds from half an interval before that on.
    ages = [float(start * table.days + table.days // 2) for start in starts]
    first = (1.0,) if table.days > 1 else ()

    def shares(of: Rows) -> tuple[float, ...]:
        return first + _averaged(of, starts)

    return TimingCurves(
        ages=tuple([0.0, *ages] if first else ages),
        success_open=shares(best.success_open),
        failure_open=shares(best.failure_open),
        alternatives=tuple(OpenShares(shares(pair.success_open), shares(pair.failure_open)) for pair in others),
        successes=round(float(table.successes.sum())),
        failures=round(float(table.failures.sum())),
        still_open=round(float(table.still_open.sum())),
        unresolved=best.unresolved,
    )


class _Table(NamedTuple):
    """Loans by group of segments (rows) and interval of age (columns), and the days of an interval."""

    successes: Rows
    failures: Rows
    still_open: Rows
    days: int

    @classmethod
    def of(cls, ages: NDArray[np.int64], counts: Rows, segment: NDArray[np.int64]) -> _Table:
        """Add the counts of rows up by group and interval."""
        days = int(ages.max() // MOST_INTERVALS) + 1
        column = ages // days
        group = _similar(counts, segment)[segment]
        shape = (int(group.max()) + 1, int(column.max()) + 1)

        def added(kind: Rows) -> Rows:
            cells = np.bincount(group * shape[1] + column, kind, shape[0] * shape[1])
            return cells.astype(np.float64).reshape(shape)

        return cls(added(counts[0]), added(counts[1]), added(counts[2]), days)

    def reweighted(self, random: np.random.Generator) -> _Table:
        """Give each loan an exponential weight; the weights of a cell's loans add up to a Gamma variable."""
        return _Table(
            random.gamma(self.successes), random.gamma(self.failures), random.gamma(self.still_open), self.days
        )


class _Laws(NamedTuple):
    """The shares still open at the end of each interval, and the share of all loans that are unresolved."""

    success_open: Rows
    failure_open: Rows
    unresolved: float
    rate: float
    log_likelihood: float


def _likely_shares(table: _Table, quantiles: Sequence[float]) -> Rows:
    """Return quantiles of the share of the unresolved loans that succeed.

    Before the data the share is Beta(¼, ¼): most often nearly all of these loans end alike, and the data do not say
    how. With one segment it stays so. Segments with different rates say more, because the same two laws must explain
    all of them.
    """
    from scipy.special import betainc

    low, high = 0.0, 1.0
    for _ in range(REFINEMENTS):
        edges = np.linspace(low, high, GRID + 1)
        logs = np.array([_estimate(table, share).log_likelihood for share in 0.5 * (edges[:-1] + edges[1:])])
        mass = np.exp(logs - logs.max()) * np.diff(betainc(UNRESOLVED, UNRESOLVED, edges))
        likely = np.flatnonzero(mass > UNLIKELY * mass.max())
        low, high = float(edges[max(likely[0] - 1, 0)]), float(edges[min(likely[-1] + 2, GRID)])
    reached = np.concatenate(([0.0], np.cumsum(mass))) / mass.sum()
    return np.interp(quantiles, reached, edges)


def _estimate(table: _Table, unresolved_success: float) -> _Laws:
    """Estimate both laws if the given share of the unresolved loans succeeds."""
    good, bad = table.successes.sum(axis=0), table.failures.sum(axis=0)
    loans = good + bad + table.still_open.sum(axis=0)
    all_open = _product_limit(good + bad, loans)
    good_by_group, bad_by_group = table.successes.sum(axis=1), table.failures.sum(axis=1)
    all_by_group = good_by_group + bad_by_group + table.still_open.sum(axis=1)
    end = int(np.flatnonzero(good + bad)[-1])  # the last interval with an outcome
    resolved, unresolved = table.still_open[:, :end], table.still_open[:, end:].sum(axis=1)

    # Competing risks: F(t) is the share of all loans that have succeeded, or failed, by age t.
    before = np.concatenate(([1.0], all_open[:-1]))
    at_risk = np.maximum(_at_risk(loans), 1e-300)
    succeeded, failed = np.cumsum(before * good / at_risk), np.cumsum(before * bad / at_risk)
    left = 1.0 - succeeded[-1] - failed[-1]
    rate = succeeded[-1] + unresolved_success * left
    success_open = _remaining(succeeded, rate)
    failure_open = _remaining(failed, 1.0 - rate)
    rates = np.full(len(all_by_group), rate)
    weights = unresolved / max(float(unresolved.sum()), 1e-300)
    for _ in range(ITERATIONS):
        chance = _chance(rates[:, None], success_open[:end], failure_open[:end])
        # The odds that an open loan at the end gives are not learnt: they follow from the assumed share.
        average = float((weights * rates).sum()) or rate
        odds = unresolved_success * (1.0 - average)
        last_chance = _chance(rates, odds, (1.0 - unresolved_success) * average)
        expected = resolved * chance
        good_left = np.concatenate((expected.sum(axis=0), [float((unresolved * last_chance).sum())]))
        bad_left = np.concatenate(
            ((resolved - expected).sum(axis=0), [float((unresolved * (1.0 - last_chance)).sum())])
        )
        next_success = _product_limit(good[: end + 1], good[: end + 1] + good_left)
        next_failure = _product_limit(bad[: end + 1], bad[: end + 1] + bad_left)
        # One imagined loan at the common rate keeps the rate of a small group inside (0, 1).
        next_rates = (good_by_group + expected.sum(axis=1) + unresolved * last_chance + rate) / (all_by_group + 1.0)
        # With one rate for all, the first step does not move the laws. So the rates count, too.
        moved = max(
            float(np.abs(next_rates - rates).max()),
            float(np.abs(next_success - success_open[: end + 1]).max()),
            float(np.abs(next_failure - failure_open[: end + 1]).max()),
        )
        rates = next_rates
        success_open = _extended(next_success, len(loans))
        failure_open = _extended(next_failure, len(loans))
        if moved < CONVERGED:
            break
    open_chance = rates[:, None] * success_open + (1.0 - rates[:, None]) * failure_open
    log_likelihood = (
        _log_likelihood(good_by_group, rates)
        + _log_likelihood(bad_by_group, 1.0 - rates)
        + _log_likelihood(good, -np.diff(success_open, prepend=1.0))
        + _log_likelihood(bad, -np.diff(failure_open, prepend=1.0))
        + _log_likelihood(table.still_open, open_chance)
    )
    return _Laws(
        _with_imagined(success_open, float(good.sum()), all_open),
        _with_imagined(failure_open, float(bad.sum()), all_open),
        max(float(left), 0.0),
        float((rates * all_by_group).sum() / all_by_group.sum()),
        log_likelihood,
    )


def _log_likelihood(counts: Rows, probability: Rows) -> float:
    """Return the logarithm of a likelihood: what was never seen has no part in it."""
    return float((counts * np.log(np.where(counts > 0, np.maximum(probability, 1e-300), 1.0))).sum())


def _at_risk(leaving: Rows) -> Rows:
    """Return how many loans are still there at the start of each interval."""
    return np.cumsum(leaving[::-1])[::-1]


def _product_limit(events: Rows, leaving: Rows) -> Rows:
    """Return the share without an event after each interval; outcomes come before loans leave the data."""
    at_risk = _at_risk(leaving)
    staying = np.where(events > 0, 1.0 - events / np.where(at_risk > 0, at_risk, 1.0), 1.0)
    return np.cumprod(np.clip(staying, 0.0, 1.0))


def _remaining(arrived: Rows, total: float) -> Rows:
    """Return the share that has not arrived, of a total."""
    return np.maximum(1.0 - arrived / total, 0.0) if total > 0 else np.ones(len(arrived))


def _chance(rate: Rows, success_open: Rows | float, failure_open: Rows | float) -> Rows:
    """Return the chance that an open loan succeeds: the rate itself if both shares are 0."""
    good, bad = rate * success_open, (1.0 - rate) * failure_open
    total = good + bad
    return np.where(total > 0, good / np.where(total > 0, total, 1.0), rate)


def _extended(shares: Rows, length: int) -> Rows:
    """Repeat the last share up to a length."""
    return np.concatenate((shares, np.full(length - len(shares), shares[-1])))


def _with_imagined(shares: Rows, outcomes: float, all_open: Rows) -> Rows:
    """Add one imagined loan with the timing of all outcomes to a law that was learnt from a number of outcomes."""
    return (outcomes * shares + all_open) / (outcomes + 1.0)


def _similar(counts: Rows, segment: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the group of each segment: segments whose known outcomes have similar rates form one."""
    good, bad = (np.bincount(segment, kind) for kind in counts[:2])
    size = np.bincount(segment, counts.sum(axis=0))
    if len(size) <= MOST_GROUPS:
        return np.arange(len(size))
    common = float(good.sum()) / max(float(good.sum() + bad.sum()), 1.0)
    order = np.argsort((good + common) / (good + bad + 1.0), kind="stable")
    reached = np.cumsum(size[order]) / size.sum()
    group = np.empty(len(size), dtype=np.int64)
    group[order] = np.minimum((reached * MOST_GROUPS).astype(np.int64), MOST_GROUPS - 1)
    return np.unique(group, return_inverse=True)[1]


def _starts(laws: _Laws) -> NDArray[np.int64]:
    """Return the intervals at which the curves have an age: all, or the most where the curves change most."""
    length = len(laws.success_open)
    if length <= MOST_AGES:
        return np.arange(length)
    chance = _chance(np.full(length, laws.rate), laws.success_open, laws.failure_open)
    change = sum(np.abs(np.diff(each)) for each in (laws.success_open, laws.failure_open, chance, chance))
    change = np.minimum(change, 4.0 / MOST_AGES)  # a jump needs one age only
    reached = np.concatenate(([0.0], np.cumsum(change + 1e-12)))
    steps = np.floor(reached / reached[-1] * (MOST_AGES - 1) + 1e-9)
    return np.flatnonzero(np.concatenate(([True], np.diff(steps) > 0)))


def _averaged(shares: Rows, starts: NDArray[np.int64]) -> tuple[float, ...]:
    """Return the average share between one start and the next, rounded so that it is short as JSON."""
    sums = np.add.reduceat(shares, starts)
    lengths = np.diff(np.append(starts, len(shares)))
    return tuple(float(share) for share in np.minimum.accumulate(np.round(sums / lengths, 9)))


def _checked(
    ages: ArrayLike, successes: ArrayLike, failures: ArrayLike, still_open: ArrayLike, segments: Sequence[object] | None
) -> tuple[NDArray[np.int64], Rows, NDArray[np.int64]]:
    """Return whole ages, the three counts and the segment's number of each row that has loans."""
    given = {"ages": ages, "successes": successes, "failures": failures, "still_open": still_open}
    columns = [checked_numbers(field, values) for field, values in given.items()]
    names = [None] * columns[0].size if segments is None else listed("segments", segments, "a list of segments")
    lengths = dict(zip([*given, "segments"], [*(column.size for column in columns), len(names)], strict=True))
    for field, length in lengths.items():
        if length != columns[0].size:
            raise InputError.because(
                f"must have one entry for each of the {columns[0].size} ages, not {length}",
                field,
                code="length_mismatch",
            )
    position: dict[object, int] = {}
    segment = np.array([position.setdefault(name, len(position)) for name in names], dtype=np.int64)
    if not segment.size:  # one empty row, so that the error is about outcomes
        return np.zeros(1, dtype=np.int64), np.zeros((3, 1)), np.zeros(1, dtype=np.int64)
    return np.floor(columns[0]).astype(np.int64), np.stack(columns[1:]), segment
