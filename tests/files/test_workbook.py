"""Excel workbooks: what becomes of cells, sheets, headings and merged cells, and what is too large to be read."""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from apart import awaited
from lenience import InputError, fit_history
from lenience.client.outcomes_import import import_outcomes
from lenience.dashboard.wizard.upload_process import save_upload_apart
from lenience.dashboard.wizard.upload_reader import notes, save_upload
from lenience.dashboard.wizard.upload_table import connect, table_of
from lenience.files import workbook
from lenience.files.columns import read_columns, read_rows
from lenience.files.table import read_table
from rejections import rejected

HEADING = ["id", "day", "rate", "repaid"]
Cells = list[list[Any]]
ROWS: Cells = [
    [1, dt.date(2011, 6, 1), 0.125, "yes"],
    [2, dt.datetime(2011, 12, 31, 14, 30), 0.1 + 0.2, "no"],
    [3.5, None, None, True],
]


def saved(
    path: Path, rows: list[list[Any]], title: str = "Loans", others: dict[str, list[list[Any]]] | None = None
) -> Path:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    for name, cells in (others or {}).items():
        sheet = book.create_sheet(name)
        for row in cells:
            sheet.append(row)
    book.save(path)
    return path


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    return saved(tmp_path / "loans.xlsx", [HEADING, *ROWS])


def test_cells_are_the_texts_that_a_csv_file_would_have(loans: Path) -> None:
    assert read_columns(loans) == {
        "id": ["1", "2", "3.5"],
        "day": ["2011-06-01", "2011-12-31 14:30:00", ""],
        "rate": ["0.125", "0.3", ""],
        "repaid": ["yes", "no", "true"],
    }


def test_titles_empty_rows_merged_cells_and_repeated_names(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    rows: Cells = [["", "Loans of 2011"], [], ["", "region", "paid", "note", "Note"], ["", "north", 1, "a", "b"], []]
    rows += [["", None, 0], ["", None, 1], ["", "south", 1], ["", "region", "paid", "note", "Note"]]
    for row in rows:
        sheet.append(row)
    sheet.merge_cells("B6:B7")
    sheet["B6"] = "west"
    book.save(tmp_path / "book.xlsx")
    said: list[str] = []
    columns = read_columns(tmp_path / "book.xlsx", said)
    assert columns["region"] == ["north", "west", "west", "south"]
    assert columns["paid"] == ["1", "0", "1", "1"]
    assert list(columns) == ["region", "paid", "note (1)", "Note (2)"]
    assert [words.split(".")[0] for words in said] == [
        "The heading is in row 3", "2 columns are named 'note'", "1 row left out: it repeats the heading"
    ]  # fmt: skip
    assert [number for number, _ in read_rows(tmp_path / "book.xlsx")][1:] == [4, 6, 7, 8]


def test_formulas_have_their_stored_values_and_errors_are_missing(tmp_path: Path) -> None:
    path = saved(tmp_path / "book.xlsx", [["x", "y"], ["=1+1", "#N/A"], [2, 3]])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"]
    parts["xl/worksheets/sheet1.xml"] = re.sub(rb"<v></v>|<v ?/>", b"<v>2</v>", sheet)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert read_columns(path) == {"x": ["2", "2"], "y": ["", "3"]}


def test_sheets(tmp_path: Path) -> None:
    path = saved(tmp_path / "book.xlsx", [], "Empty", {"A": [["x", "y"], [1, 2]], "B": [["z", "y"], [5, 6]]})
    said: list[str] = []
    assert read_columns(path, said) == {"x": ["1"], "y": ["2"]}
    assert any("'B'" in words for words in said)
    assert read_columns(path, sheet="B") == {"z": ["5"], "y": ["6"]}
    with rejected("sheet", "unknown_name"):
        read_columns(path, sheet="C")
    with rejected("data", "invalid_file"):
        read_columns(path, sheet="Empty")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    for read in (
        lambda: read_columns(tmp_path / "a.csv", sheet="A"),
        lambda: fit_history(tmp_path / "a.csv", "x", "y", "y", sheet="A"),
        lambda: fit_history({"x": [1]}, "x", "y", "y", sheet="A"),
    ):
        with rejected("sheet", "conflicting_fields"):
            read()


def test_every_reader_of_csv_reads_it(loans: Path, tmp_path: Path) -> None:
    history = fit_history(loans, "id", "repaid", "rate", "day", success=["0.125"], failure=["0.3"])
    assert (history.rows, history.bad["time"]) == (3, 1)
    assert history.as_of == dt.datetime(2011, 12, 31, 14, 30)
    table = read_table(loans, "repaid", ["rate"], time="day")
    assert table.times is not None
    assert table.times.astype(str).tolist() == ["2011-06-01T00:00:00", "2011-12-31T14:30:00"]
    sent: list[Any] = []
    import_outcomes(loans, lambda batch: sent.extend(batch) or {"recorded": len(batch)}, outcome="repaid")  # type: ignore[func-returns-value]
    assert [item["outcome"] for item in sent] == ["success", "failure", "success"]
    save_upload(loans, tmp_path / "saved.parquet")
    with connect() as engine:
        query = f"SELECT * FROM {table_of(tmp_path / 'saved.parquet')} ORDER BY id"
        assert engine.execute(query).fetchall()[1] == ("2", "2011-12-31 14:30:00", "0.3", "no")
    assert notes(tmp_path / "saved.parquet") == []


def test_an_upload_is_read_in_its_own_process(loans: Path, tmp_path: Path) -> None:
    awaited(save_upload_apart(loans, tmp_path / "saved.parquet", "Loans"))
    assert (tmp_path / "saved.parquet").exists()
    (tmp_path / "saved.parquet").unlink()
    with pytest.raises(InputError) as caught:
        awaited(save_upload_apart(loans, tmp_path / "saved.parquet", "Other"))
    assert caught.value.code == "unknown_name"
    assert str(tmp_path) not in str(caught.value)
    assert not (tmp_path / "saved.parquet").exists()


def test_a_far_cell_and_a_bomb_are_not_read(loans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = tmp_path / "far.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["x", "y"])
    book.active["XFD1048576"] = 1
    book.save(far)
    for path, limit, most in ((far, "MOST_CELLS", None), (loans, "MOST_UNPACKED", 1000), (loans, "MOST_PARTS", 2)):
        with monkeypatch.context() as patch:
            if most is not None:
                patch.setattr(workbook, limit, most)
            with pytest.raises(InputError) as caught:
                workbook.open_sheet(path)
            assert caught.value.code == "too_large"
            with rejected("source", "too_large"):
                fit_history(path, "x", "y", "y")


def test_what_is_no_workbook_is_said(tmp_path: Path) -> None:
    cut = tmp_path / "cut.xlsx"
    cut.write_bytes(saved(tmp_path / "whole.xlsx", [HEADING, *ROWS]).read_bytes()[:-200])
    old = tmp_path / "old.xls"
    old.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("a.csv", "x,y\n1,2\n")
    for path, word in ((cut, "archive"), (old, "old Excel"), (archive, "archive")):
        with pytest.raises(InputError) as caught:
            read_columns(path)
        assert word in str(caught.value)


def test_values_beside_the_table_are_not_dropped(tmp_path: Path) -> None:
    path = saved(tmp_path / "book.xlsx", [["x", "y"], [1, 2], [1, 2, "note"]])
    with pytest.raises(InputError) as caught:
        read_columns(path)
    assert "row 3" in str(caught.value)
