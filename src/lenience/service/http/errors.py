"""Errors as problem+json (RFC 9457): one sentence for the caller, never a stack trace."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.datastructures import ResponseSpec

from lenience.errors import InputError
from lenience.service.answers import ProblemAnswer
from lenience.service.problems import Problem

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Key needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    500: "Internal error",
    503: "Unavailable",
}
log = logging.getLogger("lenience.service")


def documented(*statuses: int) -> dict[int, ResponseSpec]:
    """The problems an endpoint may answer with, for its description; these everywhere: 400, 401, 403, 500, 503."""
    return {
        status: ResponseSpec(ProblemAnswer, description=TITLES[status], media_type=MEDIA_TYPE, generate_examples=False)
        for status in sorted({400, 401, 403, 500, 503, *statuses})
    }


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """A problem as a response."""
    answer = ProblemAnswer("about:blank", TITLES.get(status, "Error"), status, detail)
    more = dict(headers or {})
    if status == 401:
        more["WWW-Authenticate"] = "Bearer"
    if status == 503:
        more["Retry-After"] = "1"
    return Response(msgspec.json.encode(answer), status_code=status, media_type=MEDIA_TYPE, headers=more)


def on_problem(request: Request[Any, Any, Any], error: Problem) -> Response[bytes]:
    """A request the service refuses."""
    return problem_response(error.status, error.detail)


def on_input_error(request: Request[Any, Any, Any], error: InputError) -> Response[bytes]:
    """A value the library refuses."""
    return problem_response(400, str(error))


def on_http_exception(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """A request the framework refuses."""
    headers = {name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
    if isinstance(error, ValidationException):
        return problem_response(400, validation_detail(error))
    status = error.status_code if error.status_code in TITLES else 400
    if status == 500:
        return on_exception(request, error)
    said = {404: "there is nothing at this address", 413: "the request is larger than is allowed"}
    return problem_response(status, said.get(status, error.detail or TITLES[status]), headers)


def on_nested(request: Request[Any, Any, Any], error: RecursionError) -> Response[bytes]:
    """A body nested deeper than can be read."""
    return problem_response(400, "the body is nested too deeply")


def on_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Something nobody foresaw: logged in full, told in a word."""
    log.error("unforeseen error", exc_info=error, extra={"fields": {"path": request.scope.get("path_template")}})
    return problem_response(500, "an error that was not foreseen; it has been logged")


# What may stand where a word is one of a few: the validator names only the word that is wrong.
ALLOWED = {
    "outcome": "success or failure",
    "decision": "accept or reject",
    "status": "pending, success, failure, expired or rejected",
    "history_model": "own, shared or curve",
    "type": "discounted, horizon or delayed",
}
NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]*"


def validation_detail(error: ValidationException) -> str:
    """What is wrong with a request, in one sentence."""
    extra = error.extra
    if isinstance(extra, list) and extra and isinstance(extra[0], dict):
        first = extra[0]
        return in_words(str(first.get("key") or "body"), str(first.get("message", "not valid")))
    return error.detail.split(" for ")[0] if error.detail else "the request is not valid"


def in_words(field: str, message: str) -> str:
    """A validator's message as a sentence with the field and what is allowed.

    >>> in_words("outcome", "Invalid enum value 'Success'")
    "outcome must be success or failure, not 'Success'"
    >>> in_words("data", "'data'")
    'body must be JSON, and it is empty'
    """
    field = "body" if field == "data" else field.removeprefix("data.")
    last = field.rsplit(".", 1)[-1]
    given = message.removeprefix("Invalid enum value ").removeprefix("Invalid value ").split(" - at ")[0]
    if message.startswith(("Invalid enum value", "Invalid value")) and last in ALLOWED:
        return f"{field} must be {ALLOWED[last]}, not {given}"
    if field == "body" and message == "'data'":
        return "body must be JSON, and it is empty"
    if NAME_PATTERN in message:
        return f"{field} must begin with a letter or digit and have only letters, digits, dots, dashes and underscores"
    if "RFC3339" in message:
        return f"{field} must be a time such as 2026-01-31T00:00:00Z"
    return f"{field}: {message}"
