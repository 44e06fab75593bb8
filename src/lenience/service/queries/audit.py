"""Audit: recompute the whole log and compare it with every row of every table.

A passed audit shows that each chain is unbroken. Each decision is the one that its policy version makes from the counts
of the events before it. Each belief and pending count equals the recomputed one. Versions, solved tables, personal
data, stored answers and keys match what the log committed to. The audit cannot detect a chain whose end was cut off
together with everything that depends on it. To detect that, keep the heads of an audit elsewhere and pass them as
``expected`` next time.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from lenience.service.domain.capacity_price import price_differences
from lenience.service.domain.chain import genesis, monitored_genesis
from lenience.service.domain.events import (
    ImportStarted,
    KeyCreated,
    KeyRevoked,
    Learned,
    PolicyCreated,
    Repeated,
    RowsImported,
    StateChanged,
    UseChanged,
    VersionCreated,
    WebhookCreated,
    WebhookRemoved,
    readable_event,
)
from lenience.service.domain.fair_version import fairness_differences
from lenience.service.domain.open_loans import encode_open_loans
from lenience.service.domain.problems import Damaged, NotFound
from lenience.service.domain.receipts import receipt_digest
from lenience.service.domain.rule import Counts
from lenience.service.domain.signed_note import Checkpoint
from lenience.service.domain.specification import ONLY_SEGMENT
from lenience.service.domain.version_warnings import proved_segments
from lenience.service.queries.audit_workers import (
    AuditWorkers,
    MonitoredTask,
    OtherTask,
    SegmentTask,
    Task,
    TaskResult,
    open_workers,
    usable_workers,
)
from lenience.service.queries.imported_tally import ImportedTally
from lenience.service.queries.incremental import CheckedLog
from lenience.service.queries.log_tree_check import check_log_tree
from lenience.service.queries.model_recomputation import ModelRecomputation
from lenience.service.queries.monitored_recomputation import MonitoredRecomputation, PolicyDecisions
from lenience.service.queries.overall_recomputation import OverallRecomputation
from lenience.service.queries.recomputation import (
    ReportedDamage,
    SegmentRecomputation,
    damage_of,
    describe_differences,
    walk,
)
from lenience.service.queries.referral_recomputation import ReferralRecomputation
from lenience.service.queries.rollout_recomputation import RolloutRecomputation
from lenience.service.queries.shadow_recomputation import OwnChains
from lenience.service.queries.totals_check import known_chains
from lenience.service.storage import schema
from lenience.service.storage.integrity import check_sqlite, count_rows, table_names
from lenience.service.storage.log_tree import LogTree
from lenience.service.storage.policy_cache import PolicyCache, Version
from lenience.service.storage.store import Store

MOST_FINDINGS = 100
MOST_FOLLOWING = 20  # findings caused by another finding
MOST_COLLECTED = 10_000  # findings of one task
HEAVIEST, LIGHTEST = 1 << 62, 0  # weights of tasks


class Finding(msgspec.Struct, frozen=True):
    """A discrepancy and where it is."""

    where: str
    what: str


class Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """The head of a chain."""

    policy: str | None
    segment: str | None
    length: int
    hash: str
    monitored: bool = False  # of the chain of a policy's monitored attributes

    @property
    def chain(self) -> tuple[str | None, str | None, bool]:
        """The chain that it is the head of."""
        return self.policy, self.segment, self.monitored


class AuditReport(msgspec.Struct, frozen=True):
    """The result of an audit."""

    database: str
    whole: bool
    chains: int
    events: int
    decisions: int
    findings: list[Finding]
    heads: list[Head]
    digest: str  # of all heads
    labels_not_recomputed: int = 0  # labels of models whose features were erased; their stored states were checked
    decisions_not_recomputed: int = 0  # decisions that rest on features which were erased
    assignments_not_recomputed: int = 0  # decisions of a rollout whose reference was erased
    log_size: int = 0  # events in the tree of the log, with its root: a later audit can start there
    log_root: str = ""
    since: int = 0  # events of the checkpoint from which an incremental audit started

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The state of the log that a clean audit has checked, or None."""
        if not self.whole or not self.log_size or not re.fullmatch(r"[0-9a-f]{64}", self.log_root):
            return None
        return Checkpoint(self.database, self.log_size, bytes.fromhex(self.log_root), "an earlier audit")


def audit(
    store: Store,
    expected: list[Head] | None = None,
    held: Sequence[Checkpoint] = (),
    workers: int | None = 1,
    since: Checkpoint | None = None,
) -> AuditReport:
    """Recompute the log of a database, and report all damage.

    Parameters
    ----------
    store : Store
        The database.
    expected : list of Head, optional
        Heads of an earlier audit that must still be in the log.
    held : sequence of Checkpoint, optional
        Checkpoints that somebody else holds, after their signatures were verified. The log must begin with them.
    workers : int, optional
        How many processes recompute a long log. None is one for each core. A script that uses several must be one
        that a new process can import, with ``if __name__ == "__main__"``.
    since : Checkpoint, optional
        A state of the log that was audited before. Only what came after it is recomputed.

    Returns
    -------
    AuditReport
        The findings and the heads of all chains.

    Raises
    ------
    InputError
        If the schema is not the one that this software needs.
    """
    report: AuditReport | None = None
    try:
        store.check_schema()
        with store.read() as connection:
            events = int(connection.execute(select(func.sum(schema.chain.c.length))).scalar() or 0)
        number = 1 if since is not None else usable_workers(workers, events)
        opened = open_workers(store, number) if number > 1 else None
        if opened is None:
            with store.read() as connection:
                report = _Audit(connection, store.name, held, since=since).run(expected or [])
        else:
            processes, context, connection = opened
            try:
                with context_of(context):
                    report = _Audit(connection, store.name, held, processes).run(expected or [])
            finally:
                processes.close()
    except Damaged as problem:  # even the end of the transaction can fail
        if report is None or report.whole:
            findings = [Finding("the database", problem.detail)]
            report = AuditReport(store.name, False, 0, 0, 0, findings, [], sha256(b"[]").hexdigest())
    return report


@contextmanager
def context_of(context: AbstractContextManager[Connection]) -> Iterator[None]:
    """End a transaction that has begun already."""
    try:
        yield
    except BaseException as error:
        if not context.__exit__(type(error), error, error.__traceback__):
            raise
    else:
        context.__exit__(None, None, None)


class _StoredAudit(msgspec.Struct):
    """The result of an audit, as the dashboard stores it."""

    report: AuditReport | None = None


def last_clean_audit(store: Store) -> Checkpoint | None:
    """Return the state of the log that the last audit of the dashboard has checked, or None if it had findings.

    Somebody who can write the database can change it.
    """
    with store.read() as connection:
        text = connection.execute(select(schema.audited.c.found)).scalar_one_or_none()
    try:
        report = None if text is None else msgspec.json.decode(text, type=_StoredAudit).report
    except msgspec.MsgspecError:
        return None
    return None if report is None else report.checkpoint


def audit_connection(connection: Connection, name: str) -> AuditReport:
    """Recompute the log as a transaction sees it, e.g. before it is committed."""
    return _Audit(connection, name).run([])


@dataclass(slots=True)
class PolicyAudit:
    """A policy whose own chain is recomputed, and the tasks for its other chains."""

    id: int
    name: str
    chain: int
    versions: dict[int, Version]
    segments: set[str]  # that a version has
    revision: int
    active: int | None
    batches: dict[int, ImportedTally]
    overall: OverallRecomputation
    models: ModelRecomputation
    rollouts: RolloutRecomputation
    referrals: ReferralRecomputation
    own_chains: OwnChains
    tasks: list[tuple[SegmentTask, Callable[[], Any]]] = field(default_factory=list)
    monitored: Callable[[], Any] | None = None

    @property
    def shares_state(self) -> bool:
        """Whether its segments share counters, referrals or models, so that they cannot be recomputed apart."""
        versions = self.versions.values()
        return (
            self.overall.in_use
            or bool(self.models.starts)
            or any(one.overall is not None or one.live is not None or one.referral is not None for one in versions)
        )


class SegmentResult(NamedTuple):
    """What the events of a segment's chain give."""

    decisions: int
    counts: Counts
    length: int
    head: str
    open_loans: str | None
    imported: dict[int, ImportedTally]
    not_recomputed: int  # decisions of a rollout whose reference was erased
    shadow_segments: str | None = None  # counts for versions by segments in shadow of one by features
    partly: bool = False  # whether only the events since a checkpoint were recomputed


class _Audit:
    def __init__(
        self,
        connection: Connection,
        name: str,
        held: Sequence[Checkpoint] = (),
        processes: AuditWorkers | None = None,
        since: Checkpoint | None = None,
    ) -> None:
        self.since = since
        self.checked: CheckedLog | None = None  # the events that are known already
        self.connection = connection
        self.processes = processes
        self.held = held
        self.name = name
        self.registry = PolicyCache()
        self.findings: list[Finding] = []
        self.heads: list[Head] = []
        self.decisions = 0
        self.not_recomputed = [0, 0, 0]  # labels and decisions whose features were erased, and erased references
        self.followed = 0
        self.tables: set[str] = set()
        self.known_chains: set[int] = set()
        self.segment_chains: set[int] = set()
        self.monitored_chains: set[int] = set()
        self.known_policies: set[int] = set()
        self.sqlite = connection.dialect.name == "sqlite"

    def report(self, where: str, what: str) -> None:
        """Add a finding, up to a limit."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(where, what))

    def follows(self, where: str, what: str) -> None:
        """Add a finding that another one has caused. Only the first few are listed, the others are counted."""
        self.followed += 1
        if self.followed <= MOST_FOLLOWING:
            self.report(where, what)

    def run(self, expected: list[Head]) -> AuditReport:
        """Check that the database can be read in full, then recompute everything."""
        with self._reading_any_text():
            return self._run(expected)

    @contextmanager
    def _reading_any_text(self) -> Iterator[None]:
        """Read texts of SQLite even if they are not UTF-8, so that their hash reports them with their place."""
        raw = self.connection.connection.driver_connection
        if not isinstance(raw, sqlite3.Connection):
            yield
            return
        before = raw.text_factory
        raw.text_factory = partial(str, encoding="utf-8", errors="replace")  # faster than a function of Python
        try:
            yield
        finally:
            raw.text_factory = before

    @contextmanager
    def _reporting(self, where: str) -> Iterator[None]:
        """Report what cannot be read in this block, and go on after it."""
        savepoint = None if self.sqlite else self.connection.begin_nested()
        try:
            yield
        except (ReportedDamage, DBAPIError, sqlite3.DatabaseError) as error:
            if savepoint is not None and not (isinstance(error, DBAPIError) and error.connection_invalidated):
                savepoint.rollback()
            if not isinstance(error, ReportedDamage):
                damage = damage_of(error)
                if damage is None:
                    raise
                self.report(where, f"it cannot be read: {damage}")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # SQLite stores any type in any column, so a changed row can hold anything.
            if savepoint is not None:
                savepoint.rollback()
            self.report(where, f"it holds a value of the wrong kind ({type(error).__name__})")
        else:
            if savepoint is not None:
                savepoint.commit()

    def _begin(self, task: Task, weight: int) -> Callable[[], Any]:
        """Begin a task in another process, if there are any. Return a function that ends it and returns its result."""
        if self.processes is None:
            return lambda: self.perform(task)
        future = self.processes.submit(task, weight)

        def end() -> Any:
            try:
                result = future.result()
            except (EOFError, OSError):  # the process was ended, e.g. for lack of memory
                return self.perform(task)
            for caused, where, what in result.findings:
                (self.follows if caused else self.report)(where, what)
            return result.value

        return end

    def perform(self, task: Task) -> Any:
        """Do a task in this process."""
        if isinstance(task, SegmentTask):
            return self._segment(task)
        if isinstance(task, MonitoredTask):
            return self._monitored(task)
        if task.kind == "integrity":
            self._integrity()
        elif task.kind == "receipts":
            with self._reporting("the stored answers"):
                self._receipts()
        else:
            with self._reporting("the tree of the log"):
                check_log_tree(self.connection, self.report, task.held)
        return None

    def _run(self, expected: list[Head]) -> AuditReport:
        integrity = self._begin(OtherTask("integrity"), HEAVIEST)
        receipts = self._begin(OtherTask("receipts"), LIGHTEST)
        tree = self._begin(OtherTask("tree", tuple(self.held)), HEAVIEST)
        if self.since is not None:
            with self._reporting("the tree of the log"):
                checked = CheckedLog(self.connection, self.since, self.report)
                self.checked = checked if checked.holds else None
        elif self.processes is None:
            integrity()
        with self._reporting("the solved tables"):
            self._solved()
        policies: dict[str, int] = {}
        with self._reporting("the system's log"):
            policies = self._system()
        begun: list[PolicyAudit] = []
        with self._reporting("the policies"):
            for row in self.connection.execute(select(schema.policy).order_by(schema.policy.c.id)).all():
                self.known_policies.add(row.id)
                created = policies.pop(row.name, None)
                if created is None:
                    self.report(f"policy {row.name!r}", "it is not in the log of the system")
                elif created != row.created_at:
                    self.report(f"policy {row.name!r}", "its creation time differs from the log")
                with self._reporting(f"policy {row.name!r}"):
                    policy = self._begin_policy(row)
                    if policy is not None:
                        begun.append(policy)
        for policy in begun:
            with self._reporting(f"policy {policy.name!r}"):
                self._end_policy(policy)
        if self.processes is not None:
            integrity()
        for name in policies:
            self.report(f"policy {name!r}", "it is in the log of the system, but its row is missing")
        if self.followed > MOST_FOLLOWING:
            more = f"and {self.followed - MOST_FOLLOWING:,} more like these, for the versions named above"
            self.report("decisions", more)
        with self._reporting("rows without a policy"):
            self._strays()
        receipts()
        with self._reporting("the heads of an earlier audit"):
            self._expected(expected)
        if self.since is None:
            tree()
        size, root = self._tree_now()
        ordered = sorted(self.heads, key=lambda head: (head.policy or "", head.segment or "", head.monitored))
        return AuditReport(
            database=self.name,
            whole=not self.findings,
            chains=len(ordered),
            events=sum(head.length for head in ordered),
            decisions=self.decisions,
            findings=self.findings,
            heads=ordered,
            digest=sha256(msgspec.json.encode(ordered)).hexdigest(),
            labels_not_recomputed=self.not_recomputed[0],
            decisions_not_recomputed=self.not_recomputed[1],
            assignments_not_recomputed=self.not_recomputed[2],
            log_size=size,
            log_root=root,
            since=0 if self.since is None else self.since.size,
        )

    def _tree_now(self) -> tuple[int, str]:
        """Return the size and the root of the log's tree. Of a damaged log there is none."""
        if self.findings:
            return 0, ""
        tree = LogTree(self.connection)
        return tree.size, tree.root().hex() if tree.size else ""

    def _integrity(self) -> None:
        """Report the damage that the database finds itself, and rows that only a table or only an index has."""
        with self._reporting("the database file"):
            if self.sqlite:
                for damage in check_sqlite(self.connection, quick=False):
                    self.report(damage.where, f"the file is damaged ({damage.what})")
        for table in table_names(self.connection):
            with self._reporting(f"table {table}"):
                for damage in count_rows(self.connection, table):
                    self.report(damage.where, damage.what)

    def _solved(self) -> None:
        query = select(schema.solved)
        for row in self.connection.execute(query.execution_options(yield_per=20)):
            if sha256(str(row.body).encode()).hexdigest() != row.digest:
                self.report(f"solved table {row.digest}", "its content does not match its digest")
            else:
                self.tables.add(row.digest)

    def _system(self) -> dict[str, int]:
        """Recompute the system's chain, and return the policies that must exist."""
        policies: dict[str, int] = {}
        keys: dict[str, tuple[Any, ...]] = {}
        webhooks: dict[str, tuple[Any, ...]] = {}
        label = "the system's log"
        length, head = 0, genesis(None, None)
        for seq, digest, event, _ in walk(self.connection, schema.SYSTEM_CHAIN, head, label, self.report):
            length, head = seq, digest
            if isinstance(event, PolicyCreated):
                policies[event.name] = event.at
            elif isinstance(event, KeyCreated):
                keys[event.id] = (event.label, event.secret_hash, event.roles, event.at, event.expires_at, None)
            elif isinstance(event, KeyRevoked) and event.id in keys:
                keys[event.id] = (*keys[event.id][:5], event.at)
            elif isinstance(event, WebhookCreated):
                webhooks[event.id] = (event.address, " ".join(event.kinds), event.at)
            elif isinstance(event, WebhookRemoved):
                webhooks.pop(event.id, None)
            elif not isinstance(event, Repeated):
                self.report(f"event {seq} of {label}", f"a {type(event).__name__} event does not belong in this chain")
        self._check_chain(schema.SYSTEM_CHAIN, None, None, length, head, Counts(), 0)
        for row in self.connection.execute(select(schema.api_key)).all():
            if keys.pop(row.id, None) != tuple(row)[1:]:
                self.report(f"key {row.id}", "its row differs from the log")
        for identity in keys:
            self.report(f"key {identity}", "it is in the log, but its row is missing")
        for row in self.connection.execute(select(schema.webhook)).all():
            stored = (sha256(str(row.url).encode()).hexdigest(), row.kinds, row.created_at)
            if webhooks.pop(row.id, None) != stored:
                self.report(f"webhook {row.id}", "its row differs from the log")
        for identity in webhooks:
            self.report(f"webhook {identity}", "it is in the log, but its row is missing")
        return policies

    def _begin_policy(self, row: Any) -> PolicyAudit | None:
        """Recompute a policy's own chain, and begin to recompute those of its segments."""
        chains = self.connection.execute(select(schema.chain).where(schema.chain.c.policy_id == row.id)).all()
        own = [chain for chain in chains if chain.segment is None]
        label = f"policy {row.name!r}"
        if len(own) != 1:
            self.report(label, "it must have exactly one chain of its own")
            return None
        self.known_chains.update(chain.id for chain in chains)  # even if they cannot be recomputed
        self.segment_chains.update(chain.id for chain in chains if chain.segment is not None)
        overall, models = OverallRecomputation(label, self.report), ModelRecomputation(label, self.report)
        rollouts, referrals = RolloutRecomputation(row.name, self.report), ReferralRecomputation(label, self.report)
        found = self._versions(row, own[0], overall, models, rollouts)
        own_chains = OwnChains(self.report)
        policy = PolicyAudit(row.id, row.name, own[0].id, *found, overall, models, rollouts, referrals, own_chains)
        stored = {chain.segment: chain for chain in chains if chain.segment is not None}
        for name in sorted(policy.segments - stored.keys()):
            self.report(f"segment {name!r} of {label}", "it is in the log, but its chain is missing")
        shared = policy if policy.shares_state else None
        if shared is not None and ONLY_SEGMENT in stored:
            own_chains.read(self.connection, stored[ONLY_SEGMENT].id, f"segment {ONLY_SEGMENT!r} of {label}")
        for name, chain in sorted(stored.items()):
            if name not in policy.segments:
                self.report(f"segment {name!r} of {label}", "no version of the policy has it")
            stages, activated = rollouts.known
            task = SegmentTask(row.id, row.name, chain.id, name, tuple(policy.versions), stages, activated)
            if shared is None:
                policy.tasks.append((task, self._begin(task, chain.length)))
            else:  # the segments change counters and models of the policy one after the other
                policy.tasks.append((task, partial(self._segment, task, shared)))
        monitored = self.connection.execute(select(schema.chain).where(schema.chain.c.monitors == row.id)).all()
        if len(monitored) == 1:
            self.known_chains.add(monitored[0].id)
            self.monitored_chains.add(monitored[0].id)
            of_segments = tuple(known_chains(chains, label).items())
            attributes = MonitoredTask(row.name, monitored[0].id, of_segments)
            policy.monitored = self._begin(attributes, monitored[0].length)
        else:
            self.report(f"the monitored attributes of {label}", "they must have exactly one chain")
        return policy

    def _end_policy(self, policy: PolicyAudit) -> None:
        """Compare what the chains of a policy say together."""
        label = f"policy {policy.name!r}"
        open_cases = Counts()
        rows: dict[int, ImportedTally] = {}
        partly = False  # whether only the newest events of a segment were recomputed
        for task, end in policy.tasks:
            result: SegmentResult = end()
            self.decisions += result.decisions
            self.not_recomputed[2] += result.not_recomputed
            open_cases.pending += result.counts.pending
            open_cases.at_risk += result.counts.at_risk
            for number, brought in result.imported.items():
                rows.setdefault(number, ImportedTally()).add(brought)
            partly |= result.partly
            imported = None if result.partly else sum(brought.recorded for brought in result.imported.values())
            heads = (result.length, result.head, result.counts, policy.revision, imported, result.open_loans)
            self._check_chain(task.chain, policy.name, task.segment, *heads, result.shadow_segments)
        policy.own_chains.finish()
        if policy.monitored is not None:
            head = policy.monitored()
            if head is not None:
                self.heads.append(head)
        ruling = policy.versions.get(policy.active or 0)
        limited = ruling is not None and ruling.overall is not None
        policy.overall.finish(limited, open_cases.pending, open_cases.at_risk)
        with self._reporting(f"the referrals of {label}"):
            policy.referrals.finish(self.connection, policy.id)
        models = policy.models
        with self._reporting(f"the models of {label}"):
            models.finish(self.connection, policy.id, policy.chain, policy.versions)
        self.not_recomputed[0] += models.labels_not_recomputed
        self.not_recomputed[1] += models.decisions_not_recomputed
        self.not_recomputed[2] += policy.rollouts.not_recomputed
        for number in [] if partly else sorted(policy.batches.keys() | rows.keys()):
            stated, counted = policy.batches.get(number), rows.get(number, ImportedTally())
            if stated is None:
                self.report(f"import {number} of {label}", "the log of the policy does not hold its source")
            elif stated != counted:
                difference = describe_differences(stated, counted, "by its batches", "by its rows")
                self.report(f"import {number} of {label}", difference)

    def _segment(self, task: SegmentTask, shared: PolicyAudit | None = None) -> SegmentResult:
        """Recompute the chain of a segment. ``shared`` is the policy, if its segments share counters or models."""
        label = f"policy {task.name!r}"
        where = f"segment {task.segment!r} of {label}"
        rollouts = (
            shared.rollouts if shared else RolloutRecomputation.of(task.name, self.report, task.stages, task.activated)
        )
        recomputed = SegmentRecomputation(
            *(where, task.segment, self._known_versions(task).get, self.report, self.follows),
            overall=shared.overall if shared else OverallRecomputation(label, self.report),
            models=shared.models if shared else ModelRecomputation(label, self.report),
            rollouts=rollouts,
            referrals=shared.referrals if shared else ReferralRecomputation(label, self.report),
            own_chains=shared.own_chains if shared else None,
            checked=None if shared or self._counts_by_age(task) else self.checked,
        )
        with self._reporting(where):
            recomputed.run(self.connection, task.chain, genesis(task.name, task.segment))
            recomputed.check_rows(self.connection, task.chain)
        return SegmentResult(
            decisions=len(recomputed.expected_decisions),
            counts=recomputed.counts,
            length=recomputed.length,
            head=recomputed.head,
            open_loans=encode_open_loans(recomputed.open_loans),
            imported=recomputed.imported,
            not_recomputed=0 if shared else rollouts.not_recomputed,
            shadow_segments=recomputed.shadow_segments.encode(),
            partly=recomputed.first > 1,
        )

    def _counts_by_age(self, task: SegmentTask) -> bool:
        """Return whether open loans count according to their age, for which all of them must be known."""
        return any(version.specification.timing for version in self._known_versions(task).values())

    def _known_versions(self, task: SegmentTask) -> dict[int, Version]:
        """Return the versions of a policy that are as the log says."""
        return {number: self.registry.version(self.connection, task.policy, number) for number in task.versions}

    def _monitored(self, task: MonitoredTask) -> Head | None:
        """Recompute the chain of a policy's monitored attributes. Return its head, if it has events."""
        label = f"the monitored attributes of policy {task.name!r}"
        with self._reporting(label):
            chain = self.connection.execute(select(schema.chain).where(schema.chain.c.id == task.chain)).one()
            label = f"chain {chain.id} ({label})"
            segments = dict(task.segments)
            start = None if self.checked is None else self.checked.starts.get(chain.id)
            known: Container[str] = PolicyDecisions(self.connection, list(segments))
            if start is None and chain.length:
                known = PolicyDecisions(self.connection, list(segments)).all()
            recomputed = MonitoredRecomputation(label, known, self.report, segments)
            if start is None:
                recomputed.run(self.connection, chain.id, monitored_genesis(task.name))
            else:
                recomputed.run(self.connection, chain.id, start.head, start.length)
            if (chain.length, chain.head) != (recomputed.length, recomputed.head):
                ends = f"it should end at event {chain.length}, but the log ends at event {recomputed.length}"
                self.report(label, ends)
            named = (chain.policy_id, chain.segment, chain.open_loans, chain.shadow_segments)
            counted = (chain.revision, chain.imported, Counts(*chain[6:12]))
            if any(name is not None for name in named) or counted != (0, 0, Counts()):
                self.report(label, "its row has counts, or names a policy or segment")
            if recomputed.length:
                return Head(task.name, None, recomputed.length, recomputed.head, monitored=True)
        return None

    def _versions(
        self,
        row: Any,
        chain: Any,
        overall: OverallRecomputation,
        models: ModelRecomputation,
        rollouts: RolloutRecomputation,
    ) -> tuple[dict[int, Version], set[str], int, int | None, dict[int, ImportedTally]]:
        """Recompute a policy's own chain: its versions and their states, what all segments have used, and its imports.

        Returns the versions, the names of all segments, the revision, the number of the active version, and what the
        batches of each import have brought.
        """
        label = f"policy {row.name!r}"
        logged: dict[int, VersionCreated] = {}
        states: dict[int, tuple[str, float | None]] = {}  # with the share of applicants of a rollout
        segments: set[str] = set()
        revision = 0
        batches: dict[int, ImportedTally] = {}
        length, head = 0, genesis(row.name, None)
        for seq, digest, event, _ in walk(self.connection, chain.id, head, label, self.report):
            length, head = seq, digest
            if isinstance(event, VersionCreated):
                logged[event.number] = event
                states[event.number] = ("draft", None)
                segments.update(event.names)
            elif isinstance(event, StateChanged):
                states[event.number] = (event.state, event.percent)
                rollouts.add(f"event {seq} of {label}", event)
                created = logged.get(event.number)
                if event.four_eyes and created is not None and created.actor == event.actor:
                    self.report(f"event {seq} of {label}", "its author activated the version, against four eyes")
                revision = event.revision
                overall.add(seq, event)
                models.add(event)
            elif isinstance(event, UseChanged):
                overall.add(seq, event)
            elif isinstance(event, ImportStarted):
                batches[event.number] = ImportedTally()
            elif isinstance(event, RowsImported) and event.number in batches:
                batches[event.number].add_batch(event)
            elif not isinstance(event, Repeated | Learned):
                self.report(f"event {seq} of {label}", f"a {type(event).__name__} event does not belong in this chain")
        self._check_chain(chain.id, row.name, None, length, head, Counts(), revision)
        versions: dict[int, Version] = {}
        rows = self.connection.execute(select(schema.version).where(schema.version.c.policy_id == row.id)).all()
        for stored in rows:
            where = f"version {stored.number} of {label}"
            created = logged.pop(stored.number, None)
            if created is None:
                self.report(where, "it is not in the log")
                continue
            digests = [sha256(text.encode()).hexdigest() for text in (stored.specification, stored.segments)]
            if digests != [created.specification, created.segments] or stored.created_at != created.at:
                self.report(where, "its specification or segments differ from the log")
                continue
            if (stored.state, stored.percent) != states[stored.number]:
                shown = [
                    state if share is None else f"{state} to {share}%"
                    for state, share in ((stored.state, stored.percent), states[stored.number])
                ]
                self.report(where, f"its state is {shown[0]}, the log says {shown[1]}")
            version = self._version(row.id, stored.number, where)
            if version is not None:
                versions[stored.number] = version
                tables = {name: rule.table for name, rule in version.rules.items()}
                if created.proved not in (None, proved_segments(version.specification, tables)):
                    self.report(where, f"the log says that {created.proved} segments are proved; its tables differ")
                for difference in price_differences(version.specification, version.capacity, version.tables):
                    self.report(where, difference)
                for difference in fairness_differences(version.specification, version.fairness, version.tables):
                    self.report(where, difference)
        for number in logged:
            self.report(f"version {number} of {label}", "it is in the log, but its row is missing")
        active = next((number for number, (state, _) in states.items() if state == "active"), None)
        return versions, segments, revision, active, batches

    def _version(self, policy_id: int, number: int, where: str) -> Version | None:
        with self._reporting(f"a solved table of {where}"):
            try:
                return self.registry.version(self.connection, policy_id, number)
            except (KeyError, RuntimeError, NotFound, ValueError):
                self.report(where, "one of its solved tables is missing or has been changed")
        return None

    def _check_chain(
        self,
        identity: int,
        policy: str | None,
        segment: str | None,
        length: int,
        head: str,
        counts: Counts,
        revision: int,
        imported: int | None = 0,
        open_loans: str | None = None,
        shadow_segments: str | None = None,
    ) -> None:
        self.known_chains.add(identity)
        self.heads.append(Head(policy, segment, length, head))
        row = self.connection.execute(select(schema.chain).where(schema.chain.c.id == identity)).one_or_none()
        where = f"chain {identity} ({policy or 'system'}{'' if segment is None else f', {segment}'})"
        if row is None:
            self.report(where, "its row is missing")
            return
        if (row.segment, row.policy_id is None, row.monitors) != (segment, policy is None, None):
            self.report(where, "its row names another policy or segment")
        if (row.length, row.head) != (length, head):
            self.report(where, f"it should end at event {row.length}, but the log ends at event {length}")
        if Counts(*row[6:12]) != counts:
            self.report(where, describe_differences(Counts(*row[6:12]), counts, "in the table", "by the events"))
        if row.open_loans != open_loans:
            self.report(where, "what it holds about open loans differs from the log")
        if row.shadow_segments != shadow_segments:
            self.report(where, "the counts that it holds for versions in shadow differ from the log")
        if imported is not None and row.imported != imported:
            self.report(where, f"it has {row.imported} imported decisions in the table, {imported} by the events")
        if row.revision != revision:
            self.report(where, f"its revision is {row.revision}, the log says {revision}")

    def _strays(self) -> None:
        """Report rows of chains that do not exist."""
        known = list(self.known_chains)
        logged = (schema.event, schema.decision, schema.personal, schema.monitored, schema.referral)
        tables = dict.fromkeys(logged, self.known_chains)
        totals = dict.fromkeys((schema.daily_total, schema.outcome_day, schema.monitored_total), self.segment_chains)
        for table, chains in {**tables, **totals, schema.monitored_day: self.monitored_chains}.items():
            stray = table.c.chain_id.not_in(list(chains))
            rows = self.connection.execute(
                select(table.c.chain_id, func.count()).where(stray).group_by(table.c.chain_id)
            )
            for chain, count in rows:
                self.report(f"{table.name} rows of chain {chain}", f"{count} rows belong to no policy")
        versions = schema.version
        states = schema.model_state
        for policy in self.connection.scalars(
            select(states.c.policy_id).where(states.c.policy_id.not_in(list(self.known_policies))).distinct()
        ):
            self.report(f"model states of policy number {policy}", "no policy has this number")
        strays = select(versions.c.policy_id, versions.c.number).where(
            versions.c.policy_id.not_in(list(self.known_policies))
        )
        for policy, number in self.connection.execute(strays):
            self.report(f"version {number} of policy number {policy}", "no policy has this number")
        for (chain,) in self.connection.execute(select(schema.chain.c.id).where(schema.chain.c.id.not_in(known))):
            self.report(f"chain {chain}", "it belongs to no policy")

    def _receipts(self) -> None:
        """Check that stored answers are the answers given."""
        answers, events = schema.idempotency, schema.event
        joined = answers.outerjoin(events, (answers.c.chain_id == events.c.chain_id) & (answers.c.seq == events.c.seq))
        query = select(answers, events.c.body).select_from(joined)
        for row in self.connection.execute(query.execution_options(yield_per=500)):
            where = f"stored answer {row.key}"
            event = None if row.body is None else readable_event(str(row.body))
            digest = receipt_digest(row.salt, row.key, row.request, row.status, row.answer)
            if event is None or event.receipt != digest or event.at != row.created_at:
                self.report(where, "it differs from the answer that was given")

    def _expected(self, expected: list[Head]) -> None:
        """Check that each chain still has the event at which an earlier audit saw it end."""
        for head in expected:
            chain = next((present for present in self.heads if present.chain == head.chain), None)
            where = f"chain of {head.policy or 'the system'}{'' if head.segment is None else f', {head.segment}'}"
            where += ", monitored attributes" if head.monitored else ""
            if chain is None:
                self.report(where, "it existed at an earlier audit and is missing")
            elif chain.length < head.length:
                missing = head.length - chain.length
                self.report(
                    where,
                    f"it ends at event {chain.length:,}; {missing:,} events that an earlier audit saw are missing",
                )
            elif head.length and not self._holds(head):
                self.report(where, f"event {head.length:,} differs from the one that an earlier audit saw")

    def _holds(self, head: Head) -> bool:
        chain, events = schema.chain, schema.event
        query = select(events.c.hash).join(chain, chain.c.id == events.c.chain_id)
        if head.policy is None:
            query = query.where(chain.c.id == schema.SYSTEM_CHAIN)
        else:
            owner = chain.c.monitors if head.monitored else chain.c.policy_id
            query = query.join(schema.policy, schema.policy.c.id == owner)
            query = query.where(schema.policy.c.name == head.policy)
        segment = chain.c.segment.is_(None) if head.segment is None else chain.c.segment == head.segment
        stored_hash = self.connection.execute(query.where(segment & (events.c.seq == head.length))).scalar_one_or_none()
        return stored_hash == head.hash


class TaskAudit(_Audit):
    """Does tasks in another process, and collects their findings."""

    def __init__(self, connection: Connection, name: str) -> None:
        super().__init__(connection, name)
        self.collected: list[tuple[bool, str, str]] = []

    def report(self, where: str, what: str) -> None:
        """Collect a finding."""
        if len(self.collected) < MOST_COLLECTED:
            self.collected.append((False, where, what))

    def follows(self, where: str, what: str) -> None:
        """Collect a finding that another one has caused."""
        self.collected.append((True, where, what))

    def perform_apart(self, task: Task) -> TaskResult:
        """Do a task, and return its result with its findings."""
        self.collected = []
        with self._reading_any_text():
            value = self.perform(task)
        return TaskResult(value, self.collected)
