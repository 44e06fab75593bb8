"""Bootstrap: any scikit-learn classifier becomes a belief, by an ensemble that disagrees where little is known.

B copies of a classifier each see every label with a weight drawn from Poisson(1), the bootstrap that needs no second
pass (Oza and Russell 2001): copies with ``partial_fit`` go on from where they are, others are refitted to all labels
seen, and only when these have grown by a tenth (``every``), so that refitting stays affordable. The belief at x has the
mean p̂ of the copies' probabilities and their variance, shrunk towards a prior worth ``prior.n`` labels:

    p̂ = (n̂ p̄ + s₀)/(n̂ + n₀),   n = n̂ + n₀,   n̂ = p̄(1 − p̄)/var − 1 (at least 0 and at most the number of labels).

Before two classes were seen a classifier cannot be fitted: until then the belief is the prior plus the labels as
counts. A copy whose weights happen to leave one class out says what its labels say, with one virtual label of each
class. The likeness of x and r is the squared correlation of the copies' probabilities there; missing values go to the
classifier as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.belief import Belief
from lenience.errors import refusal, whole
from lenience.model.estimator import FeatureEstimator
from lenience.model.gaussian import LARGEST
from lenience.objective.base import check_prior


class Bootstrap(FeatureEstimator):
    """An ensemble of any classifier with ``predict_proba``, by the Poisson bootstrap.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(int)
    >>> model = Bootstrap(GaussianNB(), copies=20, random_state=0).prepare(X).learn(X, y)
    >>> n, mean = model.beliefs([[-1.5, 0.0], [1.5, 0.0]])
    >>> (mean.round(1).tolist(), bool((n > 20).all()))
    ([0.0, 1.0], True)
    """

    def __init__(
        self, classifier: Any = None, copies: int = 30, every: float = 0.1, prior: Any = None, random_state: Any = None
    ) -> None:
        self.classifier = classifier
        self.copies = copies
        self.every = every
        self.prior = prior
        self.random_state = random_state

    def _prepare(self, X: NDArray[np.float64]) -> None:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression
        from sklearn.utils import check_random_state

        self.prior_ = Belief(2, 1) if self.prior is None else check_prior(self.prior)
        given = LogisticRegression() if self.classifier is None else self.classifier
        if not hasattr(given, "predict_proba"):
            raise refusal("classifier", given, "a classifier with predict_proba")
        whole("copies", self.copies, least=2)
        self._random = check_random_state(self.random_state)
        self.members_ = [clone(given) for _ in range(self.copies)]
        self.incremental_ = hasattr(given, "partial_fit")
        self.rows_, self.outcomes_ = np.empty((0, X.shape[1])), np.empty(0)
        self.draws_ = np.empty((self.copies, 0))
        self.fitted_ = np.zeros(self.copies, dtype=np.bool_)
        self.rates_ = np.full(self.copies, 0.5)
        self._trained_on = 0

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        draws = self._random.poisson(1.0, size=(self.copies, len(y))) * weights
        self.rows_, self.outcomes_ = np.concatenate((self.rows_, X)), np.concatenate((self.outcomes_, y))
        self.draws_ = np.hstack((self.draws_, draws))
        self.rates_ = (self.draws_ @ self.outcomes_ + 1.0) / (self.draws_.sum(axis=1) + 2.0)
        if self.incremental_:
            for k, member in enumerate(self.members_):
                self._go_on(member, X, y, draws[k])
                self.fitted_[k] = True
        elif len(self.outcomes_) >= (1.0 + self.every) * self._trained_on:
            self._refit()

    def _go_on(self, member: Any, X: NDArray[np.float64], y: NDArray[np.float64], draw: NDArray[np.float64]) -> None:
        used = draw > 0
        if used.any():
            rows, outcomes, weights = X[used], y[used].astype(np.int64), draw[used]
        else:
            # A first call is needed to tell the classes, and labels of weight 0 upset some classifiers.
            rows, outcomes, weights = X[:1], y[:1].astype(np.int64), np.full(1, 1e-6)
        member.partial_fit(rows, outcomes, classes=np.array([0, 1]), sample_weight=weights)

    def _refit(self) -> None:
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        self._trained_on = len(self.outcomes_)
        outcomes = self.outcomes_.astype(np.int64)
        for k, member in enumerate(self.members_):
            used = self.draws_[k] > 0
            if len(np.unique(outcomes[used])) < 2:
                continue
            fresh = clone(member)
            if has_fit_parameter(fresh, "sample_weight"):
                fresh.fit(self.rows_[used], outcomes[used], sample_weight=self.draws_[k][used])
            else:
                again = np.repeat(np.flatnonzero(used), np.ceil(self.draws_[k][used]).astype(np.int64))
                fresh.fit(self.rows_[again], outcomes[again])
            self.members_[k] = fresh
            self.fitted_[k] = True

    def _votes(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each copy's success probability at each row."""
        votes = np.empty((self.copies, len(X)))
        for k, member in enumerate(self.members_):
            # Before a copy can be fitted it knows a rate and no features.
            votes[k] = member.predict_proba(X)[:, 1] if self.fitted_[k] else self.rates_[k]
        # Some classifiers give 0/0 far out; what they do not know is their rate.
        return np.where(np.isfinite(votes), votes, self.rates_[:, None])

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        labels = float(len(self.outcomes_))
        if len(np.unique(self.outcomes_)) < 2:
            n = self.prior_.n + labels
            return np.full(len(X), n), np.full(len(X), (self.prior_.s + self.outcomes_.sum()) / n)
        # So many labels cannot show a rate nearer to 0 or 1 than this, whatever a leaf says.
        least = 0.5 / (labels + 1.0)
        votes = np.clip(self._votes(X), least, 1.0 - least)
        mean, variance = votes.mean(axis=0), votes.var(axis=0, ddof=1)
        spread = mean * (1.0 - mean)
        # Nobody knows more than all labels seen, however well the copies agree.
        size = np.clip(spread / np.maximum(variance, spread / (labels + 1.0)) - 1.0, 0.0, min(labels, LARGEST))
        n = size + self.prior_.n
        return n, (size * mean + self.prior_.s) / n

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(np.unique(self.outcomes_)) < 2:
            return np.ones((len(X), len(R)))
        a, b = self._votes(X), self._votes(R)
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        scale = np.outer((a**2).sum(axis=0), (b**2).sum(axis=0))
        squared = (a.T @ b) ** 2 / np.where(scale > 0, scale, 1.0)
        # With B copies even unrelated rows correlate by chance: 1/(B − 1) on average.
        chance = 1.0 / (self.copies - 1)
        found: NDArray[np.float64] = np.clip((squared - chance) / (1.0 - chance), 0.0, 1.0)
        return np.where(scale > 0, found, 1.0)
