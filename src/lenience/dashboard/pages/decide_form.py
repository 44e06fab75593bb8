"""The form on a policy's page that makes one decision. If it is invalid, the page shows it again as typed."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, post

from lenience.core.errors import InputError
from lenience.dashboard.pages.policy import FEATURE, SubmittedDecision, filled_in
from lenience.dashboard.rendering import page, redirect
from lenience.dashboard.session import checked_form, visitor_of
from lenience.dashboard.wizard.answers import FormError, number, sentence
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.domain.answers import DecisionEntry
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.http.common import PolicyName
from lenience.service.http.service import Service
from lenience.service.queries.reading import Filters

Req = Request[Any, Any, Any]
OFFER_FIELDS = {
    "offer_gain": "The gain of a success",
    "offer_loss": "The loss of a failure",
    "offer_amount": "The amount lent",
    "offer_rate": "The interest rate",
    "offer_term": "The term",
    "offer_loss_given_default": "The loss given default",
    "offer_funding_rate": "The funding rate",
}
PERCENT_FIELDS = ("offer_rate", "offer_loss_given_default", "offer_funding_rate")


@post("/policies/{name:str}/decide", include_in_schema=False, opt={"role": "decide"}, status_code=303)
async def decide(name: PolicyName, request: Req) -> Response[bytes]:
    """Decide about one individual. A reference that was decided before must be sent a second time to confirm."""
    form = await checked_form(request)
    visitor = visitor_of(request)
    assert visitor is not None
    visitor.must_have("decide")
    service: Service = request.app.state.service
    typed = {
        key: str(form[key]).strip()
        for key in form
        if key in ("segment", "reference", *OFFER_FIELDS) or key.startswith(FEATURE)
    }

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
        version = service.registry.load(connection, policy).ruling()
    numbers = {feature.name for feature in version.specification.features if feature.edges}
    if version.feature_model is not None:
        numbers = {column.name for column in version.feature_model.encoding.columns if column.type == "number"}
    features_sent: dict[str, float | str] = {}
    for key, text in typed.items():
        name = key.removeprefix(FEATURE)
        if version.feature_model is not None and not text.strip():
            continue  # a missing value
        if name != key:
            features_sent[name] = number("decide", key, name, text) if name in numbers else text
    given: dict[str, Any] = {key: typed.get(key) or None for key in ("segment", "reference")}
    offer = _read_offer(typed)
    if offer is not None:
        given["offer"] = offer
    try:
        return msgspec.convert(
            {**given, "features": features_sent or ({} if version.feature_model else None)}, DecisionRequest
        )
    except msgspec.ValidationError as error:
        raise BadRequest(f"the request is invalid: {error}") from None


def _read_offer(typed: dict[str, str]) -> dict[str, float] | None:
    """Return the offer of the form, or None if all its fields are empty. Rates are typed in percent."""
    values: dict[str, float] = {}
    for name, label in OFFER_FIELDS.items():
        text = typed.get(name, "").removesuffix("%").strip()
        if text:
            value = number("decide", name, label, text)
            values[name.removeprefix("offer_")] = value / 100 if name in PERCENT_FIELDS else value
    if not values:
        return None
    loan = values.keys() - {"gain", "loss"}
    if loan and len(loan) < len(values):
        raise FormError("decide", "offer_gain", "Enter the gain and the loss, or describe a loan, but not both.")
    for name in ("amount", "rate", "term") if loan else ("gain", "loss"):
        if name not in values:
            field = f"offer_{name}"
            raise FormError("decide", field, f"{OFFER_FIELDS[field]} is missing.", "missing")
    try:
        msgspec.convert(values, OfferRequest)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        field = f"offer_{cause.field}" if isinstance(cause, InputError) else ""
        raise FormError("decide", field if field in OFFER_FIELDS else "", f"The offer is invalid: {error}.") from None
    return values


def _before(service: Service, policy: str, reference: str | None) -> DecisionEntry | None:
    """Return the last decision of the policy under this reference, or None."""
    if reference is None:
        return None
    decisions = service.queries.page(Filters(policy=policy, reference=reference), None, 1, newest=True).decisions
    return decisions[0] if decisions else None


HANDLERS = [decide]
