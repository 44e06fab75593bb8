"""Bootstrap: any scikit-learn classifier becomes a belief, by an ensemble that disagrees where little is known.

B copies of a classifier each see every label with a weight drawn from Poisson(1), the bootstrap that needs no second
pass (Oza and Russell 2001): copies with ``partial_fit`` go on from where they are, others are refitted to all labels
seen, and only when these have grown by a tenth (``every``), so that refitting stays affordable. The belief at x has the
mean p̂ of the copies' probabilities and their variance, shrunk towards a prior worth ``prior.n`` labels:

    p̂ = (n̂ p̄ + s₀)/(n̂ + n₀),   n = n̂ + n₀,   n̂ = 1/ρ − 1 (at least 0 and at most the number of labels).

ρ is var/(p̄(1 − p̄)), but B copies tell a variance to a factor of 1 ± √(2/(B − 1)) only, and where they happen to agree
nobody may be sure. So the ratio r at x is drawn towards its mean r̄ over ``TYPICAL`` of the prepared rows, as if true
ratios had an inverse-χ² distribution over rows, whose ν is found from how much r varies beyond what B copies explain:

    ρ = ((ν − 2) r̄ + (B − 1) r)/(ν + B − 3),   ν = 4 + 2/cv²,   1 + cv² = mean(r²)/r̄² · (B − 1)/(B + 1).

What the copies have in common they cannot disagree about: a classifier that is too stiff for its data (ten small trees)
is off by more than its belief says, however many copies there are.

A classifier that has seen one or two labels says 0, 1 or nothing at all. So a copy is asked only once it has drawn
``ENOUGH`` labels of each class, and until half of the copies have, the belief is that of :class:`Neighbours`: the prior
plus the labels counted by how near they are. It also answers for a copy whose probability is no number (0/0, as naive
Bayes says far out), the classifiers' warnings of which are not passed on; and for rows with unseen categories, about
which the copies agree because none has seen them. The likeness of x and r is the squared correlation of the copies'
probabilities there. Missing values go as they are to a classifier that takes them (by its scikit-learn tags; of a
Pipeline, its first step's), to others as the mean of the prepared rows.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.validation import whole
from lenience.models.feature_estimator import FeatureEstimator
from lenience.models.gaussian import LARGEST
from lenience.models.neighbours import Neighbours

ENOUGH = 2  # labels of each class that a copy must have drawn before it is asked
LEAST_COPIES = 5
TYPICAL = 100  # prepared rows over which the copies' disagreement is averaged


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
            raise InputError("classifier", given, "a classifier with predict_proba")
        whole("copies", self.copies, least=LEAST_COPIES)
        self._random = check_random_state(self.random_state)
        self.members_ = [clone(given) for _ in range(self.copies)]
        self.incremental_ = hasattr(given, "partial_fit")
        self.rows_, self.outcomes_ = np.empty((0, X.shape[1])), np.empty(0)
        self.draws_ = np.empty((self.copies, 0))
        self.fitted_ = np.zeros(self.copies, dtype=np.bool_)
        self.near_ = Neighbours(prior=self.prior_).spare(self._spare).prepare(X)
        self.takes_missing_ = _takes_missing(given)
        self._trained_on = 0
        self._typical = X if len(X) <= TYPICAL else X[self._random.choice(len(X), TYPICAL, replace=False)]
        self._usual: list[tuple[float, float]] = []  # r̄ and ν, until something is learnt

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        draws = self._random.poisson(1.0, size=(self.copies, len(y))) * weights
        self.rows_, self.outcomes_ = np.concatenate((self.rows_, self._filled(X))), np.concatenate((self.outcomes_, y))
        self.draws_ = np.hstack((self.draws_, draws))
        self.near_._learn(X, y, weights)
        self._usual.clear()
        with np.errstate(all="ignore"):
            if self.incremental_:
                for k in range(self.copies):
                    self._go_on(k, len(y))
            elif len(self.outcomes_) >= (1.0 + self.every) * self._trained_on:
                self._refit()

    def _go_on(self, k: int, new: int) -> None:
        """Let a copy go on with the newest labels, or begin with all of them once there are enough."""
        if not self.fitted_[k] and not self._enough(k):
            return
        start = len(self.outcomes_) - new if self.fitted_[k] else 0
        used = start + np.flatnonzero(self.draws_[k, start:] > 0)
        if len(used):
            go_on = self.members_[k].partial_fit
            _weighed(go_on, self.rows_, self.outcomes_, used, self.draws_[k], classes=np.array([0, 1]))
        self.fitted_[k] = True

    def _enough(self, k: int) -> bool:
        good = self.outcomes_[self.draws_[k] > 0].sum()
        return bool(min(good, (self.draws_[k] > 0).sum() - good) >= ENOUGH)

    def _refit(self) -> None:
        from sklearn.base import clone

        self._trained_on = len(self.outcomes_)
        for k, member in enumerate(self.members_):
            if not self._enough(k):
                continue
            fresh = clone(member)
            _weighed(fresh.fit, self.rows_, self.outcomes_, np.flatnonzero(self.draws_[k] > 0), self.draws_[k])
            self.members_[k] = fresh
            self.fitted_[k] = True

    def _votes(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The success probability at each row by each copy that can be asked."""
        asked = [member for member, fitted in zip(self.members_, self.fitted_, strict=True) if fitted]
        filled = self._filled(X)
        with np.errstate(all="ignore"):
            votes = np.array([member.predict_proba(filled)[:, 1] for member in asked])
        if np.isfinite(votes).all():
            return votes
        return np.where(np.isfinite(votes), votes, self.near_._beliefs(X)[1])

    def _filled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows as the classifier takes them."""
        return X if self.takes_missing_ else np.where(np.isnan(X), self.near_.centre_, X)

    @property
    def _begun(self) -> bool:
        """Whether so many copies can be asked that their disagreement means something."""
        return bool(self.fitted_.sum() >= max(2.0, self.copies / 2))

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if not self._begun:
            return self.near_._beliefs(X)
        mean, ratio, copies = self._disagreement(X)
        if not self._usual:
            self._usual.append(_usual(self._disagreement(self._typical)[1], copies))
        usual, freedom = self._usual[0]
        pooled = ((freedom - 2.0) * usual + (copies - 1.0) * ratio) / (freedom + copies - 3.0)
        # Nobody knows more than all labels seen, however well the copies agree.
        most = min(float(len(self.outcomes_)), LARGEST)
        size = np.clip(1.0 / np.maximum(pooled, 1.0 / (most + 1.0)) - 1.0, 0.0, most)
        n = size + self.prior_.n
        mean = (size * mean + self.prior_.s) / n
        strange = X[:, X.shape[1] - self._spare :].any(axis=1)
        if strange.any():
            n[strange], mean[strange] = self.near_._beliefs(X[strange])
        return n, mean

    def _disagreement(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """At each row p̄ and var/(p̄(1 − p̄)), over the copies that can be asked; and how many these are."""
        # So many labels cannot show a rate nearer to 0 or 1 than this, whatever a leaf says.
        least = 0.5 / (len(self.outcomes_) + 1.0)
        votes = np.clip(self._votes(X), least, 1.0 - least)
        mean = votes.mean(axis=0)
        return mean, votes.var(axis=0, ddof=1) / (mean * (1.0 - mean)), len(votes)

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self._begun:
            # What a classifier is to learn reaches further than a label's neighbourhood: as yet, all are alike.
            return np.ones((len(X), len(R)))
        a, b = self._votes(X), self._votes(R)
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        scale = np.outer((a**2).sum(axis=0), (b**2).sum(axis=0))
        squared = (a.T @ b) ** 2 / np.where(scale > 0, scale, 1.0)
        # With B copies even unrelated rows correlate by chance: 1/(B − 1) on average.
        chance = 1.0 / (len(a) - 1)
        found: NDArray[np.float64] = np.clip((squared - chance) / (1.0 - chance), 0.0, 1.0)
        return np.where(scale > 0, found, 1.0)


def _weighed(
    fit: Any,
    rows: NDArray[np.float64],
    outcomes: NDArray[np.float64],
    used: NDArray[np.int64],
    draws: NDArray[np.float64],
    **options: Any,
) -> None:
    """Fit to the labels used, each by its draw: as a weight, or as often where the classifier takes no weights."""
    if "sample_weight" in signature(fit).parameters:
        options["sample_weight"] = draws[used]
    else:
        used = np.repeat(used, np.ceil(draws[used]).astype(np.int64))
    fit(rows[used], outcomes[used].astype(np.int64), **options)


def _takes_missing(classifier: Any) -> bool:
    from sklearn.pipeline import Pipeline
    from sklearn.utils import get_tags

    first = classifier.steps[0][1] if isinstance(classifier, Pipeline) else classifier
    return hasattr(first, "__sklearn_tags__") and bool(get_tags(first).input_tags.allow_nan)


def _usual(ratios: NDArray[np.float64], copies: int) -> tuple[float, float]:
    """r̄ and ν: what the ratios of typical rows say of a row's own before its copies are asked."""
    usual = float(ratios.mean())
    if usual <= 0.0:
        return 0.0, 4.0
    spread = float((ratios**2).mean()) / usual**2 * (copies - 1.0) / (copies + 1.0) - 1.0
    return usual, 4.0 + 2.0 / max(spread, 0.01)
