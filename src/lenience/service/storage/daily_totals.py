"""Daily totals: how many decisions a chain has by day, version and status, and the money in them.

Every transaction that writes decisions adds its changes to the table ``daily_total``, so that a page reads a few rows
instead of all decisions. The day is that of the decision's own time (UTC). A decision that changes its status moves
from one row to another. Rows of a chain change only while the chain is locked, and ``lenience audit`` counts all of
them again.

Sums of money must not depend on the order of the additions. So each amount is rounded to a multiple of 2⁻²⁰, about a
millionth of the currency. Such sums are exact in double precision up to 2³³, about 8.6 billion for one row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

from lenience.service.domain.clock import DAY

STEPS = 2.0**20  # to one unit of the currency
EXACT = 2.0**33  # sums below this are exact
LARGEST = 1e140  # amounts above this count as this much, so that no sum or square is infinite

Row: TypeAlias = tuple[Any, ...]
DayKey: TypeAlias = tuple[int, int, int, str]  # chain, day, version, status


class CountedDecision(NamedTuple):
    """What the totals need of a decision."""

    chain: int
    version: int
    at: int
    accepted: bool
    status: str
    amount: float | None
    cost: float | None


def rounded(money: float) -> float:
    """Round money to a multiple of 2⁻²⁰.

    >>> rounded(0.1) - 0.1 < 1e-6, rounded(250.25), rounded(1e300)
    (True, 250.25, 1e+140)
    """
    if money >= EXACT:
        return min(money, LARGEST)
    return math.floor(money * STEPS + 0.5) / STEPS


def day_of(at: int) -> int:
    """Return the day (UTC) of a time in microseconds, in days since 1970."""
    return at // DAY


class DailyTotals:
    """Changes of the table, or the whole table counted again."""

    __slots__ = ("cells",)

    def __init__(self) -> None:
        self.cells: dict[DayKey, list[Any]] = {}  # number, accepted, amounts, amount, loss

    def count(self, decision: CountedDecision, sign: int = 1) -> None:
        """Add a decision, or subtract it with the sign −1."""
        chain, version, at, accepted, status, amount, cost = decision
        key = (chain, at // DAY, version, status)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = [0, 0, 0, 0.0, 0.0]
        cell[0] += sign
        if accepted:
            cell[1] += sign
        if amount is not None:
            cell[2] += sign
            cell[3] += sign * rounded(amount)
            cell[4] += sign * rounded(amount * (cost or 0.0))

    def rows(self) -> list[Row]:
        """Return the rows to add to the table, in the order of its columns."""
        return [(*key, *cell) for key, cell in sorted(self.cells.items()) if any(cell)]
