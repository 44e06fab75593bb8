"""Baselines with the interface of :class:`~lenience.policies.features.policy.FeaturePolicy`.

The rules are in :mod:`lenience.policies.features.baseline_rules`. Two baselines have their own learner: LinUCB (Li et
al. 2010) is a ridge regression of outcomes. Consequential learning (Kilbertus et al. 2020) learns the policy itself by
the inverse-propensity gradient of its utility.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.offer_rows import OfferRows
from lenience.core.validation import real
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.gaussian import sigmoid
from lenience.policies.features.base import SelectivePolicy
from lenience.policies.features.baseline_rules import (
    ALWAYS,
    EPSILON,
    GREEDY,
    OPTIMISM,
    THOMPSON,
    UCB,
    acceptance,
    beta_acceptance,
)

LEAST_PROPENSITY = 0.05  # limits the weights of the inverse-propensity gradient


class _BaselineRule(SelectivePolicy):
    """A rule with one parameter, for any model of beliefs."""

    rule: ClassVar[int]

    def _parameter(self) -> float:
        """Return the parameter of the rule, checked."""
        raise NotImplementedError

    def _acceptance(self, row: NDArray[np.float64], mean: float, n: float, accepted: int, cost: float) -> float:
        parameter = self._parameter()
        if isinstance(self.model_, BayesianLogistic):
            m, v = self.model_.log_odds(row[None])
            return float(acceptance(self.rule, parameter, self.model_.weights_, m[0], v[0], accepted, cost))
        return beta_acceptance(self.rule, parameter, mean, n, accepted, cost)


class GreedyRule(_BaselineRule):
    """Accept where p̂ > c, after accepting everyone during a burn-in.

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic` or another model of :mod:`lenience.models`, or a Pipeline that ends
        in one. By default a logistic regression with one Gaussian belief.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    burn_in
        The number of acceptances at the start, regardless of p̂.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = GreedyRule(objective=Discounted(cost=0.6, discount=0.99), burn_in=2).fit([[0.0], [1.0]])
    >>> rule.decide([[0.0], [1.0], [0.0]])
    array([ True,  True, False])
    """

    rule = GREEDY

    def __init__(self, model: Any = None, objective: Any = None, burn_in: int = 0, random_state: Any = None) -> None:
        self.model = model
        self.objective = objective
        self.burn_in = burn_in
        self.random_state = random_state

    def _parameter(self) -> float:
        return real("burn_in", self.burn_in, least=0)


class EpsilonRule(_BaselineRule):
    """Accept where p̂ > c, and elsewhere with probability ε.

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic` or another model of :mod:`lenience.models`, or a Pipeline that ends
        in one. By default a logistic regression with one Gaussian belief.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    epsilon
        The probability of accepting where p̂ ≤ c, from 0 to 1.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = EpsilonRule(objective=Discounted(cost=0.6, discount=0.99), epsilon=0.2).fit([[0.0], [1.0]])
    >>> rule.propensity([[0.0]])
    array([0.2])
    """

    rule = EPSILON

    def __init__(
        self, model: Any = None, objective: Any = None, epsilon: float = 0.1, random_state: Any = None
    ) -> None:
        self.model = model
        self.objective = objective
        self.epsilon = epsilon
        self.random_state = random_state

    def _parameter(self) -> float:
        return real("epsilon", self.epsilon, least=0, most=1)


class ThompsonRule(_BaselineRule):
    """Accept with the probability that the success rate is above the cost.

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic` or another model of :mod:`lenience.models`, or a Pipeline that ends
        in one. By default a logistic regression with one Gaussian belief.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    scale
        The factor of the standard deviation, at least 0; 1 is Thompson sampling.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = ThompsonRule(objective=Discounted(cost=0.6, discount=0.99)).fit([[0.0], [1.0]])
    >>> rule.propensity([[0.0]]).round(3)
    array([0.5])
    """

    rule = THOMPSON

    def __init__(self, model: Any = None, objective: Any = None, scale: float = 1.0, random_state: Any = None) -> None:
        self.model = model
        self.objective = objective
        self.scale = scale
        self.random_state = random_state

    def _parameter(self) -> float:
        return real("scale", self.scale, least=0)


class UpperBoundRule(_BaselineRule):
    """Accept where an upper confidence bound of the log-odds is above the break-even (GLM-UCB).

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic` or another model of :mod:`lenience.models`, or a Pipeline that ends
        in one. By default a logistic regression with one Gaussian belief.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    width
        The number of standard errors in the bound, at least 0.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = UpperBoundRule(objective=Discounted(cost=0.6, discount=0.99)).fit([[0.0], [1.0]])
    >>> rule.decide([[0.0], [1.0]])
    array([ True,  True])
    """

    rule = UCB

    def __init__(self, model: Any = None, objective: Any = None, width: float = 1.0, random_state: Any = None) -> None:
        self.model = model
        self.objective = objective
        self.width = width
        self.random_state = random_state

    def _parameter(self) -> float:
        return real("width", self.width, least=0)


class OptimismRule(_BaselineRule):
    """Accept where one imagined success would raise the estimate above the break-even (in the style of PLOT).

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic` or another model of :mod:`lenience.models`, or a Pipeline that ends
        in one. By default a logistic regression with one Gaussian belief.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    weight
        The weight of the imagined success, at least 0.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = OptimismRule(objective=Discounted(cost=0.6, discount=0.99)).fit([[0.0], [1.0]])
    >>> rule.decide([[0.0], [1.0]])
    array([ True,  True])
    """

    rule = OPTIMISM

    def __init__(self, model: Any = None, objective: Any = None, weight: float = 1.0, random_state: Any = None) -> None:
        self.model = model
        self.objective = objective
        self.weight = weight
        self.random_state = random_state

    def _parameter(self) -> float:
        return real("weight", self.weight, least=0)


class AlwaysRule(_BaselineRule):
    """Accept everyone.

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic` or another model of :mod:`lenience.models`, or a Pipeline that ends
        in one. By default a logistic regression with one Gaussian belief.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = AlwaysRule(objective=Discounted(cost=0.6, discount=0.99)).fit([[0.0], [1.0]])
    >>> rule.decide([[0.0], [1.0]])
    array([ True,  True])
    """

    rule = ALWAYS

    def __init__(self, model: Any = None, objective: Any = None, random_state: Any = None) -> None:
        self.model = model
        self.objective = objective
        self.random_state = random_state

    def _parameter(self) -> float:
        return 0.0


class LinearUpperBoundRule(SelectivePolicy):
    """LinUCB: accept where x'θ + width·√(x'A⁻¹x) > c, with θ from a ridge regression of the outcomes on the features.

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic`, which defines how features are scaled, or a Pipeline that ends in
        one.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    width
        The factor of the standard error in the bound, at least 0.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = LinearUpperBoundRule(objective=Discounted(cost=0.6, discount=0.99)).fit([[0.0], [1.0]])
    >>> rule.decide([[0.0], [1.0]])
    array([ True,  True])
    """

    def __init__(self, model: Any = None, objective: Any = None, width: float = 1.0, random_state: Any = None) -> None:
        self.model = model
        self.objective = objective
        self.width = width
        self.random_state = random_state

    def _start(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        real("width", self.width, least=0)
        size = _design(self.model_, rows[:1]).shape[1]
        self.theta_, self.inverse_ = np.zeros(size), np.eye(size)

    def _learn(
        self, rows: NDArray[np.float64], outcomes: NDArray[np.float64], stakes: NDArray[np.float64] | None = None
    ) -> None:
        for x, y in zip(self.model_.design(rows), outcomes, strict=True):
            u = self.inverse_ @ x
            gain = u / (1.0 + x @ u)
            self.theta_ += gain * (y - x @ self.theta_)
            self.inverse_ -= np.outer(gain, u)

    def _acceptance(self, row: NDArray[np.float64], mean: float, n: float, accepted: int, cost: float) -> float:
        x = self.model_.design(row[None])[0]
        bound = x @ self.theta_ + self.width * math.sqrt(max(float(x @ self.inverse_ @ x), 0.0))
        return float(bound > cost)


class ConsequentialRule(SelectivePolicy):
    """Consequential learning of a semi-logistic policy (Kilbertus et al. 2020): accept where θ'x ≥ 0, else with σ(θ'x).

    θ climbs the utility Σ π(x)(y − c) by a stochastic gradient step for each label. The step is weighted by
    1/propensity, the probability (at least 0.05) with which the policy would accept the row now. Where labels are
    immediate, this is the propensity of the decision. Where the policy accepts with certainty its own gradient is 0,
    and from θ = 0 it would never move, so the logistic policy's gradient is used there. With offers the utility is Σ
    π a(y − c), in units of the mean amount, and θ'x falls by the difference of c's log-odds to the mean break-even's.

    Parameters
    ----------
    model
        A :class:`~lenience.models.BayesianLogistic`, which defines how features are scaled, or a Pipeline that ends in
        one.
    objective
        The objective: Discounted, FiniteHorizon or Delayed.
    rate
        The step size of the gradient ascent, above 0.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rule = ConsequentialRule(objective=Discounted(cost=0.6, discount=0.99)).fit([[0.0], [1.0]])
    >>> rule.decide([[0.0], [1.0]])
    array([ True,  True])
    """

    def __init__(self, model: Any = None, objective: Any = None, rate: float = 0.1, random_state: Any = None) -> None:
        self.model = model
        self.objective = objective
        self.rate = rate
        self.random_state = random_state

    def _start(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        real("rate", self.rate, above=0)
        self.theta_ = np.zeros(_design(self.model_, rows[:1]).shape[1])

    def _learn(
        self, rows: NDArray[np.float64], outcomes: NDArray[np.float64], stakes: NDArray[np.float64] | None = None
    ) -> None:
        if stakes is None:
            stakes = np.tile((1.0, self.objective.cost), (len(rows), 1))
        for x, y, (amount, cost) in zip(self.model_.design(rows), outcomes, stakes, strict=True):
            odds = self._odds(x, float(cost))
            p = sigmoid(odds)
            propensity = max(1.0 if odds >= 0.0 else p, LEAST_PROPENSITY)
            self.theta_ += self.rate * (amount * (y - cost)) * p * (1.0 - p) / propensity * x

    def _odds(self, x: NDArray[np.float64], cost: float) -> float:
        """Return θ'x; with offers, less by how much the break-even is above that of accepting everyone."""
        odds = float(self.theta_ @ x)
        return odds if self.objective.offers is None else odds - (logit(cost) - logit(self._break_even()))

    def _acceptance(self, row: NDArray[np.float64], mean: float, n: float, accepted: int, cost: float) -> float:
        odds = self._odds(self.model_.design(row[None])[0], cost)
        return 1.0 if odds >= 0.0 else float(sigmoid(odds))


def logit(rate: float) -> float:
    """Return the log-odds of a rate."""
    return math.log(rate / (1.0 - rate))


def _design(model: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the features as a linear learner uses them: scaled and with an intercept."""
    if not isinstance(model, BayesianLogistic):
        raise InputError(
            "model", model, "a BayesianLogistic, which defines how features are scaled, or a Pipeline that ends in one"
        )
    return model.design(rows)
