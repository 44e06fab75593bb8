"""Successes that a version expected, compared with those that were observed, by segment, score band or month.

The expected number is Σ p̂ over the accepted applicants with a known outcome, each p̂ as the version had it when it
decided. How far the observed number may be from it by chance follows from the version's own belief. Let applicant j be
decided with the estimate p̂ worth n outcomes, while m earlier acceptances of the segment had no outcome yet. Then

    Var(Σ (y − p̂)) = Σ p̂ (1 − p̂) (1 + 2 m / (n + 1)).

Proof: if the outcome of i was known when j was decided, y_i − p̂_i is known and E[y_j − p̂_j] = 0, so the two are
uncorrelated. Otherwise their covariance given what was known is that of two draws with the same unknown rate, which is
the variance of the rate, p̂ (1 − p̂)/(n + 1) for a Beta belief. So a version that knows little, or learns late, is not
called wrong for what it could not know. With features, m counts all pending applicants, similar or not, and the
variance is too large rather than too small.

The range of the number of successes is that of a beta-binomial distribution with this mean and variance; it is not a
normal one, because failures may be rare. The ranges of all groups together hold with a stated probability.

Outcomes do not arrive at random: failures often come first. If the version has timing curves, the estimate is that of a
loan whose outcome is known by its age, p F₁/(p F₁ + (1 − p) F₀), with the shares F of the successes and failures that
have arrived by then. Without curves, a difference counts for certain only if it would remain whatever the unknown
outcomes turn out to be. Otherwise it is something to watch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.formatting import counted, percent
from lenience.models.maturing import TimingCurves

WATCH, ACT = 0.05, 0.001  # the probability that any group is outside by chance
Health: TypeAlias = Literal["no_data", "ok", "watch", "act"]
SEVERITY: dict[Health, int] = {"no_data": 0, "ok": 1, "watch": 2, "act": 3}


class KnownOutcome(NamedTuple):
    """An accepted applicant whose outcome is known, in the order of the decisions.

    ``mean`` is the expected success rate at the decision, worth ``n`` outcomes. ``pending`` earlier acceptances of the
    segment had no outcome then.
    """

    segment: str
    group: str
    mean: float
    n: float
    pending: int
    success: bool


class ExpectedOutcomes(msgspec.Struct, frozen=True):
    """A group of acceptances: how many succeeded, and how many the version expected to.

    ``expected`` and ``observed`` are rates of the ``outcomes`` that are known. Chance alone leaves ``range`` with a
    probability of 5% in any of the groups. ``possible`` are the rates if all ``unknown`` outcomes fail or succeed.
    """

    name: str
    outcomes: int
    unknown: int
    successes: int
    expected: float | None
    observed: float | None
    range: Bounds | None
    possible: Bounds | None
    state: Health
    sentence: str


def known_by_age(mean: float, curves: TimingCurves | None, days: float) -> float:
    """Return the success rate of loans whose outcome is known by an age, if outcomes do not arrive at random.

    Parameters
    ----------
    mean : float
        The success rate of all loans.
    curves : TimingCurves or None
        When outcomes arrive.
    days : float
        The age.

    Examples
    --------
    >>> curves = TimingCurves(ages=(0, 90, 365), success_open=(1, 0.8, 0), failure_open=(1, 0.4, 0))
    >>> round(known_by_age(0.9, curves, 100), 3), known_by_age(0.9, curves, 400)
    (0.75, 0.9)
    """
    if curves is None:
        return mean
    success_open, failure_open = curves.open_shares(max(days, 0.0))
    good, bad = mean * (1.0 - success_open), (1.0 - mean) * (1.0 - failure_open)
    return good / (good + bad) if good + bad > 0.0 else mean


def compare_outcomes(
    known: Iterable[KnownOutcome], unknown: Mapping[str, int] | None = None, *, timed: bool = False
) -> list[ExpectedOutcomes]:
    """Compare expected with observed successes, in groups.

    Parameters
    ----------
    known : iterable of KnownOutcome
        Acceptances with a known outcome, oldest first.
    unknown : mapping, optional
        The number of acceptances without an outcome in each group.
    timed : bool, default False
        Whether ``mean`` already allows for the time at which outcomes arrive.

    Returns
    -------
    list of ExpectedOutcomes
        The groups, by name.

    Examples
    --------
    >>> good = [KnownOutcome("a", "a", 0.9, 500.0, 0, i % 10 > 0) for i in range(100)]
    >>> bad = [KnownOutcome("b", "b", 0.9, 500.0, 0, i % 10 > 3) for i in range(100)]
    >>> for group in compare_outcomes(good + bad):
    ...     print(group.name, group.state, group.sentence)
    a ok 90 of 100 succeeded, 90%. Expected: 90% (83% to 96%).
    b act 60 of 100 succeeded, 60%. Expected: 90% (83% to 96%), so chance hardly explains it.
    """
    groups: dict[str, list[KnownOutcome]] = {}
    for one in known:
        groups.setdefault(one.group, []).append(one)
    missing = unknown or {}
    names = sorted({*groups, *(name for name, number in missing.items() if number)})
    return [_compared(name, groups.get(name, []), missing.get(name, 0), len(groups), timed) for name in names]


def _compared(name: str, group: list[KnownOutcome], unknown: int, groups: int, timed: bool) -> ExpectedOutcomes:
    size, good = len(group), sum(one.success for one in group)
    if not size:
        sentence = f"None of {counted(unknown, 'acceptance')} has a known outcome yet."
        return ExpectedOutcomes(name, 0, unknown, 0, None, None, None, None, "no_data", sentence)
    mean = sum(one.mean for one in group) / size
    factor = _variance(group) / max(size * mean * (1.0 - mean), 1e-300)
    inside = likely_successes(size, mean, factor, WATCH / groups)
    state: Health = "ok"
    if not inside[0] <= good <= inside[1]:
        surely = likely_successes(size, mean, factor, ACT / groups)
        state = "act" if not surely[0] <= good <= surely[1] else "watch"
        if state == "act" and unknown and not timed:
            state = _whatever_happens(good, size + unknown, unknown, mean, factor, ACT / groups)
    return ExpectedOutcomes(
        name=name,
        outcomes=size,
        unknown=unknown,
        successes=good,
        expected=mean,
        observed=good / size,
        range=Bounds(inside[0] / size, inside[1] / size),
        possible=Bounds(good / (size + unknown), (good + unknown) / (size + unknown)),
        state=state,
        sentence=_sentence(good, size, unknown, mean, inside, state, timed),
    )


def _variance(group: Sequence[KnownOutcome]) -> float:
    """Return the variance of the number of successes around the expected one."""
    before: Counter[str] = Counter()
    total = 0.0
    for one in group:
        together = min(one.pending, before[one.segment])
        total += one.mean * (1.0 - one.mean) * (1.0 + 2.0 * together / (one.n + 1.0))
        before[one.segment] += 1
    return total


def likely_successes(size: int, mean: float, factor: float, level: float) -> tuple[int, int]:
    """Return the range that a number of successes leaves with a small probability, half of it on each side.

    Parameters
    ----------
    size : int
        The number of outcomes.
    mean : float
        The expected success rate.
    factor : float
        The variance, divided by that of independent outcomes with this rate. Below 1 it counts as 1.
    level : float
        The probability of leaving the range.

    Examples
    --------
    >>> likely_successes(100, 0.9, 1.0, 0.05), likely_successes(100, 0.9, 4.0, 0.05)
    ((84, 95), (76, 99))
    """
    import numpy as np
    from scipy.special import betaln, gammaln, xlog1py, xlogy

    counts = np.arange(size + 1.0)
    choose = gammaln(size + 1.0) - gammaln(counts + 1.0) - gammaln(size - counts + 1.0)
    spread = min((factor - 1.0) / (size - 1.0), 0.999) if size > 1 else 0.0
    if spread > 1e-9 and 0.0 < mean < 1.0:
        weight = 1.0 / spread - 1.0
        a, b = mean * weight, (1.0 - mean) * weight
        logarithms = choose + betaln(counts + a, size - counts + b) - betaln(a, b)
    else:
        logarithms = choose + xlogy(counts, mean) + xlog1py(size - counts, -mean)
    below = np.cumsum(np.exp(logarithms))
    tail = level / 2.0
    return int(np.searchsorted(below, tail)), min(int(np.searchsorted(below, 1.0 - tail)), size)


def _whatever_happens(good: int, total: int, unknown: int, mean: float, factor: float, level: float) -> Health:
    """Return act if the number is outside whatever the unknown outcomes turn out to be, otherwise watch."""
    low, high = likely_successes(total, mean, factor, level)
    return "act" if good + unknown < low or good > high else "watch"


def _sentence(
    good: int, size: int, unknown: int, mean: float, inside: tuple[int, int], state: Health, timed: bool
) -> str:
    rates = f"{good:,} of {size:,} succeeded, {percent(good / size)}"
    wide = f"{percent(inside[0] / size)} to {percent(inside[1] / size)}"
    if state == "ok":
        text = f"{rates}. Expected: {percent(mean)} ({wide})."
    else:
        text = f"{rates}. Expected: {percent(mean)} ({wide}), so chance hardly explains it."
    if unknown and not timed and state != "ok":
        if state == "act":
            text += f" The {counted(unknown, 'unknown outcome')} cannot change that."
        else:
            rest = counted(unknown, "outcome").capitalize()
            text += f" {rest} may still change that, because the first ones may not be typical."
    return text


def worst(states: Iterable[Health]) -> Health:
    """Return the most serious state.

    >>> worst(["ok", "watch", "no_data"]), worst([])
    ('watch', 'no_data')
    """
    return max(states, key=SEVERITY.__getitem__, default="no_data")
