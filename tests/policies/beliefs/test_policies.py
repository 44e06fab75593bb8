"""Every policy passes the checklist, and each does what its formula says."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

import lenience as ln
from lenience.core.protocols import acceptance_at, looks_at_pending
from lenience.policies.beliefs.forgetting import thresholds
from lenience.policies.check import PolicyError
from lenience.policies.registry import POLICIES, label_of, takes
from rejections import rejected

FLAT = ln.Belief(2, 1)
JEFFREYS = ln.Belief(1, 0.5)

POLICIES_TRIED: list[Any] = [
    ln.policies.BayesUCB(0.8),
    ln.policies.BayesUCB(0.3, quantile=0.99),
    ln.policies.BayesUCB(0.6, quantile=None),
    ln.policies.Constant(1.0),
    ln.policies.Constant(0.0),
    ln.policies.DecayingEpsilon(0.8, scale=3.0),
    ln.Discounted(0.8, 0.99).solve(FLAT),
    ln.Discounted(0.8, 0.9).solve(JEFFREYS, rows=64),
    ln.policies.EpsilonGreedy(0.8, 0.05),
    ln.policies.EpsilonGreedy(0.8, 0.0),
    ln.policies.ExploreThenExploit(0.8, 10, FLAT),
    ln.FiniteHorizon(0.8, 100).solve(FLAT),
    ln.Delayed(0.8, arrivals=50, discount_rate=0.5, label_delay=0.25).solve(FLAT),
    ln.policies.EstimatedExposurePolicy.solve(ln.Delayed(0.8, arrivals=9, discount_rate=0.5, label_delay=0.25), FLAT),
    ln.policies.Forgetting(0.8, 0.99, 0.99, FLAT),
    ln.policies.Gittins(0.8, 0.95),
    ln.policies.Greedy(0.8),
    ln.policies.KLUCB(0.8),
    ln.policies.KLUCB(0.2, exploration=3.0),
    ln.policies.Logistic(0.8, sharpness=2.0),
    ln.policies.Persistent(0.8, exponent=0.5),
    ln.policies.SemiLogistic(0.8),
    ln.policies.Thompson(0.8),
    ln.policies.Blind(ln.policies.Greedy(0.8), cost=0.8),
    ln.policies.Capped(ln.Discounted(0.8, 0.99).solve(ln.Belief(2, 1)), cost=0.8, cap=3),
]

LIMITED = ln.ExposurePolicy | ln.policies.EstimatedExposurePolicy | ln.policies.Blind | ln.policies.Capped


@pytest.mark.parametrize("policy", POLICIES_TRIED, ids=label_of)
def test_every_policy_passes_the_checklist(policy: Any) -> None:
    done = ln.check_policy(policy)
    assert done[:5] == ["probabilities", "shapes", "no state", "JSON", "repr"]
    assert "monotone" in done or isinstance(policy, LIMITED)


def test_every_registered_policy_is_tried() -> None:
    tried = {type(policy).__struct_config__.tag for policy in POLICIES_TRIED}
    assert tried == set(POLICIES)


class Broken:
    """A policy that does wrong what ``fault`` says."""

    monotone: ClassVar[bool] = True
    two_valued: ClassVar[bool] = True
    stop_ceiling = 0.5

    def __init__(self, fault: str) -> None:
        self.fault, self.asked = fault, 0

    def stop_floor(self, n: float) -> float:
        return 0.3 if self.fault == "floor" else -1.0

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        size, good = np.broadcast_arrays(np.asarray(n, dtype=float), np.asarray(s, dtype=float))
        self.asked += 1
        match self.fault:
            case "range":
                return np.asarray(good / size + 0.5)
            case "shape":
                return np.full(np.size(n), 1.0)
            case "dtype":
                return np.ones(size.shape, dtype=np.float32)
            case "state":
                return np.full(size.shape, 1.0 / self.asked)
            case "falling":
                return np.where(good > 0.5 * size, 0.5, 1.0)
            case "three":
                return np.where(good > 0.9 * size, 1.0, np.where(good > 0.5 * size, 0.5, 0.25))
            case "ceiling":
                return (good > 0.9 * size).astype(np.float64)
        return np.ones(size.shape)

    def to_json(self) -> str:
        return '{"type": "broken"}' if self.fault == "json" else '{"type": "constant", "probability": 1.0}'

    def __repr__(self) -> str:
        return "a policy at 0x7f" if self.fault == "repr" else "Broken()"


class AcceptanceAlone:
    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        return np.ones(np.broadcast(n, s).shape)


class OneByOne:
    def acceptance(self, n: float, s: float) -> float:
        return 1.0 if s > 0.8 * n else 0.0


class HalfAPromise(AcceptanceAlone):
    stop_ceiling = 0.0

    def to_json(self) -> str:
        return "{}"

    @classmethod
    def from_json(cls, text: str) -> HalfAPromise:
        return cls()

    def __repr__(self) -> str:
        return "HalfAPromise()"


@pytest.mark.parametrize(
    ("policy", "missing"),
    [
        (AcceptanceAlone(), "to_json.*from_json"),
        (OneByOne(), "arrays of n and s.*ValueError: The truth value"),
        (HalfAPromise(), "stop_floor"),
    ],
)
def test_the_error_names_what_a_user_policy_lacks(policy: Any, missing: str) -> None:
    with pytest.raises(PolicyError, match=missing):
        ln.check_policy(policy)


def test_a_walk_without_end_needs_the_promises_about_stopping() -> None:
    alone: Any = AcceptanceAlone()
    assert ln.evaluate(alone, ln.Discounted(0.5, 0.9), FLAT).midpoint == pytest.approx(0.0, abs=1e-9)
    assert ln.characteristics(alone, 0.9, ln.FiniteHorizon(0.5, 9), FLAT).stops.upper < 1e-9
    with rejected("policy"):
        ln.characteristics(alone, 0.9, ln.Discounted(0.5, 0.9), FLAT)


@pytest.mark.parametrize("fault", ["range", "shape", "dtype", "state", "json", "none"])
def test_the_checklist_finds_faults(fault: str) -> None:
    # "none" keeps every rule but one: its JSON is that of another kind of policy.
    with pytest.raises(PolicyError):
        ln.check_policy(Broken(fault))


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("repr", "repr"),
        ("falling", "monotone"),
        ("three", "two values"),
        ("ceiling", "stopping"),
        ("floor", "stopping"),
    ],
)
def test_each_later_check_finds_its_fault(fault: str, check: str) -> None:
    from lenience.policies.check import CHECKS, _lattice

    with pytest.raises(PolicyError):
        CHECKS[check](Broken(fault), *_lattice(FLAT, 40))
    assert CHECKS[check](Broken("none"), *_lattice(FLAT, 40))


def test_gittins_is_the_optimum() -> None:
    for cost, discount in ((0.8, 0.99), (0.5, 0.9)):
        optimum = ln.Discounted(cost, discount).solve(FLAT)
        k = np.concatenate([np.full(row + 1, row) for row in range(40)])
        j = np.concatenate([np.arange(row + 1) for row in range(40)])
        n, s = 2.0 + k, 1.0 + j
        assert np.array_equal(ln.policies.Gittins(cost, discount).acceptance(n, s), optimum.acceptance(n, s))


def test_thompson_is_the_chance_of_being_right() -> None:
    n, s = np.array([2.0, 10.0, 33.3]), np.array([1.0, 7.0, 20.1])
    assert ln.policies.Thompson(0.7).acceptance(n, s) == pytest.approx(beta.sf(0.7, s, n - s))
    draws = np.random.default_rng(1).beta(7, 3, 100_000) > 0.7
    assert abs(draws.mean() - ln.policies.Thompson(0.7).acceptance(10, 7)) < 0.006


def test_bayes_ucb_compares_the_quantile() -> None:
    n = np.full(10, 11.0)
    s = np.arange(1.0, 11.0)
    expected = beta.ppf(0.9, s, n - s) > 0.6
    assert np.array_equal(ln.policies.BayesUCB(0.6, quantile=0.9).acceptance(n, s), expected)
    growing = beta.ppf(1 - 1 / 12, s, n - s) > 0.6
    assert np.array_equal(ln.policies.BayesUCB(0.6, quantile=None).acceptance(n, s), growing)


def test_kl_ucb_compares_the_upper_bound() -> None:
    from scipy.optimize import brentq

    def bound(mean: float, n: float) -> float:
        def excess(q: float) -> float:
            return float(n * (mean * np.log(mean / q) + (1 - mean) * np.log((1 - mean) / (1 - q))) - np.log(n + 1))

        return float(brentq(excess, mean, 1 - 1e-12))

    for n, s in ((10, 4), (10, 5), (10, 6), (40, 28), (40, 25), (40, 22)):
        assert bool(ln.policies.KLUCB(0.8).acceptance(n, s)) == (bound(s / n, n) > 0.8)


def test_certainties_are_decided() -> None:
    for policy in POLICIES_TRIED:
        if not isinstance(
            policy, ln.OptimalPolicy | ln.ExposurePolicy | ln.policies.Constant | ln.policies.ExploreThenExploit
        ):
            assert policy.acceptance(5.0, 5.0) == 1.0
    assert ln.policies.Thompson(0.8).acceptance(5.0, 0.0) == 0.0


def test_a_kilbertus_policy_is_even_at_the_cost() -> None:
    assert ln.policies.Logistic(0.8).acceptance(10, 8) == pytest.approx(0.5)
    assert ln.policies.SemiLogistic(0.8).acceptance(10, 8) == 1.0
    below = ln.policies.Logistic(0.8).acceptance(10, 6)
    assert below == ln.policies.SemiLogistic(0.8).acceptance(10, 6)
    assert below == pytest.approx(0.6 * 0.2 / (0.6 * 0.2 + 0.4 * 0.8))


def test_forgetting_interpolates_the_thresholds() -> None:
    optimum = ln.Discounted(0.8, 0.99).solve(FLAT)
    sizes = np.array([1.0, 3.7, 10.0, 88.8, 1000.0])
    exact = [optimum.threshold(float(n), tolerance=1e-6).midpoint for n in sizes]
    assert thresholds(0.8, 0.99, sizes) == pytest.approx(exact, abs=2e-3)


def test_a_shut_out_population_is_looked_at_again() -> None:
    policy = ln.policies.Forgetting(0.8, 0.99, 0.98, FLAT)
    n, s = 40.0, 20.0
    assert policy.acceptance(n, s) == 0.0
    assert policy.looks_again
    steps = 0
    while policy.acceptance(n, s) == 0.0:
        n, s = policy.fade(n, s)
        steps += 1
    assert 10 < steps < 400
    assert n > 2.0
    assert not ln.policies.Forgetting(0.8, 0.99, 1.0, FLAT).looks_again


def test_names_and_their_errors() -> None:
    assert ln.policies.policy_named("always-accept") == ln.policies.Constant(1.0)
    assert ln.policies.policy_named("bayes_ucb", cost=0.8) == ln.policies.BayesUCB(0.8)
    explore = ln.policies.policy_named("explore-then-exploit", cost=0.8, explore=3, prior={"n": 2, "s": 1})
    assert explore == ln.policies.ExploreThenExploit(0.8, 3, FLAT)
    horizon = ln.policies.policy_named("finite-horizon", cost=0.8, horizon=50, prior=FLAT)
    assert isinstance(horizon, ln.OptimalPolicy)
    with rejected("policy", "unknown_name"):
        ln.policies.policy_named("gredy", cost=0.8)
    with rejected("costs", "unknown_name"):
        ln.policies.policy_named("greedy", costs=0.8)
    with rejected("cost", "missing"):
        ln.policies.policy_named("greedy")
    with rejected("cost"):
        ln.policies.policy_named("greedy", cost=2)
    with rejected("prior"):
        ln.policies.policy_named("optimal", cost=0.8, discount=0.9, prior={"m": 2})
    assert all(name in ln.policies.policy_names() for name in ("optimal", "finite-horizon", "gittins"))
    assert takes("thompson", "cost")


def test_labels_tell_policies_and_worlds_apart() -> None:
    assert label_of(POLICIES_TRIED[6]) == "optimal (objective=discounted (cost=0.8, discount=0.99))"
    late = ln.simulation.LateLabels(ln.simulation.FromPrior(FLAT), ln.simulation.LabelDelay("exponential", mean=20))
    assert label_of(late, ()) == "late-labels (world=prior (prior=Beta(1, 1)), delay=exponential/20/1/0)"
    assert (
        label_of(ln.simulation.ChangePoints(rates=[0.5, 0.9], at=[100]), ()) == "change-points (rates=0.5/0.9, at=100)"
    )
    assert label_of(ln.simulation.PastRows([0, 1])) == "PastRows(rows=2, segments=1)"


def test_json_and_its_errors() -> None:
    with rejected("type", "unknown_name"):
        ln.policy_from_json('{"type": "magic"}')
    with rejected("text", "invalid_json"):
        ln.policy_from_json("{")
    with rejected("text", "invalid_json"):
        ln.policy_from_json("[1]")
    with rejected("text", "invalid_file"):
        ln.policy_from_json('{"type": "greedy"}')
    with rejected("text", "invalid_file"):
        ln.policy_from_json('{"type": "greedy", "cost": 3}')


class Capped:
    """Greedy, but with at most two labels out."""

    stop_ceiling = 1.0

    def stop_floor(self, n: float) -> float:
        return -1.0

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        return np.asarray(np.asarray(pending) < 2, dtype=np.float64) * np.ones(np.shape(n))

    def to_json(self) -> str:
        return "{}"


def test_pending_reaches_those_who_look_at_it() -> None:
    assert looks_at_pending(Capped())
    assert not looks_at_pending(ln.policies.Greedy(0.5))
    assert acceptance_at(Capped(), [4, 4], [2, 2], [1, 2]).tolist() == [1.0, 0.0]
    assert acceptance_at(ln.policies.Constant(0.5), [4, 4], [2, 2], [1, 2]).tolist() == [0.5, 0.5]


def test_at_the_break_even_nothing_is_expected_to_be_lost() -> None:
    explanation = ln.Discounted(0.8, 0.99).solve(FLAT).explain(ln.Belief(10, 8))
    assert "no loss is expected" in explanation
    assert "loss of 0" not in explanation


def test_exactly_at_the_break_even_nobody_is_above_it() -> None:
    policy = ln.policies.DecayingEpsilon(cost=0.5, scale=0.4)
    assert policy.acceptance([2.0, 4.0], [1.0, 2.0]) == pytest.approx([0.2, 0.1])
    assert policy.acceptance(4.0, 2.5)[()] == 1.0


def test_policies_with_two_values_are_marked_and_so_held_to_it() -> None:
    marked = {type(policy).__name__ for policy in POLICIES_TRIED if getattr(policy, "two_valued", False)}
    assert marked == {
        "BayesUCB", "Constant", "DecayingEpsilon", "EpsilonGreedy", "ExploreThenExploit", "Forgetting", "Gittins",
        "Greedy", "KLUCB", "OptimalPolicy", "Persistent",
    }  # fmt: skip


def test_exploration_ends_at_its_last_observation_up_to_rounding() -> None:
    policy = ln.policies.ExploreThenExploit(cost=0.8, explore=20, prior=FLAT)
    for n, exploring in ((21.0, True), (21.4, True), (21.999999, False), (22.0, False)):
        assert policy.stop_floor(n) == (-1.0 if exploring else 0.8)
        assert policy.acceptance(n, 0.5 * n) == float(exploring)
        assert policy.acceptance(n, 0.9 * n) == 1.0


def test_without_a_future_the_threshold_of_a_forgetful_policy_is_the_break_even() -> None:
    sizes = np.array([0.05, 1.0, 30.0, 1e6])
    assert thresholds(0.8, 0.0, sizes).tolist() == [0.8] * 4
