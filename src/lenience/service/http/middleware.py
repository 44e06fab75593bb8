"""Middleware for every request: security headers, metrics, and a JSON log line for errors (or for all requests)."""

from __future__ import annotations

import logging
import time
from typing import Any, cast

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from lenience.service.http.direct_decisions import DirectDecisions
from lenience.service.http.metrics import Metrics

HEADERS: list[tuple[bytes, bytes]] = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not no-referrer: browsers would then send "Origin: null" with the service's own forms.
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
log = logging.getLogger("lenience.access")


class RequestMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log_requests: bool, direct: DirectDecisions) -> None:
        self.app = app
        self.direct = direct
        self.metrics = metrics
        self.log_requests = log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        about = cast(dict[str, Any], scope)
        if about["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message["headers"])
                given = {name.lower() for name, _ in headers}
                # A page of the dashboard may set its own content security policy.
                headers.extend((name, value) for name, value in HEADERS if name not in given)
                message["headers"] = headers
            await send(message)

        await (self.direct if self.direct.matches(scope) else self.app)(scope, receive, sending)
        seconds = time.perf_counter() - started
        # Log the template of the path, because the path itself may hold personal data.
        route = str(about.get("path_template") or "unknown")
        self.metrics.request(about["method"], route, status, seconds)
        if self.log_requests or status >= 500:
            fields: dict[str, Any] = {
                "method": about["method"],
                "route": route,
                "status": status,
                "milliseconds": round(seconds * 1e3, 3),
            }
            log.log(logging.ERROR if status >= 500 else logging.INFO, "request", extra={"fields": fields})
