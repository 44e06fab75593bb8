"""q, h and what is left of the leniency for people like x, by hand and against the exact problem with free labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience.policies.features.effective_discount import helped, left, lenient, own_discount, shares
from lenience.policies.features.label_worth import counts_as, label_worth
from research.free_labels import by_formula, free_label_threshold, gain


def test_shares_by_hand() -> None:
    like = np.array([1.0, 0.5, 1.0, 0.0])
    mean = np.array([0.5, 0.5, 0.9, 0.5])
    distance = np.array([4.0, 4.0, 1.0, 1.0])
    q, h, share, free = shares(like, mean, distance, np.array([0.1, 0.1, 0.1, 0.1]), 4.0, 0.2, 0.7)
    assert q == pytest.approx((1.0 + 0.5 * math.exp(-0.5 * (8.0 - 4.0))) / 4)
    assert h == pytest.approx(0.1 / 4)
    assert free == pytest.approx(0.5 / 4)
    assert share == pytest.approx(left(q, free))  # a label there is worth half of one here
    # Never rarer than one in the reference set; and nothing comes for free from those who are not like x.
    assert shares(like * 0, mean, distance, like, 4.0, 0.2, 0.7) == (0.25, 0.0, 1.0, 0.0)
    assert helped(0.0, 1.0, 1.0) == 0.0
    assert own_discount(0.99, 1.0, 0.0) == pytest.approx(0.99)
    assert own_discount(0.99, 0.2, 0.05) < own_discount(0.99, 0.2, 0.0)


def test_what_is_left_falls_from_all_to_nothing() -> None:
    found = [left(0.1, free) for free in (0.0, 0.01, 0.1, 1.0, 1e6)]
    assert found[0] == 1.0
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.0, abs=1e-3)
    assert lenient(0.8, 0.6, 1.0) == pytest.approx(0.6)
    assert lenient(0.8, 0.6, 0.0) == 0.8
    assert lenient(0.8, 0.6, 1.0, 0.05) == pytest.approx(0.75)  # a label is worth only 0.05
    assert lenient(0.8, 0.6, 1.0, 0.5) == pytest.approx(0.6)


def test_what_a_label_is_worth() -> None:
    def worth(
        rate: float = 0.66,
        own: float = 0.0,
        pending: float = 0.0,
        free: float = 0.01,
        gamma: float = 0.99,
        unit: float = 1,
    ) -> float:
        costs, stakes = np.full((2, 1), 0.7), np.full((2, 1), float(unit))
        rates, deviation = np.array([rate, rate + 0.01]), np.array([0.1, 0.05])
        return label_worth(deviation, rates, costs, stakes, own, 0.68, 0.1, 10.0, pending, free, gamma)

    assert worth() > 0
    assert worth(free=0.1) < worth()  # labels come for free
    assert worth(pending=5) < worth()  # or are to come anyway
    assert worth(gamma=0.9) < worth()  # few individuals are to come
    assert worth(unit=3) == pytest.approx(3 * worth())
    assert worth(gamma=0.0) == 0.0  # the last arrival
    assert worth(rate=0.1) == 0.0  # no decision can change
    assert worth(rate=0.1, own=1.0) > worth(rate=0.1, own=0.5) > 0  # except about x itself
    assert counts_as(0.3) == pytest.approx(0.7)
    assert counts_as(2.0) == 0.0


def test_the_problem_with_free_labels_by_recursion() -> None:
    cost, discount, share, free, depth = 0.7, 0.9, 0.3, 0.2, 5

    def value(n: float, s: float, more: int) -> float:
        if not more:
            return share * max(s / n - cost, 0.0) / (1 - discount)
        return max(worth(n, s, more, True), worth(n, s, more, False))

    def worth(n: float, s: float, more: int, accept: bool) -> float:
        # An arrival is of the population, a free label, or neither; what is decided once is decided until a label.
        own, p = (share if accept else 0.0), s / n
        after = p * value(n + 1, s + 1, more - 1) + (1 - p) * value(n + 1, s, more - 1)
        return (own * (p - cost) + (own + free) * discount * after) / (1 - discount * (1 - own - free))

    for s in (0.8, 1.3):
        after = s / 2 * value(3, s + 1, depth - 1) + (1 - s / 2) * value(3, s, depth - 1)
        expected = s / 2 - cost + discount * (after - value(2, s, depth))
        assert gain(cost, discount, share, free, 2.0, s, depth) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [2.0, 20.0, 100.0])
@pytest.mark.parametrize("ratio", [0.2, 1.0])
def test_the_formula_is_near_the_exact_leniency(n: float, ratio: float) -> None:
    setting = (0.8, 0.98, 0.1, 0.1 * ratio, n)
    exact = 0.8 - free_label_threshold(*setting, depth=500, steps=20)
    assert 0.6 * exact < 0.8 - by_formula(*setting) < 1.3 * exact
    # Without the part that is left the formula would be far too lenient where much comes for free.
    plain = 0.8 - lenient(0.8, by_formula(*setting), 1.0 / left(0.1, 0.1 * ratio))
    assert plain > 1.1 * exact


def test_bad_input_names_the_field() -> None:
    with pytest.raises(ValueError, match="free must be"):
        free_label_threshold(0.8, 0.9, 0.5, 0.7, 2.0)
    with pytest.raises(ValueError, match="share must be"):
        free_label_threshold(0.8, 0.9, 0.0, 0.1, 2.0)
