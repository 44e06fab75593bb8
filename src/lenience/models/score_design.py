"""The design of a calibrated score: intercept, the score in log-odds, what else shifts it, and tents along the score.

A score comes as a probability of failure (a probability of default), as a probability of success, or as points. Let L
be the log-odds of success that it states. Points state no probability, so they are standardised and turned in the
direction of success. The columns are

    1                the intercept
    L                the score
    other columns    segments (0 or 1) as they are, numbers standardised
    tents            piecewise linear functions of L, each 1 at its knot and 0 at the others: what a straight line in L
                     leaves over

Tents add up to 1. Below the first knot and above the last one the outer tents stay at 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import exactly_compiled
from lenience.core.portable_log import portable_log

FAILURE, SUCCESS, POINTS = 0, 1, 2
LEAST_PROBABILITY = 1e-6  # scores closer to 0 or 1 count as this far away

Rows = NDArray[np.float64]


class ScoreDesign(NamedTuple):
    """Where the score is, how it is meant, and the scales of the other columns.

    ``position`` is the column of the score and ``scale`` one of FAILURE, SUCCESS and POINTS. ``points_centre`` and
    ``points_scale`` standardise points; the scale is negative if more points are worse. ``centre`` and ``spread`` are
    the scales of the other columns, in order.
    """

    position: int
    scale: int
    points_centre: float
    points_scale: float
    centre: Rows
    spread: Rows
    limit: float
    knots: Rows

    @property
    def inputs(self) -> int:
        """The number of columns of the rows that the design takes."""
        return 1 + self.centre.size

    @property
    def width(self) -> int:
        """The number of columns of the design."""
        return 2 + self.centre.size + self.knots.size

    @property
    def first_tent(self) -> int:
        """The column of the first tent."""
        return 2 + self.centre.size

    def sources(self) -> list[int]:
        """Return the input column of each column; −1 for the intercept."""
        others = [j for j in range(self.inputs) if j != self.position]
        return [-1, self.position, *others, *[self.position] * self.knots.size]

    def rows(self, X: Rows) -> Rows:
        """Return the design of rows.

        >>> none = np.empty(0)
        >>> design = ScoreDesign(0, FAILURE, 0.0, 1.0, none, none, 6.0, np.array([0.0, 4.0]))
        >>> design.rows(np.array([[0.5], [1.0 / (1.0 + np.exp(2.0))]])).round(3)
        array([[ 1. , -0. ,  1. ,  0. ],
               [ 1. ,  2. ,  0.5,  0.5]])
        """
        out = np.zeros((len(X), self.width))
        _fill(X, *self, out)
        return out


@exactly_compiled
def stated_log_odds(score: float, scale: int, centre: float, points_scale: float) -> float:
    """Return the log-odds of success that a score states; points are standardised."""
    if scale == POINTS:
        return (score - centre) / points_scale
    p = min(max(score, LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY)
    odds = p / (1.0 - p)
    return portable_log(odds) if scale == SUCCESS else -portable_log(odds)


@exactly_compiled
def _fill(
    X: Rows,
    position: int,
    scale: int,
    points_centre: float,
    points_scale: float,
    centre: Rows,
    spread: Rows,
    limit: float,
    knots: Rows,
    out: Rows,
) -> None:
    first = 2 + centre.size
    for i in range(X.shape[0]):
        stated = stated_log_odds(X[i, position], scale, points_centre, points_scale)
        out[i, 0] = 1.0
        out[i, 1] = stated
        for j in range(centre.size):
            x = X[i, j if j < position else j + 1]
            z = (x - centre[j]) / spread[j]
            out[i, 2 + j] = 0.0 if np.isnan(z) else min(max(z, -limit), limit)
        last = knots.size - 1
        if stated <= knots[0]:
            out[i, first] = 1.0
        elif stated >= knots[last]:
            out[i, first + last] = 1.0
        else:
            k = 0
            while stated >= knots[k + 1]:
                k += 1
            share = (stated - knots[k]) / (knots[k + 1] - knots[k])
            out[i, first + k] = 1.0 - share
            out[i, first + k + 1] = share
