"""The population stability index, with what chance alone explains and an interval.

The index is Σ (a − r) log(a/r) over the parts of a population, with the shares a of the latest applicants and r of the
earlier ones. For large samples it is the chi-square distance Σ (a − r)²/r, so that its law is known:

- If nothing has changed, the index of samples of m and n is (1/m + 1/n) χ² with one degree of freedom less than there
  are parts. What chance alone exceeds with a small probability is the noise level. If the earlier shares are known
  exactly, 1/n is 0.
- If the true index is D, the same statistic is noncentral χ² with the noncentrality D / (1/m + 1/n). Inverting its
  distribution function gives the interval of D.

Half a case for each part is added to the counts, because a logarithm must be finite. The usual limits 0.1 and 0.25 say
how much change matters, and not whether there is any: a change is reported if the index is above both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from lenience.core.bounds import Bounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Counts = NDArray[np.float64]

LEAST = 50  # applicants on either side; with fewer, nothing is compared
LEVEL = 0.001  # the probability of any alarm if nothing has changed
CONFIDENCE = 0.95  # of an interval
SOME, MUCH = 0.1, 0.25  # usual limits of the index
RARE = 5  # parts with fewer cases of both samples together are counted as one
MOST_RANGES = 10
FOR_A_RANGE = 20  # earlier applicants in a range of a number
Change: TypeAlias = Literal["none", "some", "much"]


class StabilityIndex(msgspec.Struct, frozen=True):
    """The index, the noise level, the interval of the true index, and whether the change matters."""

    index: float
    noise: float
    interval: Bounds
    change: Change


def stability_index(old: ArrayLike, new: ArrayLike, level: float = LEVEL, *, exact: bool = False) -> StabilityIndex:
    """Compute the population stability index of two counts by part.

    Parameters
    ----------
    old : array_like
        The earlier counts, or with ``exact`` the earlier shares.
    new : array_like
        The latest counts.
    level : float, default 0.001
        The probability with which chance alone exceeds the noise level.
    exact : bool, default False
        Whether ``old`` are shares that are known exactly.

    Returns
    -------
    StabilityIndex
        The index, its noise level, its 95% interval, and the change.

    Examples
    --------
    >>> found = stability_index([50, 50], [20, 80])
    >>> round(found.index, 2), round(found.noise, 2), found.change
    (0.41, 0.22, 'much')
    >>> print(f"{found.interval.lower:.2f} to {found.interval.upper:.2f}")
    0.13 to 0.84
    """
    import numpy as np
    from scipy.special import chdtri

    before, after = np.asarray(old, dtype=np.float64), np.asarray(new, dtype=np.float64)
    size = float(after.sum())
    expected = size * before / before.sum() if exact else before
    before, after = _without_rare(before, after, expected + after < RARE)
    parts = len(before)
    if parts < 2 or size == 0.0:
        return StabilityIndex(0.0, 0.0, Bounds(0.0, 0.0), "none")
    if exact:
        r = before / before.sum()
        a = (after + 0.5 * parts * r) / (size + 0.5 * parts)
        scale = 1.0 / size
    else:
        r = (before + 0.5) / (before.sum() + 0.5 * parts)
        a = (after + 0.5) / (size + 0.5 * parts)
        scale = 1.0 / float(before.sum()) + 1.0 / size
    index = math.fsum((a - r) * np.log(a / r))
    noise = float(chdtri(parts - 1, level)) * scale
    change: Change = "none"
    if index > max(noise, SOME):
        change = "much" if index > max(noise, MUCH) else "some"
    return StabilityIndex(index, noise, _interval(index / scale, parts - 1, scale), change)


def _without_rare(before: Counts, after: Counts, rare: NDArray[np.bool_]) -> tuple[Counts, Counts]:
    """Count rare parts as one, and leave out parts without a case."""
    import numpy as np

    if rare.any():
        before = np.append(before[~rare], before[rare].sum())
        after = np.append(after[~rare], after[rare].sum())
    some = (before > 0) | (after > 0)
    return before[some], after[some]


def _interval(statistic: float, freedom: int, scale: float) -> Bounds:
    """Return the interval of the true index: noncentralities at which the statistic is not in a tail."""
    from scipy.special import chdtr, chndtrinc

    tail = (1.0 - CONFIDENCE) / 2.0
    ends = [
        0.0 if chdtr(freedom, statistic) <= below else scale * float(chndtrinc(statistic, freedom, below))
        for below in (1.0 - tail, tail)
    ]
    return Bounds(*ends)


def range_edges(before: Sequence[float], latest: int) -> list[float]:
    """Return the inner edges of ranges that hold about equal shares of earlier numbers.

    >>> range_edges(list(range(100)), 100)
    [20.0, 40.0, 60.0, 80.0]
    """
    import numpy as np

    ranges = max(min(MOST_RANGES, len(before) // FOR_A_RANGE, latest // FOR_A_RANGE), 2)
    edges = np.quantile(np.asarray(before), np.arange(1, ranges) / ranges, method="higher")
    return [float(edge) for edge in np.unique(edges) if edge > min(before)]


def counts_by_range(edges: Sequence[float], values: Sequence[float]) -> list[int]:
    """Count numbers by range: below the first edge, from one edge to the next, and from the last one on.

    >>> counts_by_range([20.0, 40.0], [1, 20, 39, 40, 41])
    [1, 2, 2]
    """
    import numpy as np

    places = np.searchsorted(np.asarray(edges), np.asarray(values, dtype=np.float64), side="right")
    return [int(count) for count in np.bincount(places, minlength=len(edges) + 1)]
