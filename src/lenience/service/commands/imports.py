"""Import an existing portfolio: past decisions with their own dates become events of a policy.

They count as evidence and as pending outcomes like the policy's own decisions, but no version made them, so the audit
recomputes their counts and not their decisions. It is safe to send a batch again. A row is known by its place in the
file, and a loan that the policy has already by its reference: then only its outcome is recorded, if it is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from lenience.core.errors import InputError
from lenience.core.formatting import count, counted
from lenience.core.offers import Offer
from lenience.service.commands.monitor import check_monitored
from lenience.service.commands.outcomes import carry_out, plan_report
from lenience.service.commands.transitions import Transition, plan_nothing
from lenience.service.domain.answers import ImportAnswer, ImportProblem
from lenience.service.domain.events import Imported, Repeated, RowsImported
from lenience.service.domain.feature_cells import strip_values
from lenience.service.domain.imported_rows import ImportedRow, ImportRequest, count_imported, covered, imported_id
from lenience.service.domain.monitored import strip_attributes
from lenience.service.domain.offer_requests import ALLOWED
from lenience.service.domain.overall import UseChange
from lenience.service.domain.problems import BadRequest, Conflict, Problem
from lenience.service.domain.receipts import CommandAnswer, Receipt, Sender, encoder, make_receipt
from lenience.service.domain.rule import SegmentRule
from lenience.service.domain.state import ChainState, Personal
from lenience.service.storage import schema
from lenience.service.storage.command import store_answer
from lenience.service.storage.import_records import read_imports
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version

MOST_NAMED = 20  # invalid rows that an error names


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A valid row with its id, the chain of its segment, its own dates and its offer."""

    row: ImportedRow
    position: int
    id: str
    chain: int
    decided_at: int
    outcome_at: int | None
    offer: Offer | None
    monitored: dict[str, str]


@dataclass(slots=True)
class ImportDecisions:
    """The command that imports a batch of past decisions."""

    sender: Sender
    policy: str
    request: ImportRequest
    _placed: list[PlacedRow] = field(default_factory=list)

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 3 * len(self.request.rows)

    @property
    def decisions(self) -> tuple[str, ...]:
        """Empty: which rows are known already is found later."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Check every row, and find the decisions that have the same id or reference."""
        record = ledger.load_policy(self.policy)
        version = _version(ledger, record)
        self._placed = self._place(record, version, ledger.now)
        ledger.find(row.id for row in self._placed)
        ledger.find_references(row.row.reference for row in self._placed if row.row.reference is not None)

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the policy's own chain, and those of all rows and of the decisions that are known already."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        own = set(record.segments.values())
        known = {ledger.chain_of[identity] for row in self._placed for identity in _same(ledger, row)}
        monitored = [record.monitored] if any(row.monitored for row in self._placed) else []
        return [record.chain, *monitored, *{row.chain for row in self._placed}, *(known & own)]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Record the rows that are new, and the outcomes that are."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        own, source = ledger.chains[record.chain], self.request.source
        imports = read_imports(ledger.connection, own.id, ledger.unwritten(own.id))
        before = next((one for one in imports.values() if one.started.digest == source.digest), None)
        if before is not None and (name := source.difference(before.started)) is not None:
            raise Conflict(
                f"this file was imported before with other settings: source.{name} differs from that of import "
                f"{before.started.number}. Send the same, or import into another policy",
                code="import_differs",
                field=f"source.{name}",
            )
        _refuse_learning(record)
        if before is None:
            for version in [_version(ledger, record), *(one for one in record.live if one is not record.active)]:
                refuse_import(record, version, not_in_prior=source.not_in_prior)
        number = max(imports, default=0) + 1 if before is None else before.started.number
        fresh, plans, repeated, problems = self._sorted_out(ledger, record, number)
        batch = self._batch(ledger, number, fresh)
        batches = [*(() if before is None else before.batches), batch]
        received = covered(batches)
        answer = CommandAnswer(
            200,
            encoder.encode(
                ImportAnswer(
                    number=number,
                    recorded=len(fresh),
                    outcomes=len(plans),
                    repeated=repeated,
                    problems=problems,
                    received=received,
                    rows=source.rows,
                    complete=received == source.rows,
                )
            ),
        )
        if self.request.dry_run:
            return answer
        receipt = make_receipt(self.sender, answer)
        limited = record.active is not None and record.active.overall is not None
        if before is None:
            ledger.append(own, source.started(number, ledger.now, self.sender.actor))
        for row in fresh:
            self._record(ledger, number, row)
            if row.monitored:
                ledger.set_monitored(ledger.chains[record.monitored], self.sender.actor, row.id, row.monitored)
            if limited and row.row.status == schema.PENDING:
                loss = 0.0 if row.offer is None else row.offer.loss
                ledger.change_use(own, self.sender.actor, row.id, UseChange(0, 1, loss))
        carry_out(ledger, Sender(self.sender.actor), plans, answer)  # the batch carries the receipt
        self._finish(ledger, own, batch, receipt, answer, new=received > (0 if before is None else before.received))
        return answer

    def _finish(
        self,
        ledger: Ledger,
        own: ChainState,
        batch: RowsImported,
        receipt: Receipt,
        answer: CommandAnswer,
        *,
        new: bool,
    ) -> None:
        """Log the batch if it brought something, and store the answer."""
        if new or batch.recorded:
            event: RowsImported | Repeated = msgspec.structs.replace(batch, receipt=receipt.digest)
        elif self.sender.key is not None:
            event = Repeated(at=ledger.now, actor=self.sender.actor, decision="", receipt=receipt.digest)
        else:
            return
        store_answer(ledger, self.sender, receipt, own.id, ledger.append(own, event), answer)

    def _batch(self, ledger: Ledger, number: int, fresh: Sequence[PlacedRow]) -> RowsImported:
        statuses = [row.row.status for row in fresh]
        return RowsImported(
            at=ledger.now,
            actor=self.sender.actor,
            number=number,
            first=self.request.first,
            size=len(self.request.rows),
            recorded=len(fresh),
            accepted=len(statuses) - statuses.count(schema.REJECTED),
            pending=statuses.count(schema.PENDING),
            successes=statuses.count(schema.SUCCESS),
            failures=statuses.count(schema.FAILURE),
        )

    def _place(self, record: PolicyRecord, version: Version, now: int) -> list[PlacedRow]:
        """Return the rows with their segments and dates, or raise BadRequest that names the invalid ones."""
        placed: list[PlacedRow] = []
        wrong: list[InputError | BadRequest] = []
        texts: list[str] = []
        digest = self.request.source.digest
        for i, row in enumerate(self.request.rows):
            try:
                row = _tidy(version, row)
                segment = record.segment_under(version, row.segment, row.features)
                decided_at, outcome_at = row.dates(now)
                offer = _offer(self.policy, version.rules[segment], row)
                monitored = _monitored(record, version, row)
            except (InputError, BadRequest) as error:
                wrong.append(error)
                texts.append(f"rows[{i}]: {error}")
                continue
            position = self.request.first + i
            identity = imported_id(decided_at, self.policy, digest, position)
            place = (position, identity, record.segments[segment])
            placed.append(PlacedRow(row, *place, decided_at, outcome_at, offer, monitored))
        if wrong:
            shown = "; ".join(texts[:MOST_NAMED])
            more = f"; and {len(texts) - MOST_NAMED:,} more" if len(texts) > MOST_NAMED else ""
            first = wrong[0]
            detail = f"nothing was recorded: {counted(len(wrong), 'row')} cannot be imported: {shown}{more}"
            raise BadRequest(detail, code=first.code, field=first.field, allowed=first.allowed)
        return placed

    def _sorted_out(
        self, ledger: Ledger, record: PolicyRecord, number: int
    ) -> tuple[list[PlacedRow], list[tuple[ChainState, Transition]], int, list[ImportProblem]]:
        """Divide the rows: new ones, outcomes of known decisions, how many are known in full, and problems."""
        own = set(record.segments.values())
        known = {
            row.id: [identity for identity in _same(ledger, row) if ledger.chain_of[identity] in own]
            for row in self._placed
        }
        ledger.read_decisions(identity for several in known.values() for identity in several)
        fresh: list[PlacedRow] = []
        plans: list[tuple[ChainState, Transition]] = []
        problems: list[ImportProblem] = []
        repeated = 0
        references: dict[str, int] = {}
        for row in self._placed:
            try:
                plan = self._compared(ledger, row, known[row.id], number, references)
            except Problem as problem:
                problems.append(ImportProblem(row.position, problem.status, problem.detail, problem.code))
                continue
            if plan is None:
                fresh.append(row)
                if row.row.reference is not None:
                    references[row.row.reference] = row.position
            elif plan.recorded:
                plans.append((ledger.chains[plan.state.chain], plan))
            else:
                repeated += 1
        return fresh, plans, repeated, problems

    def _compared(
        self, ledger: Ledger, row: PlacedRow, same: list[str], number: int, references: dict[str, int]
    ) -> Transition | None:
        """Compare a row with the decisions that are the same. Return None if there is none, or raise a Problem."""
        other = references.get(row.row.reference or "")
        if other is not None:
            raise _twice(other)
        if not same:
            return None
        if row.id not in same and len(same) > 1:
            detail = f"{len(same)} decisions of this policy have this reference"
            raise Conflict(detail, code="ambiguous_reference", field="reference")
        state = ledger.decisions[row.id if row.id in same else same[0]]
        if state.id == row.id:  # sent before; what is known of it now is newer
            return plan_nothing(state, "repeat", recorded=False)
        if state.source == number:
            raise _twice(None)
        if state.accepted != (row.row.decision == "accept"):
            verb = "accepted" if state.accepted else "rejected"
            raise Conflict(f"the decision {state.id} was {verb}", code="decision_differs", field="decision")
        outcome = row.row.outcome
        if outcome in ("success", "failure") or (outcome in ("late", "current") and state.status == schema.PENDING):
            return plan_report(state, outcome, row.row.outcome_at, ledger.now)
        return plan_nothing(state, "repeat", recorded=False)

    def _record(self, ledger: Ledger, number: int, row: PlacedRow) -> None:
        """Append the event of a new row, and count it."""
        chain = ledger.chains[row.chain]
        counts, status = chain.counts, row.row.status
        personal = _personal(row.row)
        event = Imported(
            at=ledger.now,
            actor=self.sender.actor,
            id=row.id,
            source=number,
            position=row.position,
            decided_at=row.decided_at,
            arrivals=counts.arrivals,
            accepted=counts.accepted,
            pending=counts.pending,
            successes=counts.successes,
            failures=counts.failures,
            decision=row.row.decision,
            status=status,
            reported=row.row.reported,
            outcome_at=row.outcome_at,
            offer=row.offer,
            at_risk=counts.at_risk or None,
            personal=None if personal is None else personal.commitment,
        )
        seq = ledger.append(chain, event)
        ledger.add_imported(event, chain.id, seq, row.row.reference)
        if personal is not None:
            ledger.add_personal(chain.id, seq, personal)
        count_imported(counts, event)
        chain.imported += 1


def _same(ledger: Ledger, row: PlacedRow) -> list[str]:
    """Return the recorded decisions that a row may be: the one with its id, or those with its reference."""
    if row.id in ledger.chain_of:
        return [row.id]
    return [] if row.row.reference is None else ledger.referred[row.row.reference]


def _version(ledger: Ledger, record: PolicyRecord) -> Version:
    """Return the version by which rows are read: the active one, or the newest."""
    if record.active is not None:
        return record.active
    return ledger.registry.version(ledger.connection, record.id, max(record.states))


def _tidy(version: Version, row: ImportedRow) -> ImportedRow:
    features = version.specification.features
    if row.features is None or not features:
        return row
    return msgspec.structs.replace(row, features=strip_values(features, row.features))


def _offer(policy: str, rule: SegmentRule, row: ImportedRow) -> Offer | None:
    """Return the offer of a row, or raise BadRequest if the policy needs one or has none."""
    if rule.table.offers is None:
        if row.offer is not None:
            detail = f"the policy {policy!r} has one break-even for all and takes no offer. Leave the offer out"
            raise BadRequest(detail, code="unsupported_offers", field="offer")
        return None
    if row.offer is None:
        detail = f"offer must be given, because the amounts of the policy {policy!r} differ: {ALLOWED}"
        raise BadRequest(detail, code="missing", field="offer", allowed=ALLOWED)
    return row.offer.offer


def _monitored(record: PolicyRecord, version: Version, row: ImportedRow) -> dict[str, str]:
    """Return the monitored attributes of a row, or raise InputError."""
    given = strip_attributes(row.monitored or {})
    check_monitored(record, version, list(given))
    return {name: value for name, value in given.items() if value is not None}


def _personal(row: ImportedRow) -> Personal | None:
    if row.reference is None and row.features is None:
        return None
    return Personal.of(row.reference, None if row.features is None else encoder.encode(row.features).decode())


def _twice(position: int | None) -> Conflict:
    other = "another row" if position is None else f"row {position:,}"
    detail = f"{other} of this file has the same reference, which must be unique"
    return Conflict(detail, code="duplicate", field="reference")


def _refuse_learning(record: PolicyRecord) -> None:
    """Raise Conflict if a model of the policy learns from every outcome in order."""
    if record.learning:
        raise Conflict(
            f"a version of {record.name!r} learns from every outcome in order, so past decisions cannot be imported "
            "while it is active or a shadow. Import them before you activate it: it starts from their outcomes",
            code="model_learns",
        )


def refuse_import(record: PolicyRecord, version: Version, *, not_in_prior: bool) -> None:
    """Raise Conflict if a version cannot have imported decisions, or would count their outcomes twice."""
    horizon = version.specification.objective.horizon
    if horizon is not None:
        raise Conflict(
            f"version {version.number} of {record.name!r} has a horizon, which counts acceptances from its start, so "
            "past decisions cannot be imported. Give their outcomes as history instead",
            code="horizon_with_imports",
        )
    past = sum(rule.past_outcomes for rule in version.rules.values())
    if past and not not_in_prior:
        raise Conflict(
            f"the prior of version {version.number} of {record.name!r} holds {count(past)} past outcomes, which the "
            "imported decisions may repeat. Create a version without history and past_outcomes, or state that the "
            "outcomes are different ones with not_in_prior",
            code="outcomes_in_prior",
            field="source.not_in_prior",
        )
