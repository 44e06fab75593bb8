"""Store the names of people who sign in with OpenID Connect. The log itself names only issuer and subject."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "person",
        sa.Column("actor", sa.Text, primary_key=True),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("person")
