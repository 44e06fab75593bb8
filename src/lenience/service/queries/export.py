"""All decisions in one file, CSV or Parquet: as the policy decided, as a person decided otherwise, and what came of it.

Nothing personal is in it: of an override only who decided it by role, which the log holds anyway, and not the reason.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection, select

from lenience.service.domain.answers import DecisionEntry
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import Choice, Decided, Observed, Overridden, read
from lenience.service.domain.reasons import overruled
from lenience.service.storage import schema

if TYPE_CHECKING:
    import pyarrow

    from lenience.service.queries.reading import Filters, Queries

ROWS = 5_000  # decisions read in one transaction
AT_A_TIME = 200  # whose events are asked for at once


class ExportRow(msgspec.Struct, frozen=True):
    """One decision. New columns go to the end: files of before keep their places.

    ``decision`` is what holds, ``policy_decision`` what the policy said; ``rule``, ``limit``, ``probability`` and
    ``threshold`` are the policy's. ``arrivals`` to ``failures``, ``cost`` and the belief are as they were at the
    decision, before it counted itself. ``outcome_at`` is when the outcome was first recorded.
    """

    id: str
    policy: str
    policy_version: int
    segment: str
    decision: Choice
    status: str
    decided_at: str
    arrivals: int
    pending: int
    successes: int
    failures: int
    rule: str
    limit: int | None
    probability: float
    threshold: float
    reason: str
    policy_decision: Choice
    overridden: bool
    overridden_at: str | None
    overridden_by: str | None
    outcome_at: str | None
    cost: float
    belief_n: float
    belief_s: float


COLUMNS = ExportRow.__struct_fields__


def csv_parts(queries: Queries, filters: Filters) -> Iterator[bytes]:
    """All decisions as CSV, a part at a time, the heading first."""
    yield _csv_line(COLUMNS)
    for part in _parts(queries, filters):
        yield b"".join(_csv_line(msgspec.structs.astuple(line)) for line in part)


def parquet(queries: Queries, filters: Filters) -> bytes:
    """All decisions as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    schema_ = _parquet_schema()
    with pq.ParquetWriter(sink, schema_, compression="zstd") as writer:
        for part in _parts(queries, filters):
            writer.write_table(pa.Table.from_pylist([msgspec.structs.asdict(line) for line in part], schema=schema_))
    return sink.getvalue()


def _parts(queries: Queries, filters: Filters) -> Iterator[list[ExportRow]]:
    """Some decisions after the other; each part is a transaction of its own."""
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
        table = queries.registry.version(connection, policy, row.version).rules[segment].table
        seen = event.successes + event.failures
        yield ExportRow(
            **{name: getattr(entry, name) for name in DecisionEntry.__struct_fields__},
            arrivals=event.arrivals,
            pending=event.pending,
            successes=event.successes,
            failures=event.failures,
            rule=event.rule,
            limit=event.limit,
            probability=event.probability,
            threshold=event.threshold,
            reason=event.reason if over is None else overruled(event.reason, over.by, over.choice),
            policy_decision=event.decision,
            overridden=over is not None,
            overridden_at=None if over is None else iso_time(over.at),
            overridden_by=None if over is None else over.by,
            outcome_at=outcomes.get(row.id),
            cost=table.cost,
            belief_n=table.prior.n + seen,
            belief_s=table.prior.s + event.successes,
        )


def _decided(connection: Connection, rows: Sequence[Any]) -> dict[tuple[int, int], Decided]:
    """The events of the decisions themselves."""
    events = schema.event
    decided: dict[tuple[int, int], Decided] = {}
    for chain in {row.chain_id for row in rows}:
        where = (events.c.chain_id == chain) & events.c.seq.in_([row.seq for row in rows if row.chain_id == chain])
        for row in connection.execute(select(events.c.seq, events.c.body).where(where)):
            event = read(row.body)
            assert isinstance(event, Decided)
            decided[chain, row.seq] = event
    return decided


def _since(connection: Connection, identities: list[str]) -> tuple[dict[str, Overridden], dict[str, str]]:
    """What came after decisions: the last override of each, and when its outcome was recorded."""
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
    csv.writer(line).writerow([_harmless(value) for value in values])
    return line.getvalue().encode()


def _harmless(value: Any) -> Any:
    """A spreadsheet runs what begins like a formula; a quote before it makes it text. Truths as JSON has them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _parquet_schema() -> pyarrow.Schema:
    import pyarrow as pa

    whole = dict.fromkeys(("arrivals", "pending", "successes", "failures", "limit"), pa.int64())
    real = dict.fromkeys(("probability", "threshold", "cost", "belief_n", "belief_s"), pa.float64())
    kinds = {"policy_version": pa.int32(), "overridden": pa.bool_(), **whole, **real}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
