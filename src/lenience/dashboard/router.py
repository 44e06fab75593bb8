"""The routes of the dashboard: access control, error pages and static files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from litestar import Request, Response, Router, get
from litestar.exceptions import HTTPException, ValidationException
from litestar.params import FromPath

from lenience.core.errors import InputError
from lenience.dashboard.attempt_limit import AttemptLimit
from lenience.dashboard.openid.provider import Provider
from lenience.dashboard.openid.settings import read_openid_settings
from lenience.dashboard.pages import (
    decide_form,
    decisions,
    document,
    fairness,
    monitoring,
    overview,
    policy,
    rejections,
    reviews,
    sign_in,
    solves,
    what_if,
)
from lenience.dashboard.read_models.audits import Audits
from lenience.dashboard.read_models.monitored_decisions import MonitoredCache
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import TimeBucketCache
from lenience.dashboard.rendering import asset, page, redirect
from lenience.dashboard.session import SignInNeeded, current_session, visited, visitor_of
from lenience.dashboard.wizard import pages as new_policy
from lenience.service.domain.problems import NotFound, Problem, log_cause, log_unforeseen
from lenience.service.http.errors import DISCONNECTED, TITLES, refused_by_validation

Req = Request[Any, Any, Any]
ExceptionHandler: TypeAlias = Callable[[Req, HTTPException], Response[bytes]]
FORM_BODY = 512 * 1024  # bytes of a form; sign-in and an upload have their own limits
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = ("htmx-2.0.11.min.js", "pico-2.1.1.min.css", "dashboard.css", "dashboard.js", "icon.svg")


@get("/static/{name:str}", include_in_schema=False)
async def static(name: FromPath[str]) -> Response[bytes]:
    """Serve a static file. Its address changes with its content, so browsers can cache it."""
    if name not in FILES:
        raise NotFound(f"the file {name!r} does not exist")
    kind = KINDS[name.rsplit(".", 1)[1]]
    return Response(asset(name), media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})


def create_dashboard(database: str) -> tuple[Router, dict[str, Any]]:
    """Create the routes of the pages, and the state that they need in the application."""
    guarded = [
        *overview.HANDLERS,
        *policy.HANDLERS,
        *rejections.HANDLERS,
        *decisions.HANDLERS,
        *decide_form.HANDLERS,
        *reviews.HANDLERS,
        *what_if.HANDLERS,
        *monitoring.HANDLERS,
        *fairness.HANDLERS,
        *document.HANDLERS,
        *solves.HANDLERS,
        *new_policy.HANDLERS,
        *sign_in.HANDLERS,
    ]
    settings = read_openid_settings()
    pages = Router(
        "/",
        route_handlers=[
            Router("/", route_handlers=guarded, guards=[visited], request_max_body_size=FORM_BODY),
            static,
            *sign_in.OPEN,
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
        "tallies": TimeBucketCache(),
        "monitored": MonitoredCache(),
        "audits": Audits(database),
        "sign_in_limit": AttemptLimit(),
        "openid": None if settings is None else Provider(settings),
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
        request.scope["user"] = current_session(request)
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
