"""Who looks at the dashboard: sign-in by API key, a signed cookie, and a token that every form carries.

The cookie names a key, an end and a random number, under a signature made with the key's own (hashed) secret: any
process of the service can check it, revoking the key ends it, and nothing is stored but which of them were signed out.
While no key exists everyone on this machine is the visitor ``local``, with a cookie signed by a secret of the service's
own.

A page of another site can send this browser's cookie along with a form of its own. Two things stop it: the cookie is
SameSite=Strict, and a form must carry a token that follows from the cookie's random number and the secret, which no
other site can read.
"""

from __future__ import annotations

import hmac
import os
import secrets
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, FormMultiDict
from litestar.handlers import BaseRouteHandler

from lenience.core.settings import SESSION_SECRET
from lenience.service.commands.keys import LOCAL, ROLES, Keyring
from lenience.service.domain.clock import now
from lenience.service.domain.problems import Forbidden
from lenience.service.http.auth import refuse_other_names
from lenience.service.http.service import Service
from lenience.service.storage.ended_sessions import digest_of, end_session

COOKIE = "lenience_session"
HOURS = 12
ANYONE = "anyone"  # in place of a role: whoever is signed in


class Visitor(msgspec.Struct, frozen=True):
    """Who looks: the key's id and roles, and the token of this session's forms."""

    actor: str
    label: str
    roles: tuple[str, ...]
    token: str
    cookie: str | None = None  # to be set with the answer, where the session is new

    def may(self, role: str) -> bool:
        """Whether the visitor has a role; admin has all."""
        return role in self.roles or "admin" in self.roles

    def must_have(self, role: str) -> None:
        """Refuse a visitor without the role."""
        if not self.may(role):
            raise Forbidden(f"the key {self.actor} ({self.label}) does not have the role {role!r}")

    @property
    def local(self) -> bool:
        """Whether there are no keys, and so nobody to sign in."""
        return self.actor == LOCAL


class SignInNeeded(Exception):  # noqa: N818  (not an error: the answer is a page)
    """The visitor must sign in first."""

    def __init__(self, back: str) -> None:
        super().__init__(back)
        self.address = f"/sign-in?next={quote(back)}"


async def visited(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """A guard: know the visitor, or ask for a key; refuse whom the page's role is missing."""
    service: Service = connection.app.state.service
    keyring = service.keyring
    if not keyring.any:
        refuse_other_names(connection)
    visitor = read_session(keyring, connection.cookies.get(COOKIE))
    if visitor is None:
        if keyring.any:
            path = connection.headers.get("hx-current-url") or str(connection.url)
            raise SignInNeeded(_path(path))
        visitor = new_session(keyring, LOCAL)
    connection.scope["user"] = visitor  # whom a page is refused is shown as who they are, and can sign out
    role = str(handler.opt.get("role", "read"))
    if role != ANYONE:
        visitor.must_have(role)


def visitor_of(request: Request[Any, Any, Any]) -> Visitor | None:
    """The visitor, once :func:`visited` has let the request in."""
    user = request.scope.get("user")
    return user if isinstance(user, Visitor) else None


async def checked_form(request: Request[Any, Any, Any]) -> FormMultiDict:
    """The fields of a form that this dashboard sent; any other is refused."""
    form = await request.form()
    visitor = visitor_of(request)
    given = request.headers.get("x-csrf-token") or form.get("token") or ""
    if visitor is None or not hmac.compare_digest(str(given).encode(), visitor.token.encode()):
        raise Forbidden("the form is not from this session: go back, load that page again and send it once more")
    return form


def sign_in(keyring: Keyring, key: str) -> Visitor:
    """A session for whoever holds a key."""
    return new_session(keyring, keyring.find(f"Bearer {key.strip()}").id)


def new_session(keyring: Keyring, actor: str) -> Visitor:
    """A new session, with the cookie to set."""
    payload = f"{actor}.{now() // 1_000_000 + HOURS * 3600}.{secrets.token_urlsafe(16)}"
    cookie = f"{payload}.{_sign(_secret(keyring, actor), 'session', payload)}"
    visitor = read_session(keyring, cookie)
    assert visitor is not None
    return msgspec.structs.replace(visitor, cookie=cookie)


def read_session(keyring: Keyring, cookie: str | None) -> Visitor | None:
    """The visitor of a cookie that is signed, not over, and of a key that is still valid."""
    parts = (cookie or "").split(".")
    if len(parts) != 4:
        return None
    actor, end, _, signature = parts
    if (actor == LOCAL) == keyring.any or not end.isdigit() or int(end) * 1_000_000 < now():
        return None
    key = keyring.valid_key(actor) if actor != LOCAL else None
    if key is None and actor != LOCAL:
        return None
    secret = _secret(keyring, actor)
    payload = ".".join(parts[:3])
    if not hmac.compare_digest(signature.encode(), _sign(secret, "session", payload).encode()):
        return None
    if digest_of(payload) in keyring.ended:
        return None
    token = _sign(secret, "form", payload)
    if key is None:
        return Visitor(LOCAL, "this machine", ROLES, token)
    return Visitor(key.id, key.label, key.roles, token)


def sign_out(service: Service, cookie: str) -> None:
    """End the session of a valid cookie, in every process: here at once, in others when they next read the keys."""
    payload, _, _ = cookie.rpartition(".")
    end_session(service.store, payload, int(payload.split(".")[1]) * 1_000_000)
    service.keyring.refresh()


def cookie_of(visitor: Visitor, secure: bool) -> Cookie:
    """The cookie of a new session."""
    return Cookie(
        key=COOKIE,
        value=visitor.cookie or "",
        path="/",
        httponly=True,
        samesite="strict",
        secure=secure,
        max_age=HOURS * 3600,
    )


def _secret(keyring: Keyring, actor: str) -> bytes:
    if actor == LOCAL:
        return os.environ.setdefault(SESSION_SECRET, secrets.token_hex(32)).encode()
    key = keyring.valid_key(actor)
    return b"" if key is None else key.secret_hash.encode()


def _sign(secret: bytes, purpose: str, payload: str) -> str:
    return hmac.new(secret, f"{purpose}\0{payload}".encode(), sha256).hexdigest()


def _path(address: str) -> str:
    """The path and query of an address on this service."""
    rest = address.split("://", 1)[-1]
    return "/" + rest.split("/", 1)[1] if "/" in rest else "/"
