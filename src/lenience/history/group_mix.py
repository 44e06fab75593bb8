"""group_mix: the share of each group in each segment, where decisions do not look at the group."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lenience.files.source import open_source, without_engine_warnings
from lenience.history.history import History
from lenience.history.past import read_past
from lenience.history.past_columns import CELL, EVERYONE, PastColumns
from lenience.history.past_rows import prepared_table
from lenience.history.segment_history import SEPARATOR

UNKNOWN_GROUP = ""


class GroupMix(msgspec.Struct, frozen=True):
    """The groups of the applicants in each segment.

    Parameters
    ----------
    shares
        The share of each group, by segment. Shares of a segment add up to less than 1 if some groups are unknown.
    unknown
        The number of applicants whose group is unknown.
    """

    shares: dict[str, dict[str, float]]
    unknown: int


def group_mix(
    source: object,
    columns: PastColumns,
    groups: Sequence[str],
    history: History,
    connection: object = None,
    sheet: str | None = None,
) -> GroupMix:
    """Count the groups of the applicants in each segment.

    Parameters
    ----------
    source
        The past decisions, as for :func:`lenience.history.past.read_past`.
    columns
        What their columns mean.
    groups
        The columns of the group; the values of several are joined.
    history
        The counts by segment, of the same source.
    connection
        A database, or its URL.
    sheet
        The sheet of an Excel file.

    Returns
    -------
    GroupMix
        The shares, and how many have no group.

    Raises
    ------
    InputError
        If a column does not exist.

    Examples
    --------
    >>> past = {"band": ["low", "low", "low"], "in": [1, 1, 0], "good": [1, 0, None], "sex": ["f", "m", None]}
    >>> columns = PastColumns(("band",), "good", "in")
    >>> mix = group_mix(past, columns, ["sex"], read_past(past, columns).history)
    >>> {name: {group: round(share, 2) for group, share in own.items()} for name, own in mix.shares.items()}
    {'low': {'f': 0.33, 'm': 0.33}}
    >>> mix.unknown
    1
    """
    counted = group_counts(source, columns, groups, history, connection, sheet=sheet)
    arrivals = {row.segment: row.arrivals for row in history.segments}
    shares: dict[str, dict[str, float]] = {row.segment: {} for row in history.segments}
    for (group, segment), counts in counted.items():
        if group != UNKNOWN_GROUP:
            shares[segment][group] = counts.arrivals / max(arrivals[segment], 1)
    unknown = sum(counts.arrivals for (group, _), counts in counted.items() if group == UNKNOWN_GROUP)
    return GroupMix(shares, unknown)


class PastCounts(msgspec.Struct, frozen=True):
    """Past applicants of a group in a segment, and what became of them.

    Parameters
    ----------
    arrivals, accepted
        How many arrived, and how many of them were accepted.
    labels, successes
        How many of the accepted have an outcome, and how many of these are successes.
    """

    arrivals: int
    accepted: int
    labels: int
    successes: int


def group_counts(
    source: object,
    columns: PastColumns,
    groups: Sequence[str],
    history: History,
    connection: object = None,
    separator: str = SEPARATOR,
    sheet: str | None = None,
) -> dict[tuple[str, str], PastCounts]:
    """Count past decisions by group and segment, where the group is not part of the segment.

    Parameters
    ----------
    source
        The past decisions, as for :func:`lenience.history.past.read_past`.
    columns
        What their columns mean.
    groups
        The columns of the group.
    history
        The counts by segment, of the same source.
    connection
        A database, or its URL.
    separator
        What stands between the values of several columns in the name of a group.
    sheet
        The sheet of an Excel file.

    Returns
    -------
    dict of (str, str) to PastCounts
        The counts by group and segment. The group "" has the applicants whose group is unknown.

    Raises
    ------
    InputError
        If a column does not exist.
    """
    if history.cells:  # the cells become a column, to be crossed with the groups
        with without_engine_warnings():
            table, _ = open_source(source, connection, sheet=sheet)
        prepared = msgspec.structs.replace(columns, cells=history.cells)
        source, connection, sheet = prepared_table(table, prepared), None, None
        columns = msgspec.structs.replace(
            columns, segments=(CELL,), bands=(), accepted=columns.accepted or EVERYONE, cells=()
        )
    more = tuple(name for name in groups if name not in columns.segments)
    crossed = msgspec.structs.replace(
        columns,
        segments=(*columns.segments, *more),
        groups=(),
        scores=(),
        economics=None,
        price_bands=None,
        maturing=False,
        decide_by_protected=True,  # only counted: decisions are made by columns.segments
    )
    places = [crossed.segments.index(name) for name in groups]
    known: dict[tuple[str, str], PastCounts] = {}
    left = {row.segment: [row.arrivals, row.accepted, row.labels, row.successes] for row in history.segments}
    for row in read_past(source, crossed, connection, sheet=sheet).history.segments:
        segment = SEPARATOR.join(row.values[: len(columns.segments)])
        if segment in left:
            numbers = (row.arrivals, row.accepted, row.labels, row.successes)
            known[separator.join(row.values[i] for i in places), segment] = PastCounts(*numbers)
            left[segment] = [before - number for before, number in zip(left[segment], numbers, strict=True)]
    unknown = {(UNKNOWN_GROUP, name): PastCounts(*numbers) for name, numbers in left.items() if numbers[0]}
    return {**known, **unknown}
