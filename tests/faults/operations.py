"""What clients do to the service, and what they remember of it: each operation may be sent several times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from faults.image import OTHER_COST, solved
from lenience.service.commands.again import DecideAgain
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.erase import Erase
from lenience.service.commands.expire_referrals import ExpireReferrals
from lenience.service.commands.imports import ImportDecisions
from lenience.service.commands.lifecycle import ChangeState, CreateVersion
from lenience.service.commands.monitor import Monitor
from lenience.service.commands.outcomes import (
    Change,
    Expire,
    OutcomeItem,
    OverrideRequest,
    RecordOutcomes,
    ReviewRequest,
)
from lenience.service.commands.ranking import DecideRanked
from lenience.service.domain.clock import now
from lenience.service.domain.imported_rows import ImportRequest
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import Problem
from lenience.service.domain.receipts import CommandAnswer, Sender, make_sender
from lenience.service.storage.command import Command
from portfolios import rows_of, source_of

SEGMENTS = {"cards": ("young", "old"), "shops": ("small", "large"), "applicants": (), "loans": ("car", "home")}
OFFERS = [OfferRequest(amount=500, cost=0.6), OfferRequest(gain=2_000, loss=3_000)]
STATUSES = {"accept": "accepted", "reject": "rejected", "wait": "waiting", "refer": "referred"}
MAKING = ("decide", "batch", "ranked", "again")  # the kinds that make decisions
LIKELY: dict[str, int] = {
    "decide": 30,
    "batch": 8,
    "ranked": 3,
    "import": 3,
    "outcome": 24,
    "outcomes": 6,
    "correction": 5,
    "expiry": 3,
    "override": 4,
    "erasure": 5,
    "erasures": 2,
    "monitor": 5,
    "again": 6,
    "version": 2,
    "activate": 3,
    "shadow": 2,
    "rollout": 6,
    "review": 8,
    "expire": 2,
    "lapse": 2,
}


@dataclass(slots=True)
class Operation:
    """A request that a client sends until it is sure, or gives up."""

    name: str
    kind: str
    actor: str
    body: object
    command: Callable[[Sender], Command]
    keyed: bool
    references: list[str] = field(default_factory=list)  # of the decisions that it makes
    about: tuple[str, ...] = ()  # the decisions that it changes
    sent: int = 0
    answers: list[CommandAnswer] = field(default_factory=list)
    refusals: list[Problem] = field(default_factory=list)

    def make(self) -> Command:
        """Return the command as the service makes it for each request."""
        return self.command(make_sender(self.actor, self.name if self.keyed else None, self.kind, self.body))


@dataclass(slots=True)
class KnownDecision:
    """A decision that was acknowledged, as its client last heard of it."""

    id: str
    policy: str
    status: str  # accepted, rejected, waiting, referred or settled


def decisions_of(body: Any) -> list[Any]:
    """Return the decisions of an answer to one or several requests."""
    decisions: list[Any] = body.get("decisions", [body])
    return decisions


class Planner:
    """Draws operations from what was acknowledged so far.

    Parameters
    ----------
    random : Random
        Draws them.
    policies : sequence of str
        The policies that the clients use.
    """

    def __init__(self, random: Random, policies: list[str]) -> None:
        self.random, self.policies = random, policies
        self.known: dict[str, KnownDecision] = {}
        self.operations: list[Operation] = []

    def plan(self) -> Operation:
        """Return a new operation."""
        kinds = list(LIKELY)
        for kind in self.random.choices(kinds, list(LIKELY.values()), k=20):
            operation = self._plan(kind)
            if operation is not None:
                self.operations.append(operation)
                return operation
        return self.plan()

    def _plan(self, kind: str) -> Operation | None:
        random, policy = self.random, self.random.choice(self.policies)
        name = f"op-{len(self.operations)}"
        actor, keyed = random.choice(("alice", "bob")), random.random() < 0.75
        one = self._any("rejected", "accepted", "waiting", "referred", "settled")

        def operation(body: object, command: Callable[[Sender], Command], **more: Any) -> Operation:
            return Operation(name, kind, actor, body, command, keyed, **more)

        if kind == "import":
            return operation(*self._import(policy, f"{name}"))
        if kind == "ranked":
            if policy != "loans":
                return None
            capacity = random.randrange(1, 4)
        if kind in ("decide", "batch", "ranked"):
            size = 1 if kind == "decide" else random.randrange(2, 5)
            references = [f"person-{name}-{i}" for i in range(size)]
            requests = [self._request(policy, reference) for reference in references]
            single = kind == "decide"
            if kind == "ranked":
                return operation(
                    requests,
                    lambda sender: DecideRanked(sender, policy, list(requests), False, capacity=capacity),
                    references=references,
                )
            return operation(
                requests, lambda sender: Decide(sender, policy, list(requests), single), references=references
            )
        if kind in ("version", "activate", "shadow"):
            if kind == "version":
                cost = OTHER_COST if random.random() < 0.5 else None
                return operation(cost, lambda sender: CreateVersion(sender, solved(policy, cost)))
            state: Any = "active" if kind == "activate" else "shadow"
            return operation(policy, lambda sender: ChangeState(sender, policy, state, None))
        if kind == "rollout":
            percent = random.choice((0.0, 20.0, 50.0, 80.0, 100.0))
            return operation(percent, lambda sender: ChangeState(sender, policy, "rollout", None, percent=percent))
        if kind == "lapse":
            return operation(policy, lambda sender: ExpireReferrals(sender, policy))
        if kind == "expire":
            before = now() - random.randrange(2 * 86_400_000_000)
            return operation(before, lambda sender: Expire(sender, policy, before))
        if kind == "outcomes":
            accepted = [each for each in (self._any("accepted") for _ in range(3)) if each is not None]
            ids = list(dict.fromkeys(each.id for each in accepted))
            items = [OutcomeItem(id=each, outcome=self._outcome()) for each in ids]
            if not items:
                return None
            return operation(items, lambda sender: RecordOutcomes(sender, items), about=tuple(ids))
        wanted = {"outcome": "accepted", "expiry": "accepted", "correction": "settled", "again": "waiting"}.get(kind)
        wanted = "referred" if kind == "review" else wanted
        target = one if wanted is None else self._any(wanted)
        if target is None:
            return None
        identity = target.id
        if kind == "again":
            return operation(identity, lambda sender: DecideAgain.of(sender, identity), about=(identity,))
        if kind == "review":
            review = ReviewRequest(random.choice(("accept", "reject")), f"reason-{name}")
            return operation(
                review, lambda sender: Change(sender, identity, "review", review=review), about=(identity,)
            )
        if kind == "monitor":
            changes: dict[str, str | None] = {"sex": random.choice(("f", "m", None)), "age": str(random.randrange(9))}
            return operation(changes, lambda sender: Monitor(sender, identity, changes), about=(identity,))
        if kind == "erasures":
            ids = sorted({identity, random.choice(list(self.known))})
            return operation(ids, lambda sender: Erase(sender, ids, None), about=tuple(ids))
        if kind == "override":
            override = OverrideRequest(random.choice(("accept", "reject")), "head of credit", f"reason-{name}")
            return operation(
                override, lambda sender: Change(sender, identity, "override", override=override), about=(identity,)
            )
        outcome = self._outcome() if kind in ("outcome", "correction") else None
        change: Any = kind
        return operation(outcome, lambda sender: Change(sender, identity, change, outcome), about=(identity,))

    def learn(self, operation: Operation, body: Any) -> None:
        """Remember what an answer says."""
        if operation.kind in MAKING:
            for each in decisions_of(body):
                status = STATUSES[each["decision"]]
                self.known[each["id"]] = KnownDecision(each["id"], each["policy"], status)
        if operation.kind == "review":
            self.known[operation.about[0]].status = STATUSES[body["decision"]]
        settled = {"outcome", "outcomes", "again", "expiry", "override"}
        if operation.kind in settled:
            for identity in operation.about:
                self.known[identity].status = "settled"

    def _import(self, policy: str, name: str) -> tuple[object, Callable[[Sender], Command]]:
        rows = rows_of(self.random.randrange(1, 9), self.random.randrange(10**6), SEGMENTS[policy] or ("all",))
        for i, row in enumerate(rows):
            row["reference"] = f"import-{name}-{i}"
            if policy == "loans":
                row["offer"] = {"amount": 500, "cost": 0.6}
        request = msgspec.convert({"source": source_of(rows), "first": 0, "rows": rows}, ImportRequest)
        return request, lambda sender: ImportDecisions(sender, policy, request)

    def _any(self, *statuses: str) -> KnownDecision | None:
        fitting = [each for each in self.known.values() if each.status in statuses]
        return self.random.choice(fitting) if fitting else None

    def _outcome(self) -> Any:
        return "success" if self.random.random() < 0.75 else "failure"

    def _request(self, policy: str, reference: str) -> DecisionRequest:
        random = self.random
        if policy == "applicants":
            features: Any = {"income": random.randrange(100), "region": random.choice(("north", "south"))}
            return DecisionRequest(None, reference, features)
        segment = random.choice(SEGMENTS[policy])
        if policy == "loans":
            if random.random() < 0.5:
                return DecisionRequest(segment, reference, offer=random.choice(OFFERS))
            return DecisionRequest(segment, reference, offers=OFFERS)
        if random.random() < 0.2:
            return DecisionRequest(segment, reference, monitored={"sex": random.choice(("f", "m"))})
        return DecisionRequest(segment, reference)
