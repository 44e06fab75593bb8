"""The table of the value of a label, against certified solves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience.core.belief import Belief
from lenience.core.offers import Offers
from lenience.objectives.discounted import Discounted
from lenience.solvers.offers.label_table import LEAST_DISCOUNT, label_table, measured_error, mesh
from lenience.solvers.offers.solve import solve_offers
from lenience.solvers.stopping.threshold_table import threshold_table

SETS = {
    "one offer": Offers([1], [0.8]),
    "amounts": Offers([0.1, 1, 5], [0.8, 0.8, 0.8]),
    "prices": Offers([1, 1, 1], [0.7, 0.8, 0.9]),
    "a menu": Offers.menu([0.1, 1], [0.8, 0.8]),
    "menus": Offers.draw([Offers.menu([200, 900], [0.7, 0.75]), Offers.menu([500], [0.9])], share=[3, 1]),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("discount", [0.3, 0.9, 0.98])
def test_label_values_are_those_of_certified_solves(name: str, discount: float) -> None:
    offers = SETS[name]
    table = label_table(offers, 0.98)
    for n, mean in (
        (0.3, 0.4),
        (1.0, 0.5),
        (2.0, 0.5),
        (4.0, 0.7),
        (10.0, 0.7),
        (40.0, 0.75),
        (150.0, 0.79),
        (2.0, 0.9),
    ):
        proved = solve_offers(Belief(n, n * mean), offers, discount, 1, 1e-8).label_value.midpoint
        quick = float(table.label_value(n, mean, discount))
        profits = [amount * (mean - cost) for amount, cost in zip(offers.amount, offers.cost, strict=True)]
        if max(profits) + proved > 0:
            assert quick == pytest.approx(proved, rel=0.02, abs=3e-4 * offers.mean_amount)
        else:
            assert max(profits) + quick < 0


def test_one_offer_gives_the_thresholds_of_one_cost() -> None:
    table, thresholds = label_table(SETS["one offer"], 0.98), threshold_table(0.8, 0.98)
    for n in (0.2, 1.0, 3.0, 10.0, 50.0, 300.0):
        for discount in (0.1, 0.7, 0.95, 0.98):
            threshold = float(thresholds.threshold(n, discount))
            above, below = threshold + 0.001, max(threshold - 0.001, 1e-6)
            assert above - 0.8 + float(table.label_value(n, above, discount)) > 0
            assert below - 0.8 + float(table.label_value(n, below, discount)) < 0


def test_thresholds_are_near_the_certified_ones() -> None:
    worst, median = measured_error(SETS["prices"], 0.98, points=25)
    assert worst < 0.01
    assert median < 0.001


def test_amounts_scale_and_currencies_do_not_matter() -> None:
    small, large = Offers([1, 3], [0.7, 0.8]), Offers([100, 300], [0.7, 0.8], currency="$")
    one, other = label_table(small, 0.9), label_table(large, 0.9)
    assert one.f is other.f
    assert float(other.label_value(3, 0.6, 0.9)) == pytest.approx(100 * float(one.label_value(3, 0.6, 0.9)))


def test_small_discounts_scale_the_value() -> None:
    table = label_table(SETS["prices"], 0.9)
    least = float(table.label_value(5, 0.75, LEAST_DISCOUNT))
    assert least > 0
    assert float(table.label_value(5, 0.75, LEAST_DISCOUNT / 4)) == pytest.approx(least / 4, rel=0.02)
    assert float(table.label_value(5, 0.75, 0.0)) == 0.0
    proved = (
        Discounted(offers=SETS["prices"], discount=0.005).solve(Belief(5, 3.75), rows=1).label_value(Belief(5, 3.75))
    )
    assert float(table.label_value(5, 0.75, 0.005)) == pytest.approx(proved.midpoint, rel=0.03)


def test_beliefs_and_discounts_outside_the_table_use_its_edge() -> None:
    table = label_table(SETS["prices"], 0.9)
    assert float(table.label_value(1e-9, 0.5, 0.9)) == float(table.label_value(0.05, 0.5, 0.9))
    assert float(table.label_value(1e9, 0.7, 0.9)) < 1e-4
    assert float(table.label_value(5, 1.0, 0.9)) == pytest.approx(0.0, abs=1e-12)
    assert float(table.label_value(5, 0.0, 0.9)) == pytest.approx(0.0, abs=1e-12)
    highest = -math.expm1(-(table.g0 + table.g_step * (table.f.shape[0] - 1)))
    beyond = float(table.label_value(5, 0.7, 1 - 1e-7))
    assert beyond == pytest.approx(float(table.label_value(5, 0.7, highest)))


def test_a_longer_table_replaces_a_shorter_one() -> None:
    offers = Offers([1, 2], [0.6, 0.65])
    short = label_table(offers, 0.9)
    longer = label_table(offers, 0.97)
    assert longer.f.shape[0] > short.f.shape[0]
    assert label_table(offers, 0.9).f is longer.f
    np.testing.assert_array_equal(longer.f[: short.f.shape[0]], short.f)


def test_many_offers_are_compressed() -> None:
    rng = np.random.default_rng(0)
    many = Offers(tuple(rng.uniform(1, 9, 300)), tuple(rng.uniform(0.6, 0.9, 300)))
    quick = float(label_table(many, 0.9).label_value(4, 0.7, 0.9))
    proved = solve_offers(Belief(4, 2.8), many, 0.9, 1, 1e-6).label_value.midpoint
    assert quick == pytest.approx(proved, rel=0.05)


def test_break_evens_that_nearly_coincide_share_a_node() -> None:
    twice = Offers([1, 1, 1], [0.8, 0.8 + 1e-15, 0.8 - 3e-9])
    once = label_table(Offers([1], [0.8]), 0.9).label_value([2, 5, 40], [0.6, 0.7, 0.78], 0.9)
    np.testing.assert_allclose(label_table(twice, 0.9).label_value([2, 5, 40], [0.6, 0.7, 0.78], 0.9), once, rtol=1e-4)
    edge = label_table(Offers([1, 1], [1e-9, 1 - 1e-9]), 0.9).label_value([2, 5, 40], [0.1, 0.7, 0.99], 0.9)
    assert np.isfinite(edge).all()
    assert (np.diff(mesh(np.array([0.5, 0.5 + 1e-9, 0.500001]))) > 1e-5).all()


def test_the_grid_has_the_kinks_and_rises() -> None:
    grid = mesh(np.array([0.05, 0.7, 0.701, 0.97]))
    assert (np.diff(grid) > 0).all()
    assert grid[0] == 0.0
    assert grid[-1] == 1.0
    for kink in (0.05, 0.7, 0.701, 0.97):
        assert np.abs(grid - kink).min() < 1e-12
