"""Decisions: the feed, the search, one decision explained, and what a person records about it."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromPath, FromQuery, Parameter
from sqlalchemy import select

from lenience.dashboard.read_models.policy_status import policy_names
from lenience.dashboard.rendering import moved, page, part
from lenience.dashboard.session import Visitor, checked_form, visitor_of
from lenience.service.commands.command import sender
from lenience.service.commands.outcomes import Change, Kind, OverrideRequest
from lenience.service.domain.answers import DecisionsPage, OutcomeAnswer
from lenience.service.domain.problems import BadRequest
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
    "outcome": "The outcome is recorded; the belief has moved.",
    "correction": "The correction is recorded; both outcomes stay in the log.",
    "expiry": "The outcome expired; it teaches nothing.",
    "override": "The override is recorded, with its reason.",
    "erasure": "The personal data is erased; the log stays whole.",
}
ALREADY = "That was recorded already; nothing has changed."
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
    """The newest decisions, or those that are searched for."""
    asked = {"policy": policy, "segment": segment, "decision": decision, "status": status, "reference": reference}
    service: Service = request.app.state.service

    def ask() -> tuple[DecisionsPage, dict[str, str], list[str]]:
        found = search(service, asked, before)
        return found, references(service, [one.id for one in found.decisions]), policy_names(service)

    found, theirs, policies = await service.ask(ask)
    given = {name: value for name, value in asked.items() if value}
    values: dict[str, Any] = {
        "found": found,
        "references": theirs,
        "asked": asked,
        "query": urlencode(given),
        "download": urlencode({name: value for name, value in given.items() if name != "reference"}),
        "more": urlencode({**given, "before": found.next}) if found.next else "",
        "first": not before,
    }
    if request.headers.get("hx-request") == "true":
        return part(request, "feed.html", **values)
    return page(request, "decisions.html", **values, policies=policies, statuses=STATUSES)


@get("/decisions/{identity:str}", include_in_schema=False)
async def show(identity: DecisionId, request: Req) -> Response[bytes]:
    """One decision, explained, with its place in the log."""
    service: Service = request.app.state.service
    found = await service.ask(lambda: service.queries.decision(identity))
    return page(request, "decision.html", decision=found)


@post("/decisions/{identity:str}/{kind:str}", include_in_schema=False, status_code=303)
async def record(identity: DecisionId, kind: FromPath[str], request: Req) -> Response[bytes]:
    """Record an outcome, a correction, an expiry, an override or an erasure."""
    if kind not in RECORDED:
        raise BadRequest(f"what is recorded must be one of {', '.join(RECORDED)}, not {kind!r}")
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
        sender(visitor.actor, None, "", None),
        identity,
        _kind(kind),
        outcome if kind in ("outcome", "correction") else None,
        override,
    )
    answer = msgspec.json.decode((await service.perform(change)).body, type=OutcomeAnswer)
    return moved(f"/decisions/{identity}", RECORDED[kind] if answer.recorded else ALREADY)


def search(service: Service, asked: dict[str, str], before: str) -> DecisionsPage:
    """A page of decisions, the newest first."""
    filters = Filters(**{name: value or None for name, value in asked.items()})  # type: ignore[arg-type]
    return service.queries.page(filters, before or None, PAGE, newest=True)


def references(service: Service, identities: list[str]) -> dict[str, str]:
    """Under which reference of the sender's own decisions were made, of those that have one."""
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
    found: Kind = msgspec.convert(name, Kind)
    return found


HANDLERS = [feed, show, record]
