"""People and policy on referred cases: how often they disagree, and who was right.

A case that a person accepts against the policy shows its outcome: if such cases earn money, the person was right to
accept them. A case that a person rejects shows nothing, whatever the policy would have answered. So the report says
what people earned or lost by accepting what the policy would reject, and what the policy expected of those that people
rejected against it, which nobody can check.

People see what the policy does not, so the cases that they accept are a selected sample: their success rate is that of
cases that people like, not of all cases that the policy would refer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.formatting import counted, percent
from lenience.core.money import Money
from lenience.service.domain.events import Choice

NORMAL = 1.6449  # of a two-sided 90% interval
LEAST_OUTCOMES = 10  # for a verdict
RightVerdict: TypeAlias = Literal["too_early", "people", "policy", "unclear"]


class ReviewedCase(NamedTuple):
    """A referred case: what the policy would have answered, what a person decided, and what is known since.

    ``choice`` is None while nobody has decided. ``profit`` is None while no outcome is known.
    """

    would: Choice
    choice: Choice | None
    lapsed: bool
    profit: float | None
    expected: float  # profit by the estimate of the policy


class CaseGroup(msgspec.Struct, frozen=True):
    """Cases on which people and policy agreed, or disagreed in one direction.

    ``profit`` is what known outcomes have earned, ``interval`` what so many of such cases earn in the long run, with
    probability 90% (null without two outcomes), and ``expected`` what the policy expected of all of them.
    """

    cases: int
    outcomes: int
    successes: int
    profit: float
    interval: Bounds | None
    expected: float


class ReviewReport(msgspec.Struct, frozen=True):
    """How people decided the referred cases of a policy, compared with what the policy would have answered.

    ``disagreement`` is the share of decided cases, with an interval of probability 90%. ``verdict`` says who was right
    about the cases that people accepted against the policy, where at least 10 outcomes are known.
    """

    policy: str
    currency: str | None
    referred: int
    waiting: int
    lapsed: int
    decided: int
    disagreed: int
    disagreement: float | None
    disagreement_interval: Bounds | None
    both_accept: CaseGroup
    both_reject: CaseGroup
    people_accept: CaseGroup
    people_reject: CaseGroup
    verdict: RightVerdict
    sentence: str
    unknown: str


def report_reviews(policy: str, cases: Sequence[ReviewedCase], money: Money) -> ReviewReport:
    """Compare people and policy.

    Parameters
    ----------
    policy : str
        The name of the policy.
    cases : sequence of ReviewedCase
        The cases that were referred.
    money : Money
        How to show profits.

    Examples
    --------
    >>> saved = ReviewedCase("reject", "accept", False, 200.0, -50.0)
    >>> result = report_reviews("loans", [saved] * 12, Money(1.0, "$"))
    >>> result.disagreed, result.verdict
    (12, 'people')
    """
    decided = [one for one in cases if one.choice is not None]
    groups = {
        (would, choice): _group([one for one in decided if (one.would, one.choice) == (would, choice)])
        for would in ("accept", "reject")
        for choice in ("accept", "reject")
    }
    against, missed = groups["reject", "accept"], groups["accept", "reject"]
    disagreed = against.cases + missed.cases
    verdict = _verdict(against)
    rate = disagreed / len(decided) if decided else None
    interval = None if rate is None else _share_interval(disagreed, len(decided))
    return ReviewReport(
        policy=policy,
        currency=money.currency if money.known else None,
        referred=len(cases),
        waiting=sum(one.choice is None and not one.lapsed for one in cases),
        lapsed=sum(one.lapsed for one in cases),
        decided=len(decided),
        disagreed=disagreed,
        disagreement=rate,
        disagreement_interval=interval,
        both_accept=groups["accept", "accept"],
        both_reject=groups["reject", "reject"],
        people_accept=against,
        people_reject=missed,
        verdict=verdict,
        sentence=_sentence(len(decided), disagreed, interval, against, verdict, money),
        unknown=_unknown(missed, groups["reject", "reject"], money),
    )


def _group(cases: Sequence[ReviewedCase]) -> CaseGroup:
    profits = [one.profit for one in cases if one.profit is not None]
    total, size = math.fsum(profits), len(profits)
    interval = None
    if size >= 2:
        mean = total / size
        half = NORMAL * math.sqrt(math.fsum((each - mean) ** 2 for each in profits) * size / (size - 1))
        interval = Bounds(total - half, total + half)
    successes = sum(profit > 0.0 for profit in profits)
    return CaseGroup(len(cases), size, successes, total, interval, math.fsum(one.expected for one in cases))


def _share_interval(number: int, size: int) -> Bounds:
    """Return the 90% interval of a share by Wilson's score.

    >>> _share_interval(3, 10)
    Bounds(lower=0.12687..., upper=0.55830...)
    """
    rate, square = number / size, NORMAL**2
    middle = (rate + square / (2 * size)) / (1 + square / size)
    half = NORMAL / (1 + square / size) * math.sqrt(rate * (1 - rate) / size + square / (4 * size**2))
    return Bounds(max(middle - half, 0.0), min(middle + half, 1.0))


def _verdict(against: CaseGroup) -> RightVerdict:
    if against.outcomes < LEAST_OUTCOMES or against.interval is None:
        return "too_early"
    return "people" if against.interval.lower > 0 else "policy" if against.interval.upper < 0 else "unclear"


def _sentence(
    decided: int, disagreed: int, interval: Bounds | None, against: CaseGroup, verdict: RightVerdict, money: Money
) -> str:
    if not decided or interval is None:
        return "No referred case has been decided yet."
    unit = "" if money.known else " units of gain + loss"
    first = (
        f"People disagreed with the policy on {disagreed:,} of {counted(decided, 'case')} "
        f"({percent(disagreed / decided)}, between {percent(interval.lower)} and {percent(interval.upper)} in the long "
        "run)."
    )
    if not against.outcomes:
        return f"{first} No case that people accepted against the policy has a known outcome yet."
    earned = f"{'earned' if against.profit >= 0 else 'lost'} {money.format(abs(against.profit))}{unit}"
    second = (
        f" Of {counted(against.cases, 'case')} that people accepted against the policy, "
        f"{counted(against.outcomes, 'outcome is', 'outcomes are')} known: they {earned}"
    )
    if against.interval is not None:
        ends = f"{money.format(against.interval.lower)} and {money.format(against.interval.upper)}"
        second += f" (between {ends} in the long run)"
    end = {
        "people": ". People were right.",
        "policy": ". The policy was right.",
        "unclear": ". It is not clear yet who was right.",
        "too_early": f". Too early to say who was right: {LEAST_OUTCOMES} outcomes are needed.",
    }[verdict]
    return f"{first}{second}{end}"


def _unknown(missed: CaseGroup, agreed: CaseGroup, money: Money) -> str:
    """Say what cannot be known."""
    sentences = []
    if missed.cases:
        unit = "" if money.known else " units of gain + loss"
        sentences.append(
            f"People rejected {counted(missed.cases, 'case')} against the policy. Nobody knows what would have become "
            f"of them. The policy expected {money.format(missed.expected)}{unit} from them."
        )
    if agreed.cases:
        sentences.append(f"The same holds for the {counted(agreed.cases, 'case')} that both rejected.")
    return " ".join(sentences)
