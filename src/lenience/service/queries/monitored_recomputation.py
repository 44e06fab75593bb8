"""Recompute the chain of a policy's monitored attributes, and compare the stored attributes with it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, select

from lenience.service.domain.events import Erased, Monitored, Repeated
from lenience.service.domain.monitored import MonitoredValues
from lenience.service.queries.recomputation import AT_A_TIME, Report, walk
from lenience.service.queries.totals_check import check_monitored_totals
from lenience.service.storage import schema
from lenience.service.storage.daily_totals import CountedDecision
from lenience.service.storage.monitored_rows import read_monitored
from lenience.service.storage.monitored_totals import MonitoredTotals

MOST_MISSING = 10  # that are reported


class PolicyDecisions:
    """The ids of the decisions of a policy, whose rows are compared with the log of their segments."""

    def __init__(self, connection: Connection, chains: Sequence[int]) -> None:
        self._connection, self._chains = connection, chains

    def __contains__(self, decision: object) -> bool:
        table = schema.decision
        chain = self._connection.execute(select(table.c.chain_id).where(table.c.id == decision)).scalar_one_or_none()
        return chain in self._chains

    def all(self) -> set[str]:
        """Return all of them."""
        table = schema.decision
        return set(self._connection.execute(select(table.c.id).where(table.c.chain_id.in_(self._chains))).scalars())


@dataclass(slots=True)
class MonitoredRecomputation:
    """The recomputation of a chain of monitored attributes."""

    label: str
    decisions: Container[str]  # of the policy
    report: Report
    segments: Mapping[int, str] = field(default_factory=dict)  # a label for the chain of each segment
    expected: dict[str, str] = field(default_factory=dict)  # the latest commitment of each decision
    length: int = 0
    head: str = ""

    def run(self, connection: Connection, chain: int, start: str, after: int = 0) -> None:
        """Recompute every event of the chain, and compare the rows with it.

        With ``after``, recompute the events after this one, whose hash is ``start``, and compare the rows of their
        decisions.
        """
        self.length, self.head = after, start
        touched: set[str] = set()
        for seq, digest, event, _ in walk(connection, chain, start, self.label, self.report, after):
            self.length, self.head = seq, digest
            where = f"event {seq} of {self.label}"
            touched.add(getattr(event, "decision", ""))
            if isinstance(event, Monitored):
                if event.decision not in self.decisions:
                    self.report(where, f"the policy has no decision {event.decision}")
                if event.names:
                    self.expected[event.decision] = event.personal
                else:
                    self.expected.pop(event.decision, None)
            elif isinstance(event, Erased):
                if self.expected.pop(event.decision, None) is None and not after:
                    self.report(where, f"the decision {event.decision} has no monitored attributes to erase")
            elif not isinstance(event, Repeated):
                self.report(where, f"a {type(event).__name__} event does not belong in this chain")
        if after:
            self._check_some(connection, touched)
        else:
            self._check_rows(connection, chain)

    def _check_some(self, connection: Connection, decisions: Iterable[str]) -> None:
        """Compare the rows of some decisions."""
        some = sorted(decisions)
        for begin in range(0, len(some), 500):
            stored = read_monitored(connection, some[begin : begin + 500])
            for decision in some[begin : begin + 500]:
                data = stored.get(decision)
                if (None if data is None else data.commitment) != self.expected.get(decision):
                    where = f"monitored attributes of decision {decision}"
                    self.report(where, "they differ from what the log commits to")

    def _check_rows(self, connection: Connection, chain: int) -> None:
        missing = dict(self.expected)
        totals = MonitoredTotals()
        for decision, rows in _by_decision(connection, chain):
            _, _, _, salt, segment_chain, version, at, accepted, status, amount, cost = rows[0]
            digest = missing.pop(decision, None)
            data = MonitoredValues(salt, {row[1]: row[2] for row in rows})
            if digest is None:
                where = f"monitored attributes of decision {decision}"
                self.report(where, "no event commits to them, or they should have been erased")
            elif any(row[3] != salt for row in rows) or data.commitment != digest:
                self.report(f"monitored attributes of decision {decision}", "they differ from what the log commits to")
            if segment_chain is not None:  # its row is compared with the log of its segment
                made = CountedDecision(segment_chain, version, at, bool(accepted), status, amount, cost)
                totals.count(made, chain, data.values)
        for decision in sorted(missing)[:MOST_MISSING]:
            where = f"monitored attributes of decision {decision}"
            self.report(where, "they are missing, but were not erased on request")
        check_monitored_totals(connection, chain, self.segments, totals, self.report)


def _by_decision(connection: Connection, chain: int) -> Iterator[tuple[str, list[Any]]]:
    table, decisions = schema.monitored, schema.decision
    own = (decisions.c.chain_id, decisions.c.version, decisions.c.at, decisions.c.accepted, decisions.c.status)
    query = (
        select(table.c.decision, table.c.name, table.c.value, table.c.salt, *own, decisions.c.amount, decisions.c.cost)
        .outerjoin(decisions, decisions.c.id == table.c.decision)
        .where(table.c.chain_id == chain)
        .order_by(table.c.decision, table.c.name)
    )
    rows = connection.execute(query.execution_options(yield_per=AT_A_TIME))
    for decision, some in groupby(rows, key=itemgetter(0)):
        yield decision, list(some)
