"""Offers: the certified solver against a plain recursion in extended precision, and the figures that are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lenience import (
    Belief,
    Delayed,
    Discounted,
    MixtureBelief,
    Offer,
    Offers,
    evaluate,
)
from lenience.core.protocols import offer_acceptance_at
from lenience.policies.beliefs.offer_baselines import GreedyOffers, PolicyPerCost
from lenience.solvers.offers.delayed import solve_delayed_offers
from lenience.solvers.offers.solve import prepare, solve_offers, upper_envelope
from rejections import rejected

Menu = list[tuple[float, float]]


def plain_value(
    prior: Belief | MixtureBelief, offers: Offers, discount: float, last: int
) -> tuple[np.longdouble, np.longdouble, np.longdouble, np.longdouble]:
    """Bounds of V and of the value of a label at the prior, by a plain double loop in extended precision.

    The last row is enclosed by 0 and by accepting every best offer with p = 1, which is crude and surely right.
    """
    beliefs = prior.beliefs if isinstance(prior, MixtureBelief) else (prior,)
    weights = prior.weights if isinstance(prior, MixtureBelief) else (1.0,)
    one, gamma = np.longdouble(1), np.longdouble(discount)
    menus = [
        [(np.longdouble(o.amount), np.longdouble(o.cost)) for o in offers.offers_of(m)]
        for m in range(len(offers.share))
    ]
    shares = [np.longdouble(share) for share in offers.share]

    likelihoods: dict[tuple[int, int], list[np.longdouble]] = {(0, 0): [np.longdouble(w) for w in weights]}

    def likelihood(k: int, j: int) -> list[np.longdouble]:
        """How likely each component makes these outcomes, by multiplying one outcome after the other."""
        if (k, j) not in likelihoods:
            before = likelihood(k - 1, j - 1) if j else likelihood(k - 1, j)
            chance = [(b.s + (j - 1)) / (b.n + k - 1) if j else (b.n - b.s + k - 1) / (b.n + k - 1) for b in beliefs]
            likelihoods[k, j] = [x * np.longdouble(c) for x, c in zip(before, chance, strict=True)]
        return likelihoods[k, j]

    def mean(k: int, j: int) -> np.longdouble:
        mass = likelihood(k, j)
        rates = [(np.longdouble(b.s) + j) / (np.longdouble(b.n) + k) for b in beliefs]
        return np.longdouble(sum(x * rate for x, rate in zip(mass, rates, strict=True)) / sum(mass))

    def root(p: np.longdouble, after: np.longdouble) -> np.longdouble:
        """The V of (1 − γ)V = Σ w (g + γ(M − V))⁺: the best over how many of the best menus are accepted."""
        gains = sorted(
            ((max(a * (p - c) for a, c in menu), w) for menu, w in zip(menus, shares, strict=True)), reverse=True
        )
        best = accepted = total = np.longdouble(0)
        for gain, share in gains:
            accepted += share
            total += share * gain
            best = max(best, (total + gamma * accepted * after) / (one - gamma + gamma * accepted))
        return best

    for k in range(last + 1):
        for j in range(k + 1):
            likelihood(k, j)
    ceiling = sum(w * max(a * (one - c) for a, c in menu) for menu, w in zip(menus, shares, strict=True)) / (
        one - gamma
    )
    low = [np.longdouble(0)] * (last + 1)
    high = [ceiling] * (last + 1)
    label = (np.longdouble(0), np.longdouble(0))
    for k in range(last - 1, -1, -1):
        rates = [mean(k, j) for j in range(k + 1)]
        after = [(p * low[j + 1] + (1 - p) * low[j], p * high[j + 1] + (1 - p) * high[j]) for j, p in enumerate(rates)]
        low = [root(p, below) for p, (below, _) in zip(rates, after, strict=True)]
        high = [root(p, above) for p, (_, above) in zip(rates, after, strict=True)]
        label = (gamma * (after[0][0] - high[0]), gamma * (after[0][1] - low[0]))
    return low[0], high[0], label[0], label[1]


THREE = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
COSTS = Offers(amount=[1, 1, 1], cost=[0.7, 0.8, 0.9])
NINE = Offers(amount=[a for a in (0.2, 1, 4) for _ in range(3)], cost=[0.7, 0.8, 0.9] * 3)
STARTER = Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8])


@pytest.mark.parametrize(
    ("offers", "discount", "value", "error"),
    [
        (THREE, 0.95, 0.309692, 5e-7),
        (THREE, 0.99, 3.097577, 5e-7),
        (THREE, 0.998, 18.82566, 4e-4),
        (COSTS, 0.99, 1.400717, 5e-7),
        (NINE, 0.99, 3.023756, 5e-7),
        (STARTER, 0.95, 0.1789, 5e-5),
        (STARTER, 0.99, 1.5818, 5e-5),
        (STARTER, 0.998, 9.3371, 5e-5),
    ],
)
def test_known_values(offers: Offers, discount: float, value: float, error: float) -> None:
    """Computed independently beforehand."""
    policy = Discounted(offers=offers, discount=discount).solve(prior=Belief(2, 1), rows=10)
    bounds = policy.value(Belief(2, 1))
    assert bounds.width < 1e-9 * offers.mean_amount
    assert abs(bounds.midpoint - value) <= error


@pytest.mark.parametrize(
    ("beliefs", "weights", "cost", "value"),
    [
        ((Belief(5, 1), Belief(2, 1)), (0.5, 0.5), 0.8, 0.1238187),
        ((Belief(5, 1), Belief(2, 1)), (0.5, 0.5), 0.7, 1.2698106),
        ((Belief(5, 1), Belief(2, 1)), (0.8, 0.2), 0.8, 0.0),
        ((Belief(5, 1), Belief(2, 1)), (0.8, 0.2), 0.7, 0.1071330),
        ((Belief(4, 2.7), Belief(2, 1)), (0.9, 0.1), 0.8, 1.9350376),
        ((Belief(4, 2.7), Belief(2, 1)), (0.9, 0.1), 0.7, 5.9685808),
    ],
)
def test_known_values_of_mixtures(
    beliefs: tuple[Belief, Belief], weights: tuple[float, float], cost: float, value: float
) -> None:
    prior = MixtureBelief(beliefs, weights)
    policy = Discounted(cost, 0.99).solve(prior=prior, rows=10)
    assert abs(policy.value(prior).midpoint - value) <= 6e-8
    assert policy.accepts(prior) == (value > 0)
    assert not Discounted(cost, 0.99).starts(Belief(5, 1))


def test_another_doubt_is_another_belief() -> None:
    """The table of one mixture does not answer for a mixture of the same beliefs with other weights."""
    prior, other = (MixtureBelief.doubt(Belief(4, 2.8), doubt) for doubt in (0.2, 0.9))
    policy = Discounted(0.7, 0.95).solve(prior, rows=20)
    own = Discounted(0.7, 0.95).solve(other, rows=2).label_value(other)
    assert policy.label_value(other).midpoint == pytest.approx(own.midpoint, abs=1e-8)
    later = prior.observe([True, False, True])
    assert policy._position(later) == (3, 2)
    fresh = Discounted(0.7, 0.95).solve(later, rows=2).label_value(later)
    assert policy.label_value(later).midpoint == pytest.approx(fresh.midpoint, abs=1e-8)


offer_lists = st.lists(
    st.tuples(st.floats(0.05, 20.0), st.floats(0.05, 0.95), st.floats(0.05, 1.0)), min_size=1, max_size=5
)
beliefs = st.tuples(st.floats(0.3, 12.0), st.floats(0.05, 0.95)).map(lambda pair: Belief(pair[0], pair[0] * pair[1]))


def build(rows: list[tuple[float, float, float]], menus: bool) -> Offers:
    """One offer for each row, or menus of two."""
    amounts, costs, shares = zip(*rows, strict=True)
    if not menus or len(rows) < 2:
        return Offers(amounts, costs, shares)
    of = [position // 2 for position in range(len(rows))]
    return Offers(amounts, costs, shares[: of[-1] + 1], of)


@settings(max_examples=60, deadline=None)
@given(offer_lists, st.booleans(), beliefs, st.floats(0.3, 0.93))
def test_enclosure_of_random_problems(
    rows: list[tuple[float, float, float]], menus: bool, prior: Belief, discount: float
) -> None:
    offers = build(rows, menus)
    last = math.ceil(math.log(1e-6) / math.log(discount)) + 2
    low, high, label_low, label_high = plain_value(prior, offers, discount, last)
    solution = solve_offers(prior, offers, discount, 3, 1e-9)
    assert solution.value.lower <= high
    assert solution.value.upper >= low
    assert solution.value.width <= 1e-9 * offers.mean_amount
    assert solution.label_value.lower <= label_high
    assert solution.label_value.upper >= label_low
    # The crude bounds are narrow too, so that a wrong enclosure cannot hide between them.
    assert float(high - low) < 2e-4 * offers.mean_amount / (1 - discount)


@settings(max_examples=25, deadline=None)
@given(offer_lists, st.booleans(), beliefs, beliefs, st.floats(0.05, 0.95), st.floats(0.3, 0.9))
def test_enclosure_of_random_mixtures(
    rows: list[tuple[float, float, float]], menus: bool, first: Belief, second: Belief, doubt: float, discount: float
) -> None:
    offers, prior = build(rows, menus), MixtureBelief((first, second), (1 - doubt, doubt))
    last = math.ceil(math.log(1e-6) / math.log(discount)) + 2
    low, high, label_low, label_high = plain_value(prior, offers, discount, last)
    solution = solve_offers(prior, offers, discount, 3, 1e-9)
    assert solution.value.lower <= high
    assert solution.value.upper >= low
    assert solution.label_value.lower <= label_high
    assert solution.label_value.upper >= label_low


@settings(max_examples=25, deadline=None)
@given(offer_lists, st.booleans(), beliefs, st.floats(0.3, 0.9), st.integers(1, 8), st.integers(0, 8))
def test_the_table_agrees_with_the_recursion(
    rows: list[tuple[float, float, float]], menus: bool, prior: Belief, discount: float, k: int, j: int
) -> None:
    """A label's value at a later belief, from the table, against a recursion that starts there."""
    offers = build(rows, menus)
    later = Belief(prior.n + k, prior.s + min(j, k))
    policy = Discounted(offers=offers, discount=discount).solve(prior, rows=10)
    last = math.ceil(math.log(1e-6) / math.log(discount)) + 2
    _, _, label_low, label_high = plain_value(later, offers, discount, last)
    bounds = policy.label_value(later)
    assert bounds.lower <= label_high
    assert bounds.upper >= label_low
    assert bounds.width <= 2e-9 * offers.mean_amount


@pytest.mark.parametrize(("cost", "discount", "prior"), [(0.8, 0.99, Belief(2, 1)), (0.35, 0.9, Belief(0.7, 0.5))])
def test_a_single_offer_is_the_problem_with_one_cost(cost: float, discount: float, prior: Belief) -> None:
    single = Discounted(cost, discount).solve(prior, rows=60)
    offer = Discounted(offers=Offers([250.0], [cost]), discount=discount).solve(prior, rows=60)
    for k in range(0, 60, 3):
        for j in range(0, k + 1, 2):
            belief = Belief(prior.n + k, prior.s + j)
            assert offer.accepts(belief) == single.accepts(belief), belief
    for belief in (prior, Belief(prior.n + 9, prior.s + 7)):
        assert offer.value(belief).midpoint == pytest.approx(250 * single.value(belief).midpoint, abs=1e-6)


def test_an_offer_nobody_asks_for_is_decided_by_the_value_of_the_label() -> None:
    """Also where acceptance is not monotone: a tiny offer is accepted where a label is worth much, and not above."""
    offers = Offers(amount=[100, 0.001], cost=[0.5, 0.95], share=[0.99, 0.01])
    policy = Discounted(offers=offers, discount=0.99).solve(Belief(2, 1), rows=2000)
    tiny = Offer(0.001, 0.95)
    at_half, between, above = Belief(1002, 501), Belief(1002, 801), Belief(1002, 980)
    assert [policy.accepts(belief, tiny) for belief in (at_half, between, above)] == [True, False, True]
    low, high, _, _ = plain_value(Belief(1002, 801), offers, 0.5, 12)
    assert low <= solve_offers(Belief(1002, 801), offers, 0.5, 1, 1e-9).value.upper
    assert high >= solve_offers(Belief(1002, 801), offers, 0.5, 1, 1e-9).value.lower


@pytest.mark.parametrize("rows", [3, 50])
def test_many_beliefs_are_decided_like_each_of_them(rows: int) -> None:
    """On the lattice of the prior and beside it, in the table and beyond."""
    policy = Discounted(offers=NINE, discount=0.95).solve(Belief(2, 1), rows=rows)
    accepted = set()
    for n, successes in [(2, [1, 0.7]), (6, [1, 2.5, 4, 4.6, 5, 5.4]), (9, [1, 7, 7.3, 8]), (9.5, [4, 7.25, 8])]:
        together = policy.offer_acceptance(n, successes, NINE)
        for line, s in zip(together.tolist(), successes, strict=True):
            single = [policy.accepts(Belief(n, s), Offer(a, c)) for a, c in zip(NINE.amount, NINE.cost, strict=True)]
            assert line == [float(one) for one in single], (n, s)
            accepted.add(sum(single))
    assert len(accepted) > 4


def test_small_amounts_are_accepted_first() -> None:
    policy = Discounted(offers=THREE, discount=0.99).solve(Belief(2, 1))
    for k in range(0, 300, 17):
        for j in range(k + 1):
            belief = Belief(2 + k, 1 + j)
            accepted = [policy.accepts(belief, Offer(amount, 0.8)) for amount in (0.1, 1, 5)]
            assert accepted == sorted(accepted, reverse=True)
            assert all(accepted) or belief.mean <= 0.8


def test_a_starter_offer_opens_what_the_full_offer_never_starts() -> None:
    assert not Discounted(0.8, 0.95).starts(Belief(2, 1))
    assert Discounted(offers=STARTER, discount=0.95).starts(Belief(2, 1))


def test_a_hundred_offers() -> None:
    generator = np.random.default_rng(5)
    offers = Offers(generator.lognormal(0, 1, 100), generator.uniform(0.6, 0.95, 100), generator.random(100))
    solution = solve_offers(Belief(2, 1), offers, 0.9, 30, 1e-9)
    low, high, _, _ = plain_value(Belief(2, 1), offers, 0.9, 110)
    assert solution.value.lower <= high
    assert solution.value.upper >= low
    assert solution.value.width < 1e-9 * offers.mean_amount


def test_more_rows_and_a_smaller_tolerance_tighten_the_enclosure() -> None:
    short = solve_offers(Belief(2, 1), NINE, 0.99, 10, 1e-9, look_ahead=200)
    long = solve_offers(Belief(2, 1), NINE, 0.99, 10, 1e-9, look_ahead=900)
    assert short.value.lower <= long.value.lower <= long.value.upper <= short.value.upper
    assert long.value.width < short.value.width / 100


def test_every_state_is_decided_at_a_fine_tolerance() -> None:
    policy = Discounted(offers=NINE, discount=0.99).solve(Belief(2, 1), rows=400)
    assert policy.certificate.proved
    assert policy.certificate.width < 1e-9 * NINE.mean_amount
    coarse = Discounted(offers=NINE, discount=0.99).solve(Belief(2, 1), rows=400, look_ahead=20)
    assert coarse.certificate.undecided > 0
    for k in range(400):
        for j in range(0, k + 1, 5):
            belief = Belief(2 + k, 1 + j)
            fine, rough = policy.label_value(belief), coarse.label_value(belief)
            assert rough.lower <= fine.upper
            assert rough.upper >= fine.lower


def test_values_scale_with_the_amounts() -> None:
    dollars = Offers([a * 4000 for a in NINE.amount], NINE.cost)
    small = solve_offers(Belief(2, 1), NINE, 0.99, 5, 1e-9)
    large = solve_offers(Belief(2, 1), dollars, 0.99, 5, 1e-9)
    assert large.value.midpoint == pytest.approx(4000 * small.value.midpoint, rel=1e-11)
    assert large.label_value.midpoint == pytest.approx(4000 * small.label_value.midpoint, rel=1e-11)


def test_nothing_is_learnt_without_a_future() -> None:
    solution = solve_offers(Belief(4, 3), NINE, 0.0, 3, 1e-9)
    assert solution.value.midpoint == pytest.approx(NINE.profit_if_known(0.75))
    assert solution.label_value.upper == 0.0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 29)), min_size=1, max_size=6))
def test_the_envelope_is_the_best_of_the_lines(lines: list[tuple[int, int]]) -> None:
    """Against the maximum in exact fractions, at many rates."""
    best, crossings = upper_envelope([(float(a), c / 30) for a, c in lines])
    assert crossings == sorted(crossings)
    assert len(crossings) == len(best) - 1
    for step in range(1, 60):
        rate = Fraction(step, 60)
        largest = max(a * (rate - Fraction(c, 30)) for a, c in lines)
        active = best[sum(at <= float(rate) for at in crossings)]
        assert active[0] * (float(rate) - active[1]) == pytest.approx(float(largest), abs=1e-12)


def test_the_kinks_are_those_of_the_profit_where_the_rate_is_known() -> None:
    offers = Offers.draw([Offers.menu([1, 3, 2], [0.5, 0.7, 0.69]), Offer(2, 0.5)], share=[0.25, 0.75])
    arrays = prepare(offers)
    for rate in np.linspace(0, 1, 101):
        profit = float(np.sum(arrays.slope * np.maximum(rate - arrays.kink, 0))) * arrays.unit
        assert profit == pytest.approx(offers.profit_if_known(float(rate)), abs=1e-12)


INVALID, CONFLICT, LENGTH, MISSING = "invalid_value", "conflicting_fields", "length_mismatch", "missing"


@pytest.mark.parametrize(
    ("field", "code", "make"),
    [
        ("amount", INVALID, lambda: Offers([0], [0.5])),
        ("amount", INVALID, lambda: Offers([], [])),
        ("cost", INVALID, lambda: Offers([1], [1.0])),
        ("cost", LENGTH, lambda: Offers([1, 2], [0.5])),
        ("share", LENGTH, lambda: Offers([1, 2], [0.5, 0.5], [1.0])),
        ("share", INVALID, lambda: Offers([1, 2], [0.5, 0.5], [0.0, 0.0])),
        ("menus", INVALID, lambda: Offers([1, 2], [0.5, 0.5], menus=[1, 0])),
        ("menus", INVALID, lambda: Offers.menu([1, 2], [0.5, 0.5]).compress(1)),
        ("menus", INVALID, lambda: Offers.draw([NINE])),
        ("gain", INVALID, lambda: Offers.from_gains_and_losses([1, -1], 3)),
        ("funding_rate", INVALID, lambda: Offer.from_loan(100, 0.05, 1, funding_rate=0.06)),
        ("term", INVALID, lambda: Offer.from_loan(100, 0.05, 0)),
        ("cost", CONFLICT, lambda: Discounted(0.8, 0.9, offers=STARTER)),
        ("cost", MISSING, lambda: Discounted(discount=0.9)),
        ("offers", INVALID, lambda: Discounted(offers=3, discount=0.9)),  # type: ignore[arg-type]
        (
            "offer",
            INVALID,
            lambda: Discounted(offers=NINE, discount=0.9).solve(Belief(2, 1), rows=2).decide(Belief(2, 1)),
        ),
        ("weights", LENGTH, lambda: MixtureBelief((Belief(2, 1),), (0.5, 0.5))),
        ("beliefs", INVALID, lambda: MixtureBelief((Belief(2, 2), Belief(2, 1)), (0.5, 0.5))),
        ("doubt", INVALID, lambda: MixtureBelief.doubt(Belief(2, 1), 1.5)),
    ],
)
def test_bad_offers_are_rejected(field: str, code: str, make: Callable[[], object]) -> None:
    with rejected(field, code):
        make()


@pytest.mark.parametrize(
    ("offers", "discount", "blind", "own"),
    [
        (THREE, 0.95, 0.0, 0.0),
        (THREE, 0.99, 2.0926, 2.0926),
        (COSTS, 0.99, 1.0292, 1.1175),
        (NINE, 0.99, 1.7839, 1.9369),
    ],
)
def test_known_values_of_baselines(offers: Offers, discount: float, blind: float, own: float) -> None:
    """Blind: one policy at the mean break-even. Own: one for each break-even. Greedy never starts."""
    objective = Discounted(offers=offers, discount=discount)
    prior = Belief(2, 1)
    same = Discounted(0.8, discount).solve(prior)
    each = PolicyPerCost({cost: Discounted(cost, discount).solve(prior) for cost in set(offers.cost)})
    assert evaluate(same, objective, prior, 1e-6).midpoint == pytest.approx(blind, abs=6e-5)
    assert evaluate(each, objective, prior, 1e-6).midpoint == pytest.approx(own, abs=6e-5)
    assert abs(evaluate(GreedyOffers(), objective, prior, 1e-6).midpoint) < 1e-5


@pytest.mark.parametrize(
    ("discount", "only_full", "clairvoyant"), [(0.95, 0.0, 0.4), (0.99, 1.0292, 2.0), (0.998, 8.1255, 10.0)]
)
def test_known_values_without_a_starter_offer(discount: float, only_full: float, clairvoyant: float) -> None:
    """Only the full offer, and knowing the success rate from the start."""
    prior = Belief(2, 1)
    assert Discounted(0.8, discount).solve(prior, rows=1).value(prior).midpoint == pytest.approx(only_full, abs=6e-5)
    rates = (np.arange(4000) + 0.5) / 4000
    known = np.mean([STARTER.profit_if_known(rate) for rate in rates]) / (1 - discount)
    assert known == pytest.approx(clairvoyant, rel=1e-5)


@pytest.mark.parametrize(
    ("arrivals", "rate", "delay", "ignored"), [(50, 0.5, 0.25, 1.398), (50, 0.1, 1.0, 14.23), (200, 0.1, 1.0, 69.2)]
)
def test_known_values_with_late_labels_if_amounts_are_ignored(
    arrivals: float, rate: float, delay: float, ignored: float
) -> None:
    late = Delayed(0.8, arrivals=arrivals, discount_rate=rate, label_delay=delay)
    value = late.enclose(Belief(2, 1), tolerance=1e-3)[0]
    assert THREE.mean_amount * value.midpoint == pytest.approx(ignored, rel=1e-3)


def test_known_values_of_baselines_far_ahead() -> None:
    """At a discount of 0.998, thousands of rows count."""
    objective, prior = Discounted(offers=THREE, discount=0.998), Belief(2, 1)
    same = Discounted(0.8, 0.998).solve(prior)
    assert evaluate(same, objective, prior, 1e-4).midpoint == pytest.approx(16.5217, abs=1.5e-4)
    own = PolicyPerCost({0.8: same})  # with one break-even it decides the same, so it earns 16.5217 too
    for n in (2, 20, 200, 999):
        s = np.arange(1, n, dtype=np.float64)
        decided = [offer_acceptance_at(policy, float(n), s, THREE) for policy in (own, same)]
        assert np.array_equal(decided[0], decided[1])
    assert abs(evaluate(GreedyOffers(), objective, prior, 1e-4).midpoint) < 1e-5


@pytest.mark.parametrize("offers", [THREE, NINE, STARTER])
def test_the_optimal_policy_earns_its_value(offers: Offers) -> None:
    """The evaluation is another recursion, which does not know how the policy was found."""
    objective = Discounted(offers=offers, discount=0.97)
    policy = objective.solve(Belief(2, 1), rows=50)
    earned, value = evaluate(policy, objective, Belief(2, 1), 1e-8), policy.value(Belief(2, 1))
    assert earned.lower <= value.upper
    assert earned.upper >= value.lower
    assert earned.width < 1e-6


def plain_delayed(
    prior: Belief, offers: Offers, arrivals: float, delay: float, rate: float, cap: int, last: int
) -> tuple[float, float]:
    """Bounds of the value with late labels and nothing pending, by a plain recursion with bisection for each root."""
    menus = [[(o.amount, o.cost) for o in offers.offers_of(m)] for m in range(offers.menu_count)]
    mu = 1.0 / delay

    def root(p: float, pending: float, more: float, after: float) -> float:
        """V of (r + mμ)V = λ Σ w (g + V(m+1) − V)⁺ + mμ R, by bisection: the right side falls in V."""
        gains = [max(a * (p - c) for a, c in menu) for menu in menus]
        low, high = -1e4, 1e4
        for _ in range(90):
            v = (low + high) / 2
            right = arrivals * sum(w * max(g + more - v, 0.0) for g, w in zip(gains, offers.share, strict=True))
            low, high = (v, high) if right + pending * after > (rate + pending) * v else (low, v)
        return (low + high) / 2

    most = (
        arrivals
        / rate
        * sum(w * max(a * (1 - c) for a, c in menu) for menu, w in zip(menus, offers.share, strict=True))
    )
    sides = []
    for upper in (False, True):
        row = [[most if upper else 0.0] * (cap + 1) for _ in range(last + 1)]
        for k in range(last - 1, -1, -1):
            fresh = []
            for j in range(k + 1):
                p = (prior.s + j) / (prior.n + k)
                value = [0.0] * (cap + 1)
                # Beyond the cap: nothing better than V ≤ most, and nothing worse than the label thrown away.
                more = most if upper else -math.inf
                for m in range(cap, -1, -1):
                    after = p * row[j + 1][m - 1] + (1 - p) * row[j][m - 1] if m else 0.0
                    if more == -math.inf:
                        known = arrivals * offers.profit_if_known(p)
                        value[m] = (known + m * mu * after) / (rate + m * mu)
                    else:
                        value[m] = root(p, m * mu, more, after)
                    more = value[m]
                fresh.append(value)
            row = fresh
        sides.append(row[0][0])
    return sides[0], sides[1]


@pytest.mark.parametrize(
    ("offers", "arrivals", "delay", "rate", "cap", "last"),
    [
        (Offers((0.05, 1.0, 5.0), (0.6, 0.6, 0.7)), 3.0, 0.5, 0.6, 12, 28),
        (Offers((1.0, 2.0), (0.6, 0.3), (0.3, 0.7)), 3.0, 1.0, 1.5, 14, 20),
        (Offers.menu((0.1, 1.0), (0.6, 0.6)), 4.0, 0.3, 1.0, 12, 24),
    ],
)
def test_enclosure_with_late_labels(
    offers: Offers, arrivals: float, delay: float, rate: float, cap: int, last: int
) -> None:
    low, high = plain_delayed(Belief(2, 1), offers, arrivals, delay, rate, cap, last)
    value = solve_delayed_offers(Belief(2, 1), offers, arrivals, delay, rate, 1e-7, 60.0).value
    assert value.lower <= high + 1e-9
    assert value.upper >= low - 1e-9
    assert value.lower > 0.001
    assert value.width < 1e-4
    assert high - low < 0.1


@pytest.mark.parametrize(
    ("arrivals", "rate", "delay", "low", "high", "limits"),
    [
        (50, 0.5, 0.25, 2.64949, 2.64950, [11, 0, 0]),
        (50, 0.1, 1.0, 17.362, 17.379, [23, 0, 0]),
        (200, 0.1, 1.0, 75.53, 75.67, [44, 0, 0]),
    ],
)
def test_known_values_with_late_labels(
    arrivals: float, rate: float, delay: float, low: float, high: float, limits: list[int]
) -> None:
    objective = Delayed(offers=THREE, arrivals=arrivals, discount_rate=rate, label_delay=delay)
    policy = objective.solve(Belief(2, 1), tolerance=1e-6 if arrivals < 100 else 1e-4, seconds=60)
    value = policy.value(Belief(2, 1))
    assert value.lower <= high
    assert value.upper >= low
    assert value.width < 0.02
    assert [policy.limit(Belief(2, 1), Offer(amount, 0.8)) for amount in (0.1, 1, 5)] == limits


def test_a_single_offer_with_late_labels_is_the_problem_with_one_cost() -> None:
    single = Delayed(0.8, arrivals=50, discount_rate=0.5, label_delay=0.25)
    several = Delayed(offers=Offers((10.0,), (0.8,)), arrivals=50, discount_rate=0.5, label_delay=0.25)
    one, other = single.solve(Belief(2, 1)), several.solve(Belief(2, 1))
    assert other.value(Belief(2, 1)).midpoint == pytest.approx(10 * one.value(Belief(2, 1)).midpoint, abs=2e-3)
    for belief in (Belief(2, 1), Belief(6, 4), Belief(12, 9), Belief(20, 17)):
        assert other.limit(belief) == one.limit(belief)


def test_features_that_need_one_break_even_say_so() -> None:
    objective = Discounted(offers=NINE, discount=0.9)
    with rejected("objective", "unsupported_offers"):
        objective.enclose(Belief(2, 1), 1e-6)


@pytest.mark.parametrize(
    ("prior", "amount", "cost", "gamma"),
    [
        (Belief(3, 1.5), [1, 2], [0.8, 0.75], 0.95),
        (Belief(2, 1.2), [0.1, 0.5, 2], [0.8, 0.5, 0.8], 0.95),
        (Belief(4, 3.2), [0.5, 1, 2, 5], [0.8, 0.7, 0.7, 0.5], 0.9),
    ],
)
def test_menus_whose_best_offer_changes_at_a_mean_of_the_lattice(
    prior: Belief, amount: list[float], cost: list[float], gamma: float
) -> None:
    """With one menu V = max(0, g + γM), which is easy to compute in extended precision."""
    value: Any = None
    a, c = (np.array(each, dtype=np.longdouble)[:, None] for each in (amount, cost))
    for k in range(700, -1, -1):
        mean = (prior.s + np.arange(k + 1, dtype=np.longdouble)) / (prior.n + k)
        gain = np.max(a * (mean - c), axis=0)
        if value is None:
            value = np.maximum(gain, 0) / (1 - np.longdouble(gamma))
            continue
        value = np.maximum(0, gain + np.longdouble(gamma) * (mean * value[1:] + (1 - mean) * value[:-1]))
    solved = solve_offers(prior, Offers.menu(amount, cost), gamma, 1, 1e-9)
    assert solved.value.lower - 1e-12 <= float(value[0]) <= solved.value.upper + 1e-12
    assert solved.value.width < 1e-8


def test_a_mixture_shows_the_precision_that_its_means_allow() -> None:
    prior = MixtureBelief((Belief(4, 3), Belief(1e5, 7e4)), (0.9, 0.1))
    solutions = [solve_offers(prior, COSTS, 0.9, 3, tolerance) for tolerance in (1e-12, 1e-15)]
    fine = solve_offers(prior, COSTS, 0.9, 3, 1e-12, look_ahead=600)
    assert solutions[0].look_ahead == solutions[1].look_ahead < 600  # no attempt beyond what rounding allows
    assert solutions[0].width > 1e-10
    assert solutions[0].value.width < 10 * fine.value.width
    assert max(solutions[0].value.lower, fine.value.lower) <= min(solutions[0].value.upper, fine.value.upper)
