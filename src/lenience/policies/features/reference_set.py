"""The log-odds of the reference rows under a logistic regression, kept up to date.

Every decision compares x with the reference rows, so their design, mean and variance of the log-odds are stored. Both
an arrival and a label change them, by little work. An arrival replaces one row. A label at x moves the log-odds of a
row r under a hypothesis by the covariance rᵀu of r and x, with u = Σx before the label:

    m_r ← m_r + rᵀu · shift,        v_r ← v_r − (rᵀu)² · shrink,

with shift = (m′ − m)/v and shrink = (v − v′)/v², where N(m, v) and N(m′, v′) are the log-odds at x before and after.
This is the change of the model itself (:mod:`lenience.models.gaussian`), seen from r. It costs O(d) per row instead of
O(d²).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lenience.models.hypotheses import follow_label, project_rows
from lenience.models.logistic_belief import LabelChange, LogisticBelief

Rows = NDArray[np.float64]


class ReferenceLogOdds:
    """The design and the moments of the log-odds of reference rows, one column of moments per hypothesis."""

    def __init__(self, belief: LogisticBelief, rows: Rows) -> None:
        self.design = belief.design.rows(rows)
        self.m, self.v = np.empty((2, len(rows), len(belief.weights)))
        project_rows(self.design, belief.means, belief.covariances, self.m, self.v)
        self._transposed: tuple[Rows, Rows] | None = None  # a design and its columns

    @property
    def columns(self) -> Rows:
        """The design by column: the rows are then one vector in the inner loops."""
        if self._transposed is None or self._transposed[0] is not self.design:
            self._transposed = self.design, np.ascontiguousarray(self.design.T)
        return self._transposed[1]

    def replace(self, belief: LogisticBelief, at: Sequence[int], rows: Rows) -> None:
        """Put other rows in the place of some."""
        design = belief.design.rows(rows)
        m, v = np.empty((2, len(rows), len(belief.weights)))
        project_rows(design, belief.means, belief.covariances, m, v)
        self.columns[:, at] = design.T
        self.design[at], self.m[at], self.v[at] = design, m, v

    def follow(self, change: LabelChange) -> None:
        """Take in a label that the model has learnt."""
        follow_label(self.columns, change.U, change.shift, change.shrink, self.m, self.v)
