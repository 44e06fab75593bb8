"""An incremental audit recomputes what came after a checkpoint, from events that the checkpoint proves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from engines import Engine
from lenience.service.commands.again import DecideAgain
from lenience.service.commands.seal import SealLog
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.signed_note import Checkpoint, SigningKey
from lenience.service.queries.audit import _Audit, audit
from portfolios import import_rows, rows_of
from serving import sqlite_file


def seal(engine: Engine) -> None:
    command = SealLog(SigningKey.create("test"))
    while command.more:
        engine.writer.call(command)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Checkpoint, list[str]]]:
    """A log with a clean audit in the middle, after which earlier decisions change and new ones are made."""
    engine = Engine(sqlite_file(tmp_path_factory.mktemp("incremental")))
    engine.create(constraints={"exposure_cap": 6}, waiting_list=True)

    def decide(i: int) -> str:
        return str(engine.decide(reference=f"person {i}", monitored={"sex": "f"} if i % 2 else {})["id"])

    old = [decide(i) for i in range(4)]
    engine.outcome(old[0], "success")
    old += [decide(i) for i in range(4, 9)]  # the last two wait
    import_rows(engine, rows_of(4, segments=("old",)))
    engine.create(name="pooled", model={"type": "shared"})
    engine.outcome(engine.decide(policy="pooled")["id"], "success")
    seal(engine)
    start = audit(engine.store).checkpoint
    assert start is not None
    engine.correct(old[0], "failure")
    engine.outcome(old[1], "success")
    engine.call(DecideAgain.of(make_sender("tester", None, "", ""), old[7]))
    engine.override(old[2], "reject")
    engine.give_up(old[3])
    engine.erase(old[1])
    engine.monitor(old[4], {"sex": "m"})
    for i in range(3):
        made = engine.decide("old", reference=f"later {i}", monitored={"sex": "f"})["id"]
    engine.outcome(engine.decide(policy="pooled")["id"], "failure")
    seal(engine)
    yield engine, start, [*old, made]
    engine.close()


def findings(log: tuple[Engine, Checkpoint, list[str]], *changes: str, **values: Any) -> list[str]:
    """What an incremental audit finds after changes, which are undone."""
    engine, start, _ = log
    with engine.store.write() as connection:
        for change in changes:
            assert connection.execute(text(change), values).rowcount
        report = _Audit(connection, "test", since=start).run([])
        connection.rollback()
    return [f"{one.where}: {one.what}" for one in report.findings]


def test_what_came_after_a_clean_audit_is_recomputed(log: tuple[Engine, Checkpoint, list[str]]) -> None:
    engine, start, _ = log
    full, since = audit(engine.store), audit(engine.store, since=start)
    assert (full.findings, since.findings) == ([], [])
    assert (since.heads, since.digest, since.since) == (full.heads, full.digest, start.size)
    assert since.decisions < full.decisions
    assert since.checkpoint == full.checkpoint, "the next audit can start where this one has ended"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE decision SET status = 'success' WHERE id = :first",  # an earlier decision that was corrected since
        "UPDATE decision SET version = 2 WHERE id = :last",
        "DELETE FROM decision WHERE id = :last",
        "UPDATE personal SET reference = 'x' WHERE reference = 'later 1'",
        "DELETE FROM personal WHERE reference = 'later 2'",
        "UPDATE monitored SET value = 'f' WHERE decision = :fifth",
        "DELETE FROM monitored WHERE decision = :last",
        "UPDATE event SET body = replace(body, 'failure', 'success') WHERE about = :first AND body LIKE '%correction%'",
        "DELETE FROM event WHERE about = :third",
        "DELETE FROM event WHERE about = :first AND body LIKE '%outcome\"%'",
        "UPDATE chain SET successes = successes + 1 WHERE segment = 'young'",
        "UPDATE chain SET pending = pending + 1 WHERE segment = 'old' AND imported > 0",
        "UPDATE log_tile SET hashes = zeroblob(length(hashes))",
    ],
)
def test_later_changes_are_found(log: tuple[Engine, Checkpoint, list[str]], change: str) -> None:
    old = log[2]
    values = {"first": old[0], "third": old[2], "fifth": old[4], "last": old[-1]}
    assert findings(log, change, **{name: value for name, value in values.items() if f":{name}" in change}), change


def test_an_earlier_outcome_that_a_later_event_corrects_must_be_the_one_of_the_checkpoint(
    log: tuple[Engine, Checkpoint, list[str]],
) -> None:
    change = (
        "UPDATE event SET body = replace(body, 'success', 'failure') WHERE about = :first AND body LIKE '%outcome\"%'"
    )
    listed = findings(log, change, first=log[2][0])
    assert any("it is not the event that the checkpoint holds" in one for one in listed)


def test_a_log_that_is_cut_off_or_rewritten_is_found(log: tuple[Engine, Checkpoint, list[str]]) -> None:
    engine, start, _ = log
    other = Checkpoint(start.origin, start.size, bytes(32), start.time)
    longer = Checkpoint(start.origin, 10**6, start.root, start.time)
    for checkpoint, expected in ((other, "rewritten"), (longer, "cut off")):
        assert any(expected in one.what for one in audit(engine.store, since=checkpoint).findings)


def test_erased_data_that_is_put_back_is_found(log: tuple[Engine, Checkpoint, list[str]]) -> None:
    engine, start, old = log

    def put_back(connection: Connection) -> None:
        place = "(SELECT chain_id FROM decision WHERE id = :id), (SELECT seq FROM decision WHERE id = :id)"
        connection.execute(text(f"INSERT INTO personal SELECT {place}, 'a', 'person 1', NULL"), {"id": old[1]})

    assert any("should have been erased" in one for one in changed(engine, start, put_back))


def changed(engine: Engine, start: Checkpoint, change: Callable[[Connection], None]) -> list[str]:
    with engine.store.write() as connection:
        change(connection)
        report = _Audit(connection, "test", since=start).run([])
        connection.rollback()
    return [f"{one.where}: {one.what}" for one in report.findings]


def test_the_command_takes_a_checkpoint_a_report_or_the_last_audit(
    log: tuple[Engine, Checkpoint, list[str]], tmp_path: Path
) -> None:
    import msgspec
    from click.testing import CliRunner

    from lenience.cli.audit import audit as command

    engine, _, _ = log
    report = audit(engine.store)
    clean, damaged = tmp_path / "clean.json", tmp_path / "damaged.json"
    clean.write_bytes(msgspec.json.encode(report))
    damaged.write_bytes(msgspec.json.encode(msgspec.structs.replace(report, whole=False)))
    given = ["--database", engine.database, "--json", "--since"]
    answer = CliRunner().invoke(command, [*given, str(clean)])
    assert answer.exit_code == 0
    assert msgspec.json.decode(answer.stdout)["since"] == report.log_size
    for wrong in (str(damaged), "last", str(tmp_path / "none")):
        refused = CliRunner().invoke(command, [*given, wrong])
        assert isinstance(refused.exception, ValueError)
