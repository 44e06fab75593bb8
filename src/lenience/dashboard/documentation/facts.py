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
from lenience.dashboard.documentation.backtests import BacktestFacts
from lenience.dashboard.documentation.characteristics import StopCurve, stop_curves
from lenience.dashboard.read_models.audits import FinishedAudit
from lenience.dashboard.read_models.monitored_decisions import read_monitored_decisions
from lenience.dashboard.read_models.policy_status import PolicyStatus, read_policy_status
from lenience.dashboard.read_models.profits import PolicyProfit, policy_profit
from lenience.dashboard.read_models.prospects import Prospect, Prospects
from lenience.service.domain.alerts import Alert
from lenience.service.domain.answers import PolicyView
from lenience.service.domain.clock import DAY, iso_time, now
from lenience.service.domain.monitoring import MonitoringReport
from lenience.service.domain.review_report import ReviewReport
from lenience.service.domain.rollout_comparison import RolloutComparison
from lenience.service.domain.shadow_comparison import ShadowComparison
from lenience.service.domain.specification import PolicySpecification
from lenience.service.queries.model_report import ModelReport
from lenience.service.queries.reading import Queries
from lenience.service.queries.rejections import RejectionsAnswer
from lenience.service.queries.rollouts import compare_rollout
from lenience.service.queries.shadow_versions import compare_shadows
from lenience.service.storage import schema
from lenience.service.storage.alert_states import read_alerts
from lenience.service.storage.log_tree import latest_checkpoint
from lenience.service.storage.monitored_rows import monitored_names
from lenience.service.storage.people import actor_names
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store

ACCEPTED = (schema.PENDING, schema.SUCCESS, schema.FAILURE, schema.EXPIRED)
PROSPECT_SECONDS = 20.0  # for the values of all segments


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
    monitoring: MonitoringReport
    rejections: RejectionsAnswer | None  # of the version that is active, or else the newest
    rollout: RolloutComparison | None
    reviews: ReviewReport
    alerts: Sequence[Alert]  # that have begun and not ended
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
        """The number of applicants whom versions of the policy decided. One that was decided again counts once."""
        return sum(count for status, count in self.statuses.items() if status != schema.REPLACED)

    @property
    def accepted(self) -> int:
        """The number of them who are accepted."""
        return sum(self.statuses.get(status, 0) for status in ACCEPTED)

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
    report, monitoring = reader.queries.report(name, number), reader.queries.monitoring(name, number)
    reviews = reader.queries.reviews(name)
    rejections: RejectionsAnswer | None = reader.queries.rejections(name)
    if rejections is not None and rejections.version != view.version:
        rejections = None
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
            monitoring=monitoring,
            reviews=reviews,
            rejections=rejections,
            rollout=compare_rollout(connection, record),
            alerts=[alert for alert in read_alerts(connection) if alert.policy == name],
            statuses=_statuses(connection, status),
            overrides=_overrides(connection, status),
            days=_days(connection, status),
            profit=policy_profit(connection, status),
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
