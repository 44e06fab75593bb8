"""q, h and what is left of the leniency for people like x, by hand and against the exact problem with free labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience.policies.features.effective_discount import helped, left, lenient, own_discount, shares
from research.free_labels import by_formula, free_label_threshold, gain


def test_shares_by_hand() -> None:
    like = np.array([1.0, 0.5, 1.0, 0.0])
    mean = np.array([0.5, 0.5, 0.9, 0.5])
    distance = np.array([4.0, 4.0, 1.0, 1.0])
    q, h, share = shares(like, mean, distance, np.array([0.1, 0.1, 0.1, 0.1]), 4.0, 0.2, 0.7)
    assert q == pytest.approx((1.0 + 0.5 * math.exp(-0.5 * (8.0 - 4.0))) / 4)
    assert h == pytest.approx(0.1 / 4)
    assert share == pytest.approx(left(q, 0.5 / 4))  # a label there is worth half of one here
    # Never rarer than one in the reference set; and nothing comes for free from those who are not like x.
    assert shares(like * 0, mean, distance, like, 4.0, 0.2, 0.7) == (0.25, 0.0, 1.0)
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
