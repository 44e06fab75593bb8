"""replay: what policies would have earned online, on data whose outcomes are all known.

Rows are drawn from the data with replacement, as independent arrivals. A policy sees an outcome only if it accepts, and
then earns y − c. Every policy meets the same arrivals in the same order with the same random numbers (common random
numbers), so differences are paired and their intervals are narrow. Scales and the reference set come from the features
alone. The ``warm`` labels, if any, belong to rows drawn like the others, and every policy knows them.

Late labels. With a :class:`~lenience.objectives.delayed.Delayed` objective, arrivals are a Poisson process, an outcome
becomes known an exponential delay after its acceptance, and no policy learns it earlier. Rewards are discounted by the
number of the arrival, which removes the noise of the arrival times.

In order. With ``times`` the rows are not drawn with replacement: every run takes some of them at random, each once, and
they arrive in order of time. If the population drifts, the policies meet the drift, and ``periods`` shows it.

Open is not failed. A row whose outcome is missing or not known yet is left out and counted, never a failure.

Offers. With an objective that has offers, every row has its own amount at stake a and break-even c. An acceptance earns
a(y − c), in money, and every policy decides each arrival at the arrival's own break-even.

Menus. A row may offer a choice, such as the amount asked for and a tenth of it, and every policy makes the offer that
it likes best. The data have the outcome of the offer that was ``made``. For another offer the replay *assumes* the same
outcome, as the model does, and ``assumed`` says for how many acceptances. To estimate without that assumption, log with
which probability each offer is made and use :func:`~lenience.analysis.off_policy`.

Regret is measured against the default model fitted to the outcomes of *all* rows and used greedily: the best that it
could know, not what a clairvoyant would earn. ``full_information`` is what the model earns if it sees the outcome of
every arrival, including the rejected. What a policy earns less is the price of seeing only the accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.offer_rows import OfferRows
from lenience.core.validation import floats, mapped, whole
from lenience.files.date_formats import Order
from lenience.files.outcome_words import OutcomeWords, Words, known_or_pending
from lenience.objectives.delayed import Delayed
from lenience.policies.features.base import SelectivePolicy
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
from lenience.simulation.full_information import (
    full_information_acceptances,
    full_information_choices,
    full_information_offers,
    hindsight_acceptances,
    hindsight_choices,
)
from lenience.simulation.replay_draws import draw, draw_in_order
from lenience.simulation.replay_periods import checked_times, results_by_period
from lenience.simulation.replay_result import PolicyResult, ReplayObjective, ReplayResult
from lenience.simulation.replay_runs import run_all

OURS = "lenience"
ONE_BREAK_EVEN = "lenience, one break-even"
FULL_INFORMATION = "full information"
POLICIES = "a mapping of names to policies that decide and observe"


def default_policies(objective: ReplayObjective, model: Any = None) -> dict[str, SelectivePolicy]:
    """Return our policy and its baselines with default parameters, and the given model if any.

    With offers there is also our policy at the mean break-even, which ignores amounts and prices.
    """
    if objective.offers is None:
        ours = {OURS: FeaturePolicy(model, objective)}
    else:
        alike = msgspec.structs.replace(objective, offers=None, cost=objective.offers.mean_cost)
        ours = {OURS: FeaturePolicy(model, objective), ONE_BREAK_EVEN: FeaturePolicy(model, alike)}
    return {
        **ours,
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
    objective: ReplayObjective,
    policies: Mapping[str, Any] | None = None,
    seeds: int = 50,
    arrivals: int | None = None,
    warm: int = 0,
    groups: Sequence[Any] | None = None,
    first_seed: int = 0,
    progress: Callable[[int], None] | None = None,
    offers: Any = None,
    *,
    made: ArrayLike | None = None,
    success: Words = None,
    failure: Words = None,
    pending: Words = None,
    times: Any = None,
    dates: Order | None = None,
    workers: int | None = None,
) -> ReplayResult:
    """Run every policy online on data with known outcomes, several times.

    Parameters
    ----------
    X : array_like
        The features, one row per individual. NaN means missing.
    y : array_like
        The outcomes: 0 or 1, or words such as "repaid" and "default". Rows whose outcome is missing (None or NaN) or
        pending are left out, and counted as ``left_out``.
    objective : Discounted, FiniteHorizon or Delayed
        What to maximise. With ``Delayed``, labels come late.
    policies : mapping of str to policy, optional
        The policies by name; by default ours and its baselines. A policy of your own is any object with two methods:
        ``decide(X)`` returns whom of the rows to accept, and ``observe(X, accepted, outcomes)`` learns outcomes of
        accepted rows. If it has ``fit``, every run starts with ``fit(X)`` for the features of all rows; otherwise every
        run starts with a copy of the object.
    seeds : int, optional
        The number of runs.
    arrivals : int, optional
        The number of arrivals in each run. The default is the horizon, or as many arrivals as carry all but a
        thousandth of the discounted reward, at most 10,000.
    warm : int, optional
        The number of labels that every policy knows at the start.
    groups : sequence, optional
        The group of each row. Acceptance is reported for each group.
    first_seed : int, optional
        Seed of the first run; the next runs use the following numbers.
    progress : callable, optional
        Called with the number of runs done, after each run, or after a few of them with several workers.
    offers : optional
        The offer of each row if the objective has offers: a pair of columns (amounts at stake, break-evens), or a list
        of :class:`~lenience.Offer`. A row may also have a menu to choose from, ``Offers.menu(…)``; then ``made`` is
        needed.
    made : array_like, optional
        If rows have menus: the position in its menu of the offer that each row's outcome belongs to, from 0. For other
        offers the same outcome is assumed, and the results say how often (``assumed``).
    success, failure, pending : str or sequence, optional
        Values of y that mean success, failure, and "not known yet", in addition to the usual words. A value without a
        meaning raises an error.
    times : array_like, optional
        The date, or a number, of each row. Rows then arrive in this order, each at most once in a run, and the result
        has ``periods``. By default a run has at most half of the rows, so that runs differ; ``arrivals`` allows more.
        If a run has all rows, there is only one run.
    dates : {"mdy", "dmy", "ymd"}, optional
        The order of the parts in times such as "06/01/2011", if no value shows it.
    workers : int, optional
        The number of processes; by default as joblib is configured, which may be a Dask or Ray cluster. The result does
        not depend on it.

    Returns
    -------
    ReplayResult
        What each policy earned and whom it accepted.

    Raises
    ------
    InputError
        If an argument is invalid.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))
    >>> result = replay(X, y, Discounted(cost=0.6, discount=0.98), seeds=10)
    >>> result["lenience"].mean > result["always"].mean
    True
    >>> result
    ReplayResult(10 policies, 10 runs of 342 arrivals)
    >>> print(result)
    policy               reward   ± 95%   lead ...
    lenience ...
    >>> result.frame("pyarrow").column_names[:3]
    ['policy', 'discounted', 'half_width']

    A policy of your own:

    >>> class Positive:
    ...     def decide(self, X):
    ...         return X[:, 0] > 0
    ...
    ...     def observe(self, X, accepted, outcomes):
    ...         pass  # It does not learn.
    >>> result = replay(X, y, Discounted(cost=0.6, discount=0.98), {"positive": Positive()}, seeds=5)
    >>> result["positive"].decisions.shape
    (5, 342)
    """
    rows, outcomes, names = _checked(X, y, groups, OutcomeWords.of(success, failure, pending))
    stakes = _stakes(objective, offers, len(outcomes))
    past = _past_offers(stakes, made)
    moments = None if times is None else checked_times(times, len(outcomes), dates)
    known_rows = np.flatnonzero(~np.isnan(outcomes))
    rows, labels, names = rows[known_rows], outcomes[known_rows], names[known_rows]
    stakes = None if stakes is None else stakes.pick(known_rows)
    past = None if past is None else past[known_rows]
    moments = None if moments is None else moments[known_rows]
    runs, start = whole("seeds", seeds, least=1), whole("warm", warm)
    count = _arrivals(objective, arrivals) if moments is None else _in_order(objective, arrivals, len(labels) - start)
    if moments is not None and count + start == len(labels):
        runs = 1
    chosen = dict(default_policies(objective) if policies is None else mapped("policies", policies, POLICIES))
    if not chosen:
        raise InputError.because("must name at least one policy", "policies", code="missing")
    for name, policy in chosen.items():
        if not all(callable(getattr(policy, method, None)) for method in ("decide", "observe")):
            raise InputError.because(
                f"must have the methods decide(X) and observe(X, accepted, outcomes); {name!r} has not",
                "policies",
                value=type(policy).__name__,
                allowed=POLICIES,
            )
    weights = _weights(objective, count)
    marks = tuple(int(mark) for mark in np.unique(np.rint(np.geomspace(1, count, 60)).astype(np.int64)))
    if moments is None:
        draws = [draw(first_seed + seed, len(labels), count, start) for seed in range(runs)]
    else:
        by_time = np.argsort(moments, kind="stable")
        draws = [draw_in_order(first_seed + seed, by_time, count, start) for seed in range(runs)]
    accepted_by, choices_by = run_all(chosen, rows, labels, objective, stakes, past, draws, workers, progress)
    orders = np.array([drawn.order for drawn in draws])
    everyone: NDArray[np.int64] | None = None  # the offers of the model that sees every outcome
    if stakes is None or objective.offers is None:
        gains = labels[orders] - objective.cost
        best = hindsight_acceptances(rows, labels, objective.cost)
        informed = full_information_acceptances(rows, labels, objective.cost, draws)
        known = (best[orders] * gains) @ weights
    elif past is None:
        gains = (stakes.amount * (labels - stakes.cost))[orders]
        best = hindsight_acceptances(rows, labels, stakes.cost)
        informed = full_information_offers(rows, labels, stakes.cost, objective.offers, draws)
        known = (best[orders] * gains) @ weights
    else:
        best, choice = hindsight_choices(rows, labels, stakes)
        taken = stakes.at(choice)
        known = (best * taken.amount * (labels - taken.cost))[orders] @ weights
        informed, everyone = full_information_choices(rows, labels, stakes, objective.offers.mean_cost, draws)

    def rewards(accepted: NDArray[np.bool_], choices: NDArray[np.int64] | None) -> NDArray[np.float64]:
        """Return what each arrival earned."""
        if choices is None or stakes is None:
            return np.asarray(accepted * gains)
        where = stakes.start[orders] + choices
        return np.asarray(accepted * stakes.amount[where] * (labels[orders] - stakes.cost[where]))

    def result(name: str, accepted: NDArray[np.bool_], choices: NDArray[np.int64] | None) -> PolicyResult:
        earned = rewards(accepted, choices)
        totals = np.cumsum(earned, axis=1)
        return PolicyResult(
            name,
            earned @ weights,
            totals[:, -1],
            known - earned @ weights,
            float(accepted.mean()),
            {group: _share(accepted, names[orders] == group) for group in _ordered(names)},
            totals[:, [mark - 1 for mark in marks]].mean(axis=0),
            accepted,
            choices,
            None if choices is None or past is None else _share(choices != past[orders], accepted),
        )

    return ReplayResult(
        objective, count, start, runs, float(labels.mean()), float(known.mean()), marks,
        tuple(result(name, accepted_by[name], choices_by.get(name)) for name in chosen),
        result(FULL_INFORMATION, informed, everyone),
        known_rows[orders],
        len(outcomes) - len(labels),
        () if moments is None else results_by_period(
            moments[orders], labels[orders],
            {name: rewards(accepted_by[name], choices_by.get(name)) for name in chosen}, accepted_by,
        ),
    )  # fmt: skip


def late(objective: ReplayObjective, label_delay: float) -> Delayed:
    """Return a discounted objective whose outcomes come late, by an average of ``label_delay`` arrivals.

    >>> from lenience import Discounted
    >>> late(Discounted(0.8, 0.99), 20).discount
    0.99
    """
    if not objective.stationary or objective.discount == 0.0:
        raise InputError("objective", objective, "a Discounted objective with a discount above 0 if labels come late")
    return Delayed(objective.cost, 1.0, 1.0 / objective.discount - 1.0, label_delay, offers=objective.offers)


def _stakes(objective: ReplayObjective, offers: Any, rows: int) -> OfferRows | None:
    """Return the offer of each row, checked; None if there is one break-even for all."""
    if objective.offers is None:
        if offers is not None:
            raise InputError.because(
                "needs an objective with offers",
                "offers",
                hint="Give the objective offers= instead of cost=.",
                code="unsupported_offers",
            )
        return None
    return OfferRows.of(offers, rows, objective.offers)


def _past_offers(stakes: OfferRows | None, made: ArrayLike | None) -> NDArray[np.int64] | None:
    """Return the position of the offer that each row's outcome belongs to; None if no row offers a choice."""
    if stakes is None or stakes.single:
        if made is not None:
            raise InputError.because(
                "needs rows that offer a choice",
                "made",
                hint="Give each row a menu as its offers, such as Offers.menu([500, 50], [0.8, 0.8]).",
                code="conflicting_fields",
            )
        return None
    if made is None:
        raise InputError.because(
            "must say which offer each row's outcome belongs to, because rows offer a choice",
            "made",
            hint="Give made=[0, 1, …], the position of that offer in the row's menu.",
            code="missing",
        )
    return stakes.positions("made", made)


def _checked(
    X: ArrayLike, y: ArrayLike, groups: Sequence[Any] | None, words: OutcomeWords
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
    """Check the data; return the rows, the outcomes (NaN if unknown) and the group of each row ("" without groups)."""
    rows = np.ascontiguousarray(floats("X", X))
    if rows.ndim != 2 or not rows.size:
        raise InputError.because(
            f"must be a table of rows by features, not of shape {rows.shape}",
            "X",
            value=rows.shape,
            allowed="a table of rows by features",
        )
    if np.isinf(rows).any():
        raise InputError.because(
            f"must be finite numbers, or NaN where one is missing, not {rows[np.isinf(rows)][0]:g}",
            "X",
            value=float(rows[np.isinf(rows)][0]),
            allowed="finite numbers, or NaN where one is missing",
        )
    names = np.array([] if groups is None else [str(group) for group in groups], dtype=object)
    if groups is not None and len(names) != len(rows):
        raise InputError.because(
            f"must name a group for each of the {len(rows)} rows, not {len(names)}",
            "groups",
            value=len(names),
            code="length_mismatch",
        )
    outcomes = known_or_pending(y, len(rows), words)
    if np.isnan(outcomes).all():
        raise InputError.because("must be known for at least one row", "outcomes", code="insufficient_data")
    return rows, outcomes, names if len(names) else np.full(len(rows), "", dtype=object)


def _ordered(names: NDArray[Any]) -> list[str]:
    """Return the names of the groups in alphabetical order."""
    return sorted({str(name) for name in names} - {""})


def _share(accepted: NDArray[np.bool_], where: NDArray[np.bool_]) -> float:
    """Return the share accepted of a group, NaN if nobody of it arrived."""
    return float(accepted[where].mean()) if where.any() else math.nan


def _arrivals(objective: ReplayObjective, arrivals: int | None) -> int:
    """Return the number of arrivals of a run: as given, or by the horizon or the discount."""
    if arrivals is not None:
        return whole("arrivals", arrivals, least=1)
    if objective.horizon is not None:
        return objective.horizon
    if objective.discount == 0.0:
        return 1
    return min(max(math.ceil(math.log(1e-3) / math.log(objective.discount)), 1), 10_000)


def _in_order(objective: ReplayObjective, arrivals: int | None, rows: int) -> int:
    """Return the number of arrivals of a run in order of time, in which each row arrives at most once."""
    if rows < 1:
        raise InputError.because("must leave at least one row to decide", "warm", code="insufficient_data")
    if arrivals is None:
        return min(_arrivals(objective, None), max(rows // 2, 1))
    count = whole("arrivals", arrivals, least=1)
    if count > rows:
        raise InputError("arrivals", count, f"at most {rows:,}, because each row arrives once in order of time")
    return count


def _weights(objective: ReplayObjective, count: int) -> NDArray[np.float64]:
    """Return the discount of each arrival."""
    weights: NDArray[np.float64] = objective.discount ** np.arange(count, dtype=np.float64)
    return weights
