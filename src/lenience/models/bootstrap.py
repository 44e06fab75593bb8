"""Any scikit-learn classifier as a belief: an ensemble whose copies disagree where little is known.

B copies of a classifier see every label with a weight drawn from Poisson(1), the bootstrap that needs no second pass
(Oza and Russell 2001). Copies with ``partial_fit`` continue from where they are. Others are refitted to all labels, but
only when the labels have grown by a tenth (``every``), so that refitting stays affordable. The belief at x has the mean
p̂ of the copies' probabilities and their variance, shrunk towards a prior worth ``prior.n`` labels:

    p̂ = (n̂ p̄ + s₀)/(n̂ + n₀),   n = n̂ + n₀,   n̂ = 1/ρ − 1 (at least 0 and at most the number of labels).

ρ is var/(p̄(1 − p̄)), but B copies estimate a variance only to a factor of 1 ± √(2/(B − 1)), and chance agreement is
not certainty. So the ratio r at x is shrunk towards its mean r̄ over ``TYPICAL`` of the prepared rows, as if true
ratios had an inverse-χ² distribution over rows. Its ν follows from how much r varies beyond what B copies explain:

    ρ = ((ν − 2) r̄ + (B − 1) r)/(ν + B − 3),   ν = 4 + 2/cv²,   1 + cv² = mean(r²)/r̄² · (B − 1)/(B + 1).

Copies cannot disagree about an error that they share: a classifier that is too rigid for its data (ten small trees) is
further off than its belief says, with any number of copies.

A classifier that has seen one or two labels says 0, 1 or nothing at all. So a copy takes part only after it has drawn
``ENOUGH`` labels of each class. With few labels trees cannot split: every copy then says the same at every row, the
copies agree, and a policy would reject everybody for good. So until half of the copies tell the typical rows apart, the
belief is that of :class:`~lenience.models.neighbours.Neighbours`: the prior plus the labels counted by nearness.
Neighbours also answer where a copy's probability is not a number (0/0, which naive Bayes returns far from the data; its
warnings are suppressed) and for rows with unseen categories, where copies agree only because none has seen them. The
likeness of x and r is the squared correlation of the copies' probabilities. Missing values are passed to a classifier
that supports them (by its scikit-learn tags; for a Pipeline, those of its first step); others get the mean of the
prepared rows.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.validation import whole
from lenience.models.feature_estimator import FeatureEstimator
from lenience.models.gaussian import LARGEST
from lenience.models.label_order import neutral_order
from lenience.models.neighbours import Neighbours

ENOUGH = 2  # labels of each class that a copy must have drawn before it takes part
LEAST_COPIES = 5
SAME = 1e-9  # a copy whose probabilities differ by no more does not tell rows apart
MANY_ROWS = 20_000  # more are fitted with several threads
REMEMBERED = 20_000  # rows whose votes are kept: a decision compares a new row with a hundred known ones
TYPICAL = 100  # prepared rows over which the copies' disagreement is averaged


class Bootstrap(FeatureEstimator):
    """Turn any classifier with ``predict_proba`` into a belief, by the Poisson bootstrap.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        The default is LogisticRegression().
    copies : int, default 30
        Number of copies, at least 5.
    every : float, default 0.1
        Refit when the number of labels has grown by this share. Ignored for classifiers with ``partial_fit``.
    prior : Belief, optional
        The belief towards which the ensemble is shrunk. The default is worth two labels, centred on the cost.
    random_state : int, RandomState or None
        Seed of the bootstrap weights.

    Examples
    --------
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

        self.prior_ = self._prior(self.prior)
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
        self.varies_ = np.zeros(self.copies, dtype=np.bool_)
        self.near_ = Neighbours(prior=self.prior_).spare(self._spare).prepare(X)
        self.takes_missing_ = _takes_missing(given)
        self._trained_on = 0
        self._typical = X[neutral_order(X, np.zeros(len(X)), np.ones(len(X)))[:TYPICAL]]
        self._known: dict[bytes, NDArray[np.float64]] = {}  # votes by row, until a copy changes
        self._usual: list[tuple[float, float]] = []  # r̄ and ν, until something is learnt

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        draws = self._random.poisson(1.0, size=(self.copies, len(y))) * weights
        self.rows_, self.outcomes_ = np.concatenate((self.rows_, self._filled(X))), np.concatenate((self.outcomes_, y))
        self.draws_ = np.hstack((self.draws_, draws))
        self.near_._learn(X, y, weights)
        self._usual.clear()
        with np.errstate(all="ignore"), _few_threads(len(self.outcomes_)):
            if self.incremental_:
                for k in range(self.copies):
                    self._continue_fit(k, len(y))
                self._compare(np.flatnonzero(self.fitted_ & ~self.varies_))
            elif len(self.outcomes_) >= (1.0 + self.every) * self._trained_on:
                self._refit()

    def _continue_fit(self, k: int, new: int) -> None:
        """Continue a copy with the newest labels, or start it with all labels once there are enough."""
        self._known.clear()
        if not self.fitted_[k] and not self._enough(k):
            return
        start = len(self.outcomes_) - new if self.fitted_[k] else 0
        used = start + np.flatnonzero(self.draws_[k, start:] > 0)
        if len(used):
            _fit_weighted(
                self.members_[k].partial_fit, self.rows_, self.outcomes_, used, self.draws_[k], classes=np.array([0, 1])
            )
        self.fitted_[k] = True

    def _enough(self, k: int) -> bool:
        good = self.outcomes_[self.draws_[k] > 0].sum()
        return bool(min(good, (self.draws_[k] > 0).sum() - good) >= ENOUGH)

    def _refit(self) -> None:
        from sklearn.base import clone

        self._trained_on = len(self.outcomes_)
        self._known.clear()
        for k, member in enumerate(self.members_):
            if not self._enough(k):
                continue
            fresh = clone(member)
            _fit_weighted(fresh.fit, self.rows_, self.outcomes_, np.flatnonzero(self.draws_[k] > 0), self.draws_[k])
            self.members_[k] = fresh
            self.fitted_[k] = True
        self._compare(np.flatnonzero(self.fitted_))

    def _compare(self, copies: NDArray[np.intp]) -> None:
        """Find out which of these copies tell typical rows apart."""
        rows = self._filled(self._typical)
        for k in copies:
            rates = self.members_[k].predict_proba(rows)[:, 1]
            self.varies_[k] = not np.isfinite(rates).all() or np.ptp(rates) > SAME

    def _votes(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the success probability at each row by each copy that takes part."""
        keys = [row.tobytes() for row in X]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        if new:
            if len(self._known) + len(new) > REMEMBERED:
                self._known.clear()
                new = list(range(len(keys)))
            self._known.update(zip([keys[i] for i in new], self._computed(X[new]).T, strict=True))
        votes = np.array([self._known[key] for key in keys]).T
        if np.isfinite(votes).all():
            return votes
        return np.where(np.isfinite(votes), votes, self.near_._beliefs(X)[1])

    def _computed(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the votes as the copies give them, which may not be numbers."""
        trained = [member for member, fitted in zip(self.members_, self.fitted_, strict=True) if fitted]
        filled = self._filled(X)
        with np.errstate(all="ignore"), _few_threads(len(X)):
            return np.array([member.predict_proba(filled)[:, 1] for member in trained])

    def _filled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows as the classifier accepts them."""
        return X if self.takes_missing_ else np.where(np.isnan(X), self.near_.centre_, X)

    @property
    def _begun(self) -> bool:
        """Whether enough copies tell rows apart for their disagreement to mean something."""
        return bool(self.varies_.sum() >= max(2.0, self.copies / 2))

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if not self._begun:
            return self.near_._beliefs(X)
        mean, ratio, copies = self._disagreement(X)
        if not self._usual:
            self._usual.append(_typical_ratio(self._disagreement(self._typical)[1], copies))
        usual, freedom = self._usual[0]
        pooled = ((freedom - 2.0) * usual + (copies - 1.0) * ratio) / (freedom + copies - 3.0)
        # The belief cannot be worth more than the labels seen, however well the copies agree.
        most = min(float(len(self.outcomes_)), LARGEST)
        size = np.clip(1.0 / np.maximum(pooled, 1.0 / (most + 1.0)) - 1.0, 0.0, most)
        n = size + self.prior_.n
        mean = (size * mean + self.prior_.s) / n
        strange = X[:, X.shape[1] - self._spare :].any(axis=1)
        if strange.any():
            n[strange], mean[strange] = self.near_._beliefs(X[strange])
        return n, mean

    def _disagreement(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Return p̄ and var/(p̄(1 − p̄)) at each row, over the copies that take part, and the number of these copies."""
        # This number of labels cannot show a rate closer to 0 or 1, whatever a leaf of a tree predicts.
        least = 0.5 / (len(self.outcomes_) + 1.0)
        votes = np.clip(self._votes(X), least, 1.0 - least)
        mean = votes.mean(axis=0)
        return mean, votes.var(axis=0, ddof=1) / (mean * (1.0 - mean)), len(votes)

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self._begun:
            # A classifier generalises further than the neighbourhood of a label, so at first all rows count as alike.
            return np.ones((len(X), len(R)))
        a, b = self._votes(X), self._votes(R)
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        scale = np.outer((a**2).sum(axis=0), (b**2).sum(axis=0))
        squared = (a.T @ b) ** 2 / np.where(scale > 0, scale, 1.0)
        # With B copies, even unrelated rows have a squared correlation of 1/(B − 1) on average, by chance.
        chance = 1.0 / (len(a) - 1)
        likeness: NDArray[np.float64] = np.clip((squared - chance) / (1.0 - chance), 0.0, 1.0)
        return np.where(scale > 0, likeness, 1.0)


def _fit_weighted(
    fit: Any,
    rows: NDArray[np.float64],
    outcomes: NDArray[np.float64],
    used: NDArray[np.int64],
    draws: NDArray[np.float64],
    **options: Any,
) -> None:
    """Fit to the labels used, each with its draw as a weight, or repeated if the classifier takes no weights."""
    if "sample_weight" in signature(fit).parameters:
        options["sample_weight"] = draws[used]
    else:
        used = np.repeat(used, np.ceil(draws[used]).astype(np.int64))
    fit(rows[used], outcomes[used].astype(np.int64), **options)


def _few_threads(rows: int) -> AbstractContextManager[Any]:
    """Use one thread for few rows. There, threads of boosted trees mostly wait for each other."""
    return nullcontext() if rows > MANY_ROWS else _thread_pools().limit(limits=1)


@cache
def _thread_pools() -> Any:
    """Return the libraries with threads that are loaded. To find them takes longer than to set them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _takes_missing(classifier: Any) -> bool:
    from sklearn.pipeline import Pipeline
    from sklearn.utils import get_tags

    first = classifier.steps[0][1] if isinstance(classifier, Pipeline) else classifier
    return hasattr(first, "__sklearn_tags__") and bool(get_tags(first).input_tags.allow_nan)


def _typical_ratio(ratios: NDArray[np.float64], copies: int) -> tuple[float, float]:
    """Return r̄ and ν: what typical rows say about the ratio of a row before its own copies count."""
    usual = float(ratios.mean())
    if usual <= 0.0:
        return 0.0, 4.0
    spread = float((ratios**2).mean()) / usual**2 * (copies - 1.0) / (copies + 1.0) - 1.0
    return usual, 4.0 + 2.0 / max(spread, 0.01)
