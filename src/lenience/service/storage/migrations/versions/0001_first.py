"""The first schema: policies, versions, solved tables, the log, and the tables beside it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from lenience.service.domain.chain import genesis

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables and the system's chain."""
    op.create_table(
        "policy",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "version",
        sa.Column("policy_id", sa.Integer, sa.ForeignKey("policy.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("specification", sa.Text, nullable=False),
        sa.Column("segments", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "solved",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    counts = [
        sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
        for name in ("arrivals", "accepted", "pending", "successes", "failures")
    ]
    chain = op.create_table(
        "chain",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("policy_id", sa.Integer, sa.ForeignKey("policy.id"), nullable=True),
        sa.Column("segment", sa.String(200), nullable=True),
        sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
        sa.Column("length", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("head", sa.String(64), nullable=False),
        *counts,
        sa.UniqueConstraint("policy_id", "segment", name="chain_of_segment"),
    )
    op.create_table(
        "event",
        sa.Column("chain_id", sa.Integer, sa.ForeignKey("chain.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("about", sa.String(36), nullable=True),
        sqlite_with_rowid=False,
    )
    about = sa.text("about IS NOT NULL")
    op.create_index("event_about", "event", ["about"], sqlite_where=about, postgresql_where=about)
    op.create_table(
        "decision",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("chain_id", sa.Integer, sa.ForeignKey("chain.id"), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("accepted", sa.SmallInteger, nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("decision_of_chain", "decision", ["chain_id", "id"])
    op.create_table(
        "personal",
        sa.Column("chain_id", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("salt", sa.String(32), nullable=False),
        sa.Column("reference", sa.String(200), nullable=True),
        sa.Column("details", sa.Text, nullable=True),
        sqlite_with_rowid=False,
    )
    given = sa.text("reference IS NOT NULL")
    op.create_index("personal_reference", "personal", ["reference"], sqlite_where=given, postgresql_where=given)
    op.create_table(
        "idempotency",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("salt", sa.String(32), nullable=False),
        sa.Column("chain_id", sa.Integer, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False, index=True),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("roles", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=True),
        sa.Column("revoked_at", sa.BigInteger, nullable=True),
    )
    op.bulk_insert(chain, [{"head": genesis(None, None)}])


def downgrade() -> None:
    """Raise NotImplementedError, because a command must not delete the log."""
    raise NotImplementedError("the first schema cannot be undone: restore a backup instead")
