"""Process large bodies in threads, so that the event loop answers other requests meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

LARGE = 32 * 1024  # bytes; a smaller body takes about a millisecond, less than a change of threads can cost
# Two bodies at a time: one decoded body of 4 MiB can take 200 MB of memory, and queries keep their own threads.
_threads = ThreadPoolExecutor(2, thread_name_prefix="large-body")

Value = TypeVar("Value")


async def process_body(body: bytes, work: Callable[[bytes], Value]) -> Value:
    """Return ``work(body)``. Run it in a thread if the body is large.

    Parameters
    ----------
    body
        The body of a request.
    work
        What to do with it, e.g. decode it. It must not touch the event loop.

    Returns
    -------
    Value
        What ``work`` returned.
    """
    if len(body) <= LARGE:
        return work(body)
    return await asyncio.get_running_loop().run_in_executor(_threads, work, body)
