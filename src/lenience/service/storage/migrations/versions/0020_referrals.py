"""Store which decisions were left to a person, and find those that wait for one quickly."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the index. No decision of an earlier release was referred."""
    op.create_table(
        "referral",
        sa.Column("decision", sa.String(36), primary_key=True),
        sa.Column("chain_id", sa.Integer, sa.ForeignKey("chain.id"), nullable=False),
        sa.Column("policy_id", sa.Integer, sa.ForeignKey("policy.id"), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("rule", sa.String(16), nullable=False),
        sa.Column("would", sa.String(8), nullable=False),
        sa.Column("worth", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("referral_of_policy", "referral", ["policy_id", "at"])
    referred = sa.text("status = 'referred'")
    op.create_index(
        "decision_referred", "decision", ["chain_id", "id"], sqlite_where=referred, postgresql_where=referred
    )


def downgrade() -> None:
    """Drop the table and the index."""
    op.drop_index("decision_referred", "decision")
    op.drop_table("referral")
