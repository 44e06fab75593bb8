"""Write your own policy: check it, compute its exact value, and compare it with the optimum on the same individuals.

python examples/custom_policy.py
"""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lenience as ln


class Grace:
    """Accept the first ``grace`` individuals in any case, then only a success rate above the cost."""

    def __init__(self, cost: float, prior: ln.Belief, grace: int) -> None:
        self.cost, self.prior, self.grace = cost, prior, grace

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of acceptance at beliefs (n, s)."""
        size, good = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
        return ((size < self.prior.n + self.grace) | (good > self.cost * size)).astype(np.float64)

    @property
    def stop_ceiling(self) -> float:
        """The rate above which the policy never stops for good: the cost."""
        return self.cost

    def stop_floor(self, n: float) -> float:
        """Return the rate at or below which the policy has stopped: the cost, after the grace."""
        return self.cost if n >= self.prior.n + self.grace else -1.0

    def to_json(self) -> str:
        """Return the policy as JSON text."""
        return json.dumps({"cost": self.cost, "n": self.prior.n, "s": self.prior.s, "grace": self.grace})

    @classmethod
    def from_json(cls, text: str) -> Grace:
        """Read a policy that ``to_json`` wrote."""
        fields = json.loads(text)
        return cls(fields["cost"], ln.Belief(fields["n"], fields["s"]), fields["grace"])

    def __repr__(self) -> str:
        return f"Grace(cost={self.cost}, prior={self.prior}, grace={self.grace})"


def main() -> None:
    """Check, evaluate and simulate the policy."""
    problem, prior = ln.Discounted(cost=0.8, discount=0.95), ln.Belief(6, 5)
    print("checked:", ", ".join(ln.check_policy(Grace(0.8, prior, 3), prior)))
    best = problem.solve(prior).value(prior)
    print(f"the optimum is worth {best}")
    for grace in (0, 3, 10):
        print(f"a grace of {grace:2}: {ln.evaluate(Grace(0.8, prior, grace), problem, prior, tolerance=1e-6)}")
    simulation = ln.compare_policies(
        {"grace 3": Grace(0.8, prior, 3)},
        ln.simulation.FromPrior(prior),
        cost=0.8,
        discount=0.95,
        horizon=200,
        replications=2000,
        prior=prior,
    )
    print(f"simulated, a grace of 3 is behind the optimum by {simulation.behind('grace 3')}")


if __name__ == "__main__":
    main()
