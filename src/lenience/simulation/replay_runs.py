"""Run policies on the draws of a replay: compiled where possible, and otherwise by their own methods."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.offer_rows import OfferRows
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.policies.features.base import SelectivePolicy
from lenience.policies.features.baseline_rules import (
    ALWAYS,
    CONSEQUENTIAL,
    EPSILON,
    GREEDY,
    LENIENT,
    LINEAR_UCB,
    OPTIMISM,
    THOMPSON,
    UCB,
)
from lenience.policies.features.baselines import (
    AlwaysRule,
    ConsequentialRule,
    EpsilonRule,
    GreedyRule,
    LinearUpperBoundRule,
    OptimismRule,
    ThompsonRule,
    UpperBoundRule,
)
from lenience.policies.features.policy import FeaturePolicy
from lenience.simulation.parallel import jobs, run_in_parallel
from lenience.simulation.replay_draws import Draw, belief_at_start
from lenience.simulation.replay_result import ReplayObjective
from lenience.solvers.offers.label_table import label_table
from lenience.solvers.stopping.threshold_table import threshold_table


def run_all(
    chosen: Mapping[str, Any],
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: ReplayObjective,
    stakes: OfferRows | None,
    past: NDArray[np.int64] | None,
    draws: Sequence[Draw],
    workers: int | None,
    progress: Callable[[int], None] | None,
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, NDArray[np.int64]]]:
    """Run every policy on every draw; return by policy whom it accepted and, if rows offer a choice, what it chose."""
    parts = min(jobs(workers), len(draws))
    done = 0

    def after_one() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done)

    given = (rows, labels, objective, stakes, past)
    if parts == 1:
        found = [_run_policy(policy, *given, draws, after_one) for policy in chosen.values()]
    else:
        cuts = np.array_split(np.arange(len(draws)), parts)
        pieces = [(policy, *given, [draws[i] for i in cut]) for policy in chosen.values() for cut in cuts]
        blocks = []
        for block in run_in_parallel(_run_policy, pieces, workers):
            blocks.append(block)
            for _ in block[0]:
                after_one()
        groups = [blocks[i : i + parts] for i in range(0, len(blocks), parts)]
        found = [(np.concatenate([a for a, _ in group]), np.concatenate([c for _, c in group])) for group in groups]
    accepted = {name: block[0] for name, block in zip(chosen, found, strict=True)}
    return accepted, {} if past is None else {name: block[1] for name, block in zip(chosen, found, strict=True)}


def _run_policy(
    policy: Any,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: ReplayObjective,
    stakes: OfferRows | None,
    past: NDArray[np.int64] | None,
    draws: Sequence[Draw],
    after_one: Callable[[], None] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Run a policy on several draws; return whom it accepted and the positions of the offers that it chose."""
    count = len(draws[0].order)
    accepted = np.zeros((len(draws), count), dtype=np.bool_)
    choices = np.zeros((len(draws), 0 if past is None else count), dtype=np.int64)
    run = None if past is not None else _prepared(policy, rows, labels, objective, count, stakes)
    for i, drawn in enumerate(draws):
        if run is None:
            _run_any(policy, rows, labels, objective, drawn, accepted[i], stakes, past, choices[i])
        else:
            run(drawn, accepted[i])
        if after_one is not None:
            after_one()
    return accepted, choices


def _prepared(
    policy: Any,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: ReplayObjective,
    arrivals: int,
    stakes: OfferRows | None = None,
) -> Callable[[Draw, NDArray[np.bool_]], None]:
    """Return the function that runs a policy: compiled if it has the default model and this objective."""
    same = isinstance(policy, SelectivePolicy) and policy.objective == objective
    quick = _quick(policy) if same and not objective.label_delay else None
    if quick is not None and stakes is not None:
        return _prepared_offers(policy, quick, rows, labels, objective, arrivals, stakes)
    if quick is None:
        return lambda chance, accepted: _run_any(policy, rows, labels, objective, chance, accepted, stakes)
    from lenience.simulation.replay_engine import run_online

    rule, parameter = quick
    model = policy.fit(rows).model_
    design = model.design(rows)
    gammas = np.array([objective.discount_at(arrival) for arrival in range(arrivals)])
    table = threshold_table(objective.cost, float(min(gammas.max(), 1.0 - 1e-9)))
    refresh = bool(getattr(policy, "refresh", False))
    size = int(getattr(policy, "reference", 100))

    def run(chance: Draw, accepted: NDArray[np.bool_]) -> None:
        weights, means, covariances = belief_at_start(model, design, labels, chance)
        run_online(
            rule, parameter, design, labels, chance.order, chance.warm, chance.chances, chance.reference[:size],
            weights, means, covariances, table.cost, gammas, *table[1:], refresh, False, accepted,
        )  # fmt: skip

    return run


def _prepared_offers(
    policy: SelectivePolicy,
    quick: tuple[int, float],
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: ReplayObjective,
    arrivals: int,
    stakes: OfferRows,
) -> Callable[[Draw, NDArray[np.bool_]], None]:
    """Return the compiled function that runs a policy with offers."""
    from lenience.simulation.offer_engine import run_offers_online

    assert objective.offers is not None
    model = policy.fit(rows).model_
    gammas = np.array([objective.discount_at(arrival) for arrival in range(arrivals)])
    table = label_table(objective.offers, float(min(gammas.max(), 1.0 - 1e-9)))
    refresh, size = bool(getattr(policy, "refresh", False)), int(getattr(policy, "reference", 100))
    design, amounts, mean_cost = model.design(rows), stakes.amount / table.unit, objective.offers.mean_cost

    def run(chance: Draw, accepted: NDArray[np.bool_]) -> None:
        arguments: list[Any] = [
            chance.order, chance.warm, chance.chances, chance.reference[:size],
            *belief_at_start(model, design, labels, chance), mean_cost, gammas, *table[1:], refresh, False, accepted,
        ]  # fmt: skip
        run_offers_online(*quick, design, labels, amounts, stakes.cost, *arguments)

    return run


def _quick(policy: SelectivePolicy) -> tuple[int, float] | None:
    """Return the rule and its parameter for the compiled loop, or None if the loop does not support the policy."""
    if not (policy.model is None or type(policy.model) is BayesianLogistic):
        return None
    if type(policy) is FeaturePolicy:
        plain = policy.explore == 0.0 and policy.exposure is None and policy.reference <= 100
        return (LENIENT, 1.0) if plain else None
    known: dict[type, tuple[int, str]] = {
        GreedyRule: (GREEDY, "burn_in"),
        EpsilonRule: (EPSILON, "epsilon"),
        ThompsonRule: (THOMPSON, "scale"),
        UpperBoundRule: (UCB, "width"),
        OptimismRule: (OPTIMISM, "weight"),
        LinearUpperBoundRule: (LINEAR_UCB, "width"),
        ConsequentialRule: (CONSEQUENTIAL, "rate"),
        AlwaysRule: (ALWAYS, ""),
    }
    if type(policy) not in known:
        return None
    rule, name = known[type(policy)]
    return rule, float(getattr(policy, name)) if name else 0.0


def _run_any(
    policy: Any,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: ReplayObjective,
    chance: Draw,
    accepted: NDArray[np.bool_],
    stakes: OfferRows | None = None,
    past: NDArray[np.int64] | None = None,
    choices: NDArray[np.int64] | None = None,
) -> None:
    """Run a policy by its own ``decide`` and ``observe``, and show it each outcome when it is due.

    If rows offer a choice, write the position of the offer that the policy likes best to ``choices``. A policy that
    treats all offers alike makes the offer that was made in the ``past``.
    """
    own = not isinstance(policy, SelectivePolicy)
    if own or policy.objective.offers is None:
        stakes = None  # The policy treats all offers alike.
    if own:
        policy = copy.deepcopy(policy)
        if hasattr(policy, "fit"):
            policy.fit(rows)
    else:
        sample = chance.reference[: int(getattr(policy, "reference", 100))]
        policy.fit(rows).use_reference(rows[sample], None if stakes is None else stakes.pick(sample))
    if len(chance.warm):
        policy.observe(rows[chance.warm], np.ones(len(chance.warm)), labels[chance.warm])
    times, waits = np.arange(len(chance.order), dtype=np.float64), np.zeros(len(chance.order))
    if objective.label_delay:
        times, waits = np.cumsum(chance.gaps) / (objective.arrivals or 1.0), chance.delays * objective.label_delay
    due: list[tuple[float, int]] = []
    for t, i in enumerate(chance.order):
        while due and due[0][0] <= times[t]:
            row = chance.order[heappop(due)[1]]
            policy.observe(rows[row : row + 1], [True], labels[row : row + 1])
        if choices is not None and past is not None:
            choices[t] = past[i]
        if own:
            accepted[t] = bool(np.asarray(policy.decide(rows[i : i + 1])).ravel()[0])
            if accepted[t]:
                heappush(due, (float(times[t] + waits[t]), t))
            continue
        offer = None if stakes is None else stakes.take(i, i + 1)
        accepted[t] = policy.decide(rows[i : i + 1], float(times[t]), chance.chances[t : t + 1], offer)[0]
        if choices is not None and stakes is not None:
            choices[t] = _position(stakes, int(i), policy.log_[-1])
        if accepted[t]:
            heappush(due, (float(times[t] + waits[t]), t))


def _position(menus: OfferRows, row: int, decision: Any) -> int:
    """Return the position in a row's menu of the offer that a decision made."""
    first, end = int(menus.start[row]), int(menus.start[row + 1])
    same = (menus.amount[first:end] == decision.amount) & (menus.cost[first:end] == decision.cost)
    return int(np.argmax(same))
