"""Offers through the engine, on both databases: decisions, outcomes, money at risk, shadows, audit and export."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, select, text

from engines import Engine
from lenience import Belief, Discounted, InputError, Offer, Offers
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.lifecycle import solve_version
from lenience.service.commands.ranking import DecideRanked
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.queries import export
from lenience.service.queries.audit import audit_connection
from lenience.service.queries.reading import Filters
from lenience.service.storage import schema
from serving import OFFERS, SPEC

SMALL, LARGE = OfferRequest(amount=500, cost=0.8), OfferRequest(amount=5000, cost=0.8)
MENU = {**OFFERS, "offers": {"amount": [500, 5000], "cost": [0.8, 0.8], "menus": [0, 0], "currency": "$"}}


def specification(**changes: Any) -> PolicySpecification:
    return msgspec.convert({**SPEC, "objective": OFFERS, **changes}, PolicySpecification)


def test_decisions_are_those_of_the_segments_own_policy(engine: Engine) -> None:
    engine.create(objective=OFFERS)
    own = Discounted(offers=Offers([500, 5000], [0.8, 0.8], currency="$"), discount=0.99).for_share(0.5)
    policy, belief = own.solve(Belief(2, 1), tolerance=1e-9), Belief(2, 1)
    both = (Offer(500, 0.8), Offer(5000, 0.8))
    seen = set()
    for outcome in (True, False, True, True, True, True, True, True, False, True, True):
        decision = engine.decide(offers=[SMALL, LARGE])
        expected = policy.decide(belief, both)
        assert decision["offer"]["amount"] == expected.offer.amount
        assert (decision["decision"] == "accept") == expected.accepted
        assert decision["expected_profit"] == pytest.approx(expected.expected_profit, abs=1e-9)
        assert decision["label_value"]["lower"] == pytest.approx(expected.label_value.lower, abs=0.01)
        assert decision["cost"] == 0.8
        large = engine.decide(offer=LARGE)
        assert (large["decision"] == "accept") == policy.accepts(belief, Offer(5000, 0.8))
        seen |= {(decision["decision"], decision["offer"]["amount"]), (large["decision"], 5000.0)}
        if decision["decision"] == "accept":
            engine.outcome(decision["id"], "success" if outcome else "failure")
            belief = belief.observe(outcome)
    assert {("accept", 500.0), ("reject", 5000.0), ("accept", 5000.0)} <= seen


def test_an_outcome_earns_the_gain_or_loses_the_loss(engine: Engine) -> None:
    engine.create(objective=OFFERS)
    first = engine.decide(offer=OfferRequest(gain=100, loss=400))
    assert first["offer"] == {"amount": 500.0, "cost": 0.8, "gain": 100.0, "loss": 400.0}
    assert engine.queries.decision(first["id"]).profit is None
    assert engine.outcome(first["id"], "success")["profit"] == 100.0
    assert engine.correct(first["id"], "failure")["profit"] == -400.0
    view = engine.queries.decision(first["id"])
    assert view.profit == -400.0
    assert [each.amount for each in view.offers] == [500.0]
    rows = list(csv.DictReader(io.StringIO(b"".join(export.csv_parts(engine.queries, Filters())).decode())))
    assert (rows[0]["offer_amount"], rows[0]["cost"], rows[0]["profit"], rows[0]["offers"]) == (
        "500.0",
        "0.8",
        "-400.0",
        "1",
    )
    assert float(rows[0]["expected_profit"]) == pytest.approx(-150)
    assert export.parquet(engine.queries, Filters())[:4] == b"PAR1"


def at_risk(engine: Engine, segment: str = "young") -> float | None:
    return next(each for each in engine.queries.policy("cards").segments if each.name == segment).at_risk


def test_money_at_risk_follows_the_pending_outcomes(engine: Engine) -> None:
    engine.create(objective=OFFERS, constraints={"exposure_cap_amount": 1000})
    ids = [engine.decide(offer=SMALL)["id"] for _ in range(2)]
    assert at_risk(engine) == 800.0
    full = engine.decide(offer=SMALL)
    assert (full["decision"], full["rule"]) == ("reject", "exposure_cap_amount")
    assert engine.decide(offer=OfferRequest(amount=250, cost=0.8))["decision"] == "accept"  # 1,000 in all
    assert at_risk(engine) == 1000.0
    assert engine.decide("old", offer=SMALL)["decision"] == "accept"  # the cap is each segment's own
    engine.outcome(ids[0], "success")
    assert at_risk(engine) == 600.0
    engine.correct(ids[0], "failure")
    engine.give_up(ids[1])
    assert at_risk(engine) == 200.0
    engine.outcome(ids[1], "success")  # it was not pending any more
    assert at_risk(engine) == 200.0
    engine.override(full["id"], "accept")
    assert at_risk(engine) == 600.0
    engine.override(full["id"], "reject")
    assert at_risk(engine) == 200.0


def test_a_policy_says_whether_it_needs_an_offer(engine: Engine) -> None:
    engine.create()
    with pytest.raises(BadRequest, match="one break-even for all and takes no offer") as caught:
        engine.decide(offer=SMALL)
    assert (caught.value.code, caught.value.field) == ("unsupported_offers", "offer")
    engine.create(objective=OFFERS)
    with pytest.raises(BadRequest, match="offer must be given") as caught:
        engine.decide()
    assert (caught.value.code, caught.value.field) == ("missing", "offer")
    engine.create(objective=MENU)
    chosen = engine.decide()  # everybody has the same choice, so it need not be repeated
    assert chosen["offer"]["amount"] == 500.0
    assert engine.queries.decision(chosen["id"]).offers == []
    assert engine.decide(offer=LARGE)["decision"] == "reject"


def test_a_shadow_decides_the_same_offer(engine: Engine) -> None:
    engine.create()
    engine.create(activate=False, objective=OFFERS)
    engine.state("cards", "shadow", 2)
    plain = engine.decide()
    assert engine.queries.decision(plain["id"]).shadows == []  # it cannot decide without an offer
    with_offer = engine.decide(offer=LARGE)  # the active version does not look at it
    assert (with_offer["decision"], with_offer["offer"]) == ("accept", None)
    (shadow,) = engine.queries.decision(with_offer["id"]).shadows
    assert shadow.offer is not None
    assert (shadow.decision, shadow.offer.amount) == ("reject", 5000.0)
    assert shadow.expected_profit == pytest.approx(-1500)
    assert at_risk(engine) is None
    engine.state("cards", "active", 2)
    engine.state("cards", "shadow", 1)
    decision = engine.decide(offer=SMALL)
    (shadow,) = engine.queries.decision(decision["id"]).shadows
    assert shadow.offer is None
    assert at_risk(engine) == 400.0


def test_offers_that_have_changed_are_reported(engine: Engine) -> None:
    engine.create(objective=OFFERS)

    def batch(offers: list[OfferRequest]) -> None:
        requests = [DecisionRequest("young", offer=each) for each in offers]
        engine.call(Decide(make_sender("tester", None, "", ""), "cards", requests, False))

    batch([SMALL, LARGE] * 30)
    assert engine.queries.policy("cards").warnings == []
    batch([SMALL, LARGE] * 30)
    assert engine.queries.policy("cards").warnings == []
    batch([SMALL] * 900)
    (warning,) = engine.queries.policy("cards").warnings
    assert warning.startswith(
        "The offers that arrive in segment 'young' have changed: the average loss of a failure is $5"
    )
    assert "this version was solved for $2,200" in warning
    engine.create(activate=False, objective=OFFERS)
    assert warning in engine.state("cards", "shadow", 2)["warnings"]
    small = {**OFFERS, "offers": {"amount": [500, 5000], "cost": [0.8, 0.8], "share": [0.95, 0.05]}}
    engine.create(objective=small)
    assert engine.queries.policy("cards").warnings == []


def ranked(engine: Engine, requests: list[DecisionRequest], **limit: Any) -> Any:
    command = DecideRanked(make_sender("tester", "rank", "", requests), "cards", list(requests), False, **limit)
    return engine.call(command)


def test_a_batch_is_ranked_by_index(engine: Engine) -> None:
    engine.create(objective=OFFERS)
    good = [OfferRequest(amount=amount, cost=0.3) for amount in (100, 900, 400)]
    requests = [
        *(DecisionRequest("young", offer=each, reference=f"no {i}") for i, each in enumerate(good)),
        DecisionRequest("old", offer=SMALL),
        DecisionRequest("old", offer=LARGE),
    ]
    answer = ranked(engine, requests, capacity=2)
    young, old = (policy_of("young").solve(Belief(2, 1), rows=50, tolerance=1e-6) for _ in range(2))
    batch = young.batch_label_values(3)
    assert answer["order"][:2] == [1, 2]
    assert [each["decision"] for each in answer["decisions"]] == ["reject", "accept", "accept", "reject", "reject"]
    rules = [each["rule"] for each in answer["decisions"]]
    assert rules == ["capacity", "above_break_even", "above_break_even", "capacity", "below_threshold"]
    assert answer["index"][1] == pytest.approx(180 + batch[0], abs=0.01)
    assert answer["index"][2] == pytest.approx(80 + batch[1], abs=0.01)
    assert answer["index"][4] == pytest.approx(-1500 + old.batch_label_values(1)[0], abs=0.01)
    assert answer["total"] == pytest.approx(answer["index"][1] + answer["index"][2])
    assert answer["bound"] >= answer["total"]
    assert ranked(engine, requests, capacity=2) == answer  # the same key and request: the same answer
    assert engine.counts() == (2, 1, 2)
    waiting = engine.queries.decision(answer["decisions"][0]["id"])
    assert "better-ranked applicants" in waiting.reason
    assert [each.code for each in waiting.principal_reasons] == ["no_capacity"]
    assert waiting.reference == "no 0"


def policy_of(segment: str) -> Discounted:
    return Discounted(offers=Offers([500, 5000], [0.8, 0.8]), discount=0.99).for_share(0.5)


def test_a_ranked_batch_stays_within_its_budget_and_caps(engine: Engine) -> None:
    engine.create(objective=OFFERS, constraints={"exposure_cap": 3})
    requests = [DecisionRequest("young", offer=OfferRequest(amount=100 * i, cost=0.3)) for i in range(1, 9)]
    answer = ranked(engine, requests, budget=300.0)
    accepted = [each for each in answer["decisions"] if each["decision"] == "accept"]
    assert 0 < sum(each["offer"]["loss"] for each in accepted) <= 300
    assert len(accepted) <= 3
    engine.create(name="plain", activate=True)
    command = DecideRanked(make_sender("x", None, "", ""), "plain", [DecisionRequest("young")], False, capacity=1)
    with pytest.raises(BadRequest, match="only a policy whose objective has offers"):
        engine.call(command)


def test_a_forged_lack_of_capacity_is_found(engine: Engine) -> None:
    engine.create(objective=OFFERS)
    engine.decide(offer=LARGE)
    with engine.store.write() as connection:
        row = connection.execute(select(schema.event).where(schema.event.c.body.contains("below_threshold"))).one()
        body = row.body.replace('"rule":"below_threshold"', '"rule":"capacity"').removesuffix("}")
        body += ',"rank":{"place":2,"size":2,"index":1.0}}'
        values = {"body": body, "hash": link(genesis("cards", "young"), body), "chain": row.chain_id}
        connection.execute(text("UPDATE event SET body = :body, hash = :hash WHERE chain_id = :chain"), values)
        report = audit_connection(connection, "test")
        connection.rollback()
    assert any(
        "rule: capacity in the log, below_threshold by policy version 1" in each.what for each in report.findings
    )


def test_segments_have_offers_of_their_own(engine: Engine) -> None:
    own = {"amount": [50], "cost": [0.4]}
    engine.create(objective=OFFERS, segments=[{"name": "young", "offers": own}, "old"])
    young, old = engine.queries.policy("cards").segments
    assert [young.cost, old.cost] == pytest.approx([0.4, 0.8])
    assert engine.decide()["offer"]["amount"] == 50.0  # its only offer
    assert "$50" in engine.decide()["reason"]


def test_offers_whose_outcomes_come_late(engine: Engine) -> None:
    late = {"type": "delayed", "offers": OFFERS["offers"], "arrivals": 40, "discount_rate": 0.5, "label_delay": 0.5}
    engine.create(objective=late)
    accepted = [engine.decide(offer=SMALL) for _ in range(30)]
    first = accepted[0]
    assert first["decision"] == "accept"
    assert first["limit"] is not None
    taken = [each["decision"] for each in accepted]
    assert taken == ["accept"] * first["limit"] + ["reject"] * (30 - first["limit"])
    assert accepted[-1]["rule"] == "exposure_limit"
    assert engine.decide(offer=LARGE)["rule"] == "below_threshold"
    assert engine.outcome(first["id"], "success")["profit"] == pytest.approx(100)
    assert at_risk(engine) == 400.0 * (first["limit"] - 1)
    assert engine.decide(offer=SMALL)["decision"] == "accept"
    young = engine.queries.policy("cards").segments[0]
    assert young.value is not None
    assert young.label_value is not None
    answer = ranked(engine, [DecisionRequest("old", offer=SMALL) for _ in range(6)], capacity=2)
    assert [each["decision"] for each in answer["decisions"]].count("accept") == 2
    assert sorted(answer["index"], reverse=True) == [answer["index"][i] for i in answer["order"]]


def test_many_arrivals_with_late_outcomes_are_estimated_and_audited(engine: Engine) -> None:
    """Four thousand arrivals a year were rejected before."""
    late = {"type": "delayed", "offers": OFFERS["offers"], "arrivals": 8_000, "discount_rate": 0.1, "label_delay": 1}
    created = engine.create(objective=late)
    assert any("estimates" in warning for warning in created["warnings"])
    small, large = engine.decide(offer=SMALL), engine.decide(offer=LARGE)
    assert (small["decision"], large["decision"]) == ("accept", "reject")
    assert small["limit"] > 10
    assert small["label_value"]["lower"] > 0
    engine.outcome(small["id"], "failure")
    assert engine.decide(offer=SMALL)["limit"] < small["limit"]
    young = engine.queries.policy("cards").segments[0]
    assert young.value is not None
    with engine.store.write() as connection:
        report = audit_connection(connection, "test")
    assert report.findings == []


def test_doubt_opens_a_segment_that_the_prior_closes(engine: Engine) -> None:
    given: Any = {"prior": {"n": 5, "s": 1}, "objective": {"type": "discounted", "cost": 0.8, "discount": 0.995}}
    engine.create(**given)
    assert engine.decide()["decision"] == "reject"
    engine.create(**given, doubt=0.5)
    assert engine.decide()["decision"] == "accept"
    engine.create(**given, doubt=0.5, segments=["old", {"name": "young", "doubt": 0}])
    assert engine.decide()["decision"] == "reject"
    assert engine.decide("old")["decision"] == "accept"
    engine.create(**{**given, "objective": OFFERS}, doubt=0.5)
    assert engine.decide(offer=SMALL)["decision"] == "accept"


def test_history_updates_both_sides_of_a_doubt() -> None:
    past = {"young": {"successes": 6, "failures": 2}}
    young, old = specification(doubt=0.25, prior={"n": 5, "s": 1}, history=past).problems()
    prior = young.prior
    assert not isinstance(prior, Belief)
    assert [each.n for each in prior.beliefs] == [13, 10]
    assert prior.weights[1] > 0.5  # six of eight succeeded, which the prior did not expect
    assert young.belief.mean == pytest.approx(prior.mean)
    assert isinstance(specification(doubt=0).problems()[0].prior, Belief)
    assert old.prior.mean == pytest.approx(0.75 * 0.2 + 0.25 * 0.5)


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"objective": {**OFFERS, "cost": 0.8}}, "cost", "conflicting_fields"),
        ({"segments": [{"name": "a", "cost": 0.5}]}, "segments", "conflicting_fields"),
        (
            {"segments": [{"name": "a", "offers": {"amount": [1], "cost": [0.5], "currency": "€"}}]},
            "segments",
            "conflicting_fields",
        ),
        (
            {"objective": SPEC["objective"], "segments": [{"name": "a", "offers": {"amount": [1], "cost": [0.5]}}]},
            "segments",
            "conflicting_fields",
        ),
        (
            {"objective": SPEC["objective"], "constraints": {"exposure_cap_amount": 5}},
            "exposure_cap_amount",
            "conflicting_fields",
        ),
        (
            {"objective": {**OFFERS, "offers": {"amount": [1] * 1001, "cost": [0.5] * 1001}}},
            "objective.offers",
            "too_large",
        ),
        (
            {"objective": {**OFFERS, "offers": {"amount": [1], "cost": [0.5], "currency": "gold pieces"}}},
            "objective.offers.currency",
            "invalid_value",
        ),
    ],
)
def test_specifications_that_cannot_be(changes: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises((InputError, msgspec.ValidationError)) as caught:
        specification(**changes)
    error = caught.value if isinstance(caught.value, InputError) else caught.value.__cause__
    assert isinstance(error, InputError)
    assert (error.field, error.code) == (field, code)


def test_earlier_specifications_keep_their_text() -> None:
    plain = msgspec.convert(SPEC, PolicySpecification)
    text = msgspec.json.encode(plain).decode()
    assert not any(word in text for word in ("offers", "doubt", "exposure_cap_amount"))
    segments = msgspec.json.encode(solve_version(plain).segments).decode()
    assert "exposure_cap_amount" not in segments
    assert msgspec.json.decode(text, type=PolicySpecification) == plain


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ('"expected_profit":-150', '"expected_profit":-140', "expected_profit: -140"),
        ('"lower":', '"lower":1', "label_value: "),
        ('"offer":{"amount":500.0', '"offer":{"amount":400.0', "offer: "),
        ('"offers":[{"amount":500.0', '"offers":[{"amount":510.0', "offer: "),
        ('"at_risk":400.0', '"at_risk":300.0', "300 at risk"),
        ('"offer":{"amount":500.0,"cost":0.8', '"offer":{"amount":500.0,"cost":1.8', "its text cannot be read"),
    ],
)
def test_a_forged_offer_is_found(engine: Engine, old: str, new: str, finding: str) -> None:
    engine.create(objective=OFFERS)
    engine.decide(offer=SMALL)
    engine.decide(offer=SMALL)

    def forge(connection: Connection) -> None:
        """Change the second decision's event and its own hash, as one who knows how it works would."""
        events = schema.event
        where = select(schema.chain.c.id).where(schema.chain.c.segment == "young")
        first, second = connection.execute(
            select(events).where(events.c.chain_id == where.scalar_subquery()).order_by(events.c.seq)
        ).all()
        assert link(genesis("cards", "young"), first.body) == first.hash
        body = second.body.replace(old, new, 1)
        assert body != second.body
        values = {"body": body, "hash": link(first.hash, body), "chain": second.chain_id}
        connection.execute(
            text("UPDATE event SET body = :body, hash = :hash WHERE chain_id = :chain AND seq = 2"), values
        )

    with engine.store.write() as connection:
        forge(connection)
        report = audit_connection(connection, "test")
        connection.rollback()
    assert any("event 2 of segment 'young'" in each.where and finding in each.what for each in report.findings), report
