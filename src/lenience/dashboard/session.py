"""Sessions of the dashboard: sign-in by API key or OpenID Connect, a signed cookie, and a token in every form.

The cookie names a key or a person, an expiry and a random number. A secret of the service signs it, so any process of
the service can check it, and nobody can make one from a copy of the database
(see :mod:`lenience.service.storage.session_secrets`). Revoking the key ends the session. A person's cookie also holds
the groups that give roles, and the settings of the service say which roles these are. The database stores only which
sessions were signed out. Until a key exists or OpenID Connect is set up, everyone on this machine is the visitor
``local``.

Every sign-in makes a new cookie with a new random number, so nobody can prepare a session for somebody else.

A page of another site can make the browser send the cookie along with a form. Two things stop it: the cookie is
SameSite=Strict, and a form must carry a token derived from the cookie and the secret, which no other site can read.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any
from urllib.parse import quote

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, FormMultiDict
from litestar.enums import RequestEncodingType
from litestar.handlers import BaseRouteHandler

from lenience.dashboard.openid.settings import OpenIdSettings
from lenience.dashboard.signed_cookie import cookie_name, is_secure, new_cookie, read_cookie, write_cookie
from lenience.service.commands.keys import LOCAL, ROLES, Keyring
from lenience.service.domain.clock import now
from lenience.service.domain.problems import BadRequest, Forbidden
from lenience.service.http.auth import refuse_other_names
from lenience.service.http.service import Service
from lenience.service.storage.ended_sessions import digest_of, end_session
from lenience.service.storage.session_secrets import SESSION_HOURS

COOKIE = "lenience_session"
PURPOSE = "session"
MOST_FIELDS = 5_000  # of a form; the longest has a few for each of 300 columns
ANYONE = "anyone"  # in place of a role: every signed-in visitor


class Session(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the cookie holds: who, until when in seconds since 1970, a random number, and a person's name and groups."""

    actor: str
    end: int
    salt: str
    label: str = ""
    groups: tuple[str, ...] = ()


class Visitor(msgspec.Struct, frozen=True):
    """The visitor: a key or a person with roles, and the token for the forms of this session."""

    actor: str
    label: str
    roles: tuple[str, ...]
    token: str
    cookie: str | None = None  # set with the response if the session is new
    person: bool = False  # signed in with OpenID Connect

    def may(self, role: str) -> bool:
        """Return whether the visitor has a role. The role admin includes all others."""
        return role in self.roles or "admin" in self.roles

    def must_have(self, role: str) -> None:
        """Raise Forbidden if the visitor lacks the role."""
        if not self.may(role):
            raise Forbidden(f"{self.who} does not have the role {role!r}")

    @property
    def who(self) -> str:
        """The visitor in words."""
        return self.label if self.person else f"the key {self.actor} ({self.label})"

    @property
    def local(self) -> bool:
        """Whether no keys exist, so that nobody needs to sign in."""
        return self.actor == LOCAL


class SignInNeeded(Exception):  # noqa: N818  (not an error: the answer is a page)
    """The visitor must sign in first."""

    def __init__(self, back: str) -> None:
        super().__init__(back)
        self.address = f"/sign-in?next={quote(back)}"


async def visited(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Guard a page: identify the visitor or ask for a key, and raise Forbidden if the role is missing."""
    service: Service = connection.app.state.service
    keyring = service.keyring
    if not keyring.closed:
        refuse_other_names(connection.headers)
    visitor = current_session(connection)
    if visitor is None:
        if keyring.closed:
            path = connection.headers.get("hx-current-url") or str(connection.url)
            raise SignInNeeded(_path(path))
        visitor = new_session(keyring, LOCAL)
    connection.scope["user"] = (
        visitor  # set before the check of the role, so that an error page can show the sign-out button
    )
    role = str(handler.opt.get("role", "read"))
    if role != ANYONE:
        visitor.must_have(role)


def visitor_of(request: Request[Any, Any, Any]) -> Visitor | None:
    """Return the visitor, after :func:`visited` has admitted the request."""
    user = request.scope.get("user")
    return user if isinstance(user, Visitor) else None


async def checked_form(request: Request[Any, Any, Any]) -> FormMultiDict:
    """Return the fields of a form. Raise Forbidden if this session did not send the form."""
    if request.content_type[0] == RequestEncodingType.URL_ENCODED:
        # The framework parses a form on the event loop, where very many fields would take a second.
        count = 1 + (await request.body()).count(b"&")
        if count > MOST_FIELDS:
            raise BadRequest(f"a form may have {MOST_FIELDS:,} fields, not {count:,}", code="too_large")
    form = await request.form()
    visitor = visitor_of(request)
    given = request.headers.get("x-csrf-token") or form.get("token") or ""
    if visitor is None or not hmac.compare_digest(str(given).encode(), visitor.token.encode()):
        raise Forbidden("the form belongs to another session: go back, reload the page and send the form again")
    return form


def refuse_cross_site(request: Request[Any, Any, Any]) -> None:
    """Raise Forbidden if a page of another site made the browser send the request.

    There is no session before signing in, so no token can protect that form. Without this check another site could sign
    a visitor in with its own key, and read what the visitor then enters. Browsers name the sender in Sec-Fetch-Site, or
    (to an address without TLS) in Origin; other clients send neither.
    """
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        own = site in ("same-origin", "none")
    else:
        own = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
    if not own:
        raise Forbidden("the form was sent from a page of another site: open the sign-in page of this service")


def sign_in(keyring: Keyring, key: str) -> Visitor:
    """Return a session for the holder of a key."""
    return new_session(keyring, keyring.find(f"Bearer {key.strip()}").id)


def new_session(
    keyring: Keyring, actor: str, openid: OpenIdSettings | None = None, label: str = "", groups: tuple[str, ...] = ()
) -> Visitor:
    """Return a new session with the cookie to set: of a key, or of a person with a name and groups."""
    hours = SESSION_HOURS if openid is None else openid.session_hours
    session = Session(actor, now() // 1_000_000 + int(hours * 3600), secrets.token_urlsafe(16), label, groups)
    cookie = write_cookie(keyring.secrets.signing, PURPOSE, session)
    visitor = read_session(keyring, cookie, openid)
    assert visitor is not None
    return msgspec.structs.replace(visitor, cookie=cookie)


def current_session(connection: ASGIConnection[Any, Any, Any, Any]) -> Visitor | None:
    """Return the visitor of the cookie that came with a request."""
    cookie = connection.cookies.get(cookie_name(COOKIE, is_secure(connection)))
    provider = connection.app.state.openid
    return read_session(connection.app.state.service.keyring, cookie, None if provider is None else provider.settings)


def read_session(keyring: Keyring, cookie: str | None, openid: OpenIdSettings | None = None) -> Visitor | None:
    """Return the visitor of a cookie, or None if it is unsigned, expired, signed out, or its key is invalid.

    A person's session also needs the settings of OpenID Connect: another provider, or none, ends it.
    """
    found = read_cookie(keyring.secrets.verifying, PURPOSE, cookie, Session)
    if found is None or digest_of(found.signed) in keyring.ended:
        return None
    session, token = found.content, found.derive("form")
    if (session.actor == LOCAL) == keyring.closed or session.end * 1_000_000 < now():
        return None
    if session.actor == LOCAL:
        return Visitor(LOCAL, "this machine", ROLES, token)
    if openid is not None and openid.is_actor(session.actor):
        return Visitor(session.actor, session.label, openid.roles_of(session.groups), token, person=True)
    key = keyring.valid_key(session.actor)
    return None if key is None else Visitor(key.id, key.label, key.roles, token)


def sign_out(service: Service, cookie: str) -> None:
    """End the session of a valid cookie: in this process now, in others when they next read the keys."""
    found = read_cookie(service.keyring.secrets.verifying, PURPOSE, cookie, Session)
    if found is not None:
        end_session(service.store, found.signed, found.content.end * 1_000_000)
        service.keyring.refresh()


def cookie_of(visitor: Visitor, secure: bool) -> Cookie:
    """Return the cookie of a new session."""
    return new_cookie(COOKIE, visitor.cookie or "", SESSION_HOURS * 3600, secure)


def _path(address: str) -> str:
    """Return the path and query of an address on this service."""
    rest = address.split("://", 1)[-1]
    return "/" + rest.split("/", 1)[1] if "/" in rest else "/"
