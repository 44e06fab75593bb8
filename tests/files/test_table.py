"""Tables from files, frames and OpenML."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lenience.files.columns import read_columns
from lenience.files.csv_format import WINDOWS
from lenience.files.source import open_source, without_engine_warnings
from lenience.files.table import from_columns, from_frame, from_openml, numbers_of, read_table
from rejections import rejected

CSV = "age,job,sex,paid\n30,clerk,f,yes\n,cook,m,no\n50,?,f,yes\n41,cook,m,\n"
ARFF = """@relation loans
@attribute age numeric
@attribute job {clerk, cook}
@attribute paid {good, bad}
@data
30,clerk,good
?,cook,bad
50,cook,good
"""


def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "loans.csv"
    file.write_text(CSV)
    table = read_table(file, "paid", group="sex")
    assert table.features == ("age", "job=clerk", "job=cook", "job=missing")
    assert "The group sex is not a feature" in table.describe()
    assert table.size == "2 columns, 4 after coding"
    assert "job 3, including missing." in table.describe()
    assert "A missing value counts as the mean: age." in table.describe()
    named = read_table(file, "paid", features=["age", "sex"], group="sex")
    assert named.features == ("age", "sex=m")
    assert "group" not in named.describe()
    with rejected("features", "missing"):
        from_columns({"sex": ["m", "f"], "paid": [1, 0]}, "paid", group="sex")
    assert table.y.tolist() == [1, 0, 1]  # the row without an outcome is left out
    assert np.isnan(table.X[1, 0])
    assert table.X[2].tolist() == [50, 0, 0, 1]
    assert table.groups == ("f", "m", "f")
    assert read_table(file, "paid", features=["age"]).features == ("age",)
    assert read_table(file, "job", success="cook", failure="clerk", features=["age"]).y.tolist() == [0, 1, 1]
    assert "3 rows" in repr(table)


def test_whatever_fit_reads(tmp_path: Path) -> None:
    """Separated by semicolons or tabs, packed, Parquet; and the words for outcomes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = CSV.replace("yes", "Repaid ").replace("no", "default").replace(",\n", ",n/a\n")
    (tmp_path / "tabs.csv").write_text("\ufeff" + words.replace(",", "\t"))
    (tmp_path / "semicolons.csv").write_text(words.replace(",", ";"))
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(words.encode()))
    rows = [line.split(",") for line in words.splitlines()]
    typed = {name: [row[i] or None for row in rows[1:]] for i, name in enumerate(rows[0])}
    typed["age"] = [None if age is None else int(age) for age in typed["age"]]  # type: ignore[misc]
    pq.write_table(pa.table(typed), tmp_path / "typed.parquet")
    for file in sorted(tmp_path.iterdir()):
        table = read_table(file, "paid", group="sex")
        assert table.features == ("age", "job=clerk", "job=cook", "job=missing"), file
        assert table.y.tolist() == [1, 0, 1]
        assert table.X[[0, 2], 0].tolist() == [30, 50]
        assert table.groups == ("f", "m", "f")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(words.encode() * 99)[:-20])
    with rejected("data", "invalid_file"):
        read_table(tmp_path / "packed.csv.gz", "paid")


def test_arff(tmp_path: Path) -> None:
    file = tmp_path / "loans.arff"
    file.write_text(ARFF)
    table = read_table(file, "paid")
    assert table.features == ("age", "job=cook")
    assert table.y.tolist() == [1, 0, 1]
    assert np.isnan(table.X[1, 0])
    file.write_text("not an arff file")
    with rejected("data", "invalid_file"):
        read_table(file, "paid")


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_moments_of_a_frame_are_dates_and_spans_are_days(unit: str) -> None:
    pandas = pytest.importorskip("pandas")
    days = ["2024-01-02", None, "2024-03-04", "2024-03-04"]
    frame = pandas.DataFrame(
        {
            "when": pandas.Series(days).astype(f"datetime64[{unit}]"),
            "span": pandas.Series(pandas.to_timedelta([12, 24, 36, None], unit="h")).astype(f"timedelta64[{unit}]"),
            "paid": [1, 0, 1, 0],
        }
    )
    table = from_frame(frame, "paid")
    assert (table.dates, table.features) == (("when",), ("span",))
    assert table.X[:3, 0].tolist() == [0.5, 1.0, 1.5]
    assert np.isnan(table.X[3, 0])


def test_openml_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    import sklearn.datasets
    from sklearn.utils import Bunch

    file = tmp_path / "loans.arff"
    file.write_text(ARFF)
    frame = pandas.DataFrame(read_columns(file))
    asked: list[dict[str, Any]] = []

    def fetch(**options: Any) -> Any:
        asked.append(options)
        if options.get("name") == "nothing":
            raise OSError("no network")
        return Bunch(frame=frame, target=frame["paid"])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    table = from_openml("loans")
    assert table.y.tolist() == [1, 0, 1]
    assert from_openml(31, features=["age"]).features == ("age",)
    assert asked[0] == {"name": "loans", "as_frame": True}
    assert asked[1] == {"data_id": 31, "as_frame": True}
    with rejected("name", "unreadable_file"):
        from_openml("nothing")
    assert from_frame(frame, "paid").y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (CSV, {"outcome": "repaid"}, ("column", "unknown_name")),
        (CSV, {"outcome": "job"}, ("outcome", "invalid_value")),
        (CSV, {"outcome": "paid", "success": "maybe"}, ("success", "unknown_name")),
        (CSV, {"outcome": "paid", "features": ["paid"]}, ("features", "missing")),
        ("a,b\n1\n", {"outcome": "b"}, ("data", "invalid_file")),
        ("a,b\n", {"outcome": "b"}, ("data", "invalid_file")),
        ("a,b\n1,\n", {"outcome": "b"}, ("outcome", "insufficient_data")),
        ("a,b\n1,1\n-inf,0\n", {"outcome": "b"}, ("a", "invalid_value")),
        ("a,b\n1,1\n", {"outcome": "b", "features": ["a", "a"]}, ("features", "duplicate")),
        ("a,b,a\n1,1,1\n", {"outcome": "a"}, ("column", "unknown_name")),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, options: dict[str, Any], message: tuple[str | None, str]) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with rejected(*message):
        read_table(file, **options)


def test_more_refusals(tmp_path: Path) -> None:
    with rejected("data", "missing_file"):
        read_table(tmp_path / "none.csv", "y")
    many: dict[str, list[Any]] = {"name": [f"person {i}" for i in range(60)], "y": [0, 1] * 30}
    with rejected("name", "too_large"):
        from_columns(many, "y", features=["name"])
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe\x00")
    with rejected("data", "invalid_file"):
        read_table(tmp_path / "picture.csv", "y")


def test_numbers() -> None:
    columns = {"a": ["1", "true", "", "False"], "b": ["x", "", "", ""]}
    found = numbers_of(columns, "a")
    assert found[[0, 1, 3]].tolist() == [1, 1, 0]
    assert np.isnan(found[2])
    with rejected("b"):
        numbers_of(columns, "b")
    with rejected("column", "unknown_name"):
        numbers_of(columns, "c")


def test_identifiers_are_left_out_and_dirty_cells_are_named() -> None:
    many = 60
    columns: dict[str, list[Any]] = {
        "id": [f"A-{i}" for i in range(many)],
        "score": [i + 0.5 for i in range(many)],
        "paid": ["", *("yes", "no") * 20, *[""] * 19],
    }
    table = from_columns(columns, "paid")
    assert table.features == ("score",)
    assert table.size == "1 feature"
    assert (table.rows, len(table.y), table.identifiers) == (60, 40, ("id",))
    for words in ("the 40 of 60 rows", "Features: score.", "identify rows"):
        assert words in table.describe()
    # So are whole numbers: from row to row rising, or of a thousand rows, or called an id; but what is measured is not.
    for name, numbers, left_out in (
        ("loan", [3 * i for i in range(many)], True),
        ("income", [7919 * i % 10_007 for i in range(many)], False),
        ("income", [7919 * i % 10_007 for i in range(1_000)], True),
        ("customer_id", [7919 * i % 47 for i in range(many)], True),
        ("region_id", [i % 5 for i in range(many)], False),
        ("rate", [i + 0.5 for i in range(many)], False),
    ):
        rows = {name: numbers, "age": [30] * len(numbers), "paid": [1] * len(numbers)}
        assert from_columns(rows, "paid").identifiers == ((name,) if left_out else ()), name
        assert from_columns(rows, "paid", features=[name]).features == (name,)  # asked for
    with rejected("id", "too_large"):
        from_columns(columns, "paid", features=["id"])  # asked for, so not passed over
    columns["score"][3:5] = ["n/k", "12,5"]
    with rejected("score") as dirty:
        from_columns(columns, "paid")
    assert dirty.value.value == "n/k"
    assert "2 of its 60 cells" in dirty.value.reason


def test_dates_are_left_out_unless_they_are_named() -> None:
    days: list[str | None] = ["2024-01-31", "1.2.2024", None] * 4
    columns: dict[str, list[Any]] = {"decided": days, "age": [30, 40, 50] * 4, "paid": ["yes", "no", "no"] * 4}
    table = from_columns(columns, "paid")
    assert (table.columns, table.dates) == (("age",), ("decided",))
    assert "they are dates: decided." in table.describe()
    assert from_columns(columns, "paid", ["decided"]).dates == ()


def test_columns_that_never_change_and_groups_without_end_are_told() -> None:
    columns: dict[str, list[Any]] = {
        "score": [i / 7 for i in range(21)], "land": ["DE"] * 21, "term": [12, *[None] * 20], "paid": [1, 0, 1] * 7,
    }  # fmt: skip
    assert "without effect: land, term." in from_columns(columns, "paid").describe()
    with rejected("group", "too_large"):
        from_columns(columns, "paid", group="score")
    columns["score"][0] = None
    columns["score"][1] = columns["score"][2]
    assert (from_columns(columns, "paid", group="score").groups or ())[0] == "missing"


def _by_the_engine(source: Path, notes: list[str]) -> dict[str, list[Any]]:
    with without_engine_warnings():
        table, backend = open_source(str(source), notes=notes)
        found: dict[str, list[Any]] = backend.to_pyarrow(table).to_pydict()
        backend.disconnect()
    return found


def test_decimal_commas_and_letters_of_windows_are_read_and_told(tmp_path: Path) -> None:
    import pyarrow as pa

    from lenience.dashboard.wizard.past_file import columns
    from lenience.dashboard.wizard.upload_reader import notes, save_upload

    with rejected("source", "unreadable_file"):
        read_table("/dev/null", "gut")
    file = tmp_path / "kredite.csv"
    file.write_bytes("Höhe;Ort;gut\n1.603,7;Köln;1\n603,7;Ulm;0\n;Ulm;1\n".encode("cp1252"))
    table = read_table(file, "gut")
    assert table.X[:2, 0].tolist() == [1603.7, 603.7]
    said = "Höhe: numbers with a decimal comma, '1.603,7' read as 1603.7."
    assert table.notes[-1] == said
    assert "cp1252" in table.notes[0]
    assert table.describe().startswith(" ".join(table.notes))
    # Packed, and several files: by either reader (text without an extra, and the engine of histories).
    packed, zstd = tmp_path / "kredite.csv.gz", tmp_path / "kredite.csv.zst"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    zstd.write_bytes(pa.compress(file.read_bytes(), "zstd", asbytes=True))
    (tmp_path / "teil").mkdir()
    (tmp_path / "teil" / "a.csv").write_text("Höhe;Ort;gut\n1.603,7;Köln;1\n", encoding="utf-8-sig")
    (tmp_path / "teil" / "b.csv").write_bytes("Höhe;Ort;gut\n603,7;Ulm;0\n;Ulm;1\n".encode("cp1252"))
    for source in (packed, zstd, tmp_path / "teil" / "*.csv"):
        for reader in (read_columns, _by_the_engine):
            told: list[str] = []
            rows = reader(source, told)
            assert (rows["Höhe"][:2], rows["Ort"]) == (["1603.7", "603.7"], ["Köln", "Ulm", "Ulm"]), source
            assert sorted(told) == [said, WINDOWS]
    (tmp_path / "teil" / "b.csv").write_text("Ort;Höhe;gut\nUlm;1;1\n")
    with rejected("source", "invalid_file"):
        read_columns(tmp_path / "teil" / "*.csv")
    save_upload(file, tmp_path / "kept.parquet")  # the dashboard's reader is the same
    assert notes(tmp_path / "kept.parquet")[1] == said
    assert columns(tmp_path / "kept.parquet")[0].examples == ("1603.7", "603.7")


def test_one_missing_word_leaves_a_column_of_numbers(tmp_path: Path) -> None:
    file = tmp_path / "loans.csv"
    for word in ("n/a", "none", "?", "<NA>", "NULL", ""):
        file.write_text(f"score,paid\n612,yes\n580,no\n{word},yes\n640,no\n")
        table = read_table(file, "paid")
        assert table.features == ("score",), word
        assert table.X[[0, 1, 3], 0].tolist() == [612, 580, 640]
        assert np.isnan(table.X[2, 0])


def test_none_stays_a_category_among_words() -> None:
    columns: dict[str, list[Any]] = {
        "guarantor": ["none", "parent", None, "none"],
        "job": ["none", None, "none", ""],
        "paid": [1, 0, 1, 0],
    }
    table = from_columns(columns, "paid")
    assert table.features == ("guarantor=missing", "guarantor=none", "guarantor=parent", "job=none")


def test_every_reader_leaves_out_repeated_headings(tmp_path: Path) -> None:
    from lenience.dashboard.wizard.past_file import columns
    from lenience.dashboard.wizard.upload_reader import notes, save_upload

    file = tmp_path / "kredite.csv"
    file.write_text("Ort;repaid;approved\n1,5;1;1\nOrt;repaid;approved\n2,5;0;1\n", encoding="utf-8")
    expected = {"Ort": ["1.5", "2.5"], "repaid": ["1", "0"], "approved": ["1", "1"]}
    for reader in (read_columns, _by_the_engine):
        told: list[str] = []
        assert reader(file, told) == expected
        assert any(note.startswith("1 row left out") for note in told)
    save_upload(file, tmp_path / "kept.parquet")
    assert notes(tmp_path / "kept.parquet")[0].startswith("1 row left out")
    assert columns(tmp_path / "kept.parquet")[0].examples == ("1.5", "2.5")
