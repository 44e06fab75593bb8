"""Totals of the decisions with monitored attributes, by the values of all their attributes.

``monitored_total`` has them by segment and status, with the sums that measures of fairness need. ``monitored_day`` has
arrivals and acceptances of a policy by day. Decisions without attributes are in neither table: they are what
``daily_total`` has more. Every transaction that changes a decision or its attributes adds its changes, and ``lenience
audit`` counts all of them again. Rows whose number is 0 are deleted with the attributes of a decision, because they
name values that may have been those of one person.

Rows of ``monitored_total`` change only while the chain of the segment is locked, those of ``monitored_day`` while the
chain of the policy's monitored attributes is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import Connection

from lenience.service.domain.clock import DAY
from lenience.service.domain.state import realised_profit
from lenience.service.storage import schema
from lenience.service.storage.daily_totals import CountedDecision, Row, rounded

GroupKey: TypeAlias = tuple[int, str, str]  # chain of the segment, key of the attributes, status
GroupDay: TypeAlias = tuple[int, int, str]  # chain of the monitored attributes, day, key of the attributes
_encoder = msgspec.json.Encoder()


def attributes_text(values: Mapping[str, str]) -> tuple[str, str]:
    """Return the key of attributes and their values as JSON, sorted by name.

    >>> attributes_text({"sex": "f", "age": "25-34"})
    ('70e2b35b1a2ca4d87a35896502b468cb', '{"age":"25-34","sex":"f"}')
    """
    return _key(tuple(sorted(values.items())))


def values_of(text: str) -> dict[str, str] | None:
    """Return the attributes of a text, or None if it is not one."""
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeError, TypeError):
        return None


@lru_cache(maxsize=4_096)
def _key(pairs: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    text = _encoder.encode(dict(pairs)).decode()
    return sha256(text.encode()).hexdigest()[:32], text


class MonitoredTotals:
    """Changes of the tables, or the whole tables counted again."""

    __slots__ = ("cells", "days", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}  # the attributes of each key
        self.cells: dict[GroupKey, list[Any]] = {}  # number, accepted, amounts, amount, squares, loss, profit squares
        self.days: dict[GroupDay, list[int]] = {}  # number and accepted

    def count(self, decision: CountedDecision, monitored: int, values: Mapping[str, str], sign: int = 1) -> None:
        """Add a decision with attributes to both tables, or subtract it with the sign −1.

        ``monitored`` is the chain of the policy's monitored attributes.
        """
        key, text = attributes_text(values)
        self.texts[key] = text
        self._count_status(decision, key, sign)
        if decision.status != schema.REPLACED:
            self._count_day(decision, monitored, key, sign)

    def _count_status(self, decision: CountedDecision, key: str, sign: int) -> None:
        cell = self.cells.get((decision.chain, key, decision.status))
        if cell is None:
            cell = self.cells[decision.chain, key, decision.status] = [0, 0, 0, 0.0, 0.0, 0.0, 0.0]
        cell[0] += sign
        cell[1] += sign * decision.accepted
        amount, cost = decision.amount, decision.cost
        if amount is not None:
            exact = rounded(amount)
            cell[2] += sign
            cell[3] += sign * exact
            cell[4] += sign * rounded(exact * exact)
            cell[5] += sign * rounded(amount * (cost or 0.0))
            profit = realised_profit(decision.status, amount, cost)
            if profit is not None:
                size = rounded(abs(profit))
                cell[6] += sign * rounded(size * size)

    def _count_day(self, decision: CountedDecision, monitored: int, key: str, sign: int) -> None:
        day = (monitored, decision.at // DAY, key)
        cell = self.days.get(day)
        if cell is None:
            cell = self.days[day] = [0, 0]
        cell[0] += sign
        cell[1] += sign * decision.accepted

    @property
    def changes_days(self) -> set[int]:
        """The chains of monitored attributes whose rows by day change."""
        return {chain for (chain, _, _), cell in self.days.items() if any(cell)}

    def rows(self) -> list[Row]:
        """Return the rows to add to ``monitored_total``."""
        return [
            (chain, key, status, self.texts[key], *cell)
            for (chain, key, status), cell in sorted(self.cells.items())
            if any(cell)
        ]

    def day_rows(self) -> list[Row]:
        """Return the rows to add to ``monitored_day``."""
        return [(*day, *cell) for day, cell in sorted(self.days.items()) if any(cell)]


def delete_empty(connection: Connection, segments: Iterable[int], monitored: Iterable[int]) -> None:
    """Delete the rows of chains that count nobody any more."""
    totals, days = schema.monitored_total, schema.monitored_day
    connection.execute(totals.delete().where((totals.c.number == 0) & totals.c.chain_id.in_(list(segments))))
    connection.execute(days.delete().where((days.c.number == 0) & days.c.chain_id.in_(list(monitored))))
