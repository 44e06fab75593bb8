"""Identifiers and salts. Decision ids are UUIDs of version 7: they sort by time, so indexes grow at the end."""

from __future__ import annotations

import os
import threading

_lock = threading.Lock()
_last = 0
_noise = ""
_taken = 0


def random_hex(digits: int) -> str:
    """Return random hexadecimal digits, from a buffer because each call to the system is slow."""
    with _lock:
        return _random(digits)


def new_id(now: int) -> str:
    """Return a new identifier for a time in microseconds. Later calls in one process sort later.

    >>> first, second = new_id(1_700_000_000_000_000), new_id(1_700_000_000_000_000)
    >>> first < second, len(first), first[14]
    (True, 36, '7')
    """
    return new_id_and_salt(now)[0]


def first_id(at: int) -> str:
    """Return the smallest id of a decision made at a time (in microseconds) or later.

    >>> first_id(1_700_000_000_000_000)
    '018bcfe5-6800'
    """
    stamp = f"{at // 1000:012x}"
    return f"{stamp[:8]}-{stamp[8:]}"


def new_id_and_salt(now: int) -> tuple[str, str]:
    """Return a new identifier and a salt of 32 hexadecimal digits."""
    global _last
    with _lock:
        # 48 bits of milliseconds, then 12 bits that count up within one.
        _last = stamp = max((now // 1000) << 12, _last + 1)
        noise = _random(47)
    head = f"{stamp:015x}"
    return f"{head[:8]}-{head[8:12]}-7{head[12:]}-a{noise[:3]}-{noise[3:15]}", noise[15:]


def time_after(identity: str) -> int:
    """Return the earliest time in microseconds whose identifiers all sort after this one.

    >>> new_id(time_after("018bcfe5-6800-7fff-a000-000000000000")) > "018bcfe5-6800-7fff-a000-000000000000"
    True
    """
    return (int(identity[:8] + identity[9:13], 16) + 1) * 1000


def _random(digits: int) -> str:
    global _noise, _taken
    if _taken + digits > len(_noise):
        _noise, _taken = os.urandom(4096).hex(), 0
    start, _taken = _taken, _taken + digits
    return _noise[start:_taken]
