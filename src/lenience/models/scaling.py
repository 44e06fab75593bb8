"""Centres and scales of features: standard deviations over rows that need no labels.

A column that did not vary in N rows has no standard deviation, but it says that another value is rare. If another value
had appeared once, in one more row, at a distance of 1 from the rest, it would have been √N standard deviations from the
mean (a share of f = 1/(N + 1) is √((1 − f)/f) away). So a change of 1 counts as √N: nothing is known about it, and the
belief there is about as wide as a prior can be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]


def centre_and_scale(X: NDArray[np.float64]) -> tuple[Row, Row]:
    """Return the mean and the scale of each column; missing values are left out.

    Examples
    --------
    >>> centre, scale = centre_and_scale(np.array([[1.0, 5.0, 0.0], [3.0, 5.0, np.nan]]))
    >>> centre, scale ** -2
    (array([2., 5., 0.]), array([1., 2., 1.]))
    """
    known = ~np.isnan(X)
    seen = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, X, 0.0)
    centre = filled.sum(axis=0) / seen
    deviation = np.where(known, filled - centre, 0.0)
    spread = np.sqrt((deviation**2).sum(axis=0) / seen)
    # Because of rounding, a constant column has a spread of about 1e-16.
    return centre, np.where(spread > 1e-9 * (1.0 + np.abs(centre)), spread, 1.0 / np.sqrt(seen))
