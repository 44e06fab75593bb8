"""Compare the stored totals of decisions with totals that were counted again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from lenience.service.storage import schema
from lenience.service.storage.daily_totals import EXACT, DailyTotals
from lenience.service.storage.monitored_totals import MonitoredTotals, attributes_text, values_of
from lenience.service.storage.outcome_days import OutcomeDays

Report = Callable[[str, str], None]
MOST_WRONG = 10  # rows of a chain that are reported
CLOSE = 1e-9  # relative error of sums that are too large to be exact
DAILY = ("number", "accepted", "amounts", "amount", "loss")
OUTCOMES = ("number", "successes", "amounts", "gain", "loss")
MONITORED = ("number", "accepted", "amounts", "amount", "amount_squares", "loss", "profit_squares")
BY_DAY = ("number", "accepted")


def check_daily_totals(connection: Connection, chain: int, label: str, counted: DailyTotals, report: Report) -> None:
    """Report each row of ``daily_total`` of a chain that differs from what was counted again."""
    table = schema.daily_total
    rows = connection.execute(select(table).where(table.c.chain_id == chain)).all()
    stored = {tuple(row[:4]): row[4:] for row in rows}

    def where(key: Any) -> str:
        return f"the total of {_day(key[1])}, version {key[2]}, status {key[3]} of {label}"

    by_day = {key: key[1] for key in stored.keys() | counted.cells.keys()}
    _compare(stored, counted.cells, by_day, DAILY, where, report)


def check_outcome_days(connection: Connection, chain: int, label: str, counted: OutcomeDays, report: Report) -> None:
    """Report each row of ``outcome_day`` of a chain that differs from what was counted again."""
    table = schema.outcome_day
    rows = connection.execute(select(table).where(table.c.chain_id == chain)).all()
    stored = {tuple(row[:2]): row[2:] for row in rows}

    def where(key: Any) -> str:
        return f"the outcomes of {_day(key[1])} of {label}"

    by_chain = dict.fromkeys(stored.keys() | counted.cells.keys(), 0)
    _compare(stored, counted.cells, by_chain, OUTCOMES, where, report)


def check_monitored_totals(
    connection: Connection, chain: int, segments: Mapping[int, str], counted: MonitoredTotals, report: Report
) -> None:
    """Report each row of ``monitored_total`` and ``monitored_day`` of a policy that differs from what was counted.

    ``chain`` is that of the policy's monitored attributes. ``segments`` has a label for each chain of a segment.
    """
    totals, days = schema.monitored_total, schema.monitored_day
    texts = dict(counted.texts)
    stored: dict[Any, Sequence[Any]] = {}
    for row in connection.execute(select(totals).where(totals.c.chain_id.in_(list(segments)))):
        stored[tuple(row[:3])] = row[4:]
        values = values_of(row.attributes)
        if values is None or attributes_text(values) != (row.key, row.attributes):
            report(f"the total of the attributes {row.key} of {segments[row.chain_id]}", "its key does not fit them")
        texts.setdefault(row.key, row.attributes)

    def where(key: Any) -> str:
        return f"the total of the attributes {key[1]} ({texts[key[1]]}), status {key[2]} of {segments[key[0]]}"

    by_chain = {key: key[0] for key in stored.keys() | counted.cells.keys()}
    _compare(stored, counted.cells, by_chain, MONITORED, where, report)

    def where_by_day(key: Any) -> str:
        return f"the total of {_day(key[1])} of the attributes {key[2]} ({texts.get(key[2], 'unknown')})"

    rows = connection.execute(select(days).where(days.c.chain_id == chain)).all()
    stored_days = {tuple(row[:3]): row[3:] for row in rows}
    every_day = dict.fromkeys(stored_days.keys() | counted.days.keys(), 0)
    _compare(stored_days, counted.days, every_day, BY_DAY, where_by_day, report)


def _compare(
    stored: Mapping[Any, Sequence[Any]],
    counted: Mapping[Any, Sequence[Any]],
    group_of: Mapping[Any, int],
    names: Sequence[str],
    where: Callable[[Any], str],
    report: Report,
) -> None:
    """Compare rows by key. Counts and sums must be equal.

    Only where the sums of all rows of a group are too large to be exact, a sum may differ in the tenth digit.
    """
    nothing = [0] * len(names)
    gross = _gross(counted, group_of, len(names))
    wrong = 0
    for key in sorted(group_of):
        expected, row = counted.get(key, nothing), stored.get(key, nothing)
        tolerances = (0.0 if size < EXACT else size * CLOSE for size in gross.get(group_of[key], nothing))
        differences = [
            f"{name}: {one!r} in the table, {other!r} by the log"
            for name, one, other, tolerance in zip(names, row, expected, tolerances, strict=True)
            if not _close(one, other, tolerance)
        ]
        if differences:
            wrong += 1
            if wrong <= MOST_WRONG:
                report(where(key), "; ".join(differences))


def _close(one: Any, other: float, tolerance: float) -> bool:
    return isinstance(one, int | float) and abs(one - other) <= tolerance


def _gross(rows: Mapping[Any, Sequence[float]], group_of: Mapping[Any, int], size: int) -> dict[int, list[float]]:
    sums: dict[int, list[float]] = {}
    for key, row in rows.items():
        total = sums.setdefault(group_of[key], [0.0] * size)
        for i, value in enumerate(row):
            total[i] += value
    return sums


def _day(day: Any) -> str:
    """Return a day as text, e.g. 2026-11-17."""
    try:
        return datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError, TypeError):  # a forged one
        return f"day {day!r}"


def known_chains(segments: Iterable[Any], label: str) -> dict[int, str]:
    """Return a label for the chain of each segment of a policy."""
    return {chain.id: f"segment {chain.segment!r} of {label}" for chain in segments if chain.segment is not None}
