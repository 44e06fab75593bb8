"""The totals of decisions equal a plain recount, whatever happens to the decisions."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from engines import Engine
from lenience.service.commands.again import DecideAgain
from lenience.service.commands.monitor import MonitorMany
from lenience.service.commands.outcomes import Expire, OutcomeItem, RecordOutcomes
from lenience.service.domain.clock import DAY
from lenience.service.domain.monitored import MonitoredItem
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import Problem
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.segment_counts import SegmentCounts
from lenience.service.queries.reading import Filters
from lenience.service.storage import schema
from lenience.service.storage.daily_totals import CountedDecision, DailyTotals, day_of, rounded
from lenience.service.storage.monitored_totals import MonitoredTotals, attributes_text, values_of
from lenience.service.storage.outcome_days import OutcomeDays
from lenience.service.storage.store import Store
from portfolios import import_rows
from serving import OFFERS, sqlite_file

START = 1_700_000_000_000_000


def stored(connection: Connection, table: Any) -> dict[Any, list[Any]]:
    keys = len(table.primary_key)
    rows = [[*row] for row in connection.execute(select(table))]
    if table is schema.monitored_total:
        rows = [[*row[:3], *row[4:]] for row in rows]
    return {tuple(row[:keys]): row[keys:] for row in rows if row[keys]}


def grid(money: float) -> float:
    return math.floor(money * 2**20 + 0.5) / 2**20


def recount(connection: Connection) -> tuple[dict[Any, list[Any]], dict[Any, list[Any]], dict[Any, list[Any]]]:
    """Count all decisions one by one, from their rows."""
    daily: dict[Any, list[Any]] = defaultdict(lambda: [0, 0, 0, 0.0, 0.0])
    cells: dict[Any, list[Any]] = defaultdict(lambda: [0, 0, 0, 0.0, 0.0, 0.0, 0.0])
    days: dict[Any, list[Any]] = defaultdict(lambda: [0, 0])
    attributes: dict[str, dict[str, str]] = defaultdict(dict)
    chains: dict[str, int] = {}
    for row in connection.execute(select(schema.monitored)):
        attributes[row.decision][row.name] = row.value
        chains[row.decision] = row.chain_id
    totals = schema.monitored_total
    keys = {row.attributes: row.key for row in connection.execute(select(totals.c.attributes, totals.c.key))}
    for row in connection.execute(select(schema.decision)):
        money = [0, 0.0, 0.0] if row.amount is None else [1, grid(row.amount), grid(row.amount * row.cost)]
        for place, value in enumerate([1, row.accepted, *money]):
            daily[row.chain_id, row.at // DAY, row.version, row.status][place] += value
        if row.id in attributes:
            key = keys[json.dumps(attributes[row.id], sort_keys=True, separators=(",", ":"))]
            profit = {"success": money[1] - money[2], "failure": money[2]}.get(row.status, 0.0)
            squares = [grid(money[1] ** 2), grid(grid(profit) ** 2)]
            values = [1, row.accepted, *money[:2], squares[0], money[2], squares[1]]
            for place, value in enumerate(values):
                cells[row.chain_id, key, row.status][place] += value
            if row.status != "replaced":
                days[chains[row.id], row.at // DAY, key][0] += 1
                days[chains[row.id], row.at // DAY, key][1] += row.accepted
    return daily, cells, days


def recount_outcomes(connection: Connection) -> dict[Any, list[Any]]:
    """Count all outcomes and corrections one by one, from the log."""
    days: dict[Any, list[Any]] = defaultdict(lambda: [0, 0, 0, 0.0, 0.0])
    decisions = {row.id: row for row in connection.execute(select(schema.decision))}
    for row in connection.execute(select(schema.event)):
        event = json.loads(row.body)
        if event["kind"] not in ("outcome", "correction"):
            continue
        decision, cell = decisions[event["decision"]], days[row.chain_id, event["at"] // DAY]
        for status, sign in ((event.get("before"), -1), (event["outcome"], 1)):
            if status is not None:
                cell[0] += sign
                cell[1] += sign * (status == "success")
                if decision.amount is not None:
                    loss = grid(decision.amount * decision.cost)
                    cell[2] += sign
                    cell[3] += sign * (grid(decision.amount) - loss) * (status == "success")
                    cell[4] += sign * loss * (status == "failure")
    return {key: row for key, row in days.items() if any(row)}


def check(store: Store) -> None:
    with store.read() as connection:
        table = schema.outcome_day
        rows = {tuple(row[:2]): [*row[2:]] for row in connection.execute(select(table))}
        assert {key: row for key, row in rows.items() if any(row)} == recount_outcomes(connection)
        counted = recount(connection)
        tables = (schema.daily_total, schema.monitored_total, schema.monitored_day)
        for table, expected in zip(tables, counted, strict=True):
            actual = stored(connection, table)
            assert actual.keys() == expected.keys(), table.name
            for key, row in expected.items():
                assert actual[key] == pytest.approx(row, rel=1e-12, abs=1e-5), (table.name, key)


def operations(engine: Engine, chance: Random, made: list[str]) -> list[Callable[[], Any]]:
    """Everything that can change a decision or its attributes."""
    sender = make_sender("tester", None, "", "")

    def sex() -> dict[str, Any]:
        return chance.choice([{}, {"sex": "f"}, {"sex": "m", "age": "25-34"}, {"sex": None, "age": "60+"}])

    def given() -> dict[str, str]:
        return {name: value for name, value in sex().items() if value is not None}

    def decide() -> None:
        policy = chance.choice(["cards", "loans"])
        offer = OfferRequest(amount=chance.uniform(1, 900), cost=chance.uniform(0.2, 0.9))
        more: dict[str, Any] = {"offer": offer} if policy == "loans" else {}
        made.append(engine.decide(chance.choice(["young", "old"]), policy=policy, monitored=given(), **more)["id"])

    def one() -> str:
        return chance.choice(made)

    def batch() -> None:
        items = [OutcomeItem(id=one(), outcome=chance.choice(["success", "failure"])) for _ in range(3)]
        engine.call(RecordOutcomes(sender, items))

    def monitor_many() -> None:
        items = [MonitoredItem(id=one(), monitored=sex() or {"sex": "f"}) for _ in range(3)]
        engine.call(MonitorMany(sender, items))

    def bring() -> None:
        days = [f"2023-0{chance.randrange(1, 9)}-0{chance.randrange(1, 9)}" for _ in range(3)]
        rows = [
            {"decided_at": day, "segment": "young", "reference": f"loan {chance.random()}", "monitored": given()}
            for day in days
        ]
        rows[0]["decision"] = "reject"
        rows[1]["outcome"] = "success"
        import_rows(engine, rows)

    changes: list[Callable[[], Any]] = [
        lambda: engine.outcome(one(), chance.choice(["success", "failure", "late"])),
        lambda: engine.correct(one(), chance.choice(["success", "failure"])),
        lambda: engine.give_up(one()),
        lambda: engine.override(one(), chance.choice(["accept", "reject"])),
        lambda: engine.monitor(one(), sex() or {"age": "25-34"}),
        lambda: engine.erase(one()),
        lambda: engine.call(DecideAgain.of(sender, one())),
        lambda: engine.call(Expire(sender, "cards", START + 4 * DAY, 2)),
    ]
    return [decide, decide, decide, batch, monitor_many, bring, *changes]


def test_totals_equal_a_recount_after_any_operations(tmp_path: Path) -> None:
    chance = Random(5)
    time = START
    engine = Engine(sqlite_file(tmp_path), clock=lambda: time)
    try:
        engine.create(constraints={"exposure_cap": 3}, waiting_list=True)
        engine.create(name="loans", objective=OFFERS, constraints={"exposure_cap": 4}, waiting_list=True)
        made = [engine.decide()["id"]]
        some = operations(engine, chance, made)
        for step in range(260):
            time += chance.choice([1, 10**9, DAY // 3])
            with suppress(Problem):
                chance.choice(some)()
            if step % 20 == 19:
                check(engine.store)
        with engine.store.read() as connection:
            statuses = set(connection.execute(select(schema.daily_total.c.status)).scalars())
        assert statuses == {"pending", "success", "failure", "expired", "rejected", "waiting", "replaced"}
        assert engine.audit().findings == []
    finally:
        engine.close()


def test_erased_attributes_leave_no_row(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    try:
        engine.create()
        decision = engine.decide(monitored={"religion": "rarest"})["id"]
        engine.outcome(decision, "success")
        engine.erase(decision)
        with engine.store.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM monitored_total")).scalar_one() == 0
            assert connection.execute(text("SELECT count(*) FROM monitored_day")).scalar_one() == 0
    finally:
        engine.close()


def test_a_migration_counts_earlier_decisions(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    try:
        engine.create(name="loans", objective=OFFERS)
        for i in range(4):
            offer = OfferRequest(amount=100.1 + i, cost=0.8)
            decision = engine.decide(policy="loans", offer=offer, monitored={"sex": "fm"[i % 2]} if i else {})["id"]
        engine.outcome(decision, "failure")
        engine.correct(decision, "success")
        engine.correct(decision, "failure")
        from lenience.service.storage.migrate import migrate

        with engine.store.write() as connection:
            for table in ("daily_total", "monitored_total", "monitored_day", "outcome_day"):
                connection.execute(text(f"DROP TABLE {table}"))
            for before, after in (("0016", "0017"), ("0018", "0019")):
                connection.execute(text(f"UPDATE alembic_version SET version_num = '{before}'"))
                migrate(connection, after)
        check(engine.store)
    finally:
        engine.close()


def test_sums_of_rounded_amounts_do_not_depend_on_the_order() -> None:
    chance = Random(1)
    amounts = [chance.lognormvariate(8, 2) for _ in range(500)]
    sums = []
    for order in (amounts, sorted(amounts), amounts[::-1]):
        totals = DailyTotals()
        for amount in order:
            totals.count(CountedDecision(1, 1, 0, True, "pending", amount, 0.7))
        for amount in amounts[:499]:
            totals.count(CountedDecision(1, 1, 0, True, "pending", amount, 0.7), -1)
        sums.append(totals.cells[1, 0, 1, "pending"])
    assert sums[0] == sums[1] == sums[2] == [1, 1, 1, rounded(amounts[499]), rounded(amounts[499] * 0.7)]


def test_a_search_by_status_reads_only_the_days_that_have_it(tmp_path: Path) -> None:
    time = START
    engine = Engine(sqlite_file(tmp_path), clock=lambda: time)
    try:
        engine.create()
        made = []
        for _ in range(4):
            made.append(engine.decide()["id"])
            time += DAY
        engine.give_up(made[1])
        engine.give_up(made[2])
        for newest in (False, True):
            listed = engine.queries.page(Filters(status="expired"), None, 10, newest).decisions
            assert sorted(entry.id for entry in listed) == sorted(made[1:3])
        assert engine.queries.page(Filters(policy="cards", segment="old", status="expired"), None, 10).decisions == []
        assert engine.queries.page(Filters(status="failure"), None, 10).decisions == []
    finally:
        engine.close()


def test_what_a_cell_holds() -> None:
    """Amounts are rounded to 2**-20, the loss apart from the amount, and what is taken back leaves no row."""
    totals, step = DailyTotals(), 2.0**-20
    first = CountedDecision(7, 2, 3 * DAY + DAY - 1, True, "pending", 100.0 + 0.6 * step, 0.25)
    second = first._replace(accepted=False, amount=None, cost=None)
    free = first._replace(cost=None, amount=8.0)
    for one in (first, second, free):
        totals.count(one)
    assert totals.rows() == [(7, 3, 2, "pending", 3, 2, 2, 108.0 + step, 25.0)]
    totals.count(first._replace(at=4 * DAY, chain=1))
    assert [row[:4] for row in totals.rows()] == [(1, 4, 2, "pending"), (7, 3, 2, "pending")]
    for one in (first, second, free):
        totals.count(one, -1)
    assert [row[:2] for row in totals.rows()] == [(1, 4)]
    assert day_of(4 * DAY) == day_of(5 * DAY - 1) == 4


def test_large_amounts_are_not_rounded_and_stay_finite() -> None:
    step = 2.0**-20
    assert rounded(0.5 * step) == step
    assert rounded(0.49 * step) == 0.0
    large = 2.0**33 + 2.0**-19
    assert rounded(large) == large
    assert rounded(2.0**33) == 2.0**33
    assert rounded(1e139) == 1e139
    assert rounded(2e140) == 1e140
    assert rounded(rounded(1e300) ** 2) < math.inf


def test_what_a_cell_of_attributes_holds() -> None:
    totals = MonitoredTotals()
    made = CountedDecision(7, 1, 2 * DAY, True, "failure", 100.0, 0.75)
    totals.count(made, 9, {"sex": "f", "age": "20"})
    totals.count(made._replace(accepted=False, amount=None, cost=None, at=3 * DAY), 9, {"age": "20", "sex": "f"})
    totals.count(made._replace(status="replaced"), 9, {"sex": "f"})
    key, text_ = attributes_text({"sex": "f", "age": "20"})
    other, _ = attributes_text({"sex": "f"})
    assert values_of(text_) == {"sex": "f", "age": "20"}
    assert values_of("[]") is values_of("{") is None
    free = MonitoredTotals()
    free.count(made._replace(cost=None), 9, {"sex": "f"})
    assert free.rows()[0][9] == 0.0
    own = [row for row in totals.rows() if row[1] == key]
    assert own == [(7, key, "failure", text_, 2, 1, 1, 100.0, 10_000.0, 75.0, 5_625.0)]
    assert [row[4:] for row in totals.rows() if row[1] == other] == [(1, 1, 1, 100.0, 10_000.0, 75.0, 0.0)]
    assert totals.day_rows() == [(9, 2, key, 1, 1), (9, 3, key, 1, 0)]
    assert totals.changes_days == {9}
    totals.count(made, 9, {"sex": "f", "age": "20"}, -1)
    assert totals.day_rows() == [(9, 3, key, 1, 0)]
    totals.count(made._replace(accepted=False, amount=None, cost=None, at=3 * DAY), 9, {"age": "20", "sex": "f"}, -1)
    assert totals.changes_days == set()
    assert [row[1] for row in totals.rows()] == [other]


def test_outcomes_count_on_the_day_on_which_they_arrive() -> None:
    days = OutcomeDays()
    made = CountedDecision(7, 1, DAY, True, "pending", 100.0, 0.75)
    bad, good = made._replace(status="failure"), made._replace(status="success")
    days.change(2 * DAY, made, bad)
    days.change(5 * DAY, bad, good)
    days.change(5 * DAY, made._replace(amount=None), good._replace(amount=None))
    days.change(6 * DAY, made, good._replace(cost=None))
    days.change(8 * DAY, made, made._replace(status="expired"))
    days.change(9 * DAY, good, good)
    assert days.rows() == [(7, 2, 1, 0, 1, 0.0, 75.0), (7, 5, 1, 2, 0, 25.0, -75.0), (7, 6, 1, 1, 1, 100.0, 0.0)]


def test_counts_of_segments_are_added() -> None:
    both = SegmentCounts(1, 2, 3, 4, 5, 6.0).and_those(SegmentCounts(10, 20, 30, 40, 50, 60.0))
    assert both == SegmentCounts(11, 22, 33, 44, 55, 66.0)
