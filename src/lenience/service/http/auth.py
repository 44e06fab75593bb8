"""Who may do what: a guard that asks the keyring for the role a handler names."""

from __future__ import annotations

import asyncio
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from lenience.service.http.service import Service
from lenience.service.keys import Keyring
from lenience.service.problems import Unauthenticated


async def needs_role(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Admit the request, or refuse it; who it is goes into the request."""
    service: Service = connection.app.state.service
    role = str(handler.opt["role"])
    given = connection.headers.get("authorization")
    connection.scope["auth"] = await _admit(service.keyring, given, role)


async def _admit(keyring: Keyring, given: str | None, role: str) -> str:
    try:
        return keyring.admit(given, role)
    except Unauthenticated:
        # The key may have been made since the list was read.
        if given is None or not keyring.stale:
            raise
        await asyncio.to_thread(keyring.refresh)
        return keyring.admit(given, role)
