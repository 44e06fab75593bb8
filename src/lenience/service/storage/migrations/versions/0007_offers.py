"""Store the offer of each decision, and the money that each segment has at risk."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Earlier decisions have no offer, and nothing is at risk in money."""
    op.add_column("chain", sa.Column("at_risk", sa.Double, nullable=False, server_default="0"))
    op.add_column("decision", sa.Column("amount", sa.Double, nullable=True))
    op.add_column("decision", sa.Column("cost", sa.Double, nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("decision", "cost")
    op.drop_column("decision", "amount")
    op.drop_column("chain", "at_risk")
