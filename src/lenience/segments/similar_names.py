"""Names of segments that differ only by case or space: to a computer two segments, to a person mostly one."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

MOST_SHOWN = 5


class AlikeSegmentsWarning(UserWarning):
    """Segments whose names differ only by case or space: each has only a part of what is known, and of the volume."""


def alike(names: Iterable[str]) -> list[tuple[str, ...]]:
    """The names that are the same but for case and space, together.

    >>> alike(["A", "b", "a ", "New York", "new  york", "c"])
    [('A', 'a '), ('New York', 'new  york')]
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        found["".join(unicodedata.normalize("NFKC", name).split()).casefold()].append(name)
    return [tuple(same) for same in found.values() if len(same) > 1]


def told_alike(names: Iterable[str]) -> str | None:
    """A sentence about names that are alike; nothing where all differ.

    >>> told_alike(["north", "North", "south"])
    "Segments whose names differ only by case or space are separate: 'north' and 'North'. If each pair is one, ..."
    >>> told_alike(["north", "south"])
    """
    same = alike(names)
    if not same:
        return None
    shown = "; ".join(" and ".join(repr(name) for name in some) for some in same[:MOST_SHOWN])
    more = f"; and {len(same) - MOST_SHOWN:,} more" if len(same) > MOST_SHOWN else ""
    return (
        f"Segments whose names differ only by case or space are separate: {shown}{more}. If each pair is one, give "
        "them one name: together they know more, and more will come."
    )
