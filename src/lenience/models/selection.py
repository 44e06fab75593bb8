"""What the choices of the past say: a history has labels only where an earlier rule accepted.

A model that extrapolates from the accepted to the rejected is confidently wrong. Two things mislead it. The accepted
are alike, so their features seem to matter little, and the model shrinks the very effects by which the earlier rule
told people apart. And nothing among the accepted can show a bend beyond them. So the earlier choices enter the model
themselves, as columns with a prior of their own:

    s(x)      the *selection index*: log-odds of having a label, by a logistic regression on all rows of the history
    t(x)      its rank among these rows as a normal score, times the strength g of the selection
    d_k(x)    K = 4 ramps that rise from 0 to g, one after the other, as x goes from the edge of the labelled rows to
              the row that is least likely to have a label

    logit p(x) = … + a t(x) + Σ_k b_k d_k(x),    a ~ N(1, 1),    b_k ~ N(−0.5/K, 1/K)

The first says that an earlier rule knew something: who was rejected is probably worse. The ramps are a random walk
that begins where the labels end: the further from them, the less is known. g is how well the features tell labelled
from unlabelled rows: the Gini coefficient of predictions for rows that were left out of the fit, after two standard
errors, so that it is 0 if labels are a random sample. Then there are no columns, and the model is the same as without.

The constants come from experience. Eighteen data sets were cut at the median of a scorecard fitted to other rows, and
the claimed standard errors were compared with the true rates of the rejected (``python -m research selected-history``).
Labels of once rejected people correct the columns like any others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import exactly_compiled

LEAST_ROWS = 20  # with a label, and without
MOST_ROWS = 5_000  # of either kind, to which the index is fitted
FOLDS = 5
PENALTY = 0.1  # scikit-learn's C of the index
POINTS = 401  # at which the rank is stored
EDGE = 0.05  # the share of the labelled rows that are beyond the edge
RAMPS = 4
SLOPE, SLOPE_VARIANCE = 1.0, 1.0
DRIFT, RAMP_VARIANCE = -0.5, 1.0  # over all ramps


class Selection(NamedTuple):
    """The selection index: its weights of the standardised columns, and t and depth along it.

    ``depth`` is 0 above the edge of the labelled rows and 1 at the row that is least likely to have a label.
    """

    weights: NDArray[np.float64]
    points: NDArray[np.float64]
    score: NDArray[np.float64]
    depth: NDArray[np.float64]
    strength: float

    @property
    def width(self) -> int:
        """The number of columns."""
        return 1 + RAMPS

    def columns(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return t and the ramps of standardised rows."""
        out = np.empty((len(Z), self.width))
        self.fill(Z, out)
        return out

    def fill(self, Z: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write t and the ramps of standardised rows."""
        _fill(Z, self.weights, self.points, self.score, self.depth, self.strength, out)


@exactly_compiled
def _fill(
    Z: NDArray[np.float64],
    weights: NDArray[np.float64],
    points: NDArray[np.float64],
    score: NDArray[np.float64],
    depth: NDArray[np.float64],
    strength: float,
    out: NDArray[np.float64],
) -> None:
    for i in range(Z.shape[0]):
        index = 0.0
        for j in range(weights.size):
            index += Z[i, j] * weights[j]
        # The last point that is not above the index, and how far the index is on the way to the next one.
        at = int(np.searchsorted(points, index, side="right")) - 1
        at = min(max(at, 0), points.size - 2)
        gap = points[at + 1] - points[at]
        share = min(max((index - points[at]) / gap, 0.0), 1.0) if gap > 0.0 else 1.0
        out[i, 0] = score[at] + share * (score[at + 1] - score[at])
        deep = RAMPS * (depth[at] + share * (depth[at + 1] - depth[at]))
        for k in range(RAMPS):
            out[i, 1 + k] = strength * min(max(deep - k, 0.0), 1.0)


def prior_of_columns() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the prior means and variances of the columns' coefficients."""
    mean, variance = np.full(1 + RAMPS, DRIFT / RAMPS), np.full(1 + RAMPS, RAMP_VARIANCE / RAMPS)
    mean[0], variance[0] = SLOPE, SLOPE_VARIANCE
    return mean, variance


def find_selection(Z: NDArray[np.float64], labelled: NDArray[np.bool_]) -> Selection | None:
    """Return the selection index of standardised rows; None if labels are rare, complete or a random sample."""
    from scipy.special import ndtri
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    rows = _sample(labelled)
    known = labelled[rows]
    if min(known.sum(), (~known).sum()) < LEAST_ROWS:
        return None
    regression = LogisticRegression(C=PENALTY, max_iter=500)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    strength = _strength(cross_val_predict(regression, Z[rows], known, cv=folds, method="decision_function"), known)
    if strength <= 0.0:
        return None
    weights = regression.fit(Z[rows], known).coef_[0]
    index = Z @ weights
    share = (np.arange(POINTS) + 0.5) / POINTS
    grid = np.maximum.accumulate(np.quantile(index, share))
    edge = float(np.interp(np.quantile(index[labelled], EDGE), grid, share))
    depth = np.clip((edge - share) / max(edge - share[0], 1e-9), 0.0, 1.0)
    return Selection(weights, grid, strength * ndtri(share), depth, strength)


def _sample(labelled: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the rows to fit the index to: the same for the same history."""
    rng = np.random.default_rng(0)
    kinds = [np.flatnonzero(labelled), np.flatnonzero(~labelled)]
    return np.concatenate([np.sort(rng.permutation(kind)[:MOST_ROWS]) for kind in kinds])


def _strength(predicted: NDArray[np.float64], labelled: NDArray[np.bool_]) -> float:
    """Return the Gini coefficient of a prediction after two standard errors, from 0 to 1."""
    from scipy.stats import rankdata

    positive, negative = float(labelled.sum()), float((~labelled).sum())
    above = rankdata(predicted)[labelled].sum() - positive * (positive + 1.0) / 2.0
    gini = 2.0 * above / (positive * negative) - 1.0
    error = 2.0 * 2.0 * np.sqrt((positive + negative + 1.0) / (12.0 * positive * negative))
    return float(np.clip((gini - error) / max(1.0 - error, 1e-9), 0.0, 1.0))
