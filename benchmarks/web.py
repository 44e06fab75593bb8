"""The dashboard with 100,000 decisions in the log: how long a first view takes, and what it weighs."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.measure import best, compare, report, seconds
from lenience.cli.demo_portfolio import Portfolio, simulate_past

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

PAGES = [
    "/",
    "/policies/cards",
    "/policies/starter-loans",
    "/decisions",
    "/what-if?policy=cards",
    "/fairness?policy=cards",
    "/new",
]
TIMES = 32.0  # the demonstration's applicants, so many times over: 100,000 decisions


def main() -> None:
    """Measure and print."""
    from browsing import CHROMIUM, chromium, visiting
    from serving import serving, sqlite_file

    with tempfile.TemporaryDirectory() as folder:
        database = sqlite_file(Path(folder))
        begun = time.perf_counter()
        simulate_past(database, Portfolio(), times=TIMES)
        print(f"A past of three months, {TIMES:g} times over, played in {time.perf_counter() - begun:.1f} s")
        with serving(database) as service:
            with httpx.Client(base_url=service.url) as http:
                decisions = sum(one["arrivals"] for one in service.client().policy("cards")["segments"])
                rows = []
                for path in PAGES:
                    first = time.perf_counter()
                    http.get(path)
                    first = time.perf_counter() - first
                    again = best(lambda path=path: http.get(path), 5)  # type: ignore[misc]
                    rows.append([path, seconds(first), seconds(again)])
                    compare(f"{path}, 100,000 decisions", seconds(again), "150 ms", again / 0.15, "at most 1")
            if CHROMIUM is not None:
                with chromium() as browser:
                    for row in rows:
                        with visiting(browser, service.url) as visit:
                            visit.open(row[0]).wait_for_function(PAINTED)
                            visit.page.wait_for_load_state("networkidle")
                            paint, weight = visit.page.evaluate(MEASURED)
                            row += [f"{paint:.0f} ms", f"{weight / 1000:.0f} kB"]
            headings = ["page", "first request", "best of 5", "first contentful paint", "weight"]
            report(f"Dashboard, {decisions:,} decisions in the log", headings[: len(rows[0])], rows)


PAINTED = '() => performance.getEntriesByName("first-contentful-paint").length > 0'
MEASURED = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .reduce((sum, entry) => sum + entry.decodedBodySize, 0)]"""


if __name__ == "__main__":
    main()
