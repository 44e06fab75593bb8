"""Store the Merkle tree over the events of all chains, and its signed checkpoints."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables. The service adds the events that are there already when it starts."""
    op.create_table(
        "log_run",
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chain_id", sa.Integer, nullable=False),
        sa.Column("first_seq", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
    )
    op.create_index("log_run_of_chain", "log_run", ["chain_id", "first_seq"])
    op.create_table(
        "log_chain",
        sa.Column("chain_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("length", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "log_tile",
        sa.Column("level", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("hashes", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "log_checkpoint",
        sa.Column("size", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("log_checkpoint", "log_tile", "log_chain", "log_run"):
        op.drop_table(table)
