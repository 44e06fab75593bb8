"""Standard output as one finds it: closed, in letters that it cannot write, or with a reader who has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def prepare() -> None:
    """Let nothing that is printed fail: what was closed goes nowhere, and what cannot be written is a question mark."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif getattr(stream, "errors", "") in ("strict", "surrogateescape") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@contextmanager
def to_a_reader() -> Iterator[None]:
    """While something is printed: a reader who has gone has read enough (``| head -1``), and the rest goes nowhere."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
