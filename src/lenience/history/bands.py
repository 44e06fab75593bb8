"""Cut columns of numbers into bands: each band of a score, an age or an income is a segment.

A policy with bands has features instead of named segments. A request for a decision sends the number, and the service
finds its band. All segment columns then become features (columns without bands by their values), and a segment is a
cell of them (:mod:`lenience.segments.column_parts`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lenience.core.errors import InputError
from lenience.files.source import without_engine_warnings
from lenience.files.vocabulary import CURRENCY, NUMBER, WITH_THOUSANDS
from lenience.history.statuses import trimmed
from lenience.models.binning import Binning, bin_by_quantiles, round_edges
from lenience.segments.column_parts import OTHER, ColumnParts

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    from numpy.typing import NDArray

MOST_BANDS = 20
MOST_COLUMNS = 8  # features of a policy
MOST_VALUES = 64  # of a column without bands, beside one with bands
MOST_CELLS = 1_000  # segments of a policy
LONGEST_NAME = 200  # characters of a segment's name
Cut = int | tuple[float, ...]  # a number of bands of about equal size, or their edges


def read_cut(column: str, text: str) -> Cut:
    """Read the bands of a column as typed: a number of bands, or edges with commas.

    >>> read_cut("score", "5"), read_cut("score", "580, 640"), read_cut("age", "40,")
    (5, (580.0, 640.0), (40.0,))
    >>> read_cut("age", "40")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: 'age' can be cut into 2 to 20 bands, not 40. For one edge at 40 type “40,”
    """
    parts = [part for part in re.split(r"[,;\s]+", text) if part]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if not numbers or not all(math.isfinite(number) for number in numbers):
        raise InputError(
            column,
            text,
            "a number of bands, such as 5, or their edges, such as 580, 640",
            label=f"the bands of {column!r}",
        )
    if len(numbers) == 1 and not re.search(r"[,;]", text):
        return check_cut(column, int(numbers[0]) if numbers[0].is_integer() else parts[0])
    return check_cut(column, numbers)


def check_cut(column: str, cut: object) -> Cut:
    """Return a number of bands or their edges, checked.

    >>> check_cut("score", [640, 580])
    (580.0, 640.0)
    """
    if isinstance(cut, Sequence) and not isinstance(cut, str):
        if not 0 < len(cut) < MOST_BANDS:
            raise InputError.because(
                f"can have 1 to {MOST_BANDS - 1} edges, not {len(cut)}", column, label=repr(column), value=len(cut)
            )
        return Binning(tuple(sorted({float(edge) for edge in cut}))).edges
    if not isinstance(cut, int) or not 2 <= cut <= MOST_BANDS:
        raise InputError.because(
            f"can be cut into 2 to {MOST_BANDS} bands, not {cut}",
            column,
            label=repr(column),
            value=cut,
            hint=f"For one edge at {cut} type “{cut},”",
        )
    return cut


def cut_columns(table: ir.Table, segments: Sequence[str], cuts: Mapping[str, Cut]) -> tuple[ColumnParts, ...]:
    """Return how the segment columns are divided; nothing if no column is cut into bands.

    Parameters
    ----------
    table
        The past decisions.
    segments
        The segment columns.
    cuts
        The columns to cut, each with its bands.

    Returns
    -------
    tuple of ColumnParts
        The parts of each segment column.

    Raises
    ------
    InputError
        If a column does not exist, has no numbers to cut, or the cells are too many.
    """
    if not cuts:
        return ()
    for name in (*segments, *cuts):
        if name not in table.columns:
            raise InputError.unknown_name("segment", name, table.columns, "the columns")
    if len(segments) > MOST_COLUMNS:
        raise InputError.because(
            f"Select at most {MOST_COLUMNS} segment columns if one of them is cut into bands",
            "segment",
            label="",
            value=len(segments),
            code="too_large",
        )
    with without_engine_warnings():
        columns = tuple(_parts(table, name, cuts.get(name)) for name in segments)
    cells = math.prod(len(column.labels) for column in columns)
    if cells > MOST_CELLS:
        raise InputError.because(
            f"make {cells:,} segments; a policy has at most {MOST_CELLS:,}",
            "segment",
            label=f"the parts of {' and '.join(map(repr, segments))}",
            value=cells,
            hint="Cut into fewer bands, or leave a column out.",
            code="too_large",
        )
    longest = sum(max(map(len, column.labels)) + 2 for column in columns) - 2
    if longest > LONGEST_NAME:
        raise InputError.because(
            f"must make names of at most {LONGEST_NAME} characters, not {longest}",
            "segment",
            label="columns and values",
            value=longest,
            code="too_large",
        )
    return columns


def cell_expression(table: ir.Table, cells: Sequence[ColumnParts]) -> ir.StringValue:
    """Return the name of a row's cell; missing if one of its values is."""
    import ibis

    name: Any = None
    for cell in cells:
        part = part_expression(table, cell)
        name = part if name is None else name + ibis.literal(", ") + part
    return name


def part_expression(table: ir.Table, cell: ColumnParts) -> Any:
    """Return the name of a row's part of a column; missing if its value is."""
    import ibis

    column = table[cell.name]
    if cell.values:
        text = trimmed(column.cast("string"))
        known = ibis.literal(f"{cell.name}=") + text
        return ibis.cases(
            (text.isnull(), ibis.null("string")), (text.isin(cell.values), known), else_=ibis.literal(cell.labels[-1])
        )
    number = as_number(column)
    missing = number.isnull() | number.isnan() | number.isinf()
    below = [(number < edge, ibis.literal(label)) for edge, label in zip(cell.edges, cell.labels, strict=False)]
    return ibis.cases((missing, ibis.null("string")), *below, else_=ibis.literal(cell.labels[-1]))


def as_number(column: Any) -> Any:
    """Return a column as numbers, missing where a value is none; ``read_number`` reads the same texts."""
    import ibis

    if column.type().is_numeric():
        return column.cast("float64")
    text = column.cast("string").strip().re_replace(f"^{CURRENCY} *", "").re_replace(f" *{CURRENCY}$", "")
    percents, plain = text.endswith("%"), text.re_replace(" *%$", "")
    plain = ibis.ifelse(plain.re_search(WITH_THOUSANDS), plain.replace(",", ""), plain)
    number = ibis.ifelse(plain.re_search(NUMBER), plain, ibis.null("string")).try_cast("float64")
    return ibis.ifelse(percents, number / 100.0, number)


def _parts(table: ir.Table, column: str, cut: Cut | None) -> ColumnParts:
    if cut is not None:
        return ColumnParts(column, edges=tuple(_edges(table, column, cut)))
    return ColumnParts(column, values=_values(table, column))


def _edges(table: ir.Table, column: str, cut: Cut) -> list[float]:
    values = _numbers(table, column)
    if len(values) == 0:
        raise InputError.because("has no numbers to cut into bands", column, label=f"the column {column!r}")
    if isinstance(cut, tuple):
        return list(cut)
    edges = round_edges(bin_by_quantiles(values, cut).edges, values)
    edges = [edge for edge in edges if values.min() < edge <= values.max()]
    if not edges:
        raise InputError.because(
            "cannot be cut into bands of equal size, because nearly all of its values are the same",
            column,
            label=f"the column {column!r}",
        )
    return edges


def _numbers(table: ir.Table, column: str) -> NDArray[np.float64]:
    import numpy as np

    read = table.select(value=as_number(table[column]))
    column_values = table.get_backend().to_pyarrow(read.filter(read.value.notnull())).column("value")
    values = np.asarray(column_values.to_numpy(zero_copy_only=False), dtype=np.float64)
    return values[np.isfinite(values)]


def _values(table: ir.Table, column: str) -> tuple[str, ...]:
    read = table.select(value=trimmed(table[column].cast("string")))
    read = read.filter(read.value.notnull() & (read.value != OTHER)).distinct().limit(MOST_VALUES + 1)
    values = sorted(table.get_backend().to_pyarrow(read).column("value").to_pylist())
    if len(values) > MOST_VALUES:
        raise InputError.because(
            f"has more than {MOST_VALUES} different values, the limit when another column has bands",
            column,
            label=f"the column {column!r}",
            hint="Cut it into bands too, or leave it out.",
            code="too_large",
        )
    if not values:
        raise InputError.because("has no values", column, label=f"the column {column!r}", code="insufficient_data")
    return tuple(values)
