"""Times: microseconds since 1970 in the database, ISO 8601 in UTC outside.

A process does not trust every change of the machine's clock. A clock that is wrongly set forward would let outcomes
expire and delete stored answers, and the log could not go back afterwards, because its times never decrease. So
:class:`GuardedClock` compares the machine's clock with the time that has passed since the last reading, which no
setting of the clock changes. It follows forward steps of up to an hour, by default, and refuses larger ones.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from lenience.core.errors import InputError
from lenience.core.settings import CLOCK_STEP
from lenience.core.validation import real

DEFAULT_STEP = 3600.0  # seconds
LARGEST_STEP = 3_650 * 86_400.0  # seconds
SECOND = 1_000_000  # microseconds
DAY = 86_400 * SECOND
AHEAD = 14 * 3_600 * SECOND  # the time zone that is furthest ahead of UTC

log = logging.getLogger("lenience.service")


def machine_time() -> int:
    """Return the time of the machine's clock in microseconds."""
    return time.time_ns() // 1000


def passed_time() -> int:
    """Return the microseconds since the machine started, including the time that it was suspended."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    return time.monotonic_ns() // 1000


class GuardedClock:
    """The clock of a process, which refuses implausible forward steps of the machine's clock.

    Parameters
    ----------
    step : float, optional
        The largest forward step to follow, in seconds. By default the environment variable ``LENIENCE_CLOCK_STEP``,
        or one hour.
    machine : callable
        Returns the time of the machine's clock in microseconds.
    passed : callable
        Returns a time in microseconds that nobody can set.

    Examples
    --------
    >>> readings = [1_000_000_000, 1_000_000_000 + 90 * 86_400_000_000]
    >>> clock = GuardedClock(3600, machine=lambda: readings.pop(0), passed=lambda: 0)
    >>> clock.now() == 1_000_000_000
    True
    """

    def __init__(
        self,
        step: float | None = None,
        *,
        machine: Callable[[], int] = machine_time,
        passed: Callable[[], int] = passed_time,
    ) -> None:
        self._step = int((allowed_step() if step is None else step) * SECOND)
        self._machine, self._passed = machine, passed
        self._lock = threading.Lock()
        self._time, self._at = machine(), passed()
        self._refusing = False

    @property
    def refusing(self) -> bool:
        """Whether the last reading refused to follow the machine's clock."""
        return self._refusing

    def now(self) -> int:
        """Return the time in microseconds: the machine's, or after a refused step this process's own.

        A step back is followed. The log's times still never decrease: see the writer.
        """
        with self._lock:
            machine, passed = self._machine(), self._passed()
            expected = self._time + passed - self._at
            ahead = machine - expected
            refuse = ahead > self._step
            if refuse != self._refusing:
                self._refusing = refuse
                _log_change(refuse, ahead, self._step)
            if refuse:
                return expected
            if ahead > 0:
                self._time, self._at = machine, passed
            return machine


def allowed_step() -> float:
    """Return the largest forward step to follow, in seconds. Raise InputError if the setting is invalid."""
    given = os.environ.get(CLOCK_STEP, "")
    try:
        return real(CLOCK_STEP, float(given) if given else DEFAULT_STEP, above=0, most=LARGEST_STEP)
    except ValueError:
        raise InputError(CLOCK_STEP, given, "a number of seconds above 0") from None


def _log_change(refuse: bool, ahead: int, step: int) -> None:
    fields = {"seconds": round(ahead / SECOND, 3), "allowed": step / SECOND}
    if refuse:
        log.error(
            "the clock was set forward: the service keeps its own time. If the new time is right, restart the service",
            extra={"fields": fields},
        )
    else:
        log.warning("the clock is plausible again: the service follows it", extra={"fields": fields})


_clock: GuardedClock | None = None
_clock_lock = threading.Lock()


def process_clock() -> GuardedClock:
    """Return the clock of this process."""
    global _clock
    if _clock is None:
        with _clock_lock:
            if _clock is None:
                _clock = GuardedClock()
    return _clock


def now() -> int:
    """Return the current time in microseconds, by the clock of this process."""
    return process_clock().now()


def iso_time(microseconds: int) -> str:
    """Format a time as ISO 8601 in UTC.

    >>> iso_time(1_700_000_000_000_000)
    '2023-11-14T22:13:20.000000Z'
    """
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
        f".{microseconds % 1_000_000:06d}Z"
    )


def read_time(field: str, text: str) -> int:
    """Return a date (its midnight in UTC) or a time as microseconds, or raise InputError.

    >>> read_time("since", "1970-01-02"), read_time("until", "1970-01-02T01:00:00+01:00")
    (86400000000, 86400000000)
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(field, text, "a date such as 2026-01-31 or a time such as 2026-01-31T00:00:00Z") from None
    try:
        return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    except (OverflowError, ValueError):
        raise InputError(field, text, "a time between the years 1 and 9999") from None


def check_order(field: str, at: int, earliest: int, now: int, what: str = "the decision") -> None:
    """Raise InputError if a given time is on a day before another one, or in the future.

    A date has no time and may belong to a time zone that is ahead, so days are compared, and 14 hours are allowed.

    >>> check_order("outcome_at", 0, 86_400_000_000, 10**15)
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: outcome_at must not be before the decision (1970-01-02), not 1970-01-01
    """
    if at // DAY < earliest // DAY:
        allowed = f"must not be before {what} ({iso_time(earliest)[:10]})"
        raise InputError.because(f"{allowed}, not {iso_time(at)[:10]}", field, value=iso_time(at), allowed=allowed)
    if at > now + AHEAD:
        allowed = f"must not be in the future (it is {iso_time(now)[:10]})"
        raise InputError.because(f"{allowed}, not {iso_time(at)[:10]}", field, value=iso_time(at), allowed=allowed)
