"""Read a log of decisions: check its columns, and collect what bears on the rejected applicants of each segment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.analysis.off_policy import stakes_of_rows
from lenience.analysis.rejected_segment import RandomSample, RejectionEvidence
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.validation import floats
from lenience.files.outcome_words import OutcomeWords, known_or_pending

EVERYONE = "all"  # the segment of a log without segments


class DecisionLog(NamedTuple):
    """A checked log: arrays with one entry for each individual."""

    accepted: NDArray[np.bool_]
    outcomes: NDArray[np.float64]  # NaN if pending, and of the rejected
    propensity: NDArray[np.float64] | None
    segments: list[str]
    amount: NDArray[np.float64]
    cost: NDArray[np.float64]
    by_people: NDArray[np.bool_]
    at_a_limit: NDArray[np.bool_]
    expected: NDArray[np.float64] | None
    evidence: NDArray[np.float64] | None


def checked_log(
    accepted: ArrayLike,
    outcomes: ArrayLike | Sequence[object],
    cost: float | None,
    propensity: ArrayLike | None,
    segments: Sequence[str] | None,
    offers: Any,
    by_people: ArrayLike | None,
    at_a_limit: ArrayLike | None,
    expected: ArrayLike | None,
    evidence: ArrayLike | None,
    words: OutcomeWords,
) -> DecisionLog:
    """Return the log as arrays of one length, or raise InputError."""
    taken = floats("accepted", accepted).ravel()
    size = len(taken)
    if size == 0:
        raise InputError.because("must have at least one row", "accepted", code="insufficient_data")

    def column(name: str, values: ArrayLike, least: float, most: float) -> NDArray[np.float64]:
        array = floats(name, values).ravel()
        if len(array) != size:
            raise InputError.because(f"must have {size:,} entries, not {len(array):,}", name, code="length_mismatch")
        wrong = np.flatnonzero(~((array >= least) & (array <= most)))
        if wrong.size:
            allowed = f"numbers from {least:g} to {most:g}" if math.isfinite(most) else f"numbers of at least {least:g}"
            raise InputError(name, float(array[wrong[0]]), allowed, place=f"row {int(wrong[0]) + 1:,}")
        return array

    def flags(name: str, values: ArrayLike | None) -> NDArray[np.bool_]:
        array = np.zeros(size) if values is None else column(name, values, 0.0, 1.0)
        wrong = np.flatnonzero((array != 0) & (array != 1))
        if wrong.size:
            raise InputError(name, float(array[wrong[0]]), "0 or 1", place=f"row {int(wrong[0]) + 1:,}")
        return np.asarray(array == 1)

    chosen = flags("accepted", taken)
    labels = np.array(outcomes, dtype=object).ravel()
    if len(labels) != size:
        raise InputError.because(f"must have {size:,} entries, not {len(labels):,}", "outcomes", code="length_mismatch")
    known = np.full(size, np.nan)
    known[chosen] = known_or_pending(labels[chosen], int(chosen.sum()), words)
    named = [EVERYONE] * size if segments is None else [str(name) for name in segments]
    if len(named) != size:
        raise InputError.because(f"must have {size:,} entries, not {len(named):,}", "segments", code="length_mismatch")
    if (expected is None) != (evidence is None):
        missing = "evidence" if evidence is None else "expected"
        given = "expected" if evidence is None else "evidence"
        raise InputError.because(f"must be given with {given}", missing, code="missing")
    amount, even = stakes_of_rows(cost, offers, size)
    chances = None if propensity is None else column("propensity", propensity, 0.0, 1.0)
    if chances is not None:
        impossible = np.flatnonzero(chosen & (chances == 0) & ~flags("by_people", by_people))
        if impossible.size:
            raise InputError(
                "propensity",
                0.0,
                "above 0 for everyone who was accepted, unless by_people says that a person did it",
                place=f"row {int(impossible[0]) + 1:,}",
            )
    return DecisionLog(
        chosen,
        known,
        chances,
        named,
        amount,
        even,
        flags("by_people", by_people),
        flags("at_a_limit", at_a_limit),
        None if expected is None else column("expected", expected, 0.0, 1.0),
        None if evidence is None else column("evidence", evidence, 0.0, math.inf),
    )


def evidence_of(
    log: DecisionLog, own: NDArray[np.bool_], name: str, alike: bool, prior: Belief, days: float | None
) -> RejectionEvidence:
    """Return what bears on the rejected of one segment."""
    own = own & ~log.by_people
    rejected = own & ~log.accepted & ~log.at_a_limit
    taken = own & log.accepted
    sample, not_covered = None, 0
    if log.propensity is not None:
        e = log.propensity
        drawn = taken & (e < 1.0)
        if drawn.any():
            sample = RandomSample((1.0 - e[drawn]) / e[drawn], log.amount[drawn], log.outcomes[drawn])
        if not alike and log.expected is None:
            taken, covered = drawn, rejected & (e > 0.0)
            if covered.any():  # otherwise nothing is known about any of them
                not_covered, rejected = int((rejected & ~covered).sum()), covered
    learnt = sample is not None
    drawn = taken & (log.propensity < 1.0) if learnt and log.propensity is not None else np.zeros_like(taken)
    y = log.outcomes[taken]
    good, bad = int((y == 1).sum()), int((y == 0).sum())
    known = drawn & ~np.isnan(log.outcomes)
    profit = log.amount[known] * (log.outcomes[known] - log.cost[known])
    return RejectionEvidence(
        segment=name,
        rejected=int(rejected.sum()),
        amount=float(log.amount[rejected].sum()),
        loss=float((log.amount[rejected] * log.cost[rejected]).sum()),
        belief=Belief(prior.n + good + bad, prior.s + good) if alike and log.expected is None else None,
        outcomes=good + bad,
        successes=good,
        pending=int(np.isnan(y).sum()),
        sample=sample,
        expected=None if log.expected is None or not rejected.any() else log.expected[rejected],
        evidence=None if log.evidence is None or not rejected.any() else log.evidence[rejected],
        amounts=None if log.expected is None else log.amount[rejected],
        at_a_limit=int((own & ~log.accepted & log.at_a_limit).sum()),
        not_covered=not_covered,
        to_learn=int(drawn.sum()),
        to_learn_outcomes=int(known.sum()),
        to_learn_profit=float(profit.sum()),
        days=days,
    )
