"""POST /v1/policies/{name}/decisions without the framework, which would take half of the time of a decision.

Only plain requests are answered here: a JSON body of a known, small size, no query, a valid key and a valid body.
Everything else goes to the framework and its handler in :mod:`lenience.service.http.decisions`, which also describes
the endpoint. So each error has one text, and both ways use the same functions for keys, bodies and commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from litestar import Request
from litestar.types import ASGIApp, HTTPRequestEvent, Receive, ReceiveMessage, Scope, Send

from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.domain.problems import BadRequest, Problem
from lenience.service.domain.receipts import CommandAnswer, make_sender
from lenience.service.http.auth import admit
from lenience.service.http.bodies import JSON, decoded
from lenience.service.http.errors import on_exception, on_problem
from lenience.service.http.large_bodies import LARGE
from lenience.service.http.service import Service

PATH = re.compile(r"/v1/policies/([A-Za-z0-9][A-Za-z0-9._-]{0,63})/decisions")
TEMPLATE = "/v1/policies/{name}/decisions"
ROLE = "decide"
HOST = re.compile(rb"[A-Za-z0-9.-]+(:[0-9]{1,5})?")
LENGTH = re.compile(rb"[1-9][0-9]{0,5}")
KEY = re.compile(r"[\x21-\x7e]{1,200}")  # of the Idempotency-Key
TYPE = (b"content-type", JSON.encode())


class DirectDecisions:
    """Answers plain requests for one decision.

    Parameters
    ----------
    app : ASGIApp
        The application of the framework, for all other requests.
    service : Service
        Decides.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    def matches(self, scope: Scope) -> bool:
        """Return whether a request is for this endpoint."""
        return PATH.fullmatch(scope["path"]) is not None and cast(dict[str, Any], scope)["method"] == "POST"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for this endpoint."""
        headers = _plain_headers(scope)
        actor = None if headers is None else self._actor(headers)
        if headers is None or actor is None:
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        try:
            if body is None or len(body) > LARGE:
                raise BadRequest("the body is not complete")
            request = decoded(body, DecisionRequest)
        except Exception:  # nothing has happened yet: the framework explains it
            await self._app(scope, _again(body, receive), send)
            return
        scope["path_template"] = TEMPLATE
        try:
            answer = await self._decide(scope["path"], headers, actor, request)
        except Exception as error:
            asked: Request[Any, Any, Any] = Request(scope, receive, send)
            response = on_problem(asked, error) if isinstance(error, Problem) else on_exception(asked, error)
            await response.to_asgi_response(None, asked)(scope, receive, send)
            return
        length = (b"content-length", b"%d" % len(answer.body))
        await send({"type": "http.response.start", "status": answer.status, "headers": [TYPE, length]})
        await send({"type": "http.response.body", "body": answer.body, "more_body": False})

    async def _decide(
        self, path: str, headers: Mapping[str, str], actor: str, request: DecisionRequest
    ) -> CommandAnswer:
        key = headers.get("idempotency-key")
        sender = make_sender(actor, key, f"POST {path}", request, secret=bool(request.monitored))
        name = path.split("/", 4)[3]
        return await self._service.perform(Decide(sender, name, [request], True))

    def _actor(self, headers: Mapping[str, str]) -> str | None:
        """Return the id of the request's key, or None if it is not admitted or must be looked up."""
        try:
            return admit(self._service.keyring, headers, ROLE)
        except Problem:
            return None


def _plain_headers(scope: Scope) -> dict[str, str] | None:
    """Return the headers of a request, or None if the framework should look at it."""
    listed = list(scope["headers"])
    given = dict(listed)
    if (
        scope["query_string"]
        or scope.get("root_path")
        or len(given) != len(listed)
        or given.get(b"content-type") != TYPE[1]
        or b"content-encoding" in given
        or b"transfer-encoding" in given
        or LENGTH.fullmatch(given.get(b"content-length", b"")) is None
        or int(given[b"content-length"]) > LARGE
        or HOST.fullmatch(given.get(b"host", b"")) is None
    ):
        return None
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in given.items()}
    key = headers.get("idempotency-key")
    return headers if key is None or KEY.fullmatch(key) else None


async def _read(receive: Receive) -> bytes | None:
    """Return the body of a request, or None if the client has disconnected."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message["body"]
        if not message["more_body"]:
            return body


def _again(body: bytes | None, receive: Receive) -> Receive:
    """Return a function that delivers a body that was read, and then what follows."""
    messages: list[ReceiveMessage] = []
    if body is None:
        messages.append({"type": "http.disconnect"})
    else:
        message: HTTPRequestEvent = {"type": "http.request", "body": body, "more_body": False}
        messages.append(message)

    async def deliver() -> ReceiveMessage:
        return messages.pop() if messages else await receive()

    return deliver
