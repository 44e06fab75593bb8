"""Fairness of policies in a replay or in a log, by attributes that they do not look at.

In a replay every outcome is known, so acceptance of those who succeed and of those who fail is exact for the arrivals
that were drawn. In a log of decisions with propensities only the accepted have outcomes; each then counts as many times
as its acceptance was unlikely (inverse propensity).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.analysis.monitored_groups import JOINED, UNKNOWN, Measure, attribute_sets, rate_measure
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.files.vocabulary import is_missing
from lenience.simulation.replay_result import ReplayResult

Z = 1.959963984540054  # standard deviations on each side of a 95% interval


class GroupDecisions(msgspec.Struct, frozen=True):
    """How a policy decides about a group that it does not look at.

    Parameters
    ----------
    policy : str
        The name of the policy.
    attributes : tuple of str
        The attributes that make the group.
    group : str
        The group; "" if an attribute is unknown.
    arrivals : int
        The number of arrivals, over all runs.
    acceptance : Measure
        The share accepted.
    acceptance_of_deserving : Measure or None
        The share accepted of those who succeed; None if there are none.
    acceptance_of_others : Measure or None
        The share accepted of those who fail; None if there are none.
    """

    policy: str
    attributes: tuple[str, ...]
    group: str
    arrivals: int
    acceptance: Measure
    acceptance_of_deserving: Measure | None
    acceptance_of_others: Measure | None


def monitor_replay(
    result: ReplayResult, outcomes: ArrayLike, monitor: Mapping[str, Sequence[object]]
) -> list[GroupDecisions]:
    """Measure how the policies of a replay decide about groups that they do not look at.

    Parameters
    ----------
    result : ReplayResult
        The replay.
    outcomes : array_like
        The outcome of each row that was replayed, 0 or 1.
    monitor : mapping of str to sequence
        The value of each attribute for each row; missing values are unknown.

    Returns
    -------
    list of GroupDecisions
        One entry for each policy and group: of each attribute, of each pair, and of all together.

    Raises
    ------
    InputError
        If an attribute does not have one value per row.

    Examples
    --------
    >>> from lenience import Discounted, replay
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 1)), rng.random(200) < 0.5
    >>> sex = np.where(X[:, 0] > 0, "f", "m")
    >>> result = replay(X, y, Discounted(cost=0.6, discount=0.9), seeds=2, arrivals=20)
    >>> rows = monitor_replay(result, y, {"sex": sex})
    >>> [row.acceptance.value for row in rows if row.policy == "always"]
    [1.0, 1.0]
    """
    good = np.asarray(outcomes, dtype=np.float64) > 0.5
    entries = []
    for attributes, names in _named(monitor, len(good)):
        arrived = names[result.rows]
        succeeded = good[result.rows]
        for name in sorted(set(names)):
            mine = arrived == name
            for policy in result.policies:
                accepted = np.asarray(policy.decisions, dtype=np.bool_)
                entries.append(
                    GroupDecisions(
                        policy.policy,
                        attributes,
                        name,
                        int(mine.sum()),
                        _share(accepted, mine) or Measure(0.0, Bounds(0.0, 1.0)),
                        _share(accepted, mine & succeeded),
                        _share(accepted, mine & ~succeeded),
                    )
                )
    return entries


def monitor_log(
    proposal: ArrayLike,
    accepted: ArrayLike,
    propensity: ArrayLike,
    outcomes: Sequence[object],
    monitor: Mapping[str, Sequence[object]],
) -> list[GroupDecisions]:
    """Measure how a logged and a proposed policy decide about groups, from a log with propensities.

    Parameters
    ----------
    proposal : array_like
        The proposed policy's acceptance probability of each row.
    accepted : array_like
        Who was accepted, 0 or 1.
    propensity : array_like
        The probability with which the logged policy accepted each row.
    outcomes : sequence
        The outcomes of the accepted, 0 or 1; None or NaN if unknown.
    monitor : mapping of str to sequence
        The value of each attribute for each row; missing values are unknown.

    Returns
    -------
    list of GroupDecisions
        Two entries for each group, "logged" and "proposal". Acceptance of the deserving is estimated.

    Raises
    ------
    InputError
        If an attribute does not have one value per row.

    Examples
    --------
    >>> rows = monitor_log([1, 0, 1, 1], [1, 1, 0, 1], [0.5] * 4, [1, 1, None, 0], {"sex": ["f", "f", "m", "m"]})
    >>> [(row.policy, row.group, row.acceptance.value) for row in rows]
    [('logged', 'f', 1.0), ('proposal', 'f', 0.5), ('logged', 'm', 0.5), ('proposal', 'm', 1.0)]
    >>> rows[1].acceptance_of_deserving.value
    0.5
    """
    chances = np.asarray(proposal, dtype=np.float64)
    taken = np.asarray(accepted, dtype=np.float64) > 0.5
    weights = np.where(taken, 1.0 / np.where(taken, np.asarray(propensity, dtype=np.float64), 1.0), 0.0)
    known = np.array([value is not None and value == value for value in outcomes], dtype=np.bool_) & taken
    good = known & np.array([value is not None and value == value and float(value) > 0.5 for value in outcomes])  # type: ignore[arg-type]
    entries = []
    for attributes, names in _named(monitor, len(taken)):
        for name in sorted(set(names)):
            mine = names == name
            logged = rate_measure(int(taken[mine].sum()), int(mine.sum()))
            would = _weighted(chances[mine], np.ones(int(mine.sum())))
            assert would is not None
            parts = (mine & good, mine & known & ~good)
            used = [_weighted(np.asarray(propensity, dtype=np.float64)[part], weights[part]) for part in parts]
            proposed = [_weighted(chances[part], weights[part]) for part in parts]
            place = (attributes, name, int(mine.sum()))
            entries.append(GroupDecisions("logged", *place, logged, *used))
            entries.append(GroupDecisions("proposal", *place, would, *proposed))
    return entries


def _named(monitor: Mapping[str, Sequence[object]], rows: int) -> list[tuple[tuple[str, ...], NDArray[np.object_]]]:
    """Return for each set of attributes the group of each row."""
    for name, values in monitor.items():
        if len(values) != rows:
            raise InputError.because(
                f"must have a value for each of the {rows:,} rows, not {len(values):,}",
                "monitor",
                label=f"monitor {name!r}",
                value=len(values),
                code="length_mismatch",
            )
    result = []
    for attributes in attribute_sets(list(monitor)):
        columns = [monitor[name] for name in attributes]
        names = [
            UNKNOWN if any(map(is_missing, values)) else JOINED.join(str(value).strip() for value in values)
            for values in zip(*columns, strict=True)
        ]
        result.append((attributes, np.array(names, dtype=object)))
    return result


def _share(accepted: NDArray[np.bool_], of: NDArray[np.bool_]) -> Measure | None:
    """Return the share accepted over all runs. Runs are independent, arrivals within one are not."""
    total = int(of.sum())
    if not total:
        return None
    value = float((accepted & of).sum() / total)
    runs = [float(row[mask].mean()) for row, mask in zip(accepted, of, strict=True) if mask.any()]
    if len(runs) < 2:
        return rate_measure(int((accepted & of).sum()), total)
    off = Z * float(np.std(runs, ddof=1)) / math.sqrt(len(runs))
    return Measure(value, Bounds(max(value - off, 0.0), min(value + off, 1.0)))


def _weighted(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Measure | None:
    """Return a weighted mean with an interval by the delta method, or None without values."""
    total = float(weights.sum())
    if total <= 0:
        return None
    mean = float((weights * values).sum() / total)
    off = Z * math.sqrt(float((weights**2 * (values - mean) ** 2).sum())) / total
    return Measure(mean, Bounds(max(mean - off, 0.0), min(mean + off, 1.0)))
