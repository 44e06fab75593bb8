"""Write the decisions of a replay to a file, for metrics of the user's own."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from lenience.core.errors import InputError
from lenience.files.table import Table
from lenience.simulation.replay_result import ReplayResult

ENDINGS = (".csv", ".parquet")


def check_decisions_path(path: str) -> None:
    """Raise InputError if the file cannot be written, before anything is computed."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError("--decisions", path, "a file name ending in .csv or .parquet")
    if not target.parent.is_dir():
        raise InputError("--decisions", str(target.parent), "in a folder that exists", code="missing_file")


def write_decisions(result: ReplayResult, table: Table, path: str) -> str:
    """Write one line per run and arrival: the row of the file, its outcome, and whether each policy accepted it.

    Rows are counted from 1, without the heading.
    """
    runs, arrivals = result.rows.shape
    places = result.rows if table.kept is None else table.kept[result.rows]
    columns: dict[str, list[Any]] = {
        "run": [run for run in range(1, runs + 1) for _ in range(arrivals)],
        "arrival": list(range(1, arrivals + 1)) * runs,
        "row": (places + 1).ravel().tolist(),
        "outcome": table.y[result.rows].astype(int).ravel().tolist(),
    }
    columns |= {outcome.policy: outcome.decisions.astype(int).ravel().tolist() for outcome in result.policies}
    if Path(path).suffix.lower() == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), path)
        return path
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path
