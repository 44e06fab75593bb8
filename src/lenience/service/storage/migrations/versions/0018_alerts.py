"""Add webhooks, the state of alerts, and messages to send."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "webhook",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("kinds", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "alert",
        sa.Column("kind", sa.String(32), primary_key=True),
        sa.Column("policy", sa.String(64), primary_key=True),
        sa.Column("subject", sa.String(200), primary_key=True),
        sa.Column("began_at", sa.BigInteger, nullable=False),
        sa.Column("sentence", sa.Text, nullable=False),
    )
    op.create_table(
        "alert_check",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("readings", sa.Text, nullable=False),
    )
    op.create_table(
        "webhook_delivery",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("webhook", sa.String(16), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.BigInteger, nullable=True),
        sa.Column("delivered_at", sa.BigInteger, nullable=True),
        sa.Column("error", sa.Text, nullable=True),
    )
    op.create_index("webhook_delivery_due", "webhook_delivery", ["next_at"])


def downgrade() -> None:
    """Drop the tables."""
    for table in ("webhook_delivery", "alert_check", "alert", "webhook"):
        op.drop_table(table)
