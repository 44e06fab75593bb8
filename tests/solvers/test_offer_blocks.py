"""Estimates of late labels with offers and doubtful priors: against certified solves and plain computations."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import betabinom

from lenience import Belief, Delayed, MixtureBelief, Offer, Offers
from lenience.policies import EstimatedOfferExposurePolicy, OfferExposurePolicy
from lenience.policies.beliefs.estimated_labels import EstimatedLabels
from lenience.solvers.offers import delayed_blocks
from lenience.solvers.offers.delayed import solve_delayed_offers
from lenience.solvers.offers.delayed_blocks import (
    best_profit,
    expected_after,
    log_gamma,
    solve_offer_blocks,
    write_grid,
    write_weights,
)

FLAT = Belief(2, 1)
AMOUNTS = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
LOANS = Offers(amount=[500, 5000], cost=[0.8, 0.8], currency="$")


@cache
def estimated(arrivals: int = 20_000, doubt: float = 0.0) -> EstimatedOfferExposurePolicy:
    prior = MixtureBelief.doubt(Belief(4, 2.8), doubt) if doubt else FLAT
    policy: EstimatedOfferExposurePolicy = Delayed(
        offers=LOANS, arrivals=arrivals, discount_rate=0.1, label_delay=1
    ).solve(prior)
    return policy


@pytest.mark.parametrize(
    ("arrivals", "rate", "delay", "least", "most", "limits"),
    [
        (50, 0.1, 1.0, 17.362, 17.379, [23, 0, 0]),
        (50, 0.5, 0.25, 2.64949, 2.64950, [11, 0, 0]),
        (200, 0.1, 1.0, 75.53, 75.67, [44, 0, 0]),
    ],
)
def test_values_and_limits_agree_with_certified_ones(
    arrivals: int, rate: float, delay: float, least: float, most: float, limits: list[int]
) -> None:
    late = Delayed(offers=AMOUNTS, arrivals=arrivals, discount_rate=rate, label_delay=delay)
    policy = EstimatedOfferExposurePolicy.solve(late, FLAT)
    stated = policy.value(FLAT)
    assert stated.lower <= most
    assert least <= stated.upper
    assert policy.certificate.error < 3e-3 * policy.certificate.estimate
    assert [policy.limit(FLAT, Offer(amount, 0.8)) for amount in AMOUNTS.amount] == pytest.approx(limits, abs=1)


def test_one_offer_is_the_problem_with_one_break_even() -> None:
    values = [solve_offer_blocks(FLAT, Offers([a], [0.8]), 1000.0, 1.0, 0.1).value / a for a in (1, 7)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert 187.0540 * (1 - 5e-5) <= values[0] <= 187.0596 * (1 + 5e-5)


def random_problem(seed: int) -> tuple[Belief | MixtureBelief, Offers, float, float, float]:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 7))
    amount = np.exp(random.normal(0, random.uniform(0, 1.8), count)).tolist()
    base = random.uniform(0.3, 0.9)
    cost = np.clip(base + random.normal(0, random.choice([0, 0.03, 0.1]), count), 0.05, 0.97).tolist()
    offers = Offers.menu(amount, cost) if count > 1 and seed % 3 == 0 else Offers(amount, cost)
    n = float(np.exp(random.uniform(0.0, 5.0)))
    mean = float(np.clip(base + random.normal() * math.sqrt(base * (1 - base) / (n + 1)), 0.02, 0.98))
    prior: Belief | MixtureBelief = Belief(n, n * mean)
    if seed % 2:
        prior = MixtureBelief.doubt(Belief(n, n * mean), float(random.uniform(0.02, 0.5)))
    rate = float(random.uniform(0.1, 1.0))
    arrivals = rate * float(np.exp(random.uniform(1.5, 3.3)))
    return prior, offers, arrivals, float(np.exp(random.uniform(-3, 2))) / arrivals, rate


@pytest.mark.parametrize("seed", range(10))
def test_the_stated_error_holds_in_random_problems(seed: int) -> None:
    """At most 1 in 100 labels may be outside of its stated error, and none by more than 0.5% of the mean amount."""
    prior, offers, arrivals, delay, rate = random_problem(seed)
    proved = solve_delayed_offers(prior, offers, arrivals, delay, rate, 1e-5, 20.0, rows=9)
    labels, blocks = EstimatedLabels.solve(prior, offers, arrivals, delay, rate)
    assert blocks.value - blocks.error <= proved.value.upper
    assert proved.value.lower <= blocks.value + blocks.error
    scale = arrivals / rate * offers.mean_amount * math.sqrt(prior.variance)
    assert blocks.error < 2e-4 * blocks.value + 1.2e-3 * scale
    outside = compared = 0
    for k in (0, 1, 3, 8):
        first, begin, count = proved.rows[k].tolist()
        for position in range(count):
            for pending in (0, 1, 3, 6):
                if pending >= proved.table.shape[2]:
                    continue
                low, high = (max(float(side[begin + position, pending]), 0.0) for side in proved.table)
                stated = labels.bounds(first + position, k - first - position, pending)
                far = max(low - stated.upper, stated.lower - high, 0.0)
                assert far <= 0.005 * offers.mean_amount
                outside += far > 0.0
                compared += 1
    assert outside <= 0.01 * compared + 1


def test_the_stated_error_covers_what_two_solves_have_in_common() -> None:
    """Nothing is worth accepting here, but both solves let a little value spill over from the kinks."""
    prior = Belief(148.73537851300202, 121.66525972700381)
    amount, cost = [0.6934, 0.9509, 1.1357, 0.6894], [0.83764, 0.81936, 0.84873, 0.8804]
    offers = Offers(amount, cost, share=[0.2747, 0.2203, 0.2964, 0.2086])
    proved = solve_delayed_offers(prior, offers, 10.867, 0.7385, 0.816, 1e-5, 20.0)
    solution = solve_offer_blocks(prior, offers, 10.867, 0.7385, 0.816)
    assert proved.value.upper < 1e-9
    assert 0.0 <= solution.value <= solution.error


def test_the_weights_of_a_mixture_follow_from_the_state() -> None:
    prior = MixtureBelief((Belief(4, 2.8), Belief(2, 1), Belief(300, 240)), (0.5, 0.3, 0.2))
    a, b = 1.0, 1.0
    lines = []
    for belief, weight in zip(prior.beliefs, prior.weights, strict=True):
        log_beta = math.lgamma(belief.s) + math.lgamma(belief.n - belief.s) - math.lgamma(belief.n)
        lines.append([belief.s - a, belief.n - belief.s - b, math.log(weight) - log_beta])
    mixture, weights = np.array([*lines, [a, b, 0.0]]), np.empty(4)
    for k, j in ((0, 0), (1, 1), (7, 2), (400, 330), (5000, 4000)):
        mean, deviation = write_weights(float(k), (a + j) / (a + b + k), mixture, weights)
        after = prior.after(k, j)
        assert mean == pytest.approx(after.mean, rel=1e-10)
        assert deviation == pytest.approx(math.sqrt(after.variance), rel=1e-6)
        assert weights[:3].tolist() == pytest.approx(list(after.weights), rel=1e-9, abs=1e-12)
    assert [log_gamma(x) for x in (0.3, 11.9, 12.1, 1e5)] == pytest.approx(
        [math.lgamma(x) for x in (0.3, 11.9, 12.1, 1e5)], rel=1e-13
    )


def test_the_grid_covers_every_kink_that_can_be_reached() -> None:
    mixture = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    kink = np.array([0.3, 0.7, 0.72])
    nodes, intervals = np.empty(101), np.zeros((3, 4))
    found = write_grid(10_000.0, mixture, kink, 6.0, 0.0, 1.0, nodes, intervals)
    assert found == 2  # the upper two overlap
    assert np.all(np.diff(nodes) > 0)
    assert intervals[:found, 3].sum() == 101
    for at in kink:
        width = 6.0 * math.sqrt(at * (1 - at) / 10_002)
        assert nodes[np.abs(nodes - at) < width].size >= 10
    assert not np.any((nodes > 0.4) & (nodes < 0.6))
    assert write_grid(10_000.0, mixture, kink, 6.0, 0.65, 0.8, nodes, intervals) == 1
    assert nodes[0] >= 0.65


def test_profit_where_the_rate_is_known() -> None:
    offers = Offers(amount=[1, 3], cost=[0.5, 0.8])
    kink, slope = np.array([0.5, 0.8]), np.array([0.5, 1.5])
    for rate in (0.2, 0.5, 0.6, 0.9):
        assert best_profit(rate, kink, slope) == pytest.approx(offers.profit_if_known(rate), abs=1e-12)


def test_many_offers_are_compressed_and_the_error_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    many = Offers(random.uniform(100, 1000, 40).tolist(), random.uniform(0.7, 0.85, 40).tolist())
    monkeypatch.setattr(delayed_blocks, "MOST_MENUS", 12)
    compressed = solve_offer_blocks(FLAT, many, 30.0, 0.1, 0.2)
    monkeypatch.undo()
    exact = solve_offer_blocks(FLAT, many, 30.0, 0.1, 0.2)
    lost = exact.value - compressed.value
    assert lost + exact.error > 0.0
    assert abs(lost) < compressed.error < 0.05 * compressed.value
    assert exact.error < 0.3 * compressed.error


@pytest.mark.parametrize("prior", [Belief(3, 0), Belief(3, 3)])
def test_a_certain_prior_needs_no_solve(prior: Belief) -> None:
    solution = solve_offer_blocks(prior, LOANS, 100.0, 1.0, 0.1)
    assert solution.value == pytest.approx(1000.0 * LOANS.profit_if_known(prior.mean))
    assert np.all(solution.labels == 0.0)


def test_problems_of_any_size_are_answered() -> None:
    nine = Offers([0.2, 1, 4] * 3, [0.7] * 3 + [0.8] * 3 + [0.9] * 3)
    for arrivals, delay, prior in (
        (1e6, 30.0, FLAT),
        (1e6, 0.01, MixtureBelief.doubt(Belief(1e6, 0.8e6), 0.1)),
        (5.0, 20.0, Belief(1e6, 0.7999e6)),
    ):
        policy = Delayed(offers=nine, arrivals=arrivals, discount_rate=0.1, label_delay=delay).solve(
            prior, seconds=1e-9
        )
        assert isinstance(policy, EstimatedOfferExposurePolicy)
        volume = arrivals / 0.1
        assert policy.certificate.estimate >= volume * nine.profit_if_known(prior.mean) * (1 - 1e-12)
        scale = volume * nine.mean_amount * math.sqrt(prior.variance)
        assert 0 < policy.certificate.error < 1e-3 * policy.certificate.estimate + 1e-3 * scale
        sizes = [policy.limit(prior, Offer(amount, 0.9)) or 0 for amount in (0.2, 1, 4)]
        assert sizes == sorted(sizes, reverse=True)


def test_a_proof_is_returned_where_it_fits_the_time() -> None:
    late = Delayed(offers=AMOUNTS, arrivals=20, discount_rate=0.5, label_delay=0.25)
    assert isinstance(late.solve(FLAT, tolerance=1e-4), OfferExposurePolicy)
    rough = late.solve(FLAT, tolerance=1e-4, seconds=1e-9)
    assert isinstance(rough, EstimatedOfferExposurePolicy)
    proved = late.solve(FLAT, tolerance=1e-4)
    assert rough.value(FLAT).lower <= proved.value(FLAT).upper
    for pending in (0, 2, 7):
        assert rough.value(FLAT, pending).midpoint == pytest.approx(proved.value(FLAT, pending).midpoint, rel=2e-3)
    # Beliefs other than the prior have their own, longer time.
    patient = late.solve(FLAT, tolerance=1e-3, seconds=0.02)
    assert isinstance(patient, OfferExposurePolicy)
    assert patient.value(Belief(1, 0.7)).lower > 0


def test_decisions_limits_and_explanations_go_together() -> None:
    policy = estimated()
    belief = Belief(10, 7)
    small, large = Offer(500, 0.8), Offer(1000, 0.8)
    limits = [policy.limit(belief, offer) for offer in (small, large)]
    assert limits[0] is not None
    assert limits[1] is not None
    assert limits[0] > limits[1] > 0
    for offer, limit in ((small, limits[0]), (large, limits[1])):
        assert policy.accepts(belief, offer, limit - 1)
        assert not policy.accepts(belief, offer, limit)
        assert not policy.proved(belief, offer)
        decision = policy.decide(belief, offer, limit)
        assert not decision.proved
        assert decision.label_value.lower < -decision.expected_profit < decision.label_value.upper
    assert policy.limit(Belief(10, 9), large) is None
    assert policy.proved(Belief(10, 9), large)
    assert policy.decide(Belief(10, 9), large, 10**9).proved
    text = policy.explain(belief, small, pending=limits[0] + 1)
    assert text.startswith("Reject $500: the expected success rate is 70%")
    assert text.endswith(f"The limit is {limits[0]} pending outcomes.")
    grid = policy.offer_acceptance(10, [7, 9], LOANS, pending=[limits[1], 10**8])
    assert grid.tolist() == [[1.0, 0.0], [1.0, 1.0]]  # the first has more pending than the larger offers may have
    assert policy.labels_at(belief).worth(10**8) == 0.0
    assert policy.label_value(belief, 10**8).lower == 0.0


def test_beliefs_that_follow_from_the_prior_need_no_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, doubted = estimated(), estimated(doubt=0.2)
    start = doubted.prior
    fresh = EstimatedOfferExposurePolicy.solve(doubted.objective, start.after(9, 6))
    assert fresh.labels_at(start.after(9, 6)).worth(5) == pytest.approx(
        doubted.labels_at(start.after(9, 6)).worth(5), rel=0.03
    )
    asked: list[Belief | MixtureBelief] = []

    def solve(objective: object, belief: Belief | MixtureBelief) -> EstimatedOfferExposurePolicy:
        asked.append(belief)
        return policy

    monkeypatch.setattr("lenience.policies.beliefs.estimated_offer_exposure._solved", solve)
    policy.labels_at(Belief(2.5, 1.3)).worth(0)
    policy.labels_at(Belief(1e5, 0.79e5)).worth(0)
    doubted.labels_at(start).worth(0)
    doubted.labels_at(start.after(9, 6)).worth(3)
    doubted.labels_at(start.after(9.5, 6.25)).worth(3)
    assert asked == []
    others: list[Belief | MixtureBelief] = [
        Belief(1, 0.5),
        MixtureBelief((start.beliefs[0], FLAT), (0.5, 0.5)),
        Belief(12, 9),
    ]
    policy.labels_at(others[0]).worth(0)
    doubted.labels_at(others[1]).worth(0)
    doubted.labels_at(others[2]).worth(0)
    assert asked == others


def test_a_policy_is_restored_from_its_json() -> None:
    policy = estimated(doubt=0.2)
    again = EstimatedOfferExposurePolicy.from_json(policy.to_json())
    for k, j in ((0, 0), (5, 3), (1000, 799)):
        belief = policy.prior.after(k, j)
        for pending in (0, 10, 300):
            assert again.label_value(belief, pending) == policy.label_value(belief, pending)
    assert again.value(policy.prior, 3) == policy.value(policy.prior, 3)
    assert repr(again) == repr(policy)


def simulated_value(labels: EstimatedLabels, offers: Offers, arrivals: float, rate: float) -> tuple[float, float]:
    """Play the estimated decisions against draws from the flat prior; return the mean and about its standard error.

    The success rates are stratified, so neighbouring results differ by chance alone.
    """
    random = np.random.default_rng(20261117)
    amounts, costs = np.array(offers.amount), np.array(offers.cost)
    results = []
    for draw in range(200):
        p = (draw + random.random()) / 200
        clock = total = 0.0
        successes = failures = 0
        due: list[float] = []
        worths = labels.worths(0, 0)
        while clock < 5.0 / rate:
            clock += random.exponential(1.0 / arrivals)
            ripe = [at for at in due if at <= clock]
            if ripe:
                due = [at for at in due if at > clock]
                good = int(random.binomial(len(ripe), p))
                successes, failures = successes + good, failures + len(ripe) - good
                worths = labels.worths(successes, failures)
            one = int(random.integers(amounts.size))
            mean = (1 + successes) / (2 + successes + failures)
            profit = amounts[one] * (mean - costs[one])
            if profit + float(np.interp(len(due), labels.counts, worths, right=0.0)) > 0.0:
                total += math.exp(-rate * clock) * amounts[one] * (p - costs[one])
                due.append(clock + random.exponential(1.0))
        results.append(total)
    return float(np.mean(results)), float(np.std(np.diff(results)) / math.sqrt(2 * len(results)))


def test_the_estimated_decisions_earn_the_estimated_value() -> None:
    arrivals, rate = 30.0, 0.5
    labels, blocks = EstimatedLabels.solve(FLAT, AMOUNTS, arrivals, 1.0, rate)
    mean, error = simulated_value(labels, AMOUNTS, arrivals, rate)
    # After five mean discount times 0.7% of the value is left.
    assert abs(mean - blocks.value * (1 - math.exp(-5.0))) < 3.0 * error + 0.01 * blocks.value
    assert error < 0.15 * blocks.value


def test_a_block_is_predicted_by_each_belief_of_the_mixture() -> None:
    """E V after a block, against the sum over every number of successes."""
    beliefs = (Belief(40, 30), Belief(20, 8))
    prior = MixtureBelief(beliefs, (0.5, 0.5))
    a, b, block = 8.0, 10.0, 2
    lines = []
    for one in beliefs:
        log_beta = math.lgamma(one.s) + math.lgamma(one.n - one.s) - math.lgamma(one.n)
        lines.append([one.s - a, one.n - one.s - b, math.log(0.5) - log_beta])
    mixture, weights = np.array([*lines, [a, b, 0.0]]), np.empty(3)
    places = np.linspace(1e-4, 1 - 1e-4, 2001)
    value = np.array([[write_weights(float(block), place, mixture, weights)[0] ** 2 for place in places]])
    intervals, expected = np.array([[places[0], places[1] - places[0], 0.0, 2001.0]]), np.empty((1, 2001))
    expected_after(
        value, places, 0.0, float(block), intervals, 1, mixture, np.array([0.5]), np.array([1.0]), 1.0, expected
    )
    exact = sum(
        weight * betabinom.pmf(x, block, one.s, one.n - one.s) * prior.after(block, x).mean ** 2
        for one, weight in zip(prior.beliefs, prior.weights, strict=True)
        for x in range(block + 1)
    )
    at_prior = float(np.interp(a / (a + b), places, expected[0]))
    assert at_prior == pytest.approx(exact, rel=1e-4)
    assert exact > 1.01 * prior.mean**2
