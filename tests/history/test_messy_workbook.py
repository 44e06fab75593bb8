"""A workbook with the mistakes that people make: every row is read as it is meant, or counted with its reason."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from lenience import fit_history
from lenience.dashboard.wizard import upload_reader
from lenience.dashboard.wizard.answers import Answers
from lenience.dashboard.wizard.plan import read_segments
from lenience.dashboard.wizard.views import columns_view

Run = Callable[..., tuple[int, str, str]]
HEADING = ["Loan ID", "Decided", "Region", "Approved", "Status", "Amount", "Interest", "Term"]
ROWS: list[list[Any]] = [
    ["L1", dt.date(2024, 1, 3), "North", "Yes", "Fully Paid", "$1,200.50", "12.5%", "36 months"],
    ["L2", "2024-02-14", "North ", "yes", " fully paid", 3400, "9 %", "24 months"],
    ["L3", "17.03.2024", "South", "Y", "Charged-Off", "12,000", "14%", "36 months"],
    ["L4", "5 Apr 2024", "South", "no", None, "$ 900", "12%", "36 months"],
    [None] * 8,
    HEADING,
    ["L5", "2024-05-01", "North", "YES", "Current", "2,500", "9%", "24 months"],
    ["L6", "2024-05-02", "South", "No", "Charged Off", "1,000", "9%", "24 months"],  # an outcome of a rejection
    ["L7", "2099-05-03", "South", "Yes", "Fully Paid", "1,000", "9%", "24 months"],  # a date in the future
    ["L8", "2024-05-04", "South", "Yes", "Fully Paid", "much", "9%", "24 months"],  # no amount
    ["Total", None, None, None, None, 24000.5, None, None],
]


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Loans of 2024, exported by hand"], [], HEADING, *ROWS):
        sheet.append(row)
    path = tmp_path_factory.mktemp("messy") / "loans.xlsx"
    book.save(path)
    return path


def test_every_row_is_used_or_counted_with_its_reason(workbook: Path) -> None:
    history = fit_history(
        workbook, "Region", "Approved", "Status", "Decided", pending=["Current"], amount="Amount", rate="Interest",
        term="Term", loss_given_default="60%", currency="$",
    )  # fmt: skip
    rows = {row.segment: (row.arrivals, row.accepted, row.labels, row.successes) for row in history.segments}
    assert rows == {"North": (3, 3, 2, 2), "South": (2, 1, 1, 0)}
    used = {kind: count for kind, count in history.bad.items() if count}
    assert used == {"segment": 1, "rejected": 1, "future": 1, "economics": 1}
    lost = [0.6 * amount for amount in (1200.5, 3400, 2500)]
    north = history.offers()["North"]
    assert sorted(a * c for a, c in zip(north.amount, north.cost, strict=True)) == pytest.approx(sorted(lost))
    said = history.describe()
    assert "Amount 'much' (1)" in said
    assert "commas separate thousands" in said
    assert "The heading is in row 3." in said
    assert "repeats the heading" in said


def test_the_command_says_what_to_type(run: Run, workbook: Path) -> None:
    words = ("fit", str(workbook), "--segment", "Region", "--accepted", "Approved", "--outcome", "Status")
    code, out, _ = run(*words)
    assert code == 0
    assert "--pending Current" in " ".join(out.split())
    code, _, err = run(*words, "--cost", "75", "--arrivals", "100", "--discount-rate", "0.1")
    assert code == 2
    assert "Type 0.75 for 75%." in err


def test_the_form_reads_the_same(workbook: Path, tmp_path: Path) -> None:
    path = tmp_path / "loans.parquet"
    upload_reader.save_upload(workbook, path)
    view = columns_view(None, path, Answers())  # type: ignore[arg-type]
    chosen: Answers = view["chosen"]
    assert (chosen.accepted, chosen.outcome, chosen.time) == ("Approved", "Status", "Decided")
    means = tuple(f"{meaning}:{value}" for value, _, meaning in view["outcome"]["rows"])
    accepts = tuple(f"{meaning}:{value}" for value, _, meaning in view["accepted"]["rows"])
    given = Answers(
        segment=("Region",), accepted="Approved", outcome="Status", time="Decided", outcome_means=means,
        accepted_means=accepts,
    )  # fmt: skip
    past = read_segments(path, given).past
    assert past is not None
    rows = {row.segment: (row.arrivals, row.accepted, row.labels, row.successes) for row in past.history.segments}
    assert rows == {"North": (3, 3, 2, 2), "South": (3, 2, 2, 1)}  # without amounts, L8 counts too
