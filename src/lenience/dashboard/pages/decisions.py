"""Decisions: the list, the search, one decision explained, and the forms that record what happened to it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromPath, FromQuery, Parameter
from sqlalchemy import Connection, func, select

from lenience.core.money import Money
from lenience.dashboard.read_models.contributions import contributions_in_words
from lenience.dashboard.read_models.policy_status import policy_names
from lenience.dashboard.rendering import page, part, redirect
from lenience.dashboard.session import Visitor, checked_form, visitor_of
from lenience.service.commands.again import DecideAgain
from lenience.service.commands.outcomes import Change, Kind, OverrideRequest, ReviewRequest
from lenience.service.domain.answers import DecisionAnswer, DecisionsPage, DecisionView, OutcomeAnswer
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.state import realised_profit
from lenience.service.http.common import DecisionId
from lenience.service.http.service import Service
from lenience.service.queries.reading import Filters
from lenience.service.storage import schema
from lenience.service.storage.people import actor_names

Req = Request[Any, Any, Any]
PAGE = 50
STATUSES = ("pending", "success", "failure", "expired", "rejected", "waiting", "replaced", "referred", "lapsed")
Choice = FromQuery[Literal["accept", "reject", "refer", ""]]
Status = FromQuery[
    Literal["pending", "success", "failure", "expired", "rejected", "waiting", "replaced", "referred", "lapsed", ""]
]
Text = Annotated[str, Parameter(max_length=200)]
Cursor = Annotated[str, Parameter(max_length=36, pattern=r"^[0-9a-f-]*\Z")]
RECORDED = {
    "outcome": "The outcome is recorded. The segment's expected success rate is updated.",
    "correction": "The correction is recorded. Both outcomes stay in the log.",
    "expiry": "The outcome expired. It counts neither as a success nor as a failure.",
    "override": "The override is recorded, with its reason.",
    "review": "The decision is recorded, with its reason.",
    "erasure": "The personal data is erased. The log stays complete.",
}
QUEUE = re.compile(r"/reviews\?[A-Za-z0-9._=&%-]{0,200}")  # where a reviewer came from
ALREADY = "This was already recorded. Nothing has changed."
ROLES: dict[str, str] = {
    "outcome": "outcome",
    "correction": "outcome",
    "expiry": "outcome",
    "override": "admin",
    "review": "review",
    "erasure": "admin",
}


class DecidedOffer(msgspec.Struct, frozen=True):
    """The offer that a decision was about, with what its outcome has earned."""

    money: Money
    amount: float
    cost: float
    profit: float | None


@get("/decisions", include_in_schema=False)
async def feed(
    request: Req,
    policy: Text = "",
    segment: Text = "",
    decision: Choice = "",
    status: Status = "",
    reference: Text = "",
    before: Cursor = "",
) -> Response[bytes]:
    """Show the newest decisions, or the result of a search."""
    filters = {"policy": policy, "segment": segment, "decision": decision, "status": status, "reference": reference}
    service: Service = request.app.state.service

    def ask() -> tuple[DecisionsPage, dict[str, str], dict[str, DecidedOffer], list[str]]:
        decisions = search(service, filters, before)
        identities = [entry.id for entry in decisions.decisions]
        return decisions, references(service, identities), decided_offers(service, identities), policy_names(service)

    decisions, own_references, offers, policies = await service.ask(ask)
    given = {name: value for name, value in filters.items() if value}
    values: dict[str, Any] = {
        "page": decisions,
        "references": own_references,
        "offers": offers,
        "filters": filters,
        "query": urlencode(given),
        "download": urlencode({name: value for name, value in given.items() if name != "reference"}),
        "more": urlencode({**given, "before": decisions.next}) if decisions.next else "",
        "first": not before,
    }
    if request.headers.get("hx-request") == "true":
        return part(request, "feed.html", **values)
    return page(request, "decisions.html", **values, policies=policies, statuses=STATUSES)


@get("/decisions/{identity:str}", include_in_schema=False)
async def show(identity: DecisionId, request: Req) -> Response[bytes]:
    """Show one decision with its explanation and its history."""
    service: Service = request.app.state.service

    def ask() -> dict[str, Any]:
        decision = service.queries.decision(identity)
        offers = decided_offers(service, [identity])
        units = _units(service, decision)
        with service.store.read() as connection:
            names = actor_names(connection, [event.actor for event in decision.history])
        return {
            "decision": decision,
            "money": offers[identity].money if identity in offers else None,
            "by_features": units is not None,
            "contributions": contributions_in_words(decision, units or {}),
            "names": names,
        }

    return page(request, "decision.html", **await service.ask(ask))


@post("/decisions/{identity:str}/again", include_in_schema=False, status_code=303)
async def again(identity: DecisionId, request: Req) -> Response[bytes]:
    """Decide a waiting individual again, and show the new decision."""
    await checked_form(request)
    sender = make_sender(_may(request, "decide").actor, None, "", None)
    answer = await request.app.state.service.perform(DecideAgain.of(sender, identity))
    new = msgspec.json.decode(answer.body, type=DecisionAnswer)
    still = "There is still no place. The applicant keeps waiting." if new.decision == "wait" else ""
    return redirect(f"/decisions/{new.id}", still or f"The applicant was decided again: {new.decision}.")


@post("/decisions/{identity:str}/{kind:str}", include_in_schema=False, status_code=303)
async def record(identity: DecisionId, kind: FromPath[str], request: Req) -> Response[bytes]:
    """Record an outcome, a correction, an expiry, an override, a review or an erasure."""
    if kind not in RECORDED:
        raise BadRequest(f"the address must end in one of {', '.join(RECORDED)}, not {kind!r}")
    form = await checked_form(request)
    visitor = _may(request, ROLES[kind])
    outcome = form.get("outcome")
    override = None
    reports = ("success", "failure") if kind == "correction" else ("success", "failure", "late", "current")
    if kind in ("outcome", "correction") and outcome not in reports:
        raise BadRequest(f"outcome must be {' or '.join(reports)}")
    review = None
    if kind in ("override", "review"):
        given = {name: str(form.get(name, "")).strip() for name in ("decision", "by", "reason")}
        try:
            if kind == "review":
                review = msgspec.convert(given, ReviewRequest)
            else:
                override = msgspec.convert(given, OverrideRequest)
        except msgspec.ValidationError as error:
            raise BadRequest(f"the {kind} cannot be recorded: {error}") from None
    service: Service = request.app.state.service
    change = Change(
        make_sender(visitor.actor, None, "", None),
        identity,
        _kind(kind),
        outcome if kind in ("outcome", "correction") else None,
        override,
        str(form.get("outcome_at") or "") or None,
        review,
    )
    answer = msgspec.json.decode((await service.perform(change)).body, type=OutcomeAnswer)
    back = str(form.get("back", ""))
    address = back if kind == "review" and QUEUE.fullmatch(back) else f"/decisions/{identity}"
    return redirect(address, RECORDED[kind] if answer.recorded else ALREADY)


def search(service: Service, fields: dict[str, str], before: str) -> DecisionsPage:
    """Return a page of decisions, newest first."""
    filters = Filters(**{name: value or None for name, value in fields.items()})  # type: ignore[arg-type]
    return service.queries.page(filters, before or None, PAGE, newest=True)


def references(service: Service, identities: list[str]) -> dict[str, str]:
    """Return the sender's reference of each decision that has one."""
    table, personal = schema.decision, schema.personal
    same = (personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq)
    query = select(table.c.id, personal.c.reference).join(personal, same).where(table.c.id.in_(identities))
    with service.store.read() as connection:
        return {row.id: row.reference for row in connection.execute(query) if row.reference is not None}


def decided_offers(service: Service, identities: list[str]) -> dict[str, DecidedOffer]:
    """Return the offer of each decision that has one, in the currency of the version that decided."""
    table, chain = schema.decision, schema.chain
    columns = (table.c.id, table.c.version, table.c.status, table.c.amount, table.c.cost, chain.c.policy_id)
    query = select(*columns).join(chain, chain.c.id == table.c.chain_id)
    offers = {}
    with service.store.read() as connection:
        for row in connection.execute(query.where(table.c.id.in_(identities), table.c.amount.is_not(None))):
            version = service.registry.version(connection, row.policy_id, row.version or _newest(connection, row))
            # A shadow version may have had offers where the version that decided has one break-even.
            currency = version.specification.objective.offers
            money = currency.money if currency is not None else Money(1.0)
            profit = realised_profit(row.status, row.amount, row.cost)
            offers[row.id] = DecidedOffer(money, row.amount, row.cost, profit)
    return offers


def _units(service: Service, decision: DecisionView) -> dict[str, str] | None:
    """Return the unit of each feature, or None if the version that decided does not decide by features."""
    if not decision.policy_version:
        return None
    with service.store.read() as connection:
        record = service.registry.load(connection, decision.policy)
        model = service.registry.version(connection, record.id, decision.policy_version).feature_model
    return None if model is None else {column.name: column.unit for column in model.encoding.columns}


def _newest(connection: Connection, row: Any) -> int:
    """Return the newest version of the policy of an imported decision."""
    numbers = select(func.max(schema.version.c.number)).where(schema.version.c.policy_id == row.policy_id)
    return int(connection.execute(numbers).scalar_one())


def _may(request: Req, role: str) -> Visitor:
    visitor = visitor_of(request)
    assert visitor is not None
    visitor.must_have(role)
    return visitor


def _kind(name: str) -> Kind:
    kind: Kind = msgspec.convert(name, Kind)
    return kind


HANDLERS = [feed, show, again, record]
