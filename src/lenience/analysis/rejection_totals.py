"""rejected_outcomes: how many of the rejected would have succeeded, and whether rejecting them was right, from a log.

:mod:`~lenience.analysis.rejected_segment` has the statistics of one segment. Here a log is divided into segments, and
their results are added up. Intervals of segments that learn apart are independent, so their squared widths add up. With
a model that all segments share, errors go together and widths add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from lenience.analysis.rejected_segment import CONFIDENCE, SHARES, assess_segment
from lenience.analysis.rejection_log import DecisionLog, checked_log, evidence_of
from lenience.analysis.rejection_results import PeopleSample, RejectedSegment, RejectedTotal, days_in_words, of_hundred
from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.formatting import counted, percent
from lenience.core.intervals import exact_interval
from lenience.core.mixture_belief import FLAT
from lenience.core.money import UNITS, Money
from lenience.core.validation import real
from lenience.files.outcome_words import OutcomeWords, Words

ALIKE = (
    "Applicants of a segment are assumed to be alike, apart from what they are offered. If accepted and rejected ones "
    "differ in ways that the log does not hold, only random acceptances can tell."
)


class RejectedOutcomes(msgspec.Struct, frozen=True):
    """How good the rejections of a log are, by segment and in total.

    ``print`` shows it in units of gain + loss, :meth:`describe` in money.

    Parameters
    ----------
    confidence : float
        The probability of each interval.
    segments : list of RejectedSegment
        The segments with rejected applicants, those with most money in them first.
    total : RejectedTotal or None
        All of them added up; None if nothing is known about any.
    by_people : PeopleSample or None
        Those whom people accepted against the policy.
    cautions : list of str
        What the estimates rest on, and what cannot be known.
    """

    confidence: float
    segments: list[RejectedSegment]
    total: RejectedTotal | None
    by_people: PeopleSample | None
    cautions: list[str]

    @property
    def statement(self) -> str:
        """The answer over all segments in words, in units of gain + loss."""
        return self.summary()

    def summary(self, money: Money = UNITS) -> str:
        """Return the answer over all segments in words.

        Parameters
        ----------
        money : Money, optional
            How to show amounts; by default in units of gain + loss.

        Returns
        -------
        str
            A few sentences.
        """
        if self.total is None:
            number = sum(one.rejected + one.not_covered for one in self.segments)
            if not number:
                return "Nobody was rejected for too low a success rate."
            people = counted(number, "rejected applicant")
            return f"Nothing is known about the {people}: no outcome of a comparable applicant is known."
        total, unit = self.total, "" if money.known else " units of gain + loss"
        text = (
            f"Of 100 rejected, {of_hundred(total.interval)} would have succeeded. The break-even is "
            f"{100 * total.break_even:.0f}. "
        )
        ends, people = total.profit_interval, counted(total.rejected, "applicant")
        if ends.upper < 0:
            text += f"Rejecting {people} saved {money.format_range(-ends.upper, -ends.lower)}{unit}."
        elif ends.lower > 0:
            text += f"Rejecting {people} cost {money.format_range(ends.lower, ends.upper)}{unit}."
        else:
            text += (
                f"It is not known whether rejecting {people} was right overall: accepting them would have earned "
                f"between {money.format(ends.lower)} and {money.format(ends.upper)}{unit}."
            )
        if total.unknown:
            text += f" Nothing is known about {counted(total.unknown, 'other')}."
        return text

    def describe(self, money: Money = UNITS) -> str:
        """Return the answer in words: in total, by segment, what it rests on, and the cost of learning it at random.

        Parameters
        ----------
        money : Money, optional
            How to show amounts; by default in units of gain + loss.

        Returns
        -------
        str
            Several lines.
        """
        lines = [self.summary(money)]
        if len(self.segments) > 1:
            lines += [f"  {one.describe(money)}" for one in self.segments]
        lines += self.cautions
        if self.total is not None:
            lines.append(compare_with_random(self, money))
        lines.append(f"Intervals hold with probability {percent(self.confidence)}.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.describe()


def rejected_outcomes(
    accepted: ArrayLike,
    outcomes: ArrayLike | Sequence[object],
    cost: float | None = None,
    *,
    propensity: ArrayLike | None = None,
    segments: Sequence[str] | None = None,
    offers: Any = None,
    alike: bool = False,
    prior: Belief | Mapping[str, Belief] = FLAT,
    expected: ArrayLike | None = None,
    evidence: ArrayLike | None = None,
    by_people: ArrayLike | None = None,
    at_a_limit: ArrayLike | None = None,
    days: float | None = None,
    confidence: float = CONFIDENCE,
    shares: Sequence[float] = SHARES,
    success: Words = None,
    failure: Words = None,
    pending: Words = None,
) -> RejectedOutcomes:
    """Estimate how many of the rejected would have succeeded, and whether rejecting them was right.

    Parameters
    ----------
    accepted : array_like
        Whether each individual was accepted.
    outcomes : array_like
        The outcome of each accepted individual: 0 or 1, or words such as "repaid" and "default". Missing (None or NaN)
        means not known yet. Values of the rejected are ignored.
    cost : float, optional
        The break-even success rate, if it is the same for all.
    propensity : array_like, optional
        The probability with which each individual was accepted. Those strictly between 0 and 1 were decided at random.
    segments : sequence of str, optional
        The segment of each individual.
    offers : optional
        Instead of the cost: the offer of each row, as a pair of columns (amounts at stake, break-evens) or a list of
        :class:`~lenience.Offer`. Amounts are then in money.
    alike : bool, optional
        Whether individuals of a segment are alike, apart from what they are offered. All outcomes of a segment then
        count. Otherwise only random acceptances do.
    prior : Belief or mapping, optional
        With ``alike``: the belief before all outcomes, of all segments or of each.
    expected, evidence : array_like, optional
        Of each individual, the success rate that a model expects, and how many outcomes it is worth. The estimate is
        then that of the model, and random acceptances check it.
    by_people : array_like, optional
        Whether a person decided. Such acceptances are reported apart.
    at_a_limit : array_like, optional
        Whether an individual was rejected only because a limit was reached. These are counted apart.
    days : float, optional
        The length of the log in days, to say how long random acceptance takes.
    confidence : float, optional
        The probability of each interval.
    shares : sequence of float, optional
        The fixed shares of random acceptance to compare with.
    success, failure, pending : str or sequence, optional
        Outcomes that mean success, failure, and "not known yet", in addition to the usual words.

    Returns
    -------
    RejectedOutcomes
        Estimates with intervals, a verdict for each segment, and what cannot be known.

    Raises
    ------
    InputError
        If an argument is invalid, or nothing says how the rejected relate to the accepted.

    Examples
    --------
    A lender rejects everyone with a low score, but accepts 5% of them at random:

    >>> rng = np.random.default_rng(1)
    >>> low = rng.random(8000) < 0.5
    >>> propensity = np.where(low, 0.05, 1.0)
    >>> accepted = rng.random(8000) < propensity
    >>> repaid = np.where(accepted, rng.random(8000) < np.where(low, 0.6, 0.9), np.nan)
    >>> result = rejected_outcomes(accepted, repaid, 0.75, propensity=propensity, days=365)
    >>> print(result)
    Of 100 rejected, 54 to 66 would have succeeded. The break-even is 75. Rejecting 3,741 applicants saved 351 to 795
    units of gain + loss.
    To learn the same by random acceptance takes 199 acceptances, expected to cost 30.3 units of gain + loss: 3 years at
    2%, 13 months at 5%. Learning has cost 30.2 units of gain + loss so far, over 199 known outcomes.
    Intervals hold with probability 90%.
    """
    words = OutcomeWords.of(success, failure, pending)
    log = checked_log(
        accepted, outcomes, cost, propensity, segments, offers, by_people, at_a_limit, expected, evidence, words
    )
    if log.propensity is None and not alike and log.expected is None:
        raise InputError.because(
            "must be given",
            "propensity",
            hint="Give the probability with which each individual was accepted. Or set alike=True, if accepted and "
            "rejected individuals of a segment differ only by chance.",
            code="missing",
        )
    level = real("confidence", confidence, above=0, below=1)
    fixed = tuple(real("shares", share, above=0, below=1) for share in shares)
    length = None if days is None else real("days", days, above=0)
    names = sorted(set(log.segments))
    index = np.array([names.index(name) for name in log.segments]) if len(names) > 1 else np.zeros(len(log.segments))
    assessed = [
        assess_segment(evidence_of(log, index == i, name, alike, _prior(prior, name), length), level, fixed)
        for i, name in enumerate(names)
    ]
    return summarise(assessed, level, _people(log, level), correlated=log.expected is not None, alike=alike)


def summarise(
    assessed: Sequence[RejectedSegment],
    confidence: float = CONFIDENCE,
    by_people: PeopleSample | None = None,
    *,
    correlated: bool = False,
    alike: bool = False,
) -> RejectedOutcomes:
    """Add up the results of segments.

    Parameters
    ----------
    assessed : sequence of RejectedSegment
        The segments.
    confidence : float, optional
        The probability of each interval.
    by_people : PeopleSample, optional
        Those whom people accepted against the policy.
    correlated : bool, optional
        Whether errors of the segments go together, as with one model for all.
    alike : bool, optional
        Whether the estimates assume that applicants of a segment are alike.

    Returns
    -------
    RejectedOutcomes
        The segments with rejected applicants, the total, and what the estimates rest on.
    """
    some = [one for one in assessed if one.rejected or one.not_covered or one.at_a_limit]
    some.sort(key=lambda one: (-abs(one.profit) if one.rejected else 0.0, one.segment))
    known = [one for one in some if one.rejected and one.verdict != "unknown"]
    total = _total(some, known, correlated) if known else None
    return RejectedOutcomes(confidence, some, total, by_people, _cautions(some, by_people, alike))


def compare_with_random(result: RejectedOutcomes, money: Money = UNITS) -> str:
    """Compare what learning has cost with the cost of learning the same by a fixed share of random acceptances.

    Parameters
    ----------
    result : RejectedOutcomes
        A result with a total.
    money : Money, optional
        How to show amounts; by default in units of gain + loss.

    Returns
    -------
    str
        Two sentences.
    """
    total, unit = result.total, "" if money.known else " units of gain + loss"
    if total is None:
        return ""
    text = ""
    plans = [one.random for one in result.segments if one.rejected and one.verdict != "unknown" and one.profit < 0]
    if plans:
        text = (
            f"To learn the same by random acceptance takes {counted(total.random_acceptances, 'acceptance')}, expected "
            f"to cost {money.format(total.random_cost)}{unit}"
        )
        times = [plan.days for plan in plans if plan.days is not None]
        if times:
            text += ": " + ", ".join(
                f"{days_in_words(max(days[i] for days in times))} at {percent(share)}"
                for i, share in enumerate(plans[0].shares)
            )
        text += ". "
    effect = "cost" if total.to_learn_profit <= 0 else "earned"
    return (
        f"{text}Learning has {effect} {money.format(abs(total.to_learn_profit))}{unit} so far, over "
        f"{counted(total.to_learn_outcomes, 'known outcome')}."
    )


def _total(some: list[RejectedSegment], known: list[RejectedSegment], correlated: bool) -> RejectedTotal:
    rejected = sum(one.rejected for one in known)
    rate = math.fsum(one.rate * one.rejected for one in known) / rejected
    add = math.fsum if correlated else (lambda parts: math.sqrt(math.fsum(part * part for part in parts)))
    low = add([(one.rate - one.interval.lower) * one.rejected / rejected for one in known])
    high = add([(one.interval.upper - one.rate) * one.rejected / rejected for one in known])
    profit = math.fsum(one.profit for one in known)
    worse = add([one.profit - one.profit_interval.lower for one in known])
    better = add([one.profit_interval.upper - one.profit for one in known])
    amount = math.fsum(one.amount for one in known)
    loss = math.fsum(one.break_even * one.amount for one in known if one.break_even is not None)
    return RejectedTotal(
        rejected=rejected,
        rate=rate,
        interval=Bounds(max(rate - low, 0.0), min(rate + high, 1.0)),
        break_even=loss / amount,
        profit=profit,
        profit_interval=Bounds(profit - worse, profit + better),
        unknown=sum(one.rejected for one in some if one.verdict == "unknown") + sum(one.not_covered for one in some),
        at_a_limit=sum(one.at_a_limit for one in some),
        to_learn=sum(one.to_learn for one in some),
        to_learn_outcomes=sum(one.to_learn_outcomes for one in some),
        to_learn_profit=math.fsum(one.to_learn_profit for one in some),
        random_acceptances=sum(one.random.acceptances for one in known if one.profit < 0),
        random_cost=math.fsum(one.random.cost for one in known if one.profit < 0),
    )


def _cautions(some: list[RejectedSegment], by_people: PeopleSample | None, alike: bool) -> list[str]:
    """Say what the estimates rest on, and what cannot be known."""
    cautions = []
    if alike and any(one.basis == "outcomes" for one in some):
        cautions.append(ALIKE)
    if any(one.basis == "model" for one in some):
        cautions.append(
            "The estimates are those of the model. Rejected applicants who are unlike all accepted ones are "
            "extrapolated, and only random acceptances could show it."
        )
    untried = sum(one.rejected for one in some if one.basis == "model" and one.outcomes == 0)
    if untried:
        verb = "is" if untried == 1 else "are"
        cautions.append(
            f"{counted(untried, 'rejected applicant')} {verb} in groups without a known outcome. There "
            "the model extrapolates."
        )
    uncovered = sum(one.not_covered for one in some)
    if uncovered:
        cautions.append(
            f"{counted(uncovered, 'rejected applicant')} had no chance of acceptance. Nothing is known about "
            f"{'this one' if uncovered == 1 else 'them'}. An exploration floor would change that."
        )
    pending = sum(one.pending for one in some)
    if pending:
        cautions.append(
            f"{counted(pending, 'outcome')} {'is' if pending == 1 else 'are'} pending and not counted. If failures "
            "arrive before successes, the rates are too low, and if they arrive later, too high."
        )
    limited = sum(one.at_a_limit for one in some)
    if limited:
        verb = "was" if limited == 1 else "were"
        cautions.append(
            f"{counted(limited, 'applicant')} {verb} turned away only because a limit was reached. These are not "
            "rejections for too low a success rate, and are not counted."
        )
    if by_people is not None and by_people.accepted:
        rate = "" if not by_people.outcomes else f" {by_people.successes:,} of {by_people.outcomes:,} succeeded."
        cautions.append(
            f"People accepted {counted(by_people.accepted, 'applicant')} against the policy.{rate} People chose them, "
            "so they do not stand for the rejected."
        )
    return cautions


def _prior(prior: Belief | Mapping[str, Belief], name: str) -> Belief:
    belief = prior.get(name) if isinstance(prior, Mapping) else prior
    if not isinstance(belief, Belief):
        raise InputError("prior", prior, f"a Belief, or a mapping with one for each segment, also for {name!r}")
    return belief


def _people(log: DecisionLog, confidence: float) -> PeopleSample | None:
    taken = log.by_people & log.accepted
    if not taken.any():
        return None
    known = log.outcomes[taken]
    known = known[~np.isnan(known)]
    good = int(known.sum())
    return PeopleSample(int(taken.sum()), len(known), good, exact_interval(good, len(known), confidence))
