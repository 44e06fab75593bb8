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
        warning = offer_drift(name, offers, arriving_offers(connection, chains[name]))
        if warning is not None:
            warnings.append(warning)
    return warnings


def arriving_offers(connection: Connection, chain: int, *, oldest: bool = False, imported: bool = False) -> list[Offer]:
    """Return the offers of the latest arrivals of a segment, of its oldest ones, or of imported decisions."""
    table = schema.decision
    query = select(table.c.amount, table.c.cost).where(
        table.c.chain_id == chain, table.c.source.is_not(None) if imported else table.c.source.is_(None)
    )
    query = query.order_by(table.c.id if oldest else table.c.id.desc()).limit(RECENT)
    return [Offer(row.amount, row.cost) for row in connection.execute(query) if row.amount is not None]
