"""Explanations: contributions add up, changes do change the answer, and reasons are about the applicant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from lenience import Delayed, Discounted, FeaturePolicy, InputError, Offer, Offers
from lenience.models import BayesianLogistic, CalibratedScore, Cells, FeatureColumn
from lenience.policies import Explanation, FeatureRule
from lenience.policies.features.changed_answers import evidence_that_changes
from lenience.policies.features.contributions import Comparison

COLUMNS = (
    FeatureColumn("income", minimum=0, unit="USD"),
    FeatureColumn("debt", minimum=0, unit="USD"),
    FeatureColumn("purpose", "category", values=("car", "home", "study")),
)
GOAL = Discounted(cost=0.7, discount=0.99)
WORDING = {"income": "Income is too low for the amount requested", "purpose": "Purpose of the loan"}


def people(count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "income": float(np.round(rng.lognormal(7.5, 0.6))),
            "debt": float(rng.integers(0, 4) * 500) if rng.random() > 0.05 else None,
            "purpose": str(rng.choice(["car", "home", "study"], p=[0.5, 0.3, 0.2])),
        }
        for _ in range(count)
    ]


def outcomes(persons: list[dict[str, Any]], seed: int = 0) -> np.ndarray[Any, Any]:
    income = np.array([person["income"] for person in persons])
    debt = np.array([person["debt"] or 0.0 for person in persons])
    study = np.array([person["purpose"] == "study" for person in persons])
    rate = expit(1.2 + 1.5 * (np.log(income) - 7.5) - 0.6 * debt / 500 - 1.0 * study)
    return np.asarray(np.random.default_rng(seed).random(len(persons)) < rate, dtype=float)


@pytest.fixture(scope="module")
def policy() -> FeaturePolicy:
    """Return a policy that learnt from a history which an earlier rule selected, so that it has a selection index."""
    past = people(700)
    good = outcomes(past)
    good[[person["income"] < 1400 for person in past]] = np.nan
    fitted = FeaturePolicy(objective=GOAL, columns=COLUMNS, refresh=False, random_state=0).fit(past, good)
    assert fitted.model_.selection_ is not None
    return fitted


def total(explanation: Explanation) -> float:
    return sum(each.log_odds for each in explanation.contributions)


def test_contributions_add_up_to_the_difference_from_the_reference(policy: FeaturePolicy) -> None:
    strange = [{"income": 900, "debt": None, "purpose": "boat"}, {"income": None, "debt": 0, "purpose": None}]
    for explanation in policy.explain(people(20, 1) + strange):
        assert explanation.log_odds is not None
        assert explanation.reference_log_odds is not None
        assert total(explanation) == pytest.approx(explanation.log_odds - explanation.reference_log_odds, abs=1e-9)
        assert sorted(each.column for each in explanation.contributions) == ["debt", "income", "purpose"]
        sizes = [abs(each.log_odds) for each in explanation.contributions]
        assert sizes == sorted(sizes, reverse=True)


def test_contributions_are_those_of_a_slow_computation(policy: FeaturePolicy) -> None:
    """Change one feature after another, in every order, and average: the same without a selection index."""
    from itertools import permutations

    plain = FeaturePolicy(BayesianLogistic(selection=False), GOAL, columns=COLUMNS, refresh=False, random_state=0)
    past = people(200)
    plain.fit(past, outcomes(past))
    person = people(1, 5)[0]
    model, encoding = plain.model_, plain.transformer_.encoding
    row, reference = encoding.row(person), plain.reference_
    expected = dict.fromkeys(person, 0.0)
    orders = list(permutations(range(3)))
    for order in orders:
        rows = reference.copy()
        before = (model.design(rows) @ model.mean_).mean()
        for i in order:
            block = encoding.blocks[i]
            rows[:, block.start : block.stop] = row[block.start : block.stop]
            after = (model.design(rows) @ model.mean_).mean()
            expected[block.column.name] += (after - before) / len(orders)
            before = after
    explanation = plain.explain([person])[0]
    assert {each.column: each.log_odds for each in explanation.contributions} == pytest.approx(expected, abs=1e-9)


def test_the_rule_explains_as_the_policy_does(policy: FeaturePolicy) -> None:
    rule = policy.to_rule()
    for person, expected in zip(people(10, 2), policy.explain(people(10, 2), wording=WORDING), strict=True):
        explanation = rule.explain(person, wording=WORDING)
        assert explanation.contributions == expected.contributions
        assert explanation.reasons == expected.reasons
        assert explanation.changes == expected.changes
        assert explanation.summary == expected.summary


def test_changes_do_change_the_answer_and_slightly_less_does_not(policy: FeaturePolicy) -> None:
    kinds = set()
    for person in people(40, 3):
        explanation = policy.explain([person])[0]
        now = policy.accepts([person])[0]
        assert (explanation.decision.propensity >= 1.0) == now
        for change in explanation.changes:
            kinds.add((change.kind, bool(now)))
            if change.kind != "feature" or change.column is None:
                continue
            assert policy.accepts([{**person, change.column: change.value}])[0] != now
            old = person[change.column]
            if isinstance(change.value, float) and old is not None:
                # Rounding leaves at most a tenth of the way.
                less = change.value + 0.12 * (old - change.value)
                assert policy.accepts([{**person, change.column: less}])[0] == now
    assert {("feature", True), ("feature", False)} <= kinds


def test_no_change_is_found_where_none_changes_the_answer() -> None:
    past = people(150)
    policy = FeaturePolicy(objective=Discounted(0.5, 0.9), columns=COLUMNS, random_state=0).fit(past, np.ones(150))
    explanation = policy.explain(past[:1])[0]
    assert explanation.decision.propensity == 1.0
    assert explanation.changes == ()
    assert explanation.reasons == ()
    assert "No change of a single feature" in str(explanation)


def test_evidence_that_changes_the_answer() -> None:
    checked = 0
    policy = FeaturePolicy(objective=GOAL, columns=COLUMNS, refresh=False, random_state=0)
    policy.fit(past := people(60), outcomes(past))
    policy.decide(people(150, 4), chances=np.ones(150))
    for decision in policy.log_:
        enough = evidence_that_changes(decision, 0.7, policy.table_)
        if enough is None or decision.discount is None or decision.threshold is None:
            continue
        checked += 1
        full = 0.7 - float(policy.table_.threshold(decision.n, decision.discount))
        left = (0.7 - decision.threshold) / full
        for factor, flips in ((0.999, False), (1.001, True)):
            n = decision.n * (enough / decision.n) ** factor
            minimum = 0.7 - left * (0.7 - float(policy.table_.threshold(n, decision.discount)))
            assert ((decision.mean > minimum) != (decision.mean > decision.threshold)) == flips
    assert checked > 3


def test_reasons_are_ordered_worded_and_at_most_four(policy: FeaturePolicy) -> None:
    poor = {"income": 300, "debt": 1500, "purpose": "study"}
    explanation = policy.explain([poor], wording=WORDING)[0]
    assert explanation.decision.propensity < 1.0
    assert explanation.reasons[0].column == "income"
    assert explanation.reasons[0].text == WORDING["income"]
    texts = {reason.column: reason.text for reason in explanation.reasons}
    assert texts["debt"] == "debt is 1,500 USD"
    assert {reason.code for reason in explanation.reasons} == {"feature"}
    rich = policy.explain([{"income": 9000, "debt": 0, "purpose": "home"}])[0]
    assert rich.reasons == ()
    many = [FeatureColumn(f"x{i}") for i in range(8)]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = rng.random(300) < expit(X.sum(axis=1))
    wide = FeaturePolicy(objective=GOAL, columns=many, random_state=0).fit(X, y)
    reasons = wide.explain(np.full((1, 8), -1.0))[0].reasons
    assert len(reasons) == 4
    assert "missing" in policy.explain([{"income": None, "debt": 1500, "purpose": "study"}])[0].summary


def test_a_limit_is_not_a_reason_about_the_applicant() -> None:
    X = np.random.default_rng(0).normal(size=(100, 1))
    late = Delayed(cost=0.9, arrivals=1, discount_rate=0.01, label_delay=20)
    policy = FeaturePolicy(objective=late, columns=[FeatureColumn("x")], random_state=0).fit(X)
    policy.decide(X[:60], time=0.0)
    explanations = [each for each in policy.explain(X[:60]) if each.summary.startswith("Reject for now")]
    assert explanations
    assert [reason.code for reason in explanations[0].reasons] == ["limit_reached"]
    assert explanations[0].reasons[0].column is None


def test_offers_that_would_change_the_answer() -> None:
    offers = Offers([500, 5000], [0.7, 0.7], currency="$")
    past = people(200)
    policy = FeaturePolicy(
        objective=Discounted(offers=offers, discount=0.99), columns=COLUMNS, refresh=False, random_state=0
    ).fit(past[:30], outcomes(past[:30]))
    found = set()
    for person in people(30, 6):
        explanation = policy.explain([person], Offer(5000, 0.7))[0]
        now = policy.accepts([person], Offer(5000, 0.7))[0]
        for change in explanation.changes:
            value = change.value
            if change.kind == "feature" or not isinstance(value, float):
                continue
            found.add((change.kind, bool(now)))
            for factor, flips in ((0.99, not now), (1.01, bool(now))):
                of_amount = change.kind == "amount"
                offer = Offer(value * factor, 0.7) if of_amount else Offer(5000, min(value * factor, 0.99))
                assert (policy.accepts([person], offer)[0] != now) == flips
    assert {("amount", False), ("break_even", False), ("break_even", True)} <= found


def test_scores_and_plain_numbers_are_explained_too() -> None:
    rng = np.random.default_rng(1)
    drawn = zip(rng.beta(2, 6, 200), rng.choice(["n", "s"], 200), strict=True)
    rows = [{"pd": float(p), "region": str(r)} for p, r in drawn]
    columns = [FeatureColumn("pd", required=True), FeatureColumn("region", "category", values=("n", "s"))]
    scored = FeaturePolicy(CalibratedScore("pd"), GOAL, columns=columns, refresh=False, random_state=0).fit(rows)
    explanation = scored.explain([{"pd": 0.6, "region": "n"}], noun="loans")[0]
    assert explanation.contributions[0].column == "pd"
    assert explanation.contributions[0].log_odds < 0
    assert total(explanation) == pytest.approx((explanation.log_odds or 0) - (explanation.reference_log_odds or 0))
    assert "similar loans" in explanation.evidence
    X = rng.normal(size=(100, 2))
    plain = FeaturePolicy(objective=GOAL, random_state=0).fit(X, X[:, 0] > 0)
    assert plain.explain(X[:1])[0].contributions[0].column == "x0"
    cells = FeaturePolicy(Cells(), Discounted(0.5, 0.9), random_state=0).fit([[0.0], [1.0]] * 10)
    assert cells.explain([[0.0]])[0].contributions == ()


def test_invalid_wording_is_rejected(policy: FeaturePolicy) -> None:
    person = people(1)
    for wording, field in (({"incme": "x"}, "wording"), ({"income": 3}, "wording.income"), ("low", "wording")):
        with pytest.raises(InputError) as error:
            policy.explain(person, wording=wording)
        assert error.value.field == field
    assert isinstance(policy.to_rule(), FeatureRule)


def test_the_selection_index_is_divided_by_what_moves_it(policy: FeaturePolicy) -> None:
    """Walk straight from a reference row to the applicant, in many steps, and add up what each column changes."""
    belief = policy.model_.belief_
    design, row = belief.design, policy.transformer_.encoding.row(people(1, 21)[0])
    z, R = design.rows(row[None])[0], design.rows(policy.reference_[:5])
    effects = belief.weights @ belief.means
    first, end = design.first, design.width - design.selection.width
    sources = np.array(design.sources())
    expected = np.zeros(design.inputs)
    for r in R:
        path = r[first:end] + np.linspace(0.0, 1.0, 4001)[:, None] * (z[first:end] - r[first:end])
        index, levels = path @ design.selection.weights, design.selection.columns(path) @ effects[end:]
        slopes = np.diff(levels) / np.where(np.diff(index) == 0.0, 1.0, np.diff(index))
        steps = np.diff(path, axis=0) * design.selection.weights
        np.add.at(expected, sources[first:end], (slopes[:, None] * steps).sum(axis=0) / len(R))
        np.add.at(expected, sources[first:end], effects[first:end] * (z[first:end] - r[first:end]) / len(R))
    compared = Comparison(belief, policy.transformer_.encoding, policy.reference_[:5])
    assert compared.of_inputs(z) == pytest.approx(expected, abs=1e-6)
    assert np.abs(expected).max() > 0.1


def test_an_unseen_category_counts_for_its_own_feature() -> None:
    rng = np.random.default_rng(3)
    columns = [FeatureColumn(name, "category", values=("a", "b")) for name in ("one", "two")]
    rows = [{"one": str(a), "two": str(b)} for a, b in rng.choice(["a", "b"], (200, 2))]
    policy = FeaturePolicy(objective=GOAL, columns=columns, refresh=False, random_state=0).fit(rows, np.ones(200))
    strange = {"one": "z", "two": "b"}
    for _ in range(20):
        policy.observe([strange], [True], [False])
    effects = {each.column: each.log_odds for each in policy.explain([strange])[0].contributions}
    usual = {each.column: each.log_odds for each in policy.explain([rows[0] | {"two": "b"}])[0].contributions}
    assert effects["two"] == pytest.approx(usual["two"], abs=1e-9)
    assert effects["one"] < usual["one"] - 1.0
