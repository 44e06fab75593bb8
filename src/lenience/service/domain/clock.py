"""Times: microseconds since 1970 in the database, ISO 8601 in UTC outside."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> int:
    """Return the current time in microseconds."""
    return time.time_ns() // 1000


def iso_time(microseconds: int) -> str:
    """Format a time as ISO 8601 in UTC.

    >>> iso_time(1_700_000_000_000_000)
    '2023-11-14T22:13:20.000000Z'
    """
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
        f".{microseconds % 1_000_000:06d}Z"
    )
