"""What every model with features can do: from the labels seen, say what is believed of anyone.

A belief at features x is the pair (n, p̂) of a Beta distribution; the *likeness* of x and r is the share ρ² of what is
unknown at r that would be known if all were known at x: 1 where x and r stand or fall together (the same cell), 0 where
a label at one teaches nothing about the other. Both are what a policy needs to know of a model, and nothing else is.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError


@runtime_checkable
class FeatureModel(Protocol):
    """Labels in, beliefs and likeness out. ``prepare`` comes first, with rows of features that need no labels."""

    def prepare(self, X: ArrayLike) -> FeatureModel:
        """Forget all labels; take scales and columns from rows without labels."""

    def learn(self, X: ArrayLike, y: ArrayLike) -> FeatureModel:
        """Take labels, on top of those seen before."""

    def beliefs(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """n and p̂ at each row."""

    def likeness(self, X: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
        """ρ² between each row of X and each row of R."""


def checked_outcomes(y: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Outcomes as an array of 0.0 and 1.0, one a row."""
    given = np.asarray(y)
    if given.dtype == np.float64 and given.shape == (rows,) and bool(((given == 0.0) | (given == 1.0)).all()):
        return given
    try:
        outcomes = given.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("outcomes", given.ravel()[:1].tolist(), "0 or 1 (false or true)") from None
    if outcomes.ndim != 1 or outcomes.shape[0] != rows:
        raise InputError.because(
            f"must be one for each of the {rows} rows, not of shape {outcomes.shape}",
            "outcomes",
            value=outcomes.shape,
            code="length_mismatch",
        )
    wrong = (outcomes != 0.0) & (outcomes != 1.0)
    if wrong.any():
        raise InputError("outcomes", given[wrong][0], "0 or 1 (false or true)")
    return outcomes


def lost(cell: object) -> bool:
    """Whether a cell holds nothing: None, NaN, and pandas' NA, which is not even unlike itself."""
    return (
        cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell))
    )
