"""How near a belief must be to the prior's lattice to be looked up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lenience import Belief
from lenience.core.lattice import LATTICE, is_near, near, size_distance, success_distance


@given(st.floats(1e-12, 1e3), st.integers(0, 10**6))
def test_sums_of_whole_steps_are_on_the_lattice(start: float, steps: int) -> None:
    prior = Belief(start, start / 2)
    assert is_near(start + steps, start, size_distance(prior))
    stepwise = start
    for _ in range(min(steps, 300)):
        stepwise += 1.0
    assert is_near(stepwise, start, size_distance(prior))


@given(st.floats(1e-12, 1e3), st.floats(1e-6, 0.4))
def test_what_is_off_by_a_share_of_the_prior_is_off_the_lattice(start: float, share: float) -> None:
    prior = Belief(start, start / 2)
    off = start + share * min(start, 1.0)
    assert not is_near(off, start, size_distance(prior))
    assert not near(np.array([off]), start, success_distance(prior))[0]


def test_the_distance_is_at_most_a_billionth_of_an_observation() -> None:
    assert is_near(5.0 + 0.9 * LATTICE, 2.0, LATTICE)
    assert not is_near(5.0 + 1.1 * LATTICE, 2.0, LATTICE)
    assert not is_near(1e9 + 1e-3, 1e9, LATTICE)
    assert near(np.array([3.0, 3.0 + 1.1 * LATTICE, 3.0 - 0.9 * LATTICE]), 1.0, LATTICE).tolist() == [True, False, True]


@pytest.mark.parametrize("prior", [Belief(3, 0), Belief(3, 3)])
def test_beside_a_certainty_only_itself_counts(prior: Belief) -> None:
    assert is_near(prior.s + 2, prior.s, success_distance(prior))
    assert not is_near(abs(prior.s - 1e-12), prior.s, success_distance(prior))


def test_a_few_roundings_beside_a_small_prior_are_allowed_for() -> None:
    prior = Belief(1e-7, 3e-8)
    for steps in (5, 1_000, 10**6):
        exact = prior.n + steps
        for number in (np.nextafter(exact, np.inf), np.nextafter(exact, 0.0)):
            assert is_near(float(number), prior.n, size_distance(prior))
            assert near(np.array([number]), prior.n, size_distance(prior)).all()
    assert not is_near(prior.n + 5 + 1e-12, prior.n, size_distance(prior))


def test_the_distance_is_at_most_that_of_one_observation() -> None:
    assert success_distance(Belief(10, 5)) == LATTICE
    assert success_distance(Belief(10, 9.5)) == LATTICE / 2
    assert success_distance(Belief(10, 0.25)) == LATTICE / 4
    assert size_distance(Belief(10, 5)) == LATTICE


def test_the_distance_itself_is_near() -> None:
    for number, close in ((1e-9, True), (math.nextafter(1e-9, 1.0), False), (1.0 - 2.0**-30, True), (1 - 2e-9, False)):
        assert is_near(number, 0.0, 1e-9) == close
        assert near(np.array([number]), 0.0, 1e-9).tolist() == [close]
