"""Cut a continuous score into bands, so that each band is a segment.

How many bands? A band learns only from its own members, unless a model shares evidence between bands
(:mod:`lenience.models.curve`). With finer bands, each band has a smaller share and a stronger discount. With a flat
prior, a small band may never start. So without sharing, use few bands.
:func:`lenience.segments.band_advice.advise_bands` computes how many bands of a score would start, before anything is
decided. With a curve the bands can be finer, because a band's own labels matter only where the curve is wrong.

Bands are cut at given edges or at quantiles (equal shares). Edges may come from another tool, such as optbinning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import edge_name
from lenience.core.validation import floats, listed, whole


class Binning(msgspec.Struct, frozen=True):
    """Bands of a score: band i holds edges[i − 1] ≤ score < edges[i].

    The first band has no lower end and the last no upper end.

    Parameters
    ----------
    edges : tuple of float
        Where the score is cut, in rising order.

    Raises
    ------
    InputError
        If the edges are not finite or do not rise.

    Examples
    --------
    >>> bands = Binning((20.0, 50.0))
    >>> bands.assign([5, 20, 49.9, 50, 99])
    array([0, 1, 1, 2, 2])
    >>> bands.names
    ['below 20', '20 to 50', '50 and above']
    >>> Binning((500_000, 1_000_000)).names
    ['below 500000', '500000 to 1000000', '1000000 and above']
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = tuple(floats("edges", listed("edges", self.edges, "a list of numbers")).tolist())
        if not np.all(np.isfinite(edges)) or any(b <= a for a, b in pairwise(edges)):
            raise InputError("edges", self.edges, "finite numbers in rising order")
        msgspec.structs.force_setattr(self, "edges", edges)

    @property
    def bands(self) -> int:
        """The number of bands."""
        return len(self.edges) + 1

    @property
    def names(self) -> list[str]:
        """The names of the bands, e.g. "20 to 50"."""
        if not self.edges:
            return ["all"]
        edges = [edge_name(edge) for edge in self.edges]
        inner = [f"{a} to {b}" for a, b in pairwise(edges)]
        return [f"below {edges[0]}", *inner, f"{edges[-1]} and above"]

    def assign(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Return the band of each score.

        Parameters
        ----------
        scores : array_like
            The scores.

        Returns
        -------
        array of int
            The band of each score, from 0.

        Raises
        ------
        InputError
            If a score is missing.

        Examples
        --------
        >>> Binning((20.0, 50.0)).assign([5, 20, 99])
        array([0, 1, 2])
        """
        values = np.asarray(scores, dtype=np.float64)
        if np.any(np.isnan(values)):
            raise InputError.because(
                "must be numbers; some are missing",
                "scores",
                allowed="numbers",
                hint="Give those without a score a segment of their own.",
            )
        return np.searchsorted(np.asarray(self.edges), values, side="right").astype(np.int64)

    def shares(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the share of the scores in each band.

        Parameters
        ----------
        scores : array_like
            The scores.

        Returns
        -------
        array of float
            The share of each band.

        Examples
        --------
        >>> Binning((20.0, 50.0)).shares([5, 20, 30, 99])
        array([0.25, 0.5 , 0.25])
        """
        counts = np.bincount(self.assign(scores), minlength=self.bands)
        result: NDArray[np.float64] = counts / counts.sum()
        return result

    def counts(self, scores: ArrayLike, outcomes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Count labels and successes in each band.

        Parameters
        ----------
        scores : array_like
            The score of each label.
        outcomes : array_like
            The outcome of each label: 1 for success, 0 for failure.

        Returns
        -------
        tuple of arrays
            The labels and the successes of each band.

        Examples
        --------
        >>> Binning((20.0,)).counts([5, 10, 30], [1, 0, 1])
        (array([2., 1.]), array([1., 1.]))
        """
        band, good = self.assign(scores), np.asarray(outcomes, dtype=np.float64)
        labels, successes = np.bincount(band, minlength=self.bands), np.bincount(band, good, minlength=self.bands)
        return labels.astype(np.float64), successes.astype(np.float64)


def bin_by_quantiles(scores: ArrayLike, bands: int) -> Binning:
    """Cut scores into bands of equal shares, as far as ties allow.

    Parameters
    ----------
    scores : array_like
        The scores.
    bands : int
        The number of bands. Ties can make it smaller.

    Returns
    -------
    Binning
        The bands.

    Examples
    --------
    >>> bin_by_quantiles(range(100), 4).edges
    (24.75, 49.5, 74.25)
    """
    count = whole("bands", bands, least=1)
    values = np.asarray(scores, dtype=np.float64)
    edges = np.unique(np.quantile(values, np.arange(1, count) / count))
    return Binning(tuple(edge for edge in edges.tolist() if values.min() < edge <= values.max()))


def round_edges(edges: Sequence[float], values: ArrayLike) -> list[float]:
    """Round edges to a hundredth of the range of most values, to whole numbers if all values are whole.

    >>> round_edges((612.4, 655.75, 655.8), [540, 600, 780]), round_edges((0.12345, 0.2), [0.05, 0.45])
    ([612.0, 656.0], [0.123, 0.2])
    """
    numbers = np.asarray(values, dtype=np.float64)
    low, high = np.quantile(numbers, [0.05, 0.95])
    digits = -math.floor(math.log10((high - low) / 100)) if high > low else 0
    if np.all(np.mod(numbers, 1) == 0):
        digits = min(digits, 0)
    return sorted({round(edge, digits) for edge in edges})


def monotone(binning: Binning, labels: ArrayLike, successes: ArrayLike, rising: bool = True) -> Binning:
    """Merge neighbouring bands until success rates rise (or fall) with the score.

    Parameters
    ----------
    binning : Binning
        The bands.
    labels : array_like
        The number of labels in each band.
    successes : array_like
        The number of successes in each band.
    rising : bool, default True
        Whether success rates should rise with the score; otherwise they should fall.

    Returns
    -------
    Binning
        The same bands or fewer.

    Raises
    ------
    InputError
        If there is not one number for each band.

    Examples
    --------
    >>> monotone(Binning((10.0, 20.0, 30.0)), labels=[50, 50, 50, 50], successes=[10, 30, 25, 40]).edges
    (10.0, 30.0)
    """
    n = np.asarray(labels, dtype=np.float64).tolist()
    s = np.asarray(successes, dtype=np.float64).tolist()
    if len(n) != binning.bands or len(s) != binning.bands:
        raise InputError.because(
            f"must have a number for each of the {binning.bands} bands", ("labels", "successes"), code="length_mismatch"
        )
    sign = 1.0 if rising else -1.0
    blocks: list[tuple[float, float, int]] = []  # labels, successes, last band
    for band in range(binning.bands):
        block = (n[band], s[band], band)
        while (
            blocks
            and block[0] > 0
            and blocks[-1][0] > 0
            and sign * (block[1] / block[0]) < sign * (blocks[-1][1] / blocks[-1][0])
        ):
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1], band)
        blocks.append(block)
    return Binning(tuple(binning.edges[last] for _, _, last in blocks[:-1]))
