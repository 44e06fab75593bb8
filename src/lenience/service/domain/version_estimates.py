"""What a version, active or in shadow, expected of an applicant and would have decided, from a decision's event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from lenience.core.offers import Offer
from lenience.service.domain.events import Decided, Shadow
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.rule import FLOOR, FULL, LEARNING, Counts, SegmentRule
from lenience.service.domain.statements import stated_counts

TO_LEARN = (LEARNING, FLOOR)  # the rules of acceptances that are not above the break-even


class VersionEstimate(NamedTuple):
    """The expected success rate, how many outcomes it is worth, and the decision."""

    mean: float
    n: float
    accepts: bool
    to_learn: bool  # accepted although not above the break-even
    offer: Offer | None
    limited: bool = False  # rejected, or waiting, only because a limit is reached
    segment: str | None = None  # under this version, if it is not that of the version that decided


def estimate_under(
    number: int, rules: Mapping[str, SegmentRule], segment: str, event: Decided
) -> VersionEstimate | None:
    """Return what a version expected of an applicant, or None if it neither decided it nor ran in shadow.

    Parameters
    ----------
    number : int
        The version.
    rules : mapping
        The version's rule in each segment.
    segment : str
        The segment of the applicant, under the version that decided.
    event : Decided
        The decision.
    """
    stated = event if event.version == number else next((one for one in event.shadows if one.version == number), None)
    if stated is None:
        return None
    accepts = stated.decision == "accept"
    to_learn = accepts and stated.rule in TO_LEARN
    limited = not accepts and stated.rule in FULL
    if stated.applicant is not None:
        return VersionEstimate(stated.applicant.mean, stated.applicant.n, accepts, to_learn, stated.offer, limited)
    if isinstance(stated, Shadow) and stated.segment is not None and stated.counts is not None:
        counts = Counts(*stated.counts, borrowed=stated.borrowed)
        mean, n = _believed(rules[stated.segment], counts)
        return VersionEstimate(mean, n, accepts, to_learn, stated.offer, limited, stated.segment)
    if segment not in rules:
        return None
    counts = stated_counts(event)
    if stated is not event:  # open loans are counted under the version that decided
        counts = replace(
            counts,
            borrowed=stated.borrowed,
            open=0,
            open_outcomes=0.0,
            open_successes=0.0,
            forgotten_outcomes=0.0,
            forgotten_successes=0.0,
        )
    mean, n = _believed(rules[segment], counts)
    return VersionEstimate(mean, n, accepts, to_learn, stated.offer, limited)


def _believed(rule: SegmentRule, counts: Counts) -> tuple[float, float]:
    """Return the expected success rate of a segment, and how many outcomes it is worth."""
    table = rule.table_after(counts)
    belief = table.belief(counts.good, counts.bad)
    mean = table.rate(counts.good, counts.bad) if isinstance(table, OfferTable) else belief.mean
    return mean, belief.n
