"""Open loans count according to their age: a simulated year, restarts, shadows, and what the audit recomputes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from engines import Engine
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.models.maturing import TimingCurves, mature_belief
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.service.domain import identity
from lenience.service.domain.clock import DAY
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.specification import PolicySpecification
from portfolios import import_rows
from serving import LATE, OFFERS

TIMING: dict[str, Any] = {
    "ages": [0, 30, 60, 90, 180, 270, 365],
    "success_open": [1, 1, 1, 1, 1, 0.6, 0],
    "failure_open": [1, 0.8, 0.6, 0.45, 0.15, 0.05, 0],
}
CURVES = TimingCurves(**TIMING)
START = 1_700_000_000_000_000


class Time:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """A clock in the past. Ids of a process never go back, so they start anew."""
    monkeypatch.setattr(identity, "_last", 0)
    return Time()


def test_a_year_of_maturing_outcomes_passes_the_audit(database: str, time: Time) -> None:
    engine = Engine(database, time)
    objective = {"type": "discounted", "cost": 0.6, "discount": 0.99}
    engine.create(timing=TIMING, objective=objective)
    chance = Random(1)
    pending: dict[str, tuple[int, int, str]] = {}  # the days of decision and outcome, and the outcome
    for day in range(0, 365, 7):
        time.now = START + day * DAY
        if day == 182:  # a restart in the middle
            engine.close()
            engine = Engine(database, time)
        for made, (_, due, outcome) in list(pending.items()):
            if due <= day:
                engine.outcome(made, outcome)
                del pending[made]
        for _ in range(2):
            decision = engine.decide()
            if decision["decision"] == "accept":
                good = chance.random() < 0.75
                due = day + (chance.randint(200, 360) if good else chance.randint(10, 270))
                pending[decision["id"]] = (day, due, "success" if good else "failure")
    ages = [365 - decided for decided, _, _ in pending.values()]
    time.now = START + 365 * DAY
    decision = engine.decide()
    segment = engine.queries.policy("cards").segments[0]
    with engine.store.read() as connection:
        row = connection.exec_driver_sql("SELECT successes, failures FROM chain WHERE segment = 'young'").one()
    expected = mature_belief(Belief(2 + sum(row), 1 + row[0]), ages, CURVES)
    assert decision["belief"]["n"] == pytest.approx(expected.n, rel=1e-9)
    assert decision["belief"]["s"] == pytest.approx(expected.s, rel=1e-9)
    # Failures come first: the known outcomes alone are far too pessimistic.
    assert row[0] / sum(row) < 0.68 < expected.mean < 0.85
    assert f"{len(ages)} open cases that count as" in decision["reason"]
    assert f"{len(ages)} open cases that count as" in segment.evidence
    report = engine.audit()
    assert (report.findings, report.decisions) == ([], 107)
    engine.close()


def test_an_outcome_takes_its_share_with_it(tmp_path: Path, time: Time) -> None:
    engine = Engine(f"{tmp_path}/loans.db", time)
    engine.create(timing=TIMING)
    ids = [engine.decide()["id"] for _ in range(4)]
    time.now += 100 * DAY
    before = engine.decide()["belief"]
    assert before["n"] > 2
    answer = engine.outcome(ids[0], "success")
    extra = (before["n"] - 2) * 3 / 4
    assert answer["belief"]["n"] == pytest.approx(3 + extra)
    assert engine.decide()["belief"] == answer["belief"]
    time.now += DAY
    assert engine.decide()["belief"]["n"] != answer["belief"]["n"]
    assert engine.audit().findings == []
    engine.close()


def test_imported_open_loans_count_at_their_own_age(tmp_path: Path, time: Time) -> None:
    engine = Engine(f"{tmp_path}/loans.db", time)
    engine.create(timing=TIMING, activate=False)
    rows = [{"decided_at": "2023-05-01", "segment": "young", "outcome": "late"}] * 10
    import_rows(engine, rows)
    engine.state("cards", "active")
    decision = engine.decide()
    expected = mature_belief(Belief(2, 1), [START // DAY - 19_478] * 10, CURVES)  # 2023-05-01 is day 19,478
    assert decision["belief"]["s"] == pytest.approx(expected.s, rel=1e-9)
    assert engine.audit().findings == []
    engine.close()


@pytest.mark.parametrize("objective", [OFFERS, LATE["objective"]], ids=["offers", "late"])
def test_every_kind_of_table_takes_open_loans_and_shadows(
    tmp_path: Path, time: Time, objective: dict[str, object]
) -> None:
    engine = Engine(f"{tmp_path}/loans.db", time)
    engine.create(objective=objective, segments=["young"])
    slower = {**TIMING, "failure_open": [1, 1, 0.9, 0.8, 0.5, 0.2, 0]}
    engine.create(objective=objective, segments=["young"], timing=slower, activate=False)
    engine.state("cards", "shadow", 2)
    engine.create(objective=objective, segments=["young"], timing=TIMING)
    offer: dict[str, Any] = {"offer": OfferRequest(amount=500, cost=0.8)} if "offers" in objective else {}
    for _ in range(3):
        made = engine.decide(**offer)
        time.now += 80 * DAY
    view = engine.queries.decision(made["id"])
    assert view.belief is not None
    assert view.belief.n > 2
    assert view.shadows[0].version == 2
    assert engine.audit().findings == []
    engine.close()


def test_a_horizon_has_no_timing() -> None:
    with pytest.raises(InputError):
        PolicySpecification("p", FiniteHorizon(0.7, 100), timing=CURVES)
