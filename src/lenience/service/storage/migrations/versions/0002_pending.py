"""Index the decisions with pending outcomes, so that expiry does not scan the others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the partial index."""
    pending = sa.text("status = 'pending'")
    op.create_index("decision_pending", "decision", ["chain_id", "id"], sqlite_where=pending, postgresql_where=pending)


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("decision_pending", "decision")
