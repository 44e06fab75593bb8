"""/v1/webhooks and /v1/alerts: who is notified when a condition begins and ends, and which conditions hold."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, post
from litestar.params import JSONBody, Parameter
from sqlalchemy import select

from lenience.service.commands.webhooks import CreateWebhook, RemoveWebhook, WebhookRequest, unknown_webhook
from lenience.service.domain.answers import (
    AlertsAnswer,
    CreatedWebhook,
    MessageAnswer,
    WebhookAnswer,
    WebhooksAnswer,
)
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.webhook_messages import trial_body
from lenience.service.http.common import Req, answered
from lenience.service.http.errors import documented
from lenience.service.http.service import Service
from lenience.service.storage import schema
from lenience.service.storage.alert_states import enqueue_message, read_alerts

WebhookId = Annotated[str, Parameter(min_length=12, max_length=12, pattern=r"^[0-9a-f]{12}\Z")]
SHOWN = 20  # latest messages of a webhook


@post("/webhooks", opt={"role": "admin"}, responses=documented(409, 413, 415), tags=["monitoring"])
async def create_webhook(data: JSONBody[WebhookRequest], request: Req) -> Response[CreatedWebhook]:
    """Create a webhook: an address that gets a signed message whenever an alert begins or ends.

    The answer holds the secret that signs messages. It is shown once and not stored. An Idempotency-Key has no effect,
    because answers under one are stored.
    """
    service: Service = request.app.state.service
    command = CreateWebhook(make_sender(request.auth, None, "", None), data)
    await service.ask(command.check)
    return answered(await service.perform(command))


@get("/webhooks", opt={"role": "admin"}, responses=documented(), tags=["monitoring"])
async def list_webhooks(request: Req) -> WebhooksAnswer:
    """List the webhooks with their latest messages, without their secrets."""
    service: Service = request.app.state.service
    return await service.ask(lambda: _webhooks(service))


@post("/webhooks/{identity:str}/test", opt={"role": "admin"}, status_code=202, responses=documented(404, 415),
      tags=["monitoring"])  # fmt: skip
async def try_webhook(identity: WebhookId, request: Req) -> MessageAnswer:
    """Send a test message to a webhook. The list of webhooks shows whether it was delivered."""
    service: Service = request.app.state.service

    def write() -> MessageAnswer:
        with service.store.write() as connection:
            table = schema.webhook
            if connection.execute(select(table.c.id).where(table.c.id == identity)).first() is None:
                raise unknown_webhook(identity)
            at = now()
            message = enqueue_message(connection, identity, trial_body(at), at)
        return MessageAnswer(message, "test", iso_time(at), 0, None, None, False)

    return await service.ask(write)


@delete("/webhooks/{identity:str}", opt={"role": "admin"}, status_code=200, responses=documented(404),
        tags=["monitoring"])  # fmt: skip
async def remove_webhook(identity: WebhookId, request: Req) -> Response[WebhookAnswer]:
    """Remove a webhook. Messages that were not sent yet are not sent any more."""
    service: Service = request.app.state.service
    return answered(await service.perform(RemoveWebhook(make_sender(request.auth, None, "", None), identity)))


@get("/alerts", opt={"role": "read"}, responses=documented(), tags=["monitoring"])
async def list_alerts(request: Req) -> AlertsAnswer:
    """List the alerts that have begun and not ended."""
    service: Service = request.app.state.service

    def read() -> AlertsAnswer:
        with service.store.read() as connection:
            return AlertsAnswer(read_alerts(connection))

    return await service.ask(read)


def _webhooks(service: Service) -> WebhooksAnswer:
    hooks, sent = schema.webhook, schema.webhook_delivery
    webhooks = []
    with service.store.read() as connection:
        for row in connection.execute(select(hooks).order_by(hooks.c.created_at)).all():
            latest = select(sent).where(sent.c.webhook == row.id).order_by(sent.c.created_at.desc(), sent.c.id)
            messages = [_message(one) for one in connection.execute(latest.limit(SHOWN))]
            webhooks.append(WebhookAnswer(row.id, row.url, row.kinds.split(), iso_time(row.created_at), messages))
    return WebhooksAnswer(webhooks)


def _message(row: Any) -> MessageAnswer:
    return MessageAnswer(
        id=row.id,
        type=msgspec.json.decode(row.body)["type"],
        created_at=iso_time(row.created_at),
        attempts=row.attempts,
        delivered_at=None if row.delivered_at is None else iso_time(row.delivered_at),
        error=row.error,
        given_up=row.next_at is None and row.delivered_at is None,
    )


HANDLERS = [create_webhook, list_webhooks, try_webhook, remove_webhook, list_alerts]
