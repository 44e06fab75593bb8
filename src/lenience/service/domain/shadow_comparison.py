"""Compare a shadow version with the active one in money, over decisions that both made.

An applicant who is accepted earns a(p − c) in expectation, with the amount a at stake, the break-even c and the success
rate p. The versions differ in whom they accept, and each has its own estimate of p. So the difference of their profits
is computed twice, by the estimates of either. Its variance has two parts: who happened to apply, from the spread of the
differences, and the error of the estimates, which is taken to be the same for all applicants of a segment. The second
is cautious: errors that differ would partly cancel.

Outcomes exist only for those whom the active version accepted. They show what the shadow version would have saved or
lost by rejecting some of them. Nothing shows what those would have done whom only the shadow version would accept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.formatting import counted
from lenience.core.money import Money

LEAST = 30  # decisions; with fewer there is no verdict
LEAST_OUTCOMES = 10  # known outcomes that count in the verdict
NORMAL = 1.6449  # of a two-sided 90% interval
ShadowVerdict: TypeAlias = Literal["too_early", "same", "better", "worse", "unclear"]


class Side(NamedTuple):
    """What one version made of an applicant: whether it accepts, its estimate, and the offer.

    ``group`` says whose estimates share their error: the applicants of one segment under this version.
    """

    accepts: bool
    mean: float
    n: float
    amount: float
    cost: float
    group: str = ""


class ComparedDecision(NamedTuple):
    """An applicant whom both versions decided. ``profit`` is what the outcome has earned, None if it is not known."""

    active: Side
    shadow: Side
    profit: float | None


class ExpectedDifference(msgspec.Struct, frozen=True):
    """The expected profits of both versions by the estimates of one of them, and how much more the shadow earns."""

    estimates_of: int
    active: float
    shadow: float
    difference: float
    interval: Bounds


class ObservedDifference(msgspec.Struct, frozen=True):
    """Those whom only the active version accepts, as far as their outcomes are known.

    ``profit`` is what they have earned, and ``interval`` what so many of them earn in the long run, with probability
    90%. The shadow version would have earned nothing with them.
    """

    outcomes: int
    pending: int
    profit: float
    interval: Bounds


class ShadowComparison(msgspec.Struct, frozen=True):
    """A shadow version compared with the active one, over the latest decisions that both made.

    Profits are in the currency of the offers, or in units of gain + loss if it is null. Intervals have a probability of
    90%. ``not_compared`` applicants are left out, because their requests do not have what the shadow version needs:
    a segment, a feature or an offer.
    """

    version: int
    model: str
    active: int
    active_model: str
    currency: str | None
    decisions: int
    not_compared: int
    both_accept: int
    both_reject: int
    only_active: int
    only_shadow: int
    expected: list[ExpectedDifference]
    observed: ObservedDifference
    agreed_outcomes: int
    agreed_profit: float
    verdict: ShadowVerdict
    sentence: str
    unknown: str


def compare_versions(
    decisions: Sequence[ComparedDecision],
    versions: tuple[int, int],
    models: tuple[str, str],
    money: Money,
    not_compared: int = 0,
) -> ShadowComparison:
    """Compare a shadow version with the active one.

    Parameters
    ----------
    decisions : sequence of ComparedDecision
        The applicants whom both decided.
    versions : tuple of int
        The number of the active version and of the shadow version.
    models : tuple of str
        The types of their models.
    money : Money
        How to show profits.
    not_compared : int
        How many applicants the active version decided meanwhile and the shadow version could not.

    Examples
    --------
    >>> def loan(good):
    ...     shadow = Side(good, 0.75, 20, 1, 0.7)
    ...     return ComparedDecision(Side(True, 0.8, 20, 1, 0.7), shadow, 0.3 if good else -0.7)
    >>> result = compare_versions([loan(i % 4 > 0) for i in range(80)], (1, 2), ("own", "logistic"), Money())
    >>> result.only_active, result.observed.outcomes, result.verdict
    (20, 20, 'better')
    """
    active_number, shadow_number = versions
    only_active = [one for one in decisions if one.active.accepts and not one.shadow.accepts]
    agreed = [one for one in decisions if one.active.accepts and one.shadow.accepts]
    only_shadow = sum(one.shadow.accepts and not one.active.accepts for one in decisions)
    observed = _observed(only_active)
    expected = [
        _expected(decisions, active_number, [one.active for one in decisions]),
        _expected(decisions, shadow_number, [one.shadow for one in decisions]),
    ]
    verdict = _verdict(decisions, expected, observed, only_shadow)
    known = [one.profit for one in agreed if one.profit is not None]
    return ShadowComparison(
        version=shadow_number,
        model=models[1],
        active=active_number,
        active_model=models[0],
        currency=money.currency if money.known else None,
        decisions=len(decisions),
        not_compared=not_compared,
        both_accept=len(agreed),
        both_reject=len(decisions) - len(agreed) - len(only_active) - only_shadow,
        only_active=len(only_active),
        only_shadow=only_shadow,
        expected=expected,
        observed=observed,
        agreed_outcomes=len(known),
        agreed_profit=math.fsum(known),
        verdict=verdict,
        sentence=_sentence(verdict, versions, len(decisions), expected, observed, money),
        unknown=_unknown(shadow_number, only_shadow, observed.pending, not_compared),
    )


def _expected(decisions: Sequence[ComparedDecision], number: int, estimates: Sequence[Side]) -> ExpectedDifference:
    """Return the expected profits of both versions by one version's estimates."""
    active = [_profit(one.active, estimate.mean) for one, estimate in zip(decisions, estimates, strict=True)]
    shadow = [_profit(one.shadow, estimate.mean) for one, estimate in zip(decisions, estimates, strict=True)]
    differences = [mine - theirs for mine, theirs in zip(shadow, active, strict=True)]
    total = math.fsum(differences)
    size = max(len(differences), 1)
    chance = math.fsum((each - total / size) ** 2 for each in differences) * size / max(size - 1, 1)
    by_group: dict[str, float] = {}
    for one, (_, mean, n, _, _, group) in zip(decisions, estimates, strict=True):
        moved = abs(one.shadow.accepts * one.shadow.amount - one.active.accepts * one.active.amount)
        error = moved * math.sqrt(mean * (1.0 - mean) / (n + 1.0))
        by_group[group] = by_group.get(group, 0.0) + error
    half = NORMAL * math.sqrt(chance + math.fsum(error * error for error in by_group.values()))
    return ExpectedDifference(number, math.fsum(active), math.fsum(shadow), total, Bounds(total - half, total + half))


def _profit(side: Side, mean: float) -> float:
    return side.amount * (mean - side.cost) if side.accepts else 0.0


def _observed(only_active: Sequence[ComparedDecision]) -> ObservedDifference:
    profits = [one.profit for one in only_active if one.profit is not None]
    total, size = math.fsum(profits), max(len(profits), 1)
    spread = math.fsum((each - total / size) ** 2 for each in profits) * size / max(size - 1, 1)
    half = NORMAL * math.sqrt(spread)
    return ObservedDifference(len(profits), len(only_active) - len(profits), total, Bounds(total - half, total + half))


def _verdict(
    decisions: Sequence[ComparedDecision],
    expected: Sequence[ExpectedDifference],
    observed: ObservedDifference,
    only_shadow: int,
) -> ShadowVerdict:
    """Return the verdict. What both estimates say counts only if known outcomes do not contradict it."""
    if len(decisions) < LEAST:
        return "too_early"
    if all(one.active.accepts == one.shadow.accepts and _same_offer(one) for one in decisions):
        return "same"
    seen = observed.outcomes >= LEAST_OUTCOMES
    saves, loses = seen and observed.interval.upper < 0.0, seen and observed.interval.lower > 0.0
    if only_shadow == 0 and (saves or loses):  # everything that differs has been observed
        return "better" if saves else "worse"
    if all(one.interval.lower > 0.0 for one in expected) and not loses:
        return "better"
    if all(one.interval.upper < 0.0 for one in expected) and not saves:
        return "worse"
    return "unclear"


def _same_offer(one: ComparedDecision) -> bool:
    return not one.active.accepts or (one.active.amount, one.active.cost) == (one.shadow.amount, one.shadow.cost)


def _sentence(
    verdict: ShadowVerdict,
    versions: tuple[int, int],
    decisions: int,
    expected: Sequence[ExpectedDifference],
    observed: ObservedDifference,
    money: Money,
) -> str:
    active, shadow = versions
    if verdict == "too_early":
        return f"Too early to compare: {decisions:,} of {LEAST} decisions so far."
    if verdict == "same":
        return f"Version {shadow} would have decided all {decisions:,} applicants as version {active} did."
    unit = "" if money.known else " units of gain + loss"
    both = [f"{_more(one.difference, money)} by version {one.estimates_of}'s estimates" for one in expected]
    earns = f"It would earn {both[0]}{unit} and {both[1]}."
    seen = ""
    if observed.outcomes:
        effect = "saved" if observed.profit < 0 else "missed"
        seen = (
            f" By rejecting {counted(observed.outcomes, 'applicant')} whose "
            f"{'outcome is' if observed.outcomes == 1 else 'outcomes are'} known, it would have {effect} "
            f"{money.format(abs(observed.profit))}{unit}."
        )
    words = {
        "better": f"Version {shadow} looks better than version {active}. {earns}",
        "worse": f"Version {shadow} looks worse than version {active}. {earns}",
        "unclear": f"It is not clear yet whether version {shadow} is better than version {active}. {earns}",
    }[verdict]
    return f"{words}{seen}"


def _more(difference: float, money: Money) -> str:
    """Return a difference in words."""
    return f"{money.format(abs(difference))} {'more' if difference >= 0 else 'less'}"


def _unknown(shadow: int, only_shadow: int, pending: int, not_compared: int) -> str:
    """Say what cannot be known."""
    sentences = []
    if only_shadow:
        sentences.append(
            f"Nobody knows how the {counted(only_shadow, 'applicant')} would have done whom only version {shadow} "
            "would accept: they were rejected."
        )
    if pending:
        sentences.append(
            f"{counted(pending, 'outcome')} of those whom version {shadow} would reject "
            f"{'is' if pending == 1 else 'are'} not known yet."
        )
    if not_compared:
        sentences.append(
            f"{counted(not_compared, 'applicant')} {'is' if not_compared == 1 else 'are'} not compared: "
            f"{'the request does' if not_compared == 1 else 'their requests do'} not have what version {shadow} needs."
        )
    return " ".join(sentences)
