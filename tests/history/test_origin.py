"""The origin of a history: which file, which rows, and what its values mean."""

from __future__ import annotations

import csv
from hashlib import sha256
from pathlib import Path

from lenience import fit_history
from lenience.core.data_origin import IN_MEMORY, file_identity

HEADING = ("region", "approved", "status", "decided")
ROWS = [
    ("north", "yes", "Fully Paid", "2024-01-03"),
    ("north", "yes", "Fully Paid", "2024-02-05"),
    ("north", "yes", "Charged Off", "2024-03-01"),
    ("north", "yes", "Current", "2024-06-30"),
    ("south", "no", "", "2024-01-01"),
    ("south", "no", "Fully Paid", "2023-12-31"),  # an outcome on a rejection
    ("", "yes", "Fully Paid", "2023-01-01"),  # no segment
    ("south", "yes", "Current", "2024-07-15"),  # after the date of the count
]


def write_csv(path: Path) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADING, *ROWS])
    return path


def test_the_origin_says_what_was_used_and_what_was_not(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "loans.csv")
    history = fit_history(
        path, "region", "approved", "status", "decided", pending=["Current"], as_of="2024-07-01", gain=200, loss=800
    )
    origin = history.origin
    assert origin is not None
    assert (origin.file, origin.digest) == ("loans.csv", sha256(path.read_bytes()).hexdigest())
    assert (origin.rows, origin.left_out) == (5, 3)
    assert origin.rows + origin.left_out == history.rows == len(ROWS)
    assert sorted(origin.why_left_out.values()) == [1, 1, 1]
    assert (origin.first, origin.last) == ("2024-01-01", "2024-06-30")  # of the rows that were used
    assert (origin.accepted, origin.labels, origin.successes, origin.pending) == (4, 3, 2, 1)
    assert origin.columns == {"segment": "region", "accepted": "approved", "outcome": "status", "time": "decided"}
    # The usual words are recorded too, although nobody had to name them.
    assert origin.settings["success"] == "Fully Paid"
    assert origin.settings["failure"] == "Charged Off"
    assert origin.settings["pending"] == "Current"
    assert (origin.settings["accepted"], origin.settings["rejected"]) == ("yes", "no")
    assert (origin.economics["gain"], origin.economics["loss"]) == ("200", "800")


def test_the_digest_depends_on_every_byte_of_every_file(tmp_path: Path) -> None:
    first, second = write_csv(tmp_path / "a.csv"), write_csv(tmp_path / "b.csv")
    assert file_identity(first)[1] == file_identity(second)[1]
    together = file_identity(str(tmp_path / "*.csv"))
    assert together[0] == "*.csv"
    second.write_bytes(second.read_bytes()[:-1])
    assert file_identity(first)[1] != file_identity(second)[1]
    assert file_identity(str(tmp_path / "*.csv"))[1] != together[1]


def test_rows_without_a_file_have_no_digest() -> None:
    columns = {name: list(values) for name, values in zip(HEADING, zip(*ROWS, strict=True), strict=True)}
    origin = fit_history(columns, "region", "approved", "status", pending=["Current"]).origin
    assert origin is not None
    assert (origin.file, origin.digest, origin.first) == (IN_MEMORY, "", None)
    assert file_identity("loans", "postgres://host/base") == ("loans", "")
