"""Outcomes by the day on which they arrived, and the money in them, so that a page can say what a day has earned.

Every transaction adds its changes to the table ``outcome_day``. A correction counts on its own day: it takes back what
the wrong outcome had earned. Outcomes that were known when a decision was imported are not counted, because they
arrived before the policy. Money is rounded as in :mod:`~lenience.service.storage.daily_totals`, so sums are exact, and
``lenience audit`` counts all of them again.
"""

from __future__ import annotations

from typing import Any

from lenience.service.domain.clock import DAY
from lenience.service.storage.daily_totals import CountedDecision, Row, rounded


class OutcomeDays:
    """Changes of the table, or the rows of a chain counted again."""

    __slots__ = ("cells",)

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], list[Any]] = {}  # by chain and day: number, successes, amounts, gain, loss

    def change(self, at: int, before: CountedDecision, after: CountedDecision) -> None:
        """Count that a decision changed its status at a time."""
        self._count(at, before, -1)
        self._count(at, after, 1)

    def _count(self, at: int, decision: CountedDecision, sign: int) -> None:
        if decision.status not in ("success", "failure"):
            return
        key, success = (decision.chain, at // DAY), decision.status == "success"
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = [0, 0, 0, 0.0, 0.0]
        cell[0] += sign
        cell[1] += sign * success
        if decision.amount is not None:
            loss = rounded(decision.amount * (decision.cost or 0.0))
            cell[2] += sign
            if success:
                cell[3] += sign * (rounded(decision.amount) - loss)
            else:
                cell[4] += sign * loss

    def rows(self) -> list[Row]:
        """Return the rows to add to the table, in the order of its columns."""
        return [(*key, *cell) for key, cell in sorted(self.cells.items()) if any(cell)]
