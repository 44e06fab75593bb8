"""What keeping a table loses, computed exactly, against the bound that is promised."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from lenience import Belief, Discounted, Segments, evaluate
from lenience.core.protocols import Policy
from lenience.segments import loss_of_keeping
from lenience.segments.staleness import belief_distance


class Kept:
    """A table for the outcomes seen since the prior, followed from another prior on."""

    stop_ceiling = 1.0

    def __init__(self, policy: Policy, solved: Belief, right: Belief) -> None:
        self.policy, self.solved, self.right = policy, solved, right

    def stop_floor(self, n: float) -> float:
        return -1.0

    def to_json(self) -> str:
        return self.policy.to_json()

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        size = float(np.asarray(n)) - self.right.n + self.solved.n
        return self.policy.acceptance(size, np.asarray(s) - self.right.s + self.solved.s)


def exact_loss(solved: Discounted, old: Belief, right: Discounted, new: Belief) -> float:
    policy = Kept(solved.solve(old, rows=3000), old, new)
    best: float = right.solve(new, rows=1).value(new).midpoint
    return best - evaluate(policy, right, new, tolerance=1e-9).midpoint


@pytest.mark.parametrize("cost", [0.5, 0.8])
@pytest.mark.parametrize(("old", "new"), [(0.9, 0.95), (0.95, 0.9), (0.97, 0.975), (0.5, 0.97), (0.97, 0.5)])
def test_a_moved_discount(cost: float, old: float, new: float) -> None:
    belief = Belief(4, 3)
    solved, right = Discounted(cost, old), Discounted(cost, new)
    loss = exact_loss(solved, belief, right, belief)
    assert -1e-8 <= loss <= loss_of_keeping(solved, belief, right, belief)


@pytest.mark.parametrize(
    ("old", "new"),
    [((2, 1), (2, 1.2)), ((2, 1.5), (4, 2.4)), ((10, 8), (6, 4.8)), ((2, 1.9), (2, 0.4)), ((3, 2.5), (30, 22))],
)
def test_a_moved_belief(old: tuple[float, float], new: tuple[float, float]) -> None:
    problem = Discounted(0.75, 0.96)
    loss = exact_loss(problem, Belief(*old), problem, Belief(*new))
    bound = loss_of_keeping(problem, Belief(*old), problem, Belief(*new))
    assert -1e-8 <= loss <= bound


def test_both_moved_at_random() -> None:
    generator = np.random.default_rng(11)
    largest = 0.0
    for _ in range(12):
        cost = generator.uniform(0.4, 0.9)
        old, new = (Discounted(cost, 1 - 1 / generator.uniform(2, 25)) for _ in range(2))
        n, m = generator.uniform(1, 8, 2)
        before, after = Belief(n, n * generator.uniform(0.3, 0.95)), Belief(m, m * generator.uniform(0.3, 0.95))
        loss, bound = exact_loss(old, before, new, after), loss_of_keeping(old, before, new, after)
        assert -1e-8 <= loss <= bound
        largest = max(largest, loss / bound)
    assert largest > 0.01  # the bound is not vacuous


def test_belief_distance_by_quadrature() -> None:
    from scipy.special import betaln, expit

    generator = np.random.default_rng(5)
    t = np.linspace(-60.0, 40.0, 400_001)
    p = expit(t)
    log_p, log_q = -np.logaddexp(0.0, -t), -np.logaddexp(0.0, t)
    for _ in range(20):
        a, b, a2, b2 = generator.uniform(0.6, 12.0, 4)
        c = generator.uniform(0.1, 0.9)
        # dp = p(1 − p) dt: densities of the logit.
        gap = np.exp(a * log_p + b * log_q - betaln(a, b)) - np.exp(a2 * log_p + b2 * log_q - betaln(a2, b2))
        expected = float(np.sum(np.abs(p - c) * np.abs(gap)) * (t[1] - t[0]))
        assert float(belief_distance(a + b, a, a2 + b2, a2, c)) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_refresh_solves_again_only_what_moved() -> None:
    cells = Segments.of({"a": 0.4, "b": 0.3, "c": 0.2}, Discounted(0.8, 0.999), Belief(2, 1))
    first = cells.solve()
    same, nothing = first.refresh(cells, allowed_loss=0.0)
    assert nothing.solved == ()
    assert nothing.loss == 0.0
    assert same["a"] is first["a"]
    moved = cells.with_shares({"a": 0.402, "b": 0.33}).with_priors({"c": Belief(2.5, 1.8)})
    later, report = first.refresh(moved, allowed_loss=0.02)
    assert report.solved == ("b", "c")
    assert report.reused == 1
    assert 0.0 < report.loss <= report.allowed
    assert later["a"] is first["a"]
    assert later["c"].prior == Belief(2.5, 1.8)
    # The whole's bounds hold the optimum of the moved problem.
    best = moved.solve().value()
    assert later.value().lower <= best.midpoint <= later.value().upper


def test_kept_tables_lose_no_more_than_promised() -> None:
    old = Discounted(0.8, 0.97)
    cells = Segments.of({"a": 0.6, "b": 0.4}, old, Belief(4, 3))
    moved = cells.with_shares({"a": 0.57, "b": 0.43})
    _, report = cells.solve().refresh(moved, allowed_loss=0.2)
    assert report.reused == 2
    loss = sum(
        new.weight * exact_loss(cell.own, cell.prior, new.own, new.prior)
        for cell, new in zip(cells, moved, strict=True)
    )
    assert loss <= report.loss
