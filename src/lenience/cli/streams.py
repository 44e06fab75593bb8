"""Make printing safe: closed streams, characters that the encoding lacks, and closed pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def prepare() -> None:
    """Replace closed streams by the null device, and print characters that cannot be encoded as question marks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif getattr(stream, "errors", "") in ("strict", "surrogateescape") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@contextmanager
def ignoring_broken_pipe() -> Iterator[None]:
    """Ignore BrokenPipeError, e.g. with ``| head -1``; the rest of the output goes to the null device."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
