"""The form on a policy's page that makes one decision. If it is invalid, the page shows it again as typed."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, post

from lenience.dashboard.pages.policy import FEATURE, SubmittedDecision, filled_in
from lenience.dashboard.rendering import page, redirect
from lenience.dashboard.session import checked_form, visitor_of
from lenience.dashboard.wizard.answers import FormError, number, sentence
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.domain.answers import DecisionEntry
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.http.common import PolicyName
from lenience.service.http.service import Service
from lenience.service.queries.reading import Filters

Req = Request[Any, Any, Any]


@post("/policies/{name:str}/decide", include_in_schema=False, opt={"role": "decide"}, status_code=303)
async def decide(name: PolicyName, request: Req) -> Response[bytes]:
    """Decide about one individual. A reference that was decided before must be sent a second time to confirm."""
    form = await checked_form(request)
    visitor = visitor_of(request)
    assert visitor is not None
    visitor.must_have("decide")
    service: Service = request.app.state.service
    typed = {key: str(form[key]).strip() for key in form if key in ("segment", "reference") or key.startswith(FEATURE)}

    async def again(error: str, field: str, before: DecisionEntry | None = None) -> Response[bytes]:
        if not visitor.may("read"):
            raise BadRequest(error)
        hand = SubmittedDecision(typed, sentence(error), field, before)
        values = await service.ask(lambda: filled_in(service, name, None, typed.get("segment"), hand))
        return page(request, "policy.html", 400 if before is None else 409, **values)

    try:
        decision_request = await service.ask(lambda: _read_request(service, name, typed))
        before = await service.ask(lambda: _before(service, name, decision_request.reference))
        if before is not None and form.get("again") != before.id:
            return await again("", "reference", before)
        answer = await service.perform(
            Decide(make_sender(visitor.actor, None, "", None), name, [decision_request], True)
        )
    except FormError as error:
        return await again(str(error), error.field or "")
    except BadRequest as error:
        return await again(error.detail, "")
    made = msgspec.json.decode(answer.body)
    return redirect(f"/decisions/{made['id']}", f"Decided: {made['decision']}.", *map(sentence, made["warnings"]))


def _read_request(service: Service, policy: str, typed: dict[str, str]) -> DecisionRequest:
    """Return the request of the form, with numbers for features that the policy cuts into bands."""
    with service.store.read() as connection:
        features = service.registry.load(connection, policy).ruling().specification.features
    numbers = {feature.name for feature in features if feature.edges}
    features_sent: dict[str, float | str] = {}
    for key, text in typed.items():
        name = key.removeprefix(FEATURE)
        if name != key:
            features_sent[name] = number("decide", key, name, text) if name in numbers else text
    given = {key: typed.get(key) or None for key in ("segment", "reference")}
    try:
        return msgspec.convert({**given, "features": features_sent or None}, DecisionRequest)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the request is invalid: {error}") from None


def _before(service: Service, policy: str, reference: str | None) -> DecisionEntry | None:
    """Return the last decision of the policy under this reference, or None."""
    if reference is None:
        return None
    decisions = service.queries.page(Filters(policy=policy, reference=reference), None, 1, newest=True).decisions
    return decisions[0] if decisions else None


HANDLERS = [decide]
