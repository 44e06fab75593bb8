"""FeatureRule: stored policies decide as the library does, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from feature_worlds import world
from lenience import Delayed, Discounted, FeaturePolicy, FiniteHorizon, InputError, Offer, Offers
from lenience.models import CalibratedScore, Cells, FeatureColumn, LiveModel, RowEncoding, restore
from lenience.policies import Decision, FeatureRule
from lenience.policies.features.decision import OfferedDecision
from lenience.policies.features.declared import DeclaredFeatures
from lenience.policies.features.logistic_rule import ExposureLimits

COLUMNS = (
    FeatureColumn("income", minimum=0, unit="USD"),
    FeatureColumn("pd", minimum=0, maximum=1, required=True),
    FeatureColumn("region", "category", values=("north", "south", "west")),
)
MENU = Offers([500, 2000], [0.75, 0.85], currency="$")
OBJECTIVES = {
    "discounted": Discounted(cost=0.8, discount=0.99),
    "horizon": FiniteHorizon(cost=0.8, horizon=300),
    "delayed": Delayed(cost=0.8, arrivals=100, discount_rate=0.5, label_delay=0.1),
    "offers": Discounted(offers=MENU, discount=0.99),
    "delayed offers": Delayed(offers=MENU, arrivals=100, discount_rate=0.5, label_delay=0.1),
}


def people(count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        pd = float(1.0 / (1.0 + np.exp(1.3 + rng.normal())))
        person: dict[str, Any] = {
            "income": None if rng.random() < 0.1 else float(rng.integers(0, 5) * 1000),
            "pd": pd,
            "region": str(rng.choice(["north", "south", "west"])),
        }
        drawn.append(person)
    return drawn


def strangers(count: int, seed: int) -> list[dict[str, Any]]:
    """Draw applicants of whom some have an unseen or a missing category."""
    drawn = people(count, seed)
    for i, person in enumerate(drawn):
        if i % 7 == 3:
            person["region"] = "east"
        if i % 11 == 5:
            person["region"] = None
    return drawn


def fitted(objective: Any, model: Any = None, **options: Any) -> FeaturePolicy:
    return FeaturePolicy(
        model=model, objective=objective, columns=COLUMNS, refresh=False, reference=40, random_state=0, **options
    ).fit(people(120))


def same(one: Decision, other: Decision) -> bool:
    return one == other and type(one) is type(other)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_stored_rule_decides_and_learns_as_the_policy_does(name: str) -> None:
    objective = OBJECTIVES[name]
    model = CalibratedScore("pd", trust=50) if name == "delayed" else None
    policy = fitted(objective, model, explore=0.05)
    rule = policy.to_rule()
    rng = np.random.default_rng(1)
    pending: dict[int, tuple[dict[str, Any], NDArray[np.float64]]] = {}
    taken = 0
    for arrival, person in enumerate(strangers(60, 2)):
        chance = rng.random()
        offer = Offer(float(rng.choice([500, 2000])), 0.8) if "offers" in name else None
        offers = None if offer is None else [offer]
        policy.decide([person], chances=np.array([chance]), offers=offers, time=0.0)
        waiting = np.array([row for _, row in pending.values()])
        decision = rule.decide(person, offer, waiting, arrival, chance)
        assert same(decision, policy.log_[-1])
        taken += decision.accepted
        if decision.accepted:
            pending[arrival] = person, rule.encode(person)
        if pending and rng.random() < 0.7:
            known = int(rng.choice(list(pending)))
            outcome = bool(rng.random() < 0.7)
            policy.observe([pending[known][0]], [True], [outcome], arrivals=[known])
            rule.observe(pending.pop(known)[0], outcome)
        if arrival % 17 == 0:
            rule = restore(rule.state())
    assert 5 < taken < 60
    assert rule.labels == policy.labels_ > 5
    assert rule.state() == policy.to_rule().state()


def test_a_batch_is_decided_like_one_after_another() -> None:
    rule = fitted(Discounted(cost=0.8, discount=0.995)).to_rule()
    for person in people(10, 3):
        rule.observe(person, True)
    batch, pending = strangers(30, 4), people(5, 5)
    together = rule.decide_many(batch, pending=pending)
    waiting = [rule.encode(person) for person in pending]
    for arrival, (person, decision) in enumerate(zip(batch, together, strict=True)):
        assert same(rule.decide(person, pending=np.array(waiting), arrivals=arrival), decision)
        if decision.accepted:
            waiting.append(rule.encode(person))
    assert 0 < sum(decision.accepted for decision in together) < 30
    assert (together[-1].pending or 0.0) > 0.0


def test_deciding_changes_nothing_and_exporting_copies() -> None:
    policy = fitted(OBJECTIVES["discounted"])
    rule = policy.to_rule()
    before = rule.state_hash()
    rule.decide_many(strangers(20, 6), pending=people(3, 7))
    assert rule.state_hash() == before
    rule.observe(people(1, 8)[0], True)
    assert rule.state_hash() != before == policy.to_rule().state_hash()
    assert isinstance(rule, LiveModel)
    assert rule.frame == policy.to_rule().frame


def test_decisions_with_offers_have_their_fields() -> None:
    rule = fitted(OBJECTIVES["offers"]).to_rule()
    decision = rule.decide(people(1)[0], Offers.menu([500, 2000], [0.75, 0.85]))
    assert isinstance(decision, OfferedDecision)
    assert decision.amount in (500.0, 2000.0)
    assert decision.label_value is not None
    assert decision.label_value > 0.0
    again: FeatureRule = restore(rule.state())
    assert again.objective == rule.objective
    assert again.cost == pytest.approx(MENU.mean_cost)


def test_similar_applicants_are_alike() -> None:
    rule = fitted(OBJECTIVES["discounted"]).to_rule()
    one, other = people(2, 9)
    likeness = rule.similar(one, [one, other])
    assert likeness[0] == pytest.approx(1.0)
    assert 0.0 <= likeness[1] < 1.0


def test_declared_columns_are_a_pipeline_without_fitting() -> None:
    pandas = pytest.importorskip("pandas")
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from lenience.models import BayesianLogistic

    goal = OBJECTIVES["discounted"]
    frame = pandas.DataFrame(people(120))
    known = np.where(np.arange(120) < 60, np.arange(120) % 3 > 0, np.nan)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    front = ColumnTransformer([("rest", "passthrough", ["income", "pd"]), ("text", encoder, ["region"])])
    piped = FeaturePolicy(make_pipeline(front, BayesianLogistic()), goal, random_state=0).fit(frame, known)
    declared = FeaturePolicy(objective=goal, random_state=0, columns=COLUMNS).fit(frame, known)
    new = pandas.DataFrame([person for person in strangers(40, 10) if person["region"] is not None])
    assert np.array_equal(piped.beliefs(new)[1], declared.beliefs(new)[1])
    assert np.array_equal(piped.decide(new), declared.decide(new))
    assert piped.log_ == declared.log_
    assert [each.summary for each in piped.explain(new)] == [each.summary for each in declared.explain(new)]
    assert np.array_equal(declared.beliefs(new.to_dict("records"))[1], declared.beliefs(new)[1])


def test_policies_that_cannot_be_stored_say_why() -> None:
    goal = Discounted(cost=0.6, discount=0.9)
    rows = np.random.default_rng(0).normal(size=(50, 2))
    two = [FeatureColumn("a"), FeatureColumn("b")]
    wrong: list[tuple[FeaturePolicy, str]] = [
        (FeaturePolicy(objective=goal).fit(rows), "columns"),
        (FeaturePolicy(model=Cells(), objective=goal, columns=two, explore=0.1).fit(rows), "model"),
        (FeaturePolicy(objective=goal, columns=two, exposure=3).fit(rows), "exposure"),
    ]
    for policy, field in wrong:
        with pytest.raises(InputError) as error:
            policy.to_rule()
        assert error.value.field == field
    with pytest.raises(InputError) as error:
        FeaturePolicy(objective=goal, columns=["a", "b"]).fit(rows)
    assert error.value.field == "columns"


def test_invalid_rules_and_requests_are_rejected() -> None:
    rule = fitted(OBJECTIVES["discounted"]).to_rule()
    with pytest.raises(InputError) as error:
        FeatureRule(rule.model, rule.objective, np.zeros((3, 2)))
    assert error.value.field == "reference"
    with pytest.raises(InputError) as error:
        rule.decide(people(1)[0], Offer(500, 0.8))
    assert error.value.code == "unsupported_offers"
    with pytest.raises(InputError) as error:
        rule.decide({"income": 5})
    assert (error.value.field, error.value.code) == ("features.pd", "missing")
    assert RowEncoding(COLUMNS).width == rule.reference.shape[1]


@pytest.mark.parametrize("name", ["discounted", "offers"])
def test_policies_are_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model = CalibratedScore("pd", trust=50) if name == "discounted" else None
    policy = fitted(OBJECTIVES[name], model, explore=0.1)
    known = people(20, 11)
    offers = MENU.offers_of(0)[0] if name == "offers" else None
    policy.observe(known, np.ones(20), np.arange(20) % 4 > 0)
    path = tmp_path / "policy.json"
    policy.save(path)
    again = FeaturePolicy.load(path)
    assert again.labels_ == 20
    assert again.to_rule().state() == policy.to_rule().state()
    new, chances = strangers(15, 12), np.random.default_rng(0).random(15)
    policy.decide(new, chances=chances, offers=offers)
    again.decide(new, chances=chances, offers=offers)
    assert again.log_ == policy.log_
    again.observe(new, [decision.accepted for decision in again.log_], np.ones(15), arrivals=again.latest_)
    assert again.pending_ == 0
    assert str(again.explain(new, offers)[0])
    document = json.loads(path.read_text())
    assert document["labels"] == 20
    assert document["model"] == ("calibrated" if model else "logistic")
    assert [column["name"] for column in document["columns"]] == ["income", "pd", "region"]


def test_documents_that_were_changed_are_rejected(tmp_path: Path) -> None:
    document = fitted(OBJECTIVES["discounted"]).to_rule().to_specification()
    assert FeatureRule.from_specification(document).to_specification() == document
    changed = {
        "objective": {**document["objective"], "cost": 0.7},
        "columns": document["columns"][:2],
        "labels": 7,
        "format": "something",
        "version": 2,
        "state_hash": "0" * 64,
        "state": document["state"][:-40],
    }
    for field, value in changed.items():
        with pytest.raises(InputError) as error:
            FeatureRule.from_specification({**document, field: value})
        assert error.value.code == "invalid_file"
    for state in (3, "no base64!", "AAAA"):
        with pytest.raises(InputError) as error:
            FeatureRule.from_specification({**document, "state": state})
        assert error.value.field == "state"
    (tmp_path / "broken.json").write_text("{")
    for name in ("broken.json", "missing.json"):
        with pytest.raises(InputError):
            FeaturePolicy.load(tmp_path / name)
    with pytest.raises(InputError):
        fitted(OBJECTIVES["discounted"]).save(tmp_path / "no folder" / "policy.json")


def test_exposure_limits_only_add_acceptances(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = world()

    def decisions(answer: bool | None) -> Any:
        if answer is not None:
            monkeypatch.setattr(ExposureLimits, "accept", lambda *_: answer)
        policy = FeaturePolicy(objective=Delayed(0.7, 50, 0.1, 0.2), random_state=0)
        policy.fit(X, np.where(np.arange(300) < 2, y, np.nan))
        return policy.decide(X[60:90])

    optimal, never, always = decisions(None), decisions(False), decisions(True)
    assert 0 < never.sum() <= optimal.sum() < always.sum() == 30  # whoever counts as prompt is accepted without limits
    assert np.all(optimal >= never)


def test_every_encoded_column_has_the_name_of_its_feature() -> None:
    declared = DeclaredFeatures(COLUMNS)
    rows = declared.fit_transform([{"income": 1.0, "pd": 0.1, "region": "north"}, {"pd": 0.2, "region": "east"}])
    names = declared.encoded_names()
    assert len(names) == rows.shape[1]
    assert names.count("income") >= 1
    assert names.count("region") >= 3
    assert names[-1] == "unseen categories"
    assert names == sorted(names, key=["income", "pd", "region", "unseen categories"].index)
