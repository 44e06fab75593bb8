"""Decisions out: the policy as an expression, equal row by row to the policy itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief, Discounted, FiniteHorizon
from lenience.policies.beliefs.expression import decision_expression
from lenience.policies.beliefs.optimal import OptimalPolicy
from rejections import rejected

pa = pytest.importorskip("pyarrow")
ibis = pytest.importorskip("ibis")

POLICIES = [
    Discounted(0.8, 0.99).solve(Belief(2, 1)),
    Discounted(0.65, 0.95).solve(Belief(1.5, 0.75), rows=20),
    FiniteHorizon(0.7, 60).solve(Belief(2, 1)),
]


def lattice(policy: OptimalPolicy, rows: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    k = generator.integers(0, rows, 2000)
    j = np.minimum(np.round(k * generator.uniform(policy.objective.cost - 0.2, 1.0, 2000)), k)
    return (policy.prior.n + k).astype(np.float64), (policy.prior.s + j).astype(np.float64)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_equal_row_by_row(policy: OptimalPolicy) -> None:
    n, s = lattice(policy, 50)
    table = ibis.memtable(pa.table({"n": n, "s": s}))
    found = table.mutate(accept=policy.expression(table)).to_pyarrow()["accept"].to_pylist()
    expected = [policy.accepts(Belief(float(a), float(b))) for a, b in zip(n, s, strict=True)]
    assert found == expected
    assert {True, False} == set(expected)


def test_beyond_the_table_off_the_lattice_and_missing() -> None:
    policy = Discounted(0.8, 0.99).solve(Belief(2, 1), rows=10)
    n = [500.0, 500.0, 3.3, 3.3, 7.25, 2.5, 1.0, None, 4.0]
    s = [395.0, 405.0, 1.0, 3.1, 5.5, 1.0, 1.0, 1.0, None]
    table = ibis.memtable(pa.table({"observed": n, "good": s}))
    found = (
        table.mutate(accept=decision_expression(policy, table, "observed", "good")).to_pyarrow()["accept"].to_pylist()
    )
    expected = [None if a is None or b is None else policy.accepts(Belief(a, b)) for a, b in zip(n, s, strict=True)]
    assert found == expected
    assert {True, False, None} == set(expected)


def test_too_many_beliefs_off_the_lattice() -> None:
    policy = POLICIES[0]
    table = ibis.memtable(pa.table({"n": np.linspace(3.001, 9.77, 5000), "s": np.full(5000, 2.0)}))
    with rejected("beliefs"):
        policy.expression(table)
    with rejected("column", "unknown_name"):
        policy.expression(table, n="size")


def test_beliefs_on_the_lattice_need_no_solve_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.policies.beliefs.expression.MOST_OWN", 0)
    policy = Discounted(0.8, 0.99).solve(Belief(2, 1))
    rows = [(2.0 + k, 1.0 + j) for k in (0, 3, 9) for j in range(k + 1)]
    table = ibis.memtable(pa.table({"n": [n for n, _ in rows], "s": [s for _, s in rows]}))
    decided = table.mutate(accept=decision_expression(policy, table)).to_pyarrow()["accept"].to_pylist()
    assert decided == [policy.accepts(Belief(n, s)) for n, s in rows]
    aside = ibis.memtable(pa.table({"n": [4.5], "s": [2.0]}))
    with rejected("beliefs"):
        decision_expression(policy, aside)
