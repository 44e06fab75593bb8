"""A quicker count for Parquet files that say of themselves that no row is bad.

A Parquet file keeps, for each column and group of rows, how many values are missing and the least and greatest of
them. If no segment and no acceptance is missing and every outcome lies between 0 and 1, only one kind of bad row is
left, an outcome on a rejection; and there is none exactly if the outcomes of the accepted are as many as all
outcomes. So a plain GROUP BY, with no check of any row, has then been proved right by its own sum. Where anything is
amiss, or is not said, nothing is returned and the general query counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WHOLE = ("INT32", "INT64")


def clean_counts(path: str, segments: Sequence[str], accepted: str, outcome: str) -> list[dict[str, Any]] | None:
    """The counts by segment of a Parquet file, or nothing if it is not known to be clean."""
    import duckdb

    with duckdb.connect() as connection:
        try:
            said = connection.execute(
                "select path_in_schema, type, sum(num_values), sum(stats_null_count), "
                "count(stats_null_count) = count(*), "
                "min(try_cast(stats_min_value as double)), max(try_cast(stats_max_value as double)), "
                "count(try_cast(stats_min_value as double)) from parquet_metadata(?) group by all",
                [path],
            ).fetchall()
        except duckdb.Error:
            return None
        columns = {row[0]: row[1:] for row in said}
        wanted = [*segments, accepted, outcome]
        if len(columns) != len(said) or any(name not in columns or not columns[name][3] for name in wanted):
            return None
        if any(columns[name][2] for name in [*segments, accepted]) or columns[accepted][0] != "BOOLEAN":
            return None
        kind, values, missing, _, low, high, _ = columns[outcome]
        if kind in WHOLE:
            if low is None or low < 0.0 or high > 1.0 or _unsaid(connection, path, outcome):
                return None
        elif kind != "BOOLEAN":
            return None
        names = ", ".join(f"{_quoted(name)} as g{i}" for i, name in enumerate(segments))
        keys = ", ".join(f"g{i}" for i in range(len(segments)))
        a, o = _quoted(accepted), _quoted(outcome)
        found = connection.execute(
            f"select {names}, count(*), count_if({a}), count_if({a} and {o} is not null), sum({o}::tinyint) "
            f"from read_parquet(?) group by {keys}",
            [path],
        ).fetchall()
    if sum(row[-2] for row in found) != values - missing:
        return None
    return [_row(row, len(segments)) for row in found]


def _unsaid(connection: Any, path: str, outcome: str) -> bool:
    """Whether any group of rows that holds outcomes does not say how large they are."""
    query = (
        "select count(*) from parquet_metadata(?) where path_in_schema = ? and stats_null_count < num_values "
        "and (stats_min_value is null or stats_max_value is null)"
    )
    return bool(connection.execute(query, [path, outcome]).fetchone()[0])


def _row(row: tuple[Any, ...], segments: int) -> dict[str, Any]:
    rows, taken, labels, good = row[segments:]
    good = int(good or 0)
    counts = {"success": good, "failure": labels - good, "pending": taken - labels, "turned_down": rows - taken}
    return {f"g{i}": row[i] for i in range(segments)} | counts | {"n": float(labels), "s": float(good)}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
