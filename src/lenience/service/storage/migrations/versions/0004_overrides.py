"""Index the overrides in the log: they are few, and the fairness page reads all of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the partial index."""
    override = sa.text("""substr(body, 1, 18) = '{"kind":"override"'""")
    op.create_index("event_override", "event", ["chain_id", "seq"], sqlite_where=override, postgresql_where=override)


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("event_override", "event")
