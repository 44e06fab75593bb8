"""A policy's log as rows of a table: each decision with its features and, if known, its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from lenience.core.errors import InputError
from lenience.models.feature_model import is_missing


def log_rows(log: Sequence[Any], outcomes: Mapping[int, float], X: Any = None) -> list[dict[str, Any]]:
    """Return a row for each decision of a log, with its outcome. X has the features of each, in the same order."""
    rows = [{**msgspec.structs.asdict(decision), "outcome": outcomes.get(decision.arrival)} for decision in log]
    if X is None:
        return rows
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2 or len(cells) != len(rows):
        raise InputError.because(
            f"must have one row of features for each of the {len(rows):,} decisions, not the shape {cells.shape}",
            "X",
            value=cells.shape,
            code="length_mismatch",
        )
    given = getattr(X, "columns", None)
    names = [f"x{i}" for i in range(cells.shape[1])] if given is None else [str(name) for name in given]
    taken = sorted(set(names) & set(rows[0])) if rows else []
    if taken:
        raise InputError.because(
            f"must not have the columns of the log: {', '.join(taken)}",
            "X",
            value=taken,
            hint="Rename them.",
            code="duplicate",
        )
    features = [[None if is_missing(cell) else cell for cell in own] for own in cells.tolist()]
    return [{**dict(zip(names, own, strict=True)), **row} for own, row in zip(features, rows, strict=True)]
