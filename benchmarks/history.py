"""Reading history: fit_history against the engine's own GROUP BY, on Parquet files, taking turns in one process.

    python -m benchmarks history

Four counts, each beside the bare query that one would write by hand for it, which checks nothing: rows, acceptances,
outcomes and successes by segment; with a maturity window, outcomes and successes of the mature only. *Clean* holds
truth values, bytes and dates; *unclean* 64-bit outcomes of which one in a thousand is none, outcomes on rejections,
missing acceptances, and time stamps to the second, some missing. Times are the least of several turns; CPU time is that
of all threads, and says more where other work shares the cores.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROWS = 60_000_000
SEGMENTS = 500
CHUNK = 2_000_000
TURNS = 7
CUTOFF = "2022-12-09"  # a year before the last day: a quarter of the rows are young


class Spent(NamedTuple):
    """Seconds by the clock, and of all threads' work."""

    wall: float
    cpu: float


def write(path: Path, rows: int, clean: bool) -> None:
    """Decisions with a segment, whether accepted, the outcome and when."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    names = pa.array([f"segment {i:03d}" for i in range(SEGMENTS)])
    outcome_type, time_type = (pa.int8(), pa.date32()) if clean else (pa.int64(), pa.timestamp("us"))
    schema = pa.schema(
        [("segment", pa.string()), ("accepted", pa.bool_()), ("outcome", outcome_type), ("decided", time_type)]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            segment = names.take(pa.array(generator.integers(0, SEGMENTS, count)))
            accepted = generator.random(count) < 0.6
            missing = ~accepted | (generator.random(count) < 0.05)
            good = (generator.random(count) < 0.8).astype(np.int64)
            decided = np.datetime64("2019-12-10") + generator.integers(0, 1461, count).astype("timedelta64[D]")
            unknown = undated = np.zeros(count, dtype=bool)
            if not clean:
                good[generator.random(count) < 0.001] = 7
                missing &= generator.random(count) >= 0.001
                unknown, undated = generator.random(count) < 0.001, generator.random(count) < 0.001
                decided = decided.astype("datetime64[us]") + generator.integers(0, 86_400, count).astype(
                    "timedelta64[s]"
                )
            columns = [
                segment,
                pa.array(accepted, mask=unknown),
                pa.array(good.astype(np.int8) if clean else good, mask=missing),
                pa.array(decided, mask=undated),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def least(functions: dict[str, Callable[[], object]]) -> dict[str, Spent]:
    """The least time of each, in turn, so that all meet the same machine."""
    best = dict.fromkeys(functions, Spent(float("inf"), float("inf")))
    for _ in range(TURNS):
        for name, function in functions.items():
            start, before = time.perf_counter(), _cpu()
            function()
            wall, cpu = time.perf_counter() - start, _cpu() - before
            best[name] = Spent(min(best[name].wall, wall), min(best[name].cpu, cpu))
    return best


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def bare(path: Path, mature: bool = False) -> Callable[[], object]:
    """The query by hand."""
    import duckdb

    old = f" filter (decided <= timestamp '{CUTOFF}')" if mature else ""
    text = (
        f"select segment, count(*), sum(accepted::int), count(outcome){old}, sum(outcome){old} "
        f"from '{path}' group by segment"
    )

    def query() -> object:
        with duckdb.connect() as connection:
            return connection.execute(text).fetchall()

    return query


def _compared(hand: float, ours: float) -> list[str]:
    return [f"{hand:.3f} s", f"{ours:.3f} s", f"{ours / hand:.2f}"]


def main(rows: int = ROWS) -> None:
    """Print the table."""
    from benchmarks.measure import compare, report, seconds
    from lenience.history.fit import fit_history

    with tempfile.TemporaryDirectory() as folder:
        clean, unclean = Path(folder) / "clean.parquet", Path(folder) / "unclean.parquet"
        write(clean, rows, True)
        write(unclean, rows, False)
        columns = ("segment", "accepted", "outcome")

        def counted(path: Path) -> Callable[[], object]:
            return lambda: fit_history(path, *columns)

        def matured(path: Path) -> Callable[[], object]:
            return lambda: fit_history(path, *columns, "decided", maturity=365)

        pairs = {
            "clean": (bare(clean), counted(clean)),
            "unclean": (bare(unclean), counted(unclean)),
            "clean, mature": (bare(clean, True), matured(clean)),
            "unclean, mature": (bare(unclean, True), matured(unclean)),
        }
        found = least({f"{name} {who}": work for name, pair in pairs.items() for who, work in enumerate(pair)})
        table = []
        for name in pairs:
            hand, ours = found[f"{name} 0"], found[f"{name} 1"]
            table.append([name, *_compared(hand.wall, ours.wall), *_compared(hand.cpu, ours.cpu)])
            compare(f"counting {rows:,} rows, {name}", seconds(ours.wall), "a bare GROUP BY", ours.wall / hand.wall)
        sizes = " and ".join(f"{path.stat().st_size / 1e6:.0f} MB" for path in (clean, unclean))
        report(
            f"Counting {rows:,} rows of Parquet ({sizes}), {SEGMENTS} segments",
            ["rows", "bare", "fit_history", "ratio", "bare, CPU", "fit_history, CPU", "ratio"],
            table,
        )
        print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
