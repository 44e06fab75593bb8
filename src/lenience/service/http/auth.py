"""Authorization: a guard that asks the keyring for the role that a handler needs.

Until a key exists, everyone on this machine has full access, and so would any page in a browser on it. Requests under
another host name or from another site are therefore rejected.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from lenience.service.commands.keys import Keyring
from lenience.service.domain.problems import Forbidden, Unauthenticated
from lenience.service.http.service import Service

NAMES = ("localhost", "testserver")  # testserver is the name of the framework's test client


async def needs_role(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Admit the request if its key has the role, and store the key's id in the request. Otherwise raise."""
    if "role" not in handler.opt:
        return  # the framework's own handler of OPTIONS, which only lists the methods
    service: Service = connection.app.state.service
    role = str(handler.opt["role"])
    if not service.keyring.closed:
        refuse_foreign(connection)
    given = connection.headers.get("authorization")
    connection.scope["auth"] = await _admit(service.keyring, given, role)


def refuse_foreign(connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Raise Forbidden if no key exists and a page of another site made the browser send the request."""
    refuse_other_names(connection)
    headers = connection.headers
    origin = headers.get("origin")
    cross_origin = origin is not None and origin.partition("://")[2].lower() != headers["host"].lower()
    if cross_origin or headers.get("sec-fetch-site") == "cross-site":
        raise Forbidden("the service has no API keys, so it rejects requests from pages of other sites")


def refuse_other_names(connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Raise Forbidden if no key exists and the host name is not local, because DNS may point it here."""
    host = connection.headers.get("host", "")
    if not loopback((host if host.endswith("]") else host.rpartition(":")[0] or host).strip("[]")):
        raise Forbidden("the service has no API keys, so it answers only at 127.0.0.1 or localhost")


def loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> loopback("127.0.0.1"), loopback("localhost"), loopback("::1"), loopback("0.0.0.0"), loopback("example.org")
    (True, True, True, False, False)
    """
    if host.lower() in NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _admit(keyring: Keyring, given: str | None, role: str) -> str:
    try:
        return keyring.admit(given, role)
    except Unauthenticated:
        # The key may have been created after the list was read.
        if given is None or not keyring.stale:
            raise
        await asyncio.to_thread(keyring.refresh_if_stale)
        return keyring.admit(given, role)
