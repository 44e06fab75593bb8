"""What policies earn with a prior that may be wrong: with late labels, and without discounting."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lenience import Belief, Delayed, FiniteHorizon, MixtureBelief
from lenience.analysis import regret_table
from lenience.analysis.delay import BLIND, baselines, evaluate_pending
from lenience.policies.beliefs.counted_cap import CountedCap
from lenience.solvers.offers.doubt import even_rows, undiscounted_values

DOUBTED = MixtureBelief.doubt(Belief(4, 2.3), 0.4)
PROBLEM = Delayed(cost=0.6, arrivals=2, discount_rate=0.6, label_delay=0.7)


def plainly(policy: CountedCap, rows: int, cap: int) -> float:
    """The value by a double loop over all outcomes and numbers pending, with nothing accepted after ``rows`` labels."""
    rate, arrivals, resolve = PROBLEM.discount_rate, PROBLEM.arrivals, 1 / PROBLEM.label_delay
    first = DOUBTED.beliefs[0]
    value = np.zeros((rows + 2, cap + 2))
    for k in range(rows, -1, -1):
        fresh = np.zeros((rows + 2, cap + 2))
        for j in range(k + 1):
            p = DOUBTED.after(k, j).mean
            for m in range(cap, -1, -1):
                go = arrivals * float(policy.acceptance(first.n + k, first.s + j, m)[()]) if m < cap else 0.0
                late = m * resolve * (p * value[j + 1, m - 1] + (1 - p) * value[j, m - 1]) if m and k < rows else 0.0
                fresh[j, m] = (go * (p - PROBLEM.cost + fresh[j, m + 1]) + late) / (rate + go + m * resolve)
        value = fresh
    return float(value[0, 0])


@pytest.mark.parametrize("name", [BLIND, "greedy", "cap 1", "cap 3", "wait for every label"])
def test_late_labels_against_a_double_loop(name: str) -> None:
    policies = baselines(PROBLEM, DOUBTED, caps=(1, 3))
    policy = policies[name]
    assert isinstance(policy, CountedCap)
    found = evaluate_pending(policy, PROBLEM, DOUBTED, 1e-7)
    assert found.width < 1e-4
    assert plainly(policy, 40, 12) == pytest.approx(found.midpoint, abs=3e-6 + found.width)
    if name == BLIND:
        assert found.midpoint > 1e-3


def test_the_optimum_earns_at_least_as_much_as_every_baseline() -> None:
    problem = Delayed(cost=0.6, arrivals=12, discount_rate=0.4, label_delay=0.5)
    best = problem.solve(DOUBTED, tolerance=1e-4).value(DOUBTED)
    values = [evaluate_pending(one, problem, DOUBTED, 1e-5) for one in baselines(problem, DOUBTED).values()]
    assert max(one.midpoint for one in values) > 0.0
    assert all(one.lower <= best.upper for one in values)


def test_a_mixture_of_equal_beliefs_is_one_belief() -> None:
    single = Belief(5, 3)
    same = MixtureBelief((single, single), (0.3, 0.7))
    one, two = baselines(PROBLEM, single, caps=(2,)), baselines(PROBLEM, same, caps=(2,))
    assert list(one) == list(two)
    for name in one:
        alone = evaluate_pending(one[name], PROBLEM, single, 1e-6)
        assert evaluate_pending(two[name], PROBLEM, same, 1e-6).midpoint == pytest.approx(alone.midpoint, abs=1e-5)
    plain, mixed = regret_table(0.6, single, [40]), regret_table(0.6, same, [40])
    assert [row.policy for row in plain] == [row.policy for row in mixed]
    assert [row.regret for row in plain] == pytest.approx([row.regret for row in mixed], abs=1e-8)


def test_undiscounted_values_against_fractions() -> None:
    prior, cost, horizon = DOUBTED, 0.55, 14
    above = even_rows(prior, cost, horizon, strictly=True)
    explore = above.copy()
    explore[:4] = 0
    best, values = undiscounted_values(prior, cost, horizon, np.stack([above, explore]))

    def worth(k: int, j: int, accept_from: np.ndarray | None) -> Fraction:
        if k == horizon or (accept_from is not None and j < accept_from[k]):
            return Fraction(0)
        p = Fraction(prior.after(k, j).mean)
        key = (k, j, None if accept_from is None else id(accept_from))
        if key not in known:
            going = p - Fraction(cost) + p * worth(k + 1, j + 1, accept_from) + (1 - p) * worth(k + 1, j, accept_from)
            known[key] = max(going, Fraction(0)) if accept_from is None else going
        return known[key]

    known: dict[tuple[int, int, int | None], Fraction] = {}
    assert best == pytest.approx(float(worth(0, 0, None)), abs=1e-12)
    assert values.tolist() == pytest.approx([float(worth(0, 0, above)), float(worth(0, 0, explore))], abs=1e-12)
    assert best in FiniteHorizon(cost, horizon).solve(prior).value(prior)
    assert values[1] != pytest.approx(values[0], abs=1e-4)


def test_boundary_rows_are_the_least_that_reach_the_cost() -> None:
    cost = DOUBTED.after(6, 4).mean
    for strictly in (False, True):
        for k, least in enumerate(even_rows(DOUBTED, cost, 12, strictly)):
            means = [DOUBTED.after(k, j).mean for j in range(k + 1)]
            reached = [mean > cost + 1e-12 if strictly and k != 6 else mean >= cost - 1e-12 for mean in means]
            assert k == 6 or least == (reached.index(True) if any(reached) else k + 1)


def test_regret_falls_with_the_truth_of_the_prior() -> None:
    rows = {row.policy: row for row in regret_table(0.5, MixtureBelief.doubt(Belief(10, 3), 0.2), [100], ["√H"])}
    best = rows["optimal"]
    assert best.avoidable == 0.0
    assert all(row.regret >= best.regret - 1e-9 for row in rows.values())
    # Who trusts the prior alone never starts, and misses what the flat one promises.
    assert best.value > 0.0
    assert FiniteHorizon(0.5, 20).solve(Belief(10, 3)).accepts(Belief(10, 3)) is False
