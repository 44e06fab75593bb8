"""The world of the benchmark of late labels, and the policies that meet in it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lenience import Belief, MixtureBelief
from lenience.solvers.delayed.horizon import solve_late_horizon
from research.delayed_benchmark import COST, MEAN_DELAY, PRIOR, Scored, coming_soon, delays, information, world


def test_the_world_is_as_it_is_stated() -> None:
    drawn = delays(np.random.default_rng(0), 200_000)
    assert drawn.mean() == pytest.approx(MEAN_DELAY, rel=0.01)
    rates, cells, outcomes, _ = world(1, right=False)
    assert np.bincount(cells, minlength=20).min() > 140
    assert outcomes[rates[cells] > 0.75].mean() == pytest.approx(rates[cells][rates[cells] > 0.75].mean(), abs=0.03)
    spread = np.array([world(seed, right=True)[0] for seed in range(300)])
    assert spread.mean(axis=0) == pytest.approx(PRIOR, abs=0.05)


def test_information_is_the_mean_over_which_labels_come() -> None:
    s, f, soon = 2.5, 1.5, np.array([0.2, 0.9, 0.5])
    n, total = s + f, 0.0
    for coming in product((0, 1), repeat=3):
        chance = np.prod(np.where(coming, soon, 1 - soon))
        j = sum(coming)
        total += chance * s * f / (n * n * (n + 1)) * n / ((n + j) * (n + j + 1))
    assert information(s, f, soon, 0.3) == pytest.approx(0.3 * total)


def test_their_policy_is_ahead_of_greedy_and_ages_matter() -> None:
    earned = {"theirs": 0.0, "greedy": 0.0}
    for seed in range(3):
        _, cells, outcomes, due = world(seed, right=False)
        for name, policy in (("theirs", Scored(0.245, 600.0)), ("greedy", Scored(0.0, 0.0))):
            earned[name] += float(np.sum(policy.accepted(seed, cells, outcomes, due) * (outcomes - COST)))
    assert earned["theirs"] > 1.4 * earned["greedy"] > 0
    soon = coming_soon(1)
    assert soon[0] > 1.5 * soon[60]  # the quick quarter of the labels has come by then


def test_a_stated_rate_explores_low_cells_less_and_doubtful_ones_more() -> None:
    """Two cells of the variant *wrong*: one is better than stated, and one exactly as low as stated."""
    stated, default = (
        [
            solve_late_horizon(prior(mean), COST, 1.0, 0.0, 20 / MEAN_DELAY, 60, 40).limit(60, 0, 0)
            for mean in (0.62, 0.675)
        ]
        for prior in (lambda mean: Belief(4, 4 * mean), MixtureBelief.stated)
    )
    assert default[0] < stated[0]  # the low cell is explored less
    assert default[1] > stated[1]  # and the other more
    assert MixtureBelief.stated(0.675).mean > COST
