"""evaluate with a prior that may be wrong, against a plain double loop over outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lenience import Belief, Discounted, FiniteHorizon, InputError, MixtureBelief, Offers, evaluate
from lenience.policies import Constant, Greedy
from lenience.policies.beliefs.offer_baselines import GreedyOffers

FIRST = Belief(4, 2.8)
PRIOR = MixtureBelief.doubt(FIRST, 0.3)
TWO = Offers([1.0, 5.0], [0.6, 0.7], share=[0.75, 0.25])
MENU = Offers.menu([1.0, 3.0], [0.5, 0.6])


def plain(policy: Any, offers: Offers, discount: float, rows: int) -> float:
    """Go back over k outcomes with j successes; the mixture says how likely the next success is."""
    value = np.zeros(rows + 1)
    for k in range(rows - 1, -1, -1):
        for j in range(k + 1):
            p, n, s = PRIOR.after(k, j).mean, FIRST.n + k, FIRST.s + j
            profit = accepted = 0.0
            for menu in range(offers.menu_count):
                choices = offers.offers_of(menu)
                chances = [_chance(policy, n, s, one) for one in choices]
                taken = [i for i, chance in enumerate(chances) if chance > 0]
                if taken:
                    best = max(taken, key=lambda i: choices[i].expected_profit(s / n))
                    accepted += offers.share[menu] * max(chances)
                    profit += offers.share[menu] * max(chances) * choices[best].expected_profit(p)
            later = p * value[j + 1] + (1 - p) * value[j]
            value[j] = (profit + discount * accepted * later) / (1 - discount + discount * accepted)
    return float(value[0])


def _chance(policy: Any, n: float, s: float, offer: Any) -> float:
    if isinstance(policy, GreedyOffers):
        return float(s / n > offer.cost)
    return float(policy.acceptance(n, np.array([s]))[0])


@pytest.mark.parametrize("policy", [Greedy(0.65), Constant(0.4)])
def test_one_break_even(policy: Any) -> None:
    value = evaluate(policy, Discounted(0.65, 0.8), PRIOR, 1e-6)
    assert plain(policy, Offers((1.0,), (0.65,)), 0.8, 80) == pytest.approx(value.midpoint, abs=2e-6)
    assert value.upper - value.lower < 1e-5
    assert abs(value.midpoint - evaluate(policy, Discounted(0.65, 0.8), FIRST, 1e-6).midpoint) > 0.01


@pytest.mark.parametrize("policy", [GreedyOffers(), Greedy(0.65)])
@pytest.mark.parametrize("offers", [TWO, MENU])
def test_offers(policy: Any, offers: Offers) -> None:
    value = evaluate(policy, Discounted(offers=offers, discount=0.8), PRIOR, 1e-6)
    assert plain(policy, offers, 0.8, 80) == pytest.approx(value.midpoint, abs=2e-5)


def test_the_best_policy_earns_no_less() -> None:
    for objective in (FiniteHorizon(0.65, 30), FiniteHorizon(offers=TWO, horizon=12)):
        best = objective.solve(PRIOR)
        rule: Any = Greedy(0.65)
        assert evaluate(rule, objective, PRIOR).lower <= best.value(PRIOR).upper
    one = MixtureBelief.of(FIRST)
    assert evaluate(Greedy(0.65), FiniteHorizon(0.65, 30), one) == evaluate(
        Greedy(0.65), FiniteHorizon(0.65, 30), FIRST
    )


def test_a_policy_for_a_mixture_is_rejected() -> None:
    objective = Discounted(offers=TWO, discount=0.8)
    with pytest.raises(InputError) as error:
        evaluate(objective.solve(PRIOR, rows=5), objective, PRIOR)
    assert (error.value.field, error.value.code) == ("policy", "invalid_value")
