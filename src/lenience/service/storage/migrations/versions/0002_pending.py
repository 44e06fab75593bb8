"""Index the decisions whose outcome is awaited, so that expiry need not go through those that are answered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the partial index."""
    awaited = sa.text("status = 'pending'")
    op.create_index("decision_pending", "decision", ["chain_id", "id"], sqlite_where=awaited, postgresql_where=awaited)


def downgrade() -> None:
    """Drop it."""
    op.drop_index("decision_pending", "decision")
