"""Priors from past outcomes: n₀ is the number of past outcomes and s₀ the number of successes, cell by cell.

This is the paper's own suggestion. Within a cell, past acceptances are a fair sample if accepted and rejected
applicants differ only by what the cell records. Between cells they are not: the past accepted the best cells, so the
pooled success rate says nothing about the cells it rejected. Pooling a selected history at full weight is the
selective-labels trap: every cell looks like the best ones, with the certainty of thousands of labels, and later labels
cannot correct it. This model warns if ``pooled`` is set.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import percent
from lenience.core.validation import floats, real
from lenience.models.own_counts import UNIFORM
from lenience.models.protocol import checked_counts

MODEST = 20.0  # new labels can still overrule a pooled history that is worth at most this many labels


class SelectiveLabelsWarning(UserWarning):
    """A selected history is about to stand for the whole population."""


class FromHistory:
    """Use past outcomes as the prior: each cell's own, or (with a warning) pooled over all cells.

    Parameters
    ----------
    labels : array_like
        Number of past outcomes of each cell.
    successes : array_like
        Number of past successes of each cell.
    base : Belief, default Belief(2, 1)
        The belief before any past outcome.
    weight : float, default 1
        How much a past outcome counts compared with a new one, from 0 to 1.
    pooled : bool, default False
        Give every cell the outcomes of all cells. Warns if they are worth more than 20 labels.
    arrivals : array_like, optional
        Number of past applicants of each cell, accepted or not. The warning then says how selected the history is.

    Raises
    ------
    InputError
        If the counts are not one number per cell, or ``arrivals`` is below ``labels``.

    Warns
    -----
    SelectiveLabelsWarning
        If a large history is pooled.

    Examples
    --------
    >>> FromHistory(labels=[100, 0], successes=[90, 0]).priors([0, 0], [0, 0])
    (array([102.,   2.]), array([91.,  1.]))
    >>> FromHistory([100, 0], [90, 0], weight=0.1).priors([0, 0], [0, 0])[0]
    array([12.,  2.])
    """

    def __init__(
        self,
        labels: ArrayLike,
        successes: ArrayLike,
        base: Belief = UNIFORM,
        weight: float = 1.0,
        pooled: bool = False,
        arrivals: ArrayLike | None = None,
    ) -> None:
        cells = int(np.size(np.asarray(labels)))
        self.labels, self.successes = checked_counts(cells, labels, successes)
        self.base = base
        self.weight = real("weight", weight, least=0, most=1)
        self.pooled = pooled
        seen = None if arrivals is None else floats("arrivals", arrivals)
        if seen is not None and (seen.shape != self.labels.shape or np.any(seen < self.labels)):
            raise InputError("arrivals", allowed="a number for each cell, at least as large as its number of labels")
        if pooled and self.weight * self.labels.sum() > MODEST:
            self._warn(seen)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.labels.size

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the base prior plus the past outcomes.

        Parameters
        ----------
        labels : array_like
            Number of new labels of each cell. They do not change this prior.
        successes : array_like
            Number of new successes of each cell. They do not change this prior.

        Returns
        -------
        n : ndarray
            Prior size n₀ of each cell.
        s : ndarray
            Prior successes s₀ of each cell.

        Examples
        --------
        >>> FromHistory(labels=[100, 0], successes=[80, 0]).priors([0, 0], [0, 0])
        (array([102.,   2.]), array([81.,  1.]))
        """
        n, s = self.labels, self.successes
        if self.pooled:
            n, s = np.full_like(n, n.sum()), np.full_like(s, s.sum())
        return self.base.n + self.weight * n, self.base.s + self.weight * s

    def _warn(self, arrivals: NDArray[np.float64] | None) -> None:
        empty = int(np.sum(self.labels == 0))
        total = self.labels.sum()
        accepted = ""
        if arrivals is not None and arrivals.sum():
            accepted = f" ({percent(total / arrivals.sum(), 0)} of arrivals)"
        warnings.warn(
            f"{total:,.0f} past outcomes{accepted} are pooled over {self.cells} cells, {empty} of which have none: the "
            "past chose whom to accept, so its success rate is not that of the cells it rejected; use each cell's own "
            f"outcomes, a Curve or Shared model, or a weight of at most {MODEST / total:.2g}",
            SelectiveLabelsWarning,
            stacklevel=3,
        )

    def __repr__(self) -> str:
        kind = "pooled" if self.pooled else "by cell"
        return f"FromHistory({self.cells} cells, {self.labels.sum():,.0f} labels {kind}, weight={self.weight:g})"
