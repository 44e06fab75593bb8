"""The design of a logistic regression: from a row of numbers to the row that its coefficients see.

The columns are the intercept, the features, the columns that let effects bend (:mod:`lenience.models.rank_columns`) and
those for the choices of the past (:mod:`lenience.models.selection`). Features and bends are standardised with scales
that were taken once, from rows that need no labels. A missing value is at the mean, 0. Each row is computed alone and
in strict arithmetic, so a row has the same bits in a batch, alone and on every machine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.models.gaussian import design_rows
from lenience.models.rank_columns import RankColumns
from lenience.models.selection import Selection

Rows = NDArray[np.float64]


class LogisticDesign(NamedTuple):
    """Scales and columns that never change after the model was prepared.

    ``limit`` is the largest absolute value of a standardised feature, infinite if features are not standardised.
    ``bend_centre`` and ``bend_scale`` belong to the columns of ``ranks``.
    """

    centre: Rows
    scale: Rows
    limit: float = math.inf
    intercept: bool = True
    ranks: RankColumns | None = None
    bend_centre: Rows = np.empty(0)
    bend_scale: Rows = np.empty(0)
    selection: Selection | None = None

    @property
    def inputs(self) -> int:
        """The number of columns of the rows that the design takes."""
        return int(self.centre.size)

    @property
    def first(self) -> int:
        """The column of the first feature: 1 with an intercept, otherwise 0."""
        return 1 if self.intercept else 0

    @property
    def bends(self) -> int:
        """The number of columns that let effects bend."""
        return 0 if self.ranks is None else self.ranks.width

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.first + self.centre.size + self.bends + (0 if self.selection is None else self.selection.width)

    def sources(self) -> list[int]:
        """Return the input column of each column: −1 for the intercept, −2 for those that depend on all inputs."""
        bends = [] if self.ranks is None else [int(source) for source in self.ranks.source]
        chosen = 0 if self.selection is None else self.selection.width
        return [-1] * self.first + list(range(self.inputs)) + bends + [-2] * chosen

    def rows(self, X: Rows) -> Rows:
        """Return the design of rows of features.

        >>> design = LogisticDesign(np.array([1.0]), np.array([2.0]))
        >>> design.rows(np.array([[5.0], [np.nan]]))
        array([[1., 2.],
               [1., 0.]])
        """
        out = np.empty((len(X), self.width))
        self._standardise(X, self.first, out)
        if self.selection is not None:
            end = self.first + X.shape[1] + self.bends
            self.selection.fill(out[:, self.first : end], out[:, end:])
        return out

    def standardised(self, X: Rows) -> Rows:
        """Return features and bends, standardised, without the other columns."""
        out = np.empty((len(X), X.shape[1] + self.bends))
        self._standardise(X, 0, out)
        return out

    def _standardise(self, X: Rows, first: int, out: Rows) -> None:
        design_rows(X, self.centre, self.scale, self.limit, first, out)
        if self.ranks is not None:
            features = first + X.shape[1]
            design_rows(self.ranks.of(X), self.bend_centre, self.bend_scale, self.limit, 0, out[:, features:])
