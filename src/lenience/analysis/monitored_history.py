"""Fairness of past decisions, and of a policy from now on, by monitored attributes that segments do not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.analysis.fairness import SegmentFate
from lenience.analysis.monitored_groups import (
    JOINED,
    UNKNOWN,
    Cells,
    GroupCounts,
    MonitoredGroups,
    attribute_sets,
    measure_groups,
)
from lenience.core.bounds import Bounds
from lenience.core.protected_attributes import require_consent

if TYPE_CHECKING:
    from lenience.history.history import History
    from lenience.history.past_columns import PastColumns


class MonitoredFate(msgspec.Struct, frozen=True):
    """What a policy will do to a group that it does not look at, by the group's mix of segments.

    Parameters
    ----------
    group : str
        The group.
    share : float
        Its share of the applicants whose group is known.
    acceptance : Bounds
        The probability that a member is accepted, over the whole discounted future.
    early, late : Bounds
        The same in the first and in the second half of the future.
    wrongly_rejected : Bounds or None
        The probability that the segment of a member is closed for good if it is worth accepting; None if none is.
    """

    group: str
    share: float
    acceptance: Bounds
    early: Bounds
    late: Bounds
    wrongly_rejected: Bounds | None


def monitor_history(
    source: object,
    segment: str | Sequence[str],
    accepted: str,
    outcome: str,
    monitor: str | Sequence[str],
    *,
    connection: object = None,
    decide_by_protected: bool = False,
    **meaning: Any,
) -> list[MonitoredGroups]:
    """Measure the fairness of past decisions by attributes that decisions do not look at.

    Parameters
    ----------
    source : path, frame, Ibis table or str
        The past decisions, as for :func:`lenience.fit_history`.
    segment : str or sequence of str
        The columns that make a segment.
    accepted, outcome : str
        The columns that say who was accepted, and what became of the accepted.
    monitor : str or sequence of str
        The columns of the attributes, e.g. ``["sex", "age_band"]``.
    connection : str or Ibis backend, optional
        The database that holds the table.
    decide_by_protected : bool, default False
        Whether a segment column may be protected or monitored.
    **meaning : Any
        Other fields of the columns' meaning, e.g. ``success=("repaid",)`` or ``time="decided"``.

    Returns
    -------
    list of MonitoredGroups
        The measures of each attribute, then of each pair, then of all together.

    Raises
    ------
    InputError
        If a column does not exist, nobody's attribute is known, or a segment column is protected or monitored.

    Examples
    --------
    >>> past = {
    ...     "band": ["low", "low", "high", "high", "low"],
    ...     "in": [1, 0, 1, 1, 0],
    ...     "good": [1, None, 1, 0, None],
    ...     "sex": ["f", "f", "m", "m", None],
    ... }
    >>> [by_sex] = monitor_history(past, "band", "in", "good", monitor="sex")
    >>> [(group.name, group.acceptance.value) for group in by_sex.groups], by_sex.unknown.arrivals
    ([('f', 0.5), ('m', 1.0)], 1)
    """
    from lenience.history.past import read_past
    from lenience.history.past_columns import PastColumns

    segments = (segment,) if isinstance(segment, str) else tuple(segment)
    monitored = (monitor,) if isinstance(monitor, str) else tuple(monitor)
    require_consent(
        segments,
        monitored,
        decide_by_protected=decide_by_protected,
        field="segment",
        monitor="monitor alone",
        allow="decide_by_protected=True",
    )
    columns = PastColumns(segments, outcome, accepted, **meaning, decide_by_protected=decide_by_protected)
    history = read_past(source, columns, connection).history
    return monitor_columns(source, columns, history, monitored, connection)


def monitor_columns(
    source: object,
    columns: PastColumns,
    history: History,
    monitor: Sequence[str],
    connection: object = None,
    sheet: str | None = None,
) -> list[MonitoredGroups]:
    """Measure the fairness of past decisions that are counted already.

    Parameters
    ----------
    source : object
        The past decisions.
    columns : PastColumns
        What their columns mean.
    history : History
        Their counts by segment.
    monitor : sequence of str
        The columns of the attributes.
    connection : object, optional
        The database that holds the table.
    sheet : str, optional
        The sheet of an Excel file.

    Returns
    -------
    list of MonitoredGroups
        The measures of each attribute, of each pair, and of all together.
    """
    from lenience.history.group_mix import group_counts

    results = []
    for attributes in attribute_sets(monitor):
        counted = group_counts(source, columns, attributes, history, connection, JOINED, sheet)
        cells = {
            key: GroupCounts(each.arrivals, each.accepted, each.successes, each.labels - each.successes)
            for key, each in counted.items()
        }
        results.append(measure_groups(cells, attributes))
    return results


def monitor_rows(
    attributes: Mapping[str, Sequence[str | None]],
    cells: Sequence[str],
    accepted: Sequence[bool],
    outcomes: Sequence[float],
) -> list[MonitoredGroups]:
    """Measure the fairness of past decisions that are given one by one.

    Parameters
    ----------
    attributes : mapping of str to sequence
        The value of each attribute for each applicant; None if it is unknown.
    cells : sequence of str
        What stands for the segment of each applicant, e.g. a band of expected success.
    accepted : sequence of bool
        Who was accepted.
    outcomes : sequence of float
        1 for a success, 0 for a failure, NaN if it is not known.

    Returns
    -------
    list of MonitoredGroups
        The measures of each attribute, of each pair, and of all together.

    Examples
    --------
    >>> sex = {"sex": ["f", "f", "m", None]}
    >>> [by_sex] = monitor_rows(sex, ["low"] * 4, [True, False, True, True], [1.0, float("nan"), 0.0, 1.0])
    >>> [(group.name, group.acceptance.value) for group in by_sex.groups]
    [('f', 0.5), ('m', 1.0)]
    """
    results = []
    for names in attribute_sets(list(attributes)):
        counted: dict[tuple[str, str], list[int]] = {}
        for values, cell, taken, outcome in zip(
            zip(*(attributes[name] for name in names), strict=True), cells, accepted, outcomes, strict=True
        ):
            known = [value for value in values if value is not None]
            group = JOINED.join(known) if len(known) == len(names) else UNKNOWN
            counts = counted.setdefault((group, cell), [0, 0, 0, 0])
            for i, counts_for in enumerate((True, taken, taken and outcome == 1.0, taken and outcome == 0.0)):
                counts[i] += bool(counts_for)
        results.append(measure_groups({key: GroupCounts(*counts) for key, counts in counted.items()}, names))
    return results


def monitored_fates(fates: Sequence[SegmentFate], cells: Cells) -> list[MonitoredFate]:
    """Compute exactly what the policies will do to groups that they do not look at.

    Parameters
    ----------
    fates : sequence of SegmentFate
        What the policies do to each segment, from :func:`lenience.segment_fates`.
    cells : mapping of (str, str) to GroupCounts
        The applicants by group and segment. Future members of a group are taken to have the same mix of segments.

    Returns
    -------
    list of MonitoredFate
        One row per group, the largest first, with proved bounds.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments, segment_fates
    >>> beliefs = {"low": Belief(4, 1), "high": Belief(9, 8)}
    >>> policies = Segments.of({"low": 0.5, "high": 0.5}, Discounted(0.8, 0.99), beliefs)
    >>> fates = segment_fates(policies.solve(), rows=300)
    >>> cells = {("f", "low"): GroupCounts(30), ("f", "high"): GroupCounts(10), ("m", "high"): GroupCounts(40)}
    >>> m, f = sorted(monitored_fates(fates, cells), key=lambda row: -row.acceptance.midpoint)
    >>> m.group, round(f.acceptance.midpoint / m.acceptance.midpoint, 2)
    ('m', 0.25)
    """
    by_segment: Mapping[str, SegmentFate] = {fate.name: fate for fate in fates}
    sizes: dict[str, dict[str, int]] = {}
    for (group, segment), counts in cells.items():
        if group != UNKNOWN and segment in by_segment and counts.arrivals:
            sizes.setdefault(group, {})[segment] = counts.arrivals
    everyone = sum(sum(own.values()) for own in sizes.values())
    rows = [_fate(group, own, everyone, by_segment) for group, own in sizes.items()]
    return sorted(rows, key=lambda row: (-row.share, row.group))


def _fate(group: str, own: Mapping[str, int], everyone: int, fates: Mapping[str, SegmentFate]) -> MonitoredFate:
    total = sum(own.values())
    weights = {segment: count / total for segment, count in own.items()}

    def mixed(part: str) -> Bounds:
        ends = [(weight, getattr(fates[segment].bounds, part)) for segment, weight in weights.items()]
        return Bounds(sum(w * each.lower for w, each in ends), sum(w * each.upper for w, each in ends))

    worth = {segment: weight * fates[segment].deserving for segment, weight in weights.items()}
    closed = [(worth[segment], fates[segment].bounds.shut_out) for segment in weights]
    known = [(weight, bounds) for weight, bounds in closed if bounds is not None and weight > 0]
    deserving = sum(weight for weight, _ in known)
    wrongly = None
    if deserving > 0:
        wrongly = Bounds(
            sum(w * bounds.lower for w, bounds in known) / deserving,
            sum(w * bounds.upper for w, bounds in known) / deserving,
        )
    return MonitoredFate(group, total / everyone, mixed("accepted"), mixed("early"), mixed("late"), wrongly)
