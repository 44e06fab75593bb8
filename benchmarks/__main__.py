"""`python -m benchmarks [name …]`: run all measurements, or the named ones."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

names = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "__main__", "delay", "load", "measure")
)
wanted = sys.argv[1:] or names
sys.argv[1:] = []  # a measurement may read arguments of its own when it is run alone
for name in wanted:
    if name not in names:
        sys.exit(f"benchmarks: no measurement {name!r}; there are {', '.join(names)}")
    import_module(f"benchmarks.{name}").main()
