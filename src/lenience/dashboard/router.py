"""The routes of the dashboard: access control, error pages and static files."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, cast

from litestar import Request, Response, Router, get, post
from litestar.exceptions import HTTPException, ValidationException
from litestar.params import FromPath, QueryParameter

from lenience.core.errors import InputError
from lenience.dashboard.attempt_limit import AttemptLimit
from lenience.dashboard.pages import decide_form, decisions, fairness, overview, policy, solves, what_if
from lenience.dashboard.read_models.audits import Audits
from lenience.dashboard.read_models.monitored_decisions import MonitoredCache
from lenience.dashboard.read_models.profits import ProfitCache
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import PastCountsCache, TimeBucketCache
from lenience.dashboard.rendering import asset, page, redirect
from lenience.dashboard.session import (
    ANYONE,
    COOKIE,
    SignInNeeded,
    checked_form,
    cookie_of,
    read_session,
    refuse_cross_site,
    sign_in,
    visited,
    visitor_of,
)
from lenience.dashboard.session import sign_out as end
from lenience.dashboard.wizard import pages as new_policy
from lenience.service.domain.problems import NotFound, Problem, Unauthenticated, log_cause, log_unforeseen
from lenience.service.http.errors import DISCONNECTED, TITLES, refused_by_validation
from lenience.service.http.service import Service

Req = Request[Any, Any, Any]
Back = Annotated[str, QueryParameter(name="next", max_length=500)]
ExceptionHandler: TypeAlias = Callable[[Req, HTTPException], Response[bytes]]
SIGN_IN_BODY = 16 * 1024  # bytes of the form, which anyone may send
FORM_BODY = 512 * 1024  # bytes of another form; an upload has its own limit
PATH = re.compile(r"/(?!/)[!-\[\]-~]*")  # visible ASCII without a backslash
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = ("htmx-2.0.11.min.js", "pico-2.1.1.min.css", "dashboard.css", "dashboard.js", "icon.svg")


@get("/static/{name:str}", include_in_schema=False)
async def static(name: FromPath[str]) -> Response[bytes]:
    """Serve a static file. Its address changes with its content, so browsers can cache it."""
    if name not in FILES:
        raise NotFound(f"the file {name!r} does not exist")
    kind = KINDS[name.rsplit(".", 1)[1]]
    return Response(asset(name), media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})


@get("/sign-in", include_in_schema=False)
async def sign_in_form(request: Req, back: Back = "/") -> Response[bytes]:
    """Show the form that asks for a key."""
    return page(request, "sign_in.html", back=_inside(back), error="")


@post("/sign-in", include_in_schema=False, status_code=303, request_max_body_size=SIGN_IN_BODY)
async def sign_in_now(request: Req) -> Response[bytes]:
    """Start a session for the holder of a key."""
    refuse_cross_site(request)
    limit: AttemptLimit = request.app.state.sign_in_limit
    address = request.client.host if request.client is not None else ""
    wait = math.ceil(limit.seconds_to_wait(address))
    if wait > 0:
        error = f"Too many failed attempts. Try again in {wait} seconds."
        response = page(request, "sign_in.html", status=429, back="/", error=error)
        response.headers["Retry-After"] = str(wait)
        return response
    form = await request.form()
    back = _inside(str(form.get("next", "/")))
    service: Service = request.app.state.service
    limit.record(address)
    await service.ask(service.keyring.refresh)
    try:
        visitor = sign_in(service.keyring, str(form.get("key", "")))
    except Unauthenticated:
        error = "This key is invalid: it is unknown, revoked, expired or incomplete. A key begins with lk_."
        return page(request, "sign_in.html", status=401, back=back, error=error)
    if not visitor.may("read"):
        roles = " and ".join(visitor.roles)
        error = f"This key cannot open the dashboard: it has the role {roles} and needs the role read."
        return page(request, "sign_in.html", status=403, back=back, error=error)
    limit.clear(address)
    response = redirect(back)
    response.cookies.append(cookie_of(visitor, request.url.scheme == "https"))
    return response


@post("/sign-out", include_in_schema=False, opt={"role": ANYONE}, status_code=303)
async def sign_out(request: Req) -> Response[bytes]:
    """End the session."""
    await checked_form(request)
    service: Service = request.app.state.service
    cookie = request.cookies.get(COOKIE)
    if cookie is not None:
        await service.ask(lambda: end(service, cookie))
    response = redirect("/sign-in")
    response.delete_cookie(COOKIE)
    return response


def create_dashboard(database: str) -> tuple[Router, dict[str, Any]]:
    """Create the routes of the pages, and the state that they need in the application."""
    guarded = [
        *overview.HANDLERS,
        *policy.HANDLERS,
        *decisions.HANDLERS,
        *decide_form.HANDLERS,
        *what_if.HANDLERS,
        *fairness.HANDLERS,
        *solves.HANDLERS,
        *new_policy.HANDLERS,
        sign_out,
    ]
    open_ = [static, sign_in_form, sign_in_now]
    pages = Router(
        "/",
        route_handlers=[
            Router("/", route_handlers=guarded, guards=[visited], request_max_body_size=FORM_BODY),
            *open_,
        ],
        exception_handlers=cast(
            Any,
            {
                SignInNeeded: _on_sign_in,
                Problem: on_error,
                InputError: on_error,
                HTTPException: on_error,
                Exception: on_error,
            },
        ),
    )
    return pages, {
        "prospects": Prospects(),
        "past": PastCountsCache(),
        "profits": ProfitCache(),
        "tallies": TimeBucketCache(),
        "monitored": MonitoredCache(),
        "audits": Audits(database),
        "sign_in_limit": AttemptLimit(),
        "upload_turn": asyncio.Semaphore(1),
    }


def on_error(request: Req, error: Exception) -> Response[bytes]:
    """Show an error as a page, or as a part of a page if htmx requested it."""
    if isinstance(error, ValidationException):
        error = refused_by_validation(request, error)
    if isinstance(error, Problem):
        log_cause(error)
        status, detail = error.status, error.detail
    elif isinstance(error, InputError):
        status, detail = 400, str(error)
    elif isinstance(error, HTTPException) and error.status_code < 500:
        status = error.status_code
        detail = "no page has this address" if status == 404 else error.detail
    elif isinstance(error, HTTPException) and error.detail == DISCONNECTED:
        status, detail = 400, "the client disconnected before the form was complete"
    else:
        status, detail = 500, "an unexpected error occurred and was logged"
        log_unforeseen(error, route=request.scope.get("path_template"))
    if visitor_of(request) is None:  # no guard ran for an unknown address; the page still shows who is signed in
        request.scope["user"] = read_session(request.app.state.service.keyring, request.cookies.get(COOKIE))
    template = "parts/error.html" if request.headers.get("hx-request") == "true" else "error.html"
    return page(request, template, status=status, title=TITLES.get(status, "Error"), detail=detail, code=status)


def page_or_problem(otherwise: ExceptionHandler) -> ExceptionHandler:
    """Handle an unknown address: show a browser a page, and give programs the problem that ``otherwise`` makes."""

    def answer(request: Req, error: HTTPException) -> Response[bytes]:
        browser = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
        return on_error(request, error) if browser else otherwise(request, error)

    return answer


def _on_sign_in(request: Req, needed: SignInNeeded) -> Response[bytes]:
    if request.headers.get("hx-request") == "true":
        return Response(b"", status_code=200, headers={"HX-Redirect": needed.address})
    return redirect(needed.address)


def _inside(address: str) -> str:
    """Return an address on this service, because the given one may point to another site.

    A browser ignores tabs and line breaks in an address and reads a backslash as a slash, so only visible ASCII
    characters are allowed. (A page of this service sends any others encoded, e.g. %20.)

    >>> _inside("/decisions?segment=a%20b"), _inside("//evil.example"), _inside("/\\t/evil.example")
    ('/decisions?segment=a%20b', '/', '/')
    """
    return address if PATH.fullmatch(address) else "/"
