"""Effects whose direction is known: more income never makes success less likely.

A direction is a statement about coefficients: aᵀβ > 0. It is learnt like a label, as a success at a design row K a
whose log-odds K aᵀβ are far from 0 on either side, so that its likelihood σ(K aᵀβ) is nearly 1 where the statement
holds and nearly 0 where it does not. With K = 15/(prior standard deviation of a coefficient) the transition is narrow.

A feature that counts straight has one statement: its coefficient is above 0. Where its effect may bend, the slope in
the rank r is b_r/s_r + 2 b_q (r − ½)/s_q (s are the scales of the columns). It is above 0 for all r from 0 to 1 if it
is so at both ends.

The statements are learnt together with the first labels, and the result is a Gaussian, which does not end at 0. So the
belief is nearly monotone. Labels that contradict a direction again and again can overrule it: then the direction is
wrong. The weights of the hypotheses do not change by the statements alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.models.batch_learning import learn_labels
from lenience.models.rank_columns import RankColumns

SHARPNESS = 15.0
TYPICAL_VARIANCE = 3.0  # of all features together


def checked_directions(given: Any, features: int) -> NDArray[np.int64] | None:
    """Return −1, 0 or 1 for each feature; None without directions."""
    if given is None:
        return None
    directions = np.asarray(given)
    if directions.shape != (features,) or not np.isin(directions, (-1, 0, 1)).all():
        raise InputError(
            "monotonic_cst", given, f"-1 (falls), 0 (no direction) or 1 (rises) for each of the {features} features"
        )
    return directions.astype(np.int64) if directions.any() else None


def statements(
    directions: NDArray[np.int64], first: int, size: int, bends: RankColumns | None, scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the design rows K a, one for each statement; features begin at column ``first`` of ``size``.

    ``scale`` has the scales of the columns of ``bends``, which follow the features.
    """
    count = directions.size
    factor = SHARPNESS * math.sqrt(count / TYPICAL_VARIANCE)
    rows = []
    for j in np.flatnonzero(directions):
        straight = np.zeros(size)
        straight[first + j] = directions[j]
        rows.append(straight)
        if bends is None:
            continue
        own = {int(bends.kind[k]): int(k) for k in np.flatnonzero(bends.source == j)}
        if not own:
            continue
        slope, turn = 1.0 / scale[own[0]], 1.0 / scale[own[1]]
        for end in (-1.0, 1.0):
            row = np.zeros(size)
            row[first + count + own[0]], row[first + count + own[1]] = slope, end * turn
            rows.append(directions[j] * row / np.hypot(slope, turn))
    return np.array(rows) * factor


class Directed(NamedTuple):
    """Statements about directions, and the prior without them: weights, means and covariances of the hypotheses."""

    rows: NDArray[np.float64]
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]

    def restrict(
        self,
        weights: NDArray[np.float64],
        means: NDArray[np.float64],
        covariances: NDArray[np.float64],
        X: NDArray[np.float64] | None = None,
        y: NDArray[np.float64] | None = None,
        label_weights: NDArray[np.float64] | None = None,
    ) -> None:
        """Write the belief after the statements, and after labels if there are any."""
        ones = np.ones(len(self.rows))
        stated, centres, spreads = self.weights.copy(), self.means.copy(), self.covariances.copy()
        learn_labels(self.rows, ones, ones, stated, centres, spreads)
        learnt = stated.copy()
        if X is not None and y is not None and label_weights is not None:
            learnt, centres, spreads = self.weights.copy(), self.means.copy(), self.covariances.copy()
            learn_labels(
                np.vstack((self.rows, X)), np.append(ones, y), np.append(ones, label_weights), learnt, centres, spreads
            )
        # How likely the statements are differs between hypotheses, but they are not evidence for any.
        likelihood = self.weights * learnt / stated
        weights[:], means[:], covariances[:] = likelihood / likelihood.sum(), centres, spreads
