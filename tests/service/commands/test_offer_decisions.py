"""Offers in the engine: what is at risk, caps in money, shadows, and the audit of all of it."""

from __future__ import annotations

from typing import Any

import pytest

from engines import Engine
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import BadRequest
from serving import OFFERS

SMALL, LARGE = OfferRequest(amount=500, cost=0.8), OfferRequest(gain=1000, loss=4000)
PLAIN = {"type": "discounted", "cost": 0.6, "discount": 0.9}


def lend(engine: Engine, *offers: OfferRequest) -> dict[str, Any]:
    return engine.decide(policy="loans", offers=list(offers))


def test_a_cap_in_money_counts_what_pending_offers_would_lose(engine: Engine) -> None:
    """Each small offer loses 400 if it fails: two fit into 1,000."""
    engine.create(name="loans", objective=OFFERS, constraints={"exposure_cap_amount": 1000})
    first, second = lend(engine, SMALL), lend(engine, SMALL)
    assert [one["decision"] for one in (first, second)] == ["accept", "accept"]
    third = lend(engine, SMALL)
    assert (third["decision"], third["rule"]) == ("reject", "exposure_cap_amount")
    assert engine.decide("old", policy="loans", offer=SMALL)["decision"] == "accept"  # each segment has its own cap
    engine.outcome(first["id"], "success")
    fourth = lend(engine, SMALL, LARGE)
    assert (fourth["decision"], fourth["offer"]["amount"]) == ("accept", 500)
    engine.give_up(second["id"])
    assert lend(engine, SMALL)["decision"] == "accept"
    assert lend(engine, SMALL)["decision"] == "reject"
    engine.override(fourth["id"], "reject")
    assert lend(engine, SMALL)["decision"] == "accept"
    assert engine.audit().whole


def test_an_override_puts_the_rejected_offer_at_risk(engine: Engine) -> None:
    engine.create(name="loans", objective=OFFERS, constraints={"exposure_cap_amount": 4300})
    refused = lend(engine, LARGE)
    assert (refused["decision"], refused["rule"]) == ("reject", "below_threshold")
    engine.override(refused["id"], "accept")
    assert lend(engine, SMALL)["rule"] == "exposure_cap_amount"  # 4,000 and 400 are more than 4,300
    engine.outcome(refused["id"], "failure")
    assert lend(engine, OfferRequest(amount=10, cost=0.8))["decision"] == "accept"
    assert engine.audit().whole


def test_shadows_with_and_without_offers(engine: Engine) -> None:
    engine.create(name="loans", objective=OFFERS)
    engine.create(name="loans", objective=PLAIN, activate=False)
    engine.state("loans", "shadow", 2)
    engine.create(name="loans", objective={**OFFERS, "discount": 0.5}, activate=False)
    engine.state("loans", "shadow", 3)
    made = lend(engine, SMALL)
    assert made["decision"] == "accept"
    shadows = {one.version: one for one in engine.queries.decision(made["id"]).shadows}
    assert {number: one.decision for number, one in shadows.items()} == {2: "accept", 3: "reject"}
    assert shadows[3].expected_profit == pytest.approx(500 * (0.5 - 0.8))
    # Where the active version has one cost, a request has no offer, and a version that needs one cannot judge it.
    engine.state("loans", "active", 2)
    engine.state("loans", "shadow", 1)
    plain = engine.decide(policy="loans")
    assert plain["decision"] == "accept"
    assert [one.version for one in engine.queries.decision(plain["id"]).shadows] == []
    assert engine.audit().whole


def test_a_request_must_have_an_offer_where_amounts_differ(engine: Engine) -> None:
    engine.create(name="loans", objective=OFFERS)
    with pytest.raises(BadRequest) as missing:
        engine.decide(policy="loans")
    assert missing.value.code == "missing"
    menu = {"amount": [100, 1000], "cost": [0.8, 0.8], "menus": [0, 0]}
    engine.create(name="loans", objective={**OFFERS, "offers": menu})
    made = engine.decide(policy="loans")  # everybody has the same choice
    assert (made["decision"], made["offer"]["amount"]) == ("accept", 100)
    assert engine.audit().whole
