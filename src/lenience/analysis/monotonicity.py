"""uneven_decisions_warning: warn about decisions that go up and down along an ordered column.

A model that shares nothing between segments can make such decisions by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from lenience.core.errors import InputError
from lenience.history.beliefs import ordered
from lenience.history.history import History
from lenience.history.segment_history import SEPARATOR


def uneven_decisions_warning(history: History, accepts: Mapping[str, bool]) -> str | None:
    """Return a warning if decisions change direction more than once along a column, with the other columns the same.

    >>> from lenience.history.fit import fit_history
    >>> past = {"band": ["300-499", "500-599", "600-699"], "in": [1, 1, 1], "good": [1, 0, 1]}
    >>> accepts = {"300-499": True, "500-599": False, "600-699": True}
    >>> uneven_decisions_warning(fit_history(past, "band", "in", "good"), accepts)
    'decisions along band go up and down (300-499 accept, 500-599 reject, 600-699 accept); if band is ordered, the \
    model curve with the score band lets neighbouring values inform each other'
    """
    for i, column in enumerate(history.columns):
        try:
            ranks = ordered(column, [row.values[i] for row in history.segments])
        except InputError:
            continue
        lines: dict[str, list[tuple[float, str, bool]]] = {}
        for row, rank in zip(history.segments, ranks, strict=True):
            others = SEPARATOR.join(value for j, value in enumerate(row.values) if j != i)
            if row.segment in accepts:
                lines.setdefault(others, []).append((rank, row.values[i], accepts[row.segment]))
        for line in lines.values():
            line.sort()
            turns = [k for k, (before, after) in enumerate(pairwise(line)) if before[2] != after[2]]
            if len(turns) > 1:
                examples = [line[turns[0]], line[turns[0] + 1], line[turns[1] + 1]]
                decisions = ", ".join(f"{name} {'accept' if yes else 'reject'}" for _, name, yes in examples)
                return (
                    f"decisions along {column} go up and down ({decisions}); if {column} is ordered, the model "
                    f"curve with the score {column} lets neighbouring values inform each other"
                )
    return None
