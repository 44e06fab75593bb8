"""Logs of earlier releases open, pass the audit and go on; ``old_logs/write_log.py`` says how they were made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from engines import Engine
from lenience.service.commands.seal import SealLog
from lenience.service.domain.decision_proof import verify_decision
from lenience.service.domain.events import Learned, read
from lenience.service.domain.signed_note import SigningKey
from lenience.service.domain.specification import PolicySpecification
from lenience.service.queries.audit import audit
from lenience.service.queries.log_proofs import LogProofs
from lenience.service.storage import schema
from portfolios import import_rows, rows_of

OLD = Path(__file__).parent / "old_logs"


@pytest.fixture(params=["first", "second"])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    path = tmp_path / "old.db"
    shutil.copy(OLD / f"{request.param}.db", path)
    engine = Engine(str(path))
    yield engine
    engine.close()


def specification_of(engine: Engine, policy: str) -> PolicySpecification:
    with engine.store.read() as connection:
        version = engine.registry.load(connection, policy).active
        assert version is not None
        return version.specification


def test_an_old_log_passes_the_audit_and_goes_on(old: Engine) -> None:
    before = old.audit()
    assert before.findings == []
    for policy in ("factor", "rates", "horizon", "late"):
        decision = old.decide("young", policy=policy)
        if decision["decision"] == "accept":
            old.outcome(decision["id"], "success")
    import_rows(old, rows_of(5, segments=("young",)), policy="factor")
    report = audit(old.store, before.heads)
    assert (report.findings, report.decisions) == ([], before.decisions + 9)


def test_a_decision_of_an_old_log_can_be_proved(old: Engine) -> None:
    key = SigningKey.create("old")
    command = SealLog(key)
    while command.more:
        old.writer.call(command)
    with old.store.read() as connection:
        first = connection.execute(select(schema.decision.c.id).order_by(schema.decision.c.id)).scalars().first()
    assert first is not None
    shown = verify_decision(LogProofs(old.store, old.registry).decision(first), key.public)
    assert shown.decision == first
    assert old.audit().findings == []


def test_old_objectives_mean_what_they_meant(old: Engine) -> None:
    rates = specification_of(old, "rates").objective
    assert (rates.arrivals, rates.discount_rate) == (20.0, 0.1)
    assert rates.discount == pytest.approx(20 / 20.1, abs=1e-15)
    assert specification_of(old, "factor").objective.discount == 0.99
    assert [one.problem.horizon for one in specification_of(old, "horizon").problems()] == [72, 36]
    late = specification_of(old, "late")
    assert late.expiry_days == pytest.approx(3 * 365.25 * 0.5)
    assert [(one.problem.cost, one.problem.arrivals) for one in late.problems()] == [(0.8, 12.0), (0.6, 6.0)]


def test_old_corrections_multiplied_the_likelihood_and_new_ones_are_learnt_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD / "third.db", path)
    engine = Engine(str(path))
    before = engine.audit()
    assert (before.findings, before.labels_not_recomputed) == ([], 2)
    decision = engine.decide(None, policy="applicants", features={"income": 80})
    engine.outcome(decision["id"], "success")
    engine.decide(None, policy="applicants", features={"income": 20})
    engine.correct(decision["id"], "failure")
    assert audit(engine.store, before.heads).findings == []
    with engine.store.read() as connection:
        labels = connection.scalars(select(schema.event.c.body).where(schema.event.c.body.contains('"kind":"label"')))
        corrections = [event for event in map(read, labels) if isinstance(event, Learned) and event.is_correction]
    assert [event.relearnt for event in corrections] == [False, False, False, True]
    engine.close()
