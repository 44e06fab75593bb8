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

import numpy as np
from numpy.typing import NDArray

from lenience.models.feature_columns import RowEncoding
from lenience.models.logistic_belief import LogisticBelief
from lenience.models.logistic_design import LogisticDesign
from lenience.policies.features.decision import MOST_REASONS

Rows = NDArray[np.float64]
LEAST_GAP = 1e-12  # a smaller difference of the selection index is none


def input_contributions(belief: LogisticBelief, z: Rows, R: Rows) -> Rows:
    """Return what each input column adds to the mean log-odds at a design row, compared with reference design rows."""
    design = belief.design
    mean = belief.weights @ belief.means
    sources = np.array(design.sources())
    effect = mean * (z - R.mean(axis=0))
    out = np.zeros(design.inputs)
    own = sources >= 0
    np.add.at(out, sources[own], effect[own])
    if isinstance(design, LogisticDesign) and design.selection is not None:
        out += _selected(design, mean, z, R, sources)
    return out


def _selected(design: LogisticDesign, mean: Rows, z: Rows, R: Rows, sources: NDArray[np.int64]) -> Rows:
    """Divide the effect of the selection index among the input columns."""
    out = np.zeros(design.inputs)
    if design.selection is None:
        return out
    end = design.width - design.selection.width
    steps = design.selection.weights * (z[design.first : end] - R[:, design.first : end])
    gaps = steps.sum(axis=1)
    moved = np.abs(gaps) > LEAST_GAP
    effects = (z[end:] - R[moved, end:]) @ mean[end:]
    shares = (steps[moved] * (effects / gaps[moved])[:, None]).sum(axis=0) / len(R)
    np.add.at(out, sources[design.first : end], shares)
    return out


def feature_contributions(belief: LogisticBelief, encoding: RowEncoding, row: Rows, reference: Rows) -> Rows:
    """Return what each declared feature adds to the mean log-odds of an encoded row, compared with encoded rows.

    The count of unseen categories belongs to the features whose category is unseen in the row.
    """
    return np.asarray(contributions_of_rows(belief, encoding, row[None], reference)[0])


def contributions_of_rows(belief: LogisticBelief, encoding: RowEncoding, rows: Rows, reference: Rows) -> Rows:
    """Return what :func:`feature_contributions` returns for many rows, one line each."""
    design = belief.design
    designed, R = design.rows(rows), design.rows(reference)
    return np.array(
        [
            _by_feature(encoding, row, input_contributions(belief, z, R))
            for row, z in zip(rows, designed, strict=True)
        ]
    )  # fmt: skip


def _by_feature(encoding: RowEncoding, row: Rows, of_inputs: Rows) -> Rows:
    """Add up the contributions of the input columns by feature."""
    out = np.zeros(len(encoding.columns))
    for value, source in zip(of_inputs, encoding.sources(), strict=True):
        if source >= 0:
            out[source] += value
            continue
        unseen = [
            i
            for i, block in enumerate(encoding.blocks)
            if block.column.type == "category" and (row[block.start : block.stop] == 0.0).all()
        ] or [i for i, column in enumerate(encoding.columns) if column.type == "category"]
        out[unseen] += value / len(unseen)
    return out


def lowering_features(
    belief: LogisticBelief, encoding: RowEncoding, row: Rows, reference: Rows, rates: Rows, cost: float
) -> list[int]:
    """Return the positions of the features that lower an encoded row most, at most four, the largest effect first.

    The row is compared with the reference rows whose expected success, ``rates``, is above the break-even: those are
    the people who are accepted. If there are none, it is compared with all.
    """
    accepted = reference[rates > cost]
    effects = feature_contributions(belief, encoding, row, accepted if len(accepted) else reference)
    worst = sorted(range(len(effects)), key=lambda i: float(effects[i]))[:MOST_REASONS]
    return [i for i in worst if effects[i] < 0.0]


def mean_log_odds(belief: LogisticBelief, rows: Rows) -> Rows:
    """Return the mean log-odds of encoded rows over all hypotheses."""
    return np.asarray(belief.design.rows(rows) @ (belief.weights @ belief.means))
