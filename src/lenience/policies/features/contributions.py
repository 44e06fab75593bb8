"""How much each feature adds to the log-odds of success, compared with the people of the reference rows.

The mean log-odds are linear in the design: μᵀz, with μ the mean of the coefficients over all hypotheses. A column of
the design therefore contributes μ_j (z_j − r_j) compared with a row r, and these add up to the difference exactly.
Columns belong to the feature they come from: the rank, its square and the column for zeros to their feature, the
columns of categories to theirs.

The columns of the selection index depend on all features, through one linear index s = Σ w_j z_j. Their part of the
difference is divided in proportion to w_j (z_j − r_j). This is the Aumann–Shapley value, the only division that does
not depend on the order in which features change. The result is the mean over the reference rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.models.feature_columns import RowEncoding
from lenience.models.logistic_belief import LogisticBelief
from lenience.models.logistic_design import LogisticDesign
from lenience.models.selection import Selection
from lenience.policies.features.decision import MOST_REASONS

Rows = NDArray[np.float64]
LEAST_GAP = 1e-12  # a smaller difference of the selection index is none


class Comparison:
    """Compare applicants with reference rows, at what is known now. What all comparisons need is computed once.

    Parameters
    ----------
    belief
        The belief about the coefficients.
    encoding
        The encoding of the rows.
    reference
        The encoded rows of those to compare with.
    """

    def __init__(self, belief: LogisticBelief, encoding: RowEncoding, reference: Rows) -> None:
        self.encoding = encoding
        self._design = belief.design
        self._mean = belief.weights @ belief.means
        self._others = self._design.rows(reference)
        self._centre = self._others.mean(axis=0)
        sources = np.array(self._design.sources())
        self._own = np.flatnonzero(sources >= 0)
        self._sources = sources
        self._own_sources = sources[self._own]
        self._features = encoding.sources()

    def of_inputs(self, z: Rows) -> Rows:
        """Return what each input column adds to the mean log-odds at a design row."""
        effect = self._mean * (z - self._centre)
        out = _sums(self._own_sources, effect[self._own], self._design.inputs)
        if isinstance(self._design, LogisticDesign) and self._design.selection is not None:
            out += self._selected(self._design, self._design.selection, z)
        return out

    def _selected(self, design: LogisticDesign, selection: Selection, z: Rows) -> Rows:
        """Divide the effect of the selection index among the input columns."""
        end = design.width - selection.width
        steps = selection.weights * (z[design.first : end] - self._others[:, design.first : end])
        gaps = steps.sum(axis=1)
        moved = np.abs(gaps) > LEAST_GAP
        effects = (z[end:] - self._others[moved, end:]) @ self._mean[end:]
        shares = (steps[moved] * (effects / gaps[moved])[:, None]).sum(axis=0) / len(self._others)
        return _sums(self._sources[design.first : end], shares, design.inputs)

    def contributions(self, row: Rows) -> Rows:
        """Return what each declared feature adds to the mean log-odds of an encoded row.

        The count of unseen categories belongs to the features whose category is unseen in the row.
        """
        return np.asarray(self.of_rows(row[None])[0])

    def of_rows(self, rows: Rows) -> Rows:
        """Return the same for many encoded rows, one line each."""
        designed = self._design.rows(rows)
        return np.array([self._by_feature(row, self.of_inputs(z)) for row, z in zip(rows, designed, strict=True)])

    def _by_feature(self, row: Rows, of_inputs: Rows) -> Rows:
        """Add up the contributions of the input columns by feature."""
        encoding = self.encoding
        if not encoding.counts_unseen:
            return _sums(self._features, of_inputs, len(encoding.columns))
        out = _sums(self._features[:-1], of_inputs[:-1], len(encoding.columns))
        unseen = [
            i
            for i, block in enumerate(encoding.blocks)
            if block.column.type == "category" and (row[block.start : block.stop] == 0.0).all()
        ] or [i for i, column in enumerate(encoding.columns) if column.type == "category"]
        out[unseen] += of_inputs[-1] / len(unseen)
        return out

    def lowering(self, row: Rows) -> list[int]:
        """Return the positions of the features that lower an encoded row most, at most four, the worst first."""
        effects = self.contributions(row)
        worst = np.argsort(effects, kind="stable")[:MOST_REASONS]
        return [int(i) for i in worst if effects[i] < 0.0]

    @classmethod
    def with_accepted(
        cls, belief: LogisticBelief, encoding: RowEncoding, reference: Rows, rates: Rows, cost: float
    ) -> Comparison:
        """Compare with the reference rows whose expected success, ``rates``, is above the break-even.

        Those are the people who are accepted. If there are none, compare with all.
        """
        accepted = reference[rates > cost]
        return cls(belief, encoding, accepted if len(accepted) else reference)


def _sums(positions: Any, values: Rows, size: int) -> Rows:
    """Return the sums of the values that have the same position."""
    return np.asarray(np.bincount(positions, values, size), dtype=np.float64)


def mean_log_odds(belief: LogisticBelief, rows: Rows) -> Rows:
    """Return the mean log-odds of encoded rows over all hypotheses."""
    return np.asarray(belief.design.rows(rows) @ (belief.weights @ belief.means))
