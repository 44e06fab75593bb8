"""Who was accepted, guessed from a file: the words of a column, or the outcomes that go by it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lenience.dashboard.read_models.policy_status import PolicyStatus
from lenience.dashboard.wizard import upload_reader
from lenience.dashboard.wizard.answers import EVERYONE, Answers, FormError
from lenience.dashboard.wizard.plan import read_column_answers, read_segments
from lenience.dashboard.wizard.views import beliefs_view, columns_view, usual_delay
from lenience.data import sample_loans
from lenience.service.domain.rule import ABOVE
from lenience.service.http.service import Service

NOT_ASKED = cast("Service", None)  # these steps look at the file alone


def _kept(folder: Path, rows: list[str]) -> Path:
    (folder / "past.csv").write_text("\n".join(rows))
    upload_reader.save_upload(folder / "past.csv", folder / "past.parquet")
    return folder / "past.parquet"


@pytest.mark.parametrize(
    ("column", "rows", "wanted"),
    [
        ("took", ["north,yes,1", "north,yes,0", "south,no,"], "took"),  # outcomes go by it
        ("status", ["north,approved,1", "north,Approved,", "south,declined,"], "status"),  # its words say so
        ("cosigner", ["north,yes,1", "north,no,0", "south,no,"], ""),  # neither: some were rejected perhaps
        ("cosigner", ["north,yes,1", "north,no,0", "south,no,1"], EVERYONE),  # all have an outcome
    ],
)
def test_who_was_accepted_is_guessed_where_the_file_says_so(
    tmp_path: Path, column: str, rows: list[str], wanted: str
) -> None:
    path = _kept(tmp_path, [f"region,{column},repaid", *rows])
    chosen: Answers = columns_view(NOT_ASKED, path, Answers())["chosen"]
    assert (chosen.accepted, chosen.outcome) == (wanted, "repaid")
    if not wanted:
        with pytest.raises(FormError, match="everyone in the file was"):
            read_column_answers(chosen)


@pytest.mark.parametrize(("missing", "warned"), [(4, False), (5, True)])
def test_many_accepted_without_an_outcome_are_warned_of(tmp_path: Path, missing: int, warned: bool) -> None:
    path = _kept(tmp_path, ["region,repaid", *[f"north,{i % 2}" for i in range(10 - missing)], *["south,"] * missing])
    answers: dict[str, Any] = {"segment": ("region",), "outcome": "repaid", "outcome_means": ("yes:1", "no:0")}
    said = beliefs_view(NOT_ASKED, path, Answers(accepted=EVERYONE, **answers))["silent"]
    assert said.startswith("5 of 10 accepted applicants (50%)") == warned


@pytest.mark.parametrize(
    ("came", "wanted"),
    [
        (("2024-01-11", "2024-01-21"), ("15", "15 in the file, from decided to closed")),
        (("2023-12-01", "2024-01-21"), ("30", "30 is half of the 60 days of step 2")),  # before the decision
        (
            ("2024-01-11", "2999-01-21"),
            ("30", "30 is half of the 60 days of step 2"),
        ),  # still ahead: the end of a contract
    ],
)
def test_the_mean_delay_is_the_file_s_where_it_says_when_outcomes_came(
    tmp_path: Path, came: tuple[str, str], wanted: tuple[str, str]
) -> None:
    rows = [f"north,{i % 2},2024-01-01,{came[i % 2]},1980-01-01" for i in range(4)]
    path = _kept(tmp_path, ["region,repaid,decided,closed,birthday", *rows])
    meant: dict[str, Any] = {"segment": ("region",), "outcome": "repaid", "outcome_means": ("yes:1", "no:0")}
    answers = Answers(accepted=EVERYONE, time="decided", maturity="60", as_of="2024-06-01", **meant)
    days, words = usual_delay(path, answers, read_segments(path, answers).past)
    assert (days, words.startswith(wanted[1])) == (wanted[0], True)


def test_values_say_more_about_an_outcome_than_names(tmp_path: Path) -> None:
    rows = [
        f"{'Verified' if i % 2 else 'Not Verified'},{('Fully Paid', 'Charged Off', 'Current')[i % 3]}" for i in range(9)
    ]
    path = _kept(tmp_path, ["verification_status,loan_status", *rows])
    assert columns_view(NOT_ASKED, path, Answers())["chosen"].outcome == "loan_status"


def test_a_column_that_is_mostly_empty_is_no_segment(tmp_path: Path) -> None:
    rows = [f"{'south' if i > 7 else ''},{'ab'[i % 2]},{i % 2}" for i in range(10)]
    path = _kept(tmp_path, ["region,kind,repaid", *rows])
    assert columns_view(NOT_ASKED, path, Answers())["chosen"].segment == ("kind",)


def test_the_form_opens_with_what_the_sample_has(tmp_path: Path) -> None:
    columns = sample_loans(60)
    path = _kept(
        tmp_path, [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    )
    chosen: Answers = columns_view(NOT_ASKED, path, Answers())["chosen"]
    assert (chosen.segment, chosen.accepted, chosen.outcome) == (("grade",), "approved", "status")
    assert (chosen.time, chosen.outcome_time, chosen.monitor) == ("decided", "closed", ("sex",))
    assert (chosen.priced, chosen.amount_column, chosen.rate_column, chosen.term_column) == (
        "loan", "amount", "rate", "term"
    )  # fmt: skip


def test_a_policy_opens_on_a_segment_with_applicants() -> None:
    def made(name: str, arrivals: int, margin: float) -> Any:
        counts, verdict = SimpleNamespace(arrivals=arrivals), SimpleNamespace(rule=ABOVE, probability=1.0)
        return SimpleNamespace(name=name, stopped=False, margin=margin, counts=counts, verdict=verdict)

    status = SimpleNamespace(segments=[made("empty", 0, 0.0), made("far", 5, 0.3), made("near", 5, -0.1)])
    assert PolicyStatus.segment(cast("PolicyStatus", status), None).name == "near"
