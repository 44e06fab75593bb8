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

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import exactly_compiled
from lenience.models.hypotheses import project_rows
from lenience.models.logistic_belief import LabelChange, LogisticBelief

Rows = NDArray[np.float64]


class ReferenceLogOdds:
    """The design and the moments of the log-odds of reference rows, one column of moments per hypothesis."""

    def __init__(self, belief: LogisticBelief, rows: Rows) -> None:
        self.design = belief.design.rows(rows)
        self.m, self.v = np.empty((2, len(rows), len(belief.weights)))
        project_rows(self.design, belief.means, belief.covariances, self.m, self.v)

    def replace(self, belief: LogisticBelief, at: int, row: Rows) -> None:
        """Put another row in the place of one."""
        self.design[at] = belief.design.rows(row[None])[0]
        one = slice(at, at + 1)
        project_rows(self.design[one], belief.means, belief.covariances, self.m[one], self.v[one])

    def follow(self, change: LabelChange) -> None:
        """Take in a label that the model has learnt."""
        _follow(np.ascontiguousarray(self.design.T), change.U, change.shift, change.shrink, self.m, self.v)


@exactly_compiled
def _follow(columns: Rows, U: Rows, shift: Rows, shrink: Rows, row_m: Rows, row_v: Rows) -> None:
    """Move m and v of the rows, whose design is given by column: the rows are then one vector in the inner loop."""
    size, rows = columns.shape
    dot = np.empty(rows)
    for k in range(shift.size):
        for r in range(rows):
            dot[r] = 0.0
        for j in range(size):
            u = U[k, j]
            if u != 0.0:
                column = columns[j]
                for r in range(rows):
                    dot[r] += column[r] * u
        for r in range(rows):
            row_m[r, k] += dot[r] * shift[k]
            row_v[r, k] = max(row_v[r, k] - dot[r] * dot[r] * shrink[k], 0.0)
