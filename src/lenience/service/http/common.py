"""Parameters and responses that handlers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from litestar import Request, Response, post
from litestar.datastructures import State as State
from litestar.handlers import HTTPRouteHandler
from litestar.params import HeaderParameter, Parameter

from lenience.service.domain.receipts import CommandAnswer
from lenience.service.http.errors import documented

Req = Request[None, str, State]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Repeating a request with the same key returns the first answer; another request gets 409",
    ),
]
NAME = Parameter(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")
PolicyName = Annotated[str, NAME]
DecisionId = Annotated[str, Parameter(min_length=36, max_length=36, pattern=r"^[0-9a-f-]{36}\Z")]


def changing(path: str, role: str, tag: str) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Return the decorator of a POST that changes something existing."""
    return post(path, opt={"role": role}, status_code=200, responses=documented(404, 409, 413, 415), tags=[tag])


def answered(answer: CommandAnswer) -> Response[Any]:
    """Return an answer that is already JSON as a response."""
    return Response(answer.body, status_code=answer.status, media_type="application/json")
