"""What if: sliders for what a policy rests on, and what would follow, as one drags; beside the policy as it is."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromQuery, Parameter

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
from lenience.service.commands.lifecycle import CreateVersion
from lenience.service.domain.problems import BadRequest, Conflict
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.service import Service

Req = Request[Any, Any, Any]
Chosen = Annotated[str, Parameter(max_length=64)]
Segment = Annotated[str, Parameter(max_length=200)]


class Against(msgspec.Struct, frozen=True):
    """The policy that is compared with: one segment of the version that rules, or of the newest."""

    policy: PolicyStatus
    segment: SegmentStatus
    preset: Preset
    outlook: Outlook

    @property
    def chosen(self) -> dict[str, str]:
        """How it is named in an address."""
        return {"policy": self.policy.name, "segment": self.segment.name}


@get("/what-if", include_in_schema=False)
async def show(request: Req, policy: Chosen = "", segment: Segment = "") -> Response[bytes]:
    """The page."""
    service: Service = request.app.state.service
    given = dict(request.query_params)

    def ask() -> dict[str, Any]:
        # An empty choice is one too: from nothing. Without any, the policy that decides most is looked at.
        ruling = [] if "policy" in given else [one.name for one in ranked_policies(service) if one.active]
        against = compared(service, ruling[0] if ruling else policy, segment)
        question = read_question(given, against.preset.asked if against else None)
        return {**answered(question, against, QUICK), "policies": policy_names(service), "sliders": SLIDERS}

    return page(request, "what_if.html", **await service.ask(ask))


@get("/what-if/answer", include_in_schema=False)
async def again(
    request: Req, policy: Chosen = "", segment: Segment = "", patient: FromQuery[bool] = False
) -> Response[bytes]:
    """What follows from the numbers as they are now; with patience after it was told at once."""
    service: Service = request.app.state.service
    given = dict(request.query_params)

    def ask() -> dict[str, Any]:
        against = compared(service, policy, segment)
        question = read_question(given)
        return answered(question, against, PATIENT if patient else QUICK)

    # What takes long waits its turn, so that a hand that goes on dragging keeps nobody else waiting.
    values = await (service.solve(ask) if patient else service.ask(ask))
    return part(request, "what_if.html", **values)


@post("/what-if/draft", include_in_schema=False, opt={"role": "admin"}, status_code=303)
async def save(request: Req) -> Response[bytes]:
    """Save what is asked as a draft: a new version of the policy compared with, or a new policy."""
    form = await checked_form(request)
    given = {name: str(value) for name, value in form.items()}
    service: Service = request.app.state.service
    visitor = visitor_of(request)
    assert visitor is not None
    specification = await service.ask(lambda: specified(service, given))
    solved = await service.solve_version(specification)
    made = await service.perform(CreateVersion(make_sender(visitor.actor, None, "", None), solved))
    number = msgspec.json.decode(made.body)["version"]
    words = f"Saved as version {number} of {specification.name}, a draft: it decides nothing until it is activated."
    return redirect(f"/policies/{specification.name}?version={number}", words, *solved.warnings)


def compared(service: Service, policy: str, segment: str) -> Against | None:
    """The policy and segment chosen, with their outlook."""
    if not policy:
        return None
    with service.store.read() as connection:
        status = read_policy_status(service, connection, policy)
    one = status.segment(segment or None)
    specification = status.version.specification
    mine = next(each for each in specification.problems() if each.name == one.name)
    outlook = _kept.get(one.rule.digest)
    if outlook is None:
        outlook = foresee(mine.problem, mine.prior, one.rule.table)
        if len(_kept) > 500:
            _kept.clear()
        _kept[one.rule.digest] = outlook
    if one.rule.exploration_floor > 0:
        outlook = msgspec.structs.replace(outlook, shut_out=0.0)
    return Against(status, one, preset_of(specification, mine), outlook)


_kept: dict[str, Outlook] = {}  # by the digest of the solved table


def answered(question: WhatIfQuestion, against: Against | None, pains: SolveLimits) -> dict[str, Any]:
    """What the answer shows."""
    result = answer_question(against.preset.exactly(question) if against else question, pains)
    words = summary(result.outlook)
    chosen = against.chosen if against else {"policy": ""}
    return {
        "asked": question,
        "against": against,
        "answer": result,
        "summary": words,
        "pictures": pictures(result.outlook.table, words, against.segment if against else None),
        "query": urlencode({**chosen, **question.fields}),
    }


def specified(service: Service, given: dict[str, str]) -> PolicySpecification:
    """The specification a form asks to save."""
    question = read_question(given)
    name, chosen, segment = (given.get(field, "").strip() for field in ("name", "policy", "segment"))
    against = compared(service, chosen, segment)
    if name != chosen and name in policy_names(service):
        raise Conflict(f"there is a policy {name!r} already: choose it to compare with, or take another name")
    base = against.policy.version.specification if against else None
    made = draft(question, name, base, against.segment.name if against else None)
    try:
        return msgspec.convert(msgspec.to_builtins(made), PolicySpecification)
    except msgspec.ValidationError as error:
        raise BadRequest(f"this cannot be saved: {error}") from None


HANDLERS = [show, again, save]
