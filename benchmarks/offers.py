"""Offers: the certified solve with several amounts and break-evens, beside the solve with one break-even."""

from __future__ import annotations

from typing import Any

from benchmarks.measure import best, compare, report, seconds
from lenience import Belief, Discounted, FiniteHorizon, Offers, compare_policies
from lenience.policies import GreedyOffers
from lenience.simulation import FromPrior
from lenience.solvers.offers.horizon import HorizonTables

PRIOR = Belief(2, 1)
AMOUNTS, COSTS = (0.2, 1.0, 4.0), (0.7, 0.8, 0.9)
REPLICATIONS, ARRIVALS = 1000, 1000


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
        if offers is nine:
            compare("nine offers, 1,000 rows to 1e-9", seconds(time), "one break-even", time / single, "at most 15")
    report("γ = 0.99, 1,000 rows to 1e-9, the public call", ["", "time", "ratio"], lines)
    lines = []
    for horizon in (100, 1000, 2000):
        for name, offers in (("amounts 0.1, 1, 5", Offers([0.1, 1, 5], [0.8] * 3)), ("nine offers", nine)):
            estimate = FiniteHorizon(offers=offers, horizon=horizon).solve_seconds(PRIOR)
            time = best(
                lambda offers=offers, horizon=horizon: HorizonTables(PRIOR, offers, 1.0, horizon, 1e-9),  # type: ignore[misc]
                repeats=3,
            )
            lines.append([f"{horizon:,} arrivals, {name}", seconds(time), seconds(estimate)])
    report("A known number of arrivals", ["", "time", "estimate"], lines)
    world = FromPrior(PRIOR)
    policies: tuple[tuple[str, Any], ...] = (
        ("greedy, compiled", GreedyOffers()),
        ("discounted optimum, compiled", Discounted(offers=nine, discount=0.99).solve(PRIOR)),
        ("optimum over the horizon, by arrival", FiniteHorizon(offers=nine, horizon=ARRIVALS).solve(PRIOR)),
    )
    settings: dict[str, Any] = {"horizon": ARRIVALS, "replications": REPLICATIONS, "optimum": False, "workers": 1}
    lines = []
    for name, policy in policies:
        time = best(
            lambda policy=policy: compare_policies(  # type: ignore[misc]
                {"it": policy}, world, offers=nine, **settings
            ),
            repeats=3,
        )
        lines.append([name, seconds(time), f"{1e9 * time / (REPLICATIONS * ARRIVALS):,.0f} ns"])
    report(f"Simulating {REPLICATIONS:,} × {ARRIVALS:,} arrivals, nine offers", ["", "time", "a decision"], lines)
