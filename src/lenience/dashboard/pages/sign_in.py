"""Sign-in by API key or OpenID Connect, and sign-out."""

from __future__ import annotations

import logging
import math
import re
from typing import Annotated, Any

from litestar import Request, Response, get, post
from litestar.params import QueryParameter

from lenience.dashboard.attempt_limit import AttemptLimit
from lenience.dashboard.openid.attempt import COOKIE as ATTEMPT_COOKIE
from lenience.dashboard.openid.attempt import Attempt, forget_attempt, new_attempt, read_attempt
from lenience.dashboard.openid.id_token import SignInRejected
from lenience.dashboard.openid.provider import Person, Provider, ProviderDown
from lenience.dashboard.openid.settings import CALLBACK
from lenience.dashboard.rendering import page, redirect
from lenience.dashboard.session import (
    ANYONE,
    COOKIE,
    checked_form,
    cookie_of,
    new_session,
    refuse_cross_site,
    sign_in,
    visitor_of,
)
from lenience.dashboard.session import sign_out as end
from lenience.dashboard.signed_cookie import LARGEST, cookie_name, is_secure, new_cookie, no_cookie
from lenience.service.domain.problems import NotFound, Unauthenticated
from lenience.service.http.service import Service
from lenience.service.storage.ended_sessions import end_session
from lenience.service.storage.people import remember_person

Req = Request[Any, Any, Any]
Back = Annotated[str, QueryParameter(name="next", max_length=500)]
Returned = Annotated[str | None, QueryParameter(max_length=8_000)]  # what the provider put into the address
ReturnedState = Annotated[str | None, QueryParameter(name="state", max_length=200)]
SIGN_IN_BODY = 16 * 1024  # bytes of the form, which anyone may send
PATH = re.compile(r"/(?!/)[!-\[\]-~]*")  # visible ASCII without a backslash
ERROR_CODE = re.compile(r"[a-z_]{1,40}")  # of OAuth 2.0
ID_TOKEN = "lenience_id_token"  # a cookie with the ID token, which the provider wants to see at sign-out
STALE = "This sign-in has expired, or it was started in another window. Start again."
REJECTED = "The sign-in could not be verified. Start again. If this happens again, ask the operator of this service."

log = logging.getLogger("lenience.service")


@get("/sign-in", include_in_schema=False)
async def sign_in_form(request: Req, back: Back = "/") -> Response[bytes]:
    """Show the form that asks for a key, and the button that leads to the OpenID provider."""
    return _form(request, _inside(back))


@post("/sign-in", include_in_schema=False, status_code=303, request_max_body_size=SIGN_IN_BODY)
async def sign_in_now(request: Req) -> Response[bytes]:
    """Start a session for the holder of a key."""
    refuse_cross_site(request)
    limit: AttemptLimit = request.app.state.sign_in_limit
    address = _client_address(request)
    if (wait := math.ceil(limit.seconds_to_wait(address))) > 0:
        return _too_many(request, wait)
    form = await request.form()
    back = _inside(str(form.get("next", "/")))
    service: Service = request.app.state.service
    limit.record(address)
    await service.ask(service.keyring.refresh)
    try:
        visitor = sign_in(service.keyring, str(form.get("key", "")))
    except Unauthenticated:
        error = "This key is invalid: it is unknown, revoked, expired or incomplete. A key begins with lk_."
        return _form(request, back, key_error=error, status=401)
    if not visitor.may("read"):
        roles = " and ".join(visitor.roles)
        error = f"This key cannot open the dashboard: it has the role {roles} and needs the role read."
        return _form(request, back, key_error=error, status=403)
    limit.clear(address)
    response = redirect(back)
    response.cookies.append(cookie_of(visitor, is_secure(request)))
    return response


@get("/sign-in/oidc", include_in_schema=False)
async def sign_in_at_provider(request: Req, back: Back = "/") -> Response[bytes]:
    """Send the visitor to the OpenID provider."""
    refuse_cross_site(request)
    provider = _provider(request)
    service: Service = request.app.state.service
    attempt = new_attempt(service.keyring.secrets.signing, _inside(back))
    try:
        address = await provider.authorization_address(attempt)
    except ProviderDown:
        return _down(request, provider, attempt.back)
    response = redirect(address)
    response.cookies.append(attempt.set_cookie(is_secure(request)))
    return response


@get(CALLBACK, include_in_schema=False)
async def sign_in_with_code(
    request: Req,
    code: Returned = None,
    returned_state: ReturnedState = None,
    iss: Returned = None,
    error: Returned = None,
) -> Response[bytes]:
    """Start a session for a person whom the provider has sent back."""
    provider = _provider(request)
    service: Service = request.app.state.service
    secure = is_secure(request)
    attempt = read_attempt(service.keyring.secrets.verifying, request.cookies.get(cookie_name(ATTEMPT_COOKIE, secure)))
    if attempt is None or not attempt.answers(returned_state or ""):
        return _form(request, "/", error=STALE, status=400)
    limit: AttemptLimit = request.app.state.sign_in_limit
    address = _client_address(request)
    if (wait := math.ceil(limit.seconds_to_wait(address))) > 0:
        return _too_many(request, wait)
    limit.record(address)
    try:
        person = await _person(service, provider, attempt, code, iss, error)
    except ProviderDown:
        return _down(request, provider, attempt.back)
    except SignInRejected as rejected:
        log.warning("a sign-in was rejected", extra={"fields": {"reason": rejected.reason}})
        response = _form(request, attempt.back, error=REJECTED, status=401)
        response.cookies.append(forget_attempt(secure))
        return response
    limit.clear(address)
    response = await _signed_in(request, service, provider, attempt, person)
    response.cookies.append(forget_attempt(secure))
    return response


async def _person(
    service: Service, provider: Provider, attempt: Attempt, code: str | None, issuer: str | None, error: str | None
) -> Person:
    """Return the person who signed in at the provider. Each attempt succeeds at most once."""
    await provider.check_issuer(issuer)
    if error is not None or not code:
        given = error if error is not None and ERROR_CODE.fullmatch(error) else "no code"
        raise SignInRejected(f"the provider answered: {given}")
    person = await provider.redeem(code, attempt)
    if not await service.ask(lambda: end_session(service.store, attempt.cookie.signed, attempt.until * 1_000_000)):
        raise SignInRejected("this attempt has signed somebody in before")
    return person


async def _signed_in(
    request: Req, service: Service, provider: Provider, attempt: Attempt, person: Person
) -> Response[bytes]:
    """Return the page after a successful sign-in, or the one that says why the person has no access."""
    settings = provider.settings
    roles = settings.roles_of(person.groups)
    if "read" not in roles and "admin" not in roles:
        fields = {"actor": person.actor, "roles": list(roles), "claim": settings.role_claim}
        log.warning("a person without a role signed in", extra={"fields": fields})
        return page(request, "no_role.html", status=403, person=person.label, name=settings.name, roles=roles)
    await service.ask(lambda: remember_person(service.store, person.actor, person.label))
    visitor = new_session(service.keyring, person.actor, settings, person.label, person.groups)
    # A redirect would still count as coming from the provider's site, so the browser would not send the strict cookie.
    response = page(request, "signed_in.html", back=attempt.back, person=person.label)
    response.cookies.append(cookie_of(visitor, is_secure(request)))
    if len(person.id_token) <= LARGEST:
        seconds = int(settings.session_hours * 3600)
        response.cookies.append(new_cookie(ID_TOKEN, person.id_token, seconds, is_secure(request)))
    return response


@post("/sign-out", include_in_schema=False, opt={"role": ANYONE}, status_code=303)
async def sign_out(request: Req) -> Response[bytes]:
    """End the session, here and at the OpenID provider if the visitor signed in there."""
    await checked_form(request)
    service: Service = request.app.state.service
    secure = is_secure(request)
    cookie = request.cookies.get(cookie_name(COOKIE, secure))
    if cookie is not None:
        await service.ask(lambda: end(service, cookie))
    visitor = visitor_of(request)
    provider: Provider | None = request.app.state.openid
    response = redirect("/sign-in")
    if visitor is not None and visitor.person and provider is not None:
        there = await provider.sign_out_address(request.cookies.get(cookie_name(ID_TOKEN, secure)))
        name = provider.settings.name
        if there is None:
            response = redirect("/sign-in", f"You are signed out here. You may still be signed in with {name}.")
        else:
            # Not a redirect: the content policy lets a form lead to this service only.
            request.scope["user"] = None
            response = page(request, "signed_out.html", there=there, name=name)
    for name in (COOKIE, ID_TOKEN):
        response.cookies.append(no_cookie(name, secure))
    return response


def _form(request: Req, back: str, *, error: str = "", key_error: str = "", status: int = 200) -> Response[bytes]:
    """Return the sign-in page, with an error of OpenID Connect or of the key."""
    provider: Provider | None = request.app.state.openid
    name = None if provider is None else provider.settings.name
    return page(request, "sign_in.html", status=status, back=back, error=error, key_error=key_error, openid=name)


def _down(request: Req, provider: Provider, back: str) -> Response[bytes]:
    """Return the sign-in page that says that the provider is down."""
    error = f"The sign-in with {provider.settings.name} is not available now. Try again later, or use an API key."
    response = _form(request, back, error=error, status=503)
    response.headers["Retry-After"] = "30"
    return response


def _too_many(request: Req, wait: int) -> Response[bytes]:
    error = f"Too many failed attempts. Try again in {wait} seconds."
    response = _form(request, "/", key_error=error, status=429)
    response.headers["Retry-After"] = str(wait)
    return response


def _provider(request: Req) -> Provider:
    provider: Provider | None = request.app.state.openid
    if provider is None:
        raise NotFound("this service has no sign-in with OpenID Connect. Use an API key")
    return provider


def _client_address(request: Req) -> str:
    return request.client.host if request.client is not None else ""


def _inside(address: str) -> str:
    """Return an address on this service, because the given one may point to another site.

    A browser ignores tabs and line breaks in an address and reads a backslash as a slash, so only visible ASCII
    characters are allowed. (A page of this service sends any others encoded, e.g. %20.)

    >>> _inside("/decisions?segment=a%20b"), _inside("//evil.example"), _inside("/\\t/evil.example")
    ('/decisions?segment=a%20b', '/', '/')
    """
    return address if PATH.fullmatch(address) else "/"


OPEN = [sign_in_form, sign_in_now, sign_in_at_provider, sign_in_with_code]  # for visitors who are not signed in
HANDLERS = [sign_out]
