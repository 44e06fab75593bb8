"""OfferPolicy: look-ups, batches, stops, words and JSON, against solves of their own and by hand."""

from __future__ import annotations

import math
from functools import cache

import msgspec
import numpy as np
import pytest

from lenience import Belief, Bounds, Delayed, Discounted, MixtureBelief, Money, Offer, Offers
from lenience.policies.beliefs.offer_exposure import OfferExposurePolicy
from lenience.policies.beliefs.offers import (
    OfferDecision,
    OfferPolicy,
    choices_of,
    decide_offer,
    explain_offer,
    largest_accepted,
    lattice_position,
)
from lenience.solvers.offers.solve import solve_offers
from rejections import rejected

TWO = Offers([500, 5000], [0.8, 0.75], [0.75, 0.25], currency="$")
MENU = Offers.menu([100, 1000], [0.8, 0.8])
DOUBTFUL = MixtureBelief.doubt(Belief(4, 2.8), 0.2)


@cache
def policy(offers: Offers = TWO, prior: Belief | MixtureBelief = DOUBTFUL, rows: int = 12) -> OfferPolicy:
    solved: OfferPolicy = Discounted(offers=offers, discount=0.95).solve(prior, rows=rows)
    return solved


@pytest.mark.parametrize("prior", [Belief(2, 1), Belief(3, 2.4), DOUBTFUL])
def test_label_values_in_the_table_and_beyond(prior: Belief | MixtureBelief) -> None:
    found = policy(TWO, prior)
    for k in (0, 1, 4, 11, 12, 13, 20):
        for j in range(k + 1):
            later = prior.observe([True] * j + [False] * (k - j))
            label = found.label_value(later)
            exact = solve_offers(later, TWO, 0.95, 1, 1e-9).label_value
            assert label.lower <= exact.upper + 1e-12
            assert label.upper >= exact.lower - 1e-12
            assert label.width <= 1e-5


def test_a_batch_of_outcomes_by_plain_sums() -> None:
    """The value of the k-th label, weighted by the chance of each number of successes before."""
    prior = Belief(3, 2.4)
    found = policy(TWO, prior, 4)
    for k, value in enumerate(found.batch_label_values(7).tolist()):
        total = 0.0
        for j in range(k + 1):
            chance = float(math.comb(k, j))
            for i in range(j):
                chance *= 2.4 + i
            for i in range(k - j):
                chance *= 0.6 + i
            for i in range(k):
                chance /= 3 + i
            total += chance * solve_offers(Belief(3 + k, 2.4 + j), TWO, 0.95, 1, 1e-9).label_value.midpoint
        assert value == pytest.approx(total, abs=2e-5)
    with rejected("prior"):
        policy().batch_label_values(3)
    with rejected("count"):
        found.batch_label_values(0)


def test_shares_and_stops() -> None:
    found = policy(TWO, Belief(2, 1), 40)
    seen = set()
    for k in (0, 3, 10, 25, 50):
        rejected_rates = []
        for j in range(k + 1):
            belief = Belief(2 + k, 1 + j)
            accepted = [found.accepts(belief, Offer(500, 0.8)), found.accepts(belief, Offer(5000, 0.75))]
            share = 0.75 * accepted[0] + 0.25 * accepted[1]
            assert found.share_accepted(belief) == pytest.approx(share)
            seen.add(share)
            if not any(accepted):
                rejected_rates.append(belief.mean)
        ceiling, floor = found.stop_rates(2 + k, TWO)
        assert ceiling == 0.75
        assert floor == (max(rejected_rates) if rejected_rates else -1.0)
    assert seen == {0, 0.25, 0.75, 1}
    assert found.stop_rates(5, MENU) == (0.8, -1.0)  # other offers than those it was solved for
    assert policy().stop_rates(5, TWO) == (0.75, -1.0)  # a doubtful prior
    unused = Offers([500, 5000], [0.8, 0.75], [1.0, 0.0])
    assert found.stop_rates(5, unused)[0] == 0.8


@pytest.mark.parametrize("outcomes", [0, 1, 4, 9, 15])
def test_the_fewest_successes_that_are_accepted(outcomes: int) -> None:
    single = Discounted(0.8, 0.95).solve(DOUBTFUL, rows=12)
    accepted = [j for j in range(outcomes + 1) if single.accepts(DOUBTFUL.after(outcomes, j))]
    assert single.least_accepted(outcomes) == (accepted[0] if accepted else None)
    found = policy(MENU, Belief(2, 1))
    for offer in (None, Offer(1000, 0.8), [Offer(10, 0.9), Offer(20, 0.95)]):
        accepted = [j for j in range(outcomes + 1) if found.accepts(Belief(2 + outcomes, 1 + j), offer)]
        assert found.least_accepted(outcomes, offer) == (accepted[0] if accepted else None)
    # A tiny offer with a high break-even is accepted for its label, and rejected where the label is worth less.
    teaching = Offers([0.05, 1], [0.95, 0.5])
    found = policy(teaching, Belief(2, 1))
    accepted = [j for j in range(outcomes + 1) if found.accepts(Belief(2 + outcomes, 1 + j), Offer(0.05, 0.95))]
    assert found.least_accepted(outcomes, Offer(0.05, 0.95)) == (accepted[0] if accepted else None)
    with rejected("offer"):
        policy().least_accepted(outcomes)
    with rejected("outcomes"):
        found.least_accepted(-1)


def test_decisions_by_hand() -> None:
    belief, label = Belief(4, 2), Bounds(10.0, 12.0)
    even = Offer(40, 0.75)  # loses exactly the lower bound
    assert decide_offer(belief, [even], label) == OfferDecision(False, even, -10.0, label, False)
    assert decide_offer(belief, [Offer(39, 0.75)], label).accepted
    refused = decide_offer(belief, [Offer(48, 0.75), Offer(300, 0.75)], label)
    assert (refused.accepted, refused.proved, refused.offer) == (False, True, Offer(48, 0.75))
    assert not decide_offer(belief, [Offer(47, 0.75)], label).proved
    good = decide_offer(belief, [Offer(100, 0.4), Offer(300, 0.4)], label)
    assert (good.accepted, good.proved, good.offer) == (True, True, Offer(300, 0.4))


def test_the_largest_amount_that_is_accepted() -> None:
    found = policy(TWO, Belief(2, 1))
    label = found.label_value(Belief(2, 1)).lower
    most = found.largest_amount(Belief(2, 1), 0.8)
    assert most == pytest.approx(label / 0.3)
    assert found.accepts(Belief(2, 1), Offer(0.999 * most, 0.8))
    assert not found.accepts(Belief(2, 1), Offer(1.001 * most, 0.8))
    assert largest_accepted(Belief(4, 2), 0.5, Bounds(1, 2)) == math.inf
    assert largest_accepted(Belief(4, 2), 0.4, Bounds(1, 2)) == math.inf
    assert largest_accepted(Belief(4, 2), 0.75, Bounds(1, 2)) == 4
    with rejected("cost"):
        found.largest_amount(Belief(2, 1), 1.0)


@pytest.mark.parametrize(
    ("belief", "position"),
    [
        (Belief(2, 1), (0, 0)),
        (Belief(5, 2), (3, 1)),
        (Belief(5, 4), (3, 3)),
        (Belief(5 + 1e-12, 2 - 1e-12), (3, 1)),
        (Belief(5.5, 2), None),
        (Belief(5, 2.5), None),
        (Belief(5, 0.9), None),  # fewer successes than the prior
        (Belief(5, 4.9), None),  # more successes than outcomes
        (Belief(11, 4), (9, 3)),
        (Belief(12, 4), None),  # beyond the rows
        (DOUBTFUL, None),
    ],
)
def test_positions_after_a_prior(belief: Belief | MixtureBelief, position: tuple[int, int] | None) -> None:
    assert lattice_position(MixtureBelief.of(Belief(2, 1)), belief, 10) == position


def test_positions_after_a_doubtful_prior() -> None:
    assert lattice_position(DOUBTFUL, DOUBTFUL.after(3, 1), 10) == (3, 1)
    assert lattice_position(DOUBTFUL, MixtureBelief.doubt(Belief(4, 2.8), 0.3), 10) is None
    later = DOUBTFUL.after(3, 1)
    other = MixtureBelief((later.beliefs[0], Belief(5, 2.5)), later.weights)
    assert lattice_position(DOUBTFUL, other, 10) is None
    larger = MixtureBelief((later.beliefs[0], Belief(5.5, 2)), later.weights)
    assert lattice_position(DOUBTFUL, larger, 10) is None
    nearly = MixtureBelief(later.beliefs, (later.weights[0] + 1e-8, later.weights[1] - 1e-8))
    assert lattice_position(DOUBTFUL, nearly, 10) is None


def words(belief: Belief | MixtureBelief, choices: list[Offer], label: float, sized: bool = True) -> str:
    bounds = Bounds(label, label)
    return explain_offer(belief, choices, decide_offer(belief, choices, bounds), Money(1, "$"), sized=sized)


@pytest.mark.parametrize(
    ("belief", "choices", "label", "text"),
    [
        (
            Belief(10, 9),
            [Offer(500, 0.8)],
            3,
            "Accept $500: 9 of 10 succeeded (90%), above the break-even of 80%. The expected profit is $50.",
        ),
        (
            Belief(10, 7),
            [Offer(500, 0.8)],
            60,
            "Accept $500: 7 of 10 succeeded (70%), below the break-even of 80%. The expected loss is $50. "
            "One more outcome is worth $60 for later decisions.",
        ),
        (
            Belief(10, 7),
            [Offer(500, 0.8), Offer(5000, 0.8)],
            60,
            "Offer $500 instead of $5,000: 7 of 10 succeeded (70%), below the break-even of 80%. "
            "The expected loss is $50. One more outcome is worth $60 for later decisions.",
        ),
        (
            Belief(10, 7),
            [Offer(500, 0.8)],
            40,
            "Reject $500: 7 of 10 succeeded (70%), below the break-even of 80%. The expected loss is $50. "
            "One more outcome is worth only $40 for later decisions. At this break-even, amounts below $400 are "
            "accepted.",
        ),
        (
            Belief(10, 7),
            [Offer(500, 0.8)],
            0,
            "Reject $500: 7 of 10 succeeded (70%), below the break-even of 80%. The expected loss is $50. "
            "One more outcome is worth nothing for later decisions.",
        ),
        (
            DOUBTFUL,
            [Offer(500, 0.8)],
            80,
            "Accept $500: 66% are expected to succeed, below the break-even of 80%. The expected loss is $70. "
            "One more outcome is worth $80 for later decisions.",
        ),
    ],
)
def test_reasons(belief: Belief | MixtureBelief, choices: list[Offer], label: float, text: str) -> None:
    assert words(belief, choices, label) == text


def test_reasons_without_amounts() -> None:
    assert words(Belief(10, 7), [Offer(1, 0.8)], 0.02, sized=False).endswith(
        "One more outcome is worth only $0.02 for later decisions. "
        "The rejection is final, because nothing more is learnt without acceptances."
    )
    assert words(Belief(10, 9), [Offer(1, 0.8)], 0.02, sized=False).startswith("Accept: 9 of 10")
    single = Discounted(0.7, 0.95).solve(DOUBTFUL)
    assert single.explain(DOUBTFUL.observe([True])).startswith("Accept: ")
    assert single.explain(DOUBTFUL, Offer(2, 0.7)).startswith("Accept 2: ")
    assert "$" in policy(TWO, Belief(2, 1)).explain(Belief(2, 1), Offer(500, 0.8))
    assert "€" in policy(TWO, Belief(2, 1)).explain(Belief(2, 1), Offer(500, 0.8), Money(1, "€"))


def test_choices() -> None:
    assert choices_of(MENU, None) == [Offer(100, 0.8), Offer(1000, 0.8)]
    assert choices_of(TWO, MENU) == MENU.offers_of(0)
    assert choices_of(TWO, Offer(1, 0.5)) == [Offer(1, 0.5)]
    assert choices_of(TWO, [Offer(1, 0.5), Offer(2, 0.5)]) == [Offer(1, 0.5), Offer(2, 0.5)]
    for wrong in (None, TWO, [], [Offer(1, 0.5), 3]):
        with rejected("offer"):
            choices_of(TWO, wrong)  # type: ignore[arg-type]


def test_json_round_trip() -> None:
    found = policy(TWO, Belief(2, 1))
    again = OfferPolicy.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.rows == 12
    assert again.offers == TWO
    assert again.label_value(Belief(5, 3)) == found.label_value(Belief(5, 3))
    with rejected("text", "invalid_file"):
        OfferPolicy.from_json("{}")
    short = msgspec.json.decode(found.to_json())
    short["certificate"]["rows"] = 11
    with rejected("index", "length_mismatch"):
        OfferPolicy.from_json(msgspec.json.encode(short))
    flat = OfferPolicy(found.objective, found.prior, found.index, found.table[0], found.certificate)
    with rejected("index", "length_mismatch"):
        OfferPolicy.from_json(flat.to_json())
    assert np.shape(found.table)[0] == 2


@cache
def late() -> OfferExposurePolicy:
    offers = Offers([50, 500, 5000], [0.8, 0.8, 0.7], currency="$")
    solved: OfferExposurePolicy = Delayed(offers=offers, arrivals=20, discount_rate=0.5, label_delay=0.25).solve(
        Belief(2, 1), tolerance=1e-5
    )
    return solved


def test_limits_of_late_outcomes_are_where_decisions_change() -> None:
    limits = []
    for offer in (Offer(50, 0.8), Offer(200, 0.8), Offer(5000, 0.8)):
        limit = late().limit(Belief(3, 2), offer)
        assert limit is not None
        limits.append(limit)
        for pending in range(30):
            assert late().accepts(Belief(3, 2), offer, pending) == (pending < limit)
    assert limits == sorted(limits, reverse=True)
    assert limits[0] > limits[-1] == 0
    assert late().limit(Belief(10, 8), Offer(50, 0.8)) is None  # at the break-even nothing is lost
    assert late().limit(Belief(10, 9), Offer(50, 0.8)) is None
    with rejected("offer"):
        late().limit(Belief(2, 1))


def test_labels_of_late_outcomes() -> None:
    solution = late().labels_at(Belief(3, 2))
    last = len(solution.lower) - 2
    for pending in (0, 1, last):
        label = late().label_value(Belief(3, 2), pending)
        assert label == solution.bounds(pending)
        lower = solution.lower[pending + 1] - solution.upper[pending]
        upper = solution.upper[pending + 1] - solution.lower[pending]
        assert (label.lower, label.upper) == (max(lower, 0.0), upper)
    for pending in (last + 1, last + 50):
        assert late().label_value(Belief(3, 2), pending) == Bounds(0.0, solution.bounds(last).upper)
    assert late().label_value(Belief(3, 2)) == late().label_value(Belief(3, 2), 0)
    with rejected("pending"):
        late().label_value(Belief(3, 2), -1)


def test_decisions_with_late_outcomes() -> None:
    belief = Belief(3, 2)
    label = late().label_value(belief)
    for amount in (0.1 * label.lower, 3 * label.lower, 30 * label.upper):
        decision = late().decide(belief, [Offer(amount, 0.8), Offer(2 * amount, 0.8)])
        profit = amount * (2 / 3 - 0.8)
        assert decision.offer == Offer(amount, 0.8)
        assert decision.expected_profit == pytest.approx(profit)
        assert decision.accepted == (profit + label.midpoint > 0)
        assert decision.proved
    edge = label.midpoint / (0.8 - 2 / 3)
    assert not late().decide(belief, Offer(edge, 0.8)).proved


def test_reasons_with_late_outcomes() -> None:
    good = late().explain(Belief(10, 9), Offer(500, 0.8))
    assert good == (
        "Accept $500: the expected success rate is 90%, above the break-even of 80%. The expected profit is $50."
    )
    limit = late().limit(Belief(3, 2), Offer(50, 0.8))
    assert limit is not None
    waiting = late().explain(Belief(3, 2), Offer(50, 0.8), limit)
    assert waiting.startswith("Reject $50: the expected success rate is 66.7%, below the break-even of 80%.")
    assert f"With {limit} outcomes pending" in waiting
    assert waiting.endswith(f"The limit is {limit} pending outcomes.")
    accepted = late().explain(Belief(3, 2), Offer(50, 0.8), limit - 1)
    assert accepted.startswith("Accept $50: the expected success rate is 66.7%, below the break-even of 80%.")
    assert late().explain(Belief(3, 2), Offer(5000, 0.8)).endswith("The limit is 0 pending outcomes.")
