"""Everything that the documentation pack of a policy says, read from one database.

Nothing here is text for the reader: :mod:`lenience.dashboard.documentation.pack` and the chapters turn it into text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec
from sqlalchemy import Connection, func, select

from lenience.analysis.monitored_groups import MonitoredGroups, measure_groups
from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.dashboard.documentation.backtests import BacktestFacts
from lenience.dashboard.documentation.characteristics import StopCurve, stop_curves
from lenience.dashboard.read_models.audits import FinishedAudit
from lenience.dashboard.read_models.monitored_decisions import read_monitored_decisions
from lenience.dashboard.read_models.policy_status import PolicyStatus, read_policy_status
from lenience.dashboard.read_models.profits import PolicyProfit, ProfitCache
from lenience.dashboard.read_models.prospects import Prospect, Prospects
from lenience.service.domain.answers import PolicyView
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.shadow_comparison import ShadowComparison
from lenience.service.domain.specification import PolicySpecification
from lenience.service.domain.version_estimates import estimate_under
from lenience.service.queries.model_report import ModelReport
from lenience.service.queries.reading import Queries
from lenience.service.queries.shadow_versions import compare_shadows
from lenience.service.storage import schema
from lenience.service.storage.latest_decisions import latest_decisions
from lenience.service.storage.log_tree import latest_checkpoint
from lenience.service.storage.monitored_rows import monitored_names
from lenience.service.storage.people import actor_names
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store

PROSPECT_SECONDS = 20.0  # for the values of all segments
LATEST = 10_000  # decisions whose outcomes are compared with what was expected, by period
DAY = 86_400 * 1_000_000  # microseconds
CONFIDENCE = 0.9
MONTHS_FROM, WEEKS_FROM = 75, 15  # days that the decisions span, from which periods are months or weeks


class Reader(Protocol):
    """What reads the database: a service, or a store that the command line opened."""

    @property
    def store(self) -> Store:
        """The database."""

    @property
    def registry(self) -> PolicyCache:
        """Its policies."""

    @property
    def queries(self) -> Queries:
        """Its queries."""


class DatabaseReader:
    """A reader of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.registry = PolicyCache()
        self.queries = Queries(store, self.registry)


class Vintage(NamedTuple):
    """Acceptances of a period: how many, known outcomes, and the expected and the observed success rate of these."""

    period: str
    accepted: int
    outcomes: int
    expected: float
    observed: float
    interval: Bounds


class LogCheckpoint(NamedTuple):
    """The newest signed checkpoint of the log: its number of events, its time and its text."""

    size: int
    at: str
    note: str


class PackFacts(msgspec.Struct, frozen=True):
    """What the pack says about one version of a policy."""

    status: PolicyStatus
    view: PolicyView
    specifications: Mapping[int, PolicySpecification]  # of all versions
    names: Mapping[str, str]  # of actors
    report: ModelReport
    prospects: Mapping[str, Prospect]
    curves: Sequence[StopCurve]
    shadows: Sequence[ShadowComparison]
    monitored: Sequence[MonitoredGroups]
    vintages: Sequence[Vintage]
    statuses: Mapping[str, int]  # own decisions by status
    overrides: int
    days: float  # from the first to the last of its own decisions
    profit: PolicyProfit | None
    audit: FinishedAudit | None
    checkpoint: LogCheckpoint | None
    written_at: str
    served: bool  # False for a policy file that no service uses yet
    source: str  # the database or file that the facts come from
    backtest: BacktestFacts | None = None

    @property
    def specification(self) -> PolicySpecification:
        """The specification of the version."""
        return self.status.version.specification

    @property
    def number(self) -> int:
        """The number of the version."""
        return self.status.version.number

    @property
    def decided(self) -> int:
        """The number of decisions that versions of the policy made."""
        return sum(self.statuses.values())

    def name(self, actor: str | None) -> str:
        """Return the name of an actor of the log."""
        return "nobody yet" if actor is None else self.names.get(actor, actor)


def read_pack_facts(
    reader: Reader,
    name: str,
    number: int | None = None,
    *,
    audit: FinishedAudit | None = None,
    backtest: BacktestFacts | None = None,
    served: bool = True,
    source: str = "",
) -> PackFacts:
    """Read what the pack says.

    Parameters
    ----------
    reader : Reader
        The database.
    name : str
        The policy.
    number : int, optional
        The version; by default the active one, or else the newest.
    audit : FinishedAudit, optional
        The result of an audit of the log.
    backtest : BacktestFacts, optional
        The result of a back-test on a file.
    served : bool, default True
        Whether the database is that of a service, and not one made for a policy file.
    source : str, optional
        The database or file, in words.
    """
    view = reader.queries.policy(name, number)
    report = reader.queries.report(name, number)
    with reader.store.read() as connection:
        status = read_policy_status(reader, connection, name, number)
        record = status.record
        versions = {each: reader.registry.version(connection, record.id, each) for each in record.states}
        actors = [change.by for one in view.versions for change in one.changes]
        actors += [one.created_by for one in view.versions if one.created_by is not None]
        checkpoint = latest_checkpoint(connection)
        return PackFacts(
            status=status,
            view=view,
            specifications={each: version.specification for each, version in versions.items()},
            names=actor_names(connection, actors + [one.imported_by for one in view.imports]),
            report=report,
            prospects=Prospects().of(status.segments, PROSPECT_SECONDS),
            curves=stop_curves(status),
            shadows=compare_shadows(connection, record),
            monitored=_monitored(connection, status),
            vintages=_vintages(connection, status),
            statuses=_statuses(connection, status),
            overrides=_overrides(connection, status),
            days=_days(connection, status),
            profit=ProfitCache().of(connection, status),
            audit=audit,
            checkpoint=None
            if checkpoint is None
            else LogCheckpoint(checkpoint.size, iso_time(checkpoint.at), checkpoint.note),
            written_at=iso_time(now()),
            served=served,
            source=source,
            backtest=backtest,
        )


def _monitored(connection: Connection, status: PolicyStatus) -> list[MonitoredGroups]:
    """Measure the decisions by each monitored attribute."""
    rates = {segment.name: (segment.belief.mean, segment.belief.variance) for segment in status.segments}
    results = []
    for attribute in monitored_names(connection, status.record.monitored):
        counted = read_monitored_decisions(connection, status, (attribute,))
        results.append(measure_groups(counted.cells, counted.attributes, counted.first_accepted, rates))
    return results


def _vintages(connection: Connection, status: PolicyStatus) -> list[Vintage]:
    """Compare expected with observed success of the accepted, by the period of their decision, the oldest first."""
    version = status.version
    accepted: list[tuple[int, float, bool | None]] = []
    for one in latest_decisions(connection, status.record.segments, LATEST):
        estimate = estimate_under(version.number, version.rules, one.segment, one.event)
        if estimate is not None and one.event.decision == "accept":
            accepted.append((one.event.at, estimate.mean, one.success))
    if not accepted:
        return []
    days = (accepted[0][0] - accepted[-1][0]) / DAY
    groups: dict[str, list[tuple[float, bool | None]]] = {}
    for at, mean, success in reversed(accepted):
        groups.setdefault(period_of(at, days), []).append((mean, success))
    vintages = []
    for period, rows in groups.items():
        known = [(mean, success) for mean, success in rows if success is not None]
        good = sum(success for _, success in known)
        expected = sum(mean for mean, _ in known) / len(known) if known else 0.0
        interval = Belief(1 + len(known), 0.5 + good).interval(CONFIDENCE)
        observed = good / len(known) if known else 0.0
        vintages.append(Vintage(period, len(rows), len(known), expected, observed, interval))
    return vintages


def period_of(at: int, days: float) -> str:
    """Return the period of a moment: its month, week or day, by the number of days that all moments span.

    >>> at = 1_700_000_000_000_000
    >>> period_of(at, 400), period_of(at, 30), period_of(at, 3)
    ('2023-11', 'week of 2023-11-13', '2023-11-14')
    """
    day = iso_time(at)[:10]
    if days >= MONTHS_FROM:
        return day[:7]
    if days < WEEKS_FROM:
        return day
    monday = at - (at // DAY + 3) % 7 * DAY  # 1970-01-01 was a Thursday
    return f"week of {iso_time(monday)[:10]}"


def _statuses(connection: Connection, status: PolicyStatus) -> Counter[str]:
    """Count the policy's own decisions by status."""
    table = schema.decision
    chains = [segment.chain for segment in status.segments]
    query = select(table.c.status, func.count()).where(table.c.chain_id.in_(chains), table.c.source.is_(None))
    return Counter({row[0]: int(row[1]) for row in connection.execute(query.group_by(table.c.status))})


def _overrides(connection: Connection, status: PolicyStatus) -> int:
    """Count the overrides by people."""
    table = schema.event
    chains = [segment.chain for segment in status.segments]
    query = select(func.count()).where(table.c.chain_id.in_(chains), table.c.body.startswith('{"kind":"override"'))
    return int(connection.execute(query).scalar_one())


def _days(connection: Connection, status: PolicyStatus) -> float:
    """Return the days from the first to the last of the policy's own decisions."""
    table = schema.decision
    chains = [segment.chain for segment in status.segments]
    query = select(func.min(table.c.at), func.max(table.c.at)).where(
        table.c.chain_id.in_(chains), table.c.source.is_(None)
    )
    first, last = connection.execute(query).one()
    return 0.0 if first is None else (last - first) / DAY
