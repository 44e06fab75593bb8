"""Offers over a known number of arrivals: the certified solver against a plain triple loop."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lenience import Belief, Bounds, Discounted, FiniteHorizon, MixtureBelief, Offer, Offers
from lenience.policies.beliefs.horizon_offers import HorizonOfferPolicy
from lenience.solvers.offers.horizon import HorizonTables
from rejections import rejected

THREE = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
NINE = Offers(amount=[a for a in (0.2, 1, 4) for _ in range(3)], cost=[0.7, 0.8, 0.9] * 3)
STARTER = Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8])
DRAWN = Offers.draw([STARTER, Offer(2, 0.6), Offers.menu([1, 3], [0.3, 0.9])], share=[0.5, 0.2, 0.3])

State = tuple[int, int, int]


def plain_horizon(
    prior: Belief | MixtureBelief, offers: Offers, discount: float, horizon: int
) -> tuple[dict[State, np.longdouble], dict[State, np.longdouble]]:
    """The value and the value of a label at (arrivals left, labels, successes), by a plain triple loop.

    The loop is the textbook recursion in extended precision: reject, or make the best offer of the menu and learn.
    """
    menus = [[(one.amount, one.cost) for one in offers.offers_of(menu)] for menu in range(offers.menu_count)]
    gamma = np.longdouble(discount)
    means: dict[tuple[int, int], np.longdouble] = {}
    for k in range(horizon + 1):
        for j in range(k + 1):
            means[k, j] = _mean(prior, k, j)
    value: dict[State, np.longdouble] = {(0, k, j): np.longdouble(0) for k, j in means}
    label: dict[State, np.longdouble] = {}
    for left in range(1, horizon + 1):
        for k in range(horizon - left + 1):
            for j in range(k + 1):
                p = means[k, j]
                stay = gamma * value[left - 1, k, j]
                learn = gamma * (p * value[left - 1, k + 1, j + 1] + (1 - p) * value[left - 1, k + 1, j])
                label[left, k, j] = learn - stay
                total = np.longdouble(0)
                for share, menu in zip(offers.share, menus, strict=True):
                    total += share * max(stay, max(a * (p - np.longdouble(c)) for a, c in menu) + learn)
                value[left, k, j] = total
    return value, label


def _mean(prior: Belief | MixtureBelief, k: int, j: int) -> np.longdouble:
    """The posterior mean, with the likelihoods of the components multiplied out one outcome after the other."""
    mixture = MixtureBelief.of(prior)
    total = mean = np.longdouble(0)
    for belief, weight in zip(mixture.beliefs, mixture.weights, strict=True):
        likelihood = np.longdouble(weight)
        n, s = np.longdouble(belief.n), np.longdouble(belief.s)
        for i in range(k):
            successes = s + min(i, j)
            likelihood *= (successes if i < j else n + i - successes) / (n + i)
        total += likelihood
        mean += likelihood * (s + j) / (n + k)
    return mean / total


def contains(bounds: Bounds, number: np.longdouble) -> bool:
    """Whether bounds contain a number that extended precision computed."""
    slack = 1e-17 * (1 + abs(number))
    return bool(bounds.lower <= number + slack and number - slack <= bounds.upper)


offer_lists = st.lists(
    st.tuples(st.floats(0.05, 20.0), st.floats(0.05, 0.95), st.floats(0.05, 1.0)), min_size=1, max_size=4
)
beliefs = st.tuples(st.floats(0.3, 12.0), st.floats(0.05, 0.95)).map(lambda pair: Belief(pair[0], pair[0] * pair[1]))


@settings(max_examples=40, deadline=None)
@given(offer_lists, st.booleans(), beliefs, st.floats(0.5, 1.0), st.integers(1, 14))
def test_every_state_of_random_problems(
    rows: list[tuple[float, float, float]], menus: bool, prior: Belief, discount: float, horizon: int
) -> None:
    amounts, costs, shares = zip(*rows, strict=True)
    offers = Offers(amounts, costs, shares)
    if menus and len(rows) > 1:
        of = [position // 2 for position in range(len(rows))]
        offers = Offers(amounts, costs, shares[: of[-1] + 1], of)
    value, label = plain_horizon(prior, offers, discount, horizon)
    tables = HorizonTables(prior, offers, discount, horizon, 1e-9)
    assert contains(tables.value, value[horizon, 0, 0])
    assert contains(tables.label_value, label[horizon, 0, 0])
    assert tables.value.width <= 2e-9 * offers.mean_amount
    for (left, k, j), worth in label.items():
        bounds = tables.label_at(k, j, left)
        assert contains(bounds, worth), (left, k, j)
        if tables.band.position(k, j) is not None:
            assert bounds.width <= 4e-9 * offers.mean_amount


@pytest.mark.parametrize("offers", [THREE, NINE, DRAWN])
@pytest.mark.parametrize("discount", [1.0, 0.95])
def test_long_horizons(offers: Offers, discount: float) -> None:
    """Bands are narrower than the lattice here, and planes are recomputed from those that are kept."""
    horizon = 70
    value, label = plain_horizon(Belief(2, 1), offers, discount, horizon)
    tables = HorizonTables(Belief(2, 1), offers, discount, horizon, 1e-6)
    assert int(tables.band.ends[-1]) < horizon * (horizon + 1) / 2
    assert contains(tables.value, value[horizon, 0, 0])
    for state, worth in label.items():
        left, k, j = state
        assert contains(tables.label_at(k, j, left), worth), state
    policy = FiniteHorizon(offers=offers, horizon=horizon, discount=discount).solve(Belief(2, 1))
    for (left, k, j), worth in list(label.items())[::97]:
        for menu in range(offers.menu_count):
            decision = policy.decide(Belief(2 + k, 1 + j), offers.offers_of(menu), left)
            if abs(decision.expected_profit + float(worth)) > 1e-8:
                assert decision.proved
                assert decision.accepted == (decision.expected_profit + float(worth) > 0)


@settings(max_examples=12, deadline=None)
@given(beliefs, beliefs, st.floats(0.05, 0.95), st.integers(2, 10))
def test_mixtures(first: Belief, second: Belief, doubt: float, horizon: int) -> None:
    prior = MixtureBelief((first, second), (1 - doubt, doubt))
    value, label = plain_horizon(prior, NINE, 1.0, horizon)
    policy = FiniteHorizon(offers=NINE, horizon=horizon).solve(prior)
    assert contains(policy.value(prior), value[horizon, 0, 0])
    for (left, k, j), worth in label.items():
        assert contains(policy.label_value(prior.after(k, j), left), worth)


@pytest.mark.parametrize(("cost", "discount", "prior"), [(0.8, 1.0, Belief(2, 1)), (0.35, 0.97, Belief(0.7, 0.5))])
def test_a_single_offer_is_the_problem_with_one_cost(cost: float, discount: float, prior: Belief) -> None:
    """With one offer it is never optimal to reject and accept later, so both recursions must agree."""
    horizon = 120
    single = FiniteHorizon(cost, horizon, discount).solve(prior)
    several = FiniteHorizon(offers=Offers([250.0], [cost]), horizon=horizon, discount=discount).solve(prior)
    assert several.value(prior).midpoint == pytest.approx(250 * single.value(prior).midpoint, abs=1e-6)
    for k in range(horizon):
        for j in range(0, k + 1, 3):
            belief = Belief(prior.n + k, prior.s + j)
            assert several.accepts(belief) == single.accepts(belief), belief
    later = Belief(prior.n + 9, prior.s + 7)
    assert several.value(later).midpoint == pytest.approx(250 * single.value(later).midpoint, abs=1e-6)
    mixture = FiniteHorizon(cost, horizon, discount).solve(MixtureBelief((prior, prior), (0.4, 0.6)))
    assert mixture.value(mixture.prior).midpoint == pytest.approx(single.value(prior).midpoint, abs=1e-7)


def test_a_long_horizon_is_close_to_the_discounted_problem() -> None:
    horizon = FiniteHorizon(offers=NINE, horizon=900, discount=0.97).solve(Belief(2, 1))
    endless = Discounted(offers=NINE, discount=0.97).solve(Belief(2, 1))
    for belief in (Belief(2, 1), Belief(9, 7), Belief(30, 22)):
        assert horizon.label_value(belief, 850).midpoint == pytest.approx(
            endless.label_value(belief).midpoint, abs=1e-8
        )
    assert horizon.value(Belief(2, 1)).midpoint == pytest.approx(endless.value(Belief(2, 1)).midpoint, abs=1e-8)


def test_rejecting_is_not_final() -> None:
    """A large offer is rejected, and a small one is accepted at the same belief and time."""
    policy = FiniteHorizon(offers=THREE, horizon=60).solve(Belief(2, 1))
    assert policy.accepts(Belief(2, 1), Offer(0.1, 0.8))
    assert not policy.accepts(Belief(2, 1), Offer(5, 0.8))
    assert policy.share_accepted(Belief(2, 1)) == pytest.approx(1 / 3)
    assert policy.label_value(Belief(2, 1), 1) == Bounds(0.0, 0.0)
    assert policy.certificate.undecided == 0
    worths = [policy.label_value(Belief(2, 1), left).midpoint for left in range(2, 61)]
    assert worths == sorted(worths)


def test_beliefs_off_the_lattice_and_more_arrivals() -> None:
    policy = FiniteHorizon(offers=STARTER, horizon=30).solve(Belief(2, 1))
    odd = Belief(3.5, 2.25)
    _, label = plain_horizon(odd, STARTER, 1.0, 20)
    assert contains(policy.label_value(odd, 20), label[20, 0, 0])
    _, label = plain_horizon(Belief(6, 4), STARTER, 1.0, 28)  # more arrivals than are left on the lattice
    assert contains(policy.label_value(Belief(6, 4), 28), label[28, 0, 0])
    with rejected("left", "missing"):
        policy.accepts(odd)
    with rejected("left", "invalid_value"):
        policy.accepts(Belief(2, 1), left=31)
    rows = policy.offer_acceptance(6, [4, 3.5], STARTER, 28)
    assert rows.tolist() == [
        [float(policy.accepts(Belief(6, s), one, 28)) for one in STARTER.offers_of(0)] for s in (4, 3.5)
    ]


def test_rows_and_planes_of_labels_are_those_of_each_state() -> None:
    tables = HorizonTables(Belief(2, 1), DRAWN, 0.97, 40, 1e-6)
    outside = 0
    for left in (1, 2, 17, 39, 40):
        plane = tables.label_plane(left)
        rows = 40 - left + 1
        assert plane.size == rows * (rows + 1) // 2
        for k in range(rows):
            lower = [tables.label_at(k, j, left).lower for j in range(k + 1)]
            assert plane[k * (k + 1) // 2 : (k + 1) * (k + 2) // 2].tolist() == lower
            outside += sum(tables.band.position(k, j) is None for j in range(k + 1))
    assert outside > 10


@pytest.mark.parametrize("left", [None, 5])
def test_many_beliefs_are_decided_like_each_of_them(left: int | None) -> None:
    policy = FiniteHorizon(offers=DRAWN, horizon=30).solve(Belief(2, 1))
    accepted = set()
    cases: list[tuple[int, list[float]]] = [(2, [1, 0.7]), (6, [1, 2.5, 4, 5]), (9, [1, 3, 7]), (25, [4, 12, 17, 20])]
    for n, all_successes in cases:
        # Beside the lattice it must be said how many arrivals are left.
        successes = [s for s in all_successes if left is not None or s == round(s)]
        together = policy.offer_acceptance(n, successes, DRAWN, left)
        for line, s in zip(together.tolist(), successes, strict=True):
            pairs = zip(DRAWN.amount, DRAWN.cost, strict=True)
            single = [policy.accepts(Belief(n, s), Offer(a, c), left) for a, c in pairs]
            assert line == [float(one) for one in single], (n, s)
            accepted.add(sum(single))
    assert len(accepted) > 2


def test_json() -> None:
    policy = FiniteHorizon(offers=Offers([500, 5000], [0.8, 0.7], currency="$"), horizon=40).solve(Belief(2, 1))
    again = HorizonOfferPolicy.from_json(policy.to_json())
    assert again.to_json() == policy.to_json()
    assert again.label_value(Belief(5, 4), 20) == policy.label_value(Belief(5, 4), 20)
    objective = policy.objective
    assert msgspec.json.decode(msgspec.json.encode(objective), type=FiniteHorizon) == objective
    assert msgspec.json.decode(msgspec.json.encode(objective.options())) == {
        "type": "horizon",
        "horizon": 40,
        "discount": 1.0,
        "offers": {"amount": [500.0, 5000.0], "cost": [0.8, 0.7], "share": [0.5, 0.5], "currency": "$"},
    }
    with rejected("text", "invalid_file"):
        HorizonOfferPolicy.from_json("{}")


def test_the_json_of_one_cost_is_as_before() -> None:
    objective = FiniteHorizon(0.8, 100)
    assert msgspec.json.encode(objective) == b'{"type":"horizon","cost":0.8,"horizon":100,"discount":1.0}'
    assert msgspec.json.decode(b'{"type":"horizon","cost":0.8,"horizon":100}', type=FiniteHorizon) == objective


def test_bad_input() -> None:
    with rejected("cost", "conflicting_fields"):
        FiniteHorizon(0.8, 10, offers=STARTER)
    with rejected("cost", "missing"):
        FiniteHorizon(horizon=10)
    with rejected("horizon", "missing"):
        FiniteHorizon(0.8)
    with rejected("objective", "unsupported_offers"):
        FiniteHorizon(offers=STARTER, horizon=10).enclose(Belief(2, 1), 1e-6)
    for horizon in (50_000, 10**7):
        with rejected("horizon", "too_large"):
            FiniteHorizon(offers=NINE, horizon=horizon).solve(Belief(2, 1))


def test_estimated_seconds_grow_with_the_horizon() -> None:
    seconds = [FiniteHorizon(offers=NINE, horizon=horizon).solve_seconds(Belief(2, 1)) for horizon in (100, 1000, 5000)]
    assert 0 < seconds[0] < seconds[1] / 100 < seconds[2] / 1000
    mixture = MixtureBelief.doubt(Belief(4, 2), 0.2)
    assert FiniteHorizon(0.8, 2000).solve_seconds(mixture) > FiniteHorizon(0.8, 2000).solve_seconds(Belief(4, 2))


@pytest.mark.parametrize("prior", [Belief(2, 2), Belief(2, 0), Belief(1e6, 8e5), Belief(1e-3, 5e-4)])
@pytest.mark.parametrize("offers", [STARTER, Offers([1e-6, 1e6], [0.001, 0.9]), Offers([1, 2], [0.5, 0.2], [1, 0])])
def test_extreme_beliefs_and_offers(prior: Belief, offers: Offers) -> None:
    tables = HorizonTables(prior, offers, 1.0, 9, 1e-9)
    known = 9 * offers.profit_if_known(prior.mean)
    if prior.certain:  # there is nothing to learn
        assert contains(tables.value, np.longdouble(known))
        return
    value, label = plain_horizon(prior, offers, 1.0, 9)
    assert contains(tables.value, value[9, 0, 0])
    assert all(contains(tables.label_at(k, j, left), worth) for (left, k, j), worth in label.items())


def test_beliefs_that_leave_fewer_arrivals_than_asked_are_valued_one_by_one() -> None:
    """After ten of twelve arrivals, five more are beyond the table of the horizon."""
    policy = FiniteHorizon(offers=Offers([1, 5], [0.6, 0.7]), horizon=12).solve(Belief(2, 1))
    n, s = [12.0, 12.0, 4.0], [7.0, 8.0, 2.0]
    found = policy.label_values(n, s, left=5)
    each = [policy.label_value(Belief(size, good), 5).lower for size, good in zip(n, s, strict=True)]
    assert found.tolist() == pytest.approx(each, rel=1e-9, abs=1e-12)
    assert min(each) > 0.0
