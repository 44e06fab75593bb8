"""advise_bands: find into how many bands a score can be divided so that every band still starts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from numpy.typing import ArrayLike

from lenience.core.belief import Belief
from lenience.core.formatting import percent
from lenience.models.binning import bin_by_quantiles
from lenience.objectives.discounted import Discounted
from lenience.segments.starting import starting_volume


class BandAdvice(msgspec.Struct, frozen=True):
    """What a division into bands of equal size would mean.

    Parameters
    ----------
    bands
        The number of bands.
    starting
        The number of bands that would start.
    share_starting
        The share of arrivals in these bands.
    smallest_volume
        The discounted number of members to come in the smallest band.
    needed
        The discounted number above which a band starts.

    Examples
    --------
    >>> BandAdvice(bands=5, starting=3, share_starting=0.6, smallest_volume=19.8, needed=32.1).advice
    '5 bands: only 3 start, 40% of arrivals are never given a chance'
    """

    bands: int
    starting: int
    share_starting: float
    smallest_volume: float
    needed: float

    @property
    def advice(self) -> str:
        """The advice in words."""
        if self.starting == self.bands:
            smallest = f"{self.smallest_volume:.3g} discounted applicants in the smallest, {self.needed:.3g} needed"
            return f"{self.bands} bands: all start ({smallest})"
        unseen = f"{percent(1 - self.share_starting, 0)} of arrivals are never given a chance"
        return f"{self.bands} bands: only {self.starting} start, {unseen}"


def advise_bands(
    scores: ArrayLike, objective: Discounted, prior: Belief, bands: Sequence[int] = (1, 2, 3, 5, 10, 20, 50)
) -> list[BandAdvice]:
    """Compare several numbers of quantile bands by how many bands would start without pooling.

    Parameters
    ----------
    scores : array_like
        The scores of past or expected arrivals.
    objective : Discounted
        The objective of the whole population.
    prior : Belief
        The prior of every band.
    bands : sequence of int
        The numbers of bands to compare.

    Returns
    -------
    list of BandAdvice
        One for each number of bands.

    Examples
    --------
    >>> for row in advise_bands(range(1000), Discounted(0.8, 0.998), Belief(2, 1), bands=[5, 20]):
    ...     print(row.advice)
    5 bands: all start (99.8 discounted applicants in the smallest, 32.1 needed)
    20 bands: only 0 start, 100% of arrivals are never given a chance
    """
    needed = starting_volume(prior, objective.cost).midpoint
    result = []
    for count in bands:
        shares = bin_by_quantiles(scores, count).shares(scores)
        volumes = shares * objective.volume
        begin = volumes > needed
        result.append(
            BandAdvice(len(shares), int(begin.sum()), float(shares[begin].sum()), float(volumes.min()), needed)
        )
    return result
