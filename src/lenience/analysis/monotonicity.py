"""told_uneven: decisions that go up and down along an ordered column, which a model that shares nothing may make by
chance."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from lenience.core.errors import InputError
from lenience.history.beliefs import ordered
from lenience.history.fit import SEPARATOR, History


def told_uneven(history: History, accepts: Mapping[str, bool]) -> str | None:
    """A sentence where the decisions along a column of numbers or bands change direction, the other columns the same.

    >>> from lenience.history.fit import fit_history
    >>> past = {"band": ["300-499", "500-599", "600-699"], "in": [1, 1, 1], "good": [1, 0, 1]}
    >>> accepts = {"300-499": True, "500-599": False, "600-699": True}
    >>> told_uneven(fit_history(past, "band", "in", "good"), accepts)
    'along band decisions go up and down (300-499 accept, 500-599 reject, 600-699 accept): if band is an order, try \
--model curve --score band, by which neighbours inform each other'
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
            turns = [k for k, (one, other) in enumerate(pairwise(line)) if one[2] != other[2]]
            if len(turns) > 1:
                some = [line[turns[0]], line[turns[0] + 1], line[turns[1] + 1]]
                said = ", ".join(f"{name} {'accept' if yes else 'reject'}" for _, name, yes in some)
                return (
                    f"along {column} decisions go up and down ({said}): if {column} is an order, try --model curve "
                    f"--score {column}, by which neighbours inform each other"
                )
    return None
