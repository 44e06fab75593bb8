"""group_mix: the share of each group in each segment, where decisions do not look at the group."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lenience.history.history import History
from lenience.history.past import read_past
from lenience.history.past_columns import PastColumns
from lenience.history.segment_history import SEPARATOR


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
    source: object, columns: PastColumns, groups: Sequence[str], history: History, connection: object = None
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
    more = tuple(name for name in groups if name not in columns.segments)
    crossed = msgspec.structs.replace(
        columns, segments=(*columns.segments, *more), groups=(), scores=(), economics=None, maturing=False
    )
    places = [crossed.segments.index(name) for name in groups]
    counted: dict[str, dict[str, int]] = {row.segment: {} for row in history.segments}
    for row in read_past(source, crossed, connection).history.segments:
        own = counted.setdefault(SEPARATOR.join(row.values[: len(columns.segments)]), {})
        own[SEPARATOR.join(row.values[i] for i in places)] = row.arrivals
    arrivals = {row.segment: row.arrivals for row in history.segments}
    shares = {
        name: {group: count / max(arrivals[name], 1) for group, count in own.items()}
        for name, own in counted.items()
        if name in arrivals
    }
    known = sum(count for own in counted.values() for count in own.values())
    return GroupMix(shares, sum(arrivals.values()) - known)
