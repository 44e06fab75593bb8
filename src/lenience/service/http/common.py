"""What handlers share: parameters, and the way an engine's answer becomes a response."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response
from litestar.datastructures import State as State
from litestar.params import HeaderParameter, Parameter

from lenience.service.command import Answer

IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same key and request give the first answer again; the same key and another request, 409",
    ),
]
PolicyName = Annotated[str, Parameter(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
DecisionId = Annotated[str, Parameter(min_length=36, max_length=36, pattern=r"^[0-9a-f-]{36}\Z")]


def answered(answer: Answer) -> Response[Any]:
    """An answer that is JSON already."""
    return Response(answer.body, status_code=answer.status, media_type="application/json")
