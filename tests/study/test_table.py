"""Tables from files, frames and OpenML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lenience import InputError
from lenience.study.table import columns_of, from_columns, from_frame, from_openml, numbers_of, read_table

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
    assert table.features == ("age", "job=clerk", "job=cook", "job=missing", "sex=m")
    assert table.y.tolist() == [1, 0, 1]  # the row without an outcome is left out
    assert np.isnan(table.X[1, 0])
    assert table.X[2].tolist() == [50, 0, 0, 1, 0]
    assert table.groups == ("f", "m", "f")
    assert read_table(file, "paid", features=["age"]).features == ("age",)
    assert read_table(file, "job", success="cook", features=["age"]).y.tolist() == [0, 1, 1]
    assert "3 rows" in repr(table)


def test_arff(tmp_path: Path) -> None:
    file = tmp_path / "loans.arff"
    file.write_text(ARFF)
    table = read_table(file, "paid")
    assert table.features == ("age", "job=cook")
    assert table.y.tolist() == [1, 0, 1]
    assert np.isnan(table.X[1, 0])
    file.write_text("not an arff file")
    with pytest.raises(InputError, match="an ARFF file"):
        read_table(file, "paid")


def test_openml_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    import sklearn.datasets
    from sklearn.utils import Bunch

    file = tmp_path / "loans.arff"
    file.write_text(ARFF)
    frame = pandas.DataFrame(columns_of(file))
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
    with pytest.raises(InputError, match="could not be fetched: no network"):
        from_openml("nothing")
    assert from_frame(frame, "paid").y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (CSV, {"outcome": "repaid"}, "column 'repaid' must be one of age, job, sex, paid"),
        (CSV, {"outcome": "job"}, "unless success says which value is success, not 'clerk'"),
        (CSV, {"outcome": "paid", "success": "maybe"}, "success must be a value of 'paid'"),
        (CSV, {"outcome": "paid", "features": ["paid"]}, "features must name at least one column"),
        ("a,b\n1\n", {"outcome": "b"}, "line 2 of"),
        ("a,b\n", {"outcome": "b"}, "a header and at least one row"),
        ("a,b\n1,\n", {"outcome": "b"}, "known for at least one row"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(file, **options)


def test_more_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file that exists"):
        read_table(tmp_path / "none.csv", "y")
    many: dict[str, list[Any]] = {"name": [f"person {i}" for i in range(60)], "y": [0, 1] * 30}
    with pytest.raises(InputError, match="has 60 categories"):
        from_columns(many, "y")
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe\x00")
    with pytest.raises(InputError, match="a text file of comma-separated values"):
        read_table(tmp_path / "picture.csv", "y")


def test_numbers() -> None:
    columns = {"a": ["1", "true", "", "False"], "b": ["x", "", "", ""]}
    found = numbers_of(columns, "a")
    assert found[[0, 1, 3]].tolist() == [1, 1, 0]
    assert np.isnan(found[2])
    with pytest.raises(InputError, match="column 'b' must be numbers"):
        numbers_of(columns, "b")
    with pytest.raises(InputError, match="column 'c' must be one of a, b"):
        numbers_of(columns, "c")
