"""The formats of dates that files have, and whether the day or the month comes first.

06/01/2011 is 6 January or 1 June. One value does not say which, but the whole column does as soon as one of its days is
above 12. If none is, the reader raises an error that says what to type: guessing would shift every decision by months.

The formats are regular expressions that Python, DuckDB and PostgreSQL all understand, so that a date means the same
wherever it is read: :func:`read_dates` reads lists, and :mod:`lenience.history.date_columns` reads columns inside an
engine. Texts are compared in lower case, without outer white space.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.files.vocabulary import is_missing

Order = Literal["mdy", "dmy", "ymd"]
ORDERS: tuple[str, ...] = get_args(Order)
FIRST = {"mdy": "month", "dmy": "day", "ymd": "year"}  # the part that comes first in each order
EARLIEST = dt.datetime(1900, 1, 1)  # the earliest date that a text may mean
EXCEL_START = dt.datetime(1899, 12, 30)  # day 0 of Excel's dates
LAST_SERIAL = 73_050  # day 2099-12-31 in Excel; larger numbers of five digits are no dates
MOST_NAMED = 4  # unreadable texts that a message names
SUCH = "2024-12-31, 31.12.2024, 12/31/2024 or Dec-2024"

ENGLISH = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
GERMAN = {"mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}  # where it differs
MONTHS = {name: number for number, name in enumerate(ENGLISH, 1)} | GERMAN  # by the first three letters
NAME = (
    "(jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|juni|juli|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|märz?|mrz|mai|okt(?:ober)?|dez(?:ember)?)"
)
YEAR = r"(\d{4}|\d{2})"
CLOCK = r"(?:(?: *t *|,? +)([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,]\d+)?)?(?: ?([ap])\.?m\.?)?)?"
TIME = ("hour", "minute", "second", "half")


class DateKind(NamedTuple):
    """One format: a regular expression, and what each of its groups is.

    ``first`` and ``second`` are numbers of which one is the day and one the month (or the year).
    """

    name: str
    pattern: str
    parts: tuple[str, ...]

    @property
    def whole(self) -> str:
        """The pattern of a whole text."""
        return f"^(?:{self.pattern})$"


KINDS = (
    DateKind("iso", rf"(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}}){CLOCK}z?", ("year", "month", "day", *TIME)),
    DateKind("numbers", rf"(\d{{1,2}})[-/](\d{{1,2}})[-/]{YEAR}{CLOCK}", ("first", "second", "year", *TIME)),
    DateKind("dots", rf"(\d{{1,2}})\. ?(\d{{1,2}})\. ?{YEAR}{CLOCK}", ("first", "second", "year", *TIME)),
    DateKind("day and name", rf"(\d{{1,2}})[-/. ]*{NAME}[-/., ]*{YEAR}{CLOCK}", ("day", "month", "year", *TIME)),
    DateKind("name and day", rf"{NAME}[-/. ]*(\d{{1,2}})(?:st|nd|rd|th)?[-/, ]+(\d{{4}}){CLOCK}",
             ("month", "day", "year", *TIME)),
    DateKind("name and year", rf"{NAME}[-/., ]*{YEAR}", ("month", "year")),
    DateKind("year and month", r"(\d{4})[-/.](\d{1,2})", ("year", "month")),
    DateKind("month and year", r"(\d{1,2})[-/.](\d{4})", ("month", "year")),
    DateKind("digits", r"(\d{4})(\d{2})(\d{2})(?:\.0+)?", ("year", "month", "day")),
    DateKind("serial", r"(\d{5}(?:\.\d+)?)", ("serial",)),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}
TWO_ORDERS = ("numbers", "dots")  # formats in which the day or the month may come first
COMPILED = [(kind, re.compile(kind.whole)) for kind in KINDS]


class KindCount(NamedTuple):
    """What a column has of one format: the number of rows, the largest parts, and how many parts differ."""

    rows: int = 0
    first: int = 0
    second: int = 0
    last: int = 0
    first_values: int = 0
    last_values: int = 0
    two_digits: bool = False  # whether some years have two digits
    example: str = ""


class ReadDates(NamedTuple):
    """A column of dates: None where a date is missing or cannot be read."""

    moments: list[dt.datetime | None]
    notes: tuple[str, ...] = ()
    unreadable: int = 0
    examples: tuple[str, ...] = ()


def looks_like_date(text: str) -> bool:
    """Return whether a text looks like a date. Numbers without separators do not.

    Examples
    --------
    >>> [looks_like_date(text) for text in ("2024-01-31", "31.1.2024", "2024-01", "6/1/11", "Jun-2011", "Dec 3, 2024")]
    [True, True, True, True, True, True]
    >>> [looks_like_date(text) for text in ("north", "612", "1-2", "20240131")]
    [False, False, False, False]
    """
    word = text.strip().lower()
    return re.match(r"\d{4}-\d{1,2}-\d{1,2}[ t].", word) is not None or any(
        kind.name not in ("digits", "serial") and pattern.match(word) for kind, pattern in COMPILED
    )


def check_order(dates: str | None) -> Order | None:
    """Return the order that a user gives, checked; None if the column decides."""
    if dates is None:
        return None
    if dates not in ORDERS:
        raise InputError.unknown_name("dates", dates, ORDERS)
    return dates  # type: ignore[return-value]


def choose_orders(
    column: str, counts: Mapping[str, KindCount], dates: Order | None, field: str = "time"
) -> dict[str, Order]:
    """Return which part comes first in dates such as 06/01/2011 and 6.1.2011, by the format's name.

    Parameters
    ----------
    column
        The name of the column, for the message.
    counts
        What it has of each format, by the format's name.
    dates
        The order that the user gave.
    field
        The parameter that names the column.

    Raises
    ------
    InputError
        If the values fit several orders, or none.

    Examples
    --------
    >>> choose_orders("day", {"numbers": KindCount(3, 12, 31, 2011, 12, 1, example="06/01/2011")}, None)
    {'numbers': 'mdy'}
    >>> choose_orders("day", {"numbers": KindCount(3, 12, 9, 2011, 12, 1, example="06/01/2011")}, None)
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: time 'day' is ambiguous: '06/01/2011' may be the 6th of January or ...
    """
    if dates is not None:
        return {name: dates for name in TWO_ORDERS if name in counts}
    orders: dict[str, Order] = {}
    if (dots := counts.get("dots")) is not None:
        # With dots the day comes first everywhere, unless a value shows that it does not.
        orders["dots"] = "mdy" if dots.second > 12 >= dots.first else "dmy"
    numbers = counts.get("numbers")
    if numbers is None or not numbers.first_values:  # none of the texts can be a date
        return orders
    year_may_be_first = numbers.two_digits and numbers.second <= 12 and numbers.last <= 31
    if year_may_be_first and numbers.first > 31:
        return {**orders, "numbers": "ymd"}
    if year_may_be_first and numbers.first_values < numbers.last_values:
        problem = f"{numbers.example!r} may begin or end with its year"
    elif numbers.first <= 12 and numbers.second <= 12:
        day, month = (int(part) for part in re.findall(r"\d+", numbers.example)[:2])
        problem = f"{numbers.example!r} may be {_spelled(day, month)} or {_spelled(month, day)}, and no value decides"
    elif numbers.first > 12 and numbers.second > 12:
        problem = "some of its values have the day first, and others the month"
    else:
        return {**orders, "numbers": "dmy" if numbers.first > 12 else "mdy"}
    raise InputError.because(
        f"is ambiguous: {problem}",
        ("dates", field),
        label=f"{field} {column!r}",
        value=numbers.example,
        allowed="dates whose order of day and month is known",
        hint=(
            "Type --dates mdy if the month comes first or --dates dmy if the day does (dates='mdy' or dates='dmy' in "
            "Python; ymd if the year comes first)."
        ),
        code="missing",
    )


def _spelled(day: int, month: int) -> str:
    """Return a day and a month in words; 0 is not a month."""
    if not 1 <= month <= 12:
        return f"day {day} of month {month}"
    ending = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"the {day}{ending} of {dt.date(2000, month, 1):%B}"


def parts_of(kind: DateKind, order: Order | None) -> tuple[str, ...]:
    """Return what each group of a format is, once the order is known.

    >>> parts_of(BY_NAME["numbers"], "mdy")[:3], parts_of(BY_NAME["numbers"], "ymd")[:3]
    (('month', 'day', 'year'), ('year', 'month', 'day'))
    """
    if kind.name not in TWO_ORDERS:
        return kind.parts
    names = {"m": "month", "d": "day", "y": "year"}
    return (*(names[letter] for letter in order or "dmy"), *kind.parts[3:])


def full_year(year: int, today: int | None = None) -> int:
    """Return the year that two digits mean: the latest one that is not in the future.

    >>> full_year(11, 2026), full_year(99, 2026), full_year(2011)
    (2011, 1999, 2011)
    """
    if year >= 100:
        return year
    now = dt.datetime.now(dt.UTC).year if today is None else today
    return year + (now // 100 if year <= now % 100 else now // 100 - 1) * 100


def describe_reading(column: str, counts: Mapping[str, KindCount], orders: Mapping[str, Order]) -> list[str]:
    """Return sentences on dates that another reader might have read otherwise.

    >>> describe_reading("day", {"numbers": KindCount(9, 12, 31, example="06/30/11")}, {"numbers": "mdy"})
    ["day: dates with the month first, '06/30/11' read as 2011-06-30."]
    """
    notes = []
    for name, what in (
        ("numbers", f"dates with the {FIRST[orders.get('numbers', 'dmy')]} first"),
        ("name and year", "months count as their first day"),
        ("year and month", "months count as their first day"),
        ("month and year", "months count as their first day"),
        ("digits", "numbers are dates"),
        ("serial", "numbers are Excel dates"),
    ):
        if name not in counts:
            continue
        count = counts[name]
        moment = _moment(BY_NAME[name], re.match(BY_NAME[name].whole, count.example), orders)
        if moment is not None:
            notes.append(f"{column}: {what}, {count.example!r} read as {moment:%Y-%m-%d}.")
    return notes


def nothing_readable(column: str, examples: Sequence[str], field: str = "time") -> InputError:
    """Return the error for a column in which no date can be read."""
    return InputError.because(
        f"has no date that can be read, e.g. {', '.join(repr(text) for text in examples)}",
        field,
        label=f"{field} {column!r}",
        value=examples[0],
        allowed=f"dates such as {SUCH}",
        hint=f"Write dates such as {SUCH}.",
    )


def read_dates(column: str, values: Iterable[Any], dates: str | None = None, field: str = "time") -> ReadDates:
    """Read a column of dates.

    Parameters
    ----------
    column
        The name of the column, for messages.
    values
        Dates, timestamps, numbers (Excel's dates, or digits such as 20241231) or texts.
    dates
        The order of the parts in dates such as 06/01/2011: "mdy", "dmy" or "ymd". By default the column decides.
    field
        The parameter that names the column.

    Returns
    -------
    ReadDates
        The dates, and how they were read.

    Raises
    ------
    InputError
        If the order is ambiguous, or no date can be read.

    Examples
    --------
    >>> read_dates("day", ["06/01/2011", "12/31/2011"]).moments[0]
    datetime.datetime(2011, 6, 1, 0, 0)
    >>> [str(moment)[:10] for moment in read_dates("day", ["Jun-2011", 40695, "Dec 31, 2024", "soon"]).moments]
    ['2011-06-01', '2011-06-01', '2024-12-31', 'None']
    """
    cells = list(values)
    texts = {cell: str(cell).strip().lower() for cell in dict.fromkeys(cells) if not isinstance(cell, dt.date)}
    kinds = {text: kind_of(text) for text in texts.values()}
    frequency: dict[str, int] = {}
    for cell in cells:
        if cell in texts and not is_missing(cell):
            frequency[texts[cell]] = frequency.get(texts[cell], 0) + 1
    counts = _count(frequency, kinds)
    orders = choose_orders(column, counts, check_order(dates), field)
    moments = {
        cell: None
        if is_missing(cell)
        else _read(texts[cell], kinds[texts[cell]], orders)
        if cell in texts
        else _naive(cell)
        for cell in dict.fromkeys(cells)
    }
    bad = {text: rows for cell, text in texts.items() if moments[cell] is None and (rows := frequency.get(text))}
    result = [moments[cell] for cell in cells]
    examples = tuple(sorted(bad, key=lambda text: (-bad[text], text))[:MOST_NAMED])
    if bad and not any(moment is not None for moment in result):
        raise nothing_readable(column, examples, field)
    return ReadDates(result, tuple(describe_reading(column, counts, orders)), sum(bad.values()), examples)


def describe_unreadable(column: str, dates: ReadDates) -> str:
    """Return a warning about dates that cannot be read; empty if there are none."""
    if not dates.unreadable:
        return ""
    examples = ", ".join(repr(text) for text in dates.examples)
    share = dates.unreadable / len(dates.moments)
    return (
        f"Warning: {counted(dates.unreadable, 'row')} ({share:.1%}) left out: the date in {column} cannot be read, "
        f"e.g. {examples}. Write dates such as {SUCH}."
    )


def read_date(text: str, dates: Order | None = None) -> dt.datetime | None:
    """Return the date that one text means; None if it is none, or if day and month are ambiguous.

    >>> read_date("31.12.2024"), read_date("06/01/2011"), read_date("06/30/2011")
    (datetime.datetime(2024, 12, 31, 0, 0), None, datetime.datetime(2011, 6, 30, 0, 0))
    """
    word = text.strip().lower()
    kind = kind_of(word)
    try:
        orders = choose_orders("", _count({word: 1}, {word: kind}), dates)
    except InputError:
        return None
    return _read(word, kind, orders)


def is_month(text: str) -> bool:
    """Return whether a text is a month without a day.

    >>> is_month("Dec-2024"), is_month("2024-12"), is_month("2024-12-31")
    (True, True, False)
    """
    kind = kind_of(text.strip().lower())
    return kind is not None and "month" in kind.parts and "day" not in kind.parts


def kind_of(text: str) -> DateKind | None:
    """Return the format of a text in lower case; None if it has none of the formats."""
    return next((kind for kind, pattern in COMPILED if pattern.match(text)), None)


def _count(frequency: Mapping[str, int], kinds: Mapping[str, DateKind | None]) -> dict[str, KindCount]:
    """Count the rows of each format, and find the largest parts."""
    counts: dict[str, KindCount] = {}
    firsts: dict[str, set[str]] = {}
    lasts: dict[str, set[str]] = {}
    for text in sorted(frequency):
        kind = kinds[text]
        if kind is None:
            continue
        before = counts.get(kind.name, KindCount(example=text))
        example = before.example
        first = second = last = 0
        two_digits = before.two_digits
        if kind.name in TWO_ORDERS:
            match = re.match(kind.whole, text)
            assert match is not None
            if int(match[1]) <= 12 or int(match[2]) <= 12:  # 13/13/2024 is no date, and so no evidence
                first, second, last = (int(match[i]) for i in (1, 2, 3))
                two_digits = two_digits or len(match[3]) == 2
                example = example if before.last else text
                firsts.setdefault(kind.name, set()).add(match[1])
                lasts.setdefault(kind.name, set()).add(match[3])
        counts[kind.name] = KindCount(
            before.rows + frequency[text],
            max(before.first, first),
            max(before.second, second),
            max(before.last, last),
            len(firsts.get(kind.name, ())),
            len(lasts.get(kind.name, ())),
            two_digits,
            example,
        )
    return counts


def _read(text: str, kind: DateKind | None, orders: Mapping[str, Order]) -> dt.datetime | None:
    try:
        moment = _naive(dt.datetime.fromisoformat(text.upper())) if re.match(r"\d{4}-\d{2}-\d{2}", text) else None
    except ValueError:
        moment = None
    if moment is None:
        moment = None if kind is None else _moment(kind, re.match(kind.whole, text), orders)
    return moment if moment is not None and moment >= EARLIEST else None


def _naive(moment: dt.date) -> dt.datetime:
    """Return a moment in UTC without its time zone."""
    if not isinstance(moment, dt.datetime):
        return dt.datetime.combine(moment, dt.time())
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


def _moment(kind: DateKind, match: re.Match[str] | None, orders: Mapping[str, Order]) -> dt.datetime | None:
    """Return the date of a text that has a format; None if there is no such day."""
    if match is None:
        return None
    found = {part: match[i] for i, part in enumerate(parts_of(kind, orders.get(kind.name)), 1) if match[i] is not None}
    if "serial" in found:
        days = float(found["serial"])
        return EXCEL_START + dt.timedelta(seconds=round(86_400 * days)) if days <= LAST_SERIAL else None
    month = found["month"]
    hour = int(found.get("hour", 0))
    if "half" in found:
        hour = hour % 12 + (12 if found["half"] == "p" else 0)
    try:
        return dt.datetime(
            full_year(int(found["year"])),
            int(month) if month.isdigit() else MONTHS[month[:3]],
            int(found.get("day", 1)),
            hour,
            int(found.get("minute", 0)),
            int(found.get("second", 0)),
        )
    except ValueError:
        return None
