"""Read the dates of past decisions, and find the date of the count."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lenience.core.errors import InputError
from lenience.core.validation import real
from lenience.files.date_formats import SUCH, Order, is_month, nothing_readable, read_date
from lenience.history.counts import DAY, Clock, after, strange_dates
from lenience.history.date_columns import date_column

if TYPE_CHECKING:
    import ibis.expr.types as ir

YEAR = 365.25  # days
ALL_DAYS = 365_000.0  # longer than any file goes back


def make_clock(
    backend: Any,
    table: ir.Table,
    time: str | None,
    as_of: dt.datetime | dt.date | str | None,
    maturity: float | None,
    half_life: float | None,
    expire_after: float | None = None,
    known_at: Any = None,
    dates: Order | None = None,
    notes: list[str] | None = None,
) -> Clock | None:
    """Return when rows were decided, and the dates that decide what counts; None without a time column.

    ``known_at`` is the date of an outcome: the date of the count is not before the last outcome. Sentences on how the
    dates were read are added to ``notes``.
    """
    if time is None:
        if any(option is not None for option in (maturity, half_life, expire_after, as_of)):
            raise InputError.because(
                "must name a column if maturity, half_life, expire_after or as_of is given", "time", code="missing"
            )
        return None
    when = date_column(backend, table, time, dates, notes)
    now = until = None if as_of is None else parse_as_of(as_of, dates)
    if now is None:
        now = _last(backend, table, when)
        if now is None:
            check_readable(backend, table, time, Clock(when))
        today = dt.datetime.combine(dt.datetime.now(dt.UTC).date(), dt.time.max)
        if now is not None and now > today:
            until, now = today, _last(backend, table, when, today)
        if now is None and (maturity is not None or half_life is not None):
            raise InputError.because(
                "must hold at least one date that is not in the future", "time", value=time, code="insufficient_data"
            )
        last_known = None if known_at is None else _last(backend, table, known_at, today)
        if now is not None and last_known is not None:
            now = max(now, last_known)
    cutoff = None if now is None or maturity is None else now - dt.timedelta(days=maturity)
    expired_until = None
    if now is not None and expire_after is not None:
        expired_until = now - dt.timedelta(days=min(max(expire_after, maturity or 0.0), ALL_DAYS))
    recent_after = None if now is None else now - dt.timedelta(days=YEAR)
    future = as_of is None and until is not None
    return Clock(when, now, until, cutoff, half_life, future, expired_until, recent_after)


def check_readable(backend: Any, table: ir.Table, time: str, clock: Clock) -> None:
    """Raise InputError if the time column has texts, and none of them is a date."""
    strange = strange_dates(backend, table, time, clock)
    if strange and _last(backend, table, clock.when) is None:
        raise nothing_readable(time, strange)


def in_days(field: str, value: float | dt.timedelta | None) -> float | None:
    """Return a length of time in days."""
    if value is None:
        return None
    days = value.total_seconds() / DAY if isinstance(value, dt.timedelta) else value
    return real(field, days, least=0, most=ALL_DAYS) if field == "maturity" else real(field, days, above=0)


def parse_as_of(as_of: dt.datetime | dt.date | str, dates: Order | None = None) -> dt.datetime:
    """Return the moment of a count; for a day, its end.

    Examples
    --------
    >>> parse_as_of("31.12.2024") == parse_as_of("2024-12-31") == parse_as_of("Dec 31, 2024")
    True
    """
    if isinstance(as_of, dt.datetime):
        return as_of
    if isinstance(as_of, dt.date):
        return dt.datetime.combine(as_of, dt.time.max)
    moment = None if is_month(as_of) else read_date(as_of, dates)
    if moment is None:
        raise InputError("as_of", as_of, f"a date such as {SUCH}", hint="Write the year first: 2024-12-31.")
    return moment if ":" in as_of else dt.datetime.combine(moment.date(), dt.time.max)


def _last(backend: Any, table: ir.Table, when: Any, most: dt.datetime | None = None) -> dt.datetime | None:
    """Return the last date that is not after ``most``."""
    dates = table.select(at=when)
    sound = dates if most is None else dates.filter(~after(dates["at"], most))
    last = backend.to_pyarrow(sound.agg(last=sound["at"].max()))["last"][0].as_py()
    if last is None:
        return None
    return last.replace(tzinfo=None) if isinstance(last, dt.datetime) else dt.datetime.combine(last, dt.time())


def check_span(backend: Any, table: ir.Table, clock: Clock, maturity: float) -> None:
    """Raise InputError if the maturity is longer than the time that the dates span."""
    dates = table.select(at=clock.when)
    first = backend.to_pyarrow(dates.agg(first=dates["at"].min()))["first"][0].as_py()
    if first is None or clock.now is None or clock.cutoff is None:
        return
    start = first if isinstance(first, dt.datetime) else dt.datetime.combine(first, dt.time())
    if start.replace(tzinfo=None) > clock.cutoff:
        span = f"the dates span {(clock.now - start.replace(tzinfo=None)).days:,} days ({start:%Y-%m-%d} to "
        raise InputError.because(
            f"of {maturity:g} days leaves no mature outcome: {span}{clock.now:%Y-%m-%d})",
            "maturity",
            label="a maturity",
            value=maturity,
            code="insufficient_data",
        )
