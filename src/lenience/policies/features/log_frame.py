"""A policy's log as rows of a table: each decision with its features and, once it is known, its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from lenience.core.errors import InputError
from lenience.models.feature_model import is_missing


def log_rows(log: Sequence[Any], outcomes: Mapping[int, float], X: Any = None) -> list[dict[str, Any]]:
    """A row for each decision of a log, with its outcome by arrival; X has the features of each, in its order."""
    rows = [{**msgspec.structs.asdict(one), "outcome": outcomes.get(one.arrival)} for one in log]
    if X is None:
        return rows
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2 or len(cells) != len(rows):
        raise InputError.because(
            f"must have the features of all {len(rows):,} decisions, in their order, not the shape {cells.shape}",
            "X",
            value=cells.shape,
            code="length_mismatch",
        )
    given = getattr(X, "columns", None)
    names = [f"x{i}" for i in range(cells.shape[1])] if given is None else [str(name) for name in given]
    taken = sorted(set(names) & set(rows[0])) if rows else []
    if taken:
        raise InputError.because(
            f"must have no column with the name of a column of the log: {', '.join(taken)}",
            "X",
            value=taken,
            hint="Rename it.",
            code="duplicate",
        )
    features = [[None if is_missing(cell) else cell for cell in own] for own in cells.tolist()]
    return [{**dict(zip(names, own, strict=True)), **row} for own, row in zip(features, rows, strict=True)]
