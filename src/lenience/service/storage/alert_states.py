"""The state of alerts, and the messages about them that are to be sent. All processes of a service share them.

An alert that begins or ends and its messages are stored in one transaction. So every change is sent at least once, also
if the process dies in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from lenience.service.domain.alerts import Alert, AlertChange, AlertKey, Reading, alert_changes, bound_subjects
from lenience.service.domain.clock import DAY, iso_time
from lenience.service.domain.webhook_messages import alert_body
from lenience.service.storage import schema
from lenience.service.storage.store import Store

MOST_WAITING = 1_000  # messages of a webhook; the oldest are dropped
KEEP = 30 * DAY  # microseconds for which delivered messages are stored
_decoder = msgspec.json.Decoder(list[Reading])


def begin_check(store: Store, at: int, every: int) -> bool:
    """Return whether this process may check now. Of all processes, one checks in each interval (in microseconds)."""
    table = schema.alert_check
    with store.write() as connection:
        changed = connection.execute(update(table).where(table.c.at <= at - every).values(at=at)).rowcount
        if changed:
            return True
        if connection.execute(select(table.c.id)).first() is not None:
            return False
        try:
            connection.execute(insert(table).values(id=1, at=at, readings="[]"))
        except IntegrityError:
            return False  # another process was faster
        return True


def apply_readings(store: Store, readings: Sequence[Reading], at: int) -> list[AlertChange]:
    """Store the alerts that begin and end by readings, and the messages about them."""
    table = schema.alert
    with store.write() as connection:
        rows = connection.execute(select(table)).all()
        active = {AlertKey(row.kind, row.policy, row.subject): row.sentence for row in rows}
        bounded = bound_subjects(readings, active)
        changes = alert_changes(active, bounded)
        for change in changes:
            kind, policy, subject = change.key
            own = (table.c.kind == kind) & (table.c.policy == policy) & (table.c.subject == subject)
            connection.execute(delete(table).where(own))
            if change.began:
                values = {"kind": kind, "policy": policy, "subject": subject}
                connection.execute(insert(table).values(**values, began_at=at, sentence=change.sentence))
        _enqueue(connection, changes, at)
        text = msgspec.json.encode(bounded).decode()
        connection.execute(update(schema.alert_check).values(readings=text))
    return changes


def read_alerts(connection: Connection) -> list[Alert]:
    """Return the alerts that have begun and not ended, the oldest first."""
    table = schema.alert
    rows = connection.execute(select(table).order_by(table.c.began_at, table.c.kind, table.c.policy, table.c.subject))
    return [Alert(row.kind, row.policy, row.subject, iso_time(row.began_at), row.sentence) for row in rows]


def read_readings(connection: Connection) -> list[Reading]:
    """Return what the last check found."""
    text = connection.execute(select(schema.alert_check.c.readings)).scalar_one_or_none()
    return [] if text is None else _decoder.decode(text)


def enqueue_message(connection: Connection, webhook: str, body: str, at: int) -> str:
    """Store a message to send, and return its id."""
    table = schema.webhook_delivery
    waiting = (table.c.webhook == webhook) & table.c.next_at.is_not(None)
    if connection.execute(select(func.count()).select_from(table).where(waiting)).scalar_one() >= MOST_WAITING:
        oldest = select(table.c.id).where(waiting).order_by(table.c.created_at, table.c.id).limit(1)
        connection.execute(delete(table).where(table.c.id.in_(oldest)))
    identity = f"msg_{uuid4().hex}"
    values = {"id": identity, "webhook": webhook, "body": body, "created_at": at, "attempts": 0, "next_at": at}
    connection.execute(insert(table).values(values))
    return identity


def forget_delivered(store: Store, at: int) -> None:
    """Delete messages that were delivered or given up a month ago."""
    table = schema.webhook_delivery
    with store.write() as connection:
        connection.execute(delete(table).where(table.c.next_at.is_(None), table.c.created_at < at - KEEP))


def _enqueue(connection: Connection, changes: Sequence[AlertChange], at: int) -> None:
    if not changes:
        return
    for row in connection.execute(select(schema.webhook)).all():
        kinds = row.kinds.split()
        for change in changes:
            if change.key.kind in kinds:
                enqueue_message(connection, row.id, alert_body(change, at), at)
