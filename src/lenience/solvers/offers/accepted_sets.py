"""Sets of accepted menus: which one is consistent at a state, and what it means around it.

A menu's expected gain at the mean p̂ is that of its best offer, and I is the value of a label. A set is consistent if
every menu in it has a gain of −I or more, and every other menu one of −I or less
(:mod:`lenience.solvers.offers.band`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled

FACTS = 13  # of a set of accepted menus


@compiled
def best_offers(
    p: float,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    gain: NDArray[np.float64],
    choice: NDArray[np.int64],
) -> None:
    """Write each menu's largest expected gain at p, and the offer that has it."""
    for m in range(start.size - 1):
        best = start[m]
        top = amount[best] * (p - cost[best])
        for o in range(start[m] + 1, start[m + 1]):
            value = amount[o] * (p - cost[o])
            if value > top:
                top = value
                best = o
        gain[m] = top
        choice[m] = best


@compiled
def consistent_set(
    gain: NDArray[np.float64],
    share: NDArray[np.float64],
    h: float,
    worth: float,
    label: float,
    sets: NDArray[np.bool_],
    line: int,
) -> None:
    """Find the consistent set A where R = ``worth``, by Newton's method from any ``label``; mark it in ``sets[line]``.

    After the first step the labels fall, so the sets are nested and soon equal.
    """
    for _ in range(gain.size + 2):
        d = 0.0
        loss = 0.0
        least = -math.inf
        most = math.inf
        for m in range(gain.size):
            sets[line, m] = gain[m] + label > 0.0
            if sets[line, m]:
                d += share[m]
                loss += share[m] * max(-gain[m], 0.0)
                least = max(least, -gain[m])
            else:
                most = min(most, -gain[m])
        label = h * (worth + loss) / (1.0 + h * d)
        if least < label <= most:
            break


@compiled
def chords(
    p: float,
    q: float,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    choice: NDArray[np.int64],
    sets: NDArray[np.bool_],
    line: int,
) -> tuple[float, float, float, float]:
    """Return the chords between the means p and q of a set's largest accepted and smallest rejected loss.

    Each is l0 − l1 p̂, as l0 and l1. The first is convex and the second is concave, so they are on the safe side.
    """
    least = -1.0
    least_end = -1.0
    most = math.inf
    most_end = math.inf
    for m in range(choice.size):
        # Selections instead of branches: which menus are accepted is hard to predict.
        inside = sets[line, m]
        a = amount[choice[m]]
        c = cost[choice[m]]
        loss = a * (c - p)
        loss_end = a * (c - q)
        lower = loss if inside else -1.0
        least = lower if lower > least else least
        lower = loss_end if inside else -1.0
        least_end = lower if lower > least_end else least_end
        upper = math.inf if inside else loss
        most = upper if upper < most else most
        upper = math.inf if inside else loss_end
        most_end = upper if upper < most_end else most_end
    least_slope = 0.0
    most_slope = 0.0
    if q > p:
        least_slope = (least - least_end) / (q - p)
        if most < math.inf:
            most_slope = (most - most_end) / (q - p)
    return least + least_slope * p, least_slope, most + most_slope * p, most_slope


@compiled
def verge(facts: NDArray[np.float64], least: float, most: float) -> float:
    """Return what the rounding of I and of losses can put on the wrong side, in units of that rounding.

    It is the share of the accepted menus times the largest term ``least`` of their losses, and the share of the others
    times the terms of I and of their smallest loss ``most``.
    """
    share = facts[0]
    total = share * max(least, 0.0)
    if most < math.inf:
        total += max(1.0 - share, 0.0) * (most + facts[5] * (facts[1] + facts[2]))
    return float(total)


@compiled
def describe_set(
    p: float,
    h: float,
    breaks: NDArray[np.float64],
    next_break: int,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    share: NDArray[np.float64],
    choice: NDArray[np.int64],
    sets: NDArray[np.bool_],
    facts: NDArray[np.float64],
    line: int,
) -> None:
    """Write what a set of accepted menus means around the mean p, which is below the break ``next_break``.

    The ``FACTS``: its share d; its expected loss Z = z0 − z1 p̂ as z0 and z1; the factors of R and of Z in X, and that
    of R + Z in I; the largest loss that is accepted as l0 − l1 p̂, and the smallest that is not as u0 − u1 p̂; from which
    to which mean these are the largest and the smallest; and what is on the :func:`verge`.
    """
    d = 0.0
    z0 = 0.0
    z1 = 0.0
    least = -1.0
    most = math.inf
    first = -1
    other = -1
    for m in range(share.size):
        a = amount[choice[m]]
        c = cost[choice[m]]
        loss = a * (c - p)
        if sets[line, m]:
            d += share[m]
            if loss > 0.0:
                z0 += share[m] * a * c
                z1 += share[m] * a
                if loss > least:
                    least = loss
                    first = m
        elif loss < most:
            most = loss
            other = m
    low = breaks[next_break - 1] if next_break > 0 else -1.0
    high = breaks[next_break] if next_break < breaks.size else 2.0
    for m in range(share.size):
        a = amount[choice[m]]
        c = cost[choice[m]]
        inside = sets[line, m]
        if inside and c <= p:
            continue  # It gains, and does so up to the next break.
        rival = first if inside else other
        b = amount[choice[rival]]
        if a == b:
            continue
        at = (a * c - b * cost[choice[rival]]) / (a - b)
        # A steeper loss is the larger one to the left of where both are equal, and the smaller one to the right. Where
        # they are equal at p, rounding may put ``at`` on either side.
        if (a < b) == inside:
            high = min(high, max(at, p))
        else:
            low = max(low, min(at, p))
    facts[line, 0] = d
    facts[line, 1] = z0
    facts[line, 2] = z1
    facts[line, 3] = h * d / (1.0 + h * d)
    facts[line, 4] = 1.0 / (1.0 + h * d)
    facts[line, 5] = h / (1.0 + h * d)
    facts[line, 6] = -1.0 if first < 0 else amount[choice[first]] * cost[choice[first]]
    facts[line, 7] = 0.0 if first < 0 else amount[choice[first]]
    facts[line, 8] = math.inf if other < 0 else amount[choice[other]] * cost[choice[other]]
    facts[line, 9] = 0.0 if other < 0 else amount[choice[other]]
    facts[line, 10] = low
    facts[line, 11] = high
    facts[line, 12] = verge(facts[line], facts[line, 6], facts[line, 8])


@compiled
def is_undecided(
    mean: float,
    label_low: float,
    label_high: float,
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    choice: NDArray[np.int64],
) -> bool:
    """Return whether there is a menu that is accepted at the upper bound of I only."""
    for m in range(choice.size):
        gain = amount[choice[m]] * (mean - cost[choice[m]])
        if gain + label_high > 0.0 and gain + label_low <= 0.0:
            return True
    return False


@compiled
def keep_sets(sets: NDArray[np.bool_], facts: NDArray[np.float64], lines: NDArray[np.int64], count: int) -> int:
    """Move the sets of the first ``count`` lines to the front, after the empty set; return how many lines are used."""
    kept_sets = np.zeros((count, sets.shape[1]), dtype=np.bool_)
    kept_facts = np.zeros((count, FACTS))
    for i in range(count):
        kept_sets[i] = sets[lines[i]]
        kept_facts[i] = facts[lines[i]]
    for i in range(count):
        sets[i + 1] = kept_sets[i]
        facts[i + 1] = kept_facts[i]
        lines[i] = i + 1
    return count + 1
