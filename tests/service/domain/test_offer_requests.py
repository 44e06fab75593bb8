"""An offer in a request: three forms, and every mixture of them is refused with the field that is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lenience import Offer
from lenience.service.commands.decide import DecisionRequest
from lenience.service.domain.offer_requests import OfferRequest, missing_terms_warnings
from lenience.service.domain.problems import BadRequest
from lenience.service.http.bodies import decoded


def offer(given: dict[str, Any]) -> Offer:
    request: DecisionRequest = decoded(json.dumps({"offer": given}).encode(), DecisionRequest)
    (only,) = request.choices
    return only


def test_the_three_forms() -> None:
    assert offer({"amount": 1000, "cost": 0.8}) == Offer(1000, 0.8)
    assert offer({"gain": 200, "loss": 800}) == Offer(1000, 0.8)
    loan = {"amount": 10_000, "rate": 0.12, "term": 3}
    assert offer(loan) == Offer.from_loan(10_000, 0.12, 3)
    more = {"loss_given_default": 0.6, "funding_rate": 0.04}
    assert offer({**loan, **more}) == Offer.from_loan(10_000, 0.12, 3, 0.6, 0.04)


@pytest.mark.parametrize(
    ("given", "field", "code"),
    [
        ({}, "offer.amount", "missing"),
        ({"amount": 5}, "offer.cost", "missing"),
        ({"gain": 5}, "offer.loss", "missing"),
        ({"amount": 5, "rate": 0.1}, "offer.term", "missing"),
        ({"rate": 0.1, "term": 2}, "offer.amount", "missing"),
        ({"amount": 5, "cost": 0.5, "gain": 1}, "offer.loss", "missing"),
        ({"amount": 5, "gain": 1, "loss": 1}, "offer.amount", "conflicting_fields"),
        ({"amount": 5, "cost": 0.5, "rate": 0.1, "term": 2}, "offer.cost", "conflicting_fields"),
        ({"amount": 5, "cost": 0.5, "funding_rate": 0.1}, "offer.funding_rate", "conflicting_fields"),
        ({"amount": 5, "cost": 1}, "offer.cost", "invalid_value"),
        ({"amount": 0, "cost": 0.5}, "offer.amount", "invalid_value"),
        ({"amount": "5", "cost": 0.5}, "offer.amount", "invalid_value"),
        ({"amount": 5, "price": 0.5}, "offer.price", "unknown_field"),
        ({"amount": 5, "rate": 0.1, "term": 2, "funding_rate": 0.2}, "offer.funding_rate", "invalid_value"),
        ({"gain": 1e12, "loss": 1e-9}, "offer.cost", "invalid_value"),
    ],
)
def test_other_mixtures(given: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(BadRequest) as caught:
        offer(given)
    assert (caught.value.field, caught.value.code) == (field, code)


def test_several_offers() -> None:
    body = {"offers": [{"amount": 1000, "cost": 0.8}, {"gain": 1, "loss": 1}]}
    request: DecisionRequest = decoded(json.dumps(body).encode(), DecisionRequest)
    assert request.choices == (Offer(1000, 0.8), Offer(2, 0.5))
    for wrong, field in (
        ({"offers": []}, "offers"),
        ({"offers": [{"amount": 1, "cost": 0.5}] * 101}, "offers"),
        ({"offers": [{"amount": 1, "cost": 0.5}, {"amount": 1}]}, "offers[1].cost"),
        ({**body, "offer": {"amount": 1, "cost": 0.5}}, "offer"),
    ):
        with pytest.raises(BadRequest) as caught:
            decoded(json.dumps(wrong).encode(), DecisionRequest)
        assert caught.value.field == field, wrong


def test_terms_that_the_policy_was_fitted_with_are_missed() -> None:
    loan = OfferRequest(amount=5000, rate=0.12, term=3, funding_rate=0.02)
    economics = {"loss_given_default": "0.6", "funding_rate": "cost_of_funds", "currency": "$"}
    (warning,) = missing_terms_warnings([loan], economics)
    assert "offer.loss_given_default" in warning
    assert "0.6" in warning
    assert len(missing_terms_warnings([OfferRequest(amount=5000, rate=0.12, term=3)], economics)) == 2
    assert missing_terms_warnings([loan], {"currency": "$"}) == []
    assert missing_terms_warnings([OfferRequest(amount=1000, cost=0.8)], economics) == []
