"""What is known about the rejected applicants of one segment, and whether rejecting them was right.

An outcome of a rejected applicant is never seen. There are four sources, from the best to none:

random      Some applicants were accepted at random, with a known probability e. Each of them stands for (1 − e)/e of
            the rejected: E[A(1 − e)/e · y] = (1 − e)y is what the rejected of the same kind have on average. Without
            any other assumption, the weighted share of successes estimates that of the rejected with e > 0. Weights
            reduce the sample to (Σw)²/Σw² outcomes, whose exact interval is used (Korn and Graubard).
outcomes    The applicants of a segment are alike, apart from what they are offered. Those accepted and those rejected
            then have one success rate, and every outcome of the segment is evidence on it.
model       A model with features expects a rate for each rejected applicant. The ends of the interval are averages of
            the ends for each, as if all estimates were wrong in the same direction.
prior       No outcome of the segment is known. Only the prior speaks, and no data can contradict it.

Optional stopping. A policy stops accepting after bad luck, so a segment that it rejects has a share of successes that
is too low on average. One that stops after the first failure sees K successes with probability pᴷ(1 − p). The expected
share E[K/(K + 1)] is 1 + (1 − p)ln(1 − p)/p, only 31% if p is 50%. A posterior does not depend on why the data stopped,
so its interval is right if the prior is. The interval ``without_prior`` holds for every prior and stopping rule
(:func:`~lenience.core.intervals.anytime_interval`).

The verdict compares money. Accepting all the rejected would have earned Σ aᵢ(p − cᵢ) = pA − L, where A is what they
have at stake and L what they lose if all fail. Rejecting was right if that is below 0 over the whole interval.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from lenience.analysis.rejection_results import Basis, RandomAcceptance, RandomCheck, RejectedSegment, RejectionVerdict
from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.intervals import anytime_interval, exact_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

CONFIDENCE = 0.9
FEW_POINTS = 0.1  # half the width of an interval that is worth having, if nothing is known yet
SHARES = (0.02, 0.05)  # fixed shares of random acceptance to compare with


class RandomSample(NamedTuple):
    """Applicants who were accepted at random: the weight (1 − e)/e, amount at stake and outcome (NaN: pending)."""

    weights: Numbers
    amounts: Numbers
    outcomes: Numbers


class RejectionEvidence(NamedTuple):
    """Everything that bears on the rejected applicants of a segment.

    Parameters
    ----------
    segment : str
        The segment.
    rejected : int
        The rejected applicants that the estimate is about.
    amount : float
        What they have at stake in all; their number if amounts do not matter.
    loss : float
        What they lose in all if each one fails.
    belief : Belief or None
        What is believed of the success rate after all outcomes, if the applicants of the segment are alike.
    outcomes, successes, pending : int
        The accepted applicants of the segment: known outcomes, successes among them, and outcomes not known yet.
    earlier : float
        Real outcomes that the belief holds beside them: from before the log, or borrowed from other segments.
    sample : RandomSample or None
        Those accepted at random.
    expected, evidence : ndarray or None
        For each rejected applicant, the rate that a model expects and how many outcomes it is worth.
    amounts : ndarray or None
        What each of these has at stake.
    at_a_limit : int
        Applicants rejected only because a limit was reached.
    not_covered : int
        Rejected applicants that no source says anything about.
    to_learn, to_learn_outcomes : int
        Applicants accepted to learn, and how many of their outcomes are known.
    to_learn_profit : float
        What the known ones have earned.
    days : float or None
        The length of the log.
    """

    segment: str
    rejected: int
    amount: float
    loss: float
    belief: Belief | None = None
    outcomes: int = 0
    successes: int = 0
    pending: int = 0
    earlier: float = 0.0
    sample: RandomSample | None = None
    expected: Numbers | None = None
    evidence: Numbers | None = None
    amounts: Numbers | None = None
    at_a_limit: int = 0
    not_covered: int = 0
    to_learn: int = 0
    to_learn_outcomes: int = 0
    to_learn_profit: float = 0.0
    days: float | None = None


class _Estimate(NamedTuple):
    """A rate by number of applicants, the same by money at stake, and the outcomes that it is worth."""

    rate: float
    interval: Bounds
    by_amount: float
    interval_by_amount: Bounds
    outcomes: float


class _PendingBounds(NamedTuple):
    """An interval of the rate that pending outcomes cannot leave, by number of applicants and by money at stake."""

    by_number: Bounds
    by_amount: Bounds


def assess_segment(
    evidence: RejectionEvidence, confidence: float = CONFIDENCE, shares: tuple[float, ...] = SHARES
) -> RejectedSegment:
    """Estimate how many of the rejected applicants of a segment would have succeeded.

    Parameters
    ----------
    evidence : RejectionEvidence
        What is known.
    confidence : float, optional
        The probability of each interval.
    shares : tuple of float, optional
        The fixed shares of random acceptance to compare with.

    Returns
    -------
    RejectedSegment
        The estimate and the verdict.

    Examples
    --------
    >>> few = RejectionEvidence("thin file", 300, 300.0, 210.0, Belief(52, 26), 50, 25)
    >>> result = assess_segment(few)
    >>> print(result.describe())
    thin file: of 100 rejected, 39 to 61 would have succeeded. The break-even is 70. Rejecting 300 applicants was right:
    it saved 26.1 to 93.9 units of gain + loss.
    >>> result.random.acceptances, result.verdict
    (50, 'right')
    """
    basis = _basis(evidence)
    estimate = _estimate(evidence, basis, confidence)
    pending = _with_pending(evidence, basis, confidence, estimate)
    even = evidence.loss / evidence.amount if evidence.amount > 0 else None
    profit = estimate.by_amount * evidence.amount - evidence.loss
    ends = estimate.interval_by_amount
    interval = Bounds(ends.lower * evidence.amount - evidence.loss, ends.upper * evidence.amount - evidence.loss)
    known = estimate.outcomes > 0.0
    verdict = _verdict(known, interval)
    worst = pending.by_amount
    at_worst = Bounds(worst.lower * evidence.amount - evidence.loss, worst.upper * evidence.amount - evidence.loss)
    return RejectedSegment(
        segment=evidence.segment,
        rejected=evidence.rejected,
        amount=evidence.amount,
        basis=basis,
        outcomes=evidence.outcomes,
        successes=evidence.successes,
        pending=evidence.pending,
        rate=estimate.rate,
        interval=estimate.interval,
        without_prior=anytime_interval(evidence.successes, evidence.outcomes, confidence)
        if basis == "outcomes"
        else None,
        with_pending=pending.by_number,
        would_have_succeeded=_count(estimate.rate, estimate.interval, evidence.rejected, confidence),
        break_even=even,
        profit=profit,
        profit_interval=interval,
        verdict=verdict,
        pending_matters=verdict in ("right", "wrong") and _verdict(known, at_worst) != verdict,
        at_a_limit=evidence.at_a_limit,
        not_covered=evidence.not_covered,
        check=_check(evidence, basis, confidence, estimate.interval),
        to_learn=evidence.to_learn,
        to_learn_outcomes=evidence.to_learn_outcomes,
        to_learn_profit=evidence.to_learn_profit,
        random=_random(evidence, estimate, profit, interval, confidence, shares),
    )


def _basis(evidence: RejectionEvidence) -> Basis:
    if evidence.expected is not None:
        return "model"
    if evidence.belief is not None:
        return "outcomes" if evidence.outcomes + evidence.earlier > 0 else "prior"
    return "random"


def _estimate(evidence: RejectionEvidence, basis: Basis, confidence: float) -> _Estimate:
    """Return the rate of the rejected with its interval, by number and by amount."""
    if basis == "random":
        return _weighted(evidence.sample, confidence)
    if basis == "model":
        return _modelled(evidence, confidence)
    assert evidence.belief is not None
    interval = evidence.belief.interval(confidence)
    rate = evidence.belief.mean
    return _Estimate(rate, interval, rate, interval, evidence.outcomes + evidence.earlier)


def _weighted(sample: RandomSample | None, confidence: float, pending: float | None = None) -> _Estimate:
    """Return the weighted share of successes. Pending ones count as ``pending``, or not at all if it is None."""
    import numpy as np

    if sample is None:
        return _Estimate(0.5, Bounds(0.0, 1.0), 0.5, Bounds(0.0, 1.0), 0.0)
    outcomes = sample.outcomes if pending is None else np.nan_to_num(sample.outcomes, nan=pending)
    known = ~np.isnan(outcomes)
    y, w, a = outcomes[known], sample.weights[known], sample.amounts[known]
    rate, interval, size = _ratio(w, y, confidence)
    by_amount, interval_by_amount, _ = _ratio(w * a, y, confidence)
    return _Estimate(rate, interval, by_amount, interval_by_amount, size)


def _ratio(weights: Numbers, outcomes: Numbers, confidence: float) -> tuple[float, Bounds, float]:
    total = float(weights.sum())
    if total <= 0:
        return 0.5, Bounds(0.0, 1.0), 0.0
    rate = float((weights * outcomes).sum()) / total
    size = total**2 / float((weights**2).sum())
    return rate, exact_interval(rate * size, size, confidence), size


def _modelled(evidence: RejectionEvidence, confidence: float) -> _Estimate:
    """Average the estimates of a model. Their errors go together, so their ends are averaged too."""
    import numpy as np
    from scipy.special import betaincinv

    assert evidence.expected is not None
    assert evidence.evidence is not None
    mean = np.clip(evidence.expected, 1e-9, 1.0 - 1e-9)
    n, tail = np.maximum(evidence.evidence, 1e-6), (1.0 - confidence) / 2.0
    low, high = betaincinv(mean * n, (1.0 - mean) * n, tail), betaincinv(mean * n, (1.0 - mean) * n, 1.0 - tail)
    amounts = np.ones(len(mean)) if evidence.amounts is None else evidence.amounts
    by_number, by_amount = np.full(len(mean), 1.0 / len(mean)), amounts / amounts.sum()
    rate, interval = float(by_number @ mean), Bounds(float(by_number @ low), float(by_number @ high))
    half = max(interval.width / 2.0, 1e-9)
    size = _normal(confidence) ** 2 * rate * (1.0 - rate) / half**2 if evidence.outcomes + evidence.earlier > 0 else 0.0
    return _Estimate(
        rate, interval, float(by_amount @ mean), Bounds(float(by_amount @ low), float(by_amount @ high)), size
    )


def _with_pending(evidence: RejectionEvidence, basis: Basis, confidence: float, estimate: _Estimate) -> _PendingBounds:
    """Return intervals with the lower end if all pending outcomes fail, and the upper one if all succeed."""
    if basis == "random":
        low, high = (_weighted(evidence.sample, confidence, outcome) for outcome in (0.0, 1.0))
        return _PendingBounds(
            Bounds(low.interval.lower, high.interval.upper),
            Bounds(low.interval_by_amount.lower, high.interval_by_amount.upper),
        )
    if basis == "model" or evidence.belief is None or not evidence.pending:
        return _PendingBounds(estimate.interval, estimate.interval_by_amount)
    n, s = evidence.belief.n + evidence.pending, evidence.belief.s
    ends = Bounds(Belief(n, s).interval(confidence).lower, Belief(n, s + evidence.pending).interval(confidence).upper)
    return _PendingBounds(ends, ends)


def _count(rate: float, interval: Bounds, rejected: int, confidence: float) -> Bounds:
    """Return how many of the rejected would have succeeded: the rate is uncertain, and so is chance."""
    if rejected == 0:
        return Bounds(0.0, 0.0)
    z = _normal(confidence)

    def end(edge: float) -> float:
        distance = math.hypot(edge - rate, z * math.sqrt(edge * (1.0 - edge) / rejected))
        return min(max(rate + math.copysign(distance, edge - rate), 0.0), 1.0) * rejected

    return Bounds(math.floor(end(interval.lower) + 1e-9), math.ceil(end(interval.upper) - 1e-9))


def _verdict(known: bool, profit: Bounds) -> RejectionVerdict:
    if not known:
        return "unknown"
    return "right" if profit.upper < 0 else "wrong" if profit.lower > 0 else "open"


def _check(evidence: RejectionEvidence, basis: Basis, confidence: float, interval: Bounds) -> RandomCheck | None:
    """Return what random acceptances alone say, if the estimate uses more than them."""
    sample = evidence.sample
    if basis == "random" or sample is None or not len(sample.weights):
        return None
    alone = _weighted(sample, confidence)
    known = sum(1 for outcome in sample.outcomes if outcome == outcome)
    agrees = alone.interval.lower <= interval.upper and interval.lower <= alone.interval.upper
    return RandomCheck(len(sample.weights), known, alone.rate, alone.interval, agrees)


def _random(
    evidence: RejectionEvidence,
    estimate: _Estimate,
    profit: float,
    interval: Bounds,
    confidence: float,
    shares: tuple[float, ...],
) -> RandomAcceptance:
    """Return what it takes to learn the same, or to within 10 points if nothing is known, at random."""
    size = estimate.outcomes
    if size < 1.0:
        size = _normal(confidence) ** 2 * max(estimate.rate * (1.0 - estimate.rate), 0.05) / FEW_POINTS**2
    number, each = math.ceil(size - 1e-9), 1.0 / max(evidence.rejected, 1)
    days = yearly = None
    if evidence.days is not None and evidence.days > 0 and evidence.rejected:
        a_day = evidence.rejected / evidence.days
        days = [number / (share * a_day) for share in shares]
        yearly = [-share * profit * 365.25 / evidence.days for share in shares]
    return RandomAcceptance(
        acceptances=number,
        cost=-number * each * profit,
        cost_interval=Bounds(-number * each * interval.upper, -number * each * interval.lower),
        shares=list(shares),
        days=days,
        yearly=yearly,
    )


def _normal(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * confidence))
