"""MixtureBelief: moments, weights and limits, against sums over a fine grid of success rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from lenience import Belief, MixtureBelief
from rejections import rejected

RATES = (np.arange(200_000) + 0.5) / 200_000
PRIORS = [
    MixtureBelief.doubt(Belief(4, 2.8), 0.2),
    MixtureBelief((Belief(12, 9), Belief(5, 2), Belief(2.5, 1.2)), (3, 1, 0.5)),
    MixtureBelief.doubt(Belief(9, 8), 0.9, alternative=Belief(6, 2.5)),
]


def density(prior: MixtureBelief) -> NDArray[np.float64]:
    """The probability of each rate of the grid."""
    parts = [w * beta.pdf(RATES, b.s, b.n - b.s) for w, b in zip(prior.weights, prior.beliefs, strict=True)]
    mass: NDArray[np.float64] = np.sum(parts, axis=0) / RATES.size
    return mass


@pytest.mark.parametrize("prior", PRIORS)
def test_moments(prior: MixtureBelief) -> None:
    mass = density(prior)
    mean = float(mass @ RATES)
    variance = float(mass @ (RATES - mean) ** 2)
    assert sum(prior.weights) == pytest.approx(1)
    assert prior.mean == pytest.approx(mean, abs=1e-5)
    assert prior.variance == pytest.approx(variance, abs=1e-5)
    single = Belief(prior.n, prior.s)
    assert (single.mean, single.variance) == pytest.approx((prior.mean, prior.variance))
    for rate in (0.2, 0.6, 0.9):
        assert prior.exceeds(rate) == pytest.approx(float(mass[rate < RATES].sum()), abs=1e-4)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("n", "s"), [(1, 1), (1, 0), (7, 3), (4, 4), (2.5, 0.75)])
def test_outcomes_reweight_the_beliefs(prior: MixtureBelief, n: float, s: float) -> None:
    """Bayes' rule on the grid."""
    mass = density(prior) * RATES**s * (1 - RATES) ** (n - s)
    mass /= mass.sum()
    later = prior.after(n, s)
    assert later.mean == pytest.approx(float(mass @ RATES), abs=1e-4)
    assert later.exceeds(0.6) == pytest.approx(float(mass[RATES > 0.6].sum()), abs=1e-4)
    assert later.beliefs == tuple(Belief(one.n + n, one.s + s) for one in prior.beliefs)
    if n == 7:
        again = prior.observe([True, False] * 3 + [False])
        assert again.beliefs == later.beliefs
        assert again.weights == pytest.approx(later.weights)


def test_weights_are_scaled_and_survive_contradiction() -> None:
    assert MixtureBelief((Belief(2, 1), Belief(4, 1)), (3, 1)).weights == (0.75, 0.25)
    far = MixtureBelief((Belief(2000, 1999.999), Belief(2, 1)), (1 - 1e-9, 1e-9)).after(1000, 0)
    assert 0 < far.weights[0] < 1e-250
    back = far.after(40_000, 40_000)
    assert back.weights[0] > far.weights[0]


def test_one_belief_is_itself() -> None:
    one = MixtureBelief.of(Belief(3, 2))
    assert one.simplified == Belief(3, 2)
    assert one.weights == (1.0,)
    assert one.observe(True).simplified == Belief(4, 3)
    assert (one.mean, one.variance, one.n, one.s) == pytest.approx((2 / 3, 1 / 18, 3, 2))
    assert MixtureBelief.of(PRIORS[0]) is PRIORS[0]
    assert PRIORS[0].simplified is PRIORS[0]
    sure = MixtureBelief.of(Belief(2, 2))
    assert (sure.mean, sure.variance) == (1, 0)
    assert sure.observe(True).beliefs == (Belief(3, 3),)


@pytest.mark.parametrize(
    ("beliefs", "weights", "field", "code"),
    [
        ((), (), "weights", "length_mismatch"),
        ((Belief(2, 1), Belief(4, 1)), (1.0,), "weights", "length_mismatch"),
        ((Belief(2, 1),), (0.5, 0.5), "weights", "length_mismatch"),
        ((Belief(2, 1), Belief(2, 0)), (0.5, 0.5), "beliefs", "invalid_value"),
        ((Belief(2, 1), Belief(2, 2)), (0.5, 0.5), "beliefs", "invalid_value"),
        ((Belief(2, 1), 0.5), (0.5, 0.5), "beliefs", "invalid_value"),
        ((Belief(2, 1), Belief(4, 1)), (1.0, 0.0), "weights", "invalid_value"),
    ],
)
def test_invalid_mixtures(beliefs: tuple[Belief, ...], weights: tuple[float, ...], field: str, code: str) -> None:
    with rejected(field, code):
        MixtureBelief(beliefs, weights)


@pytest.mark.parametrize("doubt", [0, 1, -0.1, 1.5])
def test_invalid_doubts(doubt: float) -> None:
    with rejected("doubt"):
        MixtureBelief.doubt(Belief(4, 2.8), doubt)


def test_a_stated_rate_may_be_too_low() -> None:
    prior = MixtureBelief.stated(0.6)
    assert prior == MixtureBelief((Belief(100, 60), Belief(100, 70)), (0.6, 0.4))
    assert prior.mean == pytest.approx(0.64)
    assert prior.observe([True] * 9 + [False]).weights[1] > 0.5  # successes say that it was too low
    chosen = MixtureBelief.stated(0.5, worth=20, doubt=0.1, too_low_by=0.2)
    assert chosen == MixtureBelief((Belief(20, 10), Belief(20, 14)), (0.9, 0.1))
    assert MixtureBelief.stated(0.96).beliefs[1].mean == pytest.approx(0.98)  # at most half of the way to 1
    for field, wrong in (("rate", 0), ("rate", 1), ("worth", 0), ("doubt", 1), ("too_low_by", 0)):
        with rejected(field):
            MixtureBelief.stated(**{"rate": 0.5, field: wrong})


def test_weights_do_not_underflow_together() -> None:
    """Both beliefs find so many outcomes unlikely that no probability of them is a float."""
    prior = MixtureBelief((Belief(4, 2), Belief(4, 3)), (0.5, 0.5))
    after = prior.after(4000, 2400)

    def log_beta(n: float, s: float) -> float:
        return math.lgamma(s) + math.lgamma(n - s) - math.lgamma(n)

    logs = [log_beta(4004, 2402) - log_beta(4, 2), log_beta(4004, 2403) - log_beta(4, 3)]
    assert max(logs) < -2000.0
    assert after.weights[0] / after.weights[1] == pytest.approx(math.exp(logs[0] - logs[1]), rel=1e-6)
