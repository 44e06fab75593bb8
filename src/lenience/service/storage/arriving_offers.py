"""Read the offers of the latest arrivals, and warn if a version was solved for others."""

from __future__ import annotations

import time
from collections.abc import Mapping

from sqlalchemy import Connection, select

from lenience.core.offers import Offer
from lenience.service.domain.offer_drift import RECENT, offer_drift
from lenience.service.domain.rule import SegmentRule
from lenience.service.storage import schema

SECONDS = 1.0  # to read arrivals; segments that come later are not compared
MOST_WARNINGS = 5


def drift_warnings(connection: Connection, rules: Mapping[str, SegmentRule], chains: Mapping[str, int]) -> list[str]:
    """Return warnings about segments of a version whose arriving offers have changed, at most five."""
    until = time.monotonic() + SECONDS
    warnings: list[str] = []
    for name, rule in rules.items():
        offers = rule.table.offers
        if offers is None or name not in chains:
            continue
        if time.monotonic() > until or len(warnings) == MOST_WARNINGS:
            break
        warning = offer_drift(name, offers, _arrivals(connection, chains[name]))
        if warning is not None:
            warnings.append(warning)
    return warnings


def _arrivals(connection: Connection, chain: int) -> list[Offer]:
    table = schema.decision
    query = select(table.c.amount, table.c.cost).where(table.c.chain_id == chain).order_by(table.c.id.desc())
    return [Offer(row.amount, row.cost) for row in connection.execute(query.limit(RECENT)) if row.amount is not None]
