"""A feed for a data warehouse: one row for each change, in the order of the log, from a cursor on.

The cursor is the number of events of the log that were read: the order of the Merkle tree, which never changes. So a
reader that stores the cursor gets every row once, and all increments together are the rows of one full export.

A row never changes, with one exception: erased personal data is empty in rows that are read later. The row of the
erasure says whose reference and features an earlier reader must delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from lenience.core.offers import Offer
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import (
    Corrected,
    Decided,
    Erased,
    Event,
    Expired,
    Imported,
    ImportStarted,
    Observed,
    Overridden,
    PolicyCreated,
    StateChanged,
    StatusReported,
    VersionCreated,
    read,
)
from lenience.service.domain.feed_rows import FeedPage, FeedRow
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.version_estimates import estimate_under
from lenience.service.queries.reading import Queries
from lenience.service.storage import schema
from lenience.service.storage.log_tree import LogTree

PAGE, LARGEST = 1_000, 5_000  # events of the log in one answer


def read_feed(queries: Queries, after: int, most: int, personal: bool) -> FeedPage:
    """Return the rows of the feed after a cursor.

    Parameters
    ----------
    queries : Queries
        The queries of the service.
    after : int
        The cursor: how many events of the log were read before.
    most : int
        How many events of the log are read now. Events that are of no use for a warehouse have no row.
    personal : bool
        Whether rows have references and features.

    Raises
    ------
    BadRequest
        If the cursor is beyond the end of the log.
    """
    with queries.store.read() as connection:
        size = LogTree(connection).size
        if after > size:
            allowed = f"at most {size:,}, the number of events of the log"
            raise BadRequest(
                f"after must be {allowed}, not {after:,}", code="invalid_value", field="after", allowed=allowed
            )
        until = min(after + most, size)
        events = _events(connection, after, until)
        names = _names(queries, connection, {row.chain_id for row in events})
        beside = _personal(connection, events) if personal else {}
        rows = []
        for event in events:
            row = _row(queries, connection, event, names, beside.get((event.chain_id, event.seq)))
            if row is not None:
                rows.append(row)
    return FeedPage(rows, until, until < size)


def _events(connection: Connection, after: int, until: int) -> list[Any]:
    """Return the events with the places from ``after`` to ``until`` in the log, in their order."""
    runs, events = schema.log_run, schema.event
    first = select(func.max(runs.c.start)).where(runs.c.start <= after).scalar_subquery()
    place = (runs.c.start + events.c.seq - runs.c.first_seq).label("place")
    inside = (events.c.seq >= runs.c.first_seq) & (events.c.seq < runs.c.first_seq + runs.c.size)
    query = (
        select(place, events.c.chain_id, events.c.seq, events.c.body)
        .join_from(runs, events, (events.c.chain_id == runs.c.chain_id) & inside)
        .where(runs.c.start >= first, runs.c.start < until, place >= after, place < until)
        .order_by(place)
    )
    return list(connection.execute(query).all())


def _names(queries: Queries, connection: Connection, chains: set[int]) -> dict[int, tuple[int, str, str | None]]:
    """Return the policy (id and name) and the segment of each chain that belongs to a policy."""
    table = schema.chain
    own = table.c.id.in_(sorted(chains)) & table.c.policy_id.is_not(None)
    rows = connection.execute(select(table.c.id, table.c.policy_id, table.c.segment).where(own)).all()
    return {row.id: (row.policy_id, queries.registry.name_of(connection, row.policy_id), row.segment) for row in rows}


def _personal(connection: Connection, events: Sequence[Any]) -> dict[tuple[int, int], Any]:
    """Return the personal data of events, by chain and place."""
    table = schema.personal
    places: dict[int, list[int]] = {}
    for event in events:
        places.setdefault(event.chain_id, []).append(event.seq)
    found = {}
    for chain, seqs in places.items():
        for start in range(0, len(seqs), 500):
            where = (table.c.chain_id == chain) & table.c.seq.in_(seqs[start : start + 500])
            found.update({(row.chain_id, row.seq): row for row in connection.execute(select(table).where(where))})
    return found


def _row(
    queries: Queries, connection: Connection, stored: Any, names: dict[int, tuple[int, str, str | None]], personal: Any
) -> FeedRow | None:
    """Return the row of an event, or None if it is of no use for a warehouse."""
    event = read(stored.body)
    policy_id, policy, segment = names.get(stored.chain_id, (0, None, None))
    columns = _columns(queries, connection, event, policy_id, segment)
    if columns is None:
        return None
    if personal is not None and isinstance(event, Decided | Imported):
        columns |= {"reference": personal.reference, "features": personal.details}
    own = {"position": stored.place, "kind": str(event.__struct_config__.tag), "at": iso_time(event.at)}
    return FeedRow(**{**own, "policy": policy, "segment": segment, **columns})


def _columns(
    queries: Queries, connection: Connection, event: Event, policy: int, segment: str | None
) -> dict[str, Any] | None:
    """Return the columns that a kind of event has, or None if it has no row."""
    if isinstance(event, Decided):
        return _decided(queries, connection, event, policy, segment or "")
    if isinstance(event, Imported):
        return {
            **_counts(event),
            "id": event.id,
            "decision": event.decision,
            "decided_at": iso_time(event.decided_at),
            "status": event.status,
            "outcome_date": None if event.outcome_at is None else iso_time(event.outcome_at)[:10],
        }
    if isinstance(event, Observed | Corrected):
        dated = None if event.outcome_at is None else iso_time(event.outcome_at)[:10]
        return {"id": event.decision, "outcome": event.outcome, "outcome_date": dated}
    if isinstance(event, StatusReported):
        return {"id": event.decision, "status": event.status}
    if isinstance(event, Overridden):
        return {"id": event.decision, "decision": event.choice, "by": event.by}
    if isinstance(event, Expired | Erased):
        return {"id": event.decision}
    if isinstance(event, PolicyCreated):
        return {"policy": event.name}
    if isinstance(event, VersionCreated):
        table = schema.version
        own = (table.c.policy_id == policy) & (table.c.number == event.number)
        text = connection.execute(select(table.c.specification).where(own)).scalar_one_or_none()
        return {"policy_version": event.number, "specification": text}
    if isinstance(event, StateChanged):
        return {"policy_version": event.number, "state": event.state}
    return {} if isinstance(event, ImportStarted) else None


def _decided(queries: Queries, connection: Connection, event: Decided, policy: int, segment: str) -> dict[str, Any]:
    """Return the columns of a decision."""
    version = queries.registry.version(connection, policy, event.version)
    estimate = estimate_under(event.version, version.rules, segment, event)
    return {
        **_counts(event),
        "id": event.id,
        "policy_version": event.version,
        "decision": event.decision,
        "rule": event.rule,
        "reason": event.reason,
        "probability": event.probability,
        "threshold": event.threshold,
        "limit": event.limit,
        "expected_rate": None if estimate is None else estimate.mean,
        "evidence": None if estimate is None else estimate.n,
        "expected_profit": event.expected_profit,
        "label_value": None if event.label_value is None else event.label_value.lower,
        "offers": msgspec.json.encode([[one.amount, one.cost] for one in event.offers]).decode()
        if event.offers
        else None,
        "replaces": event.again,
        "decided_at": iso_time(event.at),
    }


def _offers(offers: Sequence[Offer]) -> str | None:
    """Return the amount and the break-even of each offer of a request as JSON."""
    return msgspec.json.encode([[offer.amount, offer.cost] for offer in offers]).decode() if offers else None


def _counts(event: Decided | Imported) -> dict[str, Any]:
    """Return the counts of the segment before a decision, and its offer."""
    names = ("arrivals", "accepted", "pending", "successes", "failures")
    counts: dict[str, Any] = {name: getattr(event, name) for name in names}
    if event.offer is not None:
        counts |= {"offer_amount": event.offer.amount, "offer_cost": event.offer.cost}
    return counts
