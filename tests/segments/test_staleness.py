"""What keeping a table loses, computed exactly, against the bound that is promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from lenience import Belief, Delayed, Discounted, FiniteHorizon, Segments, evaluate
from lenience.core.belief import check_prior
from lenience.core.protocols import Policy
from lenience.segments import loss_of_keeping
from lenience.segments.policies import _merged
from lenience.segments.staleness import belief_distance
from oracles import knowing
from rejections import rejected


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
    for case in range(24):
        shapes = generator.uniform(1.1, 12.0, 4)
        if case >= 20:
            shapes[case - 20] = 0.6  # each shape below 1 in turn
        a, b, a2, b2 = shapes
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
        new.weight * exact_loss(cell.own, check_prior(cell.prior), new.own, check_prior(new.prior))
        for cell, new in zip(cells, moved, strict=True)
    )
    assert loss <= report.loss


def test_a_report_adds_up_the_losses_of_what_is_kept() -> None:
    cells = Segments.of({"a": 0.6, "b": 0.3, "c": 0.1}, Discounted(0.8, 0.97), {
        "a": Belief(4, 3), "b": Belief(2, 1), "c": Belief(9, 8),
    })  # fmt: skip
    moved = cells.with_shares({"a": 0.57, "b": 0.31}).with_priors({"b": Belief(2, 1.004)})
    policies = cells.solve()
    losses = policies.losses(moved)
    knowing_p = {}
    for old, new in zip(cells, moved, strict=True):
        expected = new.weight * loss_of_keeping(old.own, check_prior(old.prior), new.own, check_prior(new.prior))
        assert losses[new.name] == pytest.approx(expected)
        # Knowing p, one accepts whenever p is above the cost.
        knowing_p[new.name] = new.weight / (1 - new.own.discount) * knowing(new.prior.n, new.prior.s, 0.8)
    later, report = policies.refresh(moved, allowed_loss=0.3)
    assert report.reused == 3
    assert report.loss == pytest.approx(sum(losses.values()))
    assert report.allowed == pytest.approx(0.3 * sum(knowing_p.values()))
    # What is kept is worth the old value, give or take the loss.
    for old, new in zip(cells, moved, strict=True):
        each = loss_of_keeping(old.own, check_prior(old.prior), new.own, check_prior(new.prior))
        value = old.own.solve(old.prior).value(old.prior)
        bounds = later.segment_value(new.name)
        assert bounds.lower == pytest.approx(new.weight * (value.lower - each), abs=1e-8)
        assert bounds.upper == pytest.approx(new.weight * (value.upper + each), abs=1e-8)
    # The relative loss decides for each segment alone.
    for allowed in (0.001, 0.01, 0.05, 0.2):
        again = policies.refresh(moved, allowed_loss=allowed)[1].solved
        assert set(again) == {name for name in losses if losses[name] > allowed * knowing_p[name]}


def test_another_cost_or_objective_is_always_solved_again() -> None:
    cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.8, 0.97), Belief(4, 3))
    dearer = Segments.of({"a": 0.5, "b": 0.5}, {"a": Discounted(0.81, 0.97), "b": Discounted(0.8, 0.97)}, Belief(4, 3))
    assert cells.solve().losses(dearer) == {"a": np.inf, "b": 0.0}
    late = Segments.of({"a": 0.5, "b": 0.5}, Delayed(0.8, 20, 0.3, 0.5), Belief(4, 3))
    assert late.solve().losses(late.with_priors({"b": Belief(4, 3.1)})) == {"a": 0.0, "b": np.inf}
    # A segment that is new has no table yet.
    grown = Segments.of({"a": 0.5, "b": 0.4, "c": 0.1}, Discounted(0.8, 0.97), Belief(4, 3))
    assert "c" in cells.solve().refresh(grown, allowed_loss=0.9)[1].solved


@pytest.mark.parametrize("allowed", [0.001, 0.1, 0.6])
def test_merged_volumes_are_within_the_allowed_loss(allowed: float) -> None:
    distinct = set()
    for x in np.geomspace(1.5, 5000, 400):
        merged = _merged(Discounted(0.7, 1 - 1 / x), allowed)
        new = 1 / (1 - merged.discount)
        assert abs(new - x) <= allowed * x * (1 + 1e-9)
        distinct.add(new)
    # As few tables as that allows, to within a few.
    steps = np.log(5000 / 1.5) / (2 * np.log1p(allowed) if allowed < 0.5 else 0.8)
    assert len(distinct) == pytest.approx(min(steps, 400), abs=2)
    assert _merged(Discounted(0.7, 0.9), 0.0) == Discounted(0.7, 0.9)


def test_tables_have_as_many_rows_as_matter() -> None:
    cells = Segments.of({"a": 0.9, "b": 0.1}, Discounted(0.8, 0.995), Belief(2, 1))
    policies = cells.solve()
    assert len(policies["a"].accept_from) == 1000
    assert len(policies["b"].accept_from) == int(np.ceil(8 * (1 + cells["b"].volume)))
    assert len(cells.solve(rows=7)["a"].accept_from) == 7


def test_certainties_have_no_density() -> None:
    for sure, rate in ((Belief(3, 3), 1.0), (Belief(3, 0), 0.0)):
        for cost in (0.3, 0.8):
            # Against a flat belief: both means of |p − c| add up.
            flat = (cost**2 + (1 - cost) ** 2) / 2
            found = float(belief_distance(2, 1, sure.n, sure.s, cost))
            assert found == pytest.approx(flat + abs(rate - cost))
            assert float(belief_distance(sure.n, sure.s, 2, 1, cost)) == pytest.approx(found)
            assert float(belief_distance(sure.n, sure.s, sure.n, sure.s, cost)) == 0.0


def test_far_apart_beliefs_are_as_far_as_their_means_of_the_distance() -> None:
    found = float(belief_distance(2e4, 2e3, 3e4, 2.7e4, 0.5))
    assert found == pytest.approx(0.4 + 0.4, abs=1e-9)


@pytest.mark.parametrize("wrong", ["0.8", None, FiniteHorizon(0.8, 5)])
def test_only_discounted_objectives_are_compared(wrong: Any) -> None:
    right, belief = Discounted(0.8, 0.99), Belief(2, 1)
    with rejected("solved"):
        loss_of_keeping(wrong, belief, right, belief)
    with rejected("right"):
        loss_of_keeping(right, belief, wrong, belief)
