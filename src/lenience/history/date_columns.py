"""Read dates inside the engine that holds them, in the formats of :mod:`lenience.files.date_formats`.

One query first counts which formats the column has. That decides whether the day or the month comes first, and the
expression that reads the dates then has only the formats that occur. DuckDB has a cast that reads ISO dates and never
fails, and a function for the most usual of the others. What they cannot read, and all dates in other engines, is read
part by part with regular expressions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lenience.core.errors import InputError
from lenience.files.date_formats import (
    BY_NAME,
    EARLIEST,
    ENGLISH,
    EXCEL_START,
    KINDS,
    LAST_SERIAL,
    TWO_ORDERS,
    YEAR,
    DateKind,
    KindCount,
    Order,
    choose_orders,
    describe_reading,
    parts_of,
)
from lenience.files.vocabulary import MISSING

if TYPE_CHECKING:
    import ibis.expr.types as ir

CAST = "cast"  # the format of texts that the engine's own cast reads
START = dt.datetime(2000, 1, 1)
DAY = 86_400  # seconds
# The first three letters of the names of all months, in three languages' worth of twelve places.
MONTH_LETTERS = "".join(
    "".join(next((name for name, number in names.items() if number == month), "...") for month in range(1, 13))
    for names in (dict(zip(ENGLISH, range(1, 13), strict=True)), {"mär": 3, "mai": 5, "okt": 10, "dez": 12}, {"mrz": 3})
)


def date_column(
    backend: Any,
    table: ir.Table,
    name: str,
    dates: Order | None = None,
    notes: list[str] | None = None,
    field: str = "time",
) -> ir.Value:
    """Return a column as dates or timestamps; texts and numbers that are not dates become missing.

    Parameters
    ----------
    backend
        The engine.
    table
        The table.
    name
        The column.
    dates
        The order of the parts in dates such as 06/01/2011; by default the column decides.
    notes
        A list to which sentences on how the dates were read are added.
    field
        The parameter that names the column, for errors.

    Raises
    ------
    InputError
        If the column cannot hold dates, or the order is ambiguous.
    """
    import ibis
    import ibis.expr.operations as ops

    column = table[name]
    kind = column.type()
    if kind.is_date() or (kind.is_timestamp() and kind.timezone is None):
        return column
    if kind.is_timestamp():
        return column.cast("timestamp")
    if not (kind.is_string() or kind.is_numeric()) or not backend.has_operation(ops.RegexExtract):
        raise InputError.because(
            f"must be a column of dates or timestamps on this engine; {name!r} is {kind}",
            field,
            value=str(kind),
            allowed="a column of dates or timestamps",
        )
    # Without strip(), DuckDB would move a cast into its CSV reader, which raises an error for a bad value.
    text = column.cast("string").strip().lower()
    cast = None
    if backend.name == "duckdb":  # it reads 31/01/24 as a day in the year 31; the casts of others fail for such a text
        cast = _not_too_early(text.try_cast("timestamp"))
    counts = _count_kinds(backend, table, text, cast)
    orders = choose_orders(name, counts, dates, field)
    if notes is not None:
        notes += [note for note in describe_reading(name, counts, orders) if note not in notes]
    read = [(_is_kind(text, kind), _moment(text, kind, orders)) for kind in KINDS if kind.name in counts]
    steps = [] if cast is None else [cast]
    if cast is not None and (patterns := _patterns(counts, orders)):
        steps.append(_not_too_early(_try_strptime()(text, patterns)))
    if read:
        steps.append(ibis.cases(*read))
    return ibis.coalesce(*steps) if steps else ibis.null("timestamp")


def _not_too_early(moment: Any) -> Any:
    import ibis

    return ibis.ifelse(moment >= ibis.literal(EARLIEST), moment, ibis.null("timestamp"))


def _patterns(counts: Mapping[str, KindCount], orders: Mapping[str, Order]) -> list[str]:
    """Return the patterns with which DuckDB reads the usual dates of a column thirty times as fast.

    Texts that have none of these patterns are read part by part, as in other engines.
    """
    names = {"m": "%m", "d": "%d", "y": "%Y"}
    days = []
    for name, marks in (("numbers", "/-"), ("dots", ".")):
        if orders.get(name, "ymd") != "ymd":  # a year that comes first has two digits there
            days += [mark.join(names[letter] for letter in orders[name]) for mark in marks]
    days += ["%d-%b-%Y", "%d %b %Y"] if "day and name" in counts else []
    days += ["%b %d, %Y", "%B %d, %Y"] if "name and day" in counts else []
    months = [
        pattern
        for name, pattern in (("name and year", "%b-%Y"), ("year and month", "%Y-%m"), ("month and year", "%m/%Y"))
        if name in counts
    ]
    return [*months, *days, *(f"{day} {clock}" for day in days for clock in ("%H:%M:%S", "%H:%M"))]


def _try_strptime() -> Any:
    """Return DuckDB's function that reads a text by the first of several patterns that fits."""
    import ibis
    import ibis.expr.datatypes as types

    def try_strptime(text, patterns): ...  # type: ignore[no-untyped-def]

    return ibis.udf.scalar.builtin(try_strptime, signature=((types.string, types.Array(types.string)), types.timestamp))


def _is_kind(text: Any, kind: DateKind) -> Any:
    return text.re_search(kind.whole)


def _count_kinds(backend: Any, table: ir.Table, text: Any, cast: Any) -> dict[str, KindCount]:
    """Return what a column has of each format, by the format's name."""
    import ibis

    # Dates repeat, so formats are found for the different texts only.
    texts = table.select(text=text, cast=ibis.literal(True) if cast is None else cast.isnull())
    texts = texts.group_by("text", "cast").agg(rows=texts.count())
    kinds = [(_is_kind(texts.text, kind), kind.name) for kind in KINDS]
    texts = texts.mutate(kind=ibis.cases((~texts["cast"], CAST), *kinds))
    texts = texts.filter(texts.kind.notnull() & ~texts.text.isin(MISSING))
    parts = {}
    for i, part in enumerate(("first", "second", "last"), 1):
        numbers = [(texts.kind == name, _number(texts.text.re_extract(BY_NAME[name].whole, i))) for name in TWO_ORDERS]
        parts[part] = ibis.cases(*numbers)
    texts = texts.mutate(**parts)
    possible = (texts.first <= 12) | (texts.second <= 12)  # 13/13/2024 is no date, and so no evidence
    counted = texts.group_by("kind").agg(
        rows=texts["rows"].sum(),
        first=texts.first.max(where=possible),
        second=texts.second.max(where=possible),
        last=texts["last"].max(where=possible),
        least=texts["last"].min(where=possible),
        first_values=texts.first.nunique(where=possible),
        last_values=texts["last"].nunique(where=possible),
        possible=texts.text.min(where=possible),
        example=texts.text.min(),
    )
    return {
        row["kind"]: KindCount(
            **{
                part: int(row[part] or 0) for part in ("rows", "first", "second", "last", "first_values", "last_values")
            },
            two_digits=row["least"] is not None and row["least"] < 100,
            example=row["possible"] or row["example"],
        )
        for row in backend.to_pyarrow(counted).to_pylist()
    }


def _number(text: Any) -> Any:
    """Return digits as a number. Where a pattern does not match, some engines extract an empty text."""
    return text.nullif("").cast("int64")


def _moment(text: Any, kind: DateKind, orders: Mapping[str, Order]) -> Any:
    """Return the moment of texts that have a format; missing if there is no such day.

    No step fails for any numbers: months and seconds are added to a fixed day, and if there is no 31st of a month the
    sum is in the next one.
    """
    import ibis

    found = {
        part: text.re_extract(kind.whole, i).nullif("")
        for i, part in enumerate(parts_of(kind, orders.get(kind.name)), 1)
    }
    if "serial" in found:
        days = found["serial"].cast("float64")
        moment = ibis.literal(EXCEL_START) + (days * DAY).round().cast("int64").as_interval("s")
        return ibis.ifelse(days <= LAST_SERIAL, moment, ibis.null("timestamp"))
    year = found["year"].cast("int64")
    if kind.pattern.count(YEAR):
        this_year = dt.datetime.now(dt.UTC).year
        two_digits = year + (this_year // 100 * 100 - ibis.ifelse(year > this_year % 100, 100, 0))
        year = ibis.ifelse(year > 99, year, two_digits)
    if "name" in kind.name:
        month = ibis.literal(MONTH_LETTERS).find(found["month"].left(3)) / 3 % 12 + 1
    else:
        month = found["month"].cast("int64")
    seconds = ibis.literal(0, "int64")
    if "day" in found:
        seconds = (found["day"].cast("int64") - 1) * DAY
    if "hour" in found:
        hour = found["hour"].cast("int64").fill_null(0)
        hour = ibis.ifelse(found["half"].isnull(), hour, hour % 12 + ibis.ifelse(found["half"] == "p", 12, 0))
        minute, second = (found[part].cast("int64").fill_null(0) for part in ("minute", "second"))
        seconds = seconds + hour * 3_600 + minute * 60 + second
    months = (year - START.year) * 12 + month.cast("int64") - 1
    moment = ibis.literal(START) + months.as_interval("M") + seconds.as_interval("s")
    return ibis.ifelse((moment.month() == month) & (year >= EARLIEST.year), moment, ibis.null("timestamp"))
