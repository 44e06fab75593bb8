"""Segments with offers of their own and priors that may be wrong, against one recursion for the whole population."""

from __future__ import annotations

import math
from functools import cache

import pytest

from lenience import Belief, Delayed, Discounted, InputError, MixtureBelief, Offer, Offers, Segment, Segments, starts
from lenience.segments import shut_out_at_outset, starter_groups, starter_offers
from lenience.segments.capacity import capacity_price
from lenience.segments.segments import plain_belief
from rejections import rejected

SMALL = Offers(amount=[0.2, 1.0, 4.0], cost=[0.8, 0.7, 0.75], share=[0.5, 0.3, 0.2])
LARGE = Offers(amount=[3.0, 0.5], cost=[0.6, 0.8])
STARTER = Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8])
DOUBT = MixtureBelief.doubt(Belief(4, 2.8), 0.3)


def merged_value(cells: Segments, discount: float, last: int) -> tuple[float, float]:
    """Bounds of the whole population's value: one recursion over the states of all segments together.

    Each step draws a segment and one of its menus. The decision is made by comparing both branches, and the state after
    a rejection is the same state, which value iteration solves. Nothing is split by segment.
    """
    Known = tuple[tuple[int, int], ...]
    menus = [
        [(share, cell.objective.offers.offers_of(i)) for i, share in enumerate(cell.objective.offers.share)]
        for cell in cells
        if cell.objective.offers is not None
    ]
    ceiling = sum(
        cell.share * share * max(one.gain for one in menu)
        for cell, own in zip(cells, menus, strict=True)
        for share, menu in own
    ) / (1.0 - discount)

    def mean(segment: int, n: int, s: int) -> float:
        return MixtureBelief.of(cells.cells[segment].prior).after(n, s).mean

    def value(end: float) -> float:
        @cache
        def at(known: Known) -> float:
            if sum(n for n, _ in known) == last:
                return end
            gains: list[tuple[float, float]] = []  # the weight of each arrival, and what accepting it earns in all
            for i, (cell, own) in enumerate(zip(cells, menus, strict=True)):
                n, s = known[i]
                p = mean(i, n, s)
                better = at((*known[:i], (n + 1, s + 1), *known[i + 1 :]))
                worse = at((*known[:i], (n + 1, s), *known[i + 1 :]))
                later = discount * (p * better + (1 - p) * worse)
                for share, menu in own:
                    profit = max(one.amount * (p - one.cost) for one in menu)
                    gains.append((cell.share * share, profit + later))
            unseen = 1.0 - sum(weight for weight, _ in gains)
            result = 0.0
            for _ in range(2000):
                before = result
                result = unseen * discount * before + sum(w * max(gain, discount * before) for w, gain in gains)
                if abs(result - before) < 1e-14:
                    break
            return result

        return at(tuple((0, 0) for _ in cells))

    return value(0.0), value(ceiling)


@pytest.mark.parametrize("prior", [Belief(2, 1), DOUBT])
def test_the_value_is_that_of_one_recursion_for_all(prior: Belief | MixtureBelief) -> None:
    objectives = {"a": Discounted(offers=SMALL, discount=0.6), "b": Discounted(offers=LARGE, discount=0.6)}
    cells = Segments.of({"a": 0.5, "b": 0.3}, objectives, {"a": prior, "b": Belief(3, 2)})
    low, high = merged_value(cells, 0.6, last=16)
    bounds = cells.solve().value()
    assert high - low < 2e-3 * bounds.midpoint
    assert low - 1e-9 <= bounds.lower
    assert bounds.upper <= high + 1e-9
    assert bounds.width < 1e-7


def test_menus_are_chosen_from_in_the_recursion_for_all() -> None:
    objectives = {"a": Discounted(offers=STARTER, discount=0.7), "b": Discounted(offers=LARGE, discount=0.7)}
    cells = Segments.of({"a": 0.9, "b": 0.1}, objectives, Belief(4, 3))
    low, high = merged_value(cells, 0.7, last=18)
    assert low - 1e-9 <= cells.solve().value().lower
    assert cells.solve().value().upper <= high + 1e-9


@pytest.mark.parametrize("share", [1.0, 0.3, 0.05])
def test_one_offer_is_the_segment_with_one_break_even(share: float) -> None:
    shares = {"a": share}
    single = Segments.of(shares, Discounted(0.8, 0.99), Belief(2, 1)).solve()
    money = Segments.of(shares, Discounted(offers=Offers([250.0], [0.8]), discount=0.99), Belief(2, 1)).solve()
    assert money.value().midpoint == pytest.approx(250 * single.value().midpoint, abs=1e-6)
    for belief in [Belief(2, 1), Belief(5, 3), Belief(10, 7), Belief(10, 8), Belief(40, 31)]:
        assert money.accepts("a", belief) == single.accepts("a", belief)
        decision = money.decide("a", belief)
        plain = single.decide("a", belief)
        assert (decision.accepted, decision.proved) == (plain.accepted, plain.proved)
        assert plain.accepted == single.accepts("a", belief)
        assert decision.label_value.midpoint == pytest.approx(250 * plain.label_value.midpoint, abs=1e-6)


def test_a_mixture_with_one_break_even() -> None:
    objective = Discounted(0.8, 0.99)
    prior = MixtureBelief((Belief(5, 1), Belief(2, 1)), (0.5, 0.5))
    cells = Segments.of({"a": 0.4, "b": 0.6}, objective, {"a": prior, "b": Belief(2, 1)})
    policies = cells.solve()
    alone = cells["a"].own.solve(prior)
    assert policies.segment_value("a").midpoint == pytest.approx(cells["a"].weight * alone.value(prior).midpoint)
    assert policies.segment_value("b").midpoint == pytest.approx(
        Segments.of({"b": 0.6}, objective, Belief(2, 1)).solve().value().midpoint
    )
    # All arrivals in one segment: the value is known.
    assert Segments.of({"a": 1.0}, objective, prior).solve().value().midpoint == pytest.approx(0.1238187, abs=6e-8)


def test_late_labels_with_offers_join_by_their_share() -> None:
    offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    whole = Delayed(offers=offers, arrivals=60, discount_rate=0.5, label_delay=0.25)
    policies = Segments.of({"a": 0.75, "b": 0.25}, whole, Belief(2, 1)).solve()
    alone = Delayed(offers=offers, arrivals=45, discount_rate=0.5, label_delay=0.25).solve(Belief(2, 1))
    assert policies.segment_value("a").midpoint == pytest.approx(alone.value(Belief(2, 1)).midpoint, rel=1e-9)
    assert policies.accepts("a", offer=Offer(0.1, 0.8))
    assert not policies.accepts("a", offer=Offer(5, 0.8))
    assert policies.decide("a", offer=Offer(0.1, 0.8)).label_value.lower > 0


def test_refresh_solves_again_what_changed() -> None:
    objective = Discounted(offers=SMALL, discount=0.9)
    cells = Segments.of({"a": 0.5, "b": 0.3, "c": 0.2}, objective, Belief(2, 1))
    policies = cells.solve()
    same, report = policies.refresh(cells)
    assert (report.solved, report.reused, report.loss) == ((), 3, 0.0)
    assert same["a"] is policies["a"]
    other, report = policies.refresh(cells.with_priors({"a": DOUBT}).with_shares({"b": 0.29}), allowed_loss=0.5)
    assert report.solved == ("a", "b")
    assert other["c"] is policies["c"]
    fresh = cells.with_priors({"a": DOUBT}).with_shares({"b": 0.29}).solve()
    assert other.value().midpoint == pytest.approx(fresh.value().midpoint, abs=1e-8)
    # What knowing p would earn bounds what is allowed: here it is Σ share · amount · E(p − cost)⁺ of the kept segment.
    flat = sum(s * a * (1 - c) ** 2 / 2 for s, a, c in zip(SMALL.share, SMALL.amount, SMALL.cost, strict=True))
    assert report.allowed == pytest.approx(0.5 * flat * cells["c"].weight * (1 + cells["c"].volume))


def test_segments_with_one_break_even_keep_their_tables_beside_others() -> None:
    objectives = {"a": Discounted(offers=SMALL, discount=0.9), "b": Discounted(0.8, discount=0.9)}
    cells = Segments.of({"a": 0.5, "b": 0.4}, objectives, Belief(2, 1))
    _, report = cells.solve().refresh(cells.with_shares({"a": 0.501, "b": 0.401}))
    assert report.solved == ("a",)
    assert 0 < report.loss <= report.allowed


def test_equal_offers_share_a_table() -> None:
    shares = {str(i): 0.1 for i in range(10)}
    policies = Segments.of(shares, Discounted(offers=SMALL, discount=0.99), Belief(2, 1)).solve(rows=30)
    assert policies.tables == 1


def test_from_rates_takes_offers_by_segment() -> None:
    cells = Segments.from_rates(
        {"a": 30, "b": 10}, discount_rate=0.1, prior=Belief(2, 1), offers={"a": SMALL, "b": LARGE}
    )
    assert cells["b"].objective.offers == LARGE
    assert cells["b"].own.discount == pytest.approx(10 / 10.1)
    with rejected("cost", "conflicting_fields"):
        Segments.from_rates({"a": 30}, 0.8, 0.1, Belief(2, 1), offers=SMALL)
    with rejected("cost", "missing"):
        Segments.from_rates({"a": 30}, discount_rate=0.1, prior=Belief(2, 1))
    with rejected("offers", "missing"):
        Segments.from_rates({"a": 30, "b": 10}, discount_rate=0.1, prior=Belief(2, 1), offers={"a": SMALL})
    with rejected("discount_rate"):
        Segments.from_rates({"a": 30}, 0.8, prior=Belief(2, 1))
    with rejected("prior"):
        Segments.from_rates({"a": 30}, 0.8, 0.1)


def test_what_cannot_be_decided_or_added_up() -> None:
    dollars = Discounted(offers=Offers([1.0, 2.0], [0.8, 0.7], currency="$"), discount=0.9)
    euros = Discounted(offers=Offers([1.0], [0.8], currency="€"), discount=0.9)
    with rejected("segments", "conflicting_fields"):
        Segments.of({"a": 0.5, "b": 0.5}, {"a": dollars, "b": euros}, Belief(2, 1))
    cells = Segments.of({"a": 0.5}, dollars, Belief(2, 1))
    assert cells.currency == "$"
    policies = cells.solve()
    with rejected("offer"):
        policies.accepts("a")  # Two offers: it is unknown which one is asked for.
    plain = Segments.of({"a": 0.5}, Discounted(0.8, 0.9), Belief(2, 1)).solve()
    for decide in (plain.accepts, plain.decide):
        with rejected("offer", "conflicting_fields"):
            decide("a", offer=Offer(1, 0.8))
    with rejected("prior"):
        Segment("a", 0.5, Discounted(0.8, 0.9), 3)  # type: ignore[arg-type]


def test_what_needs_one_break_even_or_one_belief_says_so() -> None:
    offers = Segments.of({"a": 0.5}, Discounted(offers=SMALL, discount=0.9), Belief(2, 1))
    doubtful = Segments.of({"a": 0.5}, Discounted(0.8, 0.9), DOUBT)
    with rejected("objective", "unsupported_offers"):
        plain_belief(offers["a"], "exposure_limits")
    with rejected("prior"):
        plain_belief(doubtful["a"], "exposure_limits")
    assert capacity_price(offers, acceptances=0.1).unlimited.upper >= 0.0
    assert capacity_price(doubtful, acceptances=0.1).unlimited.upper >= 0.0


def test_starts_with_offers() -> None:
    """A segment starts if one of its offers is accepted; the largest amount is where accepting stops to pay."""
    offers = Offers(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
    shares = {"many": 0.9, "few": 0.02, "good": 0.04, "bad": 0.04}
    priors = {"many": Belief(2, 1), "few": Belief(2, 1), "good": Belief(20, 18), "bad": Belief(200, 100)}
    cells = Segments.of(shares, Discounted(offers=offers, discount=0.99), priors, dict.fromkeys(shares, "g"))
    policies = cells.solve()
    rows = {row.name: row for row in starts(cells)}
    for name, row in rows.items():
        assert row.offers is not None
        decisions = [policies.accepts(name, offer=Offer(amount, 0.8)) for amount in (500, 5000)]
        assert row.starts == any(decisions)
        assert row.offers.share_accepted == sum(decisions) / 2
        if 0 < row.offers.largest < 1e12:
            assert policies.accepts(name, offer=Offer(0.999 * row.offers.largest, 0.8))
            assert not policies.accepts(name, offer=Offer(1.001 * row.offers.largest, 0.8))
    assert [rows[name].starts for name in shares] == [True, False, True, False]
    assert "50% of offers are accepted, up to $" in rows["many"].reason
    assert rows["few"].reason.endswith("and the smallest is $500")
    assert "above the mean break-even of 80%" in rows["good"].reason
    assert rows["bad"].loses
    assert "almost certainly below" in rows["bad"].reason
    [group] = shut_out_at_outset(cells, dict.fromkeys(shares, 0.9))
    assert (group.shut, group.deserving, group.deserving_shut) == (2, 4, 2)


def test_a_starter_offer_opens_segments() -> None:
    offers = Offers(amount=[500, 5000], cost=[0.8, 0.8])
    shares = {"many": 0.9, "few": 0.02, "bad": 0.08}
    priors = {"many": Belief(2, 1), "few": Belief(2, 1), "bad": Belief(200, 100)}
    groups = {"many": "A", "few": "B", "bad": "B"}
    cells = Segments.of(shares, Discounted(offers=offers, discount=0.995), priors, groups)
    rows = {row.name: row for row in starter_offers(cells)}
    assert (rows["many"].starts, rows["few"].starts, rows["bad"].starts) == (True, False, False)
    assert rows["few"].starts_small
    assert 0.1 < rows["few"].largest < 1
    assert not rows["bad"].starts_small
    counts = [(row.group, row.segments, row.start, row.start_small) for row in starter_groups(cells)]
    assert counts == [("A", 1, 1, 1), ("B", 2, 0, 1)]
    truths = {"many": 0.9, "few": 0.9, "bad": 0.5}
    deserving = [(row.group, row.segments, row.opened) for row in starter_groups(cells, truths)]
    assert deserving == [("A", 1, 0), ("B", 1, 1)]
    # With one offer it is the segment with one break-even.
    single = Segments.of({"few": 0.1}, Discounted(0.8, 0.99), Belief(2, 1))
    money = Segments.of({"few": 0.1}, Discounted(offers=Offers([300.0], [0.8]), discount=0.99), Belief(2, 1))
    assert starter_offers(money)[0].largest == starter_offers(single)[0].largest


def test_starts_of_a_mixture_with_one_break_even() -> None:
    prior = MixtureBelief((Belief(5, 1), Belief(2, 1)), (0.5, 0.5))
    doubted = Segments.of({"a": 1.0}, Discounted(0.8, 0.99), prior)
    sure = Segments.of({"a": 1.0}, Discounted(0.8, 0.99), Belief(5, 1))
    assert starts(doubted)[0].starts
    assert not starts(sure)[0].starts


def test_a_large_volume_is_solved_in_time() -> None:
    """A small belief with a huge volume: the bounds are proved, and the label's value is that of a smaller volume."""
    offers = Offers(amount=[1, 2, 5], cost=[0.5, 0.7, 0.8])
    cells = Segments.of({"a": 1.0}, Discounted(offers=offers, discount=1 - 1e-7), Belief(2, 1))
    policies = cells.solve(rows=5)
    bounds = policies.value()
    # Knowing p, an arrival earns Σ a E(p − c)⁺ /3 on average, and little of it is lost to learning.
    known = sum(a * (1 - c) ** 2 / 2 for a, c in zip(offers.amount, offers.cost, strict=True)) / 3 * 1e7
    assert 0.99 * known < bounds.lower
    assert bounds.upper <= known * (1 + 1e-3)
    assert policies["a"].objective.volume < 1e6
    medium = Discounted(offers=offers, discount=0.999).solve(Belief(2, 1), rows=1)
    assert policies.decide("a", offer=Offer(1, 0.5)).label_value.lower > 0.99 * medium.label_value(Belief(2, 1)).lower


def test_much_evidence_is_solved_at_once() -> None:
    offers = Offers(amount=[1, 2, 5], cost=[0.5, 0.7, 0.8])
    objective, prior = Discounted(offers=offers, discount=1 - 1e-6), Belief(300_000, 198_000)
    policies = Segments.of({"a": 1.0}, objective, prior).solve()
    bounds = policies.value()
    assert bounds.width < 1e-5 * bounds.upper
    assert bounds.midpoint == pytest.approx(1e6 * offers.profit_if_known(0.66), rel=1e-5)


def test_segments_have_one_currency() -> None:
    def objective(currency: str) -> Discounted:
        return Discounted(offers=Offers([1, 5], [0.8, 0.8], currency=currency), discount=0.9)

    shares, prior = {"a": 0.5, "b": 0.5}, Belief(2, 1)
    assert len(Segments.of(shares, {"a": objective("$"), "b": objective("$")}, prior)) == 2
    with pytest.raises(InputError) as caught:
        Segments.of(shares, {"a": objective("$"), "b": objective("€")}, prior)
    assert caught.value.field == "segments"


def test_a_segment_at_the_break_even_starts_with_any_amount() -> None:
    objective = Discounted(offers=Offers([100, 900], [0.5, 0.5]), discount=0.9)
    (row,) = starts(Segments.of({"a": 1.0}, objective, Belief(4, 2)))
    assert row.starts
    assert row.offers is not None
    assert row.offers.largest == math.inf
