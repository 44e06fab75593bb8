"""What the pages show is what the engine says: standings, windows, paths and prospects, on both databases."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from apart import awaited
from engines import Engine
from lenience.analysis.characteristics import characteristics
from lenience.core.belief import Belief
from lenience.dashboard.figures.boundary import picture, sparkline
from lenience.dashboard.pages.decisions import references
from lenience.dashboard.pages.overview import read_overview
from lenience.dashboard.pages.policy import _by_group
from lenience.dashboard.read_models import audits
from lenience.dashboard.read_models import time_buckets as windows
from lenience.dashboard.read_models.belief_history import belief_path
from lenience.dashboard.read_models.notices import attention
from lenience.dashboard.read_models.policy_status import PolicyStatus, policy_names, read_policy_status
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import (
    TimeBucket,
    read_time_buckets,
    span,
    width_for,
)
from lenience.dashboard.rendering import read_notice, redirect
from lenience.objectives.discounted import Discounted
from lenience.service.domain.clock import now
from lenience.service.http.service import Service
from lenience.service.queries.reading import Filters


def _service(engine: Engine) -> Service:
    """The engine has what the pages read of a service."""
    return cast(Service, engine)


def _standing(engine: Engine, policy: str = "cards", version: int | None = None) -> PolicyStatus:
    with engine.store.read() as connection:
        return read_policy_status(_service(engine), connection, policy, version)


def _live(engine: Engine, rounds: int = 40) -> list[str]:
    """Decisions in two segments, with every second outcome known."""
    made = []
    for i in range(rounds):
        one = engine.decide("young" if i % 3 else "old")
        made.append(one["id"])
        if one["decision"] == "accept" and i % 2:
            engine.outcome(one["id"], "success" if i % 5 else "failure")
    return made


def test_a_standing_is_the_policy_view(engine: Engine) -> None:
    engine.create()
    _live(engine)
    standing = _standing(engine)
    view = {one.name: one for one in engine.queries.policy("cards").segments}
    for one in standing.segments:
        assert one.belief == view[one.name].belief
        assert one.counts.pending == view[one.name].pending
        assert one.verdict.threshold == view[one.name].threshold
        assert (one.verdict.decision == "accept") == view[one.name].accepts
        assert one.earned == pytest.approx(one.counts.successes * 0.2 - one.counts.failures * 0.8)
    assert standing.totals.arrivals == 40


def test_stretches_add_up_to_all_decisions(engine: Engine) -> None:
    engine.create()
    _live(engine, 30)
    standing = _standing(engine)
    chains = [one.chain for one in standing.segments]
    with engine.store.read() as connection:
        found = span(connection, chains)
        assert found is not None
        rows = read_time_buckets(connection, chains, found[0], width_for(*found))
    assert sum(row.arrivals for row in rows) == standing.totals.arrivals
    assert sum(row.accepted for row in rows) == standing.totals.accepted
    assert width_for(0, 23 * 3_600_000_000) == 3_600_000_000
    assert width_for(0, 10**16) == 364 * 86_400 * 1_000_000


def test_stretches_that_are_over_are_counted_once_unless_a_person_changes_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create()
    chains = [one.chain for one in _standing(engine).segments]
    monkeypatch.setattr(windows, "LATE", 0)
    since = now() // 1000 * 1000
    tallies, asked = windows.TimeBucketCache(), []

    def counted(connection: Any, chains: list[int], since: int, width: int) -> list[TimeBucket]:
        asked.append(since)
        return read_time_buckets(connection, chains, since, width)

    monkeypatch.setattr(windows, "read_time_buckets", counted)
    made = []
    for change in ("", "", "override", ""):
        made += engine.batch(["young", "old"])
        if change:
            engine.override(made[0]["id"], "reject")
        time.sleep(0.002)
        with engine.store.read() as connection:
            assert tallies.buckets(connection, chains, since, 1000) == read_time_buckets(
                connection, chains, since, 1000
            )
    assert since == asked[0] == asked[2] < asked[1] < asked[3]


def test_a_path_is_read_off_the_log(engine: Engine) -> None:
    engine.create()
    _live(engine, 40)
    one = _standing(engine).segment("young")
    with engine.store.read() as connection:
        whole = belief_path(connection, one.chain, one.length, 10_000)
        some = belief_path(connection, one.chain, one.length, 12)
    assert len(whole) == one.counts.arrivals
    assert [step.arrivals for step in whole] == list(range(one.counts.arrivals))
    assert 2 <= len(some) <= 12
    assert {step.arrivals for step in some} <= {step.arrivals for step in whole}


def test_attention_is_called_to_what_stopped_and_what_is_full(engine: Engine) -> None:
    engine.create(
        segments=[
            {"name": "many", "share": 0.99},
            {"name": "few", "share": 0.01},
        ]
    )
    engine.create(name="capped", constraints={"exposure_cap": 1}, segments=["one"])
    engine.decide("one", policy="capped")
    for _ in range(3):
        engine.outcome(engine.decide("many")["id"], "failure")
        if engine.decide("many")["decision"] == "reject":
            break
    glance = read_overview(_service(engine))
    told = [notice.text for notice in glance.attention]
    assert any("“few” never started" in text for text in told)
    assert any("capped: the segment “one” is at the exposure limit" in text for text in told)
    assert glance.earnings.today.decisions == glance.policies[0].totals.arrivals + glance.policies[1].totals.arrivals
    for decision in engine.queries.page(Filters(status="pending"), None, 10).decisions:
        engine.give_up(decision.id)
    glance = read_overview(_service(engine))
    stopped = next(one for one in glance.policies if one.name == "cards")
    assert any("“many” has been stopped for good" in notice.text for notice in attention(stopped))


def test_references_and_names_in_order(engine: Engine) -> None:
    for name in ("cards", "Beta-10", "alpha", "beta-9"):
        engine.create(name=name, segments=["1000-1099", "300-499"])
    assert policy_names(_service(engine)) == ["alpha", "beta-9", "Beta-10", "cards"]
    ((_, segments),) = _by_group(_standing(engine).segments)
    assert [one.name for one in segments] == ["300-499", "1000-1099"]
    mine, other = engine.decide("300-499", reference="application 17"), engine.decide("300-499")
    assert references(_service(engine), [mine["id"], other["id"]]) == {mine["id"]: "application 17"}


def test_a_warning_is_told_as_one_and_fits_into_a_cookie() -> None:
    sent = redirect("/", "Made.", "It never starts.", "ü" * 3000).cookies[0].value or ""
    said, warned = read_notice(sent)
    assert (said, warned[:17]) == ("Made.", "It never starts. ")
    assert len(sent) < 4000
    assert read_notice(redirect("/", "Made.").cookies[0].value or "") == ["Made."]


def test_prospects_are_the_solved_values_and_shut_outs(engine: Engine) -> None:
    engine.create(segments=["all"])
    engine.outcome(engine.decide("all")["id"], "success")
    one = _standing(engine).segment("all")
    found = Prospects().of([one])["all"]
    policy = Discounted(0.8, 0.99).solve(Belief(2, 1))
    assert found.value is not None
    assert found.value.midpoint == pytest.approx(policy.value(Belief(3, 2)).midpoint)
    slow = characteristics(policy, belief=Belief(3, 2), rows=1000).shut_out
    assert slow is not None
    deserving = Belief(3, 2).exceeds(0.8)
    assert slow.lower - 2e-3 <= found.shut_out * deserving <= slow.upper + 1e-6
    assert Prospects().of([one], seconds=-1) == {}


def test_pictures_are_drawn_for_every_kind_of_policy(engine: Engine) -> None:
    engine.create()
    engine.create(
        name="late",
        objective={"type": "delayed", "cost": 0.8, "arrivals": 50, "discount_rate": 0.1, "label_delay": 1},
        segments=["<i>new</i>", "other"],
    )
    engine.create(name="short", objective={"type": "horizon", "cost": 0.8, "horizon": 50}, segments=["a"])
    for name, segment in (("cards", "young"), ("late", "<i>new</i>"), ("short", "a")):
        for _ in range(3):
            engine.outcome(engine.decide(segment, policy=name)["id"], "success")
        standing = _standing(engine, name)
        shown = standing.segment(segment)
        others = [one for one in standing.segments if one is not shown]
        with engine.store.read() as connection:
            paths = {one.name: belief_path(connection, one.chain, one.length) for one in standing.segments}
        for narrow in (False, True):
            drawn = str(picture(shown, paths, others, narrow=narrow))
            assert drawn.count('class="line boundary"') == 1
            assert "<i>" not in drawn
            assert "nan" not in drawn.lower()
        assert "svg" in sparkline(shown, paths[segment])
        assert (str(drawn).count("limit-") > 0) == (name == "late")


def test_what_an_audit_found_is_there_for_all_processes(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create()
    told = tmp_path / "told"
    told.write_bytes(msgspec.json.encode(engine.audit()))
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat {told}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    service = _service(engine)

    async def ask(question: Any) -> Any:
        return question()

    monkeypatch.setattr(service, "ask", ask, raising=False)

    async def both() -> None:
        started = audits.Audits("")
        assert not audits.audit_status(service).running
        await started.start(service)
        assert audits.audit_status(service).running
        await audits.Audits("nobody begins a second one").start(service)
        assert started._task is not None
        await started._task

    awaited(both())
    found = audits.audit_status(service)
    assert not found.running
    assert found.last is not None
    assert found.last.report is not None
    assert (found.last.report.whole, found.last.report.events) == (True, engine.audit().events)
    assert engine.audit().whole
    # One that has died is not waited for, and what was found before stays until another has ended.
    monkeypatch.setattr(audits, "LOST_AFTER", -1_000_000_000)
    assert audits._begin(service)
    assert audits.audit_status(service) == found
