"""Outcomes come a year late: how many loans may be open at once, and what it costs to ignore the delay.

python examples/late_labels.py
"""

from __future__ import annotations

import lenience as ln

PRIOR = ln.Belief(2, 1)


def main() -> None:
    """Solve, explain, decide a month's batch, and compare with policies that ignore pending outcomes."""
    problem = ln.Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    policy = problem.solve(PRIOR, tolerance=1e-4)
    print(policy.certificate.statement)
    for belief, pending in ((PRIOR, 0), (ln.Belief(10, 7), 5), (ln.Belief(10, 9), 20)):
        print(policy.explain(belief, pending=pending))
    print("Of this month's 12 applicants, accept", policy.accept_now(ln.Belief(10, 7), pending=3, applicants=12))
    print(f"Outcomes expire after {policy.expire_after:g} years.")

    print("\nThe values of policies if labels come after a year, to within a few thousandths:")
    for row in ln.analysis.value_by_delay(0.8, 50, 0.1, PRIOR, delays=[1.0], caps=[3], tolerance=1e-3):
        print(f"{row.policy:22} {row.value.midpoint:7.3f}")


if __name__ == "__main__":
    main()
