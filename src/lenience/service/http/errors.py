"""Errors as problem+json (RFC 9457): one sentence for the caller, never a stack trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, InternalServerException, ValidationException
from litestar.openapi.datastructures import ResponseSpec
from msgspec import UNSET

from lenience.core.errors import LONGEST, InputError
from lenience.service.domain import limits
from lenience.service.domain.answers import ProblemAnswer
from lenience.service.domain.problems import BadRequest, Problem, log_cause, log_unforeseen, unknown_decision
from lenience.service.http.validation_text import explained

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Key needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
}
CODES = {  # of requests that the framework rejects
    400: "invalid_request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    503: "unavailable",
}
DISCONNECTED = "client disconnected prematurely"  # the framework's error while it reads a body
DECISION = "identity"  # the path parameter that names a decision


def documented(*statuses: int) -> dict[int, ResponseSpec]:
    """Return the problems of an endpoint for its description. All have 400, 401, 403, 500 and 503."""
    return {
        status: ResponseSpec(ProblemAnswer, description=TITLES[status], media_type=MEDIA_TYPE, generate_examples=False)
        for status in sorted({400, 401, 403, 500, 503, *statuses})
    }


def problem_response(
    status: int,
    detail: str,
    code: str,
    headers: Mapping[str, str] | None = None,
    *,
    field: str | None = None,
    value: object = UNSET,
    allowed: str | None = None,
) -> Response[bytes]:
    """Return a problem as a response. It repeats a value only if it is short JSON."""
    title = TITLES.get(status, "Error")
    answer = ProblemAnswer("about:blank", title, status, detail, code, field, _repeated(value), allowed)
    more = dict(headers or {})
    if status == 401:
        more["WWW-Authenticate"] = "Bearer"
    if status == 503:
        more["Retry-After"] = "1"
    return Response(msgspec.json.encode(answer), status_code=status, media_type=MEDIA_TYPE, headers=more)


def on_problem(request: Request[Any, Any, Any], error: Problem) -> Response[bytes]:
    """Answer a rejected request. Endpoints without authentication do not reveal database errors."""
    log_cause(error)
    handler = request.scope.get("route_handler")
    if error.status == 503 and handler is not None and handler.opt.get("open"):
        return problem_response(503, "the database is unavailable", error.code)
    about = {"field": error.field, "value": error.value, "allowed": error.allowed}
    return problem_response(error.status, error.detail, error.code, **about)  # type: ignore[arg-type]


def on_input_error(request: Request[Any, Any, Any], error: InputError) -> Response[bytes]:
    """Answer a request with a value that the library rejects."""
    return on_problem(request, BadRequest.of(error))


def on_http_exception(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """Answer a request that the framework rejects."""
    headers = {name.lower(): value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
    if isinstance(error, ValidationException):
        return on_problem(request, refused_by_validation(request, error))
    status = error.status_code if error.status_code in TITLES else 400
    if status == 500:
        return on_exception(request, error)
    details = {
        404: "this address does not exist",
        405: f"this address does not accept {request.method}; use {_allowed(headers)}",
        413: f"the request is larger than the limit of {limits.BODY >> 20} MiB",
    }
    return problem_response(status, details.get(status, error.detail or TITLES[status]), CODES[status], headers)


def on_nested(request: Request[Any, Any, Any], error: RecursionError) -> Response[bytes]:
    """Answer a request with a body that is nested too deeply."""
    return problem_response(400, "the body is nested too deeply", "invalid_json", field="body")


def on_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Answer an unexpected error: log it in full and reveal nothing."""
    if isinstance(error, InternalServerException) and error.detail == DISCONNECTED:
        return problem_response(400, "the client disconnected before the body was complete", "invalid_request")
    log_unforeseen(error, route=request.scope.get("path_template"))
    return problem_response(500, "an unexpected error occurred and was logged", Problem.code)


def refused_by_validation(request: Request[Any, Any, Any], error: ValidationException) -> Problem:
    """Return the problem for a request that failed validation."""
    extra = error.extra
    if not (isinstance(extra, list) and extra and isinstance(extra[0], dict)):
        return BadRequest(error.detail.split(" for ")[0] if error.detail else "the request is invalid")
    field = str(extra[0].get("key") or "body")
    if field == DECISION:  # an invalid id cannot be the id of a decision
        return unknown_decision(str(request.path_params.get(DECISION)))
    message, value = str(extra[0].get("message", "not valid")), request.query_params.get(field, UNSET)
    return BadRequest.of(explained(field, message, value))


def _repeated(value: object) -> object:
    """Return a value if it is short and valid JSON, else UNSET."""
    if isinstance(value, float) and not math.isfinite(value):
        return UNSET
    short = isinstance(value, str) and len(value) <= LONGEST
    return value if value is None or short or isinstance(value, bool | int | float) else UNSET


def _allowed(headers: Mapping[str, str]) -> str:
    """Return the methods of an address, sorted because the framework keeps them in a set."""
    return ", ".join(sorted(headers.get("allow", "other methods").split(", ")))
