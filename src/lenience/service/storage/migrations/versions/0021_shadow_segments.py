"""Store the counts of segments for versions that run in shadow of one that decides by features."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. In earlier releases no such version could run in shadow."""
    op.add_column("chain", sa.Column("shadow_segments", sa.Text, nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("chain", "shadow_segments")
