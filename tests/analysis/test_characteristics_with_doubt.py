"""Characteristics of the optimum for a prior that may be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from lenience import Belief, Discounted, FiniteHorizon, InputError, MixtureBelief, characteristics
from lenience.policies import Greedy
from lenience.policies.beliefs.mixture import MixturePolicy

PRIOR = MixtureBelief.doubt(Belief(4, 2.8), 0.3)


@pytest.mark.parametrize("objective", [Discounted(0.7, 0.95), FiniteHorizon(0.7, 60), FiniteHorizon(0.7, 30, 0.9)])
def test_reward_over_the_prior_is_the_value(objective: Discounted | FiniteHorizon) -> None:
    policy = objective.solve(PRIOR, rows=500) if objective.horizon is None else objective.solve(PRIOR)
    result = characteristics(policy, rows=500)
    value = policy.value(PRIOR)
    assert result.reward.lower - 1e-8 <= value.midpoint <= result.reward.upper + 1e-8
    assert result.reward.width < 1e-6
    assert 0 < result.stops.lower <= result.stops.upper <= 1
    assert result.shut_out is not None
    assert result.shut_out.upper < result.stops.lower


def test_without_doubt_it_is_the_optimum_of_the_belief() -> None:
    objective, belief = Discounted(0.8, 0.98), Belief(4, 2.8)
    plain = objective.solve(belief, rows=400)
    nearly = objective.solve(MixtureBelief.doubt(belief, 1e-9), rows=400)
    for p in (0.5, 0.9, None):
        first, second = (characteristics(policy, p, rows=400) for policy in (plain, nearly))
        assert first.stops.lower <= second.stops.upper + 1e-6
        assert second.stops.lower <= first.stops.upper + 1e-6
        assert first.reward.midpoint == pytest.approx(second.reward.midpoint, abs=1e-5)
        assert first.stops_at[:20] == pytest.approx(second.stops_at[:20], abs=1e-6)


def test_stopping_is_bounded_after_the_last_row() -> None:
    """With few rows, the bounds are wider and contain those with many."""
    objective = Discounted(0.8, 0.98)
    policy = objective.solve(PRIOR, rows=600)
    for p in (0.5, 0.75, 0.86, 0.95, None):
        few, many = (characteristics(policy, p, rows=rows) for rows in (40, 600))
        assert few.stops.lower <= many.stops.lower + 1e-12
        assert many.stops.upper <= few.stops.upper + 1e-12
        assert few.accepted.upper >= many.accepted.upper
        if p is not None:
            assert many.stops.width < 0.02


def test_the_table_agrees_with_the_policy_where_it_claims_to_know() -> None:
    policy = Discounted(0.8, 0.98).solve(PRIOR, rows=300)
    rules = MixturePolicy.by_belief(policy, 60)
    longer = MixturePolicy.of(policy, 300).accept_from
    for rule in rules:
        for k in range(60, 300):
            n = rule.prior.n + k
            enough = rule.prior.s + longer[k]  # the fewest successes accepted
            assert enough <= rule.stop_ceiling * n + 1  # everything above the ceiling is accepted
            assert enough > rule.stop_floor(n) * n  # nothing at or below the floor is accepted
        assert 0.6 < rule.stop_floor(rule.prior.n + 60) < 0.8 <= rule.stop_ceiling < 0.85
        assert rule.stop_floor(rule.prior.n + 59) == -1.0
        assert np.all(np.diff(rule.accept_from) >= 0)


def test_a_mixture_needs_the_policy_that_was_solved_for_it() -> None:
    other = Discounted(0.7, 0.95).solve(MixtureBelief.doubt(Belief(4, 2.8), 0.5), rows=10)
    for policy in (Greedy(0.7), other):
        with pytest.raises(InputError) as error:
            characteristics(policy, 0.8, Discounted(0.7, 0.95), PRIOR)
        assert error.value.field in ("belief", "policy")
