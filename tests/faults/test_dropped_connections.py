"""A connection to PostgreSQL that drops anywhere loses nothing that was acknowledged, and nothing is written twice."""

from __future__ import annotations

from faults.dropped_connections import run_dropping
from serving import Postgres


def test_dropped_connections_lose_and_repeat_nothing(postgres: Postgres) -> None:
    wrong, line = run_dropping(postgres.emptied(), seed=1, number=30)
    assert wrong == []
    assert set(line.cuts) == {f"{what}, {when}" for what in ("statement", "commit") for when in ("before", "after")}
