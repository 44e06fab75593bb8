"""Stop long work whose client has disconnected."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from litestar import Request

from lenience.service.domain.problems import BadRequest

Value = TypeVar("Value")


async def unless_disconnected(request: Request[Any, Any, Any], work: Coroutine[Any, Any, Value]) -> Value:
    """Return the result of the work, or cancel it when the client disconnects.

    Parameters
    ----------
    request
        The request, whose body has been read.
    work
        What to do.

    Returns
    -------
    Value
        The result of the work.

    Raises
    ------
    BadRequest
        If the client disconnected first. Nobody receives this answer.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise BadRequest("the client disconnected")
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _disconnect(request: Request[Any, Any, Any]) -> None:
    """Return when the client has disconnected."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
