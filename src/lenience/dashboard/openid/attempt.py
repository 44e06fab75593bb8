"""An attempt to sign in with OpenID Connect: from the button to the provider and back.

A signed cookie in the visitor's browser stands for the attempt, so the service stores nothing until it succeeds. Three
values are derived from the cookie with the service's secret, and the browser cannot compute them:

- ``state``, which the provider returns. Only the browser that started the attempt has the matching cookie, so another
  site cannot sign a visitor in with its own code (login CSRF).
- ``nonce``, which the ID token must repeat. A token of another sign-in is rejected.
- ``verifier`` (PKCE, RFC 7636), which redeems the code. A stolen code is useless.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256

import msgspec
from litestar.datastructures import Cookie

from lenience.dashboard.signed_cookie import SignedCookie, new_cookie, no_cookie, read_cookie, write_cookie
from lenience.service.domain.clock import now

ATTEMPT_SECONDS = 600  # within which a person must have signed in at the provider
COOKIE = "lenience_sign_in"
PURPOSE = "sign-in"


class AttemptContent(msgspec.Struct, frozen=True):
    """What the cookie holds: the page to open afterwards, when the attempt began in seconds, and a random number."""

    back: str
    begun: int
    salt: str


class Attempt(msgspec.Struct, frozen=True):
    """An attempt to sign in.

    Parameters
    ----------
    cookie : SignedCookie
        The cookie that stands for it.
    text : str
        The cookie as text.
    """

    cookie: SignedCookie[AttemptContent]
    text: str

    @property
    def back(self) -> str:
        """The page to open after sign-in."""
        return self.cookie.content.back

    @property
    def begun(self) -> int:
        """When the attempt began, in seconds since 1970."""
        return self.cookie.content.begun

    @property
    def until(self) -> int:
        """When it expires, in seconds since 1970."""
        return self.begun + ATTEMPT_SECONDS

    @property
    def state(self) -> str:
        """The value that the provider returns unchanged."""
        return self.cookie.derive("state")

    @property
    def nonce(self) -> str:
        """The value that the ID token must contain."""
        return self.cookie.derive("nonce")

    @property
    def verifier(self) -> str:
        """The value that redeems the code."""
        return self.cookie.derive("verifier")

    def answers(self, state: str) -> bool:
        """Return whether a state that the provider returned belongs to this attempt."""
        return hmac.compare_digest(state.encode(), self.state.encode())

    def set_cookie(self, secure: bool) -> Cookie:
        """Return the cookie for the response. The provider's redirect comes from another site, so it is not strict."""
        return new_cookie(COOKIE, self.text, ATTEMPT_SECONDS, secure, strict=False)


def new_attempt(secret: bytes, back: str) -> Attempt:
    """Return a new attempt, which will open a page of the dashboard in the end."""
    text = write_cookie(secret, PURPOSE, AttemptContent(back, _seconds(), secrets.token_urlsafe(24)))
    cookie = read_cookie([secret], PURPOSE, text, AttemptContent)
    assert cookie is not None
    return Attempt(cookie, text)


def read_attempt(verifying: tuple[bytes, ...], text: str | None) -> Attempt | None:
    """Return the attempt of a cookie, or None if the cookie is missing, forged or expired."""
    cookie = read_cookie(verifying, PURPOSE, text, AttemptContent)
    attempt = None if cookie is None or text is None else Attempt(cookie, text)
    return attempt if attempt is not None and attempt.begun <= _seconds() < attempt.until else None


def forget_attempt(secure: bool) -> Cookie:
    """Return the cookie that ends an attempt in the browser."""
    return no_cookie(COOKIE, secure)


def challenge(verifier: str) -> str:
    """Return the code challenge of a verifier, method S256.

    Examples
    --------
    The example of RFC 7636, appendix B:

    >>> challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


def _seconds() -> int:
    return now() // 1_000_000
