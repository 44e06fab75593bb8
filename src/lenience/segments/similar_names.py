"""Names of segments that differ only by case or space: two segments for a computer, usually one for a person."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

MOST_SHOWN = 5


class SimilarNamesWarning(UserWarning):
    """Warn about segments whose names differ only by case or space, so that each has only a part of the evidence."""


def group_similar(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Group the names that differ only by case and space.

    >>> group_similar(["A", "b", "a ", "New York", "new  york", "c"])
    [('A', 'a '), ('New York', 'new  york')]
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups["".join(unicodedata.normalize("NFKC", name).split()).casefold()].append(name)
    return [tuple(same) for same in groups.values() if len(same) > 1]


def describe_similar_names(names: Iterable[str]) -> str | None:
    """Return a sentence about names that differ only by case or space; None if there are none.

    >>> describe_similar_names(["north", "North", "south"])
    "Segments whose names differ only by case or space are separate: 'north' and 'North'. ..."
    >>> describe_similar_names(["north", "south"])
    """
    same = group_similar(names)
    if not same:
        return None
    shown = "; ".join(" and ".join(repr(name) for name in some) for some in same[:MOST_SHOWN])
    more = f"; and {len(same) - MOST_SHOWN:,} more" if len(same) > MOST_SHOWN else ""
    return (
        f"Segments whose names differ only by case or space are separate: {shown}{more}. If they are the same "
        "segment, give them the same name, so that they share their evidence."
    )
