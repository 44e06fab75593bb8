"""How many of the rejected would have succeeded: against slow simulations in which their outcomes are known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import betabinom, binomtest

import lenience as ln
from lenience.analysis import rejected_outcomes
from lenience.analysis.rejected_segment import RandomSample, RejectionEvidence, assess_segment
from lenience.analysis.rejection_results import days_in_words
from lenience.analysis.rejection_totals import compare_with_random, summarise
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.intervals import anytime_interval, exact_interval

COST = 0.7


def stopped_at(outcomes: NDArray[np.bool_], prior: ln.Belief) -> tuple[int, int] | None:
    """Return the outcomes and successes of a policy that stops when the expected rate is at most 60%, if it does."""
    n, s = prior.n, prior.s
    for i, good in enumerate(outcomes):
        if s <= 0.6 * n:
            return i, int(outcomes[:i].sum())
        n, s = n + 1, s + good
    return None


def test_the_posterior_interval_holds_for_segments_that_stopped_although_their_share_is_too_low() -> None:
    rng, prior = np.random.default_rng(3), ln.Belief(4, 3)
    covered, stops, shares = 0, 0, []
    for rate in rng.beta(3, 1, 4000):
        run = stopped_at(rng.random(40) < rate, prior)
        if run is None:
            continue
        stops += 1
        outcomes, successes = run
        after = ln.Belief(prior.n + outcomes, prior.s + successes)
        result = assess_segment(RejectionEvidence("a", 100, 100.0, 70.0, after, outcomes, successes))
        covered += rate in result.interval
        shares.append(successes / outcomes - rate)
    assert stops > 800
    assert covered / stops == pytest.approx(0.9, abs=0.025)
    assert np.mean(shares) < -0.1  # bad luck stops, so the share of successes is too low


def test_the_share_of_successes_after_stopping_at_the_first_failure() -> None:
    for rate in (0.3, 0.5, 0.9):
        expected = sum(k / (k + 1) * rate**k * (1 - rate) for k in range(2000))
        assert 1 + (1 - rate) * math.log(1 - rate) / rate == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rate", [0.4, 0.65, 0.9])
def test_the_interval_without_a_prior_holds_whenever_the_policy_stops(rate: float) -> None:
    rng = np.random.default_rng(5)
    held = worst = 0
    for _ in range(400):
        outcomes = np.cumsum(rng.random(60) < rate)
        # The worst stopping rule: stop as soon as the true rate is outside.
        held += all(rate in anytime_interval(int(outcomes[n - 1]), n, 0.9) for n in (1, 2, 3, 5, 8, 13, 20, 30, 45, 60))
        worst += all(rate in exact_interval(int(outcomes[n - 1]), n, 0.9) for n in (1, 2, 3, 5, 8, 13, 20, 30, 45, 60))
    assert held / 400 >= 0.9
    assert worst / 400 < 0.85  # an interval for a fixed number of outcomes does not


def test_intervals_against_scipy_and_against_the_product_of_predictions() -> None:
    for good, total in ((0, 7), (3, 9), (9, 9), (140, 200)):
        ends = binomtest(good, total).proportion_ci(0.9, "exact")
        interval = exact_interval(good, total, 0.9)
        assert (interval.lower, interval.upper) == pytest.approx((ends.low, ends.high), abs=1e-9)
    outcomes = [1, 1, 0, 1, 0, 1, 1, 1]
    mixture = 1.0  # the probability that one predicts the outcomes with, one after the other, by Jeffreys' prior
    for n, outcome in enumerate(outcomes):
        success = (sum(outcomes[:n]) + 0.5) / (n + 1)
        mixture *= success if outcome else 1 - success
    interval = anytime_interval(6, 8, 0.9)
    for end in (interval.lower, interval.upper):
        assert mixture / (end**6 * (1 - end) ** 2) == pytest.approx(10.0, rel=1e-6)
    assert anytime_interval(0, 0) == exact_interval(0, 0) == Bounds(0.0, 1.0)
    assert anytime_interval(0.001, 5.0, 0.9).lower == 0.0


def test_random_acceptances_stand_for_the_rejected_on_average() -> None:
    """Over all 64 results of the draws, the weighted successes are those of the rejected on average."""
    chances, outcomes = np.array([0.1, 0.3, 0.5, 0.2, 0.6, 0.9]), np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    weighted = rejected = 0.0
    for draws in itertools.product((False, True), repeat=6):
        taken = np.array(draws)
        chance = float(np.where(taken, chances, 1 - chances).prod())
        weighted += chance * float(((1 - chances) / chances * outcomes)[taken].sum())
        rejected += chance * float(outcomes[~taken].sum())
    assert weighted == pytest.approx(rejected)


def test_random_acceptances_cover_the_number_who_would_have_succeeded() -> None:
    rng, rows = np.random.default_rng(7), 1500
    covered = rate_covered = 0
    for _ in range(250):
        score = rng.random(rows)
        chances = np.where(score > 0.6, 1.0, np.where(score > 0.3, 0.15, 0.05))
        repaid = rng.random(rows) < 0.3 + 0.6 * score
        accepted = rng.random(rows) < chances
        result = rejected_outcomes(accepted, np.where(accepted, repaid, np.nan), COST, propensity=chances)
        (only,) = result.segments
        assert only.basis == "random"
        assert only.rejected == (~accepted).sum()
        covered += repaid[~accepted].sum() in only.would_have_succeeded
        rate_covered += (0.3 + 0.6 * score[~accepted]).mean() in only.interval
    assert covered / 250 >= 0.88
    assert rate_covered / 250 >= 0.88


def test_numbers_of_the_rejected_agree_with_the_beta_binomial() -> None:
    for n, s, rejected in ((52, 26, 300), (12, 9, 40), (400, 250, 90)):
        result = assess_segment(
            RejectionEvidence("a", rejected, rejected, 0.7 * rejected, ln.Belief(n, s), n - 2, s - 1)
        )
        exact = betabinom(rejected, s, n - s)
        count = result.would_have_succeeded
        assert count.lower == pytest.approx(exact.ppf(0.05), abs=0.02 * rejected + 1)
        assert count.upper == pytest.approx(exact.ppf(0.95), abs=0.02 * rejected + 1)


def test_verdicts_in_money_by_segment_and_in_total() -> None:
    segments = ["good"] * 100 + ["bad"] * 100 + ["new"] * 10
    accepted = np.array([1] * 60 + [0] * 40 + [1] * 50 + [0] * 50 + [0] * 10)
    outcomes = np.array([1] * 55 + [0] * 5 + [0] * 40 + [1] * 20 + [0] * 30 + [0] * 60, dtype=float)
    amounts, costs = np.where(np.array(segments) == "good", 100.0, 1000.0), np.full(210, 0.7)
    result = rejected_outcomes(accepted, outcomes, offers=(amounts, costs), segments=segments, alike=True, days=100)
    by_name = {one.segment: one for one in result.segments}
    assert {name: one.verdict for name, one in by_name.items()} == {"good": "wrong", "bad": "right", "new": "unknown"}
    assert by_name["new"].basis == "prior"
    good, bad = by_name["good"], by_name["bad"]
    assert good.profit == pytest.approx(40 * 100 * (56 / 62 - 0.7))
    assert bad.profit == pytest.approx(50 * 1000 * (21 / 52 - 0.7))
    assert bad.profit_interval.lower == pytest.approx(50_000 * (ln.Belief(52, 21).interval(0.9).lower - 0.7))
    assert bad.without_prior == anytime_interval(20, 50, 0.9)
    assert bad.random.acceptances == 50
    assert bad.random.cost == pytest.approx(-bad.profit)
    assert bad.random.days == pytest.approx([50 / (0.02 * 0.5), 50 / (0.05 * 0.5)])
    assert bad.random.yearly == pytest.approx([-share * bad.profit * 3.6525 for share in (0.02, 0.05)])
    total = result.total
    assert total is not None
    assert (total.rejected, total.unknown) == (90, 10)
    assert total.rate == pytest.approx((40 * 56 / 62 + 50 * 21 / 52) / 90)
    assert total.profit == pytest.approx(good.profit + bad.profit)
    below = math.hypot(*(one.profit - one.profit_interval.lower for one in (good, bad)))
    assert total.profit_interval.lower == pytest.approx(total.profit - below)
    assert result.summary(ln.Money(1, "$")).count("$") == 2
    assert "Nothing is known about new" in str(result)


def test_what_is_counted_apart_and_what_pending_outcomes_could_change() -> None:
    accepted = [1] * 30 + [0] * 70
    outcomes: list[float | None] = [1.0] * 14 + [0.0] * 12 + [None] * 4 + [None] * 70
    people, limit = [0] * 29 + [1] + [0] * 70, [0] * 90 + [1] * 10
    result = rejected_outcomes(accepted, outcomes, COST, alike=True, by_people=people, at_a_limit=limit)
    (only,) = result.segments
    assert (only.rejected, only.at_a_limit, only.outcomes, only.pending) == (60, 10, 26, 3)
    assert result.by_people is not None
    assert (result.by_people.accepted, result.by_people.outcomes) == (1, 0)
    assert only.with_pending.lower == pytest.approx(ln.Belief(31, 15).interval(0.9).lower)
    assert only.with_pending.upper == pytest.approx(ln.Belief(31, 18).interval(0.9).upper)
    assert (only.verdict, only.pending_matters) == ("right", only.with_pending.upper > COST)
    unsure = assess_segment(RejectionEvidence("a", 9, 9.0, 6.3, ln.Belief(28, 15), 26, 14, pending=12))
    assert (unsure.verdict, unsure.pending_matters) == ("right", True)
    assert "12 pending outcomes could still change this" in unsure.describe()
    many = np.r_[np.zeros(28), np.ones(12), np.full(3, np.nan)]  # the pending ones have most of the money
    sample = RandomSample(np.ones(43), np.r_[np.ones(40), np.full(3, 9.0)], many)
    drawn = assess_segment(RejectionEvidence("a", 9, 9.0, 6.3, outcomes=40, successes=12, pending=3, sample=sample))
    assert (drawn.verdict, drawn.pending_matters) == ("right", True)
    assert drawn.with_pending.upper < 0.7


def test_outcomes_from_before_the_log_are_evidence() -> None:
    before = RejectionEvidence("a", 9, 9.0, 6.3, ln.Belief(40, 12), outcomes=10, successes=3, earlier=28.0)
    result = assess_segment(before)
    assert (result.basis, result.verdict, result.random.acceptances) == ("outcomes", "right", 38)
    only_before = assess_segment(before._replace(outcomes=0, successes=0))
    assert (only_before.basis, only_before.random.acceptances) == ("outcomes", 28)
    assert only_before.without_prior == Bounds(0.0, 1.0)
    nothing = assess_segment(before._replace(outcomes=0, successes=0, earlier=0.0))
    assert (nothing.basis, nothing.verdict) == ("prior", "unknown")
    assert nothing.random.acceptances == math.ceil(1.6448536**2 * 0.3 * 0.7 / 0.1**2)


def test_rejected_without_a_chance_are_not_estimated() -> None:
    chances = np.array([0.2] * 50 + [0.0] * 30 + [1.0] * 20)
    accepted = np.array([1] * 10 + [0] * 40 + [0] * 30 + [1] * 20)
    outcomes = np.array([1.0] * 6 + [0.0] * 4 + [np.nan] * 70 + [1.0] * 20)
    result = rejected_outcomes(accepted, outcomes, COST, propensity=chances)
    (only,) = result.segments
    assert (only.rejected, only.not_covered, only.outcomes) == (40, 30, 10)
    assert only.interval == exact_interval(6, 10, 0.9)
    assert only.to_learn == 10
    assert only.to_learn_profit == pytest.approx(6 * 0.3 - 4 * 0.7)
    assert result.total is not None
    assert result.total.unknown == 30
    alone = rejected_outcomes([0, 0], [None, None], COST, propensity=[0.0, 0.0])
    assert (alone.total, alone.segments[0].verdict, alone.segments[0].rejected) == (None, "unknown", 2)
    with_all = rejected_outcomes(accepted, outcomes, COST, propensity=chances, alike=True).segments[0]
    assert (with_all.rejected, with_all.outcomes, with_all.basis) == (70, 30, "outcomes")
    assert with_all.check is not None
    assert (with_all.check.outcomes, with_all.check.interval) == (10, exact_interval(6, 10, 0.9))


def test_a_model_estimates_the_rejected_and_random_acceptances_check_it() -> None:
    rng = np.random.default_rng(0)
    chances, expected = np.full(2000, 0.1), rng.uniform(0.3, 0.5, 2000)
    accepted = rng.random(2000) < chances
    repaid = rng.random(2000) < 0.8  # the model is wrong
    result = rejected_outcomes(
        accepted, np.where(accepted, repaid, np.nan), COST,
        propensity=chances, expected=expected, evidence=np.full(2000, 50.0),
    )  # fmt: skip
    (only,) = result.segments
    ends = [ln.Belief(50, 50 * mean).interval(0.9) for mean in expected[~accepted]]
    assert only.basis == "model"
    assert only.interval.lower == pytest.approx(np.mean([end.lower for end in ends]))
    assert only.interval.upper == pytest.approx(np.mean([end.upper for end in ends]))
    assert only.check is not None
    assert not only.check.agrees
    assert "may differ" in only.describe()
    half = only.interval.width / 2
    assert only.random.acceptances == math.ceil(1.6448536269514722**2 * only.rate * (1 - only.rate) / half**2)
    assert not any("extrapolates" in caution for caution in result.cautions)
    untried = assess_segment(
        RejectionEvidence("a", 2, 2.0, 1.4, expected=np.array([0.4, 0.5]), evidence=np.array([9.0, 9.0]), earlier=5.0)
    )
    assert any("2 rejected applicants" in caution for caution in summarise([untried]).cautions)


def test_a_random_acceptance_counts_for_the_rejected_that_it_stands_for() -> None:
    chances = np.array([0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 1.0])
    accepted, outcomes = np.array([1, 1, 0, 0, 1, 0, 1]), np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    amounts = np.array([100.0, 100.0, 100.0, 100.0, 10.0, 10.0, 100.0])
    offers = (amounts, np.full(7, 0.75))
    (only,) = rejected_outcomes(accepted, outcomes, propensity=chances, offers=offers).segments
    assert only.rate == pytest.approx((1 + 9) / (1 + 1 + 9))
    by_amount = (100 + 90) / (100 + 100 + 90)
    assert only.profit == pytest.approx(210 * by_amount - 0.75 * 210)
    size = 290**2 / (100**2 + 100**2 + 90**2)
    ends = exact_interval(by_amount * size, size, 0.9)
    assert only.profit_interval.upper == pytest.approx(210 * ends.upper - 0.75 * 210)
    assert (only.rejected, only.outcomes, only.to_learn) == (3, 3, 3)
    outcomes[1] = np.nan
    (open_case,) = rejected_outcomes(accepted, outcomes, propensity=chances, offers=offers).segments
    size = 11**2 / (1 + 1 + 81)
    assert open_case.with_pending.lower == pytest.approx(exact_interval(10 / 11 * size, size, 0.9).lower)
    assert open_case.with_pending.upper == 1.0


def test_a_weighted_sample_is_worth_fewer_outcomes() -> None:
    sample = RandomSample(np.array([1.0, 1.0, 8.0]), np.ones(3), np.array([1.0, 0.0, 1.0]))
    result = assess_segment(RejectionEvidence("a", 10, 10.0, 7.0, outcomes=3, successes=2, sample=sample))
    size = 100 / 66
    assert result.rate == pytest.approx(0.9)
    assert result.interval == exact_interval(0.9 * size, size, 0.9)
    assert result.random.acceptances == 2


def test_invalid_logs_are_rejected() -> None:
    with pytest.raises(InputError, match="alike=True"):
        rejected_outcomes([1, 0], [1, None], COST)
    for fields, wrong in (
        (("accepted",), {"accepted": [2, 0]}),
        (("propensity",), {"propensity": [0.5, 1.5]}),
        (("propensity",), {"propensity": [0.0, 0.5]}),
        (("propensity",), {"propensity": [0.5]}),
        (("segments",), {"segments": ["a"]}),
        (("evidence",), {"expected": [0.5, 0.5]}),
        (("prior",), {"alike": True, "prior": {"b": ln.Belief(2, 1)}}),
        (("confidence",), {"confidence": 1.5}),
        (("days",), {"days": 0}),
        (("shares",), {"shares": [1.5]}),
    ):
        given = {"accepted": [1, 0], "outcomes": [1, None], "cost": COST, "propensity": [0.5, 0.5], **wrong}
        with pytest.raises(InputError) as caught:
            rejected_outcomes(**given)  # type: ignore[arg-type]
        assert caught.value.fields == fields, wrong
    with pytest.raises(InputError, match="cost or offers"):
        rejected_outcomes([1, 0], [1, None], alike=True)
    assert "Nobody was rejected" in rejected_outcomes([1], [1], COST, alike=True).statement


def test_one_outcome_is_evidence() -> None:
    one = RejectionEvidence("a", 9, 9.0, 6.3, ln.Belief(3, 1), outcomes=1)
    assert assess_segment(one).basis == "outcomes"
    assert assess_segment(one._replace(outcomes=0, earlier=0.5)).basis == "outcomes"
    modelled = one._replace(belief=None, expected=np.array([0.4, 0.6]), evidence=np.array([5.0, 20.0]))
    assert assess_segment(modelled).verdict != "unknown"
    assert assess_segment(modelled._replace(outcomes=0)).verdict == "unknown"


def test_a_model_in_money() -> None:
    means, sizes, amounts = np.array([0.2, 0.9, 0.5]), np.array([10.0, 40.0, 5.0]), np.array([100.0, 300.0, 50.0])
    given = RejectionEvidence("a", 3, 450.0, 300.0, outcomes=9, expected=means, evidence=sizes, amounts=amounts)
    result = assess_segment(given, 0.8)
    ends = [ln.Belief(n, n * mean).interval(0.8) for n, mean in zip(sizes, means, strict=True)]
    low, high = np.array([end.lower for end in ends]), np.array([end.upper for end in ends])
    assert result.rate == pytest.approx(means.mean())
    assert (result.interval.lower, result.interval.upper) == pytest.approx((low.mean(), high.mean()))
    assert result.profit == pytest.approx(amounts @ means - 300)
    assert result.profit_interval.lower == pytest.approx(amounts @ low - 300)
    assert result.profit_interval.upper == pytest.approx(amounts @ high - 300)
    assert result.break_even == pytest.approx(300 / 450)
    assert (result.with_pending, result.pending_matters, result.without_prior) == (result.interval, False, None)
    plan = assess_segment(given._replace(days=50.0), 0.8, (0.1,)).random
    assert plan.days == pytest.approx([plan.acceptances / (0.1 * 3 / 50)])
    assert plan.yearly == pytest.approx([-0.1 * result.profit * 365.25 / 50])
    assert plan.cost == pytest.approx(-plan.acceptances / 3 * result.profit)
    assert plan.cost_interval.lower == pytest.approx(-plan.acceptances / 3 * result.profit_interval.upper)
    assert plan.cost_interval.upper == pytest.approx(-plan.acceptances / 3 * result.profit_interval.lower)
    sure = assess_segment(given._replace(expected=np.array([0.0, 1.0, 1.0]), evidence=np.full(3, 1e6)))
    assert (sure.interval.lower, sure.interval.upper) == pytest.approx((2 / 3, 2 / 3), abs=1e-5)


def test_how_many_of_few_would_have_succeeded() -> None:
    def count(rejected: int, belief: ln.Belief) -> Bounds:
        given = RejectionEvidence("a", rejected, rejected, 0.7 * rejected, belief, 5, 3)
        return assess_segment(given).would_have_succeeded

    assert count(0, ln.Belief(9, 5)) == Bounds(0.0, 0.0)
    assert count(1, ln.Belief(9, 5)) == Bounds(0.0, 1.0)
    belief = ln.Belief(500, 300)
    z, interval = 1.6448536269514722, belief.interval(0.9)
    low, high = interval.lower, interval.upper
    below = 0.6 - math.hypot(0.6 - low, z * math.sqrt(low * (1 - low) / 80))
    above = 0.6 + math.hypot(high - 0.6, z * math.sqrt(high * (1 - high) / 80))
    assert count(80, belief) == Bounds(math.floor(80 * below), math.ceil(80 * above))
    nobody = assess_segment(RejectionEvidence("a", 0, 0.0, 0.0, ln.Belief(9, 5), 5, 3, days=10.0))
    assert (nobody.break_even, nobody.random.days, nobody.random.cost) == (None, None, 0.0)
    assert "nobody was rejected" in nobody.describe()


def test_totals_of_segments_add_up() -> None:
    def segment(name: str, rejected: int, successes: int, cost: float) -> RejectionEvidence:
        given = RejectionEvidence(name, rejected, 10.0 * rejected, 10 * cost * rejected, ln.Belief(42, 1 + successes))
        return given._replace(outcomes=40, successes=successes, days=100.0, to_learn_profit=-2.0)

    parts = [
        segment("a", 30, 10, 0.7)._replace(to_learn=4, to_learn_outcomes=3, at_a_limit=2),
        segment("b", 50, 20, 0.8)._replace(to_learn=5, to_learn_outcomes=1, not_covered=6),
        segment("c", 20, 38, 0.5)._replace(pending=1),
    ]
    unknown = RejectionEvidence("d", 7, 7.0, 4.9, ln.Belief(2, 1), at_a_limit=1)
    nothing = RejectionEvidence("e", 0, 0.0, 0.0, ln.Belief(2, 1))
    assessed = [assess_segment(one) for one in (*parts, unknown, nothing)]
    apart, together = (summarise(assessed, correlated=correlated, alike=True) for correlated in (False, True))
    known = assessed[:3]

    def added(sizes: list[float], correlated: bool) -> float:
        return sum(sizes) if correlated else math.hypot(*sizes)

    for result, correlated in ((apart, False), (together, True)):
        total = result.total
        assert total is not None
        assert (total.rejected, total.unknown, total.at_a_limit) == (100, 13, 3)
        assert (total.to_learn, total.to_learn_outcomes, total.to_learn_profit) == (9, 4, -6.0)
        rate = sum(one.rate * one.rejected for one in known) / 100
        low = added([(one.rate - one.interval.lower) * one.rejected / 100 for one in known], correlated)
        high = added([(one.interval.upper - one.rate) * one.rejected / 100 for one in known], correlated)
        assert (total.interval.lower, total.interval.upper) == pytest.approx((rate - low, rate + high))
        worse = added([one.profit - one.profit_interval.lower for one in known], correlated)
        better = added([one.profit_interval.upper - one.profit for one in known], correlated)
        assert total.profit_interval.lower == pytest.approx(total.profit - worse)
        assert total.profit_interval.upper == pytest.approx(total.profit + better)
        assert total.break_even == pytest.approx((30 * 0.7 + 50 * 0.8 + 20 * 0.5) / 100)
        assert total.random_acceptances == 80
        assert total.random_cost == pytest.approx(assessed[0].random.cost + assessed[1].random.cost)
        profits = [abs(one.profit) for one in result.segments]
        assert profits == sorted(profits, reverse=True)
        assert {one.segment for one in result.segments} == set("abcd")
    text = compare_with_random(apart)
    slowest = max(one.random.days[0] for one in assessed[:2] if one.random.days)
    assert "80 acceptances, expected to cost" in text
    assert f"{days_in_words(slowest)} at 2%" in text
    assert "Learning has cost 6" in text
    assert "over 4 known outcomes" in text
    gained = summarise([assess_segment(parts[2]._replace(to_learn_profit=5.0))])
    assert compare_with_random(gained).startswith("Learning has earned 5")
    cautions = " ".join(apart.cautions)
    assert "assumed to be alike" in cautions
    assert "6 rejected applicants had no chance" in cautions
    assert "1 outcome is pending" in cautions
    assert "3 applicants were turned away only because" in cautions
    assert "assumed to be alike" not in " ".join(summarise(assessed).cautions)
    assert summarise([assess_segment(unknown)]).total is None
    assert summarise([assess_segment(nothing)]).segments == []


def test_what_people_accepted_is_counted_apart() -> None:
    accepted, people = [1, 1, 1, 0, 0], [1, 1, 0, 0, 1]
    result = rejected_outcomes(accepted, [1.0, None, 0.0, None, None], COST, alike=True, by_people=people)
    assert result.by_people is not None
    assert (result.by_people.accepted, result.by_people.outcomes, result.by_people.successes) == (2, 1, 1)
    assert result.by_people.interval == exact_interval(1, 1, 0.9)
    (only,) = result.segments
    assert (only.rejected, only.outcomes, only.successes, only.pending) == (1, 1, 0, 0)
    assert any("2 applicants against the policy. 1 of 1 succeeded." in text for text in result.cautions)


def test_what_a_log_says_about_each_segment_is_a_slow_count() -> None:
    rng = np.random.default_rng(4)
    rows, size = [], 120
    for _ in range(size):
        chance = float(rng.choice([0.0, 0.2, 0.5, 1.0]))
        person = bool(rng.random() < 0.1)
        accepted = bool(rng.random() < chance) or (person and chance == 0.0)
        outcome = float(rng.choice([0.0, 1.0, np.nan]))
        limit = bool(rng.random() < 0.1)
        rows.append(
            (accepted, outcome, chance, "ab"[int(rng.random() < 0.5)], 100 * float(rng.random()), person, limit)
        )
    decided, outcomes, chances, names, amounts, people, limits = (list(column) for column in zip(*rows, strict=True))
    costs = np.linspace(0.5, 0.9, size)
    for alike in (False, True):
        result = rejected_outcomes(decided, outcomes, propensity=chances, segments=names, offers=(amounts, costs),
                                   by_people=people, at_a_limit=limits, alike=alike, days=30)  # fmt: skip
        for one in result.segments:
            own = [(*row, cost) for row, cost in zip(rows, costs, strict=True) if row[3] == one.segment and not row[5]]
            shut = [row for row in own if not row[0] and not row[6]]
            told = [row for row in shut if alike or row[2] > 0]
            drawn = [row for row in own if row[0] and row[2] < 1]
            taken = [row for row in own if row[0]] if alike else drawn
            known = [row for row in drawn if row[1] == row[1]]
            assert (one.rejected, one.not_covered) == (len(told), len(shut) - len(told))
            assert one.amount == pytest.approx(sum(row[4] for row in told))
            assert one.break_even == pytest.approx(sum(row[4] * row[7] for row in told) / sum(row[4] for row in told))
            assert one.successes == sum(row[1] == 1 for row in taken)
            assert one.outcomes == sum(row[1] == row[1] for row in taken)
            assert one.pending == len(taken) - one.outcomes
            assert one.at_a_limit == sum(not row[0] and row[6] for row in own)
            assert (one.to_learn, one.to_learn_outcomes) == (len(drawn), len(known))
            assert one.to_learn_profit == pytest.approx(sum(row[4] * (row[1] - row[7]) for row in known))
            weights = [(1 - row[2]) / row[2] for row in known]
            share = sum(w * row[1] for w, row in zip(weights, known, strict=True)) / sum(weights)
            assert one.basis == ("outcomes" if alike else "random")
            if alike:
                assert one.rate == pytest.approx((1 + one.successes) / (2 + one.outcomes))
                assert one.check is not None
                assert one.check.rate == pytest.approx(share)
                assert (one.check.accepted, one.check.outcomes) == (len(drawn), len(known))
            else:
                assert one.rate == pytest.approx(share)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("accepted", {"accepted": [], "outcomes": []}),
        ("accepted", {"accepted": [0.5, 0]}),
        ("outcomes", {"outcomes": [1]}),
        ("expected", {"evidence": [1.0, 1.0]}),
        ("expected", {"expected": [0.5, 1.5], "evidence": [1.0, 1.0]}),
        ("evidence", {"expected": [0.5, 0.5], "evidence": [1.0, -1.0]}),
        ("by_people", {"by_people": [2, 0]}),
        ("at_a_limit", {"at_a_limit": [0, 0.5]}),
        ("at_a_limit", {"at_a_limit": [0]}),
    ],
)
def test_invalid_columns_are_named(field: str, changes: dict[str, object]) -> None:
    given = {"accepted": [1, 0], "outcomes": [1, None], "cost": COST, "propensity": [0.5, 0.5], **changes}
    with pytest.raises(InputError) as caught:
        rejected_outcomes(**given)  # type: ignore[arg-type]
    assert caught.value.fields == (field,)


def test_columns_may_have_the_ends_of_their_ranges() -> None:
    result = rejected_outcomes(
        [1, 0, 1], [1, None, 0], COST, propensity=[1.0, 0.0, 0.0], by_people=[0, 0, 1],
        expected=[0.0, 1.0, 0.5], evidence=[0.0, 0.0, 9.0], at_a_limit=[0, 0, 1],
    )  # fmt: skip
    assert (result.segments[0].rejected, result.segments[0].basis, result.segments[0].outcomes) == (1, "model", 1)
    assert rejected_outcomes([0], [None], COST, alike=True).segments[0].rejected == 1
