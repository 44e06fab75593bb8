"""Find waiting decisions quickly."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index. Earlier decisions do not wait."""
    waiting = sa.text("status = 'waiting'")
    op.create_index("decision_waiting", "decision", ["chain_id", "id"], sqlite_where=waiting, postgresql_where=waiting)


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("decision_waiting", "decision")
