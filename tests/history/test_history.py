"""Past decisions in: the same counts from every kind of source, every row accounted for."""

from __future__ import annotations

import datetime as dt
import itertools
from pathlib import Path
from typing import Any

import pytest

from lenience import Belief, Discounted
from lenience.files.columns import read_columns
from lenience.history.fit import fit_history
from lenience.segments import SimilarNamesWarning
from past_decisions import agree, by_hand, past
from rejections import rejected

pa = pytest.importorskip("pyarrow")
ibis = pytest.importorskip("ibis")


def sources(folder: Path) -> dict[str, object]:
    import pandas as pd
    import polars as pl
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table(past())
    pyarrow.csv.write_csv(table, folder / "past.csv")
    pyarrow.parquet.write_table(table, folder / "past.parquet")
    half = table.num_rows // 2
    pyarrow.parquet.write_table(table.slice(0, half), folder / "part-1.parquet")
    pyarrow.parquet.write_table(table.slice(half), folder / "part-2.parquet")
    return {
        "dict": past(),
        "arrow": table,
        "pandas": pd.DataFrame(past()),
        "polars": pl.DataFrame(past()),
        "csv": folder / "past.csv",
        "parquet": str(folder / "past.parquet"),
        "several files": str(folder / "part-*.parquet"),
        "ibis": ibis.memtable(table),
    }


def test_every_source_gives_the_same_counts(tmp_path: Path) -> None:
    expected = by_hand(past())
    for name, source in sources(tmp_path).items():
        history = fit_history(source, "region", "accepted", "outcome", "day")
        agree(history, expected)
        assert history.rows == 600, name
        assert history.bad_rows == 0, name


@pytest.mark.parametrize("kind", ["dict", "csv", "parquet"])
def test_maturity_and_age(tmp_path: Path, kind: str) -> None:
    source = sources(tmp_path)[kind]
    history = fit_history(source, "region", "accepted", "outcome", "day", maturity=90, half_life=dt.timedelta(days=200))
    agree(history, by_hand(past(), maturity=90, half_life=200.0))
    assert history.as_of is not None
    young = sum(row.pending for row in history.segments) - sum(row[4] for row in by_hand(past()).values())
    assert young > 50  # labels there are, but too young to count
    n = history.segments[0].n
    assert n != round(n)


@pytest.mark.parametrize("kind", ["dict", "csv"])
def test_outcomes_that_are_missing_for_too_long_are_given_up(tmp_path: Path, kind: str) -> None:
    data, source = past(), sources(tmp_path)[kind]
    last = max(data["day"])
    ages = [(last - day).days for day, yes, y in zip(data["day"], data["accepted"], data["outcome"], strict=True)
            if yes and y is None]  # fmt: skip
    for days, maturity, waited in ((100, None, 100), (100, 250, 250), (1e9, None, 1e9)):
        history = fit_history(source, "region", "accepted", "outcome", "day", maturity=maturity, expire_after=days)
        agree(history, by_hand(data, maturity=maturity))
        lost = sum(age >= waited for age in ages)
        assert sum(row.expired for row in history.segments) == lost
        assert sum(row.out for row in history.segments) == sum(row.pending for row in history.segments) - lost
        assert (f"{lost:,} of the pending " in history.describe()) == (lost > 0)
        assert (lost > 0) == (days < 1e9)


def test_several_columns_make_a_segment() -> None:
    history = fit_history(past(), ["region", "product"], "accepted", "outcome")
    assert len(history.segments) == 6
    assert history.segments[0].segment == "north / car"
    assert sum(row.arrivals for row in history.segments) == 600


BAD: dict[str, list[object]] = {
    "segment": ["a", None, "a", "a", "a", "a", "a", "a", "b", "b"],
    "accepted": ["1", "1", None, "perhaps", "1", "0", "1", "no", "Accepted", "1"],
    "outcome": ["1", "1", "1", "1", "later", "1", "0", None, "repaid", ""],
    "day": [
        "2024-01-01",
        "2024-01-01",
        "2024-01-01",
        "2024-01-01",
        "2024-01-01",
        "2024-01-01",
        "soon",
        "2024-01-01",
        "2024-01-02",
        "2024-01-02",
    ],
}


def test_names_that_differ_by_case_or_space_are_told() -> None:
    rows = {"region": ["North", "north", "south"], "in": [1, 1, 1], "good": [1, 0, 1]}
    with pytest.warns(SimilarNamesWarning, match="'North' and 'north'"):
        history = fit_history(rows, "region", "in", "good")
    assert "differ only by case or space are separate: 'North' and 'north'" in history.describe()
    assert len(fit_history(rows, "region", "in", "good", warn=False).segments) == 3


def test_white_space_around_texts_does_not_count(tmp_path: Path) -> None:
    import pyarrow.csv

    rows = {
        "region": ["south", " south", "south\t", "  ", "", "new york"],
        "year": [1, 1, 1, 1, 1, 2],
        "in": ["1", " 1 ", "1", "1", "1", "1"],
        "good": [" paid", "bad ", "\tpaid", "1", "1", " hm "],
    }
    pyarrow.csv.write_csv(pa.table(rows), tmp_path / "past.csv")
    for source in (rows, tmp_path / "past.csv"):
        history = fit_history(source, ["region", "year"], "in", "good")
        assert [one.segment for one in history.segments] == ["south / 1"]
        assert (history["south / 1"].labels, history["south / 1"].successes) == (3, 2)
        assert (history.bad["segment"], history.rows) == (2, 6)
        assert history.strange == (("hm", 1),)
        assert history.groups("region") == {"south / 1": "south"}


def test_bad_rows_are_counted_shown_and_not_used(tmp_path: Path) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.table(BAD), tmp_path / "bad.csv")
    for source in (BAD, tmp_path / "bad.csv"):
        history = fit_history(source, "segment", "accepted", "outcome", "day")
        assert history.bad == {"segment": 1, "accepted": 2, "outcome": 1, "rejected": 1, "time": 1, "future": 0}
        assert history.rows == 10
        assert (history["a"].arrivals, history["a"].labels, history["a"].successes) == (2, 1, 1)
        assert (history["b"].labels, history["b"].pending) == (1, 1)
        text = history.describe()
        assert "10 rows read, 4 used" in text
        for words in ("1 row not used: no segment", "2 rows not used: neither", "no date", "an outcome on a rejection"):
            assert words in text
        with rejected("source"):
            fit_history(source, "segment", "accepted", "outcome", "day", strict=True)
    fit_history(past(), "region", "accepted", "outcome", strict=True)


@pytest.mark.parametrize(
    ("values", "kind", "bad", "labels"),
    [
        ([1, 0, 7, -1, None], "int64", 2, 2),
        ([1, 0, 3, -1, None], "int8", 2, 2),
        ([1.0, 0.0, 0.5, float("nan"), None], "float64", 1, 2),
        ([True, False, None, None, True], "bool", 0, 3),
    ],
)
def test_types_of_outcomes(values: list[object], kind: str, bad: int, labels: int) -> None:
    table = pa.table(
        {
            "g": ["x"] * 5,
            "a": [True] * 5,
            "y": pa.array(values, type=getattr(pa, kind)() if kind != "bool" else pa.bool_()),
        }
    )
    history = fit_history(table, "g", "a", "y")
    assert history.bad["outcome"] == bad
    assert history["x"].labels == labels
    assert history["x"].pending == 5 - bad - labels


def test_own_words_for_success_and_failure() -> None:
    data = {"g": ["x"] * 4, "a": [1, 1, 1, 0], "y": ["settled", "sent to court", "unclear", None]}
    history = fit_history(data, "g", "a", "y", success=["settled"], failure=["sent to court"])
    assert (history["x"].labels, history["x"].successes, history.bad["outcome"]) == (2, 1, 1)
    assert "1 row not used: an outcome that is neither success nor failure: 'unclear' (1)." in history.describe()
    history = fit_history(data, "g", "a", "y", success=["Settled "])  # one alone adds to the known words
    assert (history["x"].labels, history["x"].successes) == (1, 1)
    assert history.strange == (("sent to court", 1), ("unclear", 1))


def test_values_with_the_opposite_of_their_usual_meaning() -> None:
    for values in ([0, 0, 1], ["0", "0", "1"], [False, False, True]):
        data = {"g": ["x"] * 3, "a": [1, 1, 1], "y": values}
        history = fit_history(data, "g", "a", "y", success=["0"], failure=["1"])
        assert (history["x"].labels, history["x"].successes) == (3, 2)
        with rejected("success", "missing"):
            fit_history(data, "g", "a", "y", success=["0"])
        with rejected("success", "conflicting_fields"):
            fit_history(data, "g", "a", "y", success=["0"], failure=["0"])


def test_strange_outcomes_are_named_where_the_row_is_otherwise_sound(tmp_path: Path) -> None:
    rows = ["in collections"] * 5 + ["charged-off?"] * 9 + ["a", "b", "c", "d", "repaid"]
    text = "".join(f"x,1,{y}\n" for y in rows) + ",1,charged-off?\nx,,charged-off?\n"
    (tmp_path / "loans.csv").write_text("g,a,y\n" + text)
    history = fit_history(tmp_path / "loans.csv", "g", "a", "y")
    assert history.strange == (("charged-off?", 9), ("in collections", 5), ("a", 1), ("b", 1))
    told = history.describe()
    assert "18 rows not used: an outcome that is neither success nor failure: 'charged-off?' (9), 'in coll" in told
    assert "'b' (1), others (2)." in told


@pytest.mark.parametrize("kind", ["date", "moment", "text"])
def test_a_date_in_the_future_is_a_bad_row_and_not_the_day_of_the_count(kind: str) -> None:
    days = [dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 1), dt.datetime(2024, 12, 31), dt.datetime(2062, 5, 1)]
    shown: dict[str, list[Any]] = {
        "date": [d.date() for d in days],
        "moment": days,
        "text": [f"{d:%Y-%m-%d}" for d in days],
    }
    data: dict[str, list[Any]] = {"g": ["x"] * 4, "a": [True] * 4, "y": [1, 0, 0, 0], "d": shown[kind]}
    history = fit_history(data, "g", "a", "y", "d", maturity=90)
    assert history.bad["future"] == history.bad_rows == 1
    assert (history["x"].labels, history["x"].successes, history["x"].pending, history.later) == (1, 1, 2, 0)
    assert history.as_of == dt.datetime(2024, 12, 31)
    assert "Counted as of 2024-12-31; younger than 90 days is pending." in history.describe()
    assert "1 row not used: a date in the future." in history.describe()
    told = fit_history(data, "g", "a", "y", "d", maturity=90, as_of="2024-12-15")
    assert (told.later, told.bad_rows, told["x"].labels) == (2, 0, 1)  # after a day that is given: left out, and told
    alone = {name: values[3:] for name, values in data.items()}
    assert fit_history(alone, "g", "a", "y", "d").as_of is None
    with rejected("time", "insufficient_data"):
        fit_history(alone, "g", "a", "y", "d", maturity=90)


def test_as_of_leaves_out_what_came_later() -> None:
    history = fit_history(past(), "region", "accepted", "outcome", "day", as_of="2024-06-30")
    data = past()
    assert history.later == sum(day > dt.date(2024, 6, 30) for day in data["day"])
    assert history.later + sum(row.arrivals for row in history.segments) == 600
    assert "decided after 2024-06-30" in history.describe()


def test_history_becomes_beliefs_and_segments() -> None:
    history = fit_history(past(), "region", "accepted", "outcome")
    beliefs = history.beliefs(Belief(1, 0.5))
    assert beliefs["north"].n == history["north"].labels + 1
    cells = history.divide(Discounted(0.7, 0.99))
    assert sum(cell.share for cell in cells) == pytest.approx(1.0)
    assert cells.solve().accepts("north")


def test_errors() -> None:
    with rejected("segment", "unknown_name"):
        fit_history(past(), "county", "accepted", "outcome")
    with rejected("time", "missing"):
        fit_history(past(), "region", "accepted", "outcome", maturity=30)
    with rejected("source", "missing_file"):
        fit_history("nowhere.csv", "region", "accepted", "outcome")
    with rejected("source"):
        fit_history(42, "region", "accepted", "outcome")
    with rejected("as_of"):
        fit_history(past(), "region", "accepted", "outcome", "day", as_of="soon")
    with rejected("time"):
        fit_history(past(), "region", "accepted", "outcome", "accepted", maturity=3)


def test_only_one_row_a_segment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from ibis.backends.duckdb import Backend

    sizes: list[int] = []
    original = Backend.to_pyarrow

    def counting(self: Any, *args: Any, **options: Any) -> Any:
        found = original(self, *args, **options)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(Backend, "to_pyarrow", counting)
    fit_history(past(), "region", "accepted", "outcome", "day", maturity=30)
    # The last date, one row a segment, and the different pairs of an outcome and a decision.
    assert sizes == [1, 3, 4]


def test_one_bad_value_in_a_parquet_file_is_one_bad_row(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rejected, accepted = past()["accepted"].index(False), past()["accepted"].index(True)
    for column, row, value, kind in (
        ("outcome", rejected, 1, "rejected"),
        ("outcome", accepted, 5, "outcome"),
        ("outcome", accepted, -1, "outcome"),
        ("accepted", accepted, None, "accepted"),
        ("region", 17, None, "segment"),
        ("day", 17, None, "time"),
    ):
        data = past()
        data[column][row] = value
        pq.write_table(pa.table(data), tmp_path / "changed.parquet", row_group_size=100)
        history = fit_history(tmp_path, "region", "accepted", "outcome", "day", maturity=10)
        assert history.bad == {name: int(name == kind) for name in history.bad}, kind
        assert history.rows == 600


@pytest.mark.parametrize("wide", [False, True])
def test_every_combination_of_values_against_a_loop(tmp_path: Path, wide: bool) -> None:
    """All that a row may be, at every date, judged one by one in Python."""
    import pyarrow.parquet as pq

    days = [None, "2024-01-01", "2024-05-01", "2024-07-01"]
    grid = list(itertools.product(["a", None], [True, False, None], [1, 0, None, 7, -1], days))
    kinds = []
    for segment, taken, outcome, day in grid:
        young, late = day == "2024-05-01", day == "2024-07-01"
        kinds.append(
            "segment" if segment is None else "accepted" if taken is None
            else "outcome" if outcome in (7, -1) else "rejected" if not taken and outcome is not None
            else "time" if day is None else "later" if late else "turned down" if not taken
            else "pending" if outcome is None or young else "label"
        )  # fmt: skip
    moments = [None if day is None else dt.datetime.fromisoformat(day) for day in days]
    moment = dict(zip(days, moments if wide else [m and m.date() for m in moments], strict=True))
    numbers = [None if row[1] is None else int(row[1]) for row in grid]
    data = {
        "s": [row[0] for row in grid],
        "a": pa.array(numbers, pa.int64()) if wide else [row[1] for row in grid],
        "o": pa.array([row[2] for row in grid], pa.float64() if wide else pa.int8()),
        "d": [moment[row[3]] for row in grid],
    }
    pq.write_table(pa.table(data), tmp_path / "grid.parquet")
    history = fit_history(tmp_path / "grid.parquet", "s", "a", "o", "d", maturity=90, as_of="2024-06-15")
    assert history.bad == {kind: kinds.count(kind) for kind in history.bad}
    assert history.later == kinds.count("later")
    row = history["a"]
    assert (row.labels, row.pending) == (kinds.count("label"), kinds.count("pending"))
    assert row.arrivals == row.accepted + kinds.count("turned down")


def test_values_given_as_text_are_read_as_the_column_has_them() -> None:
    data = {"g": ["x"] * 4, "a": [1, 1, 1, 1], "y": [2, 3, 9, None]}
    history = fit_history(data, "g", "a", "y", success=["2"], failure=["3.0"])
    assert (history["x"].labels, history["x"].successes, history.bad["outcome"]) == (2, 1, 1)
    with rejected("y"):
        fit_history(data, "g", "a", "y", success=["two"], failure=["3"])


def test_groups_of_segments() -> None:
    history = fit_history(past(), ["region", "product"], "accepted", "outcome")
    cells = history.divide(Discounted(0.7, 0.99), group="product")
    assert cells.groups == ["car", "home"]
    assert cells["north / car"].group == "car"
    with rejected("group", "unknown_name"):
        history.groups("race")


def test_a_day_first_date_is_not_read_as_one_of_the_first_century(tmp_path: Path) -> None:
    file = tmp_path / "loans.csv"
    file.write_text("r,a,o,d\nx,1,1,31/01/24\nx,1,1,31/13/24\nx,1,1,2024-01-31\nx,1,0,2024-03-31\n")
    history = fit_history(file, "r", "a", "o", "d", maturity=30)
    assert history.bad["time"] == 1
    assert (history.segments[0].labels, history.segments[0].pending) == (2, 1)
    assert "'31/13/24'" in history.describe()


@pytest.mark.parametrize("reading", ["history", "columns"])
def test_a_value_of_any_length_is_read(tmp_path: Path, reading: str) -> None:
    file = tmp_path / "past.csv"
    file.write_text(f"region,accepted,outcome,{'x' * 200_000}\nnorth,1,1,{'y' * 3_000_000}\n")
    if reading == "history":
        assert fit_history(str(file), "region", "accepted", "outcome")["north"].labels == 1
    else:
        assert [len(values[0]) for values in read_columns(file).values()] == [5, 1, 1, 3_000_000]


def test_a_heading_of_too_many_columns_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "past.csv"
    file.write_text(f"{','.join(f'column_{i}' for i in range(30_000))}\n{'1,' * 29_999}1\n")
    with rejected("source", "too_large"):
        fit_history(str(file), "region", "accepted", "outcome")


def test_a_column_that_is_not_there_is_guessed() -> None:
    with rejected("outcome", "unknown_name"):
        fit_history(past(), "region", "accepted", "outcom")
    many = {f"c{i}": [1] for i in range(40)}
    with rejected("segment", "unknown_name"):
        fit_history(many, "region", "accepted", "outcome")


@pytest.mark.parametrize("word", ["?", "n/a", "<NA>", "none", "NULL"])
def test_a_missing_word_is_an_outcome_that_is_not_known_yet(word: str) -> None:
    columns = {"region": ["n", "n"], "accepted": ["yes", "yes"], "outcome": ["1", word]}
    row = fit_history(columns, "region", "accepted", "outcome")["n"]
    assert (row.labels, row.pending) == (1, 1)


def test_only_the_values_given_have_a_meaning() -> None:
    columns = {"region": ["n"] * 4, "accepted": ["Yes", "Yes", "yes", "Yes"], "outcome": ["Paid", "lost", "Paid", "0"]}
    given: dict[str, Any] = {"success": ["Paid"], "failure": ["lost"], "accepted_values": ["Yes"]}
    history = fit_history(columns, "region", "accepted", "outcome", **given, only_given=True)
    assert (history["n"].labels, history["n"].successes) == (2, 1)
    assert (history.bad["accepted"], history.bad["outcome"]) == (1, 1)
