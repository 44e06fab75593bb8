"""A machine's clock that is set forward by too much is not believed."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from engines import Engine
from lenience.core.errors import InputError
from lenience.core.settings import CLOCK_STEP
from lenience.service.domain.clock import GuardedClock, allowed_step, check_order, machine_time
from lenience.service.http import service as running
from lenience.service.http.service import Service
from lenience.service.queries.audit import audit
from rejections import rejected
from serving import Postgres, sqlite_file

SECOND = 1_000_000
DAY = 86_400 * SECOND


class Hands:
    """A machine's clock and the time that really passes."""

    def __init__(self) -> None:
        self.shown, self.real = 1_700_000_000 * SECOND, 5 * SECOND

    def run(self, seconds: float, set_by: float = 0.0) -> None:
        self.real += int(seconds * SECOND)
        self.shown += int((seconds + set_by) * SECOND)

    def clock(self, step: float = 60.0) -> GuardedClock:
        return GuardedClock(step, machine=lambda: self.shown, passed=lambda: self.real)


def test_small_steps_are_followed() -> None:
    hands = Hands()
    clock = hands.clock()
    for step in (0, 59, -30, 0.5, 59, 60):
        hands.run(10, set_by=step)
        assert clock.now() == hands.shown


def test_a_large_forward_step_is_refused_until_it_is_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    hands = Hands()
    clock = hands.clock()
    start = clock.now()
    hands.run(10, set_by=61)
    assert clock.now() == start + 10 * SECOND
    hands.run(3600)
    assert clock.now() == start + 3610 * SECOND, "its own time goes on"
    hands.run(1, set_by=-61)
    assert clock.now() == hands.shown == start + 3611 * SECOND
    logged = [(record.levelname, record.fields["seconds"]) for record in caplog.records]  # type: ignore[attr-defined]
    assert logged == [("ERROR", 61.0), ("WARNING", 0.0)]


def test_a_step_back_does_not_make_the_way_forward_a_jump() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.run(10, set_by=-7200)
    assert clock.now() == hands.shown
    hands.run(10, set_by=7200)
    assert clock.now() == hands.shown
    hands.run(10, set_by=7200)
    assert clock.now() == hands.shown - 7200 * SECOND


def test_a_suspended_machine_is_no_jump() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.run(3 * 86_400)
    assert clock.now() == hands.shown


@pytest.mark.parametrize("given", ["soon", "0", "-3", "nan", "1e300"])
def test_an_invalid_step_is_named(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CLOCK_STEP, given)
    with pytest.raises(InputError, match=CLOCK_STEP):
        allowed_step()


def test_the_step_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CLOCK_STEP, raising=False)
    assert allowed_step() == 3600
    monkeypatch.setenv(CLOCK_STEP, "90.5")
    assert allowed_step() == 90.5


def test_a_jump_forward_expires_and_deletes_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(database)
    engine.create(expire_after_days=20, constraints={"exposure_cap": 1})
    first = engine.decide(key="once")
    assert (first["decision"], engine.decide()["decision"]) == ("accept", "reject")
    engine.close()
    service = Service(database)
    real = time.time_ns
    try:
        with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
            patched.setattr(time, "time_ns", lambda: real() + 30 * 86_400 * 10**9)
            service.do_chores()
            engine.writer, engine.queries = service.writer, service.queries
            assert engine.decide(key="once") == first
            late = engine.decide()
        assert late["decision"] == "reject", "the exposure is not free"
        assert late["decided_at"][:10] == time.strftime("%Y-%m-%d", time.gmtime())
        with service.store.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM idempotency")).scalar_one() == 1
        logged = [record for record in caplog.records if "the clock was set forward" in record.message]
        assert [record.levelname for record in logged] == ["ERROR"]
        assert audit(service.store).whole
    finally:
        service.writer.close()
        service.store.close()


def test_after_a_long_silence_nothing_expires_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a machine that has just started may be wrong."""
    engine = Engine(sqlite_file(tmp_path))
    engine.create(expire_after_days=20)
    engine.decide()
    engine.close()
    monkeypatch.setattr("lenience.service.domain.clock._clock", GuardedClock(machine=lambda: machine_time() + 30 * DAY))
    service = Service(engine.database)
    try:
        service.do_chores()
        assert sum(one.pending for one in service.queries.policy("cards").segments) == 1
        monkeypatch.setattr(running, "monotonic", lambda: time.monotonic() + running.CLOCK_TRIAL + 1)
        service.do_chores()
        assert sum(one.pending for one in service.queries.policy("cards").segments) == 0
    finally:
        service.writer.close()
        service.store.close()


def test_a_clock_that_differs_from_the_servers(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    database = postgres.emptied()
    for hours, direction in ((2, "ahead of"), (-2, "behind")):
        wrong = GuardedClock(machine=lambda hours=hours: machine_time() + hours * 3600 * SECOND)  # type: ignore[misc]
        monkeypatch.setattr("lenience.service.domain.clock._clock", wrong)
        with pytest.raises(InputError, match=rf"7,\d\d\d seconds {direction} the clock of the database server"):
            Service(database)
    monkeypatch.setenv(CLOCK_STEP, "9000")
    service = Service(database)
    service.writer.close()
    service.store.close()


def test_a_time_on_the_same_day_is_not_before_it() -> None:
    day = 86_400_000_000
    check_order("outcome_at", 5 * day, 5 * day + day - 1, 10 * day)
    check_order("outcome_at", 10 * day + 14 * 3_600_000_000, 0, 10 * day)  # a time zone may be ahead by 14 hours
    with rejected("outcome_at"):
        check_order("outcome_at", 5 * day - 1, 5 * day, 10 * day)
    with rejected("outcome_at"):
        check_order("outcome_at", 10 * day + 14 * 3_600_000_000 + 1, 0, 10 * day)
