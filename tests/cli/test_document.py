"""lenience document: the pack of a policy file and of a served policy, as HTML and as a Word file."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from engines import Engine
from lenience.core.data_origin import SOFTWARE
from lenience.dashboard.documentation.backtests import backtest_on_file
from lenience.dashboard.documentation.facts import DatabaseReader, PackFacts, read_pack_facts
from lenience.dashboard.documentation.limitations import limitations
from lenience.dashboard.documentation.monitoring import watch_list
from lenience.dashboard.documentation.pack import documentation_pack
from lenience.data import sample_loans
from lenience.reports.document_html import document_html
from lenience.service.commands.lifecycle import ChangeState
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.storage.store import Store
from serving import BY_FEATURES, LATE, OFFERS, prepared_sqlite_file

Run = Callable[..., tuple[int, str, str]]
CHAPTERS = [
    "Purpose",
    "Data and its selection",
    "Method and assumptions",
    "Validation and back-test",
    "Limitations",
    "Fairness",
    "Monitoring plan",
    "Change log",
]
WORDS = ("--accepted", "approved", "--outcome", "status", "--pending", "Current", "--pending", "Late")
GOAL = (
    "--cost",
    "0.75",
    "--arrivals",
    "500",
    "--discount-rate",
    "0.1",
    "--time",
    "decided",
    "--outcome-time",
    "closed",
)
ORIGIN: dict[str, Any] = {
    "file": "cards.csv", "digest": "5" * 64, "rows": 900, "left_out": 100, "why_left_out": {"no segment": 100},
    "columns": {"segment": "age"}, "settings": {"success": "paid", "failure": "charged off"}, "first": "2024-01-01",
    "last": "2024-12-31", "model": "own", "software": SOFTWARE, "accepted": 500, "labels": 400, "successes": 350,
    "pending": 100, "economics": {"break_even": "80%"},
}  # fmt: skip


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("document") / "loans.csv"
    columns = sample_loans(500, seed=2)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def policy(run: Run, loans: Path) -> Path:
    path = loans.with_name("loans.json")
    if not path.exists():
        code, _, err = run("fit", str(loans), "--segment", "grade", *WORDS, *GOAL, "--output", str(path))
        assert code == 0, err
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A served policy with decisions, outcomes, an override, monitored groups, and two versions."""
    file = prepared_sqlite_file(tmp_path_factory.mktemp("served"))
    engine = Engine(file)
    engine.create(activate=False, origin=ORIGIN, description="Cards for young and old applicants")
    sender = make_sender("head of risk", None, "", None)
    engine.call(ChangeState(sender, "cards", "active", 1, reason="Approved by the committee"))
    for i in range(24):
        made = engine.decide("young" if i % 3 else "old", monitored={"sex": "f" if i % 2 else "m"})
        if made["decision"] == "accept" and i != 8:
            engine.outcome(made["id"], "failure" if i % 9 == 0 else "success")
        elif made["decision"] == "accept":
            engine.override(made["id"], "reject")
    engine.create(activate=False, origin=ORIGIN, objective={"type": "discounted", "cost": 0.7, "discount": 0.99})
    engine.close()
    return file


@pytest.fixture(scope="module")
def facts(database: str) -> PackFacts:
    store = Store(database, reading=True)
    try:
        return read_pack_facts(DatabaseReader(store), "cards", source="cards.db")
    finally:
        store.close()


def chapters_of(page: str) -> list[str]:
    return re.findall(r'<h2 id="chapter-\d">\d\. (.*?)</h2>', page)


def test_the_pack_of_a_policy_file(run: Run, policy: Path, loans: Path, tmp_path: Path) -> None:
    import docx

    page, word = tmp_path / "pack.html", tmp_path / "pack.docx"
    files = ("--data", str(loans), "--output", str(page), "--docx", str(word))
    code, out, err = run("document", str(policy), *files, "--json")
    assert code == 0, err
    assert json.loads(out) == {"policy": str(policy), "version": 1, "files": [str(page), str(word)]}
    text = page.read_text()
    assert chapters_of(text) == CHAPTERS
    assert sha256(loans.read_bytes()).hexdigest() in text
    assert "the file that the version was fitted to" in text
    assert "No service uses it yet." in text
    assert "There is no log yet." in text
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert text.count("<svg") == text.count('role="img"') >= 4
    assert text.count("<table") == text.count("<caption>")
    file = docx.Document(str(word))
    headings = [one.text for one in file.paragraphs if one.style is not None and one.style.name == "Heading 1"]
    assert headings == [f"{number}. {title}" for number, title in enumerate(CHAPTERS, 1)]
    described = [shape._inline.docPr.get("descr") for shape in file.inline_shapes]
    assert len(described) == text.count("<figcaption>")
    assert all(described)
    assert len(file.tables) >= text.count("<table")
    xml = file.element.xml
    assert xml.count("<w:tblHeader") == text.count("<thead>")  # headers are repeated on every page


def test_the_back_test_reads_the_file_as_the_origin_says(policy: Path, loans: Path, tmp_path: Path) -> None:
    from lenience.cli.policy_file import read_policy_file

    specification = read_policy_file(str(policy))
    tested = backtest_on_file(specification, loans)
    assert tested.same_file
    assert tested.result is not None, tested.trouble
    with loans.open() as file:
        rows = [row for row in csv.DictReader(file) if row["approved"] == "yes"]
    known = sorted(row["decided"] for row in rows if row["status"] in ("Fully Paid", "Charged Off"))
    assert tested.maturity is not None  # many loans are running, and failures become known first
    last = dt.date.fromisoformat(specification.origin.settings["as_of"])  # type: ignore[union-attr]
    until = (last - dt.timedelta(days=tested.maturity)).isoformat()
    known = [day for day in known if day <= until]
    later = known if tested.cold else [day for day in known if day >= tested.since]
    assert tested.known_before + tested.result.past.accepted == len(known)
    assert tested.result.past.accepted == len(later)
    other = tmp_path / "newer.csv"
    other.write_text("\n".join(loans.read_text().splitlines()[:-1]) + "\n")
    assert not backtest_on_file(specification, other).same_file


def test_the_pack_of_a_served_policy(run: Run, database: str, tmp_path: Path) -> None:
    page = tmp_path / "pack.html"
    code, _, err = run("document", "cards", "--database", database, "--output", str(page))
    assert code == 0, err
    text = page.read_text()
    assert chapters_of(text) == CHAPTERS
    for words in (
        "Cards for young and old applicants",
        "cards.csv",
        "5" * 64,
        "900 of 1,000 rows were used",
        "everything holds",
        "head of risk",
        "Approved by the committee",
        "By sex",
        "cost: 0.8 → 0.7",
    ):
        assert words in text, words
    code, _, err = run(
        "document", "cards", "--database", database, "--version", "2", "--no-audit", "--output", str(page)
    )
    assert code == 0, err
    assert "Version 2 (draft)" in page.read_text()
    assert "no result is included" in page.read_text()


def test_limitations_follow_from_the_facts(facts: PackFacts) -> None:
    leads = " ".join(lead for lead, _ in limitations(facts))
    assert "Many rows were left out." in leads  # 100 of 1,000
    assert "have little evidence" in leads
    assert "People overrule the policy." in leads
    assert "Some groups have too few cases." in leads
    assert "amount" not in leads  # one break-even for all
    assert "Delays" not in leads


def test_the_plan_says_what_is_above_its_threshold(facts: PackFacts) -> None:
    watches = {one.what: one for one in watch_list(facts)}
    assert watches["Overrides by people"].now == f"1 of {facts.decided:,} decisions"
    assert watches["Overrides by people"].alarm is False  # at most a tenth
    assert watches["Audit of the log"].alarm is None  # none was made here
    assert watches["Outcomes that never came"].alarm is False


def test_the_curve_of_stops_is_that_of_the_exact_walk(facts: PackFacts) -> None:
    """A slow, obvious walk: follow every number of successes until the boundary is crossed."""
    curve = facts.curves[0]
    table = facts.status.version.rules[curve.segment].table
    for place in (0, len(curve.rates) // 2, len(curve.rates) - 1):
        p, here, stopped = curve.rates[place], {0: 1.0}, 0.0
        for least in list(table.boundary[:400]):
            stopped += sum(mass for good, mass in here.items() if good < least)
            after: dict[int, float] = {}
            for good, mass in here.items():
                if good >= least:
                    after[good + 1] = after.get(good + 1, 0.0) + mass * p
                    after[good] = after.get(good, 0.0) + mass * (1 - p)
            here = {good: mass for good, mass in after.items() if mass > 1e-12}
        assert curve.stops[place] == pytest.approx(stopped, abs=2e-3)


def test_the_document_is_the_same_in_both_formats(facts: PackFacts) -> None:
    document = documentation_pack(facts)
    assert [chapter.title for chapter in document.chapters] == CHAPTERS
    assert all(chapter.blocks for chapter in document.chapters)
    assert "cards.db" in document.written


KINDS: dict[str, dict[str, Any]] = {
    "late": {"segments": [], **LATE},
    "offers": {"objective": OFFERS, "segments": []},
    "features": {"segments": [], "prior": {"n": 2, "s": 1}, **BY_FEATURES},
    "referral": {"referral": {"near_minimum": 0.4, "daily_capacity": 2}},
    "horizon": {"objective": {"type": "horizon", "cost": 0.6, "horizon": 50}},
    "floor": {"constraints": {"exploration_floor": 0.05, "exposure_cap": 3}, "doubt": 0.1},
    "capacity": {
        "objective": {"type": "discounted", "cost": 0.8, "arrivals": 500, "discount_rate": 0.1},
        "capacity": {"per": "month", "acceptances": 20},
    },
}


def test_every_kind_of_policy_has_a_pack(tmp_path: Path) -> None:
    engine = Engine(prepared_sqlite_file(tmp_path))
    try:
        for kind, changes in KINDS.items():
            engine.create(**{**changes, "name": kind})
            applicant: dict[str, Any] = {"segment": "young"}
            if kind == "features":
                applicant = {"segment": None, "features": {"income": 60, "region": "north"}}
            elif "segments" in changes:
                applicant = {"segment": "all"}
            if kind == "offers":
                applicant["offer"] = OfferRequest(amount=500, cost=0.8)
            for _ in range(3):
                made = engine.decide(policy=kind, **applicant)
                if made["decision"] == "accept":
                    engine.outcome(made["id"], "success")
            facts = read_pack_facts(DatabaseReader(engine.store), kind)
            assert chapters_of(document_html(documentation_pack(facts))) == CHAPTERS
            named = " ".join(f"{lead} {text}" for lead, text in limitations(facts))
            assert ("exponential" in named) == (kind == "late"), named
            assert ("depend on the amount" in named) == (kind == "offers")
            assert ("features are estimates" in named) == (kind == "features")
            assert ("not revisited" in named) == (kind != "floor")
            watched = [one.what for one in watch_list(facts)]
            assert ("Cases that people decide" in watched) == (kind == "referral")
            assert bool(facts.curves) == (kind != "features")
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nobody",), "nobody"),
        (("cards", "--version", "9"), "version"),
        (("cards", "--data", "missing.csv"), "missing.csv"),
        (("cards", "--url", "http://127.0.0.1:9", "--data", "missing.csv"), "--data"),
        (("missing.json",), "missing.json"),
    ],
)
def test_bad_input_is_one_line(run: Run, database: str, tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    output = ("--output", str(tmp_path / "pack.html"))
    code, _, err = run("document", *words, "--database", database, "--no-audit", *output)
    assert code == 2
    assert expected in err
    assert "Traceback" not in err


def test_word_files_need_an_extra(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "docx", None)
    folder = str(tmp_path / "pack.html"), str(tmp_path / "pack.docx")
    code, _, err = run("document", "cards", "--output", folder[0], "--docx", folder[1])
    assert code == 2
    assert "lenience[document]" in err
