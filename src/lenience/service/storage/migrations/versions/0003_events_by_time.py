"""On SQLite keep the log in the order of writing, with an index by chain, so that a commit touches half as many pages.

Before, events lay in the order of their chains: the events of one commit, of as many segments, were each on a page of
its own, and pages in the middle of the file had to be split again and again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rewrite the table of events."""
    _write_anew(with_rowid=True)


def downgrade() -> None:
    """Put the events back into the order of their chains."""
    _write_anew(with_rowid=False)


def _write_anew(*, with_rowid: bool) -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    op.drop_index("event_about", "event")
    op.rename_table("event", "event_before")
    op.create_table(
        "event",
        sa.Column("chain_id", sa.Integer, sa.ForeignKey("chain.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("about", sa.String(36), nullable=True),
        sqlite_with_rowid=with_rowid,
    )
    op.execute("INSERT INTO event SELECT chain_id, seq, body, hash, about FROM event_before ORDER BY chain_id, seq")
    op.drop_table("event_before")
    op.create_index("event_about", "event", ["about"], sqlite_where=sa.text("about IS NOT NULL"))
