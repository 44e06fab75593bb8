"""Send messages of webhooks. A message is claimed before it is sent, so that no other process sends it meanwhile.

If a process dies while it sends, the claim runs out and the message is sent again: at least once, possibly twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy import select, update

from lenience.core.errors import InputError
from lenience.service.domain.clock import SECOND
from lenience.service.domain.webhook_addresses import check_address, read_allowed
from lenience.service.domain.webhook_messages import message_headers, wait_before, webhook_secret
from lenience.service.storage import schema
from lenience.service.storage.store import Store
from lenience.service.storage.webhook_secrets import read_webhook_secret

AT_A_TIME = 20  # messages of a round
THREADS = 4
TIMEOUT = 10.0  # seconds for a receiver to answer
CLAIM = 60 * SECOND  # microseconds for which a message is claimed; longer than an attempt takes
LONGEST_ERROR = 200  # characters

log = logging.getLogger("lenience.service")


class Message(NamedTuple):
    """A message that is due."""

    id: str
    webhook: str
    url: str
    body: str
    attempts: int


def send_due(store: Store, now: Callable[[], int]) -> int:
    """Send the messages that are due, and return how many were sent, delivered or not."""
    due = _claim(store, now())
    if not due:
        return 0
    master = read_webhook_secret(store.url)
    allowed = read_allowed()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="webhook") as pool:
        errors = list(pool.map(lambda message: _send(message, master, allowed, now()), due))
    _record(store, due, errors, now())
    return len(due)


def _claim(store: Store, at: int) -> list[Message]:
    """Return messages that are due and that no other process sends."""
    table, hooks = schema.webhook_delivery, schema.webhook
    columns = (table.c.id, table.c.webhook, hooks.c.url, table.c.body, table.c.attempts, table.c.next_at)
    query = select(*columns).join_from(table, hooks, hooks.c.id == table.c.webhook)
    query = query.where(table.c.next_at <= at).order_by(table.c.next_at).limit(AT_A_TIME)
    with store.read() as connection:
        if connection.execute(query.limit(1)).first() is None:
            return []
    claimed = []
    with store.write() as connection:
        for row in connection.execute(query).all():
            own = (table.c.id == row.id) & (table.c.next_at == row.next_at)
            if connection.execute(update(table).where(own).values(next_at=at + CLAIM)).rowcount:
                claimed.append(Message(*row[:5]))
    return claimed


def _send(message: Message, master: bytes | None, allowed: Sequence[str], at: int) -> str | None:
    """Send a message, and return why it was not delivered, or None."""
    import httpx

    if master is None:
        return "the secret of the webhooks is missing"
    body = message.body.encode()
    headers = message_headers(webhook_secret(master, message.webhook), message.id, at, body)
    try:
        target = check_address(message.url, allowed)
        # The connection goes to the checked address; the certificate must be that of the name. Proxies of the
        # environment are not used, because they would look the name up again.
        with (
            httpx.Client(timeout=TIMEOUT, follow_redirects=False, trust_env=False) as client,
            client.stream(
                "POST",
                target.url,
                content=body,
                headers={**headers, "host": target.host_header},
                extensions={"sni_hostname": target.host},
            ) as response,
        ):
            return None if response.is_success else f"the receiver answered {response.status_code}"
    except InputError as error:
        return str(error)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return f"{type(error).__name__}: {error}"


def _record(store: Store, sent: Sequence[Message], errors: Sequence[str | None], at: int) -> None:
    """Record what was delivered, and when the others are sent again."""
    table = schema.webhook_delivery
    with store.write() as connection:
        for message, error in zip(sent, errors, strict=True):
            attempts = message.attempts + 1
            wait = None if error is None else wait_before(attempts, message.id)
            values = {
                "attempts": attempts,
                "next_at": None if wait is None else at + int(wait * SECOND),
                "delivered_at": at if error is None else None,
                "error": None if error is None else error[:LONGEST_ERROR],
            }
            connection.execute(update(table).where(table.c.id == message.id).values(values))
            if error is not None and wait is None:
                fields = {"webhook": message.webhook, "message": message.id, "cause": error[:LONGEST_ERROR]}
                log.error("gave up on a webhook message", extra={"fields": fields})
