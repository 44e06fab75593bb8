"""Export all decisions to one CSV or Parquet file, with overrides and outcomes.

It contains no personal data. For an override it gives the role of the person, which the log holds anyway, and not the
reason.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection, select

from lenience.core.spreadsheets import harmless
from lenience.service.domain.answers import DecisionEntry
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import Decided, Decision, Imported, Observed, Overridden, read
from lenience.service.domain.imported_rows import imported_reason
from lenience.service.domain.reasons import overruled
from lenience.service.domain.state import realised_profit
from lenience.service.domain.statements import stated_counts
from lenience.service.storage import schema

if TYPE_CHECKING:
    import pyarrow

    from lenience.service.queries.reading import Filters, Queries

ROWS = 5_000  # decisions read in one transaction
AT_A_TIME = 200  # decisions whose events are read at once


class ExportRow(msgspec.Struct, frozen=True):
    """One decision. Add new columns at the end, so that the columns of earlier files keep their positions.

    ``decision`` is the decision in force, ``policy_decision`` the one that the policy made. ``rule``, ``limit``,
    ``probability`` and ``threshold`` are those of the policy. ``arrivals`` to ``failures``, ``cost`` and the belief are
    those before the decision was counted. ``outcome_at`` is the time when the outcome was first recorded.

    Where amounts differ, ``offer_amount``, ``cost`` and ``expected_profit`` are those of the offer that is made or
    rejected, ``label_value`` is the lower bound, and ``profit`` is what the outcome has earned.

    An ``imported`` decision has its own date in ``decided_at``, and the columns of a policy's computation are empty.
    ``reported`` is the interim status of a pending decision. ``outcome_date`` is the outcome's own date, if given.
    """

    id: str
    policy: str
    policy_version: int
    segment: str
    decision: Decision
    status: str
    decided_at: str
    arrivals: int
    pending: int
    successes: int
    failures: int
    rule: str
    limit: int | None
    probability: float | None
    threshold: float | None
    reason: str
    policy_decision: Decision
    overridden: bool
    overridden_at: str | None
    overridden_by: str | None
    outcome_at: str | None
    cost: float | None
    belief_n: float | None
    belief_s: float | None
    offers: int
    offer_amount: float | None
    expected_profit: float | None
    label_value: float | None
    profit: float | None
    imported: bool
    reported: str | None
    outcome_date: str | None


COLUMNS = ExportRow.__struct_fields__


def csv_parts(queries: Queries, filters: Filters) -> Iterator[bytes]:
    """Yield all decisions as CSV in parts, the heading first."""
    yield _csv_line(COLUMNS)
    for part in _parts(queries, filters):
        yield b"".join(_csv_line(msgspec.structs.astuple(line)) for line in part)


def parquet(queries: Queries, filters: Filters) -> bytes:
    """Return all decisions as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    schema_ = _parquet_schema()
    with pq.ParquetWriter(sink, schema_, compression="zstd") as writer:
        for part in _parts(queries, filters):
            writer.write_table(pa.Table.from_pylist([msgspec.structs.asdict(line) for line in part], schema=schema_))
    return sink.getvalue()


def _parts(queries: Queries, filters: Filters) -> Iterator[list[ExportRow]]:
    """Yield decisions in parts, each read in its own transaction."""
    after: str | None = None
    while True:
        with queries.store.read() as connection:
            rows = queries.rows(connection, filters, after, ROWS)
            names = queries.chain_names(connection, [row.chain_id for row in rows])
            part = [
                line
                for start in range(0, len(rows), AT_A_TIME)
                for line in _lines(queries, connection, rows[start : start + AT_A_TIME], names)
            ]
        if part:
            yield part
        if len(rows) < ROWS:
            return
        after = rows[-1].id


def _lines(
    queries: Queries, connection: Connection, rows: Sequence[Any], names: dict[int, tuple[int, str, str]]
) -> Iterator[ExportRow]:
    first = _decided(connection, rows)
    overrides, outcomes = _since(connection, [row.id for row in rows])
    for row in rows:
        entry, event, over = queries.entry(row, names), first[row.chain_id, row.seq], overrides.get(row.id)
        policy, _, segment = names[row.chain_id]
        offer = event.offer
        common: dict[str, Any] = {
            "overridden": over is not None and not over.review,
            "overridden_at": None if over is None else iso_time(over.at),
            "overridden_by": None if over is None else over.by,
            "profit": realised_profit(row.status, row.amount, row.cost),
            "outcome_date": None if row.outcome_at is None else iso_time(row.outcome_at)[:10],
        }
        if isinstance(event, Imported):
            yield _imported_line(event, entry, outcomes.get(row.id), over, common)
            continue
        rule = queries.registry.version(connection, policy, row.version).rules[segment]
        counts = stated_counts(event)
        belief = rule.table.belief(counts.good, counts.bad)
        yield ExportRow(
            **common,
            **{name: getattr(entry, name) for name in DecisionEntry.__struct_fields__},
            arrivals=event.arrivals,
            pending=event.pending,
            successes=event.successes,
            failures=event.failures,
            rule=event.rule,
            limit=event.limit,
            probability=event.probability,
            threshold=event.threshold,
            reason=event.reason if over is None else overruled(event.reason, over.by, over.choice, review=over.review),
            policy_decision=event.decision,
            outcome_at=outcomes.get(row.id),
            cost=rule.break_even if offer is None else offer.cost,
            belief_n=belief.n,
            belief_s=belief.s,
            offers=len(event.offers),
            offer_amount=None if offer is None else offer.amount,
            expected_profit=event.expected_profit,
            label_value=None if event.label_value is None else event.label_value.lower,
        )


def _imported_line(
    event: Imported, entry: DecisionEntry, outcome_at: str | None, over: Overridden | None, common: dict[str, Any]
) -> ExportRow:
    """Return the line of an imported decision."""
    reason = imported_reason(event)
    known = event.status in ("success", "failure")
    return ExportRow(
        **common,
        **{name: getattr(entry, name) for name in DecisionEntry.__struct_fields__},
        arrivals=event.arrivals,
        pending=event.pending,
        successes=event.successes,
        failures=event.failures,
        rule="imported",
        limit=None,
        probability=None,
        threshold=None,
        reason=reason if over is None else overruled(reason, over.by, over.choice),
        policy_decision=event.decision,
        outcome_at=outcome_at or (iso_time(event.at) if known else None),
        cost=None if event.offer is None else event.offer.cost,
        belief_n=None,
        belief_s=None,
        offers=0 if event.offer is None else 1,
        offer_amount=None if event.offer is None else event.offer.amount,
        expected_profit=None,
        label_value=None,
    )


def _decided(connection: Connection, rows: Sequence[Any]) -> dict[tuple[int, int], Decided | Imported]:
    """Return the events of the decisions themselves."""
    events = schema.event
    decided: dict[tuple[int, int], Decided | Imported] = {}
    for chain in {row.chain_id for row in rows}:
        where = (events.c.chain_id == chain) & events.c.seq.in_([row.seq for row in rows if row.chain_id == chain])
        for row in connection.execute(select(events.c.seq, events.c.body).where(where)):
            event = read(row.body)
            assert isinstance(event, Decided | Imported)
            decided[chain, row.seq] = event
    return decided


def _since(connection: Connection, identities: list[str]) -> tuple[dict[str, Overridden], dict[str, str]]:
    """Return the last override of each decision, and the time when its outcome was recorded."""
    events = schema.event
    query = select(events.c.body).where(events.c.about.in_(identities)).order_by(events.c.chain_id, events.c.seq)
    overrides: dict[str, Overridden] = {}
    outcomes: dict[str, str] = {}
    for body in connection.execute(query).scalars():
        event = read(body)
        if isinstance(event, Overridden):
            overrides[event.decision] = event
        elif isinstance(event, Observed):
            outcomes[event.decision] = iso_time(event.at)
    return overrides, outcomes


def _csv_line(values: Sequence[Any]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow([harmless(value) for value in values])
    return line.getvalue().encode()


def _parquet_schema() -> pyarrow.Schema:
    import pyarrow as pa

    integers = dict.fromkeys(("arrivals", "pending", "successes", "failures", "limit", "offers"), pa.int64())
    money = ("offer_amount", "expected_profit", "label_value", "profit")
    reals = dict.fromkeys(("probability", "threshold", "cost", "belief_n", "belief_s", *money), pa.float64())
    kinds = {"policy_version": pa.int32(), "overridden": pa.bool_(), "imported": pa.bool_(), **integers, **reals}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
