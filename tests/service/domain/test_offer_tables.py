"""Tables for offers: the same decisions as the library's policy, stored as numbers; the rule with caps and floors."""

from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from lenience import Belief, Discounted, Offer, Offers
from lenience.core.mixture_belief import MixtureBelief
from lenience.policies.beliefs.offers import OfferPolicy
from lenience.service.domain.between_rows import neighbours
from lenience.service.domain.offer_reasons import offer_principal_reasons, offer_reason, what_would_change_offer
from lenience.service.domain.offer_tables import MOST_LABELS, OfferTable, PromptOfferTable, solve_offer_table
from lenience.service.domain.reasons import reason, what_would_change
from lenience.service.domain.rule import Counts, SegmentRule, at_risk_after
from lenience.service.domain.solved_tables import Effort, load, solve
from lenience.service.domain.specification import SegmentProblem

MIXED = Offers(amount=[100, 1000, 5000], cost=[0.75, 0.8, 0.85], share=[0.5, 0.3, 0.2], currency="$")
MENU = Offers.menu(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
FLAT, DOUBTFUL = Belief(2, 1), MixtureBelief.doubt(Belief(8, 3), 0.3)
ROWS = 120


@cache
def table(objective: Discounted, prior: Belief | MixtureBelief = FLAT) -> OfferTable:
    effort = Effort(offer_rows=ROWS, offer_tolerance=1e-9)
    loaded = load(solve(SegmentProblem("x", 1.0, objective, prior, None, 0.0), effort))
    assert isinstance(loaded, OfferTable)
    return loaded


@cache
def policy(objective: Discounted, prior: Belief | MixtureBelief = FLAT) -> OfferPolicy:
    solved: OfferPolicy = objective.solve(prior, rows=ROWS, tolerance=1e-9)
    return solved


def rule(objective: Discounted, cap: int | None = None, floor: float = 0.0, loss: float | None = None) -> SegmentRule:
    return SegmentRule("x", 1.0, table(objective), "", cap, floor, loss)


PROBLEM = Discounted(offers=MIXED, discount=0.99)


@pytest.mark.parametrize("prior", [FLAT, DOUBTFUL])
@pytest.mark.parametrize("offers", [MIXED, MENU])
@given(data=st.data())
def test_decisions_are_those_of_the_library(offers: Offers, prior: Belief | MixtureBelief, data: st.DataObject) -> None:
    problem = Discounted(offers=offers, discount=0.99)
    k = data.draw(st.integers(0, ROWS - 1))
    j = data.draw(st.integers(0, k))
    terms = st.tuples(st.floats(1, 1e4), st.floats(0.05, 0.95))
    choices = [Offer(*each) for each in data.draw(st.lists(terms, min_size=1, max_size=5))]
    belief = Belief(prior.n + k, prior.s + j) if isinstance(prior, Belief) else prior.after(k, j)
    expected = policy(problem, prior).decide(belief, choices)
    segment = SegmentRule("x", 1.0, table(problem, prior), "", None, 0.0)
    verdict = segment.decide(Counts(successes=j, failures=k - j), 0.5, choices)
    assert verdict.offer is not None
    assert verdict.expected_profit is not None
    assert verdict.label_value is not None
    assert (verdict.offer, verdict.expected_profit) == (expected.offer, expected.expected_profit)
    small = 1e-6 * offers.mean_amount  # labels that are worth less are not stored
    assert verdict.label_value.lower == pytest.approx(expected.label_value.lower, abs=small)
    assert verdict.label_value.upper >= expected.label_value.upper - 1e-12
    if abs(expected.expected_profit + expected.label_value.lower) > small:
        assert (verdict.decision == "accept") == expected.accepted
    # The threshold is the rate at which this offer is accepted.
    if abs(belief.mean - verdict.threshold) > 1e-9:
        assert (belief.mean > verdict.threshold) == (verdict.decision == "accept")


def test_a_table_is_the_same_text_each_time() -> None:
    segment = SegmentProblem("x", 1.0, PROBLEM, FLAT, None, 0.0)
    effort = Effort(offer_rows=30)
    assert solve(segment, effort) == solve(segment, effort)
    assert '"kind":"offers"' in solve(segment, effort)


def test_beyond_the_table_labels_are_estimated_and_their_bounds_hold() -> None:
    stored = table(PROBLEM)
    for successes, failures in ((ROWS, 0), (100, 30), (90, 40), (0, ROWS), (3000, 800)):
        belief = Belief(2 + successes + failures, 1 + successes)
        label = stored.label(successes, failures).bounds
        true = policy(PROBLEM).label_value(belief)
        assert label.lower <= true.upper
        assert true.lower <= label.upper
        for offer in (Offer(100, 0.68), Offer(100, 0.81), Offer(1000, 0.8)):
            profit = offer.expected_profit(belief.mean)
            if profit > 0 or profit + label.lower > 0 or profit + label.upper < 0:
                verdict = rule(PROBLEM).decide(Counts(successes=successes, failures=failures), 0.0, [offer])
                assert (verdict.decision == "accept") == policy(PROBLEM).accepts(belief, offer)


def test_a_doubtful_prior_with_one_cost() -> None:
    problem = Discounted(0.7, 0.99)
    stored = table(problem, DOUBTFUL)
    segment = SegmentRule("x", 1.0, stored, "", None, 0.0)
    assert stored.offers is None
    assert not segment.needs_offer
    for k in range(0, 60, 7):
        for j in range(k + 1):
            verdict = segment.decide(Counts(successes=j, failures=k - j), 0.0)
            assert (verdict.decision == "accept") == policy(problem, DOUBTFUL).accepts(DOUBTFUL.after(k, j))
            assert verdict.offer is None
    first = segment.basis(Counts(successes=3))
    assert first.belief.mean == pytest.approx(DOUBTFUL.after(3, 3).mean, abs=1e-12)
    assert first.rate == DOUBTFUL.after(3, 3).mean
    assert "expected success rate is 41.2%" in reason(segment, Counts(), segment.decide(Counts(), 0.0))
    assert what_would_change(segment, Counts(), segment.decide(Counts(), 0.0))


@pytest.mark.parametrize(
    ("counts", "choices", "decision", "why", "amount"),
    [
        (Counts(), [Offer(500, 0.8)], "accept", "worth_learning", 500),
        (Counts(), [Offer(5000, 0.8)], "reject", "below_threshold", 5000),
        (Counts(), [Offer(5000, 0.8), Offer(500, 0.8)], "accept", "worth_learning", 500),
        (Counts(successes=20, failures=1), [Offer(5000, 0.8), Offer(500, 0.8)], "accept", "above_break_even", 5000),
        (Counts(pending=2), [Offer(500, 0.8)], "reject", "exposure_cap", 500),
        # The cap of 1,000: 400 of this offer on top of 600 just fit, and on top of 601 they do not.
        (Counts(pending=1, at_risk=600.0), [Offer(500, 0.8)], "accept", "worth_learning", 500),
        (Counts(pending=1, at_risk=601.0), [Offer(500, 0.8)], "reject", "exposure_cap_amount", 500),
        # The best offer does not fit, a smaller one does.
        (Counts(successes=20, failures=1), [Offer(5000, 0.4), Offer(500, 0.8)], "accept", "above_break_even", 500),
        # A smaller one fits, but does not pay.
        (Counts(successes=20, failures=1), [Offer(5000, 0.4), Offer(500, 0.99)], "reject", "exposure_cap_amount", 5000),
    ],
)
def test_caps(counts: Counts, choices: list[Offer], decision: str, why: str, amount: float) -> None:
    problem = Discounted(offers=MENU, discount=0.99)
    large = counts.successes == 20 and choices[0].cost == 0.8
    verdict = rule(problem, 2, 0.0, 10_000 if large else 1_000).decide(counts, 0.0, choices)
    assert verdict.offer is not None
    assert (verdict.decision, verdict.rule, verdict.offer.amount) == (decision, why, amount)
    assert verdict.probability == float(decision == "accept")
    assert verdict.limit == 2


def test_the_exploration_floor_opens_only_what_has_stopped() -> None:
    problem = Discounted(offers=MENU, discount=0.99)
    stopped = Counts(failures=15)
    assert table(problem).limit(0, 15) == 0
    lucky = rule(problem, floor=0.25).decide(stopped, 0.2, [Offer(5000, 0.8), Offer(500, 0.8)])
    assert (lucky.decision, lucky.rule, lucky.probability) == ("accept", "exploration_floor", 0.25)
    assert lucky.offer == Offer(500, 0.8)  # the one that loses least
    unlucky = rule(problem, floor=0.25).decide(stopped, 0.3, [Offer(500, 0.8)])
    assert (unlucky.decision, unlucky.rule, unlucky.probability) == ("reject", "below_threshold", 0.25)
    # Where smaller offers are accepted, large ones are not drawn.
    assert rule(problem, floor=0.25).decide(Counts(), 0.0, [Offer(5000, 0.8)]).probability == 0.0
    full = rule(problem, floor=0.25, loss=100).decide(stopped, 0.0, [Offer(500, 0.8)])
    assert (full.decision, full.probability) == ("reject", 0.0)


def test_a_segment_without_a_request_shows_its_best_offer() -> None:
    verdict = rule(PROBLEM).decide(Counts(), 1.0)
    assert verdict.decision == "accept"
    assert verdict.offer == Offer(100, 0.75)
    stored = table(PROBLEM)
    assert stored.limit(0, 0) is None
    label = policy(PROBLEM).label_value(FLAT).lower
    assert stored.threshold(0, 0) == pytest.approx(0.75 - label / 100, abs=1e-9)
    assert stored.share_accepted(0, 0) == pytest.approx(policy(PROBLEM).share_accepted(FLAT))
    assert 0 < stored.share_accepted(0, 0) < 1
    assert not stored.closed
    for k in (0, 1, 5, 30, 119):
        least = stored.least_accepted(k)
        assert least is not None
        assert stored.limit(least, k - least) is None
        assert least == 0 or stored.limit(least - 1, k - least + 1) == 0
    assert stored.least_accepted(ROWS) is None
    value, continuing = stored.value(3, 1, 0)
    assert value is not None
    assert continuing is None
    assert value.midpoint == pytest.approx(policy(PROBLEM).value(Belief(6, 4)).midpoint, rel=1e-6)


def test_reasons_are_in_money() -> None:
    problem = Discounted(offers=MENU, discount=0.99)
    segment = rule(problem, 2, 0.0, 1_000)
    both = [Offer(500, 0.8), Offer(5000, 0.8)]

    def texts(counts: Counts, choices: list[Offer]) -> tuple[str, list[str], list[str]]:
        verdict = segment.decide(counts, 0.0, choices)
        codes = [each.code for each in offer_principal_reasons(segment, counts, verdict)]
        return (
            offer_reason(segment, counts, verdict, choices),
            codes,
            what_would_change_offer(segment, counts, verdict, choices),
        )

    text, codes, changes = texts(Counts(), both)
    assert text == (
        "Offer $500 instead of $5,000: the expected success rate is 50% (prior evidence worth 2 outcomes), not above "
        "the break-even of 80%. The expected loss is $150. One more outcome is worth $229 for later decisions. "
        "0 outcomes pending, of at most 2 at once."
    )
    assert codes == []
    assert changes[-1] == "An amount at stake of $764 or more at this break-even: reject."
    text, codes, changes = texts(Counts(), [Offer(5000, 0.8)])
    assert text.startswith("Reject $5,000: the expected success rate is 50%")
    assert text.endswith("worth only $229 for later decisions. At this break-even, amounts below $764 are accepted.")
    assert codes == ["record_of_similar_applicants", "amount_at_stake", "limited_experience_with_segment"]
    assert changes[0] == "An amount at stake below $764 at this break-even: accept."
    run = int(changes[1].split()[0])
    assert changes[1] == f"{run} further successes in a row: accept."
    assert policy(problem).accepts(Belief(2 + run, 1 + run), Offer(5000, 0.8))
    assert not policy(problem).accepts(Belief(1 + run, run), Offer(5000, 0.8))
    text, codes, changes = texts(Counts(pending=2), both)
    assert text == "Reject $500 for now: 2 outcomes are pending, and the exposure cap is 2. New outcomes make room."
    assert codes == ["exposure_cap_reached"]
    assert changes[0].startswith("1 fewer outcome pending")
    text, codes, changes = texts(Counts(pending=1, at_risk=800.0), [Offer(500, 0.8)])
    assert text == (
        "Reject $500 for now: the pending outcomes of this segment can lose $800, this offer $400 more, and the cap is "
        "$1,000. New outcomes make room."
    )
    assert codes == ["exposure_cap_amount_reached"]
    assert changes[0] == "$200 less at risk in pending outcomes: accept."


def test_money_at_risk_ends_with_the_last_pending_outcome() -> None:
    assert at_risk_after(0.1 + 0.2, -0.3, 0) == 0.0
    assert at_risk_after(100.0, -100.1, 1) == 0.0
    assert math.isclose(at_risk_after(100.0, 50.0, 2), 150.0)


def prompt_table(charges: tuple[float, ...] = ()) -> PromptOfferTable:
    problem = Discounted(offers=Offers([100, 1000], [0.8, 0.7]), discount=0.9)
    return PromptOfferTable(solve_offer_table(problem, Belief(2, 1), 14, 1e-6, charges))


def test_labels_of_a_batch_are_expected_over_its_outcomes() -> None:
    table = prompt_table()
    values = table.batch_label_values(1, 1, 5, 0)
    for k, value in enumerate(values):
        chances = betabinom(k, 2, 2)
        expected = sum(chances.pmf(j) * table.label(1 + j, 1 + k - j).worth for j in range(k + 1))
        assert value == pytest.approx(expected)
    assert len(values) == 5
    assert len(table.batch_label_values(0, 0, 500, 0)) == MOST_LABELS


def test_labels_between_whole_counts_are_interpolated() -> None:
    table = prompt_table()
    for good, bad in ((2.5, 1.0), (0.3, 0.4), (4.2, 3.9), (0.5, 6.0)):
        rate = (1 + good) / (2 + good + bad)
        around = list(neighbours(good, bad, rate, 14))
        label = table.label(good, bad)
        assert label.worth == pytest.approx(sum(weight * table.label(s, f).worth for weight, s, f in around))
        for side in ("lower", "upper"):
            expected = sum(weight * getattr(table.label(s, f).bounds, side) for weight, s, f in around)
            assert getattr(label.bounds, side) == pytest.approx(expected)


def test_charges_raise_the_break_evens() -> None:
    table, free = prompt_table((10.0, 50.0)), prompt_table()
    assert free.lowest_cost == 0.7
    assert table.lowest_cost == pytest.approx(0.75)
    label = table.label(3, 1).worth
    assert table.threshold(3, 1) == pytest.approx(min(0.9 - label / 100, 0.75 - label / 1000))
    for good, bad in ((0, 0), (1, 0), (2, 1), (6, 2), (5, 4)):
        rate, worth = (1 + good) / (2 + good + bad), table.label(good, bad).worth
        pays = [100 * (rate - 0.9) + worth > 0, 1000 * (rate - 0.75) + worth > 0]
        assert table.limit(good, bad) == (None if any(pays) else 0)
        assert table.share_accepted(good, bad) == sum(pays) / 2
