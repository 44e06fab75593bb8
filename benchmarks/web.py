"""The dashboard with a million decisions in the log, before and now, and what its pages weigh."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import httpx

from benchmarks.earlier import COMMIT, ROOT, earlier_source, importing, write_past
from benchmarks.measure import compare, report, seconds

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

PAGES = [
    "/",
    "/overview/volumes",
    "/policies/cards",
    "/policies/starter-loans",
    "/decisions",
    "/decisions?policy=cards&status=pending",
    "/what-if?policy=cards",
    "/fairness?policy=cards",
    "/new",
]
# The demonstration's applicants, so many times over: a million decisions.
TIMES = float(os.environ.get("LENIENCE_BENCH_TIMES", "296"))
SECONDS = 0.15  # that a page may take
REPEATS = 5


def main() -> None:
    """Measure and print."""
    from browsing import CHROMIUM, chromium, visiting
    from serving import serving

    with tempfile.TemporaryDirectory() as folder:
        source, past, now = earlier_source(Path(folder)), Path(folder) / "past.db", Path(folder) / "now.db"
        begun = time.perf_counter()
        write_past(past, TIMES, source)
        print(f"A past of three months, {TIMES:g} times over, played in {time.perf_counter() - begun:.1f} s")
        shutil.copy(past, now)
        pages = [*PAGES, f"/decisions/{_some_decision(past)}"]
        with importing(source), serving(str(past)) as before:
            first_before, again_before = _times(before.url, pages)
        with importing(ROOT / "src"), serving(str(now)) as service:
            first, again = _times(service.url, pages)
            rows = []
            for page in pages:
                rows.append([page, *map(seconds, (first_before[page], again_before[page], first[page], again[page]))])
                compare(f"{page}, first view", seconds(first[page]), "150 ms", first[page] / SECONDS, "at most 1")
                ratio = again[page] / again_before[page]
                compare(f"{page}, later views", seconds(again[page]), seconds(again_before[page]), ratio)
            if CHROMIUM is not None:
                with chromium() as browser:
                    for row in rows:
                        with visiting(browser, service.url) as visit:
                            visit.open(row[0]).wait_for_function(PAINTED)
                            visit.page.wait_for_load_state("networkidle")
                            paint, weight = visit.page.evaluate(MEASURED)
                            row += [f"{paint:.0f} ms", f"{weight / 1000:.0f} kB"]
        headings = ["page", f"first, {COMMIT}", "best of 5", "first, now", "best of 5", "first paint", "weight"]
        report(f"Dashboard, {_decisions(now):,} decisions in the log", headings[: len(rows[0])], rows)


def _times(url: str, pages: list[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return how long the first view of each page takes, and the best of several later ones."""
    first, again = {}, {}
    with httpx.Client(base_url=url, timeout=60) as http:
        http.get("/health")  # opens the connection
        for page in pages:
            times = []
            for _ in range(1 + REPEATS):
                begun = time.perf_counter()
                http.get(page).raise_for_status()
                times.append(time.perf_counter() - begun)
            first[page], again[page] = times[0], min(times[1:])
    return first, again


def _some_decision(database: Path) -> str:
    """Return a decision from the middle of the busiest segment."""
    busiest = "(SELECT id FROM chain WHERE segment IS NOT NULL ORDER BY arrivals DESC LIMIT 1)"
    with closing(sqlite3.connect(database)) as connection:
        query = f"SELECT id FROM decision WHERE chain_id = {busiest} ORDER BY id LIMIT 1 OFFSET 1000"
        return str(connection.execute(query).fetchone()[0])


def _decisions(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT sum(number) FROM daily_total").fetchone()[0])


PAINTED = '() => performance.getEntriesByName("first-contentful-paint").length > 0'
MEASURED = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .reduce((sum, entry) => sum + entry.decodedBodySize, 0)]"""


if __name__ == "__main__":
    main()
