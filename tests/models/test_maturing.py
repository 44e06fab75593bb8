"""Beliefs that include open loans, against sequential updates and plain integrals."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief, MixtureBelief
from lenience.core.errors import InputError
from lenience.models import OpenShares, TimingCurves, evidence_share, mature_belief, success_chance

Rows = NDArray[np.float64]

CURVES = TimingCurves(
    ages=(0, 30, 90, 180, 365, 500),
    success_open=(1.0, 0.99, 0.95, 0.9, 0.2, 0.1),
    failure_open=(1.0, 0.8, 0.5, 0.2, 0.02, 0.1 * 0.02),
)


def integrated(belief: Belief, ages: list[float], curves: TimingCurves, counts: list[float]) -> tuple[float, float]:
    """Mean and variance of the posterior by a sum over a fine grid in log(p/(1 − p))."""
    x = np.linspace(-60 / min(belief.alpha, 1) - 40, 60 / min(belief.beta, 1) + 40, 400_001)
    logs = -belief.alpha * np.logaddexp(0, -x) - belief.beta * np.logaddexp(0, x)
    p = np.exp(-np.logaddexp(0, -x))
    q = np.exp(-np.logaddexp(0, x))
    for age, count in zip(ages, counts, strict=True):
        good, bad = curves.open_shares(age)
        logs += count * np.log(p * good + q * bad)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean = float((mass * p).sum())
    return mean, float((mass * (p - mean) ** 2).sum())


def matched_one_by_one(belief: Belief, ages: list[float], curves: TimingCurves) -> Belief:
    """Match a Beta after every single loan: what the integral replaces."""
    for age in ages:
        w = success_chance(belief, age, curves)
        parts = [(w, Belief(belief.n + 1, belief.s + 1)), (1 - w, Belief(belief.n + 1, belief.s))]
        mean = sum(weight * part.mean for weight, part in parts)
        variance = sum(weight * (part.variance + (part.mean - mean) ** 2) for weight, part in parts)
        n = mean * (1 - mean) / variance - 1
        belief = Belief(n, n * mean)
    return belief


@pytest.mark.parametrize("n", [0.1, 1.0, 30.0, 5_000.0, 1e6])
@pytest.mark.parametrize("mean", [0.04, 0.7, 0.98])
@pytest.mark.parametrize("counts", [[1, 1, 1], [2_000, 40, 900]])
def test_matches_the_integral(n: float, mean: float, counts: list[float]) -> None:
    belief, ages = Belief(n, n * mean), [45.0, 200.0, 400.0]
    after = mature_belief(belief, ages, CURVES, counts)
    exact_mean, exact_variance = integrated(belief, ages, CURVES, counts)
    assert after.mean == pytest.approx(exact_mean, rel=1e-6)
    assert after.variance == pytest.approx(exact_variance, rel=1e-5)


def test_one_loan_is_a_mixture_of_two_beliefs() -> None:
    after, expected = mature_belief(Belief(10, 8), [200], CURVES), matched_one_by_one(Belief(10, 8), [200], CURVES)
    assert (after.n, after.s) == pytest.approx((expected.n, expected.s), rel=1e-9)


def test_many_loans_are_near_updates_one_by_one() -> None:
    ages = [float(age) for age in np.random.default_rng(1).uniform(0, 600, 300)]
    after, near = mature_belief(Belief(40, 30), ages, CURVES), matched_one_by_one(Belief(40, 30), ages, CURVES)
    assert after.mean == pytest.approx(near.mean, abs=3e-3)
    assert after.n == pytest.approx(near.n, rel=0.05)
    assert after.n > 40


def test_order_and_grouping_do_not_matter() -> None:
    ages = [float(age) for age in np.random.default_rng(2).integers(0, 600, 500)]
    first = mature_belief(Belief(40, 30), ages, CURVES)
    days, counts = np.unique(ages, return_counts=True)
    assert mature_belief(Belief(40, 30), ages[::-1], CURVES) == first
    assert mature_belief(Belief(40, 30), days, CURVES, counts) == first


@pytest.mark.parametrize("ages", [[], [0, 5, 29]])
def test_young_loans_change_nothing(ages: list[float]) -> None:
    assert mature_belief(Belief(7.3, 5.1), ages, CURVES) == Belief(7.3, 5.1)


def test_certain_ages_are_outcomes() -> None:
    curves = TimingCurves((0, 10, 20, 30), (1, 1, 0.5, 0), (1, 0, 0, 0))
    after = mature_belief(Belief(4, 2), [15, 25, 40], curves)  # two successes; the third should be closed
    assert (after.n, after.s) == pytest.approx((6, 4))
    late_failures = TimingCurves((0, 10), (1, 0), (1, 0.5))
    after = mature_belief(Belief(4, 2), [12], late_failures)
    assert (after.n, after.s) == pytest.approx((5, 2))


def test_certainties_stay() -> None:
    assert mature_belief(Belief(5, 5), [400], CURVES) == Belief(5, 5)
    assert mature_belief(Belief(5, 0), [400], CURVES) == Belief(5, 0)


def test_alternatives_widen() -> None:
    pairs = [OpenShares((1, 1), (1, 0.1)), OpenShares((1, 1), (1, 0.9))]
    uncertain = TimingCurves((0, 100), (1, 1), (1, 0.5), alternatives=tuple(pairs))
    ages, belief = [150.0] * 80, Belief(20, 12)
    alone = [
        integrated(belief, ages[:1], TimingCurves((0, 100), pair.success_open, pair.failure_open), [80.0])
        for pair in pairs
    ]
    mean = (alone[0][0] + alone[1][0]) / 2
    variance = sum(one[1] + (one[0] - mean) ** 2 for one in alone) / 2
    after = mature_belief(belief, ages, uncertain)
    assert after.mean == pytest.approx(mean, rel=1e-8)
    assert after.variance == pytest.approx(variance, rel=1e-8)


def test_mixture_weighs_its_parts() -> None:
    prior = MixtureBelief((Belief(20, 4), Belief(20, 18)), (0.5, 0.5))
    after = mature_belief(prior, [200.0] * 30, CURVES)
    # The likelihood of each part by a plain integral over p.
    p = (np.arange(200_000) + 0.5) / 200_000
    good, bad = CURVES.open_shares(200)
    likelihood = []
    for part in prior.beliefs:
        log_beta = math.lgamma(part.alpha) + math.lgamma(part.beta) - math.lgamma(part.n)
        density = np.exp((part.alpha - 1) * np.log(p) + (part.beta - 1) * np.log1p(-p) - log_beta)
        likelihood.append(float((density * (p * good + (1 - p) * bad) ** 30).mean()))
    assert after.weights[1] == pytest.approx(likelihood[1] / sum(likelihood), rel=1e-6)
    assert after.beliefs[0] == mature_belief(prior.beliefs[0], [200.0] * 30, CURVES)
    assert mature_belief(MixtureBelief.of(Belief(20, 4)), [200], CURVES).beliefs == (
        mature_belief(Belief(20, 4), [200], CURVES),
    )


def test_certain_outcomes_weigh_a_mixture_like_observations() -> None:
    prior = MixtureBelief.doubt(Belief(20, 4), 0.3)
    curves = TimingCurves((0, 10), (1, 0.7), (1, 0))
    after, seen = mature_belief(prior, [12] * 6, curves), prior.observe([True] * 6)
    assert after.weights == pytest.approx(seen.weights)


def test_chance_and_evidence_of_an_age() -> None:
    assert success_chance(Belief(10, 8), 0, CURVES) == 0.8
    assert success_chance(0.8, 200, CURVES) == pytest.approx(0.72 / (0.72 + 0.04))
    assert evidence_share(0.8, 0, CURVES) == 0
    # Near a strong belief, n grows by the precision that the loan adds and by the shift of the mean.
    belief = Belief(1e5, 8e4)
    added = mature_belief(belief, [200], CURVES).n - belief.n
    p, q = 0.8, 0.2
    w = success_chance(p, 200, CURVES)
    information = q / p * evidence_share(p, 200, CURVES) + (w - p) * (p - q) / (p * q)
    assert added == pytest.approx(information, rel=0.01)
    late_failures = TimingCurves((0, 10), (1, 0.0), (1, 0.5))
    assert evidence_share(0.8, 12, late_failures) == 1


def test_curves_survive_json() -> None:
    curves = msgspec.structs.replace(CURVES, alternatives=(OpenShares((1,) * 6, (1,) * 6),), unresolved=0.25)
    assert msgspec.json.decode(msgspec.json.encode(curves), type=TimingCurves) == curves


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"ages": [1, 2]}, "ages", "invalid_value"),
        ({"ages": [0, 0]}, "ages", "invalid_value"),
        ({"ages": []}, "ages", "invalid_value"),
        ({"success_open": [0.5, 0.6]}, "success_open", "invalid_value"),
        ({"failure_open": [1, 1.5]}, "failure_open", "invalid_value"),
        ({"failure_open": [1]}, "success_open", "length_mismatch"),
        ({"alternatives": [OpenShares((1,), (1,))]}, "success_open", "length_mismatch"),
        ({"alternatives": [3]}, "alternatives", "invalid_value"),
        ({"unresolved": 2}, "unresolved", "invalid_value"),
    ],
)
def test_invalid_curves(change: dict[str, object], field: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        TimingCurves(**({"ages": (0, 1), "success_open": (1, 1), "failure_open": (1, 1)} | change))  # type: ignore[arg-type]
    assert (error.value.field, error.value.code) == (field, code)


def test_invalid_loans() -> None:
    with pytest.raises(InputError, match="open_ages"):
        mature_belief(Belief(2, 1), [-1], CURVES)
    with pytest.raises(InputError, match="counts"):
        mature_belief(Belief(2, 1), [1], CURVES, [math.nan])
    with pytest.raises(InputError) as error:
        mature_belief(Belief(2, 1), [1, 2], CURVES, [1])
    assert error.value.code == "length_mismatch"
    with pytest.raises(InputError, match="age"):
        CURVES.open_shares(-1)


def test_curves_that_are_not_learnt_count_no_loans() -> None:
    curves = TimingCurves((0, 1), (1, 1), (1, 1))
    assert (curves.successes, curves.failures, curves.still_open, curves.unresolved) == (0, 0, 0, 0.0)
    assert curves.alternatives == ()
