"""What would have changed a decision: the smallest change of one feature, of the offer or of the evidence.

Features change one at a time, within what occurs among the reference rows. For a number, values from there are tried
outwards, and the first one that changes the answer is refined by bisection. For a category every declared value is
tried. How large a change is: the share of the reference rows that lie between both values, or that do not have the new
category. Every change that is returned was decided and does change the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.models.feature_columns import Block, RowEncoding
from lenience.policies.features.decision import Decision, OfferedDecision
from lenience.solvers.stopping.threshold_table import ThresholdTable

Rows = NDArray[np.float64]
Accepts = Callable[[Rows], NDArray[np.bool_]]
TRIED = 16  # values of a number
HALVINGS = 12
ROUNDING = 0.1  # the largest share of a change that rounding may add
MOST_EVIDENCE = 1e4


class FeatureChange(NamedTuple):
    """Another value of one feature that changes the answer, and how large the change is, from 0 to 1."""

    column: str
    value: float | str
    size: float


def feature_changes(encoding: RowEncoding, row: Rows, reference: Rows, accepts: Accepts) -> list[FeatureChange]:
    """Return the smallest change of each feature that changes the answer about an encoded row, smallest first.

    ``accepts`` says which of many encoded rows would be accepted, each as if alone.
    """
    now = bool(accepts(row[None])[0])
    changes = []
    for block in encoding.blocks:
        if block.column.type == "category":
            change = _category(encoding, block, row, reference, accepts, now)
        else:
            change = _number(block, row, reference, accepts, now)
        if change is not None:
            changes.append(change)
    return sorted(changes, key=lambda change: change.size)


def _category(
    encoding: RowEncoding, block: Block, row: Rows, reference: Rows, accepts: Accepts, now: bool
) -> FeatureChange | None:
    current = row[block.start : block.stop]
    others = [i for i in range(block.stop - block.start) if current[i] != 1.0]
    if not others:
        return None
    tried = np.tile(row, (len(others), 1))
    tried[:, block.start : block.stop] = 0.0
    tried[np.arange(len(others)), [block.start + i for i in others]] = 1.0
    if encoding.counts_unseen and (current == 0.0).all():
        tried[:, -1] -= 1.0
    frequency = np.nanmean(np.nan_to_num(reference[:, block.start : block.stop]), axis=0)
    flipped = [i for i, yes in zip(others, accepts(tried), strict=True) if bool(yes) != now]
    if not flipped:
        return None
    best = max(flipped, key=lambda i: float(frequency[i]))
    return FeatureChange(block.column.name, block.column.values[best], 1.0 - float(frequency[best]))


def _number(block: Block, row: Rows, reference: Rows, accepts: Accepts, now: bool) -> FeatureChange | None:
    at = block.start
    known = reference[~np.isnan(reference[:, at]), at]
    if not known.size:
        return None
    grid = np.unique(np.quantile(known, np.linspace(0.0, 1.0, TRIED), method="nearest"))
    current = float(row[at])
    tried = np.tile(row, (len(grid), 1))
    tried[:, at] = grid
    flips = accepts(tried) != now
    if not flips.any():
        return None
    if math.isnan(current):
        middle = float(np.median(known))
        value = float(min(grid[flips], key=lambda each: abs(each - middle)))
        return FeatureChange(block.column.name, value, _between(known, middle, value))
    found = []
    for side in (grid[flips & (grid > current)], grid[flips & (grid < current)][::-1]):
        if side.size:
            value = _refined(row, at, current, float(side[0]), accepts, now)
            found.append(FeatureChange(block.column.name, value, _between(known, current, value)))
    return min(found, key=lambda change: change.size) if found else None


def _refined(row: Rows, at: int, current: float, flipped: float, accepts: Accepts, now: bool) -> float:
    """Return a value near the point where the answer changes, with as few digits as the point allows."""
    inside, outside = current, flipped
    trial = row[None].copy()
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        trial[0, at] = middle
        if bool(accepts(trial)[0]) != now:
            outside = middle
        else:
            inside = middle
    for digits in range(2, 8):
        value = _rounded(outside, digits, up=flipped > current)
        if abs(value - outside) <= ROUNDING * abs(outside - current):
            trial[0, at] = value
            if bool(accepts(trial)[0]) != now:
                return value
    return outside


def _rounded(value: float, digits: int, up: bool) -> float:
    """Round away from the point where the answer changes."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return float(f"{(math.ceil(value / unit) if up else math.floor(value / unit)) * unit:.12g}")


def _between(known: Rows, one: float, other: float) -> float:
    """Return the share of the known values between two, counting those at either end half."""
    low, high = min(one, other), max(one, other)
    inside = ((known > low) & (known < high)).mean() + 0.5 * ((known == low) | (known == high)).mean()
    return float(inside)


def evidence_that_changes(decision: Decision, cost: float, table: ThresholdTable) -> float | None:
    """Return the amount of evidence at which the answer would change if the expected success rate stayed the same.

    The leniency keeps its share of what the table says, so this is an estimate where less is left because labels come
    for free. None if no amount does: above the break-even everyone is accepted.
    """
    if decision.threshold is None or decision.discount is None or decision.mean > cost:
        return None
    pending, discount = decision.pending or 0.0, decision.discount
    full = cost - float(table.threshold(decision.n + pending, discount))
    left = (cost - decision.threshold) / full if full > 0.0 else 1.0

    def minimum(n: float) -> float:
        return cost - left * (cost - float(table.threshold(n + pending, discount)))

    rejected = decision.mean <= decision.threshold
    inside, outside = decision.n, 0.05 if rejected else MOST_EVIDENCE
    if (decision.mean <= minimum(outside)) == rejected:
        return None
    for _ in range(40):
        middle = math.sqrt(inside * outside)
        if (decision.mean <= minimum(middle)) == rejected:
            inside = middle
        else:
            outside = middle
    return outside


def amount_that_changes(decision: OfferedDecision) -> float | None:
    """Return the amount below which the offer would be accepted, or from which it would be rejected.

    None if no amount changes the answer: at or above the break-even every amount is accepted.
    """
    if decision.mean >= decision.cost or not decision.label_value:
        return None
    return decision.label_value / (decision.cost - decision.mean)


def break_even_that_changes(decision: OfferedDecision) -> float | None:
    """Return the break-even below which the offer would be accepted, or from which it would be rejected."""
    value = decision.mean + (decision.label_value or 0.0) / decision.amount
    return value if 0.0 < value < 1.0 else None
