"""Add totals that pages read instead of all decisions: by day, and by monitored attributes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from alembic import op

from lenience.service.storage.daily_totals import CountedDecision, DailyTotals
from lenience.service.storage.monitored_totals import MonitoredTotals

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

AT_A_TIME = 5_000  # rows
DECISIONS = "SELECT chain_id, version, at, accepted, status, amount, cost FROM decision"
MONITORED = (
    "SELECT monitored.decision, monitored.name, monitored.value, monitored.chain_id AS monitors, decision.chain_id, "
    "decision.version, decision.at, decision.accepted, decision.status, decision.amount, decision.cost "
    "FROM monitored JOIN decision ON decision.id = monitored.decision ORDER BY monitored.decision"
)


def upgrade() -> None:
    """Create the tables, and count all decisions once."""
    daily = op.create_table(
        "daily_total",
        sa.Column("chain_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("status", sa.String(8), primary_key=True),
        *_sums("number", "accepted", "amounts", money=("amount", "loss")),
        sqlite_with_rowid=False,
    )
    totals = op.create_table(
        "monitored_total",
        sa.Column("chain_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(32), primary_key=True),
        sa.Column("status", sa.String(8), primary_key=True),
        sa.Column("attributes", sa.Text, nullable=False),
        *_sums("number", "accepted", "amounts", money=("amount", "amount_squares", "loss", "profit_squares")),
        sqlite_with_rowid=False,
    )
    days = op.create_table(
        "monitored_day",
        sa.Column("chain_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(32), primary_key=True),
        *_sums("number", "accepted"),
        sqlite_with_rowid=False,
    )
    by_day, by_attributes = DailyTotals(), MonitoredTotals()
    for row in _rows(DECISIONS):
        by_day.count(_decision(row))
    for _, rows in groupby(_rows(MONITORED), key=itemgetter(0)):
        several = list(rows)
        values = {row[1]: row[2] for row in several}
        by_attributes.count(_decision(several[0][4:]), several[0][3], values)
    _insert(daily, by_day.rows())
    _insert(totals, by_attributes.rows())
    _insert(days, by_attributes.day_rows())


def downgrade() -> None:
    """Drop the tables."""
    for table in ("monitored_day", "monitored_total", "daily_total"):
        op.drop_table(table)


def _sums(*counts: str, money: tuple[str, ...] = ()) -> list[Any]:
    columns = [sa.Column(name, sa.BigInteger, nullable=False) for name in counts]
    return [*columns, *(sa.Column(name, sa.Double, nullable=False) for name in money)]


def _rows(query: str) -> Iterator[Any]:
    result = op.get_bind().execute(sa.text(query).execution_options(yield_per=AT_A_TIME))
    for some in result.partitions():
        yield from map(tuple, some)


def _decision(row: Any) -> CountedDecision:
    chain, version, at, accepted, status, amount, cost = row
    return CountedDecision(chain, version, at, bool(accepted), status, amount, cost)


def _insert(table: Any, rows: list[Any]) -> None:
    names = [column.name for column in table.columns]
    if rows:
        op.get_bind().execute(table.insert(), [dict(zip(names, row, strict=True)) for row in rows])
