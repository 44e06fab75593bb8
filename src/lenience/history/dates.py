"""Read the dates of past decisions, and find the date of the count."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lenience.core.errors import InputError
from lenience.core.validation import real
from lenience.files.vocabulary import DATE_FORMATS
from lenience.history.counts import DAY, Clock, after, strange_dates

if TYPE_CHECKING:
    import ibis.expr.types as ir

EARLIEST = dt.datetime(1900, 1, 1)  # the earliest date that a text may mean
ALL_DAYS = 365_000.0  # longer than any file goes back
SUCH = "2024-12-31 or 31.12.2024"


def make_clock(
    backend: Any,
    table: ir.Table,
    time: str | None,
    as_of: dt.datetime | dt.date | str | None,
    maturity: float | None,
    half_life: float | None,
    expire_after: float | None = None,
) -> Clock | None:
    """Return when rows were decided, and the dates that decide what counts; None without a time column."""
    if time is None:
        if any(option is not None for option in (maturity, half_life, expire_after, as_of)):
            raise InputError.because(
                "must name a column if maturity, half_life, expire_after or as_of is given", "time", code="missing"
            )
        return None
    when = moment_of(backend, table, time)
    now = until = None if as_of is None else parse_as_of(as_of)
    if now is None:
        now = _last(backend, table, when)
        today = dt.datetime.combine(dt.datetime.now(dt.UTC).date(), dt.time.max)
        if now is not None and now > today:
            until, now = today, _last(backend, table, when, today)
        if now is None and (maturity is not None or half_life is not None):
            strange = strange_dates(backend, table, time, Clock(when))
            if strange:
                raise InputError("time", strange[0], f"dates that can be read, such as {SUCH}", label=f"time {time!r}")
            raise InputError.because(
                "must hold at least one date that is not in the future", "time", value=time, code="insufficient_data"
            )
    cutoff = None if now is None or maturity is None else now - dt.timedelta(days=maturity)
    expired_until = None
    if now is not None and expire_after is not None:
        expired_until = now - dt.timedelta(days=min(max(expire_after, maturity or 0.0), ALL_DAYS))
    return Clock(when, now, until, cutoff, half_life, as_of is None and until is not None, expired_until)


def in_days(field: str, value: float | dt.timedelta | None) -> float | None:
    """Return a length of time in days."""
    if value is None:
        return None
    days = value.total_seconds() / DAY if isinstance(value, dt.timedelta) else value
    return real(field, days, least=0, most=ALL_DAYS) if field == "maturity" else real(field, days, above=0)


def moment_of(backend: Any, table: ir.Table, time: str) -> ir.Value:
    """Return the time column as dates or timestamps; texts that are not dates become missing."""
    import ibis
    import ibis.expr.operations as ops

    column = table[time]
    kind = column.type()
    if kind.is_date() or (kind.is_timestamp() and kind.timezone is None):
        return column
    if kind.is_timestamp():
        return column.cast("timestamp")
    if kind.is_string() and backend.has_operation(ops.TryCast):
        # Without strip(), DuckDB would move the cast into its CSV reader, which raises an error for a bad value.
        text = column.strip()
        moment = text.try_cast("timestamp")
        if backend.name == "duckdb":
            moment = moment.coalesce(_try_strptime()(text, list(DATE_FORMATS)))
        # 31/01/24 is read as a day in the year 31. Treat such a date as unreadable.
        return ibis.ifelse(moment >= ibis.literal(EARLIEST), moment, ibis.null("timestamp"))
    raise InputError.because(
        f"must be a column of dates or timestamps on this engine; {time!r} is {kind}",
        "time",
        value=str(kind),
        allowed="a column of dates or timestamps",
    )


def parse_as_of(as_of: dt.datetime | dt.date | str) -> dt.datetime:
    """Return the moment of a count; for a day, its end.

    Examples
    --------
    >>> parse_as_of("31.12.2024") == parse_as_of("2024-12-31")
    True
    """
    if isinstance(as_of, dt.datetime):
        return as_of
    if isinstance(as_of, dt.date):
        return dt.datetime.combine(as_of, dt.time.max)
    text = as_of.strip()
    moment = _read(text)
    if moment is None or moment.year < EARLIEST.year:
        raise InputError("as_of", as_of, f"a date such as {SUCH}")
    return moment if len(text) > 10 else dt.datetime.combine(moment.date(), dt.time.max)


def _read(text: str) -> dt.datetime | None:
    """Return the date or time that a text means; None if it is neither."""
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        pass
    for pattern in DATE_FORMATS[:-1]:  # the last pattern is a month, not a day
        try:
            return dt.datetime.strptime(text, pattern)
        except ValueError:
            continue
    return None


def _try_strptime() -> Any:
    """Return DuckDB's function that reads a text by the first of several patterns that fits."""
    import ibis
    import ibis.expr.datatypes as types

    def try_strptime(text, patterns): ...  # type: ignore[no-untyped-def]

    return ibis.udf.scalar.builtin(try_strptime, signature=((types.string, types.Array(types.string)), types.timestamp))


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
