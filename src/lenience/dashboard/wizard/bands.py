"""Bands of a column of numbers in the form for a new policy. Each band is a segment.

A policy with bands has features instead of named segments (:mod:`lenience.service.domain.feature_cells`). A request for
a decision sends the number, and the service finds its band. All segment columns then become features (columns without
bands by their values), and a segment is a cell of them.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from lenience.core.errors import InputError
from lenience.dashboard.wizard.upload_table import connect, identifier, literal, names, table_of
from lenience.models.binning import Binning, bin_by_quantiles, round_edges
from lenience.service.domain import limits
from lenience.service.domain.feature_cells import OTHER, Feature

MOST_BANDS = 20
MOST_COLUMNS = 8  # features of a policy
MANY = 20  # different numbers; the form suggests bands for a column with more
USUAL = "5"  # bands that the form suggests
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
        if numbers[0] not in range(2, MOST_BANDS + 1):
            raise InputError.because(
                f"can be cut into 2 to {MOST_BANDS} bands, not {parts[0]}",
                column,
                label=repr(column),
                value=parts[0],
                hint=f"For one edge at {parts[0]} type “{parts[0]},”",
            )
        return int(numbers[0])
    if len(numbers) >= MOST_BANDS:
        raise InputError.because(
            f"can have at most {MOST_BANDS - 1} edges, not {len(numbers)}",
            column,
            label=repr(column),
            value=len(numbers),
        )
    return tuple(numbers)


@lru_cache(maxsize=64)
def features_of(path: Path, segments: tuple[str, ...], cuts: tuple[tuple[str, Cut], ...]) -> tuple[Feature, ...]:
    """Return the segment columns as features, or nothing if no column is cut into bands."""
    given = dict(cuts)
    if given and len(segments) > MOST_COLUMNS:
        raise InputError.because(
            f"Select at most {MOST_COLUMNS} segment columns if one of them is cut into bands",
            "segment",
            label="",
            value=len(segments),
            code="too_large",
        )
    return tuple(_feature(path, column, given.get(column)) for column in segments) if given else ()


def _feature(path: Path, column: str, cut: Cut | None) -> Feature:
    if column not in names(path):
        raise InputError.because(
            f"The file has no column {column!r}", "segment", label="", value=column, code="unknown_name"
        )
    shape: dict[str, Any] = (
        {"edges": _edges(path, column, cut)} if cut is not None else {"values": _values(path, column)}
    )
    try:
        return msgspec.convert({"name": column, **shape}, Feature)
    except (msgspec.ValidationError, InputError) as error:
        raise InputError.because(
            f"cannot be combined with bands: {error}", column, label=f"the column {column!r}"
        ) from None


def _edges(path: Path, column: str, cut: Cut) -> list[float]:
    with connect() as engine:
        number = _number(column)
        values = engine.execute(f"SELECT {number} AS v FROM {table_of(path)} WHERE isfinite(v)").fetchnumpy()["v"]
    if len(values) == 0:
        raise InputError.because("has no numbers to cut into bands", column, label=f"the column {column!r}")
    if isinstance(cut, tuple):
        return list(Binning(tuple(sorted(set(cut)))).edges)
    edges = round_edges(bin_by_quantiles(values, cut).edges, values)
    edges = [edge for edge in edges if values.min() < edge <= values.max()]
    if not edges:
        raise InputError.because(
            "cannot be cut into bands of equal size, because nearly all of its values are the same",
            column,
            label=f"the column {column!r}",
        )
    return edges


def _values(path: Path, column: str) -> list[str]:
    text = identifier(column)
    with connect() as engine:
        where = f"v IS NOT NULL AND v <> {literal(OTHER)}"
        query = f"SELECT DISTINCT {text} AS v FROM {table_of(path)} WHERE {where} ORDER BY v"
        values = [row[0] for row in engine.execute(f"{query} LIMIT {limits.FEATURES + 1}").fetchall()]
    if len(values) > limits.FEATURES:
        raise InputError.because(
            f"has more than {limits.FEATURES} different values, the limit when another column has bands",
            column,
            label=f"the column {column!r}",
            hint="Cut it into bands too, or leave it out.",
            code="too_large",
        )
    return values


def _number(column: str) -> str:
    """Return the query expression for a column's number, NULL if it is not a number."""
    return f"TRY_CAST({identifier(column)} AS DOUBLE)"
