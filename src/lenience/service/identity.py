"""Identifiers of decisions: UUIDs of version 7, which sort by time, so that new rows go to the end of every index."""

from __future__ import annotations

import os
import threading

_lock = threading.Lock()
_last = 0


def new_id(now: int) -> str:
    """A new identifier for a time in microseconds; later calls in one process sort later.

    >>> first, second = new_id(1_700_000_000_000_000), new_id(1_700_000_000_000_000)
    >>> first < second, len(first), first[14]
    (True, 36, '7')
    """
    global _last
    with _lock:
        # 48 bits of milliseconds, then 12 bits that count up within one.
        stamp = max((now // 1000) << 12, _last + 1)
        _last = stamp
    noise = int.from_bytes(os.urandom(8)) & 0x3FFFFFFFFFFFFFFF | 0x8000000000000000
    head = f"{stamp >> 12:012x}7{stamp & 0xFFF:03x}{noise:016x}"
    return f"{head[:8]}-{head[8:12]}-{head[12:16]}-{head[16:20]}-{head[20:]}"
