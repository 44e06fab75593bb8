"""What if: sliders for the assumptions of a policy and the effect of each change, compared with a policy."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromQuery, Parameter

from lenience.core.money import UNITS, Money
from lenience.dashboard.figures.what_if import pictures
from lenience.dashboard.read_models.outlook import (
    PATIENT,
    QUICK,
    Outlook,
    SolveLimits,
    answer_question,
    foresee,
    summary,
)
from lenience.dashboard.read_models.policy_status import (
    PolicyStatus,
    SegmentStatus,
    policy_names,
    ranked_policies,
    read_policy_status,
)
from lenience.dashboard.read_models.starter import answer_starter, starter_summary
from lenience.dashboard.read_models.what_if_inputs import (
    SLIDERS,
    Preset,
    WhatIfQuestion,
    draft,
    preset_of,
    read_question,
)
from lenience.dashboard.rendering import page, part, redirect
from lenience.dashboard.session import checked_form, visitor_of
from lenience.service.domain.answers import VersionAnswer
from lenience.service.domain.problems import BadRequest, Conflict
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.background_solves import PATIENCE
from lenience.service.http.service import Service

Req = Request[Any, Any, Any]
Chosen = Annotated[str, Parameter(max_length=64)]
Segment = Annotated[str, Parameter(max_length=200)]


class Against(msgspec.Struct, frozen=True):
    """The policy to compare with: one segment of its active version, or of the newest if none is active."""

    policy: PolicyStatus
    segment: SegmentStatus
    preset: Preset
    outlook: Outlook

    @property
    def chosen(self) -> dict[str, str]:
        """The parameters of the address that name it."""
        return {"policy": self.policy.name, "segment": self.segment.name}


@get("/what-if", include_in_schema=False)
async def show(request: Req, policy: Chosen = "", segment: Segment = "") -> Response[bytes]:
    """Show the page."""
    service: Service = request.app.state.service
    given = dict(request.query_params)

    def ask() -> dict[str, Any]:
        # An empty policy means none. If the address names no policy, compare with the busiest active one.
        active = [] if "policy" in given else [record.name for record in ranked_policies(service) if record.active]
        against = compared(service, active[0] if active else policy, segment)
        question = read_question(given, against.preset.shown if against else None)
        return {**answered(question, against, QUICK), "policies": policy_names(service), "sliders": SLIDERS}

    return page(request, "what_if.html", **await service.ask(ask))


@get("/what-if/answer", include_in_schema=False)
async def again(
    request: Req, policy: Chosen = "", segment: Segment = "", patient: FromQuery[bool] = False
) -> Response[bytes]:
    """Show the results for the current numbers: quickly, or exactly if ``patient``."""
    service: Service = request.app.state.service
    given = dict(request.query_params)

    def ask() -> dict[str, Any]:
        against = compared(service, policy, segment)
        question = read_question(given)
        return answered(question, against, PATIENT if patient else QUICK)

    # Slow answers queue for the solver, so that a visitor who keeps dragging does not block others.
    values = await (service.solve(ask) if patient else service.ask(ask))
    return part(request, "what_if.html", **values)


@post("/what-if/draft", include_in_schema=False, opt={"role": "admin"}, status_code=303)
async def save(request: Req) -> Response[bytes]:
    """Save the question as a draft: a new version of the policy compared with, or a new policy."""
    form = await checked_form(request)
    given = {name: str(value) for name, value in form.items()}
    service: Service = request.app.state.service
    visitor = visitor_of(request)
    assert visitor is not None
    specification = await service.ask(lambda: specified(service, given))
    solve = service.solve_in_background(specification, make_sender(visitor.actor, None, "", None))
    if not await solve.ended_within(PATIENCE):
        return redirect(f"/solves/{solve.id}")
    made = msgspec.json.decode(solve.task.result().body, type=VersionAnswer)
    number = made.version
    message = f"Saved version {number} of {specification.name} as a draft. It makes no decisions until it is activated."
    return redirect(f"/policies/{specification.name}?version={number}", message, *made.warnings)


def compared(service: Service, policy: str, segment: str) -> Against | None:
    """Return the chosen policy and segment with their outlook, or None."""
    if not policy:
        return None
    with service.store.read() as connection:
        status = read_policy_status(service, connection, policy)
    chosen = status.segment(segment or None)
    specification = status.version.specification
    problem = next(each for each in specification.problems() if each.name == chosen.name)
    outlook = _outlooks.get(chosen.rule.digest)
    if outlook is None:
        outlook = foresee(problem.problem, problem.belief, chosen.rule.table)
        if len(_outlooks) > 500:
            _outlooks.clear()
        _outlooks[chosen.rule.digest] = outlook
    if chosen.rule.exploration_floor > 0:
        outlook = msgspec.structs.replace(outlook, shut_out=0.0)
    return Against(status, chosen, preset_of(specification, problem), outlook)


_outlooks: dict[str, Outlook] = {}  # by the digest of the solved table


def answered(question: WhatIfQuestion, against: Against | None, limits: SolveLimits) -> dict[str, Any]:
    """Return the values that the results show."""
    exact = against.preset.exactly(question) if against else question
    result, starter = answer_question(exact, limits), answer_starter(exact, limits)
    money = against.preset.money if against else UNITS
    text = summary(result.outlook, money)
    chosen = against.chosen if against else {"policy": ""}
    return {
        "question": question,
        "against": against,
        "answer": result,
        "starter": starter,
        "starter_text": starter_summary(starter, money),
        "more": result.more or starter.more,
        "money": money,
        "their_money": Money(1.0, money.currency) if money.known else UNITS,
        "summary": text,
        "pictures": pictures(result.outlook.table, text, against.segment if against else None),
        "query": urlencode({**chosen, **question.fields}),
    }


def specified(service: Service, given: dict[str, str]) -> PolicySpecification:
    """Return the specification that the form asks to save."""
    question = read_question(given)
    name, chosen, segment = (given.get(field, "").strip() for field in ("name", "policy", "segment"))
    against = compared(service, chosen, segment)
    if name != chosen and name in policy_names(service):
        raise Conflict(f"a policy {name!r} already exists: choose it on this page, or use another name")
    base = against.policy.version.specification if against else None
    made = draft(question, name, base, against.segment.name if against else None)
    try:
        return msgspec.convert(msgspec.to_builtins(made), PolicySpecification)
    except msgspec.ValidationError as error:
        raise BadRequest(f"this cannot be saved: {error}") from None


HANDLERS = [show, again, save]
