"""`python -m benchmarks [name …]`: run all measurements, or the named ones."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.measure import figure_rows, report

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEADINGS = ["figure", "lenience", "compared with", "ratio", "goal"]


def machine() -> str:
    """Say what was measured on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    cores = os.cpu_count()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    python = f"Python {platform.python_version()}"
    return f"{model or platform.processor()}, {cores} cores, {python}, load {load:.1f} at the end"


def write(rows: list[list[str]], names: list[str]) -> None:
    """Write the table for the documentation."""
    lines = [
        "# Benchmarks", "",
        "Every figure stands next to its peer or limit, measured in the same run, as a ratio: machines are noisy, so",
        "ratios say more than times. `make bench` measures again and writes this page.", "",
        f"Measured on {dt.datetime.now(dt.UTC):%Y-%m-%d}: {machine()}. Parts: {', '.join(names)}.", "",
        "| " + " | ".join(HEADINGS) + " |", "|---|---:|---|---:|---|",
    ]  # fmt: skip
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


names = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "__main__", "delay", "earlier", "load", "measure")
)
wanted = sys.argv[1:] or names
sys.argv[1:] = []  # a measurement may read arguments of its own when it is run alone
for name in wanted:
    if name not in names:
        sys.exit(f"benchmarks: no measurement {name!r}; there are {', '.join(names)}")
    import_module(f"benchmarks.{name}").main()
found = figure_rows()
if found:
    report("All figures of this run, next to their peers", HEADINGS, found)
if found and (wanted == names or "LENIENCE_BENCH_WRITE" in os.environ):
    write(found, wanted)
    print(f"Written: {PAGE}")
