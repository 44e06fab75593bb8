"""Small populations with features, for the tests of policies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience import Discounted

Rows = NDArray[np.float64]
GOAL = Discounted(0.7, 0.99)


def world(rows: int = 300, seed: int = 0) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, (rng.random(rows) < 1 / (1 + np.exp(-0.5 - 2 * X[:, 0]))).astype(float)


def cells(shares: dict[int, int]) -> Rows:
    """One-hot rows: so many of each cell."""
    size = len(shares)
    return np.vstack([np.tile(np.eye(size)[cell], (count, 1)) for cell, count in shares.items()])
