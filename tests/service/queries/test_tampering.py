"""Tampering with any row of any table, in either database, is found, and where it is is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from engines import Engine
from lenience.service.commands.keys import create_key, revoke_key
from lenience.service.commands.lifecycle import ChangeState
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.events import Decided, read, write
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.queries.audit import Head, audit
from lenience.service.storage import schema
from serving import OFFERS, Postgres, sqlite_file


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A database with something in every table; every change a test makes to it is taken back."""
    if request.param == "sqlite":
        database = sqlite_file(tmp_path_factory.mktemp("tampering"))
    else:
        server: Postgres = request.getfixturevalue("postgres")
        database = server.database()
    engine = Engine(database)
    engine.create(key="make")
    engine.create(activate=False, objective={"type": "discounted", "cost": 0.6, "discount": 0.9})
    engine.state("cards", "shadow", 2)
    made = [engine.decide(reference=f"person {i}", key=f"key {i}")["id"] for i in range(4)]
    engine.outcome(made[0], "success")
    engine.outcome(made[1], "failure")
    engine.correct(made[1], "success")
    engine.give_up(made[2])
    engine.override(made[3], "reject")
    engine.decide("old", reference="someone", monitored={"sex": "f", "age_band": "25-34"})
    engine.monitor(made[0], {"sex": "m"})
    engine.monitor(made[1], {"sex": "f"})
    engine.monitor(made[1], {"sex": None})
    engine.create(name="loans", objective=OFFERS)
    engine.decide(policy="loans", offer=OfferRequest(amount=500, cost=0.8))
    engine.decide(policy="loans", offers=[OfferRequest(gain=20, loss=80), OfferRequest(amount=5000, cost=0.8)])
    engine.create(name="pooled", model={"type": "shared"})
    for outcome in ("success", "failure"):
        engine.outcome(engine.decide(policy="pooled")["id"], outcome)
    columns = [{"name": "income", "minimum": 0, "maximum": 100}]
    engine.create(name="features", segments=[], model={"type": "logistic", "columns": columns})
    for outcome in ("success", "failure"):
        decision = engine.decide(None, policy="features", features={"income": 90})["id"]
        engine.outcome(decision, outcome)
    engine.erase(decision)
    engine.create(name="cases", referral={"near_minimum": 0.4, "daily_capacity": 1})
    engine.create(name="cases", activate=False, description="next")
    sender = make_sender("tester", None, "", None)
    engine.call(ChangeState(sender, "cases", "rollout", None, percent=30.0))
    referred = [engine.decide(policy="cases", reference=f"case {i}") for i in range(4)]
    engine.review(next(one["id"] for one in referred if one["decision"] == "refer"), "accept")
    create_key(engine.store, "scoring", ("decide",), None, "tester")
    revoke_key(engine.store, create_key(engine.store, "old", ("read",), None, "tester")[0], "tester")
    assert engine.audit().whole
    yield engine
    engine.close()


def changed(engine: Engine, change: Callable[[Connection], None]) -> list[str]:
    """What the audit says after a change, which is then taken back."""
    with engine.store.write() as connection:
        if not engine.store.sqlite:
            connection.execute(text("SET session_replication_role = replica"))  # as one who owns the server could
        elif engine.store.sqlite:
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        change(connection)
        if not engine.store.sqlite:
            connection.execute(text("SET session_replication_role = DEFAULT"))
        from lenience.service.queries.audit import _Audit

        report = _Audit(connection, "test").run([])
        connection.rollback()
    assert report.whole == (not report.findings)
    return [f"{finding.where}: {finding.what}" for finding in report.findings]


def other(value: Any, column: str) -> Any:
    """A value of the same kind that differs."""
    numbers = ("amount", "cost", "at_risk", "percent", "worth", "gain", "loss", "amount_squares", "profit_squares")
    if column in numbers:
        return 0.25 if value is None else value + 0.125
    if column == "monitors":
        return 1000
    if value is None:
        return (
            1 if column in ("policy_id", "source") else 1_900_000_000_000_000 if column.endswith("_at") else "made up"
        )
    if isinstance(value, int):
        return value + 1000 if column != "accepted" or value > 1 else 1 - value
    if column == "state":
        return "retired" if value != "retired" else "draft"
    middle = len(value) // 2
    return value[:middle] + ("0" if value[middle] != "0" else "1") + value[middle + 1 :]


def named(table: Any, row: Any) -> str:
    """What a finding about this row must mention."""
    values = row._mapping
    if table in (schema.event, schema.personal):
        return f"event {values['seq']} of"
    if table is schema.model_state:
        return f"model state {values['seq']} of version {values['version']} of"
    if table is schema.daily_total:
        return f"version {values['version']}, status {values['status']} of segment"
    if table is schema.outcome_day:
        return "the outcomes of "
    if table in (schema.monitored_total, schema.monitored_day):
        return f"of the attributes {values['key']}"
    if table is schema.chain:
        return f"chain {values['id']}"
    if table is schema.policy:
        return f"policy {values['name']!r}"
    if table is schema.version:
        return f"version {values['number']} of"
    return str(next(iter(values.values())))


def some(rows: Any, engine: Engine, most: int) -> list[Any]:
    """At most this many rows, spread over the table. PostgreSQL runs the same audit: its last row is enough there."""
    return list(rows[:: -(-len(rows) // most)]) if engine.store.sqlite else list(rows[-1:])


ALL = [schema.event, schema.decision, schema.personal, schema.monitored, schema.chain, schema.policy]
TOTALS = [schema.daily_total, schema.outcome_day, schema.monitored_total, schema.monitored_day]
REST = [schema.version, schema.referral, schema.solved, schema.model_state, schema.idempotency, schema.api_key]


def rows_of(connection: Connection, table: Any) -> list[Any]:
    """All rows of a table, without empty totals: they say as much as no row."""
    rows = connection.execute(table.select()).all()
    return [row for row in rows if table not in TOTALS or row.number]


@pytest.mark.parametrize("table", [*ALL, *TOTALS, *REST], ids=lambda table: table.name)
def test_every_column_of_every_row(written: Engine, table: Any) -> None:
    with written.store.read() as connection:
        rows = rows_of(connection, table)
    assert rows
    rows = some(rows, written, 32 if table is schema.event else 2 if table in TOTALS else 6)
    keys = [column.name for column in table.primary_key]
    for row in rows:
        values = dict(row._mapping)
        place = " AND ".join(f"{key} = :old_{key}" for key in keys)
        old = {f"old_{key}": values[key] for key in keys}
        for column in values:
            if column in keys and table in (schema.policy, schema.chain):
                continue  # changing these is changing rows of other tables too
            new = other(values[column], column)

            statement = text(f"UPDATE {table.name} SET {column} = :new WHERE {place}")
            given = {"new": new, **old}

            def change(connection: Connection, statement: Any = statement, given: Any = given) -> None:
                assert connection.execute(statement, given).rowcount == 1

            found = changed(written, change)
            assert found, f"{table.name}.{column} of {values} changed to {new!r} was not found"
            if column not in keys:
                places = {named(table, row), repr(values.get("segment"))}
                assert any(place in finding for finding in found for place in places), (column, found)


@pytest.mark.parametrize("table", [*ALL, *TOTALS, *REST], ids=lambda table: table.name)
def test_every_row_removed(written: Engine, table: Any) -> None:
    with written.store.read() as connection:
        rows = rows_of(connection, table)
    rows = some(rows, written, 2 if table in TOTALS else 16)
    keys = [column.name for column in table.primary_key]
    for row in rows:
        values = {key: row._mapping[key] for key in keys}
        place = " AND ".join(f"{key} = :{key}" for key in keys)

        def change(connection: Connection, place: str = place, values: dict[str, Any] = values) -> None:
            assert connection.execute(text(f"DELETE FROM {table.name} WHERE {place}"), values).rowcount == 1

        if table is schema.idempotency:
            assert changed(written, change) == []  # they are forgotten after a week, and nothing rests on them
        else:
            assert changed(written, change), f"{table.name} without {values} was not found"


def test_events_put_in_or_made_to_look_right(written: Engine) -> None:
    def forge(connection: Connection) -> None:
        """Change a decision's event and its own hash, as one who knows how it works would."""
        row = connection.execute(schema.event.select().order_by(schema.event.c.chain_id, schema.event.c.seq)).all()
        place = next(i for i, one in enumerate(row) if isinstance(read(one.body), Decided))
        event = row[place]
        forged = event.body.replace('"decision":"accept"', '"decision":"reject"')
        assert forged != event.body
        before = row[place - 1].hash if row[place - 1].chain_id == event.chain_id else genesis("cards", "young")
        connection.execute(
            text("UPDATE event SET body = :body, hash = :hash WHERE chain_id = :chain AND seq = :seq"),
            {"body": forged, "hash": link(before, forged), "chain": event.chain_id, "seq": event.seq},
        )

    found = changed(written, forge)
    assert any(
        "event 1 of segment 'young'" in one and "decision: reject in the log, accept by policy version 1" in one
        for one in found
    )
    assert any("event 2 of segment 'young'" in one and "does not follow" in one for one in found)

    def insert(connection: Connection) -> None:
        last = connection.execute(text("SELECT max(seq) FROM event WHERE chain_id = 1")).scalar_one()
        store = written.store
        store.insert(
            connection, schema.event, [(1, last + 1, '{"kind":"policy","at":1,"actor":"x","name":"y"}', "0", None)]
        )

    found = changed(written, insert)
    assert any("of the system's log" in one and "does not follow" in one for one in found)


def test_a_log_written_anew_is_found_by_an_earlier_audit(written: Engine) -> None:
    """The end of a chain cut off with all that follows from it looks whole from inside; the kept heads tell."""
    heads = written.audit().heads
    assert audit(written.store, heads).whole
    written.decide("old")
    assert audit(written.store, heads).whole, "a log that went on still holds what was seen"
    forged = [Head(one.policy, one.segment, one.length, "0" * 64) if one.segment == "old" else one for one in heads]
    report = audit(written.store, forged)
    assert [finding.what for finding in report.findings] == ["event 1 differs from the one that an earlier audit saw"]
    gone = [*heads, Head("elsewhere", None, 3, "0" * 64)]
    assert [finding.what for finding in audit(written.store, gone).findings] == [
        "it existed at an earlier audit and is missing"
    ]


def test_what_a_finding_causes_is_counted_after_it(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.batch(["young"] * 25)
    with engine.store.write() as connection:
        connection.execute(text("UPDATE version SET segments = segments || ' '"))
        connection.execute(text("UPDATE decision SET at = 0, status = 'success' WHERE seq = 2"))
    found = [f"{finding.where}: {finding.what}" for finding in engine.audit().findings]
    engine.close()
    assert found[0] == "version 1 of policy 'cards': its specification or segments differ from the log"
    assert sum("its policy version 1 does not exist" in one for one in found) == 20
    assert found[-1] == "decisions: and 5 more like these, for the versions named above"
    (row,) = [one for one in found if one.startswith("decision 0")]
    assert ": at: 1970-01-01T00:00:00.000000Z in the table, 20" in row
    assert row.endswith("Z in the log; status: success in the table, pending in the log")


def test_texts_are_exactly_what_was_hashed(written: Engine) -> None:
    with written.store.read() as connection:
        rows = connection.execute(schema.event.select()).all()
    assert all(write(read(row.body)) == row.body for row in rows)
