"""Outcomes of old decisions count less: against a slow sum, over restarts and corrections, and in the audit."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from engines import Engine, Json
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.models.maturing import TimingCurves, mature_belief
from lenience.objectives.discounted import Discounted
from lenience.service.domain import forgetting, identity
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.clock import DAY
from lenience.service.domain.events import OpenLoansCounted, read, write
from lenience.service.domain.specification import PolicySpecification, SegmentProblem
from lenience.service.storage import schema
from lenience.simulation.result import Estimate
from portfolios import import_rows
from serving import BY_FEATURES, SPEC

START = 1_700_000_000_000_000
HALF_LIFE = 40.0
OBJECTIVE: Json = {"type": "discounted", "cost": 0.6, "discount": 0.95}
FORGETTING: Json = {"objective": OBJECTIVE, "segments": ["young"], "forgetting": {"half_life_days": HALF_LIFE}}


class Time:
    """A clock that the test sets."""

    now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """A clock in the past. Ids of a process never go back, so they start anew."""
    monkeypatch.setattr(identity, "_last", 0)
    return Time()


class Slow:
    """The evidence, added up from every outcome whenever it is asked for."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, bool]] = {}  # the day of the decision, and the outcome
        self.today: dict[str, bool] = {}  # those that arrived after the first decision of the day: they count in full

    def belief(self, day: int) -> tuple[float, float]:
        n, s = 2.0, 1.0
        for one, (decided, good) in self.known.items():
            weight = 1.0 if one in self.today else 0.5 ** ((day - decided) / HALF_LIFE)
            n, s = n + weight, s + weight * good
        return n, s


def test_the_evidence_is_the_sum_of_the_weights(database: str, time: Time) -> None:
    engine = Engine(database, time)
    engine.create(**FORGETTING)
    chance, slow, waiting = Random(3), Slow(), list[tuple[str, int]]()
    for day in range(0, 120, 3):
        time.now = START + day * DAY
        today = time.now // DAY
        if day == 60:  # a restart in the middle
            engine.close()
            engine = Engine(database, time)
        slow.today = {}
        for place in range(3):
            made = engine.decide()
            assert (made["belief"]["n"], made["belief"]["s"]) == pytest.approx(slow.belief(today), rel=1e-9)
            if made["decision"] == "accept":
                waiting.append((made["id"], today))
            if place < 2 and waiting:
                identity_, decided = waiting.pop(0)
                good = chance.random() < 0.85
                engine.outcome(identity_, "success" if good else "failure")
                slow.known[identity_], slow.today[identity_] = (decided, good), True
    corrected = next(one for one, (_, good) in slow.known.items() if good)
    engine.correct(corrected, "failure")
    slow.known[corrected] = (slow.known[corrected][0], False)
    time.now += DAY
    slow.today = {}
    made = engine.decide()
    assert (made["belief"]["n"], made["belief"]["s"]) == pytest.approx(slow.belief(time.now // DAY), rel=1e-9)
    assert made["belief"]["n"] < 2 + len(slow.known) * 0.8
    assert "because old outcomes count less" in made["reason"]
    view = engine.queries.decision(made["id"])
    assert view.belief is not None
    assert view.belief.n == pytest.approx(made["belief"]["n"])
    assert engine.queries.policy("cards").segments[0].belief.n == pytest.approx(made["belief"]["n"])
    assert engine.audit().findings == []
    engine.close()


def test_a_stopped_segment_gets_another_chance_and_the_audit_finds_a_changed_weight(tmp_path: Path, time: Time) -> None:
    engine = Engine(f"{tmp_path}/fading.db", time)
    engine.create(**FORGETTING)
    while (made := engine.decide())["decision"] == "accept":
        engine.outcome(made["id"], "failure")
    time.now += DAY
    assert engine.decide()["decision"] == "reject"
    time.now += 400 * DAY
    assert engine.decide()["decision"] == "accept"
    assert engine.audit().findings == []
    with engine.store.write() as connection:
        chain = connection.execute(select(schema.chain).where(schema.chain.c.segment == "young")).one()
        head = genesis("cards", "young")
        table = schema.event
        for row in connection.execute(select(table).where(table.c.chain_id == chain.id).order_by(table.c.seq)).all():
            event = read(row.body)
            if isinstance(event, OpenLoansCounted) and event.forgotten[0][1] > 0:
                version, outcomes, successes = event.forgotten[0]
                event = msgspec.structs.replace(event, forgotten=((version, outcomes * 0.99, successes),))
            body = write(event)
            head = link(head, body)
            own = (table.c.chain_id == chain.id) & (table.c.seq == row.seq)
            connection.execute(update(table).where(own).values(body=body, hash=head))
        connection.execute(update(schema.chain).where(schema.chain.c.id == chain.id).values(head=head))
    found = [finding.what for finding in engine.audit().findings]
    assert any("what is forgotten" in what for what in found)
    engine.close()


def test_imported_outcomes_fade_and_open_cases_count_beside_them(tmp_path: Path, time: Time) -> None:
    timing: dict[str, Any] = {"ages": [0, 200, 365], "success_open": [1, 1, 0], "failure_open": [1, 0.5, 0]}
    engine = Engine(f"{tmp_path}/imported.db", time)
    engine.create(**FORGETTING, timing=timing, activate=False)
    day = START // DAY - 19_478  # since 2023-05-01
    rows = [
        {"decided_at": "2023-05-01", "segment": "young", "outcome": outcome, "reference": f"r{i}"}
        for i, outcome in enumerate(["success"] * 6 + ["failure"] * 2 + ["late"] * 5)
    ]
    import_rows(engine, rows)
    engine.state("cards", "active")
    weight = 0.5 ** (day / HALF_LIFE)
    known = Belief(2 + 8 * weight, 1 + 6 * weight)
    expected = mature_belief(known, [day] * 5, TimingCurves(**timing))
    made = engine.decide()
    assert made["belief"]["n"] == pytest.approx(expected.n, rel=1e-9)
    assert made["belief"]["s"] == pytest.approx(expected.s, rel=1e-9)
    assert engine.audit().findings == []
    engine.close()


def test_what_forgetting_costs_is_stated() -> None:
    yearly = {"type": "discounted", "cost": 0.8, "arrivals": 200, "discount_rate": 4.0}
    costs = {}
    for days in (60, 730):
        posted = {**SPEC, "objective": yearly, "forgetting": {"half_life_days": days}, "segments": ["young"]}
        spec = msgspec.convert(posted, PolicySpecification)
        found = forgetting.forgetting_cost(days, 200.0, spec.problems())
        assert found is not None
        assert found.low <= found.share <= found.high
        costs[days] = found.share
    assert costs[60] > 0.05 > costs[730]
    (unknown,) = forgetting.forgetting_warnings(forgetting.Forgetting(60), None, spec.problems())
    assert "arrivals" in unknown
    # The evidence of one outcome a day tends to the sum of all weights.
    slow = sum(0.5 ** (day / 30) for day in range(3_000))
    assert forgetting.most_evidence(365.25, 30) == pytest.approx(slow)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"type": "shared"}},
        {"model": BY_FEATURES["model"], "segments": []},
        {"objective": {"type": "horizon", "cost": 0.7, "horizon": 100}},
        {"forgetting": {"half_life_days": 0.5}},
    ],
)
def test_what_cannot_forget_is_rejected(changes: Json) -> None:
    posted = {**SPEC, "forgetting": {"half_life_days": 60}, **changes}
    with pytest.raises((InputError, msgspec.ValidationError)) as error:
        msgspec.convert(posted, PolicySpecification)
    cause = error.value if isinstance(error.value, InputError) else error.value.__cause__
    assert cause is None or (isinstance(cause, InputError) and cause.field == "forgetting")
    assert "forgetting" in str(error.value) or "half_life_days" in str(error.value)


def test_the_cost_is_that_of_the_largest_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost is added up from simulations of the three largest segments, each with its own memory."""
    asked: list[Any] = []

    def study(*arguments: Any, **options: Any) -> list[Any]:
        asked.append((*arguments, options))
        return [SimpleNamespace(gained=Estimate(-0.5, -0.75, -0.25))]

    monkeypatch.setattr("lenience.analysis.drift.drift_study", study)
    problem, prior = Discounted(0.6, 0.99), Belief(2, 1)
    problems = [SegmentProblem(f"s{share}", share, problem, prior, None, 0.0) for share in (0.1, 0.4, 0.05, 0.2, 0.25)]
    found = forgetting.forgetting_cost(90.0, 1000.0, problems)
    value = 3 * problem.solve(prior).value(prior).midpoint
    assert found == pytest.approx((1.5 / value, 0.75 / value, 2.25 / value))
    for (cost, discount, own, speeds, memories, options), share in zip(asked, (0.4, 0.25, 0.2), strict=True):
        assert (cost, discount, own, speeds) == (0.6, 0.99, prior, [0.0])
        assert memories == [pytest.approx(0.5 ** (365.25 / (90.0 * 1000.0 * share)))]
        assert options == {"horizon": 500, "replications": 1200, "workers": 1}
    asked.clear()
    alike = [SegmentProblem(name, 0.5, problem, prior, None, 0.0) for name in "ab"]
    assert forgetting.forgetting_cost(90.0, 1000.0, alike) == pytest.approx(
        (0.5 / value * 3, 0.25 / value * 3, 0.75 / value * 3)
    )
    assert len(asked) == 1  # segments that are alike are simulated once
    for discount, replications in ((0.5, 2_000), (0.99959, 200)):
        asked.clear()
        one = SegmentProblem("a", 1.0, Discounted(0.4, discount), prior, None, 0.0)
        assert forgetting.forgetting_cost(90.0, 1000.0, [one]) is not None
        assert asked[0][-1]["replications"] == replications
    asked.clear()
    for discount in (0.0, 0.99961):  # nothing to learn for, and too long to simulate
        one = SegmentProblem("a", 1.0, Discounted(0.6, discount), prior, None, 0.0)
        assert forgetting.forgetting_cost(90.0, 1000.0, [one]) is None
    hopeless = SegmentProblem("a", 1.0, Discounted(0.99, 0.5), Belief(20, 1), None, 0.0)
    assert forgetting.forgetting_cost(90.0, 1000.0, [hopeless]) is None
    (text,) = forgetting.forgetting_warnings(forgetting.Forgetting(90), 1000.0, problems)
    most = 1000 * 0.4 / 365.25 / (1 - 0.5 ** (1 / 90))
    assert f"at most about {most:,.0f} outcomes" in text
    monkeypatch.setattr(forgetting, "forgetting_cost", lambda *_: forgetting.ForgettingCost(1.0, 0.5, 1.5))
    (text,) = forgetting.forgetting_warnings(forgetting.Forgetting(90), 1000.0, problems)
    assert "more than the policy earns" in text
    monkeypatch.setattr(forgetting, "forgetting_cost", lambda *_: forgetting.ForgettingCost(0.05, -0.01, 0.25))
    (text,) = forgetting.forgetting_warnings(forgetting.Forgetting(90), 1000.0, problems)
    assert "about 5% of the value (0% to 25%, simulated)" in text


def test_outcomes_of_a_later_day_are_not_forgotten() -> None:
    known = {(100, True): 3, (100, False): 1, (110, True): 2}
    assert forgetting.forgotten(known, 100, 10.0) == (0.0, 0.0)  # the clock was set back
    lost = forgetting.forgotten(known, 120, 10.0)
    assert lost == pytest.approx((4 * 0.75 + 2 * 0.5, 3 * 0.75 + 2 * 0.5))
