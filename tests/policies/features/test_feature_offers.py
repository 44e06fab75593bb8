"""Policies with features where amounts and break-evens differ, against policies with one cost and solved segments."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from lenience import Belief, Discounted, FeaturePolicy, Offer, Offers
from lenience.core.errors import InputError
from lenience.core.objective import Objective
from lenience.core.offer_rows import OfferRows
from lenience.models import BayesianLogistic, Cells, Neighbours
from lenience.policies.features.baselines import (
    AlwaysRule,
    ConsequentialRule,
    EpsilonRule,
    GreedyRule,
    LinearUpperBoundRule,
    OptimismRule,
    ThompsonRule,
    UpperBoundRule,
)
from lenience.policies.features.decision import OfferedDecision
from lenience.policies.features.effective_discount import offer_shares
from lenience.policies.features.policy import NeverStartsWarning

OFFERS = Offers([0.2, 1, 4], [0.7, 0.8, 0.85], currency="$")
CELLS = np.repeat([[0.0], [1.0], [2.0]], [50, 30, 20], axis=0)
SHARES = (0.5, 0.3, 0.2)
HOPEFUL = Cells(prior=Belief(2, 1.5))
RULES: list[Any] = [
    GreedyRule(burn_in=5), EpsilonRule(), ThompsonRule(), UpperBoundRule(), LinearUpperBoundRule(), OptimismRule(),
    ConsequentialRule(), AlwaysRule(), FeaturePolicy(),
]  # fmt: skip


def learn(policy: FeaturePolicy, cell: int, labels: int, successes: int) -> None:
    """Let the model learn outcomes of a cell."""
    outcomes = np.array([1.0] * successes + [0.0] * (labels - successes))
    policy.model_.learn(np.full((labels, 1), float(cell)), outcomes)


@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_on_cells_it_is_the_solved_policy_of_each_segment(discount: float) -> None:
    objective = Discounted(offers=OFFERS, discount=discount)
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(12):
        policy = FeaturePolicy(HOPEFUL, objective, refresh=False).fit(CELLS)
        for cell in range(3):
            labels = int(rng.integers(1, 30))
            learn(policy, cell, labels, int(rng.integers(0, labels + 1)))
        n, mean = policy.beliefs([[0.0], [1.0], [2.0]])
        quick = policy.label_value([[0.0], [1.0], [2.0]])
        for cell, share in enumerate(SHARES):
            belief = Belief(float(n[cell]), float(n[cell] * mean[cell]))
            solved = objective.for_share(share).solve(belief, rows=1)
            proved = solved.label_value(belief).midpoint
            for offer in (Offer(0.2, 0.7), Offer(1, 0.8), Offer(4, 0.85), Offer(0.05, 0.9)):
                if abs(offer.expected_profit(belief.mean) + proved) < 0.002:
                    continue  # Both choices are as good.
                accepted = bool(policy.accepts([[float(cell)]], offers=offer)[0])
                assert accepted == solved.accepts(belief, offer)
                checked += 1
            if solved.share_accepted(belief) > 0:
                assert quick[cell] == pytest.approx(proved, abs=0.003)
    assert checked > 100


def test_segments_with_larger_amounts_have_labels_that_are_worth_more() -> None:
    """Cells that differ by a factor in their amounts have label values that differ by this factor."""
    objective = Discounted(offers=Offers([1, 5], [0.8, 0.8]), discount=0.97)
    amounts = np.repeat([1.0, 5.0], 50)
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    policy = FeaturePolicy(HOPEFUL, objective, refresh=False).fit(X, offers=(amounts, 0.8))
    small, large = policy.label_value([[0.0], [1.0]])
    assert large == pytest.approx(5 * small)
    # The table is that of the population, whose amounts differ. Its mean amount is 3.
    whole = FeaturePolicy(HOPEFUL, objective, refresh=False).fit(X).label_value([[0.0], [1.0]])
    assert whole.tolist() == pytest.approx([3 * small, 3 * small])


@pytest.mark.parametrize(("cost", "discount"), [(0.5, 0.95), (0.8, 0.99)])
def test_one_offer_for_all_is_one_cost(cost: float, discount: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 4))
    odds = X @ np.array([1.2, -0.8, 0.5, 0.0]) + np.log(cost / (1 - cost))
    y = (rng.random(900) < 1 / (1 + np.exp(-odds))).astype(float)
    model = BayesianLogistic(bent_variance=())
    one, same = Discounted(cost=cost, discount=discount), Discounted(offers=Offers([700], [cost]), discount=discount)
    plain = FeaturePolicy(model, one, random_state=0).fit(X[:100])
    offered = FeaturePolicy(model, same, random_state=0).fit(X[:100])
    leniently = 0
    for i in range(100, 900):
        row, waits = X[i : i + 1], i % 3 == 0  # A third of the outcomes stay pending.
        accepted = plain.decide(row)
        assert offered.decide(row).tolist() == accepted.tolist()
        leniently += bool(accepted[0]) and plain.log_[-1].mean <= cost
        if accepted[0] and not waits:
            plain.observe(row, accepted, y[i : i + 1])
            offered.observe(row, accepted, y[i : i + 1])
    assert leniently > 5
    assert 0 < plain.accepted_ < 800
    below = [(one, other) for one, other in zip(plain.log_, offered.log_, strict=True) if one.mean <= cost]
    assert all(one.discount == pytest.approx(other.discount, rel=1e-12) for one, other in below)


def test_a_model_without_log_odds_agrees_with_one_cost_too() -> None:
    plain = FeaturePolicy(HOPEFUL, Discounted(cost=0.8, discount=0.97)).fit(CELLS)
    offered = FeaturePolicy(HOPEFUL, Discounted(offers=Offers([3], [0.8]), discount=0.97)).fit(CELLS)
    rng = np.random.default_rng(2)
    for _ in range(150):
        row = rng.integers(0, 3, size=(1, 1)).astype(float)
        accepted = plain.decide(row)
        assert offered.decide(row).tolist() == accepted.tolist()
        one, other = plain.log_[-1], offered.log_[-1]
        if one.mean < 0.8:  # with offers, each label of somebody above the cost helps too
            assert one.discount == pytest.approx(other.discount, rel=1e-9)
        outcome = [float(rng.random() < (0.75, 0.85, 0.6)[int(row[0, 0])])]
        plain.observe(row, accepted, outcome)
        offered.observe(row, accepted, outcome)
    assert 0 < plain.accepted_ < 150


def test_small_amounts_get_the_benefit_of_the_doubt_first() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    policy = FeaturePolicy(objective=Discounted(offers=OFFERS, discount=0.99)).fit(X)
    for row in X[:20]:
        sizes = np.geomspace(0.01, 50, 40)
        accepted = policy.accepts(np.tile(row, (40, 1)), offers=(sizes, 0.85))
        assert accepted[0]
        assert not accepted[-1]
        assert (np.diff(accepted.astype(int)) <= 0).all()
        largest = policy.label_value(row[None])[0] / (0.85 - policy.beliefs(row[None])[1][0])
        np.testing.assert_array_equal(accepted, sizes < largest)


def test_the_best_offer_of_a_menu_is_made() -> None:
    menu = Offers.menu([0.1, 1], [0.8, 0.8])
    policy = FeaturePolicy(HOPEFUL, Discounted(offers=menu, discount=0.9)).fit(CELLS)
    assert policy.decide([[0.0]]).tolist() == [True]  # The menu is the same for all.
    assert isinstance(policy.log_[0], OfferedDecision)
    assert policy.log_[0].amount == 0.1
    assert policy.log_[0].cost == 0.8
    learn(policy, 0, 30, 28)
    policy.decide([[0.0]], offers=[[Offer(0.1, 0.8), Offer(1, 0.8)]])
    assert policy.log_[1].amount == 1.0  # type: ignore[attr-defined]
    learn(policy, 1, 30, 2)
    assert policy.decide([[1.0]], offers=[menu]).tolist() == [False]


def test_the_log_has_the_offers() -> None:
    policy = FeaturePolicy(HOPEFUL, Discounted(offers=OFFERS, discount=0.9), explore=0.1, random_state=0).fit(CELLS)
    policy.decide([[0.0], [1.0]], offers=[Offer(0.2, 0.7), Offer(4, 0.85)])
    frame = policy.log_frame(backend="pyarrow").to_pydict()
    assert frame["amount"] == [0.2, 4.0]
    assert frame["cost"] == [0.7, 0.85]
    assert frame["label_value"][0] > 0
    assert policy.propensity([[1.0]], offers=Offer(1e6, 0.85)).tolist() == [0.1]
    assert policy.predict([[1.0]], offers=Offer(1e6, 0.85)).tolist() == [0]


def test_arrivals_bring_their_own_stakes_into_the_reference() -> None:
    """Later arrivals replace reference rows with their offers: where more is asked for, a label is worth more."""
    objective = Discounted(offers=Offers([1, 5], [0.8, 0.8]), discount=0.9)
    policy = FeaturePolicy(HOPEFUL, objective, reference=20).fit(np.repeat([[0.0], [1.0]], 10, axis=0))
    rows = np.repeat([[0.0], [1.0]], 10, axis=0)
    before = policy.label_value([[0.0], [1.0]])
    assert before[0] == pytest.approx(before[1])
    policy.decide(rows, offers=(np.repeat([1e-4, 5.0], 10), 0.99), chances=np.ones(20))
    small, large = policy.label_value([[0.0], [1.0]])
    assert small < 0.01 * large
    fresh = FeaturePolicy(HOPEFUL, objective, reference=30).fit(np.repeat([[0.0], [1.0]], 10, axis=0))
    fresh.decide(rows[:5], offers=(1.0, 0.8))
    assert len(fresh.reference_) == 25
    fresh.use_reference(rows, offers=(5.0, 0.8))
    assert fresh.label_value([[0.0]])[0] > 0


def test_explanations_are_in_money() -> None:
    offers = Offers([500, 5000], [0.8, 0.8], currency="$")
    X = np.random.default_rng(0).normal(size=(200, 2))
    policy = FeaturePolicy(objective=Discounted(offers=offers, discount=0.99)).fit(X)
    asked = [Offer(500, 0.8), Offer(50_000, 0.8), Offers.menu([500, 5000], [0.8, 0.8])]
    small, large, chosen = (each.summary for each in policy.explain(np.tile(X[0], (3, 1)), offers=asked))
    assert small.startswith("Accept $500: expected success ")
    assert "not above the 80% break-even. The expected loss is $" in small
    assert "What the outcome teaches about similar people is worth $" in small
    assert large.startswith("Reject $50,000: ")
    assert "At this break-even, amounts below $" in large
    assert chosen.startswith("Offer $500 instead of $5,000: ")
    policy.observe(X, np.ones(200), np.ones(200))
    assert "above the 80% break-even. The expected profit is $" in policy.explain(X[:1], Offer(5000, 0.8))[0].summary


def test_pending_acceptances_count_as_labels_that_will_come() -> None:
    offers = Offers([1, 5], [0.8, 0.8])
    policy = FeaturePolicy(HOPEFUL, Discounted(offers=offers, discount=0.95)).fit([[0.0]] * 10)
    accepted = policy.decide([[0.0]] * 60, offers=Offer(0.3, 0.8), chances=np.zeros(60))
    assert accepted[0]
    assert not accepted[-1]  # So many are pending that one more label is worth too little.
    assert policy.accepts([[0.0]], offers=Offer(0.3, 0.8)).tolist() == [False]
    assert "acceptances of similar people are pending" in policy.explain([[0.0]], Offer(0.3, 0.8))[0].summary
    limited = FeaturePolicy(HOPEFUL, Discounted(offers=offers, discount=0.95), exposure=2).fit([[0.0]] * 10)
    assert limited.decide([[0.0]] * 6, offers=Offer(0.3, 0.8)).tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_every_rule_uses_the_break_even_of_each_row(rule: Any) -> None:
    """With rows of one amount at one break-even, a rule decides as with this cost, whatever the currency."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = (rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0] - 1))).astype(float)
    chances = rng.random(300)
    plain = clone(rule).set_params(objective=Discounted(cost=0.7, discount=0.9)).fit(X[:50], y[:50])
    objective = Discounted(offers=Offers([900], [0.7]), discount=0.9)
    offered = clone(rule).set_params(objective=objective).fit(X[:50], y[:50])
    for i in range(50, 300):
        row = X[i : i + 1]
        first = plain.decide(row, chances=chances[i : i + 1])
        second = offered.decide(row, chances=chances[i : i + 1], offers=([900], [0.7]))
        assert first.tolist() == second.tolist()
        plain.observe(row, first, y[i : i + 1])
        offered.observe(row, second, y[i : i + 1], arrivals=offered.latest_)
    assert offered.propensity(X[:1], offers=([1.0], [1e-6])).tolist() == [1.0]
    if not isinstance(rule, AlwaysRule | LinearUpperBoundRule):  # LinUCB may hope for more than 1.
        assert offered.propensity(X[:5], offers=(1e9, 1 - 1e-6)).max() < 0.2


def test_consequential_learning_weighs_labels_by_what_is_at_stake() -> None:
    objective = Discounted(offers=Offers([1, 9], [0.7, 0.7]), discount=0.9)
    X = np.random.default_rng(0).normal(size=(50, 2))
    steps = []
    for amount in (1.0, 9.0):
        rule = ConsequentialRule(objective=objective).fit(X)
        rule.decide(X[:1], offers=Offer(amount, 0.7))
        rule.observe(X[:1], [True], [1])
        steps.append(rule.theta_.copy())
    np.testing.assert_allclose(steps[1], 9 * steps[0])
    outside = ConsequentialRule(objective=objective).fit(X).observe(X[:1], [True], [1])
    np.testing.assert_allclose(outside.theta_, 5 * steps[0])  # A label from elsewhere has the mean amount.
    known = ConsequentialRule(objective=objective).fit(X[:1], [1], offers=Offer(9, 0.7))
    assert np.abs(known.theta_).max() > 0


def test_a_policy_with_offers_is_saved_and_restored() -> None:
    objective = Discounted(offers=OFFERS, discount=0.9)
    assert (
        Objective.from_builtins(
            {
                "type": "discounted",
                "offers": {"amount": [0.2, 1, 4], "cost": [0.7, 0.8, 0.85], "currency": "$"},
                "discount": 0.9,
            }
        )
        == objective
    )
    policy = FeaturePolicy(HOPEFUL, objective).fit(CELLS)
    policy.decide(CELLS[:5], offers=(1.0, 0.8))
    again = pickle.loads(pickle.dumps(policy))
    offers = ([0.2, 1, 4], [0.7, 0.8, 0.85])
    assert again.accepts(CELLS[:3], offers).tolist() == policy.accepts(CELLS[:3], offers).tolist()
    assert again.label_value(CELLS[:3]).tolist() == policy.label_value(CELLS[:3]).tolist()
    assert clone(policy).objective == objective


def test_a_policy_that_never_starts_warns() -> None:
    with pytest.warns(NeverStartsWarning):
        FeaturePolicy(Cells(prior=Belief(50, 5)), Discounted(offers=OFFERS, discount=0.9)).fit(CELLS)


def test_wrong_offers_are_rejected() -> None:
    policy = FeaturePolicy(BayesianLogistic(), Discounted(offers=OFFERS, discount=0.9)).fit(CELLS)
    for wrong, code in (
        (None, "missing"),
        ([Offer(1, 0.8)], "length_mismatch"),
        (([1, 2, 3], 0.8), "length_mismatch"),
        (([1, -2], 0.8), "invalid_value"),
        (([1, 2], [0.5, 1.0]), "invalid_value"),
        ({"amount": [1, 2]}, "missing"),
        ("large", "invalid_value"),
        ([1, 2], "invalid_value"),
        (OFFERS, "length_mismatch"),
    ):
        with pytest.raises(InputError) as caught:
            policy.decide(CELLS[:2], offers=wrong)
        assert caught.value.code == code, wrong
    assert policy.arrivals_ == 0
    plain = FeaturePolicy(HOPEFUL, Discounted(cost=0.8, discount=0.9)).fit(CELLS)
    for call in (lambda: plain.decide(CELLS[:1], offers=Offer(1, 0.8)), lambda: plain.label_value(CELLS[:1])):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "unsupported_offers"


def test_offers_of_rows_may_be_given_in_many_ways() -> None:
    two = Offers([1, 2], [0.5, 0.6])
    import pandas as pd

    forms = [
        [Offer(1, 0.5), Offer(2, 0.6)],
        two,
        ([1, 2], [0.5, 0.6]),
        {"amount": [1, 2], "cost": [0.5, 0.6]},
        pd.DataFrame({"amount": [1, 2], "cost": [0.5, 0.6]}),
        (Offer(1, 0.5), Offer(2, 0.6)),
        OfferRows(np.array([1.0, 2.0]), np.array([0.5, 0.6]), np.arange(3)),
    ]
    for form in forms:
        rows = OfferRows.of(form, 2, two)
        assert rows.amount.tolist() == [1.0, 2.0]
        assert rows.cost.tolist() == [0.5, 0.6]
        assert rows.start.tolist() == [0, 1, 2]
        assert rows.single
    menus = OfferRows.of([Offers.menu([1, 9], [0.5, 0.8]), Offer(4, 0.7)], 2, two)
    assert menus.stake.tolist() == [9.0, 4.0]
    assert menus.break_even.tolist() == [0.5, 0.7]
    assert not menus.single
    assert menus.best(0, 0.55)[:2] == (1.0, 0.5)
    assert menus.best(0, 0.95)[:2] == (9.0, 0.8)
    assert menus.pick(np.array([1, 0])).start.tolist() == [0, 1, 3]
    assert menus.take(1, 2).amount.tolist() == [4.0]


def test_a_label_of_the_logistic_model_is_worth_more_where_more_is_at_stake() -> None:
    """Reference rows with larger amounts raise the value of a label."""
    X = np.random.default_rng(1).normal(size=(60, 2))
    objective = Discounted(offers=Offers([1, 5], [0.8, 0.8]), discount=0.95)
    labels = []
    for factor in (0.25, 1.0, 4.0):
        policy = FeaturePolicy(objective=objective, reference=60).fit(X)
        policy._brought.stake[:] *= factor
        decided = policy.decide(X[:3], offers=Offer(1, 0.8), chances=np.ones(3))
        labels.append([one.label_value for one in decided if isinstance(one, OfferedDecision)])
    low, usual, high = np.array(labels)
    assert np.all(1.1 * low < usual)
    assert np.all(1.1 * usual < high)


def test_labels_of_similar_people_above_the_cost_count_alike_with_one_offer() -> None:
    X = np.linspace(0.0, 1.0, 80)[:, None]
    outcomes = np.where(np.arange(80) % 2 == 0, (np.arange(80) > 36).astype(float), np.nan)
    plain = FeaturePolicy(Neighbours(bandwidth=0.3), Discounted(cost=0.7, discount=0.97)).fit(X, outcomes)
    offered = FeaturePolicy(Neighbours(bandwidth=0.3), Discounted(offers=Offers([3], [0.7]), discount=0.97)).fit(
        X, outcomes
    )
    plain.decide(X[::5])
    offered.decide(X[::5])
    below = [(one, other) for one, other in zip(plain.log_, offered.log_, strict=True) if one.mean < 0.7]
    assert len(below) > 4
    for one, other in below:
        assert one.discount == pytest.approx(other.discount, rel=1e-9)


def test_what_counts_as_known_of_similar_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Beta belief has the variance p(1 − p)/(n + 1), and a label takes 1/(n + 2) of it away."""
    X = np.linspace(0.0, 1.0, 40)[:, None]
    outcomes = np.where(np.arange(40) % 2 == 0, (np.arange(40) > 18).astype(float), np.nan)
    policy = FeaturePolicy(Neighbours(bandwidth=0.3), Discounted(offers=Offers([3], [0.7]), discount=0.97))
    policy.fit(X, outcomes)
    given: list[Any] = []

    def recorded(*arguments: Any) -> Any:
        given.append((policy.reference_, *arguments))
        return offer_shares(*arguments)

    monkeypatch.setattr("lenience.policies.features.policy.offer_shares", recorded)
    n, mean = policy.model_.beliefs(X[:3])
    policy.decide(X[:3])
    assert len(given) == 3
    for i, (reference, like, rates, precision, resolved, own_mean, rough, own_precision, own_resolved, *_) in enumerate(
        given
    ):
        size, rate = policy.model_.beliefs(reference)
        assert like == pytest.approx(policy.model_.likeness(X[i : i + 1], reference)[0])
        assert rates == pytest.approx(rate)
        assert precision == pytest.approx((size + 1) / (rate * (1 - rate)))
        assert resolved == pytest.approx(1 / (size + 2))
        assert own_mean == rough == pytest.approx(mean[i])
        assert own_precision == pytest.approx((n[i] + 1) / (mean[i] * (1 - mean[i])))
        assert own_resolved == pytest.approx(1 / (n[i] + 2))
