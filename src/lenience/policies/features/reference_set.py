"""The log-odds of the reference rows under a logistic regression, kept up to date.

Every decision compares x with the reference rows, so their design, mean and variance of the log-odds are stored. Both
an arrival and a label change them, by little work. An arrival replaces one row. A label at x moves the log-odds of a
row r under a hypothesis by the covariance rᵀu of r and x, with u = Σx before the label:

    m_r ← m_r + rᵀu (m′ − m)/v,        v_r ← v_r − (rᵀu)² (v − v′)/v²,

where N(m, v) and N(m′, v′) are the log-odds at x before and after. This is the change of the model itself
(:mod:`lenience.models.gaussian`), seen from r. It costs O(d) per row instead of O(d²).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.models.hypotheses import project_all, project_rows
from lenience.models.logistic_estimator import LogisticEstimator

Rows = NDArray[np.float64]


class ReferenceLogOdds:
    """The design and the moments of the log-odds of reference rows, one column of moments per hypothesis."""

    def __init__(self, model: LogisticEstimator, rows: Rows) -> None:
        self.design = model.design(rows)
        self.m, self.v = np.empty((2, len(rows), len(model.weights_)))
        project_rows(self.design, model.means_, model.covariances_, self.m, self.v)

    def replace(self, model: LogisticEstimator, at: int, row: Rows) -> None:
        """Put another row in the place of one."""
        self.design[at] = model.design(row[None])[0]
        one = slice(at, at + 1)
        project_rows(self.design[one], model.means_, model.covariances_, self.m[one], self.v[one])

    def follow(self, model: LogisticEstimator, label: LabelledRow) -> None:
        """Take in a label that the model has learnt; ``label`` is its row as it was before."""
        after = LabelledRow(model, label.row)
        _follow(self.design, label.m, label.v, label.U, after.m, after.v, self.m, self.v)


class LabelledRow:
    """A row of features, with m, v and u = Σx under every hypothesis."""

    def __init__(self, model: LogisticEstimator, row: Rows) -> None:
        self.row = row
        self.m, self.v = np.empty((2, len(model.weights_)))
        self.U = np.empty(model.means_.shape)
        project_all(model.design(row[None])[0], model.means_, model.covariances_, self.m, self.v, self.U)


@compiled
def _follow(R: Rows, m: Rows, v: Rows, U: Rows, m_after: Rows, v_after: Rows, row_m: Rows, row_v: Rows) -> None:
    for k in range(m.size):
        if v[k] <= 0.0:
            continue
        shift = (m_after[k] - m[k]) / v[k]
        shrink = (v[k] - v_after[k]) / (v[k] * v[k])
        for r in range(R.shape[0]):
            dot = 0.0
            for j in range(R.shape[1]):
                dot += R[r, j] * U[k, j]
            row_m[r, k] += dot * shift
            row_v[r, k] = max(row_v[r, k] - dot * dot * shrink, 0.0)
