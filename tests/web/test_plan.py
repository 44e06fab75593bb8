"""What the guided form reads and says, without a service."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lenience.errors import InputError
from lenience.web import intake
from lenience.web.answers import Answers, Refused
from lenience.web.past_file import Mapping, read_past, values
from lenience.web.plan import read_hand, untouched_score

MEANT = Mapping(("region",), "status", ("paid",), ("default",))


def _taken_in(folder: Path, text: str) -> Path:
    source, target = folder / "past.csv", folder / "past.parquet"
    source.write_text(text)
    intake.take_in(source, target)
    return target


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Name at least one segment"),
        ("a, 60\na, 40", "'a' is there twice"),
        ("a, 70\nb, 70", "at most 100 %"),
        ("a, many", "The share of 'a' in per cent must be"),
        ("a, 0.75\nb, 0.25", "type 75 for 75 %"),
        ("a, nan", "The share of 'a' in per cent must be"),
        (", 5", "1 to 200 characters"),
        ("a 60\nb, 40", "Write “a, 60” if 60 % is the share of 'a', or “a 60,” if that is its name"),
        ("north 50%\nsouth", "Write “north, 50” if 50 % is the share of 'north', or “north 50%,” if"),
        ("north12.5 %", "Write “north, 12.5” if"),
        ("a, 80,5\nb", "Use a point in a share: “a, 80.5”"),
    ],
)
def test_segments_that_cannot_be_read_get_a_sentence(text: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        read_hand(text, "", "")
    assert said in str(refused.value)


def test_names_may_hold_numbers_where_that_is_plain() -> None:
    assert read_hand("tier 1, 25\ntier 2,\n300-499\nB2B", "", "").shares == {
        "tier 1": 0.25,
        "tier 2": 0.25,
        "300-499": 0.25,
        "B2B": 0.25,
    }


def test_values_that_are_no_outcome_are_named(tmp_path: Path) -> None:
    odd = "a,yes,??\na,yes,lost\na,yes,??\n,yes,??\n"
    path = _taken_in(tmp_path, "region,approved,status\na,yes,paid\na,yes,default\na,no,\n" + odd)
    mapping = msgspec.structs.replace(MEANT, accepted="approved", yes=("yes",), no=("no",))
    told = read_past(path, mapping).history.describe()
    assert "3 rows not used: " in told
    assert ": '??' (2), 'lost' (1)." in told


def test_white_space_around_texts_does_not_count(tmp_path: Path) -> None:
    path = _taken_in(tmp_path, "region,status\na,paid\n a,paid \na\t,default\n  ,paid\n")
    assert values(path, "status") == [("paid", 3), ("default", 1)]
    history = read_past(path, MEANT).history
    assert [(one.segment, one.labels) for one in history.segments] == [("a", 3)]
    assert history.bad["segment"] == 1


def test_too_many_segments_name_the_column_to_cut_into_bands(tmp_path: Path) -> None:
    rows = "".join(f"{'ns'[i % 2]},{i},paid\n" for i in range(1_001))
    path = _taken_in(tmp_path, "region,income,status\n" + rows)
    with pytest.raises(InputError, match=r"'income' has the most values.*into bands such as 300-499"):
        read_past(path, msgspec.structs.replace(MEANT, segments=("region", "income")))


def test_a_score_that_makes_no_segments_is_told() -> None:
    assert "'fico' is not ticked as a segment" in untouched_score(Answers(segment=("region",), score="fico"))
    assert untouched_score(Answers(segment=("region", "fico"), score="fico")) == ""
    assert untouched_score(Answers(segment=("region",))) == ""
