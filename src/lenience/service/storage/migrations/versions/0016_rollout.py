"""Store the share of applicants to which a version is rolled out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. No version of an earlier release is rolled out."""
    op.add_column("version", sa.Column("percent", sa.Double, nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("version", "percent")
