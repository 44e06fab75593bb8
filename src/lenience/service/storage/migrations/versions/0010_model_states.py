"""Store the states of models that learn from all outcomes of a policy, so that a start need not learn them again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table. Earlier policies have no such model."""
    op.create_table(
        "model_state",
        sa.Column("policy_id", sa.Integer, sa.ForeignKey("policy.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("kept", sa.SmallInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("model_state")
