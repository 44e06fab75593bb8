"""FeaturePolicy: the paper's policy for individuals with features: accept iff p̂(x) > c_n(x) at x's own discount.

A model says what is believed of x: a success probability p̂ and, by its confidence, a belief size n (the paper's
Discussion). People like x are a share q of the arrivals, and h is learnt of x for free
(:mod:`lenience.policies.features.effective_discount`): together they make x's own discount γ′, and (n, γ′) the
threshold c_n, from a
table of certified thresholds (:mod:`lenience.solvers.stopping.threshold_table`), with less of its leniency where
labels come for
free. Where p̂ > c acceptance needs no exploring.

Late labels. An acceptance that has not been heard of has cost its risk and taught nothing yet. Pending acceptances
count by their likeness to x: m(x) = Σ_pending ρ²(x, ·), the *effective pending*. Where nothing is known of the delay
they count as labels that will come, so that c is taken at n + m: the benefit of the doubt is given to as many as it
would be if all pending answers were in and left p̂ as it is. With a :class:`~lenience.objectives.delayed.Delayed`
objective x below the break-even is accepted only while m(x) is below the exposure limit of the problem of people like
x, who arrive at the rate qλ (q to the nearest power of 2, for each is a solve). ``exposure`` gives other limits: the
``exposure(n, s)`` of any solved problem, or a number. Outcomes that do not come expire after
``expire_after`` (three mean delays of a Delayed objective): they no longer block anyone, and are not learnt from.
"""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.compiled import compiled
from lenience.core.formatting import count, percents, plural
from lenience.core.objective import ExposureObjective
from lenience.core.validation import real, whole
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.feature_model import FeatureModel, is_missing
from lenience.models.gaussian import belief_size
from lenience.models.hypotheses import liken, mixed, mixed_roughly, project_all, project_rows
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.features.base import Decision, SelectivePolicy
from lenience.policies.features.effective_discount import lenient, own_discount, q_and_h, shares
from lenience.solvers.stopping.threshold_table import ThresholdTable, look_up, threshold_table

REFERENCE = 100


class NeverStartsWarning(UserWarning):
    """A policy that knows of no label and would accept nobody: it will never learn."""


class FeaturePolicy(SelectivePolicy):
    """Decide one at a time or in batches, learn from the accepted, explore by what a label is worth.

    ``model`` is a model of :mod:`lenience.models` or a Pipeline that ends in one (by default a
    :class:`~lenience.models.bayesian_logistic.BayesianLogistic`); ``reference`` the number of rows that stand for the
    population, the newest arrivals if ``refresh``; ``explore`` a probability of accepting those the policy would
    reject, 0 unless the log is to be evaluated for other policies later; ``exposure`` and ``expire_after`` are for
    late labels.

    >>> from lenience import Discounted
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit(X)
    >>> policy.decide(X[:3])  # nothing is known yet: the first is given the benefit of the doubt
    array([ True,  True,  True])
    >>> policy.observe(X[:2], [True, True], [1, 0]).pending_  # the third has not been heard of
    1
    >>> [decision.propensity for decision in policy.log_]
    [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        model: Any = None,
        objective: Any = None,
        reference: int = REFERENCE,
        refresh: bool = True,
        explore: float = 0.0,
        exposure: Any = None,
        expire_after: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.objective = objective
        self.reference = reference
        self.refresh = refresh
        self.explore = explore
        self.exposure = exposure
        self.expire_after = expire_after
        self.random_state = random_state

    def explain(self, X: Any) -> list[str]:
        """Each row's decision if it came now, alone, and its reason in words."""
        rows = self._rows(X)
        missing, unseen = self._missing(X), self._unfamiliar(X, rows)
        found = []
        for i in range(len(rows)):
            d = self._decide(rows[i : i + 1], np.ones(1))[0]
            cost = self.objective.cost
            mean, even, enough = percents(d.mean, cost, cost if d.threshold is None else d.threshold)
            known = f"expected success {mean}, known as if from {count(d.n)} observations"
            seen = f"{known}{_without(missing[i])}{_with(unseen[i])}"
            held = d.threshold is not None and d.threshold < d.mean <= cost and d.propensity < 1.0
            if d.mean > cost:
                found.append(f"Accept: {seen}, above the {even} break-even.")
            elif held and d.pending:
                found.append(
                    f"Reject for now: {seen}, short of the {even} break-even, with {d.pending:.1f} acceptances of "
                    "people like this one pending: wait for their outcomes."
                )
            elif held:
                found.append(
                    f"Reject: {seen}, so far short of the {even} break-even that a label that comes late would not "
                    "be worth its risk."
                )
            elif d.threshold is not None and d.mean > d.threshold and d.propensity == 1.0:
                found.append(
                    f"Accept: {seen}, short of the {even} break-even but above {enough}: what the label "
                    "teaches about people like this one is worth the risk."
                )
            else:
                found.append(
                    f"Reject: {seen}, not above the {enough} at which a label would be worth its risk "
                    f"(break-even {even})."
                )
        return found

    def _missing(self, X: Any) -> list[list[str]]:
        """Of each row, as it was given, the features that are missing."""
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:  # a sparse matrix, in which what is not there is 0
            return [[]] * X.shape[0]
        return [[name for name, cell in zip(self._names(), row, strict=True) if is_missing(cell)] for row in cells]

    def _unfamiliar(self, X: Any, rows: NDArray[np.float64]) -> list[list[str]]:
        """Of each row the categories that are unseen, those of missing features aside."""
        if self.transformer_ is None or not self._unseen.blocks:
            return [[]] * len(rows)
        cells, names, found = np.asarray(X, dtype=object), self._names(), []
        for i, which in enumerate(self._unseen.where(self._raw(X, reset=False), rows)):
            said = []
            for block, unseen in zip(self._unseen.blocks, which, strict=True):
                cell = None if block.name is None else cells[i, names.index(block.name)]
                if unseen and block.name is None:
                    said.append("of a feature that the Pipeline makes")
                elif unseen and not is_missing(cell):
                    said.append(f"{block.name} = {cell!r}")
            found.append(said)
        return found

    def _default_model(self) -> FeatureModel:
        return BayesianLogistic.for_cost(self.objective.cost)

    def _start(self, rows: NDArray[np.float64]) -> None:
        size = whole("reference", self.reference, least=1)
        real("explore", self.explore, least=0, most=1)
        if self.expire_after is not None:
            real("expire_after", self.expire_after, least=0)
        if self.exposure is not None and not hasattr(self.exposure, "exposure"):
            real("exposure", self.exposure, least=0)
        self.cost_ = self.objective.cost
        most = self.objective.discount_at(0)
        self.table_: ThresholdTable = threshold_table(self.cost_, min(most, 1.0 - 1e-9))
        pick = np.arange(len(rows)) if len(rows) <= size else self._random.choice(len(rows), size, replace=False)
        self._reference(rows[pick])

    def _ready(self) -> None:
        """Say so if nobody would be accepted before the first label, for then there will be none.

        Exposure limits are not asked: each is a solve.
        """
        if self.labels_ or self.explore or self._limited():
            return
        if any(decision.propensity > 0 for decision in self._decide(self.reference_, np.ones(len(self.reference_)))):
            return
        most, even = percents(float(self.model_.beliefs(self.reference_)[1].max()), self.cost_)
        given = f"prior=Belief(2, {2 * self.cost_:.4g})" if hasattr(self.model_, "prior") else "its intercept_mean"
        warnings.warn(
            f"none of the {len(self.reference_)} reference rows would be accepted, so that nothing is ever learnt: "
            f"before any label {type(self.model_).__name__} expects a success rate of {most} at most, and the "
            f"break-even is {even}. Fit with outcomes that are known, give the model a prior nearer to the break-even "
            f"({given}), or explore (explore=0.05)",
            NeverStartsWarning,
            stacklevel=3,
        )

    def _reference(self, rows: NDArray[np.float64]) -> None:
        self.reference_ = np.array(rows)
        self._oldest = 0
        self._cache: dict[str, NDArray[np.float64]] = {}  # of the reference set, until something is learnt

    def _learn(self, rows: NDArray[np.float64], outcomes: NDArray[np.float64]) -> None:
        super()._learn(rows, outcomes)
        self._cache.clear()

    def _arrived(self, rows: NDArray[np.float64]) -> None:
        if not self.refresh:
            return
        size = whole("reference", self.reference, least=1)
        for row in rows[-size:]:
            if len(self.reference_) < size:
                self.reference_ = np.vstack((self.reference_, row[None]))
            else:
                self.reference_[self._oldest % size] = row
                self._oldest += 1
        self._cache.clear()

    def _decide(self, rows: NDArray[np.float64], chances: NDArray[np.float64]) -> list[Decision]:
        gammas = np.array([self._discount(i) for i in range(len(rows))])
        if isinstance(self.model_, BayesianLogistic) and not self._limited():
            found = self._decide_logistic(rows, chances, gammas)
        else:
            found = self._decide_any(rows, chances, gammas)
        return [
            Decision(self.arrivals_ + i, bool(one[0] > 0), *(float(value) for value in one[1:]))
            for i, one in enumerate(found)
        ]

    def _decide_logistic(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        model = self.model_
        cache = self._cache
        if not cache:
            design = model.design(self.reference_)
            m, v = np.empty((2, len(design), len(model.weights_)))
            project_rows(design, model.means_, model.covariances_, m, v)
            cache |= {"design": design, "m": m, "v": v}
        waiting = [row for _, row in self._awaited.pending.values()]
        pending = np.zeros((len(waiting) + len(rows), model.means_.shape[1]))
        if waiting:
            pending[: len(waiting)] = model.design(np.array(waiting))
        out = np.empty((len(rows), 7))
        decide_rows(
            model.design(rows),
            model.weights_,
            model.means_,
            model.covariances_,
            cache["design"],
            cache["m"],
            cache["v"],
            pending,
            len(waiting),
            gammas,
            chances,
            float(self.explore),
            *self.table_,
            out,
        )
        return out

    def _decide_any(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The same for any model, by its beliefs and likeness, and for exposure limits."""
        cost = self.cost_
        n, mean = self.model_.beliefs(rows)
        size, rate = self.model_.beliefs(self.reference_)
        spread = np.maximum(rate * (1.0 - rate), 1e-12)
        distance, resolved = (rate - cost) ** 2 * (size + 1.0) / spread, 1.0 / (size + 2.0)
        like = self.model_.likeness(rows, self.reference_)
        waiting = [row for _, row in self._awaited.pending.values()]
        near = self.model_.likeness(rows, np.array(waiting)).sum(axis=1) if waiting else np.zeros(len(rows))
        among = self.model_.likeness(rows, rows) if len(rows) > 1 else np.ones((1, 1))
        out = np.empty((len(rows), 7))
        for i in range(len(rows)):
            own = (mean[i] - cost) ** 2 * (n[i] + 1.0) / max(mean[i] * (1.0 - mean[i]), 1e-12)
            q, h, left = shares(like[i], rate, distance, resolved, own, 1.0 / (n[i] + 2.0), cost)
            discount = own_discount(gammas[i], q, h)
            pending = float(near[i])
            counted = n[i] + (0.0 if self._limited() else pending)
            threshold = lenient(cost, float(self.table_.threshold(counted, discount)), left)
            accept = mean[i] > cost or (
                mean[i] > threshold and pending < self._limit(float(n[i]), float(mean[i]), q)  # a solve, if asked
            )
            propensity = 1.0 if accept else float(self.explore)
            taken = chances[i] < propensity
            out[i] = taken, propensity, mean[i], n[i], discount, threshold, pending
            if taken:
                near[i + 1 :] += among[i + 1 :, i]
        return out

    def _limited(self) -> bool:
        return self.exposure is not None or self.objective.label_delay > 0.0

    def _limit(self, n: float, mean: float, q: float) -> float:
        """The exposure limit at a belief: at the nearest belief of the solved problem's lattice, where there is one."""
        solved = self.exposure
        if solved is None:
            if not self.objective.label_delay:
                return math.inf
            solved = _solved(self.objective.for_share(2.0 ** round(math.log2(q))))
        if not hasattr(solved, "exposure"):
            return float(solved)
        prior = solved.prior
        k = max(round(n - prior.n), 0)
        j = min(max(round(mean * (prior.n + k) - prior.s), 0), k)
        return float(solved.exposure(prior.n + k, prior.s + j))


def _without(missing: list[str]) -> str:
    return f", without the missing {plural(len(missing), 'feature')} {', '.join(missing)}" if missing else ""


def _with(unseen: list[str]) -> str:
    return f", with the unseen {plural(len(unseen), 'category', 'categories')} {', '.join(unseen)}" if unseen else ""


@lru_cache(maxsize=64)
def _solved(objective: ExposureObjective) -> ExposurePolicy:
    policy: ExposurePolicy = objective.solve(Belief(2, 1), tolerance=1e-4)
    return policy


@compiled
def decide_rows(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    R: NDArray[np.float64],
    reference_m: NDArray[np.float64],
    reference_v: NDArray[np.float64],
    pending: NDArray[np.float64],
    waiting: int,
    gammas: NDArray[np.float64],
    chances: NDArray[np.float64],
    explore: float,
    cost: float,
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Decide rows in turn; writes accepted, propensity, p̂, n, γ′, c_n and the effective pending of each.

    ``pending`` has room for those accepted here, after the ``waiting`` rows that it holds.
    """
    several, size = means.shape
    m, v, p, s = np.empty((4, several))
    U = np.empty((several, size))
    pending_m, pending_v, pending_p, pending_s = np.empty((4, pending.shape[0], several))
    rates, spreads = np.empty((2, pending.shape[0]))
    project_rows(pending[:waiting], means, covariances, pending_m, pending_v)
    for k in range(waiting):
        rates[k], spreads[k] = mixed_roughly(weights, pending_m[k], pending_v[k], pending_p[k], pending_s[k])
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        mean, variance = mixed(weights, m, v, p, s)
        n = belief_size(mean, variance)
        q, h, left = q_and_h(weights, m, v, U, p, s, R, reference_m, reference_v, cost)
        rough, spread = mixed_roughly(weights, m, v, p, s)
        near = 0.0
        for k in range(waiting):
            near += liken(
                pending[k], pending_v[k], pending_p[k], pending_s[k], rates[k], spreads[k],
                weights, v, U, p, s, rough, spread,
            )  # fmt: skip
        discount = own_discount(gammas[i], q, h)
        threshold = lenient(cost, look_up(cost, n0, n_step, g0, g_step, f, n + near, discount), left)
        propensity = 1.0 if mean > cost or mean > threshold else explore
        taken = chances[i] < propensity
        out[i, 0] = 1.0 if taken else 0.0
        out[i, 1] = propensity
        out[i, 2] = mean
        out[i, 3] = n
        out[i, 4] = discount
        out[i, 5] = threshold
        out[i, 6] = near
        if taken:
            pending[waiting] = X[i]
            pending_v[waiting], pending_p[waiting], pending_s[waiting] = v, p, s
            rates[waiting], spreads[waiting] = rough, spread
            waiting += 1
