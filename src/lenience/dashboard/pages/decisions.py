"""Decisions: the list, the search, one decision explained, and the forms that record what happened to it."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromPath, FromQuery, Parameter
from sqlalchemy import select

from lenience.dashboard.read_models.policy_status import policy_names
from lenience.dashboard.rendering import page, part, redirect
from lenience.dashboard.session import Visitor, checked_form, visitor_of
from lenience.service.commands.outcomes import Change, Kind, OverrideRequest
from lenience.service.domain.answers import DecisionsPage, OutcomeAnswer
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.http.common import DecisionId
from lenience.service.http.service import Service
from lenience.service.queries.reading import Filters
from lenience.service.storage import schema

Req = Request[Any, Any, Any]
PAGE = 50
STATUSES = ("pending", "success", "failure", "expired", "rejected")
Choice = FromQuery[Literal["accept", "reject", ""]]
Status = FromQuery[Literal["pending", "success", "failure", "expired", "rejected", ""]]
Text = Annotated[str, Parameter(max_length=200)]
Cursor = Annotated[str, Parameter(max_length=36, pattern=r"^[0-9a-f-]*\Z")]
RECORDED = {
    "outcome": "The outcome is recorded. The segment's expected success rate is updated.",
    "correction": "The correction is recorded. Both outcomes stay in the log.",
    "expiry": "The outcome expired. It counts neither as a success nor as a failure.",
    "override": "The override is recorded, with its reason.",
    "erasure": "The personal data is erased. The log stays complete.",
}
ALREADY = "This was already recorded. Nothing has changed."
ROLES: dict[str, str] = {
    "outcome": "outcome",
    "correction": "outcome",
    "expiry": "outcome",
    "override": "admin",
    "erasure": "admin",
}


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

    def ask() -> tuple[DecisionsPage, dict[str, str], list[str]]:
        decisions = search(service, filters, before)
        return decisions, references(service, [entry.id for entry in decisions.decisions]), policy_names(service)

    decisions, own_references, policies = await service.ask(ask)
    given = {name: value for name, value in filters.items() if value}
    values: dict[str, Any] = {
        "page": decisions,
        "references": own_references,
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
    decision = await service.ask(lambda: service.queries.decision(identity))
    return page(request, "decision.html", decision=decision)


@post("/decisions/{identity:str}/{kind:str}", include_in_schema=False, status_code=303)
async def record(identity: DecisionId, kind: FromPath[str], request: Req) -> Response[bytes]:
    """Record an outcome, a correction, an expiry, an override or an erasure."""
    if kind not in RECORDED:
        raise BadRequest(f"the address must end in one of {', '.join(RECORDED)}, not {kind!r}")
    form = await checked_form(request)
    visitor = _may(request, ROLES[kind])
    outcome = form.get("outcome")
    override = None
    if kind in ("outcome", "correction") and outcome not in ("success", "failure"):
        raise BadRequest("outcome must be success or failure")
    if kind == "override":
        try:
            override = msgspec.convert(
                {name: str(form.get(name, "")).strip() for name in ("decision", "by", "reason")}, OverrideRequest
            )
        except msgspec.ValidationError as error:
            raise BadRequest(f"the override cannot be recorded: {error}") from None
    service: Service = request.app.state.service
    change = Change(
        make_sender(visitor.actor, None, "", None),
        identity,
        _kind(kind),
        outcome if kind in ("outcome", "correction") else None,
        override,
    )
    answer = msgspec.json.decode((await service.perform(change)).body, type=OutcomeAnswer)
    return redirect(f"/decisions/{identity}", RECORDED[kind] if answer.recorded else ALREADY)


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


def _may(request: Req, role: str) -> Visitor:
    visitor = visitor_of(request)
    assert visitor is not None
    visitor.must_have(role)
    return visitor


def _kind(name: str) -> Kind:
    kind: Kind = msgspec.convert(name, Kind)
    return kind


HANDLERS = [feed, show, record]
