"""Create and remove webhooks. The log records both, with a digest of the address, which may hold a secret."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta
from sqlalchemy import delete, func, select

from lenience.core.errors import InputError
from lenience.core.settings import WEBHOOK_SECRET
from lenience.service.domain.alerts import KINDS, Kind
from lenience.service.domain.answers import CreatedWebhook, WebhookAnswer
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import WebhookCreated, WebhookRemoved
from lenience.service.domain.problems import BadRequest, Conflict, NotFound
from lenience.service.domain.receipts import CommandAnswer, Sender, encoder
from lenience.service.domain.webhook_addresses import LONGEST, check_address, read_allowed
from lenience.service.domain.webhook_messages import webhook_secret
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.webhook_secrets import read_webhook_secret

MOST = 50  # webhooks of a service


class WebhookRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook: where messages go, and which alerts it gets (by default all)."""

    url: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    kinds: Annotated[list[Kind], Meta(max_length=len(KINDS))] = []


@dataclass(slots=True)
class CreateWebhook:
    """The command that creates a webhook. Its answer holds the secret, which is not stored."""

    sender: Sender
    request: WebhookRequest
    size = 2
    decisions: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise BadRequest if the address is not allowed. It looks names up, so call it outside of a transaction."""
        try:
            check_address(self.request.url, read_allowed())
        except InputError as error:
            raise BadRequest.of(error) from None

    def resolve(self, ledger: Ledger) -> None:
        """Do nothing."""

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the system's chain."""
        return [schema.SYSTEM_CHAIN]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Create it."""
        table, url = schema.webhook, self.request.url
        master = read_webhook_secret(ledger.store.url, create=True)
        if master is None:
            raise Conflict(
                f"webhooks need a secret. Set {WEBHOOK_SECRET} to at least 32 random characters", code="no_secret"
            )
        if ledger.connection.execute(select(table.c.id).where(table.c.url == url)).first() is not None:
            raise Conflict("a webhook with this address exists. Remove it first", code="duplicate", field="url")
        if ledger.connection.execute(select(func.count()).select_from(table)).scalar_one() >= MOST:
            raise Conflict(f"a service has at most {MOST} webhooks", code="too_large")
        identity = secrets.token_hex(6)
        kinds = tuple(dict.fromkeys(self.request.kinds)) or tuple(KINDS)
        event = WebhookCreated(
            at=ledger.now,
            actor=self.sender.actor,
            id=identity,
            address=sha256(url.encode()).hexdigest(),
            kinds=kinds,
        )
        ledger.append(ledger.chains[schema.SYSTEM_CHAIN], event)
        ledger.store.insert(ledger.connection, table, [(identity, url, " ".join(kinds), ledger.now)])
        made = CreatedWebhook(identity, url, list(kinds), iso_time(ledger.now), webhook_secret(master, identity))
        return CommandAnswer(201, encoder.encode(made))


@dataclass(slots=True)
class RemoveWebhook:
    """The command that removes a webhook, with its messages."""

    sender: Sender
    identity: str
    size = 2
    decisions: tuple[str, ...] = ()

    def resolve(self, ledger: Ledger) -> None:
        """Do nothing."""

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the system's chain."""
        return [schema.SYSTEM_CHAIN]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Remove it."""
        table, sent = schema.webhook, schema.webhook_delivery
        row = ledger.connection.execute(select(table).where(table.c.id == self.identity)).one_or_none()
        if row is None:
            raise unknown_webhook(self.identity)
        event = WebhookRemoved(at=ledger.now, actor=self.sender.actor, id=self.identity)
        ledger.append(ledger.chains[schema.SYSTEM_CHAIN], event)
        ledger.connection.execute(delete(sent).where(sent.c.webhook == self.identity))
        ledger.connection.execute(delete(table).where(table.c.id == self.identity))
        removed = WebhookAnswer(row.id, row.url, row.kinds.split(), iso_time(row.created_at))
        return CommandAnswer(200, encoder.encode(removed))


def unknown_webhook(identity: str) -> NotFound:
    """Return the problem that a webhook does not exist."""
    return NotFound(f"the webhook {identity!r} does not exist", code="unknown_webhook", field="id", value=identity)
