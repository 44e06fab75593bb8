"""The report: one page, self-contained, escaped, with what was asked for."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lenience import Belief, Delayed, Discounted, Segments, exposure_limits, fit_history
from lenience.analysis.ignored_delay import Ignored
from lenience.models.own_counts import OwnCounts
from lenience.models.protocol import shrinkage
from lenience.reports.segment_report import segments_report, write_segments_report
from lenience.segments.policies import SegmentPolicies
from lenience.segments.starting import starts
from lenience.simulation import LoanBook
from rejections import rejected

VOID = {"meta", "br", "line", "circle"}


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def solved() -> SegmentPolicies:
    shares = {"many <b>": 0.9, "few & far": 0.1}
    groups = {"many <b>": "A", "few & far": "B"}
    return Segments.of(shares, Discounted(0.8, 0.99), Belief(2, 1), groups).solve()


def read(page: str) -> str:
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return " ".join(parser.text)


def test_the_page() -> None:
    page = segments_report(solved(), "Lending <2024>", truths={"many <b>": 0.9, "few & far": 0.9})
    text = read(page)
    assert "Lending <2024>" in text
    assert "<2024>" not in page
    assert "1 of 2 segments has too few applicants" in text
    assert "almost certainly unprofitable" not in text
    assert "a success earns 0.2 and a failure loses 0.8" in text
    assert "Outcomes by group" in text
    assert "few & far" in text
    assert not re.search(r"(src|href)=|@import|url\(|<script", page)  # nothing is fetched
    assert "prefers-color-scheme: dark" in page
    assert "width=device-width" in page


def test_a_segment_that_is_known_to_lose_is_not_called_rare() -> None:
    priors = {"known": Belief(1000, 700), "rare": Belief(2, 1)}
    cells = Segments.of({"known": 0.96, "rare": 0.04}, Discounted(0.8, 0.99), priors)
    assert [row.loses for row in starts(cells)] == [True, False]
    text = read(segments_report(cells.solve()))
    assert "1 of 2 segments is almost certainly unprofitable" in text
    assert "1 of 2 segments has too few applicants" in text
    assert "known: expected success rate 70% (between 67.6% and 72.4%), minimum rate 79." in text
    assert text.count(", rejected") == 12  # two rows of a bar, a tick and a dot, in two figures


def test_optional_parts(tmp_path: Path) -> None:
    pytest.importorskip("ibis")
    history = fit_history({"g": ["a", "a"], "a": [1, 0], "y": [1, 1]}, "g", "a", "y")
    rows = shrinkage(OwnCounts(2), [10, 0], [7, 0], ["many <b>", "few & far"])
    path = write_segments_report(tmp_path / "report.html", solved(), shrinkage=rows, history=history)
    text = read(path.read_text(encoding="utf-8"))
    assert "Where the expected success rates come from" in text
    assert re.search(r"70\.0%\s+66\.7%\s+12", text)
    assert "1 row not used: an outcome on a rejection." in text
    assert "Computed exactly from the evidence on each segment" in text
    assert "would succeed, rejected" not in text


def test_labels_that_come_late() -> None:
    shares, beliefs = {"free": 0.5, "some <b>": 0.4, "shut": 0.1}, (Belief(30, 27), Belief(10, 7.5), Belief(10, 7))
    known = dict(zip(shares, beliefs, strict=True))
    late = exposure_limits(
        Segments.of(shares, Delayed(0.8, arrivals=38, discount_rate=0.1, label_delay=1), known), {"some <b>": 2}
    )
    assert [row.starts for row in late] == [True, True, False]
    at_once = Segments.of(shares, Discounted.from_rates(0.8, 38, 0.1), known).solve()
    assert at_once.accepts("shut")
    ignored = [Ignored("some <b>", 1.25, 0.5), Ignored("shut", 0.0, None)]
    page = segments_report(at_once, late=late, ignored=ignored)
    text = read(page)
    assert "Delayed outcomes" in text
    assert "1 segment has no limit." in text
    assert (
        "Accept applicants in 2 of 3 segments. In each, continue while fewer applicants are pending than its limit"
        in text
    )
    with rejected("late", "length_mismatch"):
        segments_report(at_once, late=late[:2])


def test_pending_outcomes_are_drawn_and_compared() -> None:
    loans = LoanBook({"A": 0.9, "B": 0.7}, loans=300).draw(seed=1)
    columns = ("grade", "granted", "status", "decided")
    plain = fit_history(loans, *columns, outcome_time="closed")
    history = fit_history(loans, *columns, outcome_time="closed", maturing="learn")
    policies = history.divide(Discounted(0.8, 0.99)).solve()
    text = read(page := segments_report(policies, history=history))
    assert page.count('aria-label="When outcomes become known') == 2
    assert page.count('aria-label="How much a pending outcome counts') == 2
    assert "<script" not in page
    for row in history.segments:
        assert row.rate is not None
        for rate in (row.rate, history.rates()[row.segment]):
            assert f"{100 * rate:.1f}%" in text
    assert "Immature outcomes." not in text
    assert "Immature outcomes." in read(segments_report(policies, history=plain))
