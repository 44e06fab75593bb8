"""Add outcomes by the day on which they arrived."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa
from alembic import op

from lenience.service.storage.daily_totals import CountedDecision
from lenience.service.storage.outcome_days import OutcomeDays

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

AT_A_TIME = 5_000  # rows
OUTCOMES = (
    "SELECT event.body, decision.chain_id, decision.amount, decision.cost FROM event "
    "JOIN decision ON decision.id = event.about AND decision.chain_id = event.chain_id "
    """WHERE event.about IS NOT NULL AND (substr(event.body, 1, 17) = '{"kind":"outcome"' """
    """OR substr(event.body, 1, 20) = '{"kind":"correction"')"""
)


class _Event(msgspec.Struct):
    """The fields of an outcome or a correction that are counted."""

    at: int
    outcome: str
    before: str = "pending"


def upgrade() -> None:
    """Create the table, and count all outcomes of the log once."""
    table = op.create_table(
        "outcome_day",
        sa.Column("chain_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("number", "successes", "amounts")),
        *(sa.Column(name, sa.Double, nullable=False) for name in ("gain", "loss")),
        sqlite_with_rowid=False,
    )
    days, decoder = OutcomeDays(), msgspec.json.Decoder(_Event)
    result = op.get_bind().execute(sa.text(OUTCOMES).execution_options(yield_per=AT_A_TIME))
    for some in result.partitions():
        for body, chain, amount, cost in some:
            event = decoder.decode(body)
            before = CountedDecision(chain, 0, 0, True, event.before, amount, cost)
            days.change(event.at, before, before._replace(status=event.outcome))
    names = [column.name for column in table.columns]
    if days.rows():
        op.get_bind().execute(table.insert(), [dict(zip(names, row, strict=True)) for row in days.rows()])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("outcome_day")
