"""Decisions of a model that sees more outcomes than a policy can. The comparison shows what selective labels cost.

- :func:`hindsight_acceptances`: the default model has seen the outcomes of all rows in advance.
- :func:`full_information_acceptances`: the default model starts as the policies do and sees the outcome of every
  arrival at once, including the rejected. It does not need to explore, so it accepts if the expected success rate is
  above the break-even. A policy with the same model that sees only the accepted must explore to come close to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lenience.core.offer_rows import OfferRows
from lenience.core.offers import Offers
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.policies.features.baseline_rules import GREEDY
from lenience.simulation.replay_draws import Draw, belief_at_start


def hindsight_acceptances(
    rows: NDArray[np.float64], labels: NDArray[np.float64], cost: float | NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return whether each row is accepted by a model that knows all outcomes. ``cost`` may differ from row to row."""
    mean = BayesianLogistic().fit(rows, labels).beliefs(rows)[1]
    return np.asarray(mean > cost)


def hindsight_choices(
    rows: NDArray[np.float64], labels: NDArray[np.float64], menus: OfferRows
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the same where each row offers a choice: whether it is accepted, and the offer in its menu.

    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 2)), np.ones(50)
    >>> accepted, made = hindsight_choices(X, y, OfferRows.starters(np.full(50, 9.0), np.full(50, 0.4), [0.1]))
    >>> bool(accepted.all()), int(made.max())
    (True, 0)
    """
    mean = BayesianLogistic().fit(rows, labels).beliefs(rows)[1]
    made = np.array([menus.choose(row, float(rate)) for row, rate in enumerate(mean)], dtype=np.int64)
    return np.asarray(mean > menus.at(made).cost), made


def full_information_choices(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    menus: OfferRows,
    mean_cost: float,
    draws: Sequence[Draw],
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return for each arrival of each run what a model that sees every outcome accepts, and with which offer.

    >>> from lenience.simulation.replay_draws import draw
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 2)), np.ones(50)
    >>> runs = [draw(0, 50, 9, warm=0)]
    >>> menus = OfferRows.starters(np.full(50, 9.0), np.full(50, 0.4), [0.1])
    >>> accepted, _ = full_information_choices(X, y, menus, 0.4, runs)
    >>> bool((accepted == full_information_acceptances(X, y, 0.4, runs)).all())
    True
    """
    shape = len(draws), len(draws[0].order)
    accepted, made = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.int64)
    for run, chance in enumerate(draws):
        model = BayesianLogistic.for_cost(mean_cost).prepare(rows)
        if len(chance.warm):
            model.learn(rows[chance.warm], labels[chance.warm])
        for t, i in enumerate(chance.order):
            rate = float(model.beliefs(rows[i : i + 1])[1][0])
            made[run, t] = menus.choose(i, rate)
            accepted[run, t] = menus.best(i, rate)[2] > 0.0
            model.learn(rows[i : i + 1], labels[i : i + 1])
    return accepted, made


def full_information_acceptances(
    rows: NDArray[np.float64], labels: NDArray[np.float64], cost: float, draws: Sequence[Draw]
) -> NDArray[np.bool_]:
    """Return whether each arrival of each run is accepted by a model that sees every outcome.

    >>> from lenience.simulation.replay_draws import draw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = (rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    >>> runs = [draw(seed, 300, 400, warm=0) for seed in range(5)]
    >>> accepted = full_information_acceptances(X, y, 0.9, runs)
    >>> # Without labels no expected success rate is above 0.9, so a greedy policy would never start.
    >>> bool(accepted[:, 0].any()), bool(accepted[:, -100:].any())
    (False, True)
    """
    from lenience.simulation.replay_engine import run_online

    model = BayesianLogistic.for_cost(cost).prepare(rows)
    design = model.design(rows)
    accepted = np.zeros((len(draws), len(draws[0].order)), dtype=np.bool_)
    unused = np.zeros((2, 2))  # a table of thresholds, which the greedy rule does not need
    for run, chance in enumerate(draws):
        weights, means, covariances = belief_at_start(model, design, labels, chance)
        run_online(
            GREEDY, 0.0, design, labels, chance.order, chance.warm, chance.chances, chance.reference[:1], weights,
            means, covariances, cost, np.zeros(len(chance.order)), 0.0, 1.0, 0.0, 1.0, unused, False, True,
            accepted[run],
        )  # fmt: skip
    return accepted


def full_information_offers(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    costs: NDArray[np.float64],
    offers: Offers,
    draws: Sequence[Draw],
) -> NDArray[np.bool_]:
    """Return the same where break-evens differ from row to row. ``offers`` are the population's.

    >>> from lenience.simulation.replay_draws import draw
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 2)), np.ones(50)
    >>> runs = [draw(0, 50, 9, warm=0)]
    >>> accepted = full_information_offers(X, y, np.full(50, 0.4), Offers([1], [0.4]), runs)
    >>> bool((accepted == full_information_acceptances(X, y, 0.4, runs)).all())
    True
    """
    from lenience.simulation.offer_engine import run_offers_online
    from lenience.solvers.offers.label_table import label_table

    model = BayesianLogistic.for_cost(offers.mean_cost).prepare(rows)
    design = model.design(rows)
    accepted = np.zeros((len(draws), len(draws[0].order)), dtype=np.bool_)
    unused = list(label_table(offers, 0.0)[1:])  # The greedy rule does not look labels up.
    for run, chance in enumerate(draws):
        arguments = [
            costs, costs, chance.order, chance.warm, chance.chances, chance.reference[:1],
            *belief_at_start(model, design, labels, chance), offers.mean_cost, np.zeros(len(chance.order)), *unused,
            False, True, accepted[run],
        ]  # fmt: skip
        run_offers_online(GREEDY, 0.0, design, labels, *arguments)
    return accepted
