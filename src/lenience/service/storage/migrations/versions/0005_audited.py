"""Store the result of the last audit, so that all processes show the same."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "audited",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("running_at", sa.BigInteger, nullable=True),
        sa.Column("found", sa.Text, nullable=True),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("audited")
