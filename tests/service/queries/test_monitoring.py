"""Monitoring of a running version: population, outcomes and acceptance, from the log."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines import Engine, Json
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.outcomes import OutcomeItem, RecordOutcomes
from lenience.service.domain.clock import DAY
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.queries.reading import Filters
from lenience.service.storage.latest_decisions import latest_decisions
from serving import OFFERS, sqlite_file

START = 1_700_000_000_000_000  # November 2023
SHARED: Json = {
    "objective": {"type": "discounted", "cost": 0.6, "discount": 0.9},
    "segments": [
        {"name": "young", "share": 0.5, "prior": {"n": 40, "s": 36}},
        {"name": "old", "share": 0.5, "prior": {"n": 40, "s": 36}, "exposure_cap": 30},
    ],
}


class Clock:
    """A clock that the test sets."""

    at = START

    def __call__(self) -> int:
        self.at += 1_000
        return self.at


def decide(engine: Engine, policy: str, asked: list[DecisionRequest]) -> list[Json]:
    made: list[Json] = engine.call(Decide(make_sender("tester", None, policy, asked), policy, asked, False))[
        "decisions"
    ]
    return made


def record(engine: Engine, outcomes: dict[str, bool]) -> None:
    items = [OutcomeItem(id=one, outcome="success" if good else "failure") for one, good in outcomes.items()]
    engine.call(RecordOutcomes(make_sender("tester", None, "outcomes", items), items))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Clock]]:
    """Segments that change their mix and fail more often than expected, and amounts that grow."""
    clock = Clock()
    engine = Engine(sqlite_file(tmp_path_factory.mktemp("monitoring")), clock)
    engine.create(name="changing", **SHARED)
    engine.create(name="steady", **SHARED)
    engine.create(name="amounts", objective=OFFERS, segments=[])
    rng = random.Random(1)
    for month in range(3):
        clock.at = START + month * 30 * DAY
        for policy, young, rate in (("changing", 0.9, 0.9 - 0.3 * (month == 2)), ("steady", 0.5, 0.9)):
            asked = [DecisionRequest("young" if rng.random() < young else "old") for _ in range(100)]
            made = decide(engine, policy, asked)
            accepted = [one["id"] for one in made if one["decision"] == "accept"]
            record(engine, {one: rng.random() < rate for one in accepted[: 80 if month < 2 else 60]})
        asked = [
            DecisionRequest(offer=OfferRequest(amount=round(rng.lognormvariate(7, 0.3) * (1 + month)), cost=0.8))
            for _ in range(100)
        ]
        decide(engine, "amounts", asked)
    clock.at = START + 95 * DAY
    yield engine, clock
    engine.close()


def report_of(served: tuple[Engine, Clock], policy: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    engine, clock = served
    monkeypatch.setattr("lenience.service.queries.reading.now", lambda: clock.at)
    return engine.queries.monitoring(policy)


def test_a_changed_mix_and_worse_outcomes_are_reported(
    served: tuple[Engine, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(served, "changing", monkeypatch)
    (mix,) = report.population
    assert (mix.kind, mix.state, report.state) == ("segments", "act", "act")
    assert mix.index > mix.noise
    assert mix.interval.lower > 0.25
    assert {part.name: part.before for part in mix.parts} == {"young": 0.5, "old": 0.5}
    now = {part.name: part.now for part in mix.parts}
    assert now["young"] == pytest.approx(0.9, abs=0.05)
    months = {one.name: one for one in report.by_month}
    assert list(months) == ["2023-11", "2023-12", "2024-01"]
    assert months["2023-11"].state == "ok"
    assert months["2024-01"].state in ("watch", "act")
    assert months["2024-01"].unknown > 0
    assert report.outcomes.outcomes == sum(one.outcomes for one in report.by_month)
    assert [one.name for one in report.by_segment] == ["old", "young"]
    again = report_of(served, "changing", monkeypatch)
    assert again is report  # until something happens


def test_expected_rates_are_those_of_the_decisions(
    served: tuple[Engine, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = served
    report = report_of(served, "changing", monkeypatch)
    means, good = [], 0
    with engine.store.read() as connection:
        rows = engine.queries.rows(connection, Filters(policy="changing"), None, 1_000)
    for row in rows:
        if row.status in ("success", "failure"):
            belief = engine.queries.decision(row.id).belief
            assert belief is not None
            means.append(belief.mean)
            good += row.status == "success"
    assert report.outcomes.expected == pytest.approx(sum(means) / len(means))
    assert (report.outcomes.outcomes, report.outcomes.successes) == (len(means), good)
    assert report.outcomes.unknown == sum(row.status == "pending" for row in rows)


def test_nothing_changed_is_ok(served: tuple[Engine, Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(served, "steady", monkeypatch)
    assert {one.state for one in report.population} == {"ok"}
    assert report.outcomes.state == "ok"


def test_the_parts_of_acceptance_add_up(served: tuple[Engine, Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = served
    for policy in ("changing", "steady"):
        report = report_of(served, policy, monkeypatch)
        found = report.acceptance
        parts = found.expected + found.by_mix + found.by_limits + found.by_people
        assert parts == pytest.approx(found.rate)
        with engine.store.read() as connection:
            rows = engine.queries.rows(connection, Filters(policy=policy), None, 1_000)
            chains = engine.registry.load(connection, policy).segments
            made = latest_decisions(connection, chains, 1_000)
        rules = Counter(one.event.rule for one in made)
        assert found.by_limits == pytest.approx(-rules["exposure_cap"] / len(rows))
        assert (rules["exposure_cap"] > 0) == (policy == "steady")  # in the other one, few are old
        assert found.accepted == sum(row.accepted for row in rows)
        assert [month.applicants for month in found.months] == [100, 100, 100]


def test_amounts_that_grow_are_reported(served: tuple[Engine, Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(served, "amounts", monkeypatch)
    (offers,) = report.population
    assert (offers.kind, offers.name, offers.state) == ("offers", "all", "act")
    assert report.outcomes is None
    assert report.acceptance.applicants == 100  # the first 200 are what it is compared with


def test_the_first_day_has_no_comparisons(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    try:
        engine.create()
        report = engine.queries.monitoring("cards")
        assert (report.state, report.population, report.applicants) == ("no_data", [], 0)
        for _ in range(3):
            engine.decide()
        report = engine.queries.monitoring("cards")
        assert (report.acceptance.applicants, report.acceptance.state) == (3, "no_data")
    finally:
        engine.close()
