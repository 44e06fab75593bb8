"""The overview in the morning: earnings by day, what has changed since yesterday, and what needs a decision."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import event as database_events
from sqlalchemy import insert

from engines import Engine
from lenience.dashboard.pages import overview
from lenience.dashboard.pages.overview import Overview, read_overview
from lenience.dashboard.read_models import notices
from lenience.dashboard.read_models.earnings import spans
from lenience.dashboard.rendering import environment
from lenience.service.domain.clock import DAY
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.http.service import Service
from lenience.service.storage import schema
from serving import sqlite_file

NOON = int(datetime(2026, 3, 18, 12, tzinfo=UTC).timestamp()) * 1_000_000
OFFERS: dict[str, Any] = {
    "type": "discounted",
    "offers": {"amount": [1000.0], "cost": [0.7], "currency": "$"},
    "discount": 0.95,
}


class Morning:
    """An engine at a time that a test chooses, and the overview at that time."""

    def __init__(self, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = NOON
        self.engine = Engine(database, clock=lambda: self.time)
        for module in (overview, notices):
            monkeypatch.setattr(module, "now", lambda: self.time)

    def read(self) -> Overview:
        return read_overview(cast(Service, self.engine))

    def shown(self) -> str:
        visitor = {"token": "t", "may": lambda role: True}
        return (
            environment()
            .get_template("parts/glance.html")
            .render(glance=self.read(), expected={}, visitor=cast(Any, type("Visitor", (), visitor)))
        )


@pytest.fixture
def morning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    some = Morning(sqlite_file(tmp_path), monkeypatch)
    yield some
    assert some.engine.audit().findings == []
    some.engine.close()


def test_periods_can_be_compared() -> None:
    day = int(datetime(2026, 3, 31, tzinfo=UTC).timestamp()) * 1_000_000
    periods = {name: span.last - span.first + 1 for name, span in spans(day).items()}
    assert periods == {"today": 1, "yesterday": 1, "week": 7, "month": 31, "last_month": 28}
    assert spans(day)["week"].last == spans(day)["yesterday"].first - 1


def test_outcomes_are_earned_on_the_day_on_which_they_arrive(morning: Morning) -> None:
    engine = morning.engine
    assert "No policy yet" in morning.shown()
    morning.time -= 40 * DAY
    engine.create(objective=OFFERS, segments=["young", {"name": "old", "prior": {"n": 20, "s": 18}}])
    made = [engine.decide("old", offer=OfferRequest(amount=1000.0 + i, cost=0.7))["id"] for i in range(4)]
    assert "No outcome has arrived yet" in morning.shown()
    morning.time += 8 * DAY  # 14 February
    engine.outcome(made[0], "success")
    morning.time = NOON - DAY
    engine.outcome(made[1], "failure")
    engine.decide("old", offer=OfferRequest(amount=50.0, cost=0.7))
    morning.time = NOON
    engine.correct(made[1], "success")
    engine.outcome(made[2], "success")
    glance = morning.read()
    earned = {name: glance.earnings.of("$", name) for name in ("today", "yesterday", "week", "month", "last_month")}
    assert earned["yesterday"].amount == pytest.approx(-700.7, abs=1e-5)
    assert earned["today"].amount == pytest.approx(300.3 + 700.7 + 300.6, abs=1e-5)
    assert earned["month"].amount == pytest.approx(300.3 + 300.6, abs=1e-5)
    assert earned["last_month"].amount == pytest.approx(300.0)
    assert (earned["week"].outcomes, earned["month"].outcomes, earned["month"].successes) == (0, 2, 2)
    assert (glance.earnings.yesterday.decisions, glance.earnings.yesterday.accepted) == (1, 1)
    assert glance.earnings.of_policy("cards", "month").amount == earned["month"].amount
    shown = morning.shown()
    assert "−$701" in shown
    assert "last month up to 2026-02-18: $300" in shown


def test_what_has_changed_since_yesterday(morning: Morning) -> None:
    engine = morning.engine
    morning.time = NOON - 5 * DAY
    engine.create(objective=OFFERS, segments=["young", "old"])
    first = engine.decide("young")["id"]
    engine.create(objective=OFFERS, segments=["young", "old"], activate=False)
    texts = [change.text for change in morning.read().changes]
    assert texts == ["cards: version 2 was created.", "cards: version 1 was activated."]
    morning.time = NOON
    assert morning.read().changes == []
    failed = 0
    while (made := engine.decide("young"))["decision"] == "accept":
        engine.outcome(made["id"], "failure")
        failed += 1
    engine.give_up(first)
    assert failed > 0
    changes = morning.read().changes
    assert [(change.text, change.link) for change in changes] == [
        ("cards: the segment “young” has stopped.", "/policies/cards/rejections")
    ]
    morning.time += 2 * DAY
    assert morning.read().changes == []


def test_what_needs_a_decision_and_how_much_of_a_limit_is_used(
    morning: Morning, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = morning.engine
    limits = {"exposure_cap_amount": 1400.0, "overall_exposure_cap_amount": 5000.0}
    engine.create(objective=OFFERS, segments=["a", "b"], constraints=limits, waiting_list=True, expire_after_days=30)
    for _ in range(4):
        engine.decide("a")
    engine.create(objective=OFFERS, segments=["a", "b"], activate=False)
    engine.create(name="new", activate=False)
    glance = morning.read()
    assert [(use.what, use.used, use.limit) for use in glance.limits] == [
        ("a", 1400.0, 1400.0),
        ("all segments", 1400.0, 5000.0),
        ("b", 0.0, 1400.0),
    ]
    assert {notice.text for notice in glance.decisions} == {
        "cards: version 2 is a draft. Activate it, or run it in shadow.",
        "new: version 1 is a draft. Activate it, or run it in shadow.",
        "cards: 2 applicants wait for a place.",
    }
    assert "100% used" in morning.shown()
    morning.time += 25 * DAY
    drift = {
        "kind": "drift",
        "policy": "cards",
        "subject": "a",
        "began_at": morning.time,
        "sentence": "cards: More <a>.",
    }
    with engine.store.write() as connection:
        connection.execute(insert(schema.alert), drift)
    monkeypatch.setenv("LENIENCE_FOUR_EYES", "1")
    texts = [notice.text for notice in morning.read().decisions]
    assert "cards: an outcome has been pending for 25 days. It expires after 30 days." in texts
    assert "cards: More <a>." in texts
    assert "cards: version 2 is a draft. Activate it by somebody other than its author, or run it in shadow." in texts
    assert "More &lt;a&gt;." in morning.shown()


def test_no_query_reads_all_decisions_or_events(morning: Morning) -> None:
    engine = morning.engine
    engine.create(objective=OFFERS, segments=["a", "b"], constraints={"exposure_cap_amount": 5000.0})
    engine.create(name="units")
    for _ in range(5):
        engine.decide("a")
    statements: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        statements.append((statement, parameters))

    with engine.store.read() as connection:
        database_events.listen(connection.engine, "before_cursor_execute", note)
        source = connection.engine
    morning.read()
    database_events.remove(source, "before_cursor_execute", note)
    assert len(statements) > 8
    with engine.store.read() as connection:
        for statement, parameters in statements:
            if not statement.startswith("SELECT"):
                continue
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            for row in plan:
                words = row[3].split()
                large = {"decision", "event", "personal"} & set(words)
                assert words[0] != "SCAN" or not large, (statement, row[3])
