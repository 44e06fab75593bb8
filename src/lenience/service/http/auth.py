"""Authorization: a guard that asks the keyring for the role that a handler needs.

Until a key exists, everyone on this machine has full access, and so would any page in a browser on it. Requests under
another host name or from another site are therefore rejected.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from functools import lru_cache
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
    keyring, headers = service.keyring, connection.headers
    try:
        actor = admit(keyring, headers, role)
    except Unauthenticated:
        # The key may have been created after the list was read.
        if headers.get("authorization") is None or not keyring.stale:
            raise
        await asyncio.to_thread(keyring.refresh_if_stale)
        actor = admit(keyring, headers, role)
    connection.scope["auth"] = actor


def admit(keyring: Keyring, headers: Mapping[str, str], role: str) -> str:
    """Return the id of the key of a request if it has the role, or raise a Problem."""
    if not keyring.closed:
        refuse_foreign(headers)
    return keyring.admit(headers.get("authorization"), role)


def refuse_foreign(headers: Mapping[str, str]) -> None:
    """Raise Forbidden if no key exists and a page of another site made the browser send the request."""
    refuse_other_names(headers)
    origin = headers.get("origin")
    cross_origin = origin is not None and origin.partition("://")[2].lower() != headers["host"].lower()
    if cross_origin or headers.get("sec-fetch-site") == "cross-site":
        raise Forbidden("the service has no API keys, so it rejects requests from pages of other sites")


def refuse_other_names(headers: Mapping[str, str]) -> None:
    """Raise Forbidden if no key exists and the host name is not local, because DNS may point it here."""
    host = headers.get("host", "")
    if not loopback((host if host.endswith("]") else host.rpartition(":")[0] or host).strip("[]")):
        raise Forbidden("the service has no API keys, so it answers only at 127.0.0.1 or localhost")


@lru_cache(maxsize=64)
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
