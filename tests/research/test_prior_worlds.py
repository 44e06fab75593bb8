"""Worlds drawn from the prior: they are what the model believes, and the policies in them are those of the replays."""

from __future__ import annotations

import numpy as np
import pytest

from lenience import Discounted
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.policies.features.baseline_rules import GREEDY, LENIENT
from lenience.simulation.replay import OURS
from rejections import rejected
from research.prior_worlds import KNOWN, draw_world, prior_worlds


def test_worlds_are_what_the_model_believes() -> None:
    model = BayesianLogistic.for_cost(0.8).prepare(np.zeros((1, 3)))
    believed, rates, successes = [], [], []
    for seed in range(600):
        world = draw_world(model, 20, seed)
        n, mean = model.beliefs(np.ascontiguousarray(world.rows[:, 1:]))
        believed.append((mean.mean(), (mean * (1 - mean) / (n + 1) + mean**2).mean()))
        rates.append((world.rates.mean(), (world.rates**2).mean()))
        successes.append(world.outcomes.mean())
    away = np.array(rates) - np.array(believed)
    assert np.all(np.abs(away.mean(axis=0)) < 4 * away.std(axis=0) / np.sqrt(600))
    assert np.mean(successes) == pytest.approx(np.mean(rates, axis=0)[0], abs=0.02)


def test_without_leniency_ours_is_greedy_and_with_it_nobody_earns_more_than_who_knows() -> None:
    rules = {OURS: (LENIENT, 1.0), "none of it": (LENIENT, 0.0), "greedy": (GREEDY, 0.0)}
    found = prior_worlds(Discounted(0.3, 0.95), features=3, arrivals=80, worlds=25, rules=rules)
    assert np.array_equal(found["none of it"], found["greedy"])
    assert not np.array_equal(found[OURS], found["greedy"])
    assert all(np.all(earned <= found[KNOWN] + 1e-12) for earned in found.values())
    with rejected("worlds"):
        prior_worlds(Discounted(0.3, 0.95), features=3, arrivals=80, worlds=0)
