"""Reading history: fit_history against the engine's own GROUP BY, on a Parquet file, each in a fresh process in turn.

    python -m benchmarks.history [rows]

The bare query counts what one would count by hand, and checks nothing: rows, acceptances, outcomes, successes by
segment. The second counts the distinct combinations of values, which is what any check needs. Times are the least of
several in turn.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROWS = 20_000_000
SEGMENTS = 500
CHUNK = 2_000_000
TURNS = 7


def write(path: Path, rows: int) -> None:
    """Decisions with a segment (text), accepted (truth value), outcome (a byte, missing at times) and a date."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    names = pa.array([f"segment {i:03d}" for i in range(SEGMENTS)])
    schema = pa.schema(
        [("segment", pa.string()), ("accepted", pa.bool_()), ("outcome", pa.int8()), ("decided", pa.date32())]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            accepted = generator.random(count) < 0.6
            missing = ~accepted | (generator.random(count) < 0.05)
            outcome = pa.array((generator.random(count) < 0.8).astype(np.int8), mask=missing)
            day = (np.datetime64("2020-01-01") + generator.integers(0, 1500, count)).astype("datetime64[D]")
            segment = names.take(pa.array(generator.integers(0, SEGMENTS, count)))
            writer.write_table(pa.table([segment, pa.array(accepted), outcome, pa.array(day)], schema=schema))


def least(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least time of each, in turn, so that all meet the same machine."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(TURNS):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main(rows: int = ROWS) -> None:
    """Print the table."""
    import duckdb

    from lenience.history import fit_history

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "past.parquet"
        write(path, rows)
        bare = (
            f"select segment, count(*), sum(accepted::int), count(outcome), sum(outcome) from '{path}' group by segment"
        )
        values = f"select segment, accepted, outcome, count(*) from '{path}' group by all"
        dated = (
            f"select segment, count(*), sum(accepted::int), count(outcome), sum(outcome) from '{path}' "
            "where decided <= date '2023-11-09' group by segment"
        )

        def query(text: str) -> object:
            with duckdb.connect() as connection:
                return connection.execute(text).fetchall()

        print(f"{rows:,} rows of Parquet ({path.stat().st_size / 1e6:.0f} MB), {SEGMENTS} segments")
        found = least(
            {
                "bare": lambda: query(bare),
                "by value": lambda: query(values),
                "fit_history": lambda: fit_history(path, "segment", "accepted", "outcome"),
                "bare, mature only": lambda: query(dated),
                "fit_history, maturity 30 days": lambda: fit_history(
                    path, "segment", "accepted", "outcome", "decided", maturity=30, as_of="2023-12-09"
                ),
            }
        )
        for name, seconds in found.items():
            print(f"{name:>32}: {seconds:6.2f} s, {seconds / found['bare']:5.2f} × bare")
        print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
