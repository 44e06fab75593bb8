"""ColumnParts: a column that divides a population, by edges or by values, and the names of its parts.

The cells of several such columns are segments. Past decisions, the service and the guided form name them here, so that
a cell has the same name everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import msgspec

from lenience.core.formatting import edge_name

OTHER = "other"


class ColumnParts(msgspec.Struct, frozen=True):
    """A column of numbers cut at edges, or of texts by value, with a last part "other".

    Parameters
    ----------
    name
        The name of the column.
    edges
        Where numbers are cut; empty if the column holds texts.
    values
        The texts that have a part of their own; empty if the column holds numbers.

    Examples
    --------
    >>> ColumnParts("score", edges=(600.0, 700.0)).labels
    ['score<600', 'score 600..700', 'score>=700']
    """

    name: str
    edges: tuple[float, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The names of the parts, in order."""
        return part_labels(self.name, self.edges, self.values)

    @property
    def fields(self) -> dict[str, object]:
        """The column as a feature of a policy's specification."""
        return {"name": self.name, **({"edges": list(self.edges)} if self.edges else {"values": list(self.values)})}


def part_labels(name: str, edges: Sequence[float], values: Sequence[str]) -> list[str]:
    """Return the names of the parts of a column.

    >>> part_labels("region", (), ("north", "south"))
    ['region=north', 'region=south', 'region=other']
    """
    if values:
        return [f"{name}={value}" for value in (*values, OTHER)]
    ends = [edge_name(edge) for edge in edges]
    return [f"{name}<{ends[0]}", *(f"{name} {low}..{high}" for low, high in pairwise(ends)), f"{name}>={ends[-1]}"]


def cell_parts(columns: Sequence[ColumnParts]) -> dict[str, tuple[str, ...]]:
    """Return all cells of several columns by name, each with the names of its parts.

    >>> list(cell_parts([ColumnParts("age", (40.0,)), ColumnParts("region", values=("north",))]))
    ['age<40, region=north', 'age<40, region=other', 'age>=40, region=north', 'age>=40, region=other']
    """
    return {", ".join(parts): parts for parts in product(*(column.labels for column in columns))}
