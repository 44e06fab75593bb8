"""Estimated exposure limits earn in a simulation what they state."""

from __future__ import annotations

import numpy as np
import pytest

from lenience import Belief, Delayed
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
from research.estimated_limits import simulate

SMALL = Delayed(0.8, 50, 0.5, 0.25), Belief(2, 1)
LARGE = Delayed(0.8, 200_000, 0.5, 0.25), Belief(2, 1)


def test_the_simulation_agrees_with_a_proved_value() -> None:
    result = simulate(*SMALL, replications=20_000)
    assert result.simulated == pytest.approx(0.687839, abs=4 * result.standard_error)
    assert result.standard_error < 0.02


def test_a_large_problem_earns_what_is_stated() -> None:
    result = simulate(*LARGE, replications=1_000)
    assert result.agrees
    assert result.standard_error < 0.005 * result.stated


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_other_limits_earn_less(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    exposure = EstimatedExposurePolicy.exposure
    best = simulate(*SMALL, replications=20_000)
    monkeypatch.setattr(
        EstimatedExposurePolicy,
        "exposure",
        lambda policy, n, s: np.floor(factor * np.minimum(exposure(policy, n, s), 1e6) + 0.5),
    )
    other = simulate(*SMALL, replications=20_000)
    assert other.simulated < best.simulated - 4 * best.standard_error
