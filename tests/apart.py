"""Coroutines in a thread of their own: once a browser test has run in a process, its loop runs in the main one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def apart(function: Callable[[], Answer]) -> Answer:
    """What a function answers that is called in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function).result()


def awaited(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """What a coroutine answers."""
    return apart(lambda: asyncio.run(coroutine))
