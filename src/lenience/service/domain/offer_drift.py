"""Whether the offers that arrive are still those that a version was solved for.

The mean gain and the mean loss of the latest arrivals are compared with those of the version's offers. Compressing
offers (:meth:`lenience.Offers.compress`) keeps both means, so a version with a few offers that stand for all is
compared fairly. Each of the two tests is two-sided at half the level, with the arrivals' own standard deviation.

The distribution of the losses is compared with earlier arrivals by the population stability index, not with the
version's offers: a few offers that stand for all have the same means and another distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from lenience.core.money import Money
from lenience.core.offers import Offer, Offers
from lenience.service.domain.population_stability import (
    LEAST,
    StabilityIndex,
    counts_by_range,
    range_edges,
    stability_index,
)

LEAST_ARRIVALS = 100  # with fewer, nothing is said
RECENT = 1_000  # arrivals that are compared, the latest ones
LEVEL = 0.001  # the probability of a warning if the offers are still the same
LEAST_CHANGE = 0.05  # relative: smaller changes do not matter, however sure they are


def offer_drift(segment: str, offers: Offers, arrivals: Sequence[Offer]) -> str | None:
    """Return a warning if arriving offers have moved away from those of a version, otherwise None.

    Parameters
    ----------
    segment : str
        The name of the segment.
    offers : Offers
        The offers that the version was solved for. Menus are not compared, because the policy chooses from them.
    arrivals : sequence of Offer
        The offers of the latest arrivals.

    Returns
    -------
    str or None
        A sentence that names the means.

    Examples
    --------
    >>> expected = Offers(amount=[500, 1500], cost=[0.8, 0.8], currency="$")
    >>> offer_drift("young", expected, [Offer(500, 0.8), Offer(1500, 0.8)] * 60)
    >>> print(offer_drift("young", expected, [Offer(800, 0.8), Offer(3000, 0.8)] * 60))
    The offers that arrive in segment 'young' have changed: the average loss of a failure is $1,520 in the last 120
    arrivals, and this version was solved for $800. Create a version with the current offers.
    """
    if offers.menus or len(arrivals) < LEAST_ARRIVALS:
        return None
    known = [Offer(amount, cost) for amount, cost in zip(offers.amount, offers.cost, strict=True)]
    for what, of in (("average loss of a failure", _loss), ("average gain of a success", _gain)):
        expected = math.fsum(share * of(one) for share, one in zip(offers.share, known, strict=True))
        values = [of(one) for one in arrivals]
        mean = math.fsum(values) / len(values)
        if _differs(values, mean, expected):
            shown = [Money(1.0, offers.currency).format(value) for value in (mean, expected)]
            return (
                f"The offers that arrive in segment {segment!r} have changed: the {what} is {shown[0]} in the last "
                f"{len(values):,} arrivals, and this version was solved for {shown[1]}. Create a version with the "
                "current offers."
            )
    return None


def offer_stability(
    offers: Offers, before: Sequence[Offer], latest: Sequence[Offer], level: float
) -> tuple[list[str], list[float], list[float], StabilityIndex] | None:
    """Compare the losses of the latest offers with those of earlier ones, in ranges with about equal earlier shares.

    Parameters
    ----------
    offers : Offers
        The offers that the version was solved for, for their currency.
    before, latest : sequence of Offer
        Earlier and latest offers.
    level : float
        The probability with which chance alone exceeds the noise level.

    Returns
    -------
    tuple or None
        The names of the ranges, earlier and latest counts, and the index; None with fewer than 50 on either side.

    Examples
    --------
    >>> offers = Offers(amount=[500, 1500], cost=[0.8, 0.8], currency="$")
    >>> small, large = [Offer(500 + i, 0.8) for i in range(60)], [Offer(700 + i, 0.8) for i in range(60)]
    >>> names, old, new, found = offer_stability(offers, small, large, 0.001)
    >>> names[0], old, new, found.change
    ('losses below $416', [20.0, 20.0, 20.0], [0.0, 0.0, 60.0], 'much')
    """
    if min(len(before), len(latest)) < LEAST:
        return None
    old, new = [offer.loss for offer in before], [offer.loss for offer in latest]
    edges = range_edges(old, len(new))
    if not edges:
        return None
    shown = [Money(1.0, offers.currency).format(edge) for edge in edges]
    middle = [f"losses of {low} to {high}" for low, high in pairwise(shown)]
    names = [f"losses below {shown[0]}", *middle, f"losses of {shown[-1]} or more"]
    counts = [[float(count) for count in counts_by_range(edges, values)] for values in (old, new)]
    return names, counts[0], counts[1], stability_index(counts[0], counts[1], level)


def _differs(values: Sequence[float], mean: float, expected: float) -> bool:
    if abs(mean - expected) <= LEAST_CHANGE * expected:
        return False
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    if variance == 0.0:
        return True
    distance = abs(mean - expected) / math.sqrt(variance / len(values))
    return math.erfc(distance / math.sqrt(2.0)) < LEVEL / 2.0


def _loss(offer: Offer) -> float:
    return offer.loss


def _gain(offer: Offer) -> float:
    return offer.gain
