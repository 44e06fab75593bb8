"""Run a study: `python -m research` lists them, `python -m research NAME [options]` runs one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from research import STUDIES


def main(arguments: Sequence[str]) -> int:
    """List the studies, or run the one that is named with the options after its name."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("Usage: python -m research NAME [options]\n")
        width = max(map(len, STUDIES))
        for name, (_, about) in STUDIES.items():
            print(f"  {name:{width}}  {about}")
        return 0
    name, *options = arguments
    if name not in STUDIES:
        print(f"NAME must be one of {', '.join(STUDIES)}, not {name!r}", file=sys.stderr)
        return 2
    import_module(STUDIES[name][0]).main(options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
