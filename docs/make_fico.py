"""Run the FICO study and keep its results: docs/fico_results.json. The page and the figures are made from them.

python docs/make_fico.py
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from lenience.study.fico import COSTS, DISCOUNTS, MODELS, RULES, Result, fico_world, study

HERE = Path(__file__).parent


RUNS = {0.999: 200, 0.9998: 100, 0.99995: 60}  # long futures vary less from run to run


def main() -> None:
    """Run both worlds setting by setting, saving as they come; settings that are there already are kept."""
    path = HERE / "fico_results.json"
    results = msgspec.json.decode(path.read_bytes(), type=list[Result]) if path.exists() else []
    world = fico_world()
    for discount in DISCOUNTS:
        for cost in COSTS:
            if any((row.cost, row.discount) == (cost, discount) for row in results):
                continue
            runs = RUNS[discount]
            results += study(
                world, [cost], [discount], MODELS, RULES, runs, progress=lambda line: print(line, flush=True)
            )
            results += study(world, [cost], [discount], ["independent"], RULES, 2 * runs, drawn_from_prior=True)
            path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=0))


if __name__ == "__main__":
    main()
