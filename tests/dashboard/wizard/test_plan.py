"""What the guided form reads and says, without a service."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lenience.dashboard.wizard import upload_reader
from lenience.dashboard.wizard.answers import EVERYONE, Answers, FormError
from lenience.dashboard.wizard.hand import read_hand
from lenience.dashboard.wizard.objective_plan import read_objective, read_specification, starting
from lenience.dashboard.wizard.past_file import columns, known_outcomes, read_past, values
from lenience.dashboard.wizard.plan import read_column_answers, read_segments, untouched_score
from lenience.history.past_columns import PastColumns
from lenience.service.domain.feature_cells import segment_of
from rejections import rejected

MEANT = PastColumns(("region",), "status", None, ("paid",), ("default",), only_given=True)


def _meant(**changes: object) -> PastColumns:
    return msgspec.structs.replace(MEANT, **changes)


def _taken_in(folder: Path, text: str) -> Path:
    source, target = folder / "past.csv", folder / "past.parquet"
    source.write_text(text)
    upload_reader.save_upload(source, target)
    return target


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Name at least one segment"),
        ("a, 60\na, 40", "'a' appears twice"),
        ("a, 70\nb, 70", "at most 100%"),
        ("a, many", "The share of 'a' in percent must be"),
        ("a, 0.75\nb, 0.25", "Type 75 for 75%"),
        ("a, nan", "The share of 'a' in percent must be"),
        (", 5", "1 to 200 characters"),
        ("a 60\nb, 40", "Type “a, 60” if 60% is the share of 'a', or “a 60,” if that is its name"),
        ("north 50%\nsouth", "Type “north, 50” if 50% is the share of 'north', or “north 50%,” if"),
        ("north12.5 %", "Type “north, 12.5” if"),
        ("a, 80,5\nb", "Type a decimal point in a share: “a, 80.5”"),
    ],
)
def test_segments_that_cannot_be_read_get_a_sentence(text: str, said: str) -> None:
    with pytest.raises(FormError) as refused:
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
    mapping = _meant(accepted="approved", accepted_values=("yes",), rejected_values=("no",))
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
    with rejected("segment", "too_large"):
        read_past(path, _meant(segments=("region", "income")))


def test_a_score_that_makes_no_segments_is_told() -> None:
    assert "'fico' is not selected as a segment" in untouched_score(
        Answers(accepted=EVERYONE, segment=("region",), score="fico")
    )
    assert untouched_score(Answers(accepted=EVERYONE, segment=("region", "fico"), score="fico")) == ""
    assert untouched_score(Answers(accepted=EVERYONE, segment=("region",))) == ""


def test_a_column_of_numbers_is_cut_into_bands_that_the_service_finds_again(tmp_path: Path) -> None:
    rows = [(str(500 + i), "north" if i % 3 else "other", "paid" if i % 4 else "default") for i in range(300)]
    rows += [("NA", "north", "paid"), ("nan", "north", "paid")]
    path = _taken_in(tmp_path, "score,region,status\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    [column] = [one for one in columns(path) if one.name == "score"]
    assert column.numbers
    asked = Answers(
        accepted=EVERYONE,
        segment=("score", "region"),
        outcome="status",
        outcome_means=("yes:paid", "no:default"),
        bands=(("score", "3"),),
        score="score",
        group="region",
        name="cards",
        cost="80",
        future="discount",
        discount="0.99",
    )
    found = read_segments(path, asked)
    assert found.past is not None
    assert found.past.history.bad["segment"] == 2
    assert [(row.segment, row.arrivals) for row in found.past.history.segments] == [
        (f"{band}, region={region}", count)
        for band, counts in (("score<600", (66, 34)), ("score 600..699", (66, 33)), ("score>=699", (68, 33)))
        for region, count in zip(("north", "other"), counts, strict=True)
    ]
    assert set(found.groups.values()) == {"north", "other"}
    spec = read_specification(asked, found)
    assert [one.share for one in spec.problems()] == pytest.approx([n / 300 for n in (66, 34, 66, 33, 68, 33)])
    # Every row is where the service would put it.
    known = known_outcomes(path, read_column_answers(asked), found.past.history)
    assert [one.segment for one in known] == [
        segment_of(spec.features, {"score": float(score), "region": region}) for score, region, _ in rows[:300]
    ]
    assert starting(found, read_objective(asked))


def test_cells_without_rows_are_there_too(tmp_path: Path) -> None:
    lines = "".join(f"{30 + i % 20},{'ab'[i > 30]},{'10'[i % 3 == 0]}\n" for i in range(60)) + "90,a,1\n"
    path = _taken_in(tmp_path, "age,kind,ok\n" + lines)
    meant = PastColumns(("age", "kind"), "ok", None, ("1",), ("0",), only_given=True, scores=("age",))
    past = read_past(path, msgspec.structs.replace(meant, bands=(("age", (20.0, 80.0)),), decide_by_protected=True))
    assert [(row.segment, row.arrivals) for row in past.history.segments if row.arrivals] == [
        ("age 20..80, kind=a", 31),
        ("age 20..80, kind=b", 29),
        ("age>=80, kind=a", 1),
    ]
    assert len(past.history.segments) == 9
    assert past.scores["age<20, kind=b"] == (20.0,)  # its nearest edge: nobody is in that band
    assert past.scores["age>=80, kind=b"] == past.scores["age>=80, kind=a"] == (90.0,)
    assert past.shares["age<20, kind=a"] == pytest.approx(1 / 67)


@pytest.mark.parametrize(
    ("column", "bands", "said"),
    [
        ("score", "many", "such as 5, or their edges"),
        ("score", "700", "For one edge at 700 type “700,”"),
        ("score", ", ".join(str(i) for i in range(20)), "1 to 19 edges"),
        ("region", "3", "'region' has no numbers"),
        ("one", "3", "nearly all of its values are the same"),
    ],
)
def test_bands_that_cannot_be_cut_get_a_sentence(tmp_path: Path, column: str, bands: str, said: str) -> None:
    path = _taken_in(tmp_path, "score,region,one,status\n500,a,1,paid\n600,b,1,default\n")
    means = ("yes:paid", "no:default")
    asked = Answers(
        accepted=EVERYONE, segment=(column,), bands=((column, bands),), outcome="status", outcome_means=means
    )
    with pytest.raises(FormError, match=said):
        read_segments(path, asked)
