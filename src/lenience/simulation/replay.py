"""replay: what a policy would have earned online, on data whose outcomes are all known.

Rows are drawn from the data with replacement, as arrivals that are independent and alike; a policy sees an outcome only
if it accepts, and earns y − c for it. Every policy meets the same arrivals in the same order with the same luck (common
random numbers), so that differences are paired and their intervals narrow. Scales and the reference set come from the
features alone; ``warm`` labels, if any, are of rows drawn like the others and known to every policy.

Late labels. With a :class:`~lenience.objectives.delayed.Delayed` objective arrivals are a Poisson process, an outcome
becomes known an exponential delay after its acceptance, and every policy is told of it then and not before; rewards are
discounted by the arrival's number, which takes the chance of the arrival times out of them.

Regret is against the default model fitted to the outcomes of *all* rows and used greedily: what it could know at best,
not what a clairvoyant would earn. ``told`` is what it earns if it is told everyone's outcome as they come, the
rejected included: what a policy earns less is the price of seeing only the accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError, refusal
from lenience.core.validation import floats, mapped, whole
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.feature_model import checked_outcomes
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
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
from lenience.simulation.full_information import knowing, told
from lenience.simulation.replay_draws import Draw, draw
from lenience.solvers.stopping.threshold_table import threshold_table

OURS = "lenience"
TOLD = "told everyone's outcome"
POLICIES = "a mapping of names to policies with features"
Objective = Discounted | FiniteHorizon | Delayed


class Outcome(msgspec.Struct, frozen=True, eq=False):
    """What one policy did: by seed, its discounted and total reward; and the share accepted, in all and by group.

    ``behind`` is how much less it earned (discounted) than the first policy of the replay, with the half-width of its
    95 % interval, paired over seeds; ``regret`` is against the model that knows all outcomes.
    """

    policy: str
    discounted: np.ndarray[Any, np.dtype[np.float64]]
    total: np.ndarray[Any, np.dtype[np.float64]]
    regret: np.ndarray[Any, np.dtype[np.float64]]
    accepted: float
    by_group: dict[str, float]
    curve: np.ndarray[Any, np.dtype[np.float64]]  # the mean total reward up to each of some arrivals

    @property
    def mean(self) -> float:
        """The mean discounted reward."""
        return float(self.discounted.mean())

    @property
    def half_width(self) -> float:
        """Of the 95 % interval of the mean discounted reward."""
        return half_width(self.discounted)

    def behind(self, other: Outcome) -> tuple[float, float]:
        """How much less this policy earned than another, with the half-width of the paired 95 % interval."""
        difference = other.discounted - self.discounted
        return float(difference.mean()), half_width(difference)

    def __repr__(self) -> str:
        return f"Outcome({self.policy!r}, {self.mean:.2f} ± {self.half_width:.2f}, accepted {self.accepted:.3f})"


class Replayed(msgspec.Struct, frozen=True, eq=False):
    """The outcomes of all policies on the same arrivals."""

    objective: Objective
    arrivals: int
    warm: int
    seeds: int
    success_rate: float
    known: float  # the mean discounted reward of the model that knows all outcomes
    marks: tuple[int, ...]  # the arrivals at which the curves are taken
    outcomes: tuple[Outcome, ...]
    told: Outcome  # the default model, if it were told the outcome of everyone as they come

    def __getitem__(self, policy: str) -> Outcome:
        for outcome in self.outcomes:
            if outcome.policy == policy:
                return outcome
        raise InputError(f"policy must be one of {', '.join(o.policy for o in self.outcomes)}, not {policy!r}")

    def summary(self) -> list[dict[str, Any]]:
        """One row a policy: its reward and how far it is behind the first policy, with half-widths of 95 % intervals
        (none of a single run), its total and regret, and the share accepted, in all and by group.
        """
        first = self.outcomes[0]
        return [
            {
                "policy": one.policy,
                "discounted": one.mean,
                "half_width": one.half_width if self.seeds > 1 else None,
                "behind": one.behind(first)[0],
                "behind_half_width": one.behind(first)[1] if self.seeds > 1 else None,
                "total": float(one.total.mean()),
                "regret": float(one.regret.mean()),
                "accepted": one.accepted,
                "by_group": one.by_group,
            }
            for one in self.outcomes
        ]

    def frame(self, backend: str | None = None) -> Any:
        """The summary as a data frame (pandas, polars or pyarrow), each group's acceptance in a column of its own."""
        from lenience.core.frames import to_frame

        rows = []
        for row in self.summary():
            by_group = row.pop("by_group")
            rows.append({**row, **{f"accepted: {group}": share for group, share in by_group.items()}})
        return to_frame(rows, backend)

    def __str__(self) -> str:
        from lenience.reports.replay_report import rows_of
        from lenience.simulation.result import aligned

        headings, rows = rows_of(self)
        return aligned([headings, *rows])

    def __repr__(self) -> str:
        return f"Replayed({len(self.outcomes)} policies, {self.seeds} runs of {self.arrivals} arrivals)"


def half_width(values: NDArray[np.float64]) -> float:
    """Half the width of the 95 % interval of a mean, by Student's law: runs may be few."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return math.inf
    return float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))


def default_policies(objective: Objective, model: Any = None) -> dict[str, SelectivePolicy]:
    """Ours and its rivals, each at its default; with the model given, or each with its own default."""
    return {
        OURS: FeaturePolicy(model, objective),
        "greedy": GreedyRule(model, objective),
        "greedy, burn-in 20": GreedyRule(model, objective, burn_in=20),
        "ε-greedy 0.1": EpsilonRule(model, objective),
        "Thompson": ThompsonRule(model, objective),
        "GLM-UCB": UpperBoundRule(model, objective),
        "LinUCB": LinearUpperBoundRule(model, objective),
        "PLOT": OptimismRule(model, objective),
        "consequential": ConsequentialRule(model, objective),
        "always": AlwaysRule(model, objective),
    }


def replay(
    X: ArrayLike,
    y: ArrayLike,
    objective: Objective,
    policies: Mapping[str, SelectivePolicy] | None = None,
    seeds: int = 50,
    arrivals: int | None = None,
    warm: int = 0,
    groups: Sequence[Any] | None = None,
    first_seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Replayed:
    """Run every policy online on the data, ``seeds`` times over.

    ``arrivals`` is how many come in each run: by default the horizon, or as many as carry all but a thousandth of the
    discounted reward, at most 10,000. ``groups`` names each row's group; acceptance is reported for each. ``progress``
    is called with the number of runs done.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))
    >>> found = replay(X, y, Discounted(cost=0.6, discount=0.98), seeds=10)
    >>> found["lenience"].mean > found["always"].mean
    True
    >>> found
    Replayed(10 policies, 10 runs of 342 arrivals)
    >>> print(found)
    policy               reward   ± 95 %   lead ...
    lenience ...
    >>> found.frame("pyarrow").column_names[:3]
    ['policy', 'discounted', 'half_width']
    """
    rows, labels, names = _checked(X, y, groups)
    count = _arrivals(objective, arrivals)
    runs, start = whole("seeds", seeds, least=1), whole("warm", warm)
    several = dict(default_policies(objective) if policies is None else mapped("policies", policies, POLICIES))
    if not several:
        raise InputError("policies must name at least one policy")
    weights = _weights(objective, count)
    marks = tuple(int(mark) for mark in np.unique(np.rint(np.geomspace(1, count, 60)).astype(np.int64)))
    taken = {name: np.zeros((runs, count), dtype=np.bool_) for name in several}
    draws = [draw(first_seed + seed, len(labels), count, start) for seed in range(runs)]
    done = 0
    for name, policy in several.items():
        run = _prepared(policy, rows, labels, objective, count)
        for seed in range(runs):
            run(draws[seed], taken[name][seed])
            done += 1
            if progress is not None:
                progress(done)
    orders = np.array([one.order for one in draws])
    gains = labels[orders] - objective.cost
    known = (knowing(rows, labels, objective.cost)[orders] * gains) @ weights

    def outcome(name: str, accepted: NDArray[np.bool_]) -> Outcome:
        earned = accepted * gains
        totals = np.cumsum(earned, axis=1)
        return Outcome(
            name,
            earned @ weights,
            totals[:, -1],
            known - earned @ weights,
            float(accepted.mean()),
            {group: _share(accepted, names[orders] == group) for group in _ordered(names)},
            totals[:, [mark - 1 for mark in marks]].mean(axis=0),
        )

    return Replayed(
        objective, count, start, runs, float(labels.mean()), float(known.mean()), marks,
        tuple(outcome(name, taken[name]) for name in several),
        outcome(TOLD, told(rows, labels, objective.cost, draws)),
    )  # fmt: skip


def late(objective: Objective, label_delay: float) -> Delayed:
    """A discounted objective whose outcomes come late, by so many arrivals on average: time is counted in arrivals.

    >>> late(Discounted(0.8, 0.99), 20).discount
    0.99
    """
    if not objective.stationary or objective.discount == 0.0:
        raise refusal("objective", objective, "discounted by a factor above 0 where labels come late")
    return Delayed(objective.cost, 1.0, 1.0 / objective.discount - 1.0, label_delay)


def _prepared(
    policy: SelectivePolicy,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: Objective,
    arrivals: int,
) -> Callable[[Draw, NDArray[np.bool_]], None]:
    """How to run a policy: compiled where it has the default model and this objective, else by its own decide and
    observe."""
    quick = None if objective.label_delay or policy.objective != objective else _quick(policy)
    if quick is None:
        return lambda chance, accepted: _run_any(policy, rows, labels, objective, chance, accepted)
    from lenience.simulation.replay_engine import run_online

    rule, parameter = quick
    model = policy.fit(rows).model_
    design, weights, means, covariances = model.design(rows), model.weights_, model.means_, model.covariances_
    gammas = np.array([objective.discount_at(arrival) for arrival in range(arrivals)])
    table = threshold_table(objective.cost, float(min(gammas.max(), 1.0 - 1e-9)))
    refresh = bool(getattr(policy, "refresh", False))
    size = int(getattr(policy, "reference", 100))

    def run(chance: Draw, accepted: NDArray[np.bool_]) -> None:
        run_online(
            rule, parameter, design, labels, chance.order, chance.warm, chance.chances, chance.reference[:size],
            weights,
            means, covariances, table.cost, gammas, *table[1:], refresh, False, accepted,
        )  # fmt: skip

    return run


def _quick(policy: SelectivePolicy) -> tuple[int, float] | None:
    """The rule and the parameter for the compiled loop, where it knows the policy."""
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
    policy: SelectivePolicy,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    objective: Objective,
    chance: Draw,
    accepted: NDArray[np.bool_],
) -> None:
    """Decide and observe, one by one; every outcome is told when it is due."""
    policy.fit(rows).use_reference(rows[chance.reference[: int(getattr(policy, "reference", 100))]])
    if len(chance.warm):
        policy.observe(rows[chance.warm], np.ones(len(chance.warm)), labels[chance.warm])
    times, waits = np.arange(len(chance.order), dtype=np.float64), np.zeros(len(chance.order))
    if objective.label_delay:
        times, waits = np.cumsum(chance.gaps) / (objective.arrivals or 1.0), chance.delays * objective.label_delay
    due: list[tuple[float, int]] = []
    for t, i in enumerate(chance.order):
        while due and due[0][0] <= times[t]:
            heard = chance.order[heappop(due)[1]]
            policy.observe(rows[heard : heard + 1], [True], labels[heard : heard + 1])
        accepted[t] = policy.decide(rows[i : i + 1], float(times[t]), chance.chances[t : t + 1])[0]
        if accepted[t]:
            heappush(due, (float(times[t] + waits[t]), t))


def _checked(
    X: ArrayLike, y: ArrayLike, groups: Sequence[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
    rows = np.ascontiguousarray(floats("X", X))
    if rows.ndim != 2 or not rows.size:
        raise InputError(f"X must be a table of rows by features, not of shape {rows.shape}")
    if np.isinf(rows).any():
        raise InputError(f"X must be finite numbers, or NaN where one is missing, not {rows[np.isinf(rows)][0]:g}")
    names = np.array([] if groups is None else [str(group) for group in groups], dtype=object)
    if groups is not None and len(names) != len(rows):
        raise InputError(f"groups must name a group for each of the {len(rows)} rows, not {len(names)}")
    return rows, checked_outcomes(y, len(rows)), names if len(names) else np.full(len(rows), "", dtype=object)


def _ordered(names: NDArray[Any]) -> list[str]:
    return sorted({str(name) for name in names} - {""})


def _share(taken: NDArray[np.bool_], where: NDArray[np.bool_]) -> float:
    return float(taken[where].mean()) if where.any() else math.nan


def _arrivals(objective: Objective, arrivals: int | None) -> int:
    if arrivals is not None:
        return whole("arrivals", arrivals, least=1)
    if objective.horizon is not None:
        return objective.horizon
    if objective.discount == 0.0:
        return 1
    return min(max(math.ceil(math.log(1e-3) / math.log(objective.discount)), 1), 10_000)


def _weights(objective: Objective, count: int) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = objective.discount ** np.arange(count, dtype=np.float64)
    return weights
