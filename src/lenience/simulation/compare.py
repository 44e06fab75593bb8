"""compare_policies: run several policies in one world, side by side on the same individuals.

The replications are divided into blocks that do not depend on the number of workers. Each block of each policy is a
task, and joblib runs the tasks: on the cores of this machine, or on a cluster inside
``joblib.parallel_config(backend="dask")`` or ``"ray"``. Random numbers come from counters, so the result does not
depend on where a task runs.
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
from lenience.core.offers import Offers
from lenience.core.protocols import Accepts, OfferRule, looks_at_pending
from lenience.core.validation import check_cost, having, listed, real, whole
from lenience.policies.registry import label_of
from lenience.simulation.block import ReplicationBlock, joined
from lenience.simulation.late_labels import LateLabels
from lenience.simulation.parallel import run_in_parallel
from lenience.simulation.reference_policies import OPTIMUM, offer_references, references
from lenience.simulation.result import Simulation
from lenience.simulation.stream import World

BLOCK = 1024  # replications per task
MOST_BYTES = 256e6  # of late labels that a task holds
MOST_DECISIONS = 1e13  # about ten hours on one core
POLICIES = "a policy with an acceptance(n, s), such as Greedy(cost=0.8), or several"
OFFER_POLICIES = "a policy with an offer_acceptance(n, s, offers), such as GreedyOffers(), or several"
WORLD = (
    "a world, such as Bernoulli(p=0.7), FromPrior, Mixture, RandomWalk, ChangePoints, Redrawn, LateLabels or PastRows; "
    "or your own, with the methods open and fixed_rates (docs/simulate.md)"
)

Rule = Accepts | OfferRule
PolicyChoice = Rule | Sequence[Rule]


class Task(NamedTuple):
    """One policy (or one for each segment) through one block of replications."""

    policies: tuple[Any, ...]  # with offers they may look at the offer
    world: World
    priors: tuple[Belief, ...]  # one, or one for each segment
    cost: float  # the lowest break-even if there are offers
    discount: float
    horizon: int
    checkpoints: NDArray[np.int64]
    seed: int
    first: int
    size: int
    offers: Offers | None = None


def compare_policies(
    policies: Mapping[str, PolicyChoice] | Iterable[Rule] | Rule,
    world: World,
    *,
    horizon: int,
    cost: float | None = None,
    offers: Offers | None = None,
    prior: Belief | None = None,
    discount: float = 1.0,
    replications: int = 1000,
    seed: int = 0,
    optimum: bool = True,
    workers: int | None = None,
    progress: bool = False,
    checkpoints: Iterable[int] | None = None,
) -> Simulation:
    """Run policies on the same arrivals in many replications of a world.

    All policies start from the same prior. With ``optimum``, the best policy for the prior runs along as the baseline.
    It assumes that p does not drift and labels are prompt. If the world violates this, the name of the optimum and the
    ``note`` of the result say so. If labels are late by an exponential law, exposure limits run along too, and are the
    baseline.

    Parameters
    ----------
    policies : policy, iterable of policies, or mapping of str to policy
        The policies, by name if you wish. In a world of segments each policy applies to the belief of each segment; a
        sequence in a mapping gives one policy per segment.
    world : World
        The world, such as ``Bernoulli(p=0.7)``.
    horizon : int
        The number of arrivals in each replication.
    cost : float, optional
        The break-even success rate, strictly between 0 and 1. Give either cost or offers.
    offers : Offers, optional
        The amounts and break-evens that arrivals bring, drawn by their shares. Rewards are then in money. Policies may
        look at the offer (``offer_acceptance``); one that does not treats all offers alike.
    prior : Belief, optional
        The belief at the start; by default that of the world, or Beta(1, 1).
    discount : float, optional
        The discount factor from one arrival to the next, from 0 to 1.
    replications : int, optional
        The number of replications.
    seed : int, optional
        Seed of the random numbers.
    optimum : bool, optional
        Whether the optimum runs along.
    workers : int, optional
        The number of processes; by default as joblib is configured.
    progress : bool, optional
        Whether to show a progress bar.
    checkpoints : iterable of int, optional
        The arrivals at which acceptance and regret are recorded.

    Returns
    -------
    Simulation
        The results with confidence intervals.

    Raises
    ------
    InputError
        If an argument is invalid.
    TooLargeError
        If there are too many decisions to simulate.

    Examples
    --------
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> from lenience.simulation.worlds import FromPrior
    >>> world = FromPrior(Belief(4, 2.4))
    >>> simulation = compare_policies(Greedy(0.5), world, cost=0.5, horizon=500, discount=0.98, seed=1)
    >>> print(simulation)
    policy    discounted    regret          behind optimum   accepted   shut out               learning cost
    optimum   6.95 ± 0.51   0.645 ± 0.075   0                313 ± 14   0.071 [0.057, 0.089]   0.791 ± 0.05
    greedy    5.72 ± 0.5    1.92 ± 0.24     1.27 ± 0.26      212 ± 15   0.255 [0.229, 0.283]   0.264 ± 0.015

    Arrivals that bring offers:

    >>> from lenience.policies import GreedyOffers
    >>> from lenience import Offers
    >>> offers = Offers(amount=[100, 1000], cost=[0.5, 0.5])
    >>> simulation = compare_policies(GreedyOffers(), world, offers=offers, horizon=200, replications=200)
    >>> simulation.behind("greedy-offers").lower > 0
    True
    """
    prepared = prepare(
        policies,
        world,
        cost,
        horizon,
        prior,
        discount,
        replications,
        seed,
        optimum=optimum,
        checkpoints=checkpoints,
        offers=offers,
    )
    return prepared.finished(list(run_tasks(prepared.tasks, workers, progress)))


class PreparedComparison(NamedTuple):
    """The tasks of a comparison, which can run anywhere, and what is needed to assemble their results."""

    names: list[str]  # the policy of each task
    tasks: list[Task]
    baseline: str | None  # the policy that the others are compared with
    note: str

    def finished(self, blocks: Sequence[ReplicationBlock]) -> Simulation:
        """Assemble the comparison from the blocks of its tasks, in the order of the tasks."""
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
            offers=task.offers,
        )


def prepare(
    policies: Mapping[str, PolicyChoice] | Iterable[Rule] | Rule,
    world: World,
    cost: float | None,
    horizon: int,
    prior: Belief | None,
    discount: float,
    replications: int,
    seed: int,
    *,
    optimum: bool = True,
    checkpoints: Iterable[int] | None = None,
    offers: Offers | None = None,
) -> PreparedComparison:
    """Check the arguments of :func:`compare_policies` and divide the work into tasks."""
    if isinstance(world, type) or not (hasattr(world, "fixed_rates") and hasattr(world, "open")):
        raise InputError("world", world, WORLD)
    goal = _lowest_break_even(cost, offers)
    length = whole("horizon", horizon, least=1)
    factor = real("discount", discount, least=0, most=1)
    total = whole("replications", replications, least=1)
    chance = whole("seed", seed)
    if not isinstance(optimum, bool):
        raise InputError("optimum", optimum, "true or false")
    priors = (check_prior(prior),) if prior is not None else _priors_of(world)
    chosen = _named(policies, world, offers is not None)
    with_optimum = optimum and OPTIMUM not in chosen
    if not chosen and not with_optimum:
        raise InputError.because("must contain at least one policy, unless optimum is true", "policies", code="missing")
    decisions = total * float(length) * (len(chosen) + with_optimum)
    if decisions > MOST_DECISIONS:
        raise TooLargeError(
            f"Simulating {total:,} replications of {length:,} arrivals for {len(chosen) + with_optimum} policies",
            size=decisions,
            allowed_size=MOST_DECISIONS,
            unit="decisions",
            field=("replications", "horizon"),
            hint="Use fewer replications or fewer policies.",
        )
    if with_optimum:
        added = (
            references(world, goal, factor, length, priors)
            if offers is None
            else offer_references(world, offers, factor, length, priors)
        )
        chosen = {**added.policies, **chosen}
    checks = default_checkpoints(length) if checkpoints is None else _check_checkpoints(checkpoints, length)
    size = block_size(world, length)
    tasks = [
        (name, Task(each, world, priors, goal, factor, length, checks, chance, first, min(size, total - first), offers))
        for name, each in chosen.items()
        for first in range(0, total, size)
    ]
    names, work = [name for name, _ in tasks], [task for _, task in tasks]
    if with_optimum:
        return PreparedComparison(names, work, added.baseline, added.note)
    return PreparedComparison(names, work, OPTIMUM if OPTIMUM in chosen else None, "")


def run_tasks(tasks: Sequence[Task], workers: int | None, progress: bool) -> Iterator[ReplicationBlock]:
    """Run the tasks and yield their blocks in order."""
    blocks = run_in_parallel(run_task, [(task,) for task in tasks], workers)
    if not progress:
        yield from blocks
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(blocks, "Simulating", len(tasks), console=Console(stderr=True))


def run_task(task: Task) -> ReplicationBlock:
    """Run one task, with the compiled engine if possible."""
    from lenience.simulation.engine_generic import run_direct
    from lenience.simulation.engine_lattice import run_lattice

    keys = replication_keys(task.seed, task.first, task.size)
    rates = task.world.fixed_rates(keys)
    if task.offers is not None:
        from lenience.simulation.engine_offers import run_offers

        stream = task.world.open(keys, task.horizon)
        return run_offers(
            task.policies, stream, rates, task.priors, task.offers, task.discount, task.horizon, task.checkpoints
        )
    rest = (task.cost, task.discount, task.horizon, task.checkpoints)
    policy = task.policies[0]
    plain = len(task.policies) == 1 and getattr(policy, "memory", 1.0) == 1.0 and not looks_at_pending(policy)
    if rates is not None and plain:
        return run_lattice(policy, keys, rates, task.priors[0], *rest)
    return run_direct(task.policies, task.world.open(keys, task.horizon), task.priors, *rest)


def default_checkpoints(horizon: int) -> NDArray[np.int64]:
    """Return each of the first 50 arrivals, then about 25 checkpoints for each factor of ten.

    >>> default_checkpoints(60).tolist()[47:]
    [48, 49, 50, 55, 60]
    """
    early = np.arange(1, min(horizon, 50) + 1)
    count = 1 + math.ceil(25 * math.log10(max(horizon / 50, 1.0)))
    late = np.rint(np.geomspace(50, max(horizon, 50), max(count, 2))).astype(np.int64)
    arrivals = np.unique(np.concatenate([early, late, [horizon]]))
    return arrivals[arrivals <= horizon].astype(np.int64)


def block_size(world: World, horizon: int) -> int:
    """Return how many replications a task holds: fewer if labels are late or past rows are drawn."""
    segments = len(getattr(getattr(world, "world", world), "shares", (0,)))
    late = isinstance(world, LateLabels) and world.delay.kind != "none"
    each = 8.0 * horizon * segments if late else 8.0 * horizon if hasattr(world, "order") else 0.0
    return max(1, min(BLOCK, int(MOST_BYTES / each))) if each else BLOCK


def _priors_of(world: World) -> tuple[Belief, ...]:
    """Return the prior of a world, or one for each of its segments; Beta(1, 1) if it has none."""
    inner: Any = getattr(world, "world", world)
    prior = getattr(inner, "prior", None)
    if isinstance(prior, tuple):
        return prior
    return (prior if isinstance(prior, Belief) else Belief(2, 1),)


def _lowest_break_even(cost: float | None, offers: Offers | None) -> float:
    """Check that there is either a cost or offers; return the lowest break-even."""
    if (cost is None) == (offers is None):
        raise InputError.because(
            "Give either cost or offers",
            ("cost", "offers"),
            label="",
            code="missing" if cost is None else "conflicting_fields",
        )
    if offers is None:
        return check_cost(cost)
    if not isinstance(offers, Offers):
        raise InputError("offers", offers, "an Offers object, such as Offers(amount=[1, 5], cost=[0.8, 0.8])")
    from lenience.simulation.engine_offers import lowest_cost

    return lowest_cost(offers)


def _named(
    policies: Mapping[str, PolicyChoice] | Iterable[Rule] | Rule, world: World, with_offers: bool
) -> dict[str, tuple[Any, ...]]:
    """Return the policies by name, each as a tuple: one for all segments, or one for each."""

    def decides(thing: object) -> bool:
        return hasattr(thing, "acceptance") or (with_offers and hasattr(thing, "offer_acceptance"))

    given: Any = policies
    expected = OFFER_POLICIES if with_offers else POLICIES
    if decides(given):
        given = [given]
    if not isinstance(given, Mapping):
        unnamed, given = listed("policies", given, expected), {}
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
    chosen: dict[str, tuple[Any, ...]] = {}
    for name, choice in given.items():
        field = f"policies[{name!r}]"
        per_segment = (choice,) if decides(choice) else tuple(listed(field, choice, expected))
        if not per_segment:
            raise InputError(field, choice, expected)
        for policy in per_segment:
            if not (with_offers and decides(policy)):
                having(field, policy, "acceptance", expected)
        chosen[name] = per_segment
    segments = world.open(replication_keys(0, 0, 1), 1).segments
    for name, per_segment in chosen.items():
        if len(per_segment) not in (1, segments):
            raise InputError.because(
                f"must be one policy or one for each of {segments} segments, not {len(per_segment)}",
                f"policies[{name!r}]",
                label=name,
                value=len(per_segment),
                code="length_mismatch",
            )
    return chosen


def _check_checkpoints(checkpoints: Iterable[int], horizon: int) -> NDArray[np.int64]:
    """Check the checkpoints, sort them and add the horizon."""
    given = listed("checkpoints", checkpoints, "a list of arrivals")
    arrivals = sorted({whole("checkpoints", each, least=1, most=horizon) for each in given} | {horizon})
    return np.asarray(arrivals, dtype=np.int64)
