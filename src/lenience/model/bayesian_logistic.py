"""BayesianLogistic: the default model with features, logistic regression with a Gaussian belief about its coefficients.

The model. logit p(x) = β₀ + Σ_k β_k z_k, the features z standardised over the rows it was prepared with; β₀ ~ N(μ₀,
1.65) and the other coefficients share a variance of 6.6. (A total of π²/3 would make p about uniform a priori; the
features are given more than their part of it, because a prior that is too tight costs more than one that is too loose.)
One-hot cells (:meth:`BayesianLogistic.for_cells`) have no intercept and π²/3 each: there the model is independent
counts, cell by cell, in the log-odds.

Labels are taken one at a time by the rank-one updates of :mod:`lenience.model.gaussian`: the work of a label or a
belief does not depend on how many labels were seen. Interactions and splines come from a Pipeline in front.

At the edges. Without labels the belief is the prior's. One class only is no trouble: the prior holds the coefficients.
A feature that did not vary in the prepared rows is centred and left unscaled, so that an unseen category still counts.
A missing value is the feature's mean: it says nothing. Standardised values are kept within ±``limit``, for a row far
outside of what was seen is not that much more informative.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.errors import number, real
from lenience.model.estimator import FeatureEstimator
from lenience.model.gaussian import design_rows, learn_rows, predict_rows

INTERCEPT_VARIANCE = 1.65
FEATURE_VARIANCE = 6.6
LIMIT = 6.0


class BayesianLogistic(FeatureEstimator):
    """Logistic regression with a Gaussian belief, updated one label at a time.

    ``intercept_variance`` and ``feature_variance`` are prior variances, the second divided among the features unless
    ``divided`` is false; ``intercept_mean`` is the prior log-odds of a middling individual; ``intercept`` and
    ``standardise`` can be turned off.

    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = BayesianLogistic().prepare(X)
    >>> n, mean = model.beliefs([[1.5]])
    >>> float(mean[0].round(6)), float(n[0].round(2))  # before any label, at the mean of the features
    (0.5, 3.11)
    >>> model.learn(X, [0, 0, 1, 1]).predict_proba([[0.0], [3.0], [float("nan")]])[:, 1].round(2)
    array([0.08, 0.92, 0.5 ])
    """

    def __init__(
        self,
        intercept_variance: float = INTERCEPT_VARIANCE,
        feature_variance: float = FEATURE_VARIANCE,
        intercept_mean: float = 0.0,
        intercept: bool = True,
        divided: bool = True,
        standardise: bool = True,
        limit: float = LIMIT,
    ) -> None:
        self.intercept_variance = intercept_variance
        self.feature_variance = feature_variance
        self.intercept_mean = intercept_mean
        self.intercept = intercept
        self.divided = divided
        self.standardise = standardise
        self.limit = limit

    @classmethod
    def for_cells(cls) -> BayesianLogistic:
        """For one-hot cells: no intercept, and π²/3 each, so that every cell is on its own with p about uniform."""
        return cls(intercept=False, divided=False, standardise=False, feature_variance=math.pi**2 / 3.0)

    def _prepare(self, X: NDArray[np.float64]) -> None:
        real("intercept_variance", self.intercept_variance, above=0)
        spread = real("feature_variance", self.feature_variance, above=0)
        number("intercept_mean", self.intercept_mean, "that is finite")
        real("limit", self.limit, above=0)
        count = X.shape[1]
        self.centre_, self.scale_ = np.zeros(count), np.ones(count)
        if self.standardise:
            known = ~np.isnan(X)
            seen = np.maximum(known.sum(axis=0), 1)
            filled = np.where(known, X, 0.0)
            self.centre_ = filled.sum(axis=0) / seen
            deviation = np.where(known, filled - self.centre_, 0.0)
            scale = np.sqrt((deviation**2).sum(axis=0) / seen)
            # Rounding leaves a spread of about 1e-16 where a column is constant.
            self.scale_ = np.where(scale > 1e-9 * (1.0 + np.abs(self.centre_)), scale, 1.0)
        each = spread / count if self.divided else spread
        variances, means = np.full(count, each), np.zeros(count)
        if self.intercept:
            variances = np.concatenate(([float(self.intercept_variance)], variances))
            means = np.concatenate(([float(self.intercept_mean)], means))
        self.mean_, self.covariance_ = means, np.diag(variances)
        self.labels_ = 0

    def design(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows as the coefficients see them: standardised, missing values at 0, the intercept's 1 in front."""
        first = 1 if self.intercept else 0
        out = np.empty((len(X), X.shape[1] + first))
        design_rows(X, self.centre_, self.scale_, self.limit if self.standardise else math.inf, first, out)
        return out

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        learn_rows(self.design(X), y, weights, self.mean_, self.covariance_)
        self.labels_ += len(y)

    def log_odds(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean and the variance of the log-odds at each row."""
        m, v, _, _ = self._predict(self._rows(X))
        return m, v

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        _, _, mean, n = self._predict(X)
        return n, mean

    def _predict(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        found = tuple(np.empty(len(X)) for _ in range(4))
        predict_rows(self.design(X), self.mean_, self.covariance_, *found)
        return found

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = self.design(X), self.design(R)
        across = a @ self.covariance_ @ b.T
        own = np.einsum("ij,jk,ik->i", a, self.covariance_, a)
        theirs = np.einsum("ij,jk,ik->i", b, self.covariance_, b)
        ratio: NDArray[np.float64] = across**2 / np.maximum(np.outer(own, theirs), 1e-300)
        return np.minimum(ratio, 1.0)
