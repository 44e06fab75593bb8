"""Beliefs, bounds and the errors for values that are neither."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lenience import Belief, Bounds, InputError
from lenience.core.belief import check_prior
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


@pytest.mark.parametrize(("n", "s"), [(2.0, 1.0), (5.0, 4.0), (30.0, 3.0)])
def test_moments_are_those_of_the_beta_distribution(n: float, s: float) -> None:
    from scipy.stats import beta

    belief, exact = Belief(n, s), beta(s, n - s)
    assert belief.mean == pytest.approx(exact.mean())
    assert belief.variance == pytest.approx(exact.var())
    assert belief.failures == n - s
    for rate in (-1.0, 0.0, 0.3, 0.8, 1.0, 2.0):
        assert belief.exceeds(rate) == pytest.approx(exact.sf(rate))
    for probability in (0.5, 0.95):
        interval = belief.interval(probability)
        assert [interval.lower, interval.upper] == pytest.approx(exact.interval(probability))
    with rejected("probability"):
        belief.interval(1.0)
    with rejected("probability"):
        belief.interval(0.0)


def test_certainty_is_all_successes_or_none() -> None:
    assert Belief.from_beta(0, 5) == Belief(5, 0)
    assert Belief.from_beta(5, 0) == Belief(5, 5)
    with pytest.raises(InputError, match="above 0"):
        Belief.from_beta(0, 0)
    assert [Belief(5, s).certain for s in (0, 1, 4, 5)] == [True, False, False, True]
    # A rate that is known is above another only if it is larger.
    assert Belief(4, 4).exceeds(1.0) == 0.0
    assert Belief(4, 0).exceeds(0.0) == 0.0


def test_bounds_are_scaled_outwards_and_shown_with_their_width() -> None:
    scaled = Bounds(0.1, 0.3).scaled(3.0)
    assert (scaled.lower, scaled.upper) == (math.nextafter(0.1 * 3, 0), math.nextafter(0.3 * 3, 1))
    assert str(Bounds(2.0, 2.0)) == "2"
    assert str(Bounds(1.0, math.inf)) == "[1.0, inf]"
    assert str(Bounds(1.0, 1.03)) == "1.015 ± 0.015"
    assert str(Bounds(100.0, 300.0)) == "200 ± 1e+02"
    assert str(Bounds(0.0, 2e-30)) == "0.000000000000000 ± 1e-30"
    assert Bounds(1.0, 3.0).midpoint == 2.0
    assert Bounds(math.inf, math.inf).width == 0.0
    assert [number in Bounds(1.0, 3.0) for number in (0.99, 1.0, 3.0, 3.01)] == [False, True, True, False]


def test_a_prior_must_be_a_belief() -> None:
    assert check_prior(Belief(2, 1)) == Belief(2, 1)
    for wrong in (3, (2, 1), None):
        with rejected("prior"):
            check_prior(wrong)
