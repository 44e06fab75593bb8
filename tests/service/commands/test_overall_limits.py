"""Limits over all segments: a capacity for each month or year with its price, and caps on what is open at once."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec
import pytest

from engines import Engine
from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.dashboard.read_models.notices import attention
from lenience.dashboard.read_models.policy_description import describe_limits
from lenience.dashboard.read_models.policy_status import read_policy_status
from lenience.service.commands.decide import DecisionRequest
from lenience.service.commands.lifecycle import solve_version
from lenience.service.commands.ranking import DecideRanked
from lenience.service.domain import identity
from lenience.service.domain.capacity_price import CapacityBody, at_price, price_capacity, price_differences
from lenience.service.domain.chain import genesis, link
from lenience.service.domain.events import Decided, UseChanged, read, write
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.overall import Capacity, OverallUse, UseChange, month_of
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.solved_tables import load
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.service import Service
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.writer import Writer
from serving import OFFERS

SMALL, LARGE = OfferRequest(amount=500, cost=0.8), OfferRequest(gain=1000, loss=4000)
YEARLY = {"type": "discounted", "cost": 0.4, "arrivals": 240, "discount_rate": 0.5}
TIMED_OFFERS = {**{key: OFFERS[key] for key in ("type", "offers")}, "arrivals": 120, "discount_rate": 1.0}
DAY = 86_400_000_000
JANUARY = 1_767_225_600_000_000  # the first of January 2026


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = JANUARY + 10 * DAY

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def clock(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(identity, "_last", 0)  # later tests must not get ids of this clock's future
    engine.writer.close()
    engine.writer = Writer(engine.store, engine.registry, clock=clock)
    return clock


def rules(made: list[dict[str, Any]]) -> list[str]:
    return [one["rule"] if one["decision"] == "reject" else "accept" for one in made]


def test_a_capacity_holds_over_all_segments_and_renews_each_month(engine: Engine, clock: Clock) -> None:
    engine.create(capacity={"acceptances": 3})
    made = [engine.decide(segment) for segment in ("young", "old", "young", "old", "young")]
    assert rules(made) == ["accept", "accept", "accept", "period_capacity", "period_capacity"]
    assert "January" not in made[3]["reason"]
    assert [one["code"] for one in made[3]["principal_reasons"]] == ["period_capacity_reached"]
    engine.outcome(made[0]["id"], "success")  # an outcome does not give it back
    assert engine.decide()["rule"] == "period_capacity"
    clock.time += 31 * DAY
    assert rules([engine.decide(segment) for segment in ("old", "young", "old", "old")])[2:] == [
        "accept",
        "period_capacity",
    ]
    assert engine.audit().whole


def test_an_override_uses_capacity_or_gives_it_back_to_its_month(engine: Engine, clock: Clock) -> None:
    engine.create(capacity={"acceptances": 1, "per": "month"})
    first, second = engine.decide(), engine.decide("old")
    assert rules([first, second]) == ["accept", "period_capacity"]
    engine.override(first["id"], "reject")
    third = engine.decide("old")
    assert third["decision"] == "accept"
    engine.override(second["id"], "accept")  # a person may exceed it, and it counts
    assert engine.queries.policy("cards", 1).overall is not None
    engine.override(third["id"], "reject")
    assert engine.decide()["rule"] == "period_capacity"
    clock.time += 31 * DAY
    engine.override(second["id"], "reject")  # January's, so February gains nothing
    assert rules([engine.decide(), engine.decide("old")]) == ["accept", "period_capacity"]
    assert engine.audit().whole


def test_a_yearly_capacity_counts_months_together(engine: Engine, clock: Clock) -> None:
    engine.create(capacity={"acceptances": 2, "per": "year"})
    made = [engine.decide()]
    for _ in range(2):
        clock.time += 40 * DAY
        made.append(engine.decide("old"))
    assert rules(made) == ["accept", "accept", "period_capacity"]
    clock.time += 300 * DAY
    assert engine.decide()["decision"] == "accept"
    assert engine.audit().whole


def lend(engine: Engine, segment: str, *offers: OfferRequest) -> dict[str, Any]:
    return engine.decide(segment, policy="loans", offers=list(offers))


def test_losses_of_all_segments_are_limited_together(engine: Engine, clock: Clock) -> None:
    """Each small offer loses 400 if it fails."""
    constraints = {"overall_exposure_cap_amount": 1000, "overall_exposure_cap": 4}
    engine.create(name="loans", objective=OFFERS, constraints=constraints)
    made = [lend(engine, segment, SMALL) for segment in ("young", "old", "young")]
    assert rules(made) == ["accept", "accept", "overall_exposure_cap_amount"]
    tiny = OfferRequest(amount=100, cost=0.8)
    smaller = lend(engine, "old", SMALL, tiny)
    assert (smaller["decision"], smaller["offer"]["amount"]) == ("accept", 100)
    assert lend(engine, "young", tiny)["decision"] == "accept"
    assert lend(engine, "young", tiny)["rule"] == "overall_exposure_cap"
    engine.outcome(made[0]["id"], "success")
    assert lend(engine, "old", tiny)["decision"] == "accept"
    engine.give_up(made[1]["id"])
    view = engine.queries.policy("loans").overall
    assert view is not None
    assert view.pending == 3
    assert view.at_risk == pytest.approx(240)
    assert engine.audit().whole


def test_a_capacity_in_money_lets_smaller_offers_through(engine: Engine, clock: Clock) -> None:
    engine.create(name="loans", objective=OFFERS, capacity={"loss": 900})
    tiny = OfferRequest(amount=100, cost=0.8)
    made = [lend(engine, "young", SMALL), lend(engine, "old", SMALL), lend(engine, "old", SMALL)]
    assert rules(made) == ["accept", "accept", "period_capacity"]
    assert lend(engine, "young", SMALL, tiny)["offer"]["amount"] == 100
    view = engine.queries.policy("loans").overall
    assert view is not None
    assert (view.limit, view.price) == (900, None)
    assert engine.audit().whole


def test_what_is_open_before_the_limit_counts(engine: Engine, clock: Clock) -> None:
    engine.create()
    before = [engine.decide(), engine.decide("old")]
    engine.create(constraints={"overall_exposure_cap": 3})
    assert rules([engine.decide(), engine.decide("old")]) == ["accept", "overall_exposure_cap"]
    engine.outcome(before[0]["id"], "failure")
    engine.override(before[1]["id"], "reject")
    view = engine.queries.policy("cards").overall
    assert view is not None
    assert view.pending == 1
    engine.create()  # without limits nothing is counted
    engine.decide("old")
    assert engine.queries.policy("cards").overall is None
    engine.create(constraints={"overall_exposure_cap": 3})
    assert rules([engine.decide("old"), engine.decide("old")]) == ["accept", "overall_exposure_cap"]
    assert engine.audit().whole


def test_acceptances_before_the_limit_count_in_their_month(engine: Engine, clock: Clock) -> None:
    engine.create()
    january = engine.decide()
    clock.time += 31 * DAY
    before = [engine.decide(), engine.decide("old"), engine.decide()]
    engine.override(before[2]["id"], "reject")
    engine.create(capacity={"acceptances": 4})
    # Two count: not January's, and not the one that was overridden.
    assert rules([engine.decide(), engine.decide("old"), engine.decide()]) == ["accept", "accept", "period_capacity"]
    engine.override(january["id"], "reject")
    assert engine.decide()["rule"] == "period_capacity"
    engine.override(before[0]["id"], "reject")  # it was counted when the limit began, so it is given back
    last = engine.decide("old")
    assert rules([last, engine.decide()]) == ["accept", "period_capacity"]
    engine.override(before[0]["id"], "accept")
    engine.create()  # without limits nothing is counted until the next limit begins
    engine.decide("old")
    engine.create(capacity={"acceptances": 7, "per": "year"})  # six of them are used
    assert rules([engine.decide(), engine.decide("old")]) == ["accept", "period_capacity"]
    assert engine.audit().findings == []


def test_losses_before_the_limit_count(engine: Engine, clock: Clock) -> None:
    engine.create(name="loans", objective=OFFERS)
    made = [lend(engine, segment, SMALL) for segment in ("young", "old")]
    assert rules(made) == ["accept", "accept"]
    engine.create(name="loans", objective=OFFERS, capacity={"loss": 900})
    assert lend(engine, "old", SMALL)["rule"] == "period_capacity"
    assert engine.audit().findings == []

    def uncounted(event: Any) -> Any:
        if getattr(event, "overall", None) is None:
            return event
        return msgspec.structs.replace(event, overall=msgspec.structs.replace(event.overall, loss=400.0))

    assert any("does not follow" in one for one in forge(engine, "loans", None, uncounted))

    def older(event: Any) -> Any:
        """Events of earlier releases did not count them."""
        if getattr(event, "overall", None) is None or isinstance(event, Decided):
            return event
        none = {"accepted": 0, "loss": 0.0, "accepted_in_year": 0, "loss_in_year": 0.0}
        return msgspec.structs.replace(event, overall=msgspec.structs.replace(event.overall, **none), counted=False)

    assert not any("does not follow" in one for one in forge(engine, "loans", None, older))


def test_a_ranked_batch_keeps_the_capacity(engine: Engine, clock: Clock) -> None:
    engine.create(name="loans", objective=OFFERS, capacity={"acceptances": 2})
    asked = [DecisionRequest("young", offer=SMALL), DecisionRequest("old", offer=SMALL)] * 2
    command = DecideRanked(make_sender("tester", None, "loans", asked), "loans", asked, False, capacity=3)
    made = engine.call(command)["decisions"]
    assert sorted(rules(made)) == ["accept", "accept", "period_capacity", "period_capacity"]
    assert engine.audit().whole


def test_two_processes_share_the_counter(engine: Engine, clock: Clock) -> None:
    engine.create(capacity={"acceptances": 2})
    other = Writer(engine.store, PolicyCache(), clock=clock)
    try:
        first = engine.decide()
        engine.writer, own = other, engine.writer
        second, third = engine.decide("old"), engine.decide()
        engine.outcome(first["id"], "success")
        engine.writer = own
        assert rules([second, third, engine.decide("old")]) == ["accept", "period_capacity", "period_capacity"]
    finally:
        other.close()
    assert engine.audit().whole


@pytest.mark.parametrize(
    ("limits", "notice"),
    [
        ({"capacity": {"acceptances": 1, "per": "year"}}, "this year's capacity is used. The next year makes room."),
        ({"constraints": {"overall_exposure_cap": 1}}, "the cap of all segments is reached. New outcomes make room."),
    ],
)
def test_the_overview_says_that_a_limit_is_reached(engine: Engine, limits: dict[str, Any], notice: str) -> None:
    engine.create(**limits)
    engine.decide()
    with engine.store.read() as connection:
        status = read_policy_status(cast(Service, engine), connection, "cards")
    assert [one.text for one in attention(status)] == [f"cards: {notice}"]


def forge(engine: Engine, policy: str, segment: str | None, change: Any) -> list[str]:
    """Rewrite a whole chain with changed events, and return what the audit finds."""
    from lenience.service.queries.audit import audit_connection

    with engine.store.write() as connection:
        record = engine.registry.load(connection, policy)
        chain = record.chain if segment is None else record.segments[segment]
        events, head = schema.event, genesis(policy, segment)
        rows = connection.execute(events.select().where(events.c.chain_id == chain).order_by(events.c.seq)).all()
        for row in rows:
            body = write(change(read(row.body)))
            head = link(head, body)
            where = (events.c.chain_id == chain) & (events.c.seq == row.seq)
            connection.execute(events.update().where(where).values(body=body, hash=head))
        connection.execute(schema.chain.update().where(schema.chain.c.id == chain).values(head=head))
        report = audit_connection(connection, "forged")
        connection.rollback()
    return [finding.what for finding in report.findings]


def test_the_audit_finds_forged_counters(engine: Engine, clock: Clock) -> None:
    engine.create(capacity={"acceptances": 2})
    made = [engine.decide(segment) for segment in ("young", "old", "young")]
    engine.outcome(made[0]["id"], "success")
    assert engine.audit().whole
    replace = msgspec.structs.replace

    def other_use(event: Any) -> Any:
        return replace(event, overall=OverallUse(month_of(event.at))) if isinstance(event, Decided) else event

    assert any("differs from the log of the policy" in one for one in forge(engine, "cards", "young", other_use))

    def earlier(event: Any) -> Any:
        return replace(event, overall_at=0) if isinstance(event, Decided) and event.arrivals else event

    assert any("out of order" in one for one in forge(engine, "cards", "young", earlier))

    def fewer(event: Any) -> Any:
        return replace(event, after=replace(event.after, accepted=0)) if isinstance(event, UseChanged) else event

    assert any("does not follow" in one for one in forge(engine, "cards", None, fewer))

    def renamed(event: Any) -> Any:
        return replace(event, decision="x" * 36) if isinstance(event, UseChanged) else event

    assert any("is not counted" in one for one in forge(engine, "cards", None, renamed))

    def opened(event: Any) -> Any:
        if getattr(event, "overall", None) is None:
            return event
        return replace(event, overall=replace(event.overall, pending=7))

    assert any("open in all segments" in one for one in forge(engine, "cards", None, opened))


def priced(**changes: Any) -> PolicySpecification:
    posted = {"name": "cards", "objective": YEARLY, "segments": ["young", "old"], "prior": {"n": 4, "s": 2}, **changes}
    return msgspec.convert(posted, PolicySpecification)


def test_the_price_shifts_the_break_evens_and_is_audited(engine: Engine) -> None:
    made = engine.create(objective=YEARLY, prior={"n": 4, "s": 2}, capacity={"acceptances": 5})
    assert made["warnings"] == []
    view = engine.queries.policy("cards")
    overall = view.overall
    assert overall is not None
    assert overall.price is not None
    assert overall.price > 0.05
    assert overall.bound is not None
    assert overall.unlimited is not None
    assert overall.bound < overall.unlimited.lower
    assert [one.cost for one in view.segments] == [0.4, 0.4]
    answer = engine.decide()
    assert f"{0.4 + overall.price:.1%}" in answer["reason"]
    assert "capacity" in answer["reason"]
    assert engine.audit().whole
    # Ten times the capacity is worth less, and enough for all is worth nothing.
    prices = []
    for acceptances in (10, 15, 20):
        body = _price(priced(capacity={"acceptances": acceptances}))
        prices.append(body.price)
    assert overall.price > prices[0] > prices[1] >= prices[2] == 0.0


def _price(specification: PolicySpecification) -> CapacityBody:
    solved = solve_version(specification)
    assert solved.segments[0].capacity is not None
    return msgspec.json.decode(solved.tables[solved.segments[0].capacity], type=CapacityBody)


def test_the_bound_holds_for_a_month_that_is_spent_at_its_start() -> None:
    """Against the rate A over all time, the bound allows one month more and the months' starts."""
    from lenience import Belief, Discounted, Segments
    from lenience.segments import capacity_price

    body = _price(priced(capacity={"acceptances": 5}))
    cells = Segments.of({"young": 0.5, "old": 0.5}, Discounted(0.4, arrivals=240, discount_rate=0.5), Belief(4, 2))
    even = capacity_price(cells, acceptances=60)
    assert even.value.upper < body.bound < 1.1 * even.value.upper
    assert body.price == pytest.approx(even.price, abs=0.01)


@pytest.mark.parametrize(("per", "periods"), [("month", 12), ("year", 1)])
def test_spending_at_the_start_of_each_period_adds_to_the_bound(
    per: str, periods: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def capacity_bound(cells: object, price: float, **options: Any) -> float:
        asked.append(options)
        return 0.0

    monkeypatch.setattr("lenience.segments.capacity.capacity_bound", capacity_bound)
    spec = msgspec.convert(
        {"name": "x", "objective": YEARLY, "segments": ["a"], "capacity": {"acceptances": 5, "per": per}},
        PolicySpecification,
    )
    price_capacity(spec, spec.problems())
    # The limit at the start of every period, and once more at once, against the same capacity spread evenly.
    starts = 5.0 + sum(5.0 * math.exp(-0.5 * i / periods) for i in range(2000))
    even = periods * 5.0 / 0.5 * (240.5 / 240)
    assert asked[0]["more"] == pytest.approx(starts - even, rel=1e-9)
    assert (asked[0]["acceptances"], asked[0]["loss"]) == (5.0 * periods, None)


def test_the_price_of_money_is_charged_by_offer(engine: Engine) -> None:
    engine.create(name="loans", objective=TIMED_OFFERS, prior={"n": 20, "s": 17}, capacity={"loss": 6000})
    overall = engine.queries.policy("loans").overall
    assert overall is not None
    assert overall.price is not None
    assert overall.price > 0.0
    cheap, dear = OfferRequest(amount=1000, cost=0.75), OfferRequest(amount=1000, cost=0.84)
    accepted, rejected = lend(engine, "young", cheap), lend(engine, "young", dear)
    assert rules([accepted, rejected]) == ["accept", "below_threshold"]
    assert rejected["expected_profit"] > 0.0  # it would pay if capacity were not limited
    assert "capacity" in rejected["reason"]
    charge = overall.price * 840
    label = rejected["label_value"]["lower"]
    assert rejected["threshold"] == pytest.approx(0.84 + (charge - label) / 1000)
    assert engine.audit().whole


def test_a_ranking_counts_the_price(engine: Engine) -> None:
    """Nobody is chosen who is rejected because of the price."""
    engine.create(name="loans", objective=TIMED_OFFERS, prior={"n": 20, "s": 17}, capacity={"loss": 6000})
    asked = [DecisionRequest("young", offer=OfferRequest(amount=1000, cost=cost)) for cost in (0.84, 0.7, 0.75)]
    command = DecideRanked(make_sender("tester", None, "loans", asked), "loans", asked, False, capacity=3)
    answer = engine.call(command)
    assert rules(answer["decisions"]) == ["below_threshold", "accept", "accept"]
    assert (answer["chosen"], answer["order"]) == (2, [1, 2, 0])
    price = engine.queries.policy("loans").overall
    assert price is not None
    assert price.price is not None
    second = answer["decisions"][1]
    worth = second["expected_profit"] + second["label_value"]["lower"] - price.price * 700
    assert answer["index"][1] == pytest.approx(worth, rel=1e-6)


def test_a_wrong_price_is_found() -> None:
    specification = priced(capacity={"acceptances": 5})
    solved = solve_version(specification)
    tables = {one.name: load(solved.tables[one.solved]) for one in solved.segments}
    body = _price(specification)
    assert price_differences(specification, body, tables) == []
    replace = msgspec.structs.replace
    assert "upper bound" in price_differences(specification, replace(body, bound=0.9 * body.bound), tables)[0]
    lower = replace(body, price=0.5 * body.price)
    assert any("not solved at the price" in one for one in price_differences(specification, lower, tables))
    assert price_differences(specification, None, tables) == ["its capacity has no price"]
    assert price_differences(priced(), body, tables) != []
    assert price_differences(priced(), None, tables) == []
    problem = specification.problems()[0]
    assert at_price(problem, None) == problem


def test_a_capacity_without_arrivals_has_no_price() -> None:
    discounted = {"type": "discounted", "cost": 0.4, "discount": 0.9}
    solved = solve_version(priced(objective=discounted, capacity={"acceptances": 5}))
    assert solved.segments[0].capacity is None
    assert any("no price" in one for one in solved.warnings)


def test_late_outcomes_have_the_price_of_early_ones() -> None:
    late = {**YEARLY, "type": "delayed", "label_delay": 0.1}
    bodies = [
        price_capacity(specification, specification.problems())
        for specification in (priced(objective=objective, capacity={"acceptances": 5}) for objective in (late, YEARLY))
    ]
    assert bodies[0] is not None
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"capacity": {}}, "capacity"),
        ({"capacity": {"acceptances": 3, "loss": 20}}, "capacity"),
        ({"capacity": {"loss": 20}}, "capacity.loss"),
        ({"constraints": {"overall_exposure_cap_amount": 20}}, "overall_exposure_cap_amount"),
    ],
)
def test_limits_that_cannot_be(changes: dict[str, Any], field: str) -> None:
    with pytest.raises((InputError, msgspec.ValidationError)) as error:
        priced(**changes)
    cause = error.value if isinstance(error.value, InputError) else error.value.__cause__
    assert isinstance(cause, InputError)
    assert cause.field == field


def test_a_clock_that_is_behind_does_not_reopen_a_month() -> None:
    use = OverallUse().after(JANUARY + 40 * DAY, UseChange(1, 1, 50.0))
    assert use.at(JANUARY + 20 * DAY) == use
    assert use.at(JANUARY + 70 * DAY) == OverallUse(month_of(JANUARY + 70 * DAY), 0, 0.0, 1, 50.0, 1, 50.0)
    assert use.used(Capacity(loss=80.0)) == 50.0
    assert use.used(Capacity(loss=80.0, per="year")) == 50.0
    assert use.used(Capacity(acceptances=3, per="year")) == 1
    settled = use.after(JANUARY + 41 * DAY, UseChange(0, -1, 50.0))
    assert (settled.pending, settled.at_risk, settled.accepted) == (0, 0.0, 1)


@pytest.mark.parametrize("capacity", [{"loss": 6000}, {"acceptances": 3}])
def test_the_page_shows_the_limits_and_what_they_accept(engine: Engine, capacity: dict[str, Any]) -> None:
    engine.create(
        name="loans",
        objective=TIMED_OFFERS,
        prior={"n": 20, "s": 17},
        capacity=capacity,
        constraints={"overall_exposure_cap_amount": 9000, "overall_exposure_cap": 7},
    )
    cheap = OfferRequest(amount=5000, cost=0.14)
    assert lend(engine, "young", cheap)["decision"] == "accept"
    with engine.store.read() as connection:
        status = read_policy_status(cast(Service, engine), connection, "loans")
    shown = dict(describe_limits(status))
    assert ("$700" if "loss" in capacity else "1 used") in shown["Capacity of all segments"]
    assert "$700 of $9,000" in shown["Cap on losses of all segments"]
    assert "1 of 7" in shown["Exposure cap of all segments"]
    assert shown["Highest possible value"].count("$") == 2
    segment = status.segment("old")
    offers = segment.offers
    assert offers is not None
    for amount in (50.0, 500.0, 5000.0, 50_000.0):
        for cost in (0.5, 0.7, 0.8, 0.9, 0.97):
            verdict = segment.rule.decide(segment.counts, 1.0, [Offer(amount, cost)])
            assert offers.accepts(amount, cost) == (verdict.decision == "accept")
            assert (cost < offers.highest(amount)) == offers.accepts(amount, cost)
            if "loss" in capacity:
                assert (amount < offers.largest(cost)) == offers.accepts(amount, cost)
            assert (cost < offers.paying(amount)) == (verdict.rule == "above_break_even")
    assert segment.rule.largest_amount(0.8, segment.counts) == offers.largest(0.8)
    full = segment.rule.decide(segment.counts, 1.0, use=OverallUse(month_of(JANUARY), 3, 6000.0))
    assert full.rule == "period_capacity"


def test_a_decision_under_limits_can_be_erased(engine: Engine) -> None:
    engine.create(constraints={"overall_exposure_cap": 3})
    decision = engine.decide(reference="someone")["id"]
    engine.batch(["young"] * 5)  # the erasure comes later in its chain than the use in that of the policy
    assert engine.erase(decision)["recorded"]
    assert engine.queries.decision(decision).erased
