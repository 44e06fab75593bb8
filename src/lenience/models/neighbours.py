"""Labels counted by nearness: the effective sample size of a kernel, for users without a model.

With weights k_i = K(|z − z_i|/b) over the labelled rows i (features standardised over the prepared rows), the belief at
x is

    n = n₀ + Σ k_i,    s = s₀ + Σ k_i y_i,

the prior plus the labels counted by nearness. K(t) = e^{−t²/2} with t² divided by the number of features, so that the
bandwidth b means the same in any dimension. The likeness of x and r is K², as for a Gaussian process with that kernel.
By default the prior is worth two labels. Its centre is ½, or the cost of the objective inside a policy: from ½ a policy
with a high cost would accept nobody when many features tell people apart and labels reach few of them. A missing value
counts as the mean. Only the newest ``most`` labels are used, so memory and decision time are bounded. Labels that come
in one batch are equally new: of a larger batch, ``most`` labels are chosen at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.validation import real, whole
from lenience.models.feature_estimator import FeatureEstimator
from lenience.models.scaling import centre_and_scale


class Neighbours(FeatureEstimator):
    """Estimate beliefs from nearby labels with a Gaussian kernel.

    Parameters
    ----------
    bandwidth : float, default 0.5
        Kernel width in standard deviations of a feature.
    prior : Belief, optional
        The belief far from any label. The default is worth two labels, centred on the cost.
    most : int, default 5000
        Number of newest labels to use.

    Examples
    --------
    >>> model = Neighbours(bandwidth=0.5).prepare([[-1.0], [1.0]]).learn([[1.0], [1.0]], [1, 1])
    >>> n, mean = model.beliefs([[1.0], [-1.0]])
    >>> n.round(2), mean.round(2)
    (array([4., 2.]), array([0.75, 0.5 ]))
    """

    def __init__(self, bandwidth: float = 0.5, prior: Any = None, most: int = 5000) -> None:
        self.bandwidth = bandwidth
        self.prior = prior
        self.most = most

    def _prepare(self, X: NDArray[np.float64]) -> None:
        real("bandwidth", self.bandwidth, above=0)
        whole("most", self.most, least=1)
        self.prior_ = self._prior(self.prior)
        self.centre_, self.scale_ = centre_and_scale(X)
        self.rows_ = np.empty((0, X.shape[1]))
        self.outcomes_, self.weights_ = np.empty(0), np.empty(0)

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        self.rows_ = np.concatenate((self.rows_, self._scaled(X)))[-self.most :]
        self.outcomes_ = np.concatenate((self.outcomes_, y))[-self.most :]
        self.weights_ = np.concatenate((self.weights_, weights))[-self.most :]

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        near = self._kernel(self._scaled(X), self.rows_) * self.weights_
        n = self.prior_.n + near.sum(axis=1)
        return n, (self.prior_.s + near @ self.outcomes_) / n

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._kernel(self._scaled(X), self._scaled(R)) ** 2

    def _scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        z = (X - self.centre_) / self.scale_
        return np.where(np.isnan(z), 0.0, z)

    def _kernel(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
        features = max(a.shape[1] - self._spare, 1)
        near: NDArray[np.float64] = np.exp(-0.5 * np.maximum(squares, 0.0) / (features * self.bandwidth**2))
        return near
