"""What no policy can have both of: bounds against a plain recursion, and against policies whose regrets are counted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief, Discounted
from rejections import rejected
from research.two_worlds import WEIGHTS, least_regret, must_lose, rates, worth


def plainly(cost: float, gamma: float, good: float, bad: float, depth: int) -> float:
    """The same value over the tree of all outcomes; ``good`` and ``bad`` are the chances of having come so far."""
    rate_good, rate_bad = rates(cost)
    if not depth:
        return good * (rate_good - cost) / (1 - gamma)
    after = plainly(cost, gamma, good * rate_good, bad * rate_bad, depth - 1)
    after += plainly(cost, gamma, good * (1 - rate_good), bad * (1 - rate_bad), depth - 1)
    return max(good * (rate_good - cost) + bad * (rate_bad - cost) + gamma * after, 0.0)


@pytest.mark.parametrize(("cost", "gamma", "weight"), [(0.61, 0.9, 0.5), (0.05, 0.8, 0.7), (0.91, 0.95, 0.3)])
def test_the_value_is_that_of_a_plain_recursion(cost: float, gamma: float, weight: float) -> None:
    assert worth(cost, gamma, *rates(cost), weight, 9) == pytest.approx(plainly(cost, gamma, weight, 1 - weight, 9))


def regrets(cost: float, gamma: float, reject: list[int]) -> tuple[float, float]:
    """What is lost in the good and in the bad world by a policy that stops after n labels with reject[n] successes or
    fewer, counted forward; after the last it accepts for good."""
    lost = []
    for rate in rates(cost):
        alive, earned = np.array([1.0]), 0.0
        for n, most in enumerate(reject):
            alive[: max(most + 1, 0)] = 0.0
            earned += gamma**n * alive.sum() * (rate - cost)
            grown = np.zeros(n + 2)
            grown[1:] += rate * alive
            grown[:-1] += (1 - rate) * alive
            alive = grown
        earned += gamma ** len(reject) * alive.sum() * (rate - cost) / (1 - gamma)
        lost.append(max(rate - cost, 0) / (1 - gamma) - earned)
    return lost[0], lost[1]


def by_odds(cost: float, least: float, rows: int) -> list[int]:
    """Stop once the likelihood of the good world is below a share of that of the bad one."""
    good, bad = rates(cost)
    up, down = math.log(good / bad), math.log((1 - good) / (1 - bad))
    return [math.ceil((math.log(least) - n * down) / (up - down)) - 1 for n in range(rows)]


@pytest.mark.parametrize(("cost", "gamma"), [(0.61, 0.97), (0.91, 0.99), (0.22, 0.98)])
def test_no_policy_is_below_the_bounds_and_the_best_is_on_them(cost: float, gamma: float) -> None:
    solved = Discounted(cost, gamma).solve(Belief(2, 2 * cost))
    papers = [math.floor(solved.threshold(2 + n).midpoint * (2 + n) - 2 * cost) for n in range(150)]
    points = [regrets(cost, gamma, papers)]
    points += [regrets(cost, gamma, by_odds(cost, math.exp(-x), 600)) for x in np.linspace(0.02, 6, 60)]
    for weight in WEIGHTS[12:37:6]:
        found = [weight * good + (1 - weight) * bad for good, bad in points]
        assert min(found) >= least_regret(cost, gamma, weight) - 1e-9
    for good, bad in points[:20:4]:
        assert bad >= must_lose(cost, gamma, good) - 1e-9
        assert good >= must_lose(cost, gamma, bad, where="bad") - 1e-9
    # The optimum stops by the odds of the worlds alone.
    assert min(0.5 * (good + bad) for good, bad in points) == pytest.approx(least_regret(cost, gamma, 0.5), rel=0.01)


def test_to_lose_less_here_is_to_lose_more_there() -> None:
    lost = [must_lose(0.61, 0.97, allowed) for allowed in (0.0, 0.3, 0.6, 1.2, 100.0)]
    assert sorted(lost, reverse=True) == lost
    assert lost[0] > 2 * lost[2] > 0 == lost[-1]
    assert least_regret(0.61, 0.97, 0.5, depth=300) == pytest.approx(least_regret(0.61, 0.97, 0.5), abs=1e-6)
    assert least_regret(0.61, 0.97, 0.5, depth=3) < least_regret(0.61, 0.97, 0.5)


def test_bad_input() -> None:
    with rejected("where"):
        must_lose(0.6, 0.9, 1.0, where="middling")  # type: ignore[arg-type]
    with rejected("weight"):
        least_regret(0.6, 0.9, 1.0)
