"""Pages of policies with offers: what is accepted, profits, and the form of a decision, against slow computations."""

from __future__ import annotations

import math
import random
import re
from typing import Any, cast

import httpx
import pytest

from engines import Engine
from lenience.core.offers import Offer
from lenience.dashboard.figures import offers as offer_figure
from lenience.dashboard.figures import profit as profit_figure
from lenience.dashboard.pages.decisions import decided_offers
from lenience.dashboard.pages.overview import read_overview
from lenience.dashboard.read_models.accepted_offers import RecentOffer, recent_offers
from lenience.dashboard.read_models.policy_status import PolicyStatus, SegmentStatus, read_policy_status
from lenience.dashboard.read_models.profits import Profit, policy_profit
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.rule import Counts
from lenience.service.http.service import Service
from serving import OFFERS, Served

MANY: dict[str, Any] = {
    "type": "discounted",
    "offers": {"amount": [400, 2000, 6000], "cost": [0.7, 0.8, 0.85], "share": [2, 2, 1], "currency": "$"},
    "discount": 0.99,
}
SEGMENTS = [{"name": "young", "prior": {"n": 10, "s": 8.2}}, {"name": "old", "prior": {"n": 10, "s": 9.2}}]


def _service(engine: Engine) -> Service:
    return cast(Service, engine)


def _status(engine: Engine, policy: str = "cards") -> PolicyStatus:
    with engine.store.read() as connection:
        return read_policy_status(_service(engine), connection, policy)


def _profit(engine: Engine, policy: str = "cards") -> dict[str, Profit]:
    with engine.store.read() as connection:
        profit = policy_profit(connection, read_policy_status(_service(engine), connection, policy))
    assert profit is not None
    return {**profit.segments, "*": profit.total}


def _decide(engine: Engine, chance: random.Random, rounds: int) -> list[str]:
    """Decide offers of many sizes, and record most outcomes."""
    made = []
    for _ in range(rounds):
        offer = OfferRequest(amount=chance.uniform(200, 8000), cost=chance.uniform(0.6, 0.95))
        answer = engine.decide(chance.choice(["young", "old"]), offer=offer)
        made.append(answer["id"])
        if answer["decision"] == "accept" and chance.random() < 0.7:
            engine.outcome(answer["id"], "success" if chance.random() < 0.85 else "failure")
    return made


def _slow_profit(engine: Engine, segment: SegmentStatus, identities: list[str]) -> tuple[float, float, float]:
    """Realised, expected of pending and at risk, from one decision after the other."""
    realised, expected, at_risk = 0.0, 0.0, 0.0
    for identity in identities:
        view = engine.queries.decision(identity)
        if view.segment != segment.name or view.offer is None:
            continue
        realised += view.profit or 0.0
        if view.status == "pending":
            offer = Offer(view.offer.amount, view.offer.cost)
            expected += offer.expected_profit(segment.belief.mean)
            at_risk += offer.loss
    return realised, expected, at_risk


def test_profits_are_those_of_all_decisions_one_by_one(engine: Engine) -> None:
    engine.create(objective=MANY, segments=SEGMENTS)
    chance = random.Random(3)
    made: list[str] = []
    for step in range(3):
        made += _decide(engine, chance, 12)
        views = {identity: engine.queries.decision(identity) for identity in made}
        known = [identity for identity, view in views.items() if view.status in ("success", "failure")]
        pending = [identity for identity, view in views.items() if view.status == "pending"]
        rejected = [identity for identity, view in views.items() if view.status == "rejected"]
        if step == 1:
            engine.correct(known[0], "failure" if views[known[0]].status == "success" else "success")
            engine.give_up(pending[0])
            engine.override(rejected[0], "accept")
        if step == 2:
            late = next(identity for identity, view in views.items() if view.status == "expired")
            engine.outcome(late, "success")  # an outcome after its expiry still counts
        for status in _status(engine).segments:
            profit = _profit(engine)[status.name]
            realised, expected, at_risk = _slow_profit(engine, status, made)
            assert profit.realised == pytest.approx(realised, abs=1e-6 * len(made))
            assert profit.expected == pytest.approx(expected, abs=1e-6 * len(made))
            assert profit.at_risk == pytest.approx(at_risk, abs=1e-6)
            assert sum(profit.months.values()) == pytest.approx(profit.realised)
            assert profit.unpriced == 0
            assert profit.outcomes == status.counts.successes + status.counts.failures
            assert set(profit.months) <= {iso_time(now())[:7]}


def test_outcomes_without_an_offer_are_named_and_not_priced(engine: Engine) -> None:
    engine.create(segments=SEGMENTS)
    engine.outcome(engine.decide("old")["id"], "success")
    with engine.store.read() as connection:
        assert policy_profit(connection, _status(engine)) is None
    engine.create(objective=MANY, segments=SEGMENTS, activate=False)
    engine.state("cards", "active", 2)
    engine.outcome(engine.decide("old", offer=OfferRequest(gain=200, loss=800))["id"], "success")
    profit = _profit(engine)["old"]
    assert profit.realised == pytest.approx(200)
    assert (profit.outcomes, profit.unpriced) == (1, 1)


def test_the_overview_adds_up_each_currency_and_leaves_units_alone(engine: Engine) -> None:
    engine.create(objective=MANY, segments=SEGMENTS)
    engine.create(name="euros", objective={**OFFERS, "offers": {**OFFERS["offers"], "currency": "EUR"}}, segments=[])
    engine.create(name="units", segments=[])
    _decide(engine, random.Random(8), 12)
    engine.outcome(engine.decide(None, "euros", offer=OfferRequest(gain=100, loss=400))["id"], "failure")
    engine.outcome(engine.decide(None, "units")["id"], "success")
    glance = read_overview(_service(engine))
    assert [one.money.currency for one in glance.currencies] == ["$", "EUR"]
    dollars, euros = glance.currencies
    assert dollars.total.realised == pytest.approx(_profit(engine)["*"].realised)
    assert euros.total.realised == pytest.approx(-400)
    assert euros.rows[0].policy == "euros"
    assert glance.earned == pytest.approx(0.2)  # of the policy in units alone
    assert [policy.name for policy in glance.unit_policies] == ["units"]
    earned = glance.earnings
    assert earned.of("EUR", "today").amount == earned.of("EUR", "month").amount == pytest.approx(-400)
    assert earned.of("$", "today").amount == pytest.approx(dollars.total.realised, abs=1e-4)
    assert earned.of(None, "today").amount == pytest.approx(0.2)
    assert earned.of("£", "today").amount == 0.0
    assert (earned.today.decisions, earned.yesterday.decisions) == (14, 0)
    assert "−EUR 400" in euros.pictures[0]
    assert glance.profits.keys() == {"cards", "euros"}


@pytest.mark.parametrize("cap", [None, 9000.0])
def test_the_accepted_region_is_that_of_the_decisions(engine: Engine, cap: float | None) -> None:
    engine.create(objective=MANY, segments=SEGMENTS, constraints={"exposure_cap_amount": cap})
    chance = random.Random(1)
    _decide(engine, chance, 25)
    sides = set()
    for segment in _status(engine).segments:
        accepted = segment.offers
        assert accepted is not None
        for _ in range(300):
            offer = Offer(math.exp(chance.uniform(3, 10)), chance.uniform(0.3, 0.98))
            decision = segment.rule.decide(segment.counts, 1.0, [offer]).decision
            assert (offer.cost < accepted.highest(offer.amount)) == (decision == "accept"), (offer, accepted)
            sides.add(decision)
        for row in accepted.rows:
            for factor in (0.99, 1.01):
                offer = Offer(min(row.amount, 1e9) * factor + 1e-9, row.cost)
                decision = segment.rule.decide(segment.counts, 1.0, [offer]).decision
                assert decision == ("accept" if factor < 1 or row.amount == math.inf else "reject") or row.amount == 0
        assert accepted.share == pytest.approx(
            segment.rule.table.share_accepted(segment.counts.successes, segment.counts.failures)  # type: ignore[union-attr]
        )
    assert sides == {"accept", "reject"}


def test_the_sentence_says_what_is_accepted(engine: Engine) -> None:
    engine.create(objective=OFFERS, segments=[])
    start = _status(engine).segments[0]
    small = "amounts below $760 at a break-even of 80%, to learn"
    assert start.why == f"Today: any amount with a break-even below 50%; above that, {small}."
    assert start.next == "accept 50% of offers"
    surer = SegmentStatus(start.name, None, start.rule, Counts(50, 50, 0, 48, 2), start.verdict, 1, 1)
    verdict = start.rule.decide(surer.counts, 1.0)
    surer = SegmentStatus(start.name, None, start.rule, surer.counts, verdict, 1, 1)
    assert surer.why.startswith("Today: every offer that this policy expects. Any amount is accepted with a break-even")
    assert surer.next == "accept"
    lost = Counts(30, 30, 0, 3, 27)
    closed = SegmentStatus(start.name, None, start.rule, lost, start.rule.decide(lost, 1.0), 1, 1)
    assert closed.why.endswith("above that, none. None of the offers that this policy expects qualifies.")
    assert closed.stopped


def test_a_menu_names_the_offer_to_make(engine: Engine) -> None:
    menu = {**OFFERS, "offers": {**OFFERS["offers"], "menus": [0, 0]}}
    engine.create(objective=menu, segments=[])
    segment = _status(engine).segments[0]
    assert segment.next == "offer $500"
    assert segment.why.startswith("Offer $500 instead of $5,000") or segment.why.startswith("Accept $500")


def test_the_figure_has_a_mark_for_each_recent_offer(engine: Engine) -> None:
    engine.create(objective=MANY, segments=SEGMENTS)
    made = _decide(engine, random.Random(2), 20)
    status = _status(engine).segment("old")
    with engine.store.read() as connection:
        recent = recent_offers(connection, status.chain)
        assert recent_offers(connection, status.chain, 2) == recent[:2]
    views = [engine.queries.decision(identity) for identity in reversed(made)]
    own = [view for view in views if view.segment == "old" and view.offer is not None]
    assert recent == [
        RecentOffer(view.offer.amount, view.offer.cost, view.decision == "accept") for view in own if view.offer
    ]
    assert status.offers is not None
    wide, narrow = offer_figure.pictures("old", status.offers, recent)
    for drawn in (wide, narrow):
        assert drawn.count('class="recent accepted"') == sum(one.accepted for one in recent) > 0
        assert drawn.count('class="recent rejected"') == sum(not one.accepted for one in recent) > 0
        assert drawn.count('class="dot expected"') == 3
        assert 'role="img"' in drawn
        assert "nan" not in drawn
    empty = offer_figure.pictures("<b>", status.offers, [])[0]
    assert "<b>" not in empty


def test_months_have_no_gaps_and_losses_lie_below_the_line() -> None:
    from lenience.core.money import Money

    drawn = profit_figure.pictures({"2025-11": 500.0, "2026-02": -120.0}, Money(1.0, "$"))[0]
    assert "2025-12: $0" in drawn
    assert "2026-02: −$120" in drawn
    assert drawn.count('class="box accepted"') == 3  # a month without a profit has an empty bar
    assert drawn.count('class="box rejected"') == 1


def test_the_list_shows_offers_in_the_currency_that_decided(engine: Engine) -> None:
    engine.create(objective=OFFERS, segments=[])
    made = engine.decide(None, offer=OfferRequest(gain=20, loss=80))["id"]
    plain = engine.create(name="plain")
    other = engine.decide("young", "plain")["id"]
    assert plain["version"] == 1
    engine.outcome(made, "failure")
    offers = decided_offers(_service(engine), [made, other])
    assert offers.keys() == {made}
    assert offers[made].money.format_change(offers[made].profit or 0.0) == "−$80"


def _form(http: httpx.Client, page: str, **fields: str) -> httpx.Response:
    token = re.search(r'name="token" value="([^"]+)"', http.get(page).text)
    assert token is not None
    return http.post(f"{page}/decide", data={"token": token[1], **fields}, headers={"accept": "text/html"})


def test_an_offer_is_decided_by_hand(http: httpx.Client, served: Served) -> None:
    with served.client() as client:
        client.create_policy({"name": "offers-by-hand", "objective": OFFERS})
        client.activate("offers-by-hand")
    page = "/policies/offers-by-hand"
    shown = http.get(page).text
    assert "Today: any amount with a break-even below 50%" in shown
    assert "Largest gain plus loss accepted" in shown
    sent = _form(http, page, segment="all", offer_gain="100", offer_loss="400")
    assert sent.status_code == 303
    decision = http.get(sent.headers["location"]).text
    for text in ("Accept $500", "gain $100, loss $400", "−$150", "Value of the outcome"):
        assert text in decision
    loan = {"offer_amount": "5000", "offer_rate": "12%", "offer_term": "2", "offer_loss_given_default": "60"}
    sent = _form(http, page, segment="all", **loan)
    assert sent.status_code == 303
    expected = Offer.from_loan(5000, 0.12, 2, 0.6)
    with served.client() as client:
        view = client.decision(sent.headers["location"].rsplit("/", 1)[1])
    assert view["offer"]["amount"] == pytest.approx(expected.amount)
    assert "Gain plus loss" in http.get("/decisions", params={"policy": "offers-by-hand"}).text
    overview = http.get("/").text
    assert "pending outcomes fail" in overview
    assert "$400" in overview


@pytest.mark.parametrize(
    ("fields", "message", "field"),
    [
        ({}, "offer must be given", ""),
        ({"offer_gain": "100"}, "The loss of a failure is missing.", "offer_loss"),
        ({"offer_gain": "1", "offer_amount": "3"}, "or describe a loan, but not both", "offer_gain"),
        ({"offer_amount": "3", "offer_rate": "12"}, "The term is missing.", "offer_term"),
        ({"offer_gain": "many", "offer_loss": "3"}, "The gain of a success", "offer_gain"),
        ({"offer_gain": "-1", "offer_loss": "3"}, "The offer is invalid", ""),
    ],
)
def test_an_invalid_offer_is_explained_beside_its_field(
    http: httpx.Client, served: Served, fields: dict[str, str], message: str, field: str
) -> None:
    with served.client() as client:
        if all(one["name"] != "strict-offers" for one in client.policies()):
            client.create_policy({"name": "strict-offers", "objective": OFFERS})
            client.activate("strict-offers")
    answer = _form(http, "/policies/strict-offers", segment="all", **fields)
    assert answer.status_code == 400
    assert message.lower() in answer.text.lower()
    if field:
        assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', answer.text)
    for name, value in fields.items():
        assert re.search(rf'name="{name}"[^>]*value="{re.escape(value)}"', answer.text)


def test_one_offer_for_everyone_is_shown_as_a_rate(engine: Engine) -> None:
    one = {"type": "discounted", "offers": {"amount": [300], "cost": [0.7], "currency": "$"}, "discount": 0.9}
    engine.create(objective=one, segments=SEGMENTS)
    status = _status(engine)
    assert status.money.currency == "$"
    assert not status.segment("young").offers_differ
    assert status.segment("young").next == "accept"
    engine.create(objective=MANY, segments=SEGMENTS)
    assert _status(engine).segment("young").offers_differ


def test_pages_of_policies_with_a_horizon(http: httpx.Client, served: Served) -> None:
    horizon: dict[str, Any] = {"type": "horizon", "horizon": 30}
    policies: dict[str, dict[str, Any]] = {
        "campaign": {"objective": horizon | {"offers": OFFERS["offers"]}},
        "doubtful-campaign": {"objective": horizon | {"cost": 0.7}, "doubt": 0.3},
    }
    with served.client() as client:
        for name, fields in policies.items():
            client.create_policy({"name": name, **fields})
            client.activate(name)
        decision = client.decide("campaign", offer={"amount": 500, "cost": 0.8})
        client.decide("doubtful-campaign")
        assert client.policy("campaign")["segments"][0]["volume"] == 29.0
    assert decision["decision"] == "accept"
    for page in ("/", *(f"/policies/{name}" for name in policies), f"/decisions/{decision['id']}"):
        assert http.get(page).status_code == 200
    for name in policies:
        assert http.get("/what-if", params={"policy": name}).status_code == 200
    assert "Accept $500" in http.get(f"/decisions/{decision['id']}").text
    assert "30" in http.get("/policies/campaign").text


def test_how_good_the_rejections_are(http: httpx.Client, served: Served) -> None:
    offers = {"amount": [1000], "cost": [0.7], "currency": "$"}
    shut = {"name": "<shut>", "prior": {"n": 60, "s": 12}}
    with served.client() as client:
        objective = {"type": "discounted", "offers": offers, "discount": 0.95}
        client.create_policy({"name": "judged", "objective": objective, "segments": ["tried", shut]})
        client.activate("judged")
        page = http.get("/policies/judged/rejections").text
        assert "No rejections yet" in page
        for _ in range(8):
            made = client.decide("judged", "tried")
            if made["decision"] == "accept":
                client.outcome(made["id"], "failure")
            client.decide("judged", "<shut>")
        answer = client.rejections("judged")
    by_name = {one["segment"]: one for one in answer["segments"]}
    assert by_name["tried"]["verdict"] in ("right", "open")
    assert by_name["<shut>"]["verdict"] == "unknown"
    page = http.get("/policies/judged/rejections").text
    assert answer["statement"] in page
    assert "&lt;shut&gt;" in page
    assert "<shut>" not in page
    assert 'href="/policies/judged/rejections"' in http.get("/policies/judged").text
    assert http.get("/policies/nobody/rejections").status_code == 404
