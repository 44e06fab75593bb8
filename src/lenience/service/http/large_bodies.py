"""Process large bodies in threads, so that the event loop answers other requests meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from litestar import Request

from lenience.service.domain.problems import BadRequest
from lenience.service.http.disconnection import unless_disconnected

LARGE = 32 * 1024  # bytes; a smaller body takes about a millisecond, less than a change of threads can cost
# Two bodies at a time: one decoded body of 4 MiB can take 200 MB of memory, and queries keep their own threads.
_threads = ThreadPoolExecutor(2, thread_name_prefix="large-body")
_current = threading.local()  # .left: set when the client of the body that this thread works on has disconnected

Value = TypeVar("Value")


async def process_body(request: Request[Any, Any, Any], body: bytes, work: Callable[[bytes], Value]) -> Value:
    """Return ``work(body)``. Run it in a thread if the body is large, and stop it if the client disconnects.

    Parameters
    ----------
    request
        The request, whose body has been read.
    body
        The body of the request.
    work
        What to do with it, e.g. decode it. It must not touch the event loop. Where it may take long, it calls
        :func:`stop_if_disconnected` now and then.

    Returns
    -------
    Value
        What ``work`` returned.

    Raises
    ------
    BadRequest
        If the client disconnected first. Nobody receives this answer.
    """
    if len(body) <= LARGE:
        return work(body)
    left = threading.Event()

    def run() -> Value:
        _current.left = left
        try:
            stop_if_disconnected()
            return work(body)
        finally:
            _current.left = None

    async def in_thread() -> Value:
        return await asyncio.get_running_loop().run_in_executor(_threads, run)

    try:
        return await unless_disconnected(request, in_thread())
    finally:
        left.set()


def stop_if_disconnected() -> None:
    """Raise BadRequest if this thread works on a large body whose client has disconnected."""
    left = getattr(_current, "left", None)
    if left is not None and left.is_set():
        raise BadRequest("the client disconnected")
