"""Beliefs, bounds and the errors for values that are neither."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lenience import Belief, Bounds
from rejections import rejected


@given(st.floats(1e-6, 1e9), st.floats(0, 1))
def test_mean_and_parameters(n: float, share: float) -> None:
    belief = Belief(n, share * n)
    assert 0 <= belief.mean <= 1
    assert belief.alpha + belief.beta == pytest.approx(n)
    assert Belief.from_beta(belief.alpha, belief.beta).mean == pytest.approx(belief.mean)


@given(st.lists(st.booleans(), max_size=30))
def test_outcomes_add_up(outcomes: list[bool]) -> None:
    belief = Belief(2, 1).observe(outcomes)
    assert (belief.n, belief.s) == (2 + len(outcomes), 1 + sum(outcomes))
    assert belief == Belief.from_counts(sum(outcomes), len(outcomes) - sum(outcomes), prior=Belief(2, 1))


def test_certainties_are_beliefs() -> None:
    assert Belief(5, 0).mean == 0
    assert Belief(5, 5).interval() == Bounds(1.0, 1.0)
    assert Belief(5, 5).exceeds(0.8) == 1.0
    assert Belief(5, 0).exceeds(0.8) == 0.0


def test_interval_holds_its_probability() -> None:
    belief = Belief(10, 7)
    interval = belief.interval(0.9)
    assert belief.exceeds(interval.lower) - belief.exceeds(interval.upper) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("n", "s", "field"),
    [
        (0, 0, "n"),
        (-1, 0, "n"),
        (2, 3, "s"),
        (2, -1, "s"),
        (math.nan, 1, "n"),
        (2, math.nan, "s"),
        (math.inf, 1, "n"),
        ("2", 1, "n"),
        (True, 1, "n"),
        (None, 1, "n"),
    ],
)
def test_bad_beliefs_name_field_and_value(n: float, s: float, field: str) -> None:
    with rejected(field) as caught:
        Belief(n, s)
    assert caught.value.value is (n if field == "n" else s)
    assert caught.value.allowed is not None


@pytest.mark.parametrize("outcome", [2, "yes", None, 0.5])
def test_bad_outcomes(outcome: object) -> None:
    with rejected("outcome"):
        Belief(2, 1).observe([outcome])  # type: ignore[list-item]


def test_json_round_trip_checks_values() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Belief(10, 7)), type=Belief) == Belief(10, 7)
    with pytest.raises(msgspec.ValidationError, match="s must be"):
        msgspec.json.decode(b'{"n": 1, "s": 2}', type=Belief)


def test_bounds() -> None:
    bounds = Bounds(1.0, 3.0)
    assert 2.0 in bounds
    assert 3.5 not in bounds
    assert (bounds.midpoint, bounds.width) == (2.0, 2.0)
    scaled = Bounds(0.1, 0.3).scaled(0.1)
    assert scaled.lower < 0.1 * 0.1
    assert scaled.upper > 0.3 * 0.1
    assert str(Bounds(2.0, 2.0)) == "2"
    assert str(Bounds(1.0, math.inf)) == "[1.0, inf]"
