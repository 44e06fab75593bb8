"""The OpenID provider: its discovery document, its keys, and codes that it turns into people.

Everything is fetched when somebody signs in, never at the start. A provider that is down therefore stops neither the
service nor visitors with an API key.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec
from joserfc.jwk import Key

from lenience.dashboard.openid.attempt import Attempt, challenge
from lenience.dashboard.openid.id_token import (
    DEFAULT_ALGORITHM,
    ExpectedToken,
    SignInRejected,
    UnknownKey,
    public_keys,
    verify_id_token,
)
from lenience.dashboard.openid.settings import OpenIdSettings, read_client_secret, secure_address
from lenience.service.domain.clock import now

DISCOVERY = "/.well-known/openid-configuration"
CONNECTING, ANSWERING = 5.0, 10.0  # seconds for a connection, and for a whole answer
LARGEST_ANSWER = 512 * 1024  # bytes
FRESH = 600.0  # seconds for which the discovery document and the keys are used without another look
RETRY = 5.0  # seconds for which a provider that failed is not asked again
KEYS_AGAIN = 5.0  # seconds between two fetches of the keys because a token names an unknown one
LONGEST_LABEL = 100  # characters

Value = TypeVar("Value")

log = logging.getLogger("lenience.service")


class ProviderDown(Exception):  # noqa: N818  (the answer is a page that offers API keys)
    """The provider cannot be reached, or its answer makes no sense."""


class Metadata(msgspec.Struct, frozen=True):
    """What the service uses of the discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    id_token_signing_alg_values_supported: tuple[str, ...] = (DEFAULT_ALGORITHM,)
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Person(msgspec.Struct, frozen=True):
    """Somebody who has signed in at the provider.

    Parameters
    ----------
    actor : str
        Issuer and subject, as the log names the person.
    label : str
        Name and e-mail address, for pages.
    groups : tuple of str
        The groups that give a role here.
    id_token : str
        The token, which the provider wants to see when the person signs out.
    """

    actor: str
    label: str
    groups: tuple[str, ...]
    id_token: str


class _TokenAnswer(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class Provider:
    """The provider of the settings.

    Parameters
    ----------
    settings : OpenIdSettings
        Which provider to trust, and for what.

    Raises
    ------
    InputError
        If the file with the client secret cannot be used.
    """

    def __init__(self, settings: OpenIdSettings) -> None:
        self.settings = settings
        self._secret = read_client_secret(settings)
        self._tls = httpx.create_ssl_context()
        self._turn = asyncio.Lock()  # one fetch of the document or the keys at a time
        self._metadata: Metadata | None = None
        self._fetched_at = self._failed_at = -FRESH
        self._keys: list[Key] = []
        self._keys_at = -FRESH

    async def authorization_address(self, attempt: Attempt) -> str:
        """Return the address at the provider where a person signs in.

        Raises
        ------
        ProviderDown
            If the provider cannot be reached.
        """
        metadata = await self.metadata()
        settings = self.settings
        return _with_query(
            metadata.authorization_endpoint,
            response_type="code",
            client_id=settings.client_id,
            redirect_uri=settings.redirect_address,
            scope=" ".join(settings.scopes),
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=challenge(attempt.verifier),
            code_challenge_method="S256",
        )

    async def check_issuer(self, issuer: str | None) -> None:
        """Raise SignInRejected if another provider has sent the person back (RFC 9207)."""
        required = (await self.metadata()).authorization_response_iss_parameter_supported
        if issuer != self.settings.issuer and (required or issuer is not None):
            raise SignInRejected("the response comes from another issuer")

    async def redeem(self, code: str, attempt: Attempt) -> Person:
        """Return the person who signed in at the provider, which then gave the code to the browser.

        Raises
        ------
        SignInRejected
            If the provider does not accept the code, or the ID token is not valid.
        ProviderDown
            If the provider cannot be reached.
        """
        answer = await self._exchange(code, attempt.verifier)
        claims = await self._verified(answer.id_token, attempt)
        if self.settings.given_groups(claims) is None:
            claims = {**await self._user_info(answer.access_token, claims["sub"]), **claims}
        return Person(
            actor=self.settings.actor(claims["sub"]),
            label=label_of(claims),
            groups=self.settings.groups_with_roles(claims),
            id_token=answer.id_token,
        )

    async def sign_out_address(self, id_token: str | None) -> str | None:
        """Return the address at the provider that ends the session there, or None if it has none or is down."""
        try:
            metadata = await self.metadata()
        except ProviderDown:
            return None
        if metadata.end_session_endpoint is None:
            return None
        hint = {} if id_token is None else {"id_token_hint": id_token}
        return _with_query(
            metadata.end_session_endpoint,
            client_id=self.settings.client_id,
            post_logout_redirect_uri=self.settings.signed_out_address,
            **hint,
        )

    async def metadata(self) -> Metadata:
        """Return the discovery document, at most some minutes old; an older one if the provider is down."""
        async with self._turn:
            since = time.monotonic() - self._fetched_at
            failed_lately = time.monotonic() - self._failed_at < RETRY
            if self._metadata is not None and (since < FRESH or failed_lately):
                return self._metadata
            if failed_lately:
                raise ProviderDown
            try:
                self._metadata = await self._discover()
            except ProviderDown:
                self._failed_at = time.monotonic()
                if self._metadata is None:
                    raise
            else:
                self._fetched_at = time.monotonic()
            return self._metadata

    async def _discover(self) -> Metadata:
        document = await self._fetch("GET", self.settings.issuer.rstrip("/") + DISCOVERY)
        metadata = _decoded(document, Metadata, "discovery document")
        if metadata.issuer != self.settings.issuer:
            raise _down("the discovery document has another issuer")
        addresses = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
        optional = (metadata.userinfo_endpoint, metadata.end_session_endpoint)
        if not all(secure_address(one.partition("?")[0]) for one in (*addresses, *optional) if one is not None):
            raise _down("the discovery document names an address without https")
        return metadata

    async def _exchange(self, code: str, verifier: str) -> _TokenAnswer:
        """Redeem a code."""
        metadata = await self.metadata()
        settings = self.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_address,
            "code_verifier": verifier,
        }
        basic: httpx.BasicAuth | None = None
        if self._secret is None:
            form["client_id"] = settings.client_id
        elif "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            # RFC 6749 (2.3.1) encodes both parts, which may hold a colon, before they become a header.
            basic = httpx.BasicAuth(quote(settings.client_id, safe=""), quote(self._secret, safe=""))
        else:
            form |= {"client_id": settings.client_id, "client_secret": self._secret}
        answer = await self._fetch("POST", metadata.token_endpoint, form=form, auth=basic)
        return _decoded(answer, _TokenAnswer, "answer with tokens")

    async def _verified(self, token: str, attempt: Attempt) -> dict[str, Any]:
        """Return the claims of an ID token. If it names an unknown key, fetch the keys once more."""
        metadata = await self.metadata()
        expected = ExpectedToken(
            issuer=self.settings.issuer,
            client_id=self.settings.client_id,
            nonce=attempt.nonce,
            begun=attempt.begun,
            now=now() / 1e6,
        )
        algorithms = metadata.id_token_signing_alg_values_supported
        for oldest in (FRESH, KEYS_AGAIN):
            keys = await self._current_keys(metadata, oldest)
            try:
                return verify_id_token(token, keys, expected, algorithms)
            except UnknownKey:
                continue
        raise SignInRejected("the ID token is signed by a key that the provider does not publish")

    async def _current_keys(self, metadata: Metadata, oldest: float) -> list[Key]:
        """Return the provider's keys, fetched at most ``oldest`` seconds ago."""
        async with self._turn:
            if time.monotonic() - self._keys_at >= oldest:
                document = await self._fetch("GET", metadata.jwks_uri)
                try:
                    self._keys = public_keys(msgspec.json.decode(document))
                except msgspec.DecodeError:
                    raise _down("the keys of the provider cannot be read") from None
                self._keys_at = time.monotonic()
            return self._keys

    async def _user_info(self, access_token: str, subject: str) -> dict[str, Any]:
        """Return the claims of the UserInfo endpoint, which some providers keep out of the ID token."""
        metadata = await self.metadata()
        if metadata.userinfo_endpoint is None or not access_token:
            return {}
        answer = await self._fetch(
            "GET", metadata.userinfo_endpoint, headers={"Authorization": f"Bearer {access_token}"}
        )
        claims = _decoded(answer, dict[str, Any], "answer about the user")
        given = claims.get("sub")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), subject.encode()):
            raise SignInRejected("the provider described another user")
        return claims

    async def _fetch(
        self,
        method: str,
        address: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: httpx.BasicAuth | None = None,
    ) -> bytes:
        """Return the body of a good answer. No redirect is followed, because the addresses are the provider's own."""
        answer = bytearray()
        asked = {"Accept": "application/json", **(headers or {})}
        try:
            async with (
                asyncio.timeout(ANSWERING),
                httpx.AsyncClient(verify=self._tls, timeout=CONNECTING, follow_redirects=False) as client,
                client.stream(method, address, data=form, headers=asked, auth=auth) as response,
            ):
                async for chunk in response.aiter_bytes():
                    answer += chunk
                    if len(answer) > LARGEST_ANSWER:
                        raise _down(f"an answer has more than {LARGEST_ANSWER:,} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise _down(f"{type(error).__name__} {error}".strip()) from None
        if response.status_code == 200:
            return bytes(answer)
        if form is not None and response.status_code in (400, 401, 403):
            raise SignInRejected(f"the provider does not accept the code ({_error_of(bytes(answer))})")
        raise _down(f"{address} answered {response.status_code}")


def label_of(claims: Mapping[str, Any]) -> str:
    """Return a person's name and e-mail address, as far as the claims have them.

    Examples
    --------
    >>> label_of({"sub": "248289761001", "name": "Jane Doe", "email": "jane@example.org"})
    'Jane Doe (jane@example.org)'
    >>> label_of({"sub": "248289761001"})
    '248289761001'
    """
    name, short, email = (_clean(claims.get(one)) for one in ("name", "preferred_username", "email"))
    name = name or short
    if name and email and name != email:
        return f"{name} ({email})"[:LONGEST_LABEL]
    return (name or email or _clean(claims["sub"]))[:LONGEST_LABEL]


def _clean(text: object) -> str:
    return "".join(letter for letter in text if letter.isprintable()).strip() if isinstance(text, str) else ""


def _error_of(body: bytes) -> str:
    """Return the error code of an answer of the token endpoint, such as invalid_grant."""
    try:
        error = msgspec.json.decode(body, type=dict[str, Any]).get("error")
    except msgspec.DecodeError:
        error = None
    return _clean(error)[:LONGEST_LABEL] or "no reason given"


def _decoded(body: bytes, kind: type[Value], what: str) -> Value:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise _down(f"the {what} cannot be read: {error}") from None


def _down(cause: str) -> ProviderDown:
    """Log why the provider cannot be used, and return the error to raise."""
    log.warning("the OpenID provider cannot be used", extra={"fields": {"cause": cause}})
    return ProviderDown(cause)


def _with_query(address: str, **values: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(values)}"
