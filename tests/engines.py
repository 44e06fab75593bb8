"""An engine without HTTP: a store, its writer, and short words for what one does with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.lifecycle import ChangeState, CreateVersion, SolvedVersion, solve_version
from lenience.service.commands.monitor import Monitor
from lenience.service.commands.outcomes import Change, OverrideRequest, ReviewRequest
from lenience.service.domain import identity
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.clock import now
from lenience.service.domain.events import Event, read, write
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.queries.audit import AuditReport, audit
from lenience.service.queries.reading import Queries
from lenience.service.storage import schema
from lenience.service.storage.command import Command
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store
from lenience.service.storage.writer import Writer
from serving import SPEC

Json = dict[str, Any]
# For tests of what does not depend on the database: once is enough, and PostgreSQL is slow to set up.
SQLITE = pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
_solved: dict[str, SolvedVersion] = {}


class Engine:
    """The engine on a database."""

    def __init__(self, database: str, clock: Callable[[], int] = now) -> None:
        self.database = database
        if clock is not now:
            identity._last = 0  # ids of earlier tests are later than this clock, and new ids never sort before them
        self.store = Store(database, serving=True)
        self.registry = PolicyCache()
        try:
            self.store.upgrade()
            self.writer = Writer(self.store, self.registry, clock=clock)
        except BaseException:
            self.store.close()  # its lock would otherwise be a warning in whichever test comes next
            raise
        self.queries = Queries(self.store, self.registry)

    def close(self) -> None:
        self.writer.close()
        self.store.close()

    def call(self, command: Command) -> Json:
        found: Json = msgspec.json.decode(self.writer.call(command).body)
        return found

    def create(self, key: str | None = None, activate: bool = True, **changes: Any) -> Json:
        posted = {**SPEC, **changes}
        text = repr(posted)
        if text not in _solved:
            _solved[text] = solve_version(msgspec.convert(posted, PolicySpecification))
        made = self.call(CreateVersion(make_sender("tester", key, "create", posted), _solved[text]))
        if activate:
            self.state(made["name"], "active")
        return made

    def state(self, policy: str, state: Any, version: int | None = None, key: str | None = None) -> Json:
        return self.call(ChangeState(make_sender("tester", key, state, version), policy, state, version))

    def roll_out(self, percent: float, version: int | None = None, actor: str = "tester") -> Json:
        sender = make_sender(actor, None, "rollout", percent)
        return self.call(ChangeState(sender, "cards", "rollout", version, percent=percent))

    def decide(self, segment: str | None = "young", policy: str = "cards", key: str | None = None, **more: Any) -> Json:
        asked = DecisionRequest(segment, **more)
        return self.call(Decide(make_sender("tester", key, policy, asked), policy, [asked], True))

    def batch(self, segments: list[str], policy: str = "cards", key: str | None = None) -> list[Json]:
        asked = [DecisionRequest(segment) for segment in segments]
        found: list[Json] = self.call(Decide(make_sender("tester", key, policy, asked), policy, asked, False))[
            "decisions"
        ]
        return found

    def outcome(self, decision: str, outcome: Any, key: str | None = None, outcome_at: str | None = None) -> Json:
        sender = make_sender("tester", key, decision, outcome)
        return self.call(Change(sender, decision, "outcome", outcome, outcome_at=outcome_at))

    def correct(self, decision: str, outcome: Any) -> Json:
        return self.call(Change(make_sender("tester", None, "", ""), decision, "correction", outcome))

    def give_up(self, decision: str) -> Json:
        return self.call(Change(make_sender("tester", None, "", ""), decision, "expiry"))

    def erase(self, decision: str) -> Json:
        return self.call(Change(make_sender("tester", None, "", ""), decision, "erasure"))

    def monitor(self, decision: str, changes: dict[str, str | None], key: str | None = None) -> Json:
        return self.call(Monitor(make_sender("tester", key, decision, changes, secret=True), decision, changes))

    def override(self, decision: str, choice: Any, reason: str = "known to the branch") -> Json:
        asked = OverrideRequest(choice, "head of credit", reason)
        return self.call(Change(make_sender("tester", None, "", ""), decision, "override", override=asked))

    def review(self, decision: str, choice: Any, reason: str = "known to the branch") -> Json:
        asked = ReviewRequest(choice, reason)
        return self.call(Change(make_sender("tester", None, "", ""), decision, "review", review=asked))

    def counts(self, segment: str = "young", policy: str = "cards") -> tuple[float, float, int]:
        view = next(one for one in self.queries.policy(policy).segments if one.name == segment)
        return view.belief.n, view.belief.s, view.pending

    def audit(self) -> AuditReport:
        return audit(self.store)


def rewrite(engine: Engine, segment: str | None, change: Callable[[Event], Event]) -> None:
    """Change events of a chain and write all hashes again, as only somebody with the whole database can."""
    with engine.store.write() as connection:
        own = schema.chain.c.segment.is_(None) if segment is None else schema.chain.c.segment == segment
        chain = connection.execute(select(schema.chain).where(schema.chain.c.policy_id.is_not(None), own)).one()
        rows = connection.execute(
            select(schema.event).where(schema.event.c.chain_id == chain.id).order_by(schema.event.c.seq)
        ).all()
        head = genesis("cards", segment)
        for row in rows:
            body = write(change(read(row.body)))
            head = link(head, body)
            place = (schema.event.c.chain_id == chain.id) & (schema.event.c.seq == row.seq)
            connection.execute(update(schema.event).where(place).values(body=body, hash=head))
        connection.execute(update(schema.chain).where(schema.chain.c.id == chain.id).values(head=head))
