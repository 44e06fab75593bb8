"""Offers: the certified solve with several amounts and break-evens, beside the solve with one break-even."""

from __future__ import annotations

from benchmarks.measure import best, report, seconds
from lenience import Belief, Discounted, Offers

PRIOR = Belief(2, 1)
AMOUNTS, COSTS = (0.2, 1.0, 4.0), (0.7, 0.8, 0.9)


def main() -> None:
    """Print the measurements."""
    pairs = [(amount, cost) for amount in AMOUNTS for cost in COSTS]
    nine = Offers([amount for amount, _ in pairs], [cost for _, cost in pairs])
    hundred = Offers([0.1 * (1 + k % 10) for k in range(100)], [0.7 + 0.002 * k for k in range(100)])
    single = best(lambda: Discounted(0.8, 0.99).solve(PRIOR), repeats=20)
    lines = [["one break-even", seconds(single), "1.0"]]
    for name, offers in (
        ("one offer", Offers([1], [0.8])),
        ("amounts 0.1, 1, 5 at one break-even", Offers([0.1, 1, 5], [0.8, 0.8, 0.8])),
        ("a choice of 0.1 and 1", Offers.menu([0.1, 1], [0.8, 0.8])),
        ("nine offers: three amounts × three break-evens", nine),
        ("a hundred offers", hundred),
    ):
        objective = Discounted(offers=offers, discount=0.99)
        time = best(lambda objective=objective: objective.solve(PRIOR), repeats=10)  # type: ignore[misc]
        lines.append([name, seconds(time), f"{time / single:.1f}"])
    report("γ = 0.99, 1,000 rows to 1e-9, the public call", ["", "time", "ratio"], lines)
