"""Cookies that the service signs: nobody else can make one, and a cookie for one purpose is none for another."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie

Content = TypeVar("Content")
LARGEST = 3_800  # bytes of a cookie; browsers allow 4,096 with its name and attributes


class SignedCookie(msgspec.Struct, Generic[Content], frozen=True):
    """A cookie whose signature is valid: its content, the text that was signed, and the secret that signed it."""

    content: Content
    signed: str
    secret: bytes

    def derive(self, purpose: str) -> str:
        """Return a value that belongs to this cookie and that only the service can compute, e.g. a form's token."""
        return sign(self.secret, purpose, self.signed)


def sign(secret: bytes, purpose: str, text: str) -> str:
    """Return the signature of a text for one purpose, 64 hexadecimal digits."""
    return hmac.new(secret, f"{purpose}\0{text}".encode(), sha256).hexdigest()


def write_cookie(secret: bytes, purpose: str, content: msgspec.Struct) -> str:
    """Return the text of a signed cookie."""
    signed = urlsafe_b64encode(msgspec.json.encode(content)).decode().rstrip("=")
    return f"{signed}.{sign(secret, purpose, signed)}"


def read_cookie(
    secrets: Iterable[bytes], purpose: str, text: str | None, kind: type[Content]
) -> SignedCookie[Content] | None:
    """Return a cookie, or None if none of the secrets signed it for this purpose."""
    signed, _, signature = (text or "").partition(".")
    given = signature.encode()
    for secret in secrets:
        if hmac.compare_digest(given, sign(secret, purpose, signed).encode()):
            body = urlsafe_b64decode(signed + "=" * (-len(signed) % 4))
            try:
                return SignedCookie(msgspec.json.decode(body, type=kind), signed, secret)
            except msgspec.DecodeError:
                return None  # an earlier version of the software wrote it
    return None


def is_secure(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether the browser uses HTTPS."""
    return connection.url.scheme == "https"


def cookie_name(name: str, secure: bool) -> str:
    """Return the full name of a cookie.

    With HTTPS it has the prefix ``__Host-``. A browser then accepts the cookie only from this host, and not from a
    neighbour such as evil.example.org for decisions.example.org, which could otherwise plant a session of its own.
    """
    return f"__Host-{name}" if secure else name


def new_cookie(name: str, value: str, seconds: int, secure: bool, *, strict: bool = True) -> Cookie:
    """Return a cookie for a response. A strict one is not sent when a link of another site leads here."""
    return Cookie(
        key=cookie_name(name, secure),
        value=value,
        path="/",
        httponly=True,
        samesite="strict" if strict else "lax",
        secure=secure,
        max_age=seconds,
    )


def no_cookie(name: str, secure: bool) -> Cookie:
    """Return a cookie that deletes the one with this name."""
    return new_cookie(name, "", 0, secure)
