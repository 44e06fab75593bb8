"""A table decided inside an engine, or by exported SQL, has the decisions of the policy, row by row."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import ibis
import msgspec
import numpy as np
import pyarrow as pa
import pytest
import sqlglot

import lenience as ln
from lenience.cli.export_sql import DIALECTS, policy_sql
from rejections import rejected

BELIEFS = {"a": ln.Belief(10, 7), "b": ln.Belief(9, 3), "o'c": ln.Belief(30.5, 27.25), "d": ln.Belief(4, 3)}
SHARES = {"a": 0.4, "b": 0.3, "o'c": 0.2, "d": 0.1}
OFFERS = ln.Offers([100, 1000, 5000], [0.8, 0.75, 0.7])


def solved(offers: bool) -> ln.SegmentPolicies:
    objective = ln.Discounted(offers=OFFERS, discount=0.99) if offers else ln.Discounted(0.8, 0.99)
    return ln.Segments.of(SHARES, objective, BELIEFS).solve()


def applicants(rows: int = 400) -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    names = rng.choice([*BELIEFS, "other"], rows).tolist()
    amounts = np.exp(rng.uniform(0, 12, rows)).tolist()
    costs = rng.uniform(0.3, 0.99, rows).tolist()
    names[0], amounts[1], costs[2], amounts[3] = None, None, 1.5, float("inf")
    return {"id": list(range(rows)), "segment": names, "amount": amounts, "cost": costs}


def expected(policies: ln.SegmentPolicies, row: tuple[Any, ...], offers: bool) -> tuple[str | None, str]:
    """The decision and its reason, one row at a time."""
    _, name, amount, cost = row
    if name not in BELIEFS:
        return None, "unknown_segment"
    rate = BELIEFS[name].mean
    if not offers:
        accepted, above = policies.accepts(name), rate > 0.8
    elif amount is None or amount == float("inf") or not 0 < cost < 1:
        return None, "no_offer"
    else:
        decision = policies.decide(name, offer=ln.Offer(amount, cost))
        accepted, above = decision.accepted, decision.expected_profit > 0
    if not accepted:
        return "reject", "below_threshold"
    return "accept", "above_break_even" if above else "worth_learning"


@pytest.mark.parametrize("offers", [False, True])
def test_the_engine_decides_as_the_policy(offers: bool) -> None:
    policies, rows = solved(offers), applicants()
    columns = {"amount": "amount", "cost": "cost"} if offers else {}
    found = policies.decide_table(ibis.memtable(pa.table(rows)), **columns).to_pyarrow().to_pydict()
    assert list(found)[:4] == list(rows)
    wanted = [expected(policies, row, offers) for row in zip(*rows.values(), strict=True)]
    order = np.argsort(found["id"])
    assert [(found["decision"][i], found["reason"][i]) for i in order] == wanted
    reasons = {reason for _, reason in wanted}
    assert reasons >= {"above_break_even", "worth_learning", "below_threshold", "unknown_segment"}
    assert not any(name.startswith("lenience") for name in found)
    first = next(i for i in order if found["segment"][i] == "a" and found["reason"][i] != "no_offer")
    assert found["success_rate"][first] == 0.7
    if offers:
        amount, cost = found["amount"][first], found["cost"][first]
        assert found["expected_profit"][first] == amount * (0.7 - cost)
        assert found["label_value"][first] == policies["a"].label_value(BELIEFS["a"]).lower


def specification(offers: bool) -> dict[str, Any]:
    objective = {"type": "discounted", "discount": 0.99}
    objective |= {"offers": msgspec.to_builtins(OFFERS)} if offers else {"cost": 0.8}
    segments = [{"name": name, "share": SHARES[name], "prior": {"n": b.n, "s": b.s}} for name, b in BELIEFS.items()]
    return {"name": "loans", "objective": objective, "segments": segments}


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(document: Any) -> str:
        path = tmp_path / "policy.json"
        path.write_bytes(msgspec.json.encode(document))
        return str(path)

    return write


@pytest.mark.parametrize("offers", [False, True])
def test_the_exported_sql_runs_and_decides_as_the_policy(offers: bool, file: Any) -> None:
    """On SQLite, which shares no code with the engine that Ibis drives."""
    policies, rows = solved(offers), applicants()
    columns = ("amount", "cost") if offers else (None, None)
    text = policy_sql(file(specification(offers)), "sqlite", "people", "segment", ("id",), *columns)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE people (id INTEGER, segment TEXT, amount REAL, cost REAL)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", zip(*rows.values(), strict=True))
        cursor = connection.execute(f"SELECT id, decision, reason FROM ({text}) ORDER BY id")
        found = [(decision, reason) for _, decision, reason in cursor]
    assert found == [expected(policies, row, offers) for row in zip(*rows.values(), strict=True)]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_every_dialect_is_valid_sql_that_keeps_the_numbers(dialect: str, file: Any) -> None:
    text = policy_sql(file(specification(True)), dialect, "people", "grade", ("id",), "amount", "cost")
    reading = {"mssql": "tsql"}.get(dialect, dialect)
    tree: Any = sqlglot.parse_one(text, read=reading)
    assert [one.alias_or_name for one in tree.selects] == [
        "id", "grade", "amount", "cost", "decision", "reason", "success_rate", "expected_profit", "label_value",
    ]  # fmt: skip
    written = {float(one.this) for one in tree.find_all(sqlglot.exp.Literal) if not one.is_string}
    assert written >= {belief.mean for belief in BELIEFS.values()}
    assert "o'c" in {one.this for one in tree.find_all(sqlglot.exp.Literal) if one.is_string}


TIMED = {"type": "discounted", "cost": 0.8, "arrivals": 500, "discount_rate": 0.1}
CHANGES = [
    ({"constraints": {"exposure_cap": 3}}, "constraints.exposure_cap", "conflicting_fields"),
    ({"constraints": {"exploration_floor": 0.1}}, "constraints.exploration_floor", "conflicting_fields"),
    ({"capacity": {"acceptances": 10, "per": "month"}, "objective": TIMED}, "capacity", "conflicting_fields"),
    ({"objective": {"type": "horizon", "cost": 0.8, "horizon": 10}}, "objective", "conflicting_fields"),
    ({"segments": [], "model": {"type": "logistic", "columns": [{"name": "x"}]}}, "model", "conflicting_fields"),
    ({"objective": 3}, "file", "invalid_file"),
]


@pytest.mark.parametrize(("change", "field", "code"), CHANGES)
def test_what_sql_cannot_decide_is_rejected(change: Any, field: str, code: str, file: Any) -> None:
    with rejected(field, code):
        policy_sql(file({**specification(False), **change}), "duckdb", "t", "segment", (), None, None)


def test_bad_columns_are_rejected() -> None:
    table = ibis.memtable(pa.table(applicants(5)))
    with rejected("column", "unknown_name"):
        solved(False).decide_table(table, segment="segmant")
    with rejected("amount", "missing"):
        solved(True).decide_table(table)
    with rejected("amount", "conflicting_fields"):
        solved(False).decide_table(table, amount="amount", cost="cost")
    late = ln.Delayed(0.8, arrivals=20, discount_rate=0.5, label_delay=0.5)
    with rejected("objective", "conflicting_fields"):
        ln.Segments.of({"a": 1.0}, late, ln.Belief(2, 1)).solve().decide_table(table)


def test_too_many_segments_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lenience.segments.table_decisions.MOST_SEGMENTS", 3)
    with rejected("segments", "too_large"):
        solved(False).decide_table(ibis.memtable(pa.table(applicants(5))))
