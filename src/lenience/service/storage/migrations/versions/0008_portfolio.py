"""Store imported decisions, what open loans say, interim statuses, and the own dates of outcomes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Earlier decisions were not imported, and their outcomes have no date of their own."""
    op.add_column("chain", sa.Column("imported", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("chain", sa.Column("open_loans", sa.Text, nullable=True))
    op.add_column("decision", sa.Column("source", sa.Integer, nullable=True))
    op.add_column("decision", sa.Column("reported", sa.String(8), nullable=True))
    op.add_column("decision", sa.Column("outcome_at", sa.BigInteger, nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("decision", "outcome_at")
    op.drop_column("decision", "reported")
    op.drop_column("decision", "source")
    op.drop_column("chain", "open_loans")
    op.drop_column("chain", "imported")
