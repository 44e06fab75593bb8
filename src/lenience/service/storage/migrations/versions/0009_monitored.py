"""Store attributes that are monitored for fairness, and give each policy a chain that commits to them."""

from __future__ import annotations

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0011"  # the numbers were given out before; 0011 came first
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the chains. Earlier decisions have no monitored attributes."""
    op.create_table(
        "monitored",
        sa.Column("decision", sa.String(36), primary_key=True),
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.String(64), nullable=False),
        sa.Column("salt", sa.String(32), nullable=False),
        sa.Column("chain_id", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("monitored_of_chain", "monitored", ["chain_id", "name", "value"])
    op.add_column("chain", sa.Column("monitors", sa.Integer, nullable=True))
    op.create_index("chain_of_monitored", "chain", ["monitors"], unique=True)
    connection = op.get_bind()
    chain = sa.table("chain", sa.column("monitors"), sa.column("head"))
    for identity, name in connection.execute(sa.text("SELECT id, name FROM policy ORDER BY id")).all():
        head = sha256(f"lenience\0monitored\0{name}".encode()).hexdigest()
        connection.execute(chain.insert().values(monitors=identity, head=head))


def downgrade() -> None:
    """Drop the table, the chains and their events."""
    connection = op.get_bind()
    chains = "(SELECT id FROM chain WHERE monitors IS NOT NULL)"
    for table in ("idempotency", "event"):
        connection.execute(sa.text(f"DELETE FROM {table} WHERE chain_id IN {chains}"))
    connection.execute(sa.text("DELETE FROM chain WHERE monitors IS NOT NULL"))
    op.drop_index("chain_of_monitored", "chain")
    op.drop_column("chain", "monitors")
    op.drop_index("monitored_of_chain", "monitored")
    op.drop_table("monitored")
