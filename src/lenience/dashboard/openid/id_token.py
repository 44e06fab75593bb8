"""Verify an ID token: its signature by a key of the provider, and what OpenID Connect Core (3.1.3.7) requires.

Only asymmetric signatures are allowed. With HS256 the key would be the client secret, or, by a well-known mistake, the
text of a public key; ``none`` is no signature at all.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any
from warnings import catch_warnings

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import JWKRegistry, Key, RSAKey
from joserfc.jws import JWSRegistry

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
DEFAULT_ALGORITHM = "RS256"  # if the provider names none
LEEWAY = 60.0  # seconds by which the clocks of the provider and of this machine may differ
SHORTEST_RSA = 2048  # bits
KINDS = ("RSA", "EC", "OKP")  # of keys whose signature everybody can verify
PUBLIC = ("kty", "kid", "use", "alg", "n", "e", "crv", "x", "y")  # members of a public key


class SignInRejected(Exception):  # noqa: N818  (a person whose sign-in failed is no error of the service)
    """A sign-in that cannot be trusted. The reason is for the log; a visitor sees only that it failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnknownKey(Exception):  # noqa: N818  (the provider may have replaced its keys: fetch them again)
    """The provider's keys, as they were fetched last, do not include the one that the token names."""


class ExpectedToken(msgspec.Struct, frozen=True):
    """What an ID token must state.

    Parameters
    ----------
    issuer : str
        The provider.
    client_id : str
        For whom the token must be.
    nonce : str
        What this sign-in sent to the provider.
    begun : float
        When it began, in seconds since 1970. A token that was issued before is another sign-in's.
    now : float
        The time, in seconds since 1970.
    """

    issuer: str
    client_id: str
    nonce: str
    begun: float
    now: float


def public_keys(document: object) -> list[Key]:
    """Return the keys of a JWK set that can sign ID tokens. Other keys are left out, as RFC 7517 says.

    Examples
    --------
    >>> public_keys({"keys": [{"kty": "oct", "k": "c2VjcmV0"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"}, "key"]})
    []
    """
    given = document.get("keys") if isinstance(document, dict) else None
    keys: list[Key] = []
    for one in given if isinstance(given, list) else []:
        if not isinstance(one, dict) or one.get("kty") not in KINDS or one.get("use", "sig") != "sig":
            continue
        public = {name: value for name, value in one.items() if name in PUBLIC}
        try:
            with catch_warnings(action="ignore", category=SecurityWarning):  # the size is checked below
                key = JWKRegistry.import_key(public)
        except (JoseError, ValueError, TypeError):
            continue
        if not isinstance(key, RSAKey) or key.public_key.key_size >= SHORTEST_RSA:
            keys.append(key)
    return keys


def verify_id_token(
    token: str, keys: Sequence[Key], expected: ExpectedToken, algorithms: Sequence[str] = (DEFAULT_ALGORITHM,)
) -> dict[str, Any]:
    """Return the claims of an ID token.

    Parameters
    ----------
    token : str
        The token, three parts in base64.
    keys : sequence of keys
        The provider's public keys.
    expected : ExpectedToken
        What the token must state.
    algorithms : sequence of str
        Those that the provider says it signs with. Only asymmetric ones are used.

    Returns
    -------
    dict
        The claims.

    Raises
    ------
    SignInRejected
        If the token is not valid, not for this service, or not of this sign-in.
    UnknownKey
        If the token names a key that is not one of these.
    """
    allowed = [one for one in ALGORITHMS if one in algorithms]
    if not allowed:
        raise SignInRejected("the provider signs with no algorithm that is allowed")
    registry = JWSRegistry(algorithms=allowed, strict_check_header=False)
    try:
        with catch_warnings(action="ignore", category=SecurityWarning):  # "EdDSA" is an old name of "Ed25519"
            claims = jwt.decode(token, lambda signed: _key(keys, signed.headers()), registry=registry).claims
    except (JoseError, ValueError, TypeError) as error:
        raise SignInRejected(f"the ID token cannot be verified: {error}") from None
    _check_claims(claims, expected)
    return claims


def _key(keys: Sequence[Key], header: dict[str, Any]) -> Key:
    """Return the key that a token names. Without a name, it must be the only one."""
    kid = header.get("kid")
    named = [key for key in keys if kid is None or key.get("kid") == kid]
    if kid is None and len(named) > 1:
        raise SignInRejected("the ID token names no key, and the provider has several")
    if not named:
        raise UnknownKey
    return named[0]


def _check_claims(claims: dict[str, Any], expected: ExpectedToken) -> None:
    """Raise SignInRejected unless the claims are those of this sign-in."""
    if claims.get("iss") != expected.issuer:
        raise SignInRejected("the ID token has another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if expected.client_id not in audiences:
        raise SignInRejected("the ID token is for another client")
    authorized = claims.get("azp")
    if (len(audiences) > 1 or authorized is not None) and authorized != expected.client_id:
        raise SignInRejected("the ID token was issued to another client")
    expires, issued, earliest = (_time(claims, name) for name in ("exp", "iat", "nbf"))
    if expires is None or expires <= expected.now - LEEWAY:
        raise SignInRejected("the ID token has expired")
    if issued is None or not expected.begun - LEEWAY <= issued <= expected.now + LEEWAY:
        raise SignInRejected("the ID token was not issued during this sign-in")
    if earliest is not None and earliest > expected.now + LEEWAY:
        raise SignInRejected("the ID token is not valid yet")
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise SignInRejected("the ID token belongs to another sign-in")
    check_subject(claims.get("sub"))


def check_subject(subject: object) -> str:
    """Return the subject of a token, which must be 1 to 255 ASCII characters."""
    if (
        not isinstance(subject, str)
        or not 1 <= len(subject) <= 255
        or not (subject.isascii() and subject.isprintable())
    ):
        raise SignInRejected("the ID token has no valid subject")
    return subject


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
