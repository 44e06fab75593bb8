"""Reasons of rejections by features: those of the library, in the lender's words, by the model that decided."""

from __future__ import annotations

import random
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines import Engine, Json
from lenience import Discounted
from lenience.models import BayesianLogistic, FeatureColumn, LiveLogistic, RowEncoding
from lenience.policies import FeatureRule
from lenience.policies.features.contributions import mean_log_odds
from lenience.service.domain.feature_models import Applicant, CalibratedModel, LogisticModel
from lenience.service.domain.feature_rule import applicant_principal_reasons
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.rule import BELOW, CAP, LIMIT, Verdict
from rejections import rejected
from serving import sqlite_file

COLUMNS = [
    FeatureColumn("income", minimum=0, maximum=100, unit="thousand USD"),
    FeatureColumn("debt", minimum=0, maximum=100),
    FeatureColumn("savings", minimum=0, maximum=100),
    FeatureColumn("years", minimum=0, maximum=100),
    FeatureColumn("rooms", minimum=0, maximum=100),
    FeatureColumn("region", "category", values=("north", "south")),
]
OBJECTIVE = Discounted(0.6, 0.95)
WORDING = {"income": "Your income is too low for this loan.", "debt": "You owe too much."}


def person(rng: random.Random) -> Json:
    numbers = {column.name: round(rng.uniform(0, 100), 1) for column in COLUMNS[:5]}
    return {**numbers, "region": rng.choice(["north", "south"])}


def chance(one: Json) -> float:
    rate = 0.5 + 0.006 * (one["income"] - one["debt"]) + 0.002 * (one["savings"] - one["years"])
    return float(min(max(rate, 0.0), 1.0))


def fitted() -> Json:
    encoding, rng = RowEncoding(COLUMNS), random.Random(0)
    past = [person(rng) for _ in range(150)]
    rows, outcomes = encoding.rows(past), [float(rng.random() < chance(one)) for one in past]
    model = BayesianLogistic().centre_on(OBJECTIVE.cost).spare(1).prepare(rows).learn(rows, outcomes)
    state = b64encode(LiveLogistic(COLUMNS, model.belief_).state()).decode()
    return {
        "type": "logistic",
        "columns": msgspec.to_builtins(COLUMNS),
        "state": state,
        "reference": past[:60],
        "reasons": WORDING,
    }


MODEL = fitted()
POOR: Json = {"income": 5, "debt": 95, "savings": 10, "years": 90, "rooms": 80, "region": "south"}
RICH: Json = {"income": 95, "debt": 5, "savings": 90, "years": 10, "rooms": 20, "region": "north"}


def make(engine: Engine, **changes: Any) -> Json:
    objective = msgspec.to_builtins(OBJECTIVE)
    return engine.create(**{"segments": [], "objective": objective, "model": MODEL, **changes})


def decide(engine: Engine, features: Json, **more: Any) -> Json:
    return engine.decide(None, features=features, **more)


def rule_now(engine: Engine) -> FeatureRule:
    return FeatureRule.from_state(b64decode(engine.queries.model("cards").state))


def codes(reasons: list[Any]) -> list[str]:
    return [one["code"] if isinstance(one, dict) else one.code for one in reasons]


def test_the_reasons_of_a_rejection_are_those_that_the_library_gives(engine: Engine) -> None:
    make(engine)
    rng, rejections = random.Random(1), 0
    for _ in range(12):
        rule, features = rule_now(engine), person(rng)
        decision, why = decide(engine, features), rule.explain(features, wording=WORDING)
        assert codes(decision["principal_reasons"]) == [f"feature:{one.column}" for one in why.reasons]
        for reason, one in zip(decision["principal_reasons"], why.reasons, strict=True):
            assert reason["text"] == WORDING.get(one.column or "", reason["text"])
            assert one.column in WORDING or (one.column or "") in reason["text"]
        if decision["decision"] == "accept":
            engine.outcome(decision["id"], "success" if rng.random() < chance(features) else "failure")
            assert decision["principal_reasons"] == []
        else:
            rejections += 1
            assert 1 <= len(decision["principal_reasons"]) <= 4
    assert rejections > 2
    assert codes(decide(engine, POOR)["principal_reasons"])[:2] in (
        ["feature:income", "feature:debt"],
        ["feature:debt", "feature:income"],
    )


def test_the_reasons_are_the_largest_effects_against_applicants_who_are_accepted(tmp_path: Path) -> None:
    """The oracle gives the applicant each feature of each accepted reference applicant, one at a time."""
    engine = Engine(sqlite_file(tmp_path))
    make(engine)
    rule, names = rule_now(engine), [column.name for column in COLUMNS]
    others = [one for one in MODEL["reference"] if rule.belief(one).mean > OBJECTIVE.cost]
    assert 5 < len(others) < len(MODEL["reference"]) - 5

    def log_odds(applicants: list[Json]) -> float:
        return float(mean_log_odds(rule.model.knowledge, RowEncoding(COLUMNS).rows(applicants)).mean())

    rng, compared = random.Random(3), 0
    for features in [POOR, *(person(rng) for _ in range(6))]:
        effects = {
            name: log_odds([features]) - log_odds([{**features, name: one[name]} for one in others]) for name in names
        }
        worst = [name for name in sorted(names, key=lambda name: effects[name]) if effects[name] < 0][:4]
        decision = decide(engine, features)
        if decision["decision"] == "reject":
            compared += 1
            assert codes(decision["principal_reasons"]) == [f"feature:{name}" for name in worst]
    assert compared > 2
    engine.close()


def test_a_decision_is_explained_by_the_model_that_made_it(engine: Engine) -> None:
    make(engine)
    engine.outcome(decide(engine, RICH)["id"], "success")
    before = rule_now(engine).explain(POOR, wording=WORDING)
    rejection = decide(engine, POOR)
    for _ in range(8):  # the model changes its mind
        engine.outcome(decide(engine, RICH)["id"], "failure")
    view = engine.queries.decision(rejection["id"])
    after = rule_now(engine).explain(POOR)
    assert view.contributions_at == "decision"
    assert [(one.feature, one.value) for one in view.contributions] == [
        (one.column, one.value) for one in before.contributions
    ]
    assert [one.log_odds for one in view.contributions] == pytest.approx([one.log_odds for one in before.contributions])
    assert view.contributions[0].log_odds != pytest.approx(after.contributions[0].log_odds, abs=1e-3)
    assert msgspec.to_builtins(view.principal_reasons) == rejection["principal_reasons"]
    engine.erase(rejection["id"])
    view = engine.queries.decision(rejection["id"])
    assert (view.contributions, view.contributions_at) == ([], None)
    assert codes(view.principal_reasons)[0] == "estimate_for_these_features"


def test_what_would_have_changed_it(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(engine)
    rng = random.Random(2)
    seen = set[str]()
    for _ in range(10):
        features = person(rng)
        why, decision = rule_now(engine).explain(features), decide(engine, features)
        texts = engine.queries.decision(decision["id"]).would_have_changed
        verb = "Reject" if decision["decision"] == "accept" else "Accept"
        assert [any(f"{verb} with {one.text}" in text for text in texts) for one in why.changes] == [True] * len(
            why.changes
        )
        if why.changes:
            seen.add(decision["decision"])
        waiting = [text for text in texts if "pending" in text]
        assert bool(waiting) == bool(decision["decision"] == "reject" and decision["pending"] and why.changes)
    assert seen == {"accept", "reject"}
    engine.close()


def test_with_offers(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(
        engine, objective={"type": "discounted", "offers": {"amount": [500, 5000], "cost": [0.6, 0.9]}, "discount": 0.9}
    )
    rule = rule_now(engine)
    for cost in (0.6, 0.9):
        decision = decide(engine, POOR, offer=OfferRequest(amount=5000, cost=cost))
        offer = OfferRequest(amount=5000, cost=cost).offer
        why = rule.explain(POOR, offer)
        assert codes(decision["principal_reasons"]) == [f"feature:{one.column}" for one in why.reasons]
        view = engine.queries.decision(decision["id"])
        assert codes(view.principal_reasons) == codes(decision["principal_reasons"])
        assert view.would_have_changed[: len(why.changes)] == [f"Accept with {one.text}." for one in why.changes]
    engine.close()


@pytest.mark.parametrize("gone", [False, True])
def test_the_model_now_explains_if_the_state_that_decided_is_gone(tmp_path: Path, gone: bool) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(engine)
    first, second = (decide(engine, RICH)["id"] for _ in range(2))
    engine.outcome(first, "failure")
    rejection = decide(engine, POOR)
    engine.outcome(second, "failure")
    if gone:  # the state after both labels is stored, so the one between them is not
        engine.erase(second)
    engine.erase(first)
    view = engine.queries.decision(rejection["id"])
    now = [one.log_odds for one in rule_now(engine).explain(POOR).contributions]
    assert view.contributions_at == ("now" if gone else "decision")
    assert ([one.log_odds for one in view.contributions] == pytest.approx(now, abs=1e-6)) == gone
    if gone:
        assert codes(view.principal_reasons)[0] == "estimate_for_these_features"
        assert not any(text.startswith("Accept with") for text in view.would_have_changed)
    else:
        assert msgspec.to_builtins(view.principal_reasons) == rejection["principal_reasons"]
    assert engine.audit().findings == []
    engine.close()


def test_answers_do_not_repeat_values(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(engine, model={name: value for name, value in MODEL.items() if name != "reasons"})
    reasons = decide(engine, {**POOR, "income": 1.2345, "debt": 98.765, "region": "Atlantis"})["principal_reasons"]
    assert {"feature:income", "feature:debt"} <= set(codes(reasons))
    assert not any(value in one["text"] for one in reasons for value in ("1.2345", "98.765", "Atlantis"))
    engine.close()


def test_limits_come_first_and_there_are_at_most_four(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(engine, constraints={"exposure_cap": 1}, waiting_list=True)
    decide(engine, RICH)
    waits, rejection = decide(engine, RICH), decide(engine, POOR)
    assert (waits["decision"], codes(waits["principal_reasons"])) == ("wait", ["exposure_cap_reached"])
    assert "treated differently" in waits["principal_reasons"][0]["text"]
    assert codes(rejection["principal_reasons"])[0].startswith("feature:")
    with engine.store.read() as connection:
        record = engine.registry.load(connection, "cards")
    rule, applicant = record.ruling().rules["all"], Applicant(8.0, 0.55, 0.9, 2.0)
    lowered_by = dict.fromkeys("abcd", "Too low.")

    def of(kind: str, lowered_by: dict[str, str]) -> list[str]:
        verdict = Verdict("reject", kind, None, 0.0, 0.5)
        return codes(applicant_principal_reasons(rule, applicant, verdict, 0.6, lowered_by))

    assert of(BELOW, lowered_by) == ["feature:a", "feature:b", "feature:c", "feature:d"]
    assert of(LIMIT, lowered_by) == ["exposure_limit_reached", "feature:a", "feature:b", "feature:c"]
    assert of(CAP, lowered_by) == ["exposure_cap_reached"]
    assert of(BELOW, {}) == ["estimate_for_these_features", "limited_experience_with_features"]
    assert of(LIMIT, {}) == ["exposure_limit_reached", "estimate_for_these_features"]
    engine.close()


def test_a_calibrated_score_can_be_a_reason(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    model = {"type": "calibrated", "score": "pd", "trust": 200, "reasons": {"pd": "Your credit score is too low."}}
    make(engine, model=model, objective={"type": "discounted", "cost": 0.9, "discount": 0.9})
    (reason,) = decide(engine, {"pd": 0.6})["principal_reasons"]
    assert (reason["code"], reason["text"]) == ("feature:pd", "Your credit score is too low.")
    engine.close()


def test_reasons_in_a_specification(tmp_path: Path) -> None:
    assert b"reasons" not in msgspec.json.encode(LogisticModel(COLUMNS)), "earlier specifications keep their text"
    assert b"reasons" not in msgspec.json.encode(CalibratedModel("pd"))
    with rejected("model.reasons", "unknown_name"):
        LogisticModel(COLUMNS, reasons={"incom": "Too low."})
    with rejected("model.reasons", "unknown_name"):
        CalibratedModel("pd", reasons={"income": "Too low."})
    engine = Engine(sqlite_file(tmp_path))
    for wrong in ({"wealth": "Too low."}, {"income": ""}, {"income": 5}):
        with pytest.raises((BadRequest, msgspec.ValidationError)):
            make(engine, model={**MODEL, "reasons": wrong})
    engine.close()
