"""compare_policies: several policies in one world, side by side on the same individuals.

The replications are cut into blocks that do not depend on the number of workers, each block of each policy is a task,
and joblib runs the tasks: on this machine's cores, or, inside ``joblib.parallel_config(backend="dask")`` or
``"ray"``, on a cluster. Chance comes by counter, so the result is the same wherever a task runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.counter_rng import replication_keys
from lenience.core.errors import InputError, TooLargeError
from lenience.core.protocols import Accepts, looks_at_pending
from lenience.core.validation import check_cost, having, listed, real, whole
from lenience.policies.registry import label_of
from lenience.simulation.block import ReplicationBlock, joined
from lenience.simulation.late_labels import LateLabels
from lenience.simulation.reference_policies import OPTIMUM, references
from lenience.simulation.result import Simulation
from lenience.simulation.stream import World

BLOCK = 1024  # replications a task
MOST_BYTES = 256e6  # of late labels held by a task
MOST_DECISIONS = 1e13  # about ten hours on one core
POLICIES = "a policy with an acceptance(n, s), such as Greedy(cost=0.8), or several"
WORLD = (
    "a world, such as Bernoulli(p=0.7), FromPrior, Mixture, RandomWalk, ChangePoints, Redrawn, LateLabels or PastRows; "
    "what "
    "a world of one's own needs, an open and a fixed_rates, is in docs/simulate.md"
)

PolicyChoice = Accepts | Sequence[Accepts]


class Task(NamedTuple):
    """One policy (or one a segment) through one block of replications."""

    policies: tuple[Accepts, ...]
    world: World
    priors: tuple[Belief, ...]  # one, or one a segment
    cost: float
    discount: float
    horizon: int
    checkpoints: NDArray[np.int64]
    seed: int
    first: int
    size: int


def compare_policies(
    policies: Mapping[str, PolicyChoice] | Iterable[Accepts] | Accepts,
    world: World,
    *,
    cost: float,
    horizon: int,
    prior: Belief | None = None,
    discount: float = 1.0,
    replications: int = 1000,
    seed: int = 0,
    optimum: bool = True,
    workers: int | None = None,
    progress: bool = False,
    checkpoints: Iterable[int] | None = None,
) -> Simulation:
    """Put policies through the same ``horizon`` arrivals in each of ``replications`` replications of a world.

    All start at ``prior`` (by default the world's own, or Beta(1, 1)). In a world of segments a policy is applied to
    each segment's own belief, or a sequence gives one policy a segment. With ``optimum`` the best policy of the
    problem that the prior describes (nothing drifts, labels are prompt) runs along, and the others are compared with
    it. Where the world breaks what it assumes, its name and ``note`` of the result say so; where labels are late by an
    exponential law, exposure limits run along as well and are what the others are compared with.

    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> from lenience.simulation.worlds import FromPrior
    >>> found = compare_policies(Greedy(0.5), FromPrior(Belief(4, 2.4)), cost=0.5, horizon=500, discount=0.98, seed=1)
    >>> print(found)
    policy    discounted    regret          behind optimum   accepted   shut out               learning cost
    optimum   6.95 ± 0.51   0.645 ± 0.075   0                313 ± 14   0.071 [0.057, 0.089]   0.791 ± 0.05
    greedy    5.72 ± 0.5    1.92 ± 0.24     1.27 ± 0.26      212 ± 15   0.255 [0.229, 0.283]   0.264 ± 0.015
    """
    prepared = prepare(
        policies, world, cost, horizon, prior, discount, replications, seed, optimum=optimum, checkpoints=checkpoints
    )
    return prepared.finished(list(run_tasks(prepared.tasks, workers, progress)))


class PreparedComparison(NamedTuple):
    """All that a comparison needs to be run anywhere, and put together afterwards."""

    names: list[str]  # the policy of each task
    tasks: list[Task]
    baseline: str | None  # the policy that the others are compared with
    note: str

    def finished(self, blocks: Sequence[ReplicationBlock]) -> Simulation:
        """The comparison, from the blocks of its tasks in their order."""
        parts: dict[str, list[ReplicationBlock]] = {}
        for name, block in zip(self.names, blocks, strict=True):
            parts.setdefault(name, []).append(block)
        task = self.tasks[0]
        return Simulation(
            world=task.world,
            cost=task.cost,
            discount=task.discount,
            horizon=task.horizon,
            prior=task.priors[0] if len(task.priors) == 1 else task.priors,
            seed=task.seed,
            checkpoints=task.checkpoints,
            runs={name: joined(each) for name, each in parts.items()},
            baseline=self.baseline,
            note=self.note,
        )


def prepare(
    policies: Mapping[str, PolicyChoice] | Iterable[Accepts] | Accepts,
    world: World,
    cost: float,
    horizon: int,
    prior: Belief | None,
    discount: float,
    replications: int,
    seed: int,
    *,
    optimum: bool = True,
    checkpoints: Iterable[int] | None = None,
) -> PreparedComparison:
    """Check the arguments of :func:`compare_policies` and cut the work into tasks."""
    if isinstance(world, type) or not (hasattr(world, "fixed_rates") and hasattr(world, "open")):
        raise InputError("world", world, WORLD)
    goal = check_cost(cost)
    length = whole("horizon", horizon, least=1)
    factor = real("discount", discount, least=0, most=1)
    total = whole("replications", replications, least=1)
    chance = whole("seed", seed)
    if not isinstance(optimum, bool):
        raise InputError("optimum", optimum, "true or false")
    starts = (check_prior(prior),) if prior is not None else _priors_of(world)
    chosen = _named(policies, world)
    along = optimum and OPTIMUM not in chosen
    if not chosen and not along:
        raise InputError.because("must be at least one, unless optimum is true", "policies", code="missing")
    decisions = total * float(length) * (len(chosen) + along)
    if decisions > MOST_DECISIONS:
        raise TooLargeError(
            f"Simulating {total:,} replications of {length:,} arrivals for {len(chosen) + along} policies",
            size=decisions,
            allowed_size=MOST_DECISIONS,
            unit="decisions",
            field=("replications", "horizon"),
            hint="Use fewer replications or fewer policies.",
        )
    if along:
        beside = references(world, goal, factor, length, starts)
        chosen = {**beside.policies, **chosen}
    checks = default_checkpoints(length) if checkpoints is None else _check_checkpoints(checkpoints, length)
    size = block_size(world, length)
    tasks = [
        (name, Task(each, world, starts, goal, factor, length, checks, chance, first, min(size, total - first)))
        for name, each in chosen.items()
        for first in range(0, total, size)
    ]
    names, work = [name for name, _ in tasks], [task for _, task in tasks]
    if along:
        return PreparedComparison(names, work, beside.baseline, beside.note)
    return PreparedComparison(names, work, OPTIMUM if OPTIMUM in chosen else None, "")


def run_tasks(tasks: Sequence[Task], workers: int | None, progress: bool) -> Iterator[ReplicationBlock]:
    """The blocks of the tasks, in their order."""
    if workers is not None and (not isinstance(workers, int) or workers == 0):
        raise InputError("workers", workers, "a whole number that is not 0, or nothing")
    try:
        from joblib import Parallel, delayed
    except ImportError as error:
        if workers not in (None, 1):
            raise InputError.missing_package("several workers", "joblib", "simulate") from error
        yield from map(run_task, tasks)
        return
    # Without a number of workers of our own, whatever joblib.parallel_config says holds.
    found = Parallel(n_jobs=workers, return_as="generator")(delayed(run_task)(task) for task in tasks)
    if not progress:
        yield from found
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(found, "Simulating", len(tasks), console=Console(stderr=True))


def run_task(task: Task) -> ReplicationBlock:
    """One task, by the compiled road where it can be taken."""
    from lenience.simulation.engine_generic import run_direct
    from lenience.simulation.engine_lattice import run_lattice

    keys = replication_keys(task.seed, task.first, task.size)
    rates = task.world.fixed_rates(keys)
    rest = (task.cost, task.discount, task.horizon, task.checkpoints)
    policy = task.policies[0]
    plain = len(task.policies) == 1 and getattr(policy, "memory", 1.0) == 1.0 and not looks_at_pending(policy)
    if rates is not None and plain:
        return run_lattice(policy, keys, rates, task.priors[0], *rest)
    return run_direct(task.policies, task.world.open(keys, task.horizon), task.priors, *rest)


def default_checkpoints(horizon: int) -> NDArray[np.int64]:
    """Every one of the first 50 arrivals, then about 25 checkpoints to a factor of ten.

    >>> default_checkpoints(60).tolist()[47:]
    [48, 49, 50, 55, 60]
    """
    early = np.arange(1, min(horizon, 50) + 1)
    count = 1 + math.ceil(25 * math.log10(max(horizon / 50, 1.0)))
    late = np.rint(np.geomspace(50, max(horizon, 50), max(count, 2))).astype(np.int64)
    found = np.unique(np.concatenate([early, late, [horizon]]))
    return found[found <= horizon].astype(np.int64)


def block_size(world: World, horizon: int) -> int:
    """How many replications a task holds: fewer where labels are late or past rows are drawn."""
    segments = len(getattr(getattr(world, "world", world), "shares", (0,)))
    late = isinstance(world, LateLabels) and world.delay.kind != "none"
    each = 8.0 * horizon * segments if late else 8.0 * horizon if hasattr(world, "order") else 0.0
    return max(1, min(BLOCK, int(MOST_BYTES / each))) if each else BLOCK


def _priors_of(world: World) -> tuple[Belief, ...]:
    inner: Any = getattr(world, "world", world)
    found = getattr(inner, "prior", None)
    if isinstance(found, tuple):
        return found
    return (found if isinstance(found, Belief) else Belief(2, 1),)


def _named(
    policies: Mapping[str, PolicyChoice] | Iterable[Accepts] | Accepts, world: World
) -> dict[str, tuple[Accepts, ...]]:
    given: Any = policies
    if hasattr(given, "acceptance"):
        given = [given]
    if not isinstance(given, Mapping):
        unnamed, given = listed("policies", given, POLICIES), {}
        for policy in unnamed:
            name = repr(policy) if isinstance(policy, type | Sequence) else label_of(policy)
            if name in given:
                raise InputError.because(
                    f"must have different names; two are called {name!r}",
                    "policies",
                    value=name,
                    hint="Name them with a mapping.",
                    code="duplicate",
                )
            given[name] = policy
    chosen: dict[str, tuple[Accepts, ...]] = {}
    for name, choice in given.items():
        field = f"policies[{name!r}]"
        several = (choice,) if hasattr(choice, "acceptance") else tuple(listed(field, choice, POLICIES))
        if not several:
            raise InputError(field, choice, POLICIES)
        for policy in several:
            having(field, policy, "acceptance", POLICIES)
        chosen[name] = several
    segments = world.open(replication_keys(0, 0, 1), 1).segments
    for name, several in chosen.items():
        if len(several) not in (1, segments):
            raise InputError.because(
                f"must be one policy or one for each of {segments} segments, not {len(several)}",
                f"policies[{name!r}]",
                label=name,
                value=len(several),
                code="length_mismatch",
            )
    return chosen


def _check_checkpoints(checkpoints: Iterable[int], horizon: int) -> NDArray[np.int64]:
    wanted = listed("checkpoints", checkpoints, "a list of arrivals")
    found = sorted({whole("checkpoints", each, least=1, most=horizon) for each in wanted} | {horizon})
    return np.asarray(found, dtype=np.int64)
