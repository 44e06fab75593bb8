"""What all logistic feature models share: a Gaussian belief about coefficients, in scikit-learn's interface."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.models.feature_estimator import FeatureEstimator
from lenience.models.logistic_belief import LogisticBelief


class LogisticEstimator(FeatureEstimator):
    """Base class of logistic models; a subclass implements ``_prepare``, which sets ``belief_``."""

    belief_: LogisticBelief
    _order_matters = False

    @property
    def weights_(self) -> NDArray[np.float64]:
        """Weight of each hypothesis."""
        return self.belief_.weights

    @property
    def means_(self) -> NDArray[np.float64]:
        """Mean of the coefficients under each hypothesis."""
        return self.belief_.means

    @property
    def covariances_(self) -> NDArray[np.float64]:
        """Covariance of the coefficients under each hypothesis."""
        return self.belief_.covariances

    @property
    def labels_(self) -> int:
        """Number of labels learnt."""
        return self.belief_.labels

    @property
    def mean_(self) -> NDArray[np.float64]:
        """Mean of the coefficients, over all hypotheses."""
        mean: NDArray[np.float64] = self.weights_ @ self.means_
        return mean

    @property
    def covariance_(self) -> NDArray[np.float64]:
        """Covariance of the coefficients, over all hypotheses."""
        away = self.means_ - self.mean_
        within = np.tensordot(self.weights_, self.covariances_, 1)
        covariance: NDArray[np.float64] = within + (away.T * self.weights_) @ away
        return covariance

    def design(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows as the coefficients see them: the intercept first, then everything standardised.

        Missing values are at 0. After the features come the columns for bends and for the choices of the past, if any.

        Parameters
        ----------
        X : ndarray
            Rows of features.

        Returns
        -------
        ndarray
            One column per coefficient.

        Examples
        --------
        >>> from lenience.models import BayesianLogistic
        >>> model = BayesianLogistic(bent_variance=()).prepare([[0.0], [1.0], [2.0]])
        >>> model.design(np.array([[0.0], [1.0], [np.nan]])).round(2)
        array([[ 1.  , -1.22],
               [ 1.  ,  0.  ],
               [ 1.  ,  0.  ]])
        """
        return self.belief_.design.rows(X)

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        self.belief_.learn(X, y, weights)

    def log_odds(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean and the variance of the log-odds at each row, one column per hypothesis.

        Parameters
        ----------
        X : ndarray
            Rows of features.

        Returns
        -------
        mean : ndarray
            Mean of the log-odds.
        variance : ndarray
            Variance of the log-odds.

        Examples
        --------
        >>> from lenience.models import BayesianLogistic
        >>> model = BayesianLogistic(bent_variance=()).prepare([[0.0], [1.0], [2.0]])
        >>> mean, variance = model.log_odds(np.array([[1.0]]))
        >>> mean.shape, variance.round(2)
        ((1, 3), array([[0.51, 1.  , 5.88]]))
        """
        return self.belief_.log_odds(self._rows(X))

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.belief_.beliefs(X)

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.belief_.likeness(X, R)
