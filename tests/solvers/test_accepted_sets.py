"""Sets of accepted menus: against every set, one after the other."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from lenience.solvers.offers import accepted_sets


def plain(kernel: Any) -> Any:
    """Return a kernel as a plain function, which takes no time to compile."""
    return getattr(kernel, "py_func", kernel)


best_offers, consistent_set, chords, describe_set, is_undecided, keep_sets = (
    plain(getattr(accepted_sets, name))
    for name in ("best_offers", "consistent_set", "chords", "describe_set", "is_undecided", "keep_sets")
)


def draw(chance: Random) -> tuple[Any, Any, Any, Any, float]:
    """Return amounts, costs, where each menu starts, shares, and a mean."""
    sizes = [chance.randint(1, 3) for _ in range(chance.randint(1, 4))]
    number = sum(sizes)
    amount = np.array([chance.uniform(0.2, 3.0) for _ in range(number)])
    cost = np.array([chance.uniform(0.3, 0.95) for _ in range(number)])
    shares = np.array([chance.uniform(0.1, 1.0) for _ in sizes])
    return amount, cost, np.cumsum([0, *sizes]), shares / shares.sum(), chance.uniform(0.2, 0.95)


def brute_force(gain: Any, share: Any, h: float, worth: float) -> tuple[list[bool], float]:
    """Return the set that is consistent with its own label, and the label."""
    for some in product((False, True), repeat=len(gain)):
        d = sum(s for s, inside in zip(share, some, strict=True) if inside)
        loss = sum(s * max(-g, 0.0) for s, g, inside in zip(share, gain, some, strict=True) if inside)
        label = h * (worth + loss) / (1 + h * d)
        if all(inside == (g + label > 0) for g, inside in zip(gain, some, strict=True)):
            return list(some), label
    raise AssertionError("no set is consistent")


@pytest.mark.parametrize("seed", range(60))
def test_a_set_and_its_facts(seed: int) -> None:
    chance = Random(seed)
    amount, cost, start, share, p = draw(chance)
    menus = len(share)
    gain, choice = np.zeros(menus), np.zeros(menus, dtype=np.int64)
    best_offers(p, amount, cost, start, gain, choice)
    for m in range(menus):
        gains = [amount[o] * (p - cost[o]) for o in range(start[m], start[m + 1])]
        assert gain[m] == max(gains)
        assert choice[m] == start[m] + gains.index(max(gains))
    h, worth = chance.uniform(0.5, 20.0), chance.uniform(0.0, 0.2)
    expected, label = brute_force(gain, share, h, worth)
    for begin in (0.0, label, 5.0):
        sets = np.zeros((3, menus), dtype=np.bool_)
        consistent_set(gain, share, h, worth, begin, sets, 1)
        assert list(sets[1]) == expected
        assert not sets[0].any()
        assert not sets[2].any()
    a, c = amount[choice], cost[choice]
    inside = np.array(expected)
    facts = np.zeros((3, accepted_sets.FACTS))
    describe_set(p, h, np.array([-1.0, 2.0]), 1, amount, cost, share, choice, sets, facts, 1)
    losing = inside & (c > p)
    d = float(share[inside].sum())
    assert facts[1, 0] == pytest.approx(d)
    assert facts[1, 1:3] == pytest.approx([(share * a * c)[losing].sum(), (share * a)[losing].sum()])
    assert facts[1, 3:6] == pytest.approx([h * d / (1 + h * d), 1 / (1 + h * d), h / (1 + h * d)])
    low, high = facts[1, 10:12]
    assert low <= p <= high
    for mean in (max(low, p - 0.02), p, min(high, p + 0.02)):
        losses = a * (c - mean)
        if losing.any() and (a * (c - mean))[losing].max() > 0:
            assert facts[1, 6] - facts[1, 7] * mean == pytest.approx(losses[losing].max())
        if not inside.all():
            assert facts[1, 8] - facts[1, 9] * mean == pytest.approx(losses[~inside].min())
    if not losing.any():
        assert list(facts[1, 6:8]) == [-1.0, 0.0]
    if inside.all():
        assert list(facts[1, 8:10]) == [math.inf, 0.0]
    q = p + 0.03
    l0, l1, u0, u1 = chords(p, q, amount, cost, choice, sets, 1)
    for mean in (p, q):
        losses = a * (c - mean)
        assert l0 - l1 * mean == pytest.approx(max([-1.0, *losses[inside]]))
        if not inside.all():
            assert u0 - u1 * mean == pytest.approx(losses[~inside].min())
        else:
            assert (u0, u1) == (math.inf, 0.0)
    assert chords(p, p, amount, cost, choice, sets, 1)[1::2] == (0.0, 0.0)
    for below, above in ((label * 0.8, label * 1.2), (0.0, 0.0), (0.1, 0.1), (0.0, 10.0)):
        undecided = any(g + below <= 0 < g + above for g in gain)
        assert is_undecided(p, below, above, amount, cost, choice) == undecided


def test_kept_sets_follow_the_empty_one() -> None:
    sets = np.array([[(line >> m) % 2 > 0 for m in range(3)] for line in range(8)])
    facts = np.arange(8.0)[:, None] + np.arange(accepted_sets.FACTS) / 100
    lines = np.array([5, 2, 7, 99, 98])
    before = sets.copy(), facts.copy()
    assert keep_sets(sets, facts, lines, 3) == 4
    assert list(lines) == [1, 2, 3, 99, 98]
    for new, old in ((0, 0), (1, 5), (2, 2), (3, 7), (4, 4)):
        assert (sets[new] == before[0][old]).all()
        assert (facts[new] == before[1][old]).all()


@pytest.mark.parametrize("seed", range(60))
def test_the_means_for_which_the_facts_hold(seed: int) -> None:
    """Between two breaks, the facts have the largest accepted and the smallest rejected loss, and no further."""
    chance = Random(seed)
    menus = chance.randint(2, 5)
    amount, cost = (np.array([chance.uniform(*ends) for _ in range(menus)]) for ends in ((0.2, 3.0), (0.3, 0.9)))
    share, p, breaks = np.full(menus, 1 / menus), chance.uniform(0.1, 0.95), np.sort(cost)
    inside = (cost <= p) | np.array([chance.random() < 0.5 for _ in range(menus)])
    sets, facts = np.array([inside]), np.zeros((1, accepted_sets.FACTS))
    place = int(np.searchsorted(breaks, p))
    describe_set(p, 3.0, breaks, place, amount, cost, share, np.arange(menus), sets, facts, 0)
    d, terms = float(share[inside].sum()), facts[0, 1] + facts[0, 2]
    verge = d * max(facts[0, 6], 0.0)
    if not inside.all():
        verge += (1 - d) * (facts[0, 8] + 3.0 / (1 + 3.0 * d) * terms)
    assert facts[0, 12] == pytest.approx(verge, abs=1e-12)
    bottom = breaks[place - 1] if place else -1.0
    top = breaks[place] if place < menus else 2.0
    low, high = facts[0, 10:12]
    assert bottom <= low <= p <= high <= top

    def holds(mean: float) -> bool:
        losses, losing = amount * (cost - mean), inside & (cost > p)
        most = losses[losing].max() if losing.any() else facts[0, 6] - facts[0, 7] * mean
        least = losses[~inside].min() if not inside.all() else facts[0, 8] - facts[0, 9] * mean
        given = [facts[0, 6] - facts[0, 7] * mean, facts[0, 8] - facts[0, 9] * mean]
        return given == pytest.approx([most, least], abs=1e-9)

    assert all(holds(mean) for mean in np.linspace(low, high, 9))
    assert low == bottom or not holds(low - 1e-5)
    assert high == top or not holds(high + 1e-5)
