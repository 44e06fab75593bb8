"""How things are measured: the best of several runs, side by side in one process, and memory in one of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

console = Console(width=120)


class Figure(NamedTuple):
    """A figure next to its peer or limit; the ratio is ours over theirs."""

    what: str
    ours: str
    peer: str
    ratio: float
    goal: str


figures: list[Figure] = []  # of this run, for the table at its end


def best(work: Callable[[], object], repeats: int = 5, number: int = 1) -> float:
    """Seconds for one call: the best of several runs, after one that compiles."""
    work()
    return _best(time.perf_counter, work, repeats, number)


def cpu(work: Callable[[], object], repeats: int = 5, number: int = 1) -> float:
    """Seconds of processor time for one call, measured like :func:`best`; other processes disturb it less."""
    work()
    return _best(time.process_time, work, repeats, number)


def _best(clock: Callable[[], float], work: Callable[[], object], repeats: int, number: int) -> float:
    times = []
    for _ in range(repeats):
        start = clock()
        for _ in range(number):
            work()
        times.append((clock() - start) / number)
    return min(times)


def process_time(*words: str, repeats: int = 7) -> float:
    """Seconds for a whole process, the best of several."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory(code: str) -> float:
    """Peak resident memory, in MB, of a Python process that runs the code."""
    # Not getrusage: its maximum includes the parent's memory at the time of the fork.
    script = f"{code}\nprint([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return int(found.stdout.split()[-2]) / 1024


def seconds(value: float) -> str:
    """A duration in a readable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def compare(what: str, ours: str, peer: str, ratio: float, goal: str = "") -> None:
    """Keep a figure for the table at the end of a run."""
    figures.append(Figure(what, ours, peer, ratio, goal))


def figure_rows() -> list[list[str]]:
    """Return the rows of the table at the end of a run."""
    return [[one.what, one.ours, one.peer, f"{one.ratio:,.3g}", one.goal] for one in figures]


def report(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="left" if position == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
