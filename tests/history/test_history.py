"""Past decisions in: the same counts from every kind of source, every row accounted for."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from lenience import Belief, Discounted, InputError
from lenience.history import fit_history
from past_decisions import agree, by_hand, past

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


def test_bad_rows_are_counted_shown_and_not_used(tmp_path: Path) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.table(BAD), tmp_path / "bad.csv")
    for source in (BAD, tmp_path / "bad.csv"):
        history = fit_history(source, "segment", "accepted", "outcome", "day")
        assert history.bad == {"segment": 1, "accepted": 2, "outcome": 1, "rejected": 1, "time": 1}
        assert history.rows == 10
        assert (history["a"].arrivals, history["a"].labels, history["a"].successes) == (2, 1, 1)
        assert (history["b"].labels, history["b"].pending) == (1, 1)
        text = history.describe()
        assert "10 rows read, 4 used" in text
        for words in ("1 row not used: no segment", "2 rows not used: neither", "no date", "an outcome on a rejection"):
            assert words in text
        with pytest.raises(InputError, match="no bad rows where strict"):
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
    data = {"g": ["x"] * 4, "a": [1, 1, 1, 0], "y": ["settled", "written off", "unclear", None]}
    history = fit_history(data, "g", "a", "y", success=["settled"], failure=["written off"])
    assert (history["x"].labels, history["x"].successes, history.bad["outcome"]) == (2, 1, 1)
    with pytest.raises(InputError, match="must both be given"):
        fit_history(data, "g", "a", "y", success=["settled"])


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
    with pytest.raises(InputError, match="column must be one of"):
        fit_history(past(), "county", "accepted", "outcome")
    with pytest.raises(InputError, match="time must be named"):
        fit_history(past(), "region", "accepted", "outcome", maturity=30)
    with pytest.raises(InputError, match="cannot be read"):
        fit_history("nowhere.csv", "region", "accepted", "outcome")
    with pytest.raises(InputError, match="source must be"):
        fit_history(42, "region", "accepted", "outcome")
    with pytest.raises(InputError, match="as_of must be"):
        fit_history(past(), "region", "accepted", "outcome", "day", as_of="soon")
    with pytest.raises(InputError, match="dates or timestamps"):
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
    assert sizes == [1, 3]  # the last date, then one row a segment


def test_parquet_files_that_are_clean_are_counted_by_the_quicker_query_and_others_are_not(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from lenience.history_parquet import clean_counts

    def write(name: str, **changes: object) -> str:
        data = past() | changes
        pq.write_table(pa.table(data), tmp_path / name, row_group_size=100)
        return str(tmp_path / name)

    def quick(path: str) -> object:
        return clean_counts(path, ["region"], "accepted", "outcome")

    clean = write("clean.parquet")
    assert quick(clean) is not None
    agree(fit_history(clean, "region", "accepted", "outcome"), by_hand(past()))
    rejected = past()["accepted"].index(False)
    accepted = past()["accepted"].index(True)

    def changed(column: str, row: int, value: object) -> str:
        values = list(past()[column])
        values[row] = value
        return write("changed.parquet", **{column: values})

    for column, row, value, kind in (
        ("outcome", rejected, 1, "rejected"),
        ("outcome", accepted, 5, "outcome"),
        ("outcome", accepted, -1, "outcome"),
        ("accepted", accepted, None, "accepted"),
        ("region", 17, None, "segment"),
    ):
        path = changed(column, row, value)
        assert quick(path) is None
        history = fit_history(path, "region", "accepted", "outcome")
        assert history.bad[kind] == 1, kind
        assert history.rows == 600
    pq.write_table(pa.table(past()), tmp_path / "silent.parquet", write_statistics=False)
    assert quick(str(tmp_path / "silent.parquet")) is None
    agree(fit_history(str(tmp_path / "silent.parquet"), "region", "accepted", "outcome"), by_hand(past()))
