"""Delay laws that were measured: how they are drawn, and the exponential delay that is worth as much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm

from lenience import Belief, Delayed
from lenience.analysis.delay import EFFECTIVE, OPTIMAL, values_by_law
from lenience.core.errors import InputError
from lenience.policies.beliefs.greedy import Greedy
from lenience.policies.beliefs.pending import Blind
from lenience.simulation.delay_events import simulate_delays
from lenience.simulation.label_delay import LabelDelay

RATE = 0.3


def test_the_effective_delay_has_the_same_mean_discount() -> None:
    def worth(law: LabelDelay) -> float:
        return 1 / (1 + RATE * law.effective_delay(RATE))

    assert worth(LabelDelay("fixed", 2)) == pytest.approx(math.exp(-RATE * 2))
    law = lognorm(0.8, scale=2 * math.exp(-0.32))
    exact = quad(lambda x: math.exp(-RATE * x) * law.pdf(x), 0, math.inf)[0]
    assert worth(LabelDelay("lognormal", 2, sigma=0.8)) == pytest.approx(exact, rel=1e-4)
    assert worth(LabelDelay.measured([1, 5], missing=0.2)) == pytest.approx(
        0.8 * (math.exp(-RATE) + math.exp(-5 * RATE)) / 2
    )
    assert LabelDelay("never").effective_delay(RATE) == math.inf
    assert LabelDelay("none").effective_delay(RATE) == 0


def test_measured_delays_are_drawn_as_often_as_they_occurred() -> None:
    law = LabelDelay.measured([3, 3, 9, 30], missing=0.25)
    chance, lost = np.random.default_rng(0).random((2, 40_000))
    lags = law.lags(chance, lost, horizon=100)
    shares = [np.mean(lags == lag) for lag in (3, 9, 30, 101)]
    assert shares == pytest.approx([0.375, 0.1875, 0.1875, 0.25], abs=0.01)
    assert str(law) == "4 measured delays, 25% never"
    many = LabelDelay.measured(np.random.default_rng(1).exponential(2, 50_000).tolist())
    assert len(many.delays) == 2_000
    assert many.mean == pytest.approx(2, rel=0.03)


def test_measured_exponential_delays_earn_what_exponential_ones_do() -> None:
    problem, prior = Delayed(0.5, 20, 0.5, 0.5), Belief(3, 2)
    measured = LabelDelay.measured((-0.5 * np.log1p(-(np.arange(2_000) + 0.5) / 2_000)).tolist())
    greedy = {"greedy": Blind(Greedy(0.5), cost=0.5)}
    [one], [other] = (
        simulate_delays(greedy, problem, prior, law, 4_000) for law in (measured, LabelDelay("exponential", 0.5))
    )
    assert one.mean == pytest.approx(other.mean, abs=4 * math.hypot(one.error, other.error))


def test_limits_for_the_effective_delay_are_compared() -> None:
    problem = Delayed(0.7, 20, 0.5, 0.5)
    laws = [LabelDelay("exponential", 0.5), LabelDelay("exponential", 0.5, missing=0.4)]
    plain, missing = values_by_law(problem, Belief(3, 2), laws, caps=[2], replications=200)
    assert [value.policy for value in plain.values][:2] == [OPTIMAL, "blind to pending"]
    assert [value.policy for value in missing.values][:2] == [OPTIMAL, EFFECTIVE]


def test_delays_without_the_kind_are_rejected() -> None:
    with pytest.raises(InputError, match="delays"):
        LabelDelay("fixed", 1, delays=(1.0,))
    with pytest.raises(InputError, match="delays"):
        LabelDelay("measured")
    with pytest.raises(InputError, match="delays"):
        LabelDelay.measured([1.0, -2.0])
