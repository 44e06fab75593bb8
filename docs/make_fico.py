"""Run the FICO study and keep its results: docs/fico_results.json. The page and the figures are made from them.

python docs/make_fico.py [runs]
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from lenience.study.fico import COSTS, DISCOUNTS, MODELS, RULES, fico_world, study

HERE = Path(__file__).parent


def main() -> None:
    """Run both worlds, saving as they come."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    world = fico_world()
    results = []
    for discount in DISCOUNTS:
        for cost in COSTS:
            results += study(
                world, [cost], [discount], MODELS, RULES, runs, progress=lambda line: print(line, flush=True)
            )
            results += study(world, [cost], [discount], ["independent"], RULES, 2 * runs, drawn_from_prior=True)
            (HERE / "fico_results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=0))


if __name__ == "__main__":
    main()
