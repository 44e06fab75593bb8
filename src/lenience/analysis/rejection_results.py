"""The results about rejected applicants: their fields, and the same in words."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.formatting import counted
from lenience.core.money import UNITS, Money

Basis: TypeAlias = Literal["random", "outcomes", "model", "prior"]
RejectionVerdict: TypeAlias = Literal["right", "wrong", "open", "unknown"]


class RandomCheck(msgspec.Struct, frozen=True):
    """What the random acceptances alone say.

    Parameters
    ----------
    accepted : int
        Applicants accepted at random.
    outcomes : int
        How many of their outcomes are known.
    rate : float
        The weighted share of successes.
    interval : Bounds
        Its interval.
    agrees : bool
        Whether the interval overlaps with that of the estimate.
    """

    accepted: int
    outcomes: int
    rate: float
    interval: Bounds
    agrees: bool


class RandomAcceptance(msgspec.Struct, frozen=True):
    """What it takes to learn the same by accepting a fixed share of the rejected at random.

    Parameters
    ----------
    acceptances : int
        Random acceptances with as much evidence.
    cost : float
        What they are expected to cost; negative if they earn.
    cost_interval : Bounds
        The interval of the cost.
    shares : list of float
        The fixed shares.
    days : list of float or None
        For each share, the days until there are as many; None if the length of the log is not known.
    yearly : list of float or None
        For each share, what it goes on to cost in a year if nobody stops it.
    """

    acceptances: int
    cost: float
    cost_interval: Bounds
    shares: list[float]
    days: list[float] | None
    yearly: list[float] | None


class RejectedSegment(msgspec.Struct, frozen=True):
    """How many rejected applicants of a segment would have succeeded, and whether rejecting them was right.

    Parameters
    ----------
    segment : str
        The segment.
    rejected : int
        The rejected applicants that the estimate is about.
    amount : float
        What they have at stake in all; their number if amounts do not matter.
    basis : {"random", "outcomes", "model", "prior"}
        The source: random acceptances, the outcomes of accepted applicants who are alike, a model, or the prior only.
    outcomes, successes, pending : int
        The accepted applicants of the segment: known outcomes, successes among them, and outcomes not known yet.
    rate : float
        The estimated success rate of the rejected.
    interval : Bounds
        The interval of the rate.
    without_prior : Bounds or None
        The interval from outcomes alone, whatever the prior and whenever the policy stopped.
    with_pending : Bounds
        The interval if all pending outcomes fail (lower end) or succeed (upper end).
    would_have_succeeded : Bounds
        How many of the rejected would have succeeded.
    break_even : float or None
        The success rate at which accepting them would have earned nothing; None if nobody was rejected.
    profit : float
        What accepting all of them is estimated to have earned; negative if rejecting saved money.
    profit_interval : Bounds
        The interval of the profit.
    verdict : {"right", "wrong", "open", "unknown"}
        Whether rejecting was right; open if the interval holds both, unknown without an outcome.
    pending_matters : bool
        Whether pending outcomes could still change the verdict.
    at_a_limit : int
        Applicants rejected only because a limit was reached. They are not in the estimate.
    not_covered : int
        Rejected applicants that no source says anything about. They are not in the estimate.
    check : RandomCheck or None
        What random acceptances alone say, if the estimate uses more than them.
    to_learn, to_learn_outcomes : int
        Applicants accepted to learn, and how many of their outcomes are known.
    to_learn_profit : float
        What the known ones have earned: negative if learning has cost money.
    random : RandomAcceptance
        What it takes to learn the same at random.
    """

    segment: str
    rejected: int
    amount: float
    basis: Basis
    outcomes: int
    successes: int
    pending: int
    rate: float
    interval: Bounds
    without_prior: Bounds | None
    with_pending: Bounds
    would_have_succeeded: Bounds
    break_even: float | None
    profit: float
    profit_interval: Bounds
    verdict: RejectionVerdict
    pending_matters: bool
    at_a_limit: int
    not_covered: int
    check: RandomCheck | None
    to_learn: int
    to_learn_outcomes: int
    to_learn_profit: float
    random: RandomAcceptance

    def describe(self, money: Money = UNITS) -> str:
        """Return the answer in words.

        Parameters
        ----------
        money : Money, optional
            How to show amounts; by default in units of gain + loss.

        Returns
        -------
        str
            Two or three sentences.
        """
        if self.break_even is None:
            return f"{self.segment}: nobody was rejected for too low a success rate."
        hundred, people = of_hundred(self.interval), counted(self.rejected, "applicant")
        if self.verdict == "unknown":
            return _describe_unknown(self, hundred, people)
        even = f"{100 * self.break_even:.0f}"
        source = "by the model, " if self.basis == "model" else ""
        return (
            f"{self.segment}: {source}of 100 rejected, {hundred} would have succeeded. The break-even is {even}. "
            f"{_describe_verdict(self, people, money)}{_describe_doubts(self)}"
        )


class PeopleSample(msgspec.Struct, frozen=True):
    """Applicants whom people accepted against the policy. They were selected, so they say nothing about the others.

    Parameters
    ----------
    accepted : int
        Their number.
    outcomes : int
        How many of their outcomes are known.
    successes : int
        Successes among them.
    interval : Bounds
        The exact interval of their success rate.
    """

    accepted: int
    outcomes: int
    successes: int
    interval: Bounds


class RejectedTotal(msgspec.Struct, frozen=True):
    """All segments about whose rejected applicants something is known, added up.

    Parameters
    ----------
    rejected : int
        The rejected applicants in them.
    rate : float
        Their estimated success rate.
    interval : Bounds
        The interval of the rate.
    break_even : float
        The success rate at which accepting them would have earned nothing, weighted by what is at stake.
    profit : float
        What accepting all of them is estimated to have earned; negative if rejecting saved money.
    profit_interval : Bounds
        The interval of the profit.
    unknown : int
        Rejected applicants about whom nothing is known. They are in no other number.
    at_a_limit : int
        Applicants rejected only because a limit was reached. They are in no other number.
    to_learn, to_learn_outcomes : int
        Applicants accepted to learn, and how many of their outcomes are known.
    to_learn_profit : float
        What the known ones have earned.
    random_acceptances : int
        Random acceptances that give as much evidence, where the rejected are expected to lose money.
    random_cost : float
        What these are expected to cost.
    """

    rejected: int
    rate: float
    interval: Bounds
    break_even: float
    profit: float
    profit_interval: Bounds
    unknown: int
    at_a_limit: int
    to_learn: int
    to_learn_outcomes: int
    to_learn_profit: float
    random_acceptances: int
    random_cost: float


def of_hundred(interval: Bounds) -> str:
    """Return an interval of a rate as numbers of 100 applicants.

    >>> of_hundred(Bounds(0.386, 0.614)), of_hundred(Bounds(0.601, 0.604))
    ('39 to 61', '60.1 to 60.4')
    """
    low, high = (f"{100 * end:.0f}" for end in (interval.lower, interval.upper))
    if low == high:
        low, high = (f"{100 * end:.1f}" for end in (interval.lower, interval.upper))
    return low if low == high else f"{low} to {high}"


def _describe_unknown(result: RejectedSegment, hundred: str, people: str) -> str:
    were = "was" if result.rejected == 1 else "were"
    if result.basis == "random":
        return (
            f"Nothing is known about {result.segment}: {people} {were} rejected, and no random acceptance "
            "has a known outcome."
        )
    return (
        f"Nothing is known about {result.segment}: {people} {were} rejected, and no accepted applicant "
        f"has a known outcome. The policy started from the assumption that {hundred} of 100 succeed."
    )


def _describe_verdict(result: RejectedSegment, people: str, money: Money) -> str:
    unit, ends = "" if money.known else " units of gain + loss", result.profit_interval
    if result.verdict == "open":
        return (
            f"It is not known whether rejecting {people} was right: accepting them would have earned between "
            f"{money.format(ends.lower)} and {money.format(ends.upper)}{unit}."
        )
    effect = "saved" if result.verdict == "right" else "cost"
    amounts = money.format_range(*sorted((abs(ends.lower), abs(ends.upper))))
    return f"Rejecting {people} was {result.verdict}: it {effect} {amounts}{unit}."


def _describe_doubts(result: RejectedSegment) -> str:
    """Say what could still change the verdict."""
    text = ""
    if result.pending_matters:
        text += f" {counted(result.pending, 'pending outcome')} could still change this."
    if result.check is not None and not result.check.agrees:
        text += (
            f" Random acceptances alone say {of_hundred(result.check.interval)} of 100: accepted and rejected "
            "applicants may differ."
        )
    return text


def days_in_words(days: float) -> str:
    """Format a number of days in a unit that is easy to read.

    >>> days_in_words(3.2), days_in_words(45), days_in_words(400), days_in_words(9000), days_in_words(1e6)
    ('4 days', '6 weeks', '13 months', '25 years', 'over 100 years')
    """
    if days > 36_525:
        return "over 100 years"
    for size, unit, least in ((365.25, "years", 730.0), (30.44, "months", 61.0), (7.0, "weeks", 21.0)):
        if days >= least:
            return f"{days / size:.0f} {unit}"
    whole = math.ceil(days)
    return f"{whole} {'day' if whole == 1 else 'days'}"
