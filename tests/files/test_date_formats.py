"""Dates as people write them: the formats, the order of day and month, and the same reading in Python and in DuckDB."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from lenience import InputError, fit_history
from lenience.client.outcomes_import import import_outcomes
from lenience.files.date_formats import full_year, looks_like_date, read_date, read_dates
from lenience.files.source import open_source
from lenience.files.table import from_columns
from lenience.history.date_columns import date_column
from rejections import rejected

DAYS = [dt.datetime(2011, 6, 1), dt.datetime(2024, 2, 29), dt.datetime(1999, 12, 31), dt.datetime(2023, 10, 9)]
FORMATS = {
    "iso": "%Y-%m-%d",
    "slashes, year first": "%Y/%m/%d",
    "time": "%Y-%m-%dT%H:%M:%S",
    "dots": "%d.%m.%Y",
    "dots and time": "%d.%m.%Y %H:%M",
    "day first": "%d/%m/%Y",
    "month first": "%m/%d/%Y",
    "month first and time": "%m/%d/%Y %I:%M %p",
    "dashes": "%d-%m-%Y",
    "two digits": "%d/%m/%y",
    "name in the middle": "%d-%b-%Y",
    "name in the middle, two digits": "%d %b %y",
    "name first": "%b %d, %Y",
    "long name": "%B %d, %Y",
    "digits": "%Y%m%d",
}


def written(days: list[dt.datetime], form: str) -> list[str]:
    return [day.strftime(form) for day in days]


def in_the_engine(texts: list[Any], dates: Any = None) -> list[dt.datetime | None]:
    """Read dates with DuckDB."""
    table, backend = open_source({"d": texts, "i": list(range(len(texts)))})
    read = table.select("i", day=date_column(backend, table, "d", dates).cast("timestamp")).order_by("i")
    return list(backend.to_pyarrow(read).column("day").to_pylist())


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS.keys())
def test_a_column_of_one_format(form: str) -> None:
    texts = written(DAYS, form)
    assert read_dates("day", [*texts, None, " "]).moments == [*DAYS, None, None]
    assert read_dates("day", [text.upper() for text in texts]).moments == DAYS
    assert all(looks_like_date(text) for text in texts) == (form != "%Y%m%d")


def test_months_count_as_their_first_day() -> None:
    texts = ["Jun-2011", "2011-06", "06/2011", "June 2011", "Jun-11", "Juni 2011"]
    read = read_dates("month", texts)
    assert read.moments == [dt.datetime(2011, 6, 1)] * len(texts)
    assert any("first day" in note for note in read.notes)


def test_serial_dates_of_excel() -> None:
    assert read_dates("day", [40695, "40695", 40695.75]).moments == [DAYS[0], DAYS[0], DAYS[0].replace(hour=18)]
    assert read_dates("day", ["40695", "99999"]).moments[1] is None  # 2173 is not a date of a decision


def test_the_whole_column_decides_which_part_is_the_day() -> None:
    assert read_dates("day", ["06/01/2011", "12/31/2011"]).moments[0] == dt.datetime(2011, 6, 1)
    assert read_dates("day", ["06/01/2011", "31/12/2011"]).moments[0] == dt.datetime(2011, 1, 6)
    assert read_dates("day", ["06.01.2011"]).moments[0] == dt.datetime(2011, 1, 6)  # with dots the day is first
    assert read_dates("day", ["06.01.2011", "12.31.2011"]).moments[0] == dt.datetime(2011, 6, 1)
    assert read_dates("day", ["99/12/31"]).moments[0] == dt.datetime(1999, 12, 31)


@pytest.mark.parametrize(
    "texts",
    [["06/01/2011", "07/01/2011"], ["31/12/2011", "12/31/2011"], ["24/01/31", "24/02/28", "24/03/05"]],
    ids=["both", "neither", "year"],
)
def test_an_ambiguous_column_asks(texts: list[str]) -> None:
    past: dict[str, Any] = {"g": ["a"] * len(texts), "a": [1] * len(texts), "y": [1] * len(texts), "d": texts}
    for read in (
        lambda: read_dates("d", texts),
        lambda: fit_history(past, "g", "a", "y", "d"),
        lambda: from_columns({"x": [1.0] * len(texts), **past}, "y", ["x"], time="d"),
    ):
        with pytest.raises(InputError) as caught:
            read()
        assert (caught.value.fields, caught.value.code) == (("dates", "time"), "missing")
        assert "--dates mdy" in str(caught.value)
    assert read_dates("d", ["06/01/2011"], "mdy").moments == [dt.datetime(2011, 6, 1)]
    assert read_dates("d", ["24/01/31"], "ymd").moments == [dt.datetime(2024, 1, 31)]
    with rejected("dates", "unknown_name"):
        read_dates("d", texts, "dym")


def test_what_cannot_be_read_is_said() -> None:
    read = read_dates("d", ["2024-02-30", "soon", "soon", "2024-02-28", None])
    assert (read.unreadable, read.examples) == (3, ("soon", "2024-02-30"))
    with rejected("time"):
        read_dates("d", ["soon", None])
    past: dict[str, Any] = {"g": ["a"] * 3, "a": [1] * 3, "y": [1] * 3, "d": ["soon", "2024-01-05", "13/13/2024"]}
    history = fit_history(past, "g", "a", "y", "d")
    assert history.bad["time"] == 2
    assert history.describe().splitlines()[1].startswith("Warning: 2 rows not used: no date that can be read")
    for options in ({}, {"as_of": "2024-12-31"}, {"maturity": 30}):
        with pytest.raises(InputError) as caught:
            fit_history(past | {"d": ["soon", "never", None]}, "g", "a", "y", "d", **options)
        assert (caught.value.field, caught.value.value) == ("time", "never")
    table = from_columns({"x": [1.0, 2.0, 3.0], **past}, "y", ["x"], time="d")
    assert (len(table.y), table.undated) == (1, 2)
    assert table.describe().startswith("Warning: 2 rows (66.7%) left out")


def test_two_digits_are_the_latest_year_that_is_not_in_the_future() -> None:
    assert [full_year(year, 2026) for year in (0, 26, 27, 99)] == [2000, 2026, 1927, 1999]


def test_one_date_alone() -> None:
    assert read_date("Dec 31, 2024") == dt.datetime(2024, 12, 31)
    assert read_date("06/01/2011") is None
    assert read_date("06/01/2011", "dmy") == dt.datetime(2011, 1, 6)
    assert read_date("2024-12-31T10:00:00+02:00") == dt.datetime(2024, 12, 31, 8)


def test_the_engine_reads_as_python_does() -> None:
    texts = ["6/1/2011", "06/01/11", "1-6-2011 14:30", "31.12.2024", "Dec 31, 2024 5:05 pm", "12 am", "5 Mrz 2024"]
    texts += ["2011-06", "Jun-2011", "40695", "40695.5", "20110601", "2023-02-29", "29 Feb 2023", "32/01/2011"]
    texts += ["2011-06-01 25:00", "2011-6-1", "2011.06.01", "March 3rd, 2024", "Sept 2020", "13/2011", "soon"]
    texts += ["0/1/2011", "12/0/2011"]
    expected = read_dates("d", texts, "dmy").moments
    assert in_the_engine(texts, "dmy") == expected
    assert expected.count(None) == 9
    for numbers in ([40695, 40696], [40695.0, 40695.5], [20110601, 20110602]):
        assert in_the_engine(numbers) == read_dates("d", numbers).moments
    for form in ("%m/%d/%Y", "%d-%b-%Y", "%b %d, %Y", "%m-%d-%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%y"):
        assert in_the_engine(written(DAYS, form)) == DAYS


def test_dates_of_outcomes_are_sent_in_iso_format() -> None:
    rows = [
        {"id": str(i), "outcome": "repaid", "day": day} for i, day in enumerate(["12/31/2024", "2024-12-30", "soon"])
    ]
    sent: list[Any] = []

    def send(batch: list[dict[str, str]]) -> dict[str, int]:
        sent.extend(batch)
        return {"recorded": len(batch)}

    import_outcomes(rows, send, date="day")
    assert [item["outcome_at"] for item in sent] == ["2024-12-31", "2024-12-30", "soon"]  # the service rejects the last
    ambiguous = [{"id": "a", "outcome": "repaid", "day": "06/01/2011"}]
    with rejected("dates", "missing"):
        import_outcomes(ambiguous, send, date="day")
    import_outcomes(ambiguous, send, date="day", dates="dmy")
    assert sent[-1]["outcome_at"] == "2011-01-06"
