"""The life of a policy: create versions (solved, stored, never changed), then change their states."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from sqlalchemy import insert, select, update

from lenience.core.data_origin import SOFTWARE
from lenience.core.errors import InputError, TooLargeError
from lenience.core.protected_attributes import describe_consent
from lenience.service.commands.four_eyes import check_four_eyes, four_eyes_required
from lenience.service.commands.imports import refuse_import
from lenience.service.commands.rollout import (
    check_rollout,
    check_same_limits,
    describes_rollout,
    rollout_warnings,
    shadow_warnings,
)
from lenience.service.commands.solve_process import solve_cancellable
from lenience.service.commands.solve_progress import SolveProgress
from lenience.service.domain import limits
from lenience.service.domain.answers import VersionAnswer
from lenience.service.domain.capacity_price import CapacityBody, at_price, price_capacity
from lenience.service.domain.chain import genesis, monitored_genesis
from lenience.service.domain.events import PolicyCreated, Repeated, State, StateChanged, VersionCreated
from lenience.service.domain.fair_version import FairnessBody, at_fair_cost, fairness_warnings, solve_fairness
from lenience.service.domain.feature_models import first_state
from lenience.service.domain.forgetting import forgetting_warnings
from lenience.service.domain.overall import OverallUse
from lenience.service.domain.problems import BadRequest, Conflict, NotFound
from lenience.service.domain.protected import protected_decisions
from lenience.service.domain.receipts import CommandAnswer, Sender, encoder, make_receipt
from lenience.service.domain.solved_tables import load, solve_seconds
from lenience.service.domain.specification import PolicySpecification, SegmentProblem
from lenience.service.domain.version_warnings import dropped_segment_warnings, proved_segments, version_warnings
from lenience.service.storage import schema
from lenience.service.storage.arriving_offers import drift_warnings
from lenience.service.storage.command import store_answer
from lenience.service.storage.import_records import read_imports
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.monitored_rows import monitored_names
from lenience.service.storage.policy_cache import LIVE, ModelState, ModelStates, PolicyRecord, StoredSegment, Version

log = logging.getLogger("lenience.service")

FEWER = "Use fewer segments."
SMALLER = "Divide the largest segment into smaller ones."
NEXT: dict[State, tuple[State, ...]] = {  # the states from which each state can be reached
    "shadow": ("draft", "rollout", "retired"),
    "rollout": ("draft", "shadow", "rollout", "retired"),
    "active": ("draft", "shadow", "rollout", "retired"),
    "retired": ("draft", "shadow", "rollout", "active"),
}


class VersionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The version to change, by default the newest (to retire: the active one)."""

    version: Annotated[int, Meta(ge=1, le=10**6)] | None = None
    reason: limits.ChangeReason | UnsetType = UNSET


class ActivationRequest(VersionRequest, frozen=True, forbid_unknown_fields=True):
    """The version to activate, and the version it must replace. If another is active, nothing changes."""

    replaces: Annotated[int, Meta(ge=1, le=10**6)] | None = None


@dataclass(frozen=True, slots=True)
class SolvedVersion:
    """A specification with the tables of its segments, ready to be stored."""

    specification: PolicySpecification
    segments: list[StoredSegment]
    tables: dict[str, str]
    warnings: list[str]
    proved: int  # segments whose decisions are all proved optimal


def solve_version(specification: PolicySpecification, progress: SolveProgress | None = None) -> SolvedVersion:
    """Solve every segment. Equal problems share a table. No lock is held, because it may take a while.

    It counts segments in ``progress``, and raises Conflict if it was cancelled: at once while a long segment is solved,
    and otherwise after the segment.
    """
    progress = progress or SolveProgress()
    progress.check()
    try:
        protected_decisions(specification)
        problems = specification.problems()
        progress.begin(len(problems))
        by, floor = specification.feature_spec, specification.constraints.exploration_floor
        start = None if by is None else first_state(by, specification.objective, floor)
        began = None if start is None else sha256(start.encode()).hexdigest()
        _refuse_long(problems)
        until = time.monotonic() + limits.VERSION_SECONDS
        price = price_capacity(specification, problems)
        fairness = solve_fairness(specification, problems)
        (priced, tables), (fair, more) = store_body(price), store_body(fairness)
        tables |= more
        problems = [at_fair_cost(at_price(problem, price), fairness) for problem in problems]
        tables |= {} if start is None or began is None else {began: start}
        texts: dict[tuple[object, ...], str] = {}
        stored: list[StoredSegment] = []
        for segment in problems:
            key = (segment.problem, segment.prior, segment.charges)
            if key not in texts:
                if time.monotonic() > until:
                    raise TooLargeError(
                        "Solving this policy",
                        allowed_seconds=limits.VERSION_SECONDS,
                        size=len(problems),
                        unit="segments",
                        field="segments",
                        hint=FEWER,
                        reason=f"{len(stored):,} of {len(problems):,} segments were solved in the "
                        f"{limits.VERSION_SECONDS:,.0f} s that are allowed",
                    )
                texts[key] = solve_cancellable(segment, progress)
            text = texts[key]
            digest = sha256(text.encode()).hexdigest()
            tables[digest] = text
            stored.append(
                StoredSegment(
                    segment.name,
                    segment.share,
                    digest,
                    segment.exposure_cap,
                    segment.exploration_floor,
                    segment.exposure_cap_amount,
                    priced,
                    fair,
                    began,
                )
            )
            progress.advance()
    except TooLargeError as error:
        # The solver's own hint is about its tolerance, which a request cannot choose.
        fits = error if error.field == "segments" else error.with_hint(SMALLER)
        raise BadRequest.of(fits.with_fields(dict.fromkeys(fits.fields, "segments"))) from None
    except InputError as error:
        raise BadRequest.of(error) from None
    loaded = {digest: load(tables[digest]) for digest in {segment.solved for segment in stored}}
    tables_by_segment = {segment.name: loaded[segment.solved] for segment in stored}
    warnings = version_warnings(specification, tables_by_segment) + fairness_warnings(fairness)
    if specification.forgetting:
        warnings += forgetting_warnings(
            specification.forgetting, specification.objective.arrivals, specification.problems()
        )
    if specification.capacity and price is None:
        warnings.append(
            "The policy keeps the capacity but sets no price for it: that needs an objective with arrivals and "
            "discount_rate. It accepts applicants in order of arrival until the capacity is used."
        )
    return SolvedVersion(specification, stored, tables, warnings, proved_segments(specification, tables_by_segment))


def store_body(body: CapacityBody | FairnessBody | None) -> tuple[str | None, dict[str, str]]:
    """Return the digest of what all segments share, a price or a fair optimum, and the text by its digest."""
    if body is None:
        return None, {}
    text = msgspec.json.encode(body).decode()
    digest = sha256(text.encode()).hexdigest()
    return digest, {digest: text}


def _refuse_long(problems: Sequence[SegmentProblem]) -> None:
    """Raise TooLargeError early if solving would make later requests wait too long."""
    each = {(segment.problem, segment.prior): solve_seconds(segment) for segment in problems}
    longest, total = max(each.values()), math.fsum(each.values())
    if longest > limits.SOLVE_SECONDS:
        raise TooLargeError(
            "Solving the largest segment",
            seconds=longest,
            allowed_seconds=limits.SOLVE_SECONDS,
            field="segments",
            hint=SMALLER,
        )
    if total > limits.VERSION_SECONDS:
        raise TooLargeError(
            "Solving this policy", seconds=total, allowed_seconds=limits.VERSION_SECONDS, field="segments", hint=FEWER
        )


@dataclass(frozen=True, slots=True)
class CreateVersion:
    """The command that stores a new version as a draft. The first version of a name creates the policy."""

    sender: Sender
    version: SolvedVersion

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 10 + 2 * len(self.version.segments)

    @property
    def decisions(self) -> Sequence[str]:
        """Empty."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Do nothing: nothing must be known before chains are locked."""

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the system's chain, which orders the creation of policies."""
        return [schema.SYSTEM_CHAIN]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Store the version."""
        specification = self.version.specification
        connection, name = ledger.connection, specification.name
        policy_id = connection.execute(select(schema.policy.c.id).where(schema.policy.c.name == name)).scalar()
        if policy_id is None:
            policy_id = self._create_policy(ledger, name)
        record = ledger.load_policy(name)
        ledger.lock([record.chain, *record.segments.values()])
        protected = _protected(ledger, record, specification)
        number = max(record.states, default=0) + 1
        self._store_tables(ledger)
        texts = (encoder.encode(specification).decode(), encoder.encode(self.version.segments).decode())
        row = (record.id, number, "draft", *texts, ledger.now, None)
        ledger.store.insert(connection, schema.version, [row])
        new = [segment.name for segment in self.version.segments if segment.name not in record.segments]
        revision = ledger.chains[record.chain].revision
        for segment in new:
            values = {"policy_id": policy_id, "segment": segment, "revision": revision, "head": genesis(name, segment)}
            connection.execute(insert(schema.chain), values)
        names = [segment.name for segment in self.version.segments]
        warnings = [*self.version.warnings, *_dropped(ledger, record, names)]
        if protected:
            warnings.insert(0, describe_consent(protected))
            fields = {"policy": name, "version": number, "attributes": protected}
            log.warning("a version decides by protected attributes", extra={"fields": fields})
        answer = CommandAnswer(201, encoder.encode(VersionAnswer(name, number, "draft", names, warnings)))
        receipt = make_receipt(self.sender, answer)
        event = VersionCreated(
            at=ledger.now,
            actor=self.sender.actor,
            number=number,
            specification=sha256(texts[0].encode()).hexdigest(),
            segments=sha256(texts[1].encode()).hexdigest(),
            names=tuple(names),
            decides_by_protected=tuple(protected),
            receipt=receipt.digest,
            software=SOFTWARE,
            proved=self.version.proved,
        )
        chain = ledger.chains[record.chain]
        seq = ledger.append(chain, event)
        store_answer(ledger, self.sender, receipt, chain.id, seq, answer)
        return answer

    def _create_policy(self, ledger: Ledger, name: str) -> int:
        connection = ledger.connection
        inserted = connection.execute(
            insert(schema.policy).values(name=name, created_at=ledger.now).returning(schema.policy.c.id)
        )
        policy_id = int(inserted.scalar_one())
        connection.execute(insert(schema.chain), {"policy_id": policy_id, "head": genesis(name, None)})
        connection.execute(insert(schema.chain), {"monitors": policy_id, "head": monitored_genesis(name)})
        system = ledger.chains[schema.SYSTEM_CHAIN]
        ledger.append(system, PolicyCreated(at=ledger.now, actor=self.sender.actor, name=name))
        return policy_id

    def _store_tables(self, ledger: Ledger) -> None:
        digests = list(self.version.tables)
        known: set[str] = set()
        for start in range(0, len(digests), 500):
            some = schema.solved.c.digest.in_(digests[start : start + 500])
            known.update(ledger.connection.execute(select(schema.solved.c.digest).where(some)).scalars())
        rows = [(digest, text) for digest, text in self.version.tables.items() if digest not in known]
        ledger.store.insert(ledger.connection, schema.solved, rows)


@dataclass(frozen=True, slots=True)
class ChangeState:
    """The command that changes the state of a version to shadow, rollout, active or retired.

    ``percent`` is the share of applicants of a rollout. With 0, the version in rollout is retired.
    """

    sender: Sender
    policy: str
    state: State
    version: int | None
    replaces: int | None = None
    reason: str = ""
    percent: float | None = None

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 10

    @property
    def decisions(self) -> Sequence[str]:
        """Empty."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Load the current state of the policy."""
        ledger.load_policy(self.policy)

    def chains(self, ledger: Ledger) -> list[int]:
        """Return all chains of the policy, so that no decision runs while the state changes."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        return [record.chain, *record.segments.values()]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Change the state."""
        record = ledger.load_policy(self.policy)
        ledger.lock([record.chain, *record.segments.values()])
        number = self.version
        active = record.active.number if record.active else None
        if number is None:
            number = active if self.state == "retired" else max(record.states)
            if self.state == "rollout" and record.rollout is not None:
                number = record.rollout.number
        if number is None:
            raise Conflict(f"the policy {self.policy!r} has no active version to retire", code="no_active_version")
        if number not in record.states:
            detail = f"the policy {self.policy!r} has no version {number}"
            raise NotFound(detail, code="unknown_version", field="version", value=number)
        now = record.states[number]
        if now == self.state and (self.state != "rollout" or self.percent == record.percent):
            return self._repeated(ledger, record, number)
        if self.state in ("rollout", "active"):
            check_rollout(record, number, self.percent)
        target: State = "retired" if self.percent == 0.0 else self.state
        if self.replaces not in (None, active):
            current = "no version" if active is None else f"version {active}"
            detail = f"{current} of the policy {self.policy!r} is active, not version {self.replaces}"
            raise Conflict(detail, code="version_replaced", field="replaces", value=self.replaces)
        if now not in NEXT[self.state]:
            detail = f"version {number} of {self.policy!r} is {now}, so it cannot become {self.state}"
            raise Conflict(detail, code="version_state", field="state", value=self.state)
        two_persons = target in ("active", "rollout") and four_eyes_required()
        if two_persons:
            check_four_eyes(ledger, record.chain, number, self.sender.actor)
        changes: list[tuple[int, State]] = [(number, target)]
        replaced = active if self.state == "active" else None
        if replaced is not None:
            changes.insert(0, (replaced, "retired"))
        version = ledger.registry.version(ledger.connection, record.id, number)
        if target == "rollout":
            check_same_limits(record, version)
        if target != "retired":
            _refuse_imported(ledger, record, version)
        tables = {name: rule.table for name, rule in version.rules.items()}
        warnings: list[str] = []
        if target != "retired":
            warnings = version_warnings(version.specification, tables) + fairness_warnings(version.fairness)
        if target == "active":
            warnings += _dropped(ledger, record, list(tables))
        if target == "rollout":
            warnings += rollout_warnings(record, version)
        if target == "shadow":
            warnings += shadow_warnings(record, version)
        if target != "retired":
            warnings += drift_warnings(ledger.connection, version.rules, record.segments)
        percent = self.percent if target == "rollout" else None
        version_answer = VersionAnswer(
            record.name, number, target, list(tables), warnings, replaced=replaced, percent=percent
        )
        answer = CommandAnswer(200, encoder.encode(version_answer))
        receipt = make_receipt(self.sender, answer)
        chain = ledger.chains[record.chain]
        for which, state in changes:
            last = which == number
            opened = last and target == "active" and version.overall is not None
            start = _model_start(ledger, record, version, now) if last and target != "retired" else None
            placed = opened or start is not None or describes_rollout(record, which, state)
            event = StateChanged(
                at=ledger.now,
                actor=self.sender.actor,
                number=which,
                state=state,
                revision=chain.revision + 1,
                receipt=receipt.digest if last else None,
                four_eyes=last and two_persons,
                overall=_overall_use(ledger, record) if opened else None,
                lengths=_lengths(ledger, record) if placed else {},
                counted=opened,
                model=None if start is None else start.digest(),
                reason=self.reason if last else "",
                percent=percent if last else None,
            )
            seq = ledger.append(chain, event)
            if start is not None:
                ledger.add_model_state(record.id, number, seq, start.encode(), kept=version.feature_model is not None)
            if event.overall is not None:
                ledger.overall[chain.id] = event.overall
            where = (schema.version.c.policy_id == record.id) & (schema.version.c.number == which)
            ledger.connection.execute(update(schema.version).where(where).values(state=state, percent=event.percent))
        store_answer(ledger, self.sender, receipt, chain.id, seq, answer)
        for own in [chain, *(ledger.chains[segment] for segment in record.segments.values())]:
            own.revision += 1
            own.changed = True
        # Later commands of this transaction must see the new state.
        before = ledger.model_states(record) if record.learning else None
        after = ledger.load_policy(self.policy)
        if after.learning:
            states = {} if before is None else dict(before.states)
            if start is not None:
                states[number] = start
            live = {each: states[each] for each in after.learning}
            ledger.models[record.id] = ModelStates(after.revision, chain.length, live)
        return answer

    def _repeated(self, ledger: Ledger, record: PolicyRecord, number: int) -> CommandAnswer:
        """Answer that the version already has this state, and change nothing."""
        version = ledger.registry.version(ledger.connection, record.id, number)
        answer = CommandAnswer(
            200,
            encoder.encode(
                VersionAnswer(
                    record.name, number, self.state, list(version.rules), [], changed=False, percent=self.percent
                )
            ),
        )
        if self.sender.key is not None:
            receipt = make_receipt(self.sender, answer)
            chain = ledger.chains[record.chain]
            event = Repeated(at=ledger.now, actor=self.sender.actor, decision="", receipt=receipt.digest)
            store_answer(ledger, self.sender, receipt, chain.id, ledger.append(chain, event), answer)
        return answer


def _protected(ledger: Ledger, record: PolicyRecord, specification: PolicySpecification) -> list[str]:
    """Return the protected attributes that a version decides by, or raise BadRequest if it is not allowed to."""
    try:
        return protected_decisions(specification, monitored_names(ledger.connection, record.monitored))
    except InputError as error:
        raise BadRequest.of(error) from None


def _model_start(ledger: Ledger, record: PolicyRecord, version: Version, now: State) -> ModelState | None:
    """Return the state from which the model of a version starts to learn, or None if it learns already."""
    if version.live is None or now in LIVE:
        return None
    counts = {name: ledger.chains[chain].counts for name, chain in record.segments.items()}
    outcomes = {name: (own.successes, own.failures) for name, own in counts.items()}
    return version.live.start(outcomes, ledger.chains[record.chain].length + 1)


def _overall_use(ledger: Ledger, record: PolicyRecord) -> OverallUse:
    """Return what all segments of a policy have open now, and what its month and year have used.

    Under earlier limits the log has counted it. Acceptances by versions without limits are counted here.
    """
    counts = [ledger.chains[record.segments[name]].counts for name in sorted(record.segments)]
    use = ledger.overall_use(ledger.chains[record.chain]).with_earlier(ledger.uncounted_acceptances(record))
    return msgspec.structs.replace(
        use,
        pending=sum(own.pending for own in counts),
        at_risk=math.fsum(own.at_risk for own in counts),
    )


def _lengths(ledger: Ledger, record: PolicyRecord) -> dict[str, int]:
    """Return the number of events in the chain of each segment."""
    return {name: ledger.chains[chain].length for name, chain in sorted(record.segments.items())}


def _dropped(ledger: Ledger, record: PolicyRecord, names: Collection[str]) -> list[str]:
    """Return a warning about segments of the active version that are not among ``names``."""
    if record.active is None:
        return []
    active = {name: ledger.chains[record.segments[name]].counts for name in record.active.rules}
    return dropped_segment_warnings(active, names)


def _refuse_imported(ledger: Ledger, record: PolicyRecord, version: Version) -> None:
    """Raise Conflict if a version cannot go with the decisions that were imported."""
    imports = read_imports(ledger.connection, record.chain, ledger.unwritten(record.chain))
    if imports:
        not_in_prior = all(one.started.not_in_prior for one in imports.values())
        refuse_import(record, version, not_in_prior=not_in_prior)
