"""Store model states with later corrections, from which labels can be learnt again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Corrections of earlier releases were not learnt again, so all stored states are up to date."""
    op.add_column("model_state", sa.Column("revised", sa.Text, nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("model_state", "revised")
