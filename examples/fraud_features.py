"""Decide orders with features: ship or hold back, learn from shipped orders, and evaluate a proposal from the log.

python examples/fraud_features.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import lenience as ln

COST = 0.9  # an honest order earns 10, a fraudulent one loses 90


def orders(count: int, seed: int = 3) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return amount, distance, new customer and night of each order, and whether it is honest."""
    rng = np.random.default_rng(seed)
    amount, distance = rng.exponential(1.0, count), rng.normal(size=count)
    new, night = rng.random(count) < 0.3, rng.random(count) < 0.2
    score = 4.5 - 0.9 * amount - 1.6 * new - 1.6 * (new & night) - 0.5 * distance
    return np.column_stack([amount, distance, new, night]), rng.random(count) < 1 / (1 + np.exp(-score))


def main() -> None:
    """Decide twenty orders a day for a month. Chargebacks are known three days later."""
    X, honest = orders(700)
    goal = ln.Discounted(cost=COST, discount=0.99)
    policy = ln.FeaturePolicy(objective=goal, explore=0.05, random_state=0).fit(X[:100])
    waiting: list[tuple[slice, NDArray[np.bool_]]] = []
    for day in range(30):
        today = slice(100 + 20 * day, 120 + 20 * day)
        waiting.append((today, policy.decide(X[today], time=float(day))))
        if len(waiting) > 3:
            then, shipped = waiting.pop(0)
            policy = policy.observe(X[then], shipped, honest[then])

    log = policy.log_
    shipped = np.array([decision.accepted for decision in log])
    earned = float((honest[100:] - COST)[shipped].sum())
    always = float((honest[100:] - COST).sum())
    print(f"{policy.accepted_} of 600 shipped, earned {earned:.1f}; shipping all: {always:.1f}")
    for reason in policy.explain(np.array([[0.3, -0.5, 0, 0], [3.0, 1.0, 1, 1]])):
        print(reason)

    result = ln.off_policy(
        proposed=(X[100:, 0] < 2).astype(float),
        accepted=shipped,
        propensity=[decision.propensity for decision in log],
        outcomes=np.where(shipped, honest[100:], np.nan),
        cost=COST,
        X=X[100:],
    )
    print(f"Ship every order below an amount of 2? {result.statement}")


if __name__ == "__main__":
    main()
