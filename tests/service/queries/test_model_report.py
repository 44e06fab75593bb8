"""Reports on a version's model, and shadow versions compared with the active one, from the log."""

from __future__ import annotations

import random
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scipy.special import expit

from engines import Engine, Json
from lenience.policies import FeatureRule
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.outcomes import OutcomeItem, RecordOutcomes
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.problems import NotFound
from lenience.service.domain.receipts import make_sender
from lenience.service.queries import model_report
from lenience.service.queries.reading import Filters
from serving import sqlite_file

COLUMNS: list[Json] = [
    {"name": "income", "minimum": 0, "maximum": 100, "unit": "thousand USD"},
    {"name": "region", "type": "category", "values": ["north", "south"]},
]
OBJECTIVE: Json = {"type": "discounted", "cost": 0.6, "discount": 0.9}
LOGISTIC: Json = {"type": "logistic", "columns": COLUMNS}


def person(rng: random.Random, most: float = 100.0) -> Json:
    return {"income": round(rng.uniform(0, most), 1), "region": rng.choice(["north", "south", "west"])}


def decide(engine: Engine, policy: str, people: list[Json], **more: Any) -> list[Json]:
    """Decide applicants at once, and return the decisions with their features."""
    asked = [DecisionRequest(features=features, **more) for features in people]
    made = engine.call(Decide(make_sender("tester", None, policy, asked), policy, asked, False))["decisions"]
    return [{**one, "features": features} for one, features in zip(made, people, strict=True)]


def record(engine: Engine, outcomes: dict[str, bool]) -> None:
    """Record outcomes at once."""
    if not outcomes:
        return
    items = [OutcomeItem(id=one, outcome="success" if good else "failure") for one, good in outcomes.items()]
    engine.call(RecordOutcomes(make_sender("tester", None, "outcomes", items), items))


def live(
    engine: Engine, rounds: int, policy: str, seed: int = 0, most: float = 100.0, least_known: float = 0.0, **more: Any
) -> list[Json]:
    """Decide applicants by twenties, record the outcomes of half of the accepted, and return the decisions."""
    rng, made = random.Random(seed), list[Json]()
    for _ in range(0, rounds, 20):
        batch = decide(engine, policy, [person(rng, most) for _ in range(20)], **more)
        known = [one for one in batch if one["decision"] == "accept" and one["features"]["income"] > least_known]
        record(engine, {one["id"]: rng.random() < 0.2 + 0.007 * one["features"]["income"] for one in known[::2]})
        made += batch
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, list[Json]]]:
    """Two policies by features: one started without data, one with reference rows after which incomes fell."""
    engine = Engine(sqlite_file(tmp_path_factory.mktemp("reports")))
    engine.create(name="fresh", segments=[], objective=OBJECTIVE, model=LOGISTIC)
    made = live(engine, 160, "fresh")
    rng = random.Random(9)
    known: Json = {**LOGISTIC, "reference": [{**person(rng), "region": "north"} for _ in range(120)]}
    engine.create(name="known", segments=[], objective=OBJECTIVE, model=known)
    live(engine, 80, "known", seed=1, most=50.0)
    yield engine, made
    assert engine.audit().findings == []
    engine.close()


def test_bands_count_every_decision_and_outcome(served: tuple[Engine, list[Json]]) -> None:
    engine, made = served
    report = engine.queries.report("fresh")
    assert (report.model, report.decisions, report.version) == ("logistic", 160, 1)
    assert sum(band.applicants for band in report.bands) == 160
    means = [one["belief"]["s"] / one["belief"]["n"] for one in made]
    band = report.bands[-1]
    inside = [one for one, mean in zip(made, means, strict=True) if band.low <= mean < band.high]
    assert band.applicants == len(inside)
    assert band.accepted == sum(one["decision"] == "accept" for one in inside)
    learnt = sum(one["rule"] == "worth_learning" for one in made)
    assert sum(each.to_learn for each in report.bands) == learnt
    assert report.outcomes == sum(band.outcomes for band in report.bands) > 0
    assert engine.queries.report("fresh") is report  # until something happens


def test_effects_are_those_of_the_explanations(
    served: tuple[Engine, list[Json]], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, made = served
    rule = FeatureRule.from_state(b64decode(engine.queries.model("fresh").state))
    moved: dict[str, list[float]] = {"income": [], "region": []}
    for one in made[-10:]:
        explained = rule.explain(one["features"])
        assert explained.log_odds is not None
        for each in explained.contributions:
            moved[each.column].append(abs(expit(explained.log_odds) - expit(explained.log_odds - each.log_odds)))
    monkeypatch.setattr(model_report, "EXPLAINED", 10)
    engine.queries._reports.clear()
    effects = {one.feature: one for one in engine.queries.report("fresh").effects}
    assert {name: one.points for name, one in effects.items()} == pytest.approx(
        {name: sum(values) / 10 for name, values in moved.items()}
    )
    assert (effects["income"].rises, effects["region"].rises) == (True, None)


def test_drift_compares_with_the_versions_own_data(served: tuple[Engine, list[Json]]) -> None:
    engine, _ = served
    report = engine.queries.report("known")
    drift = {one.feature: one for one in report.drift}
    assert report.compared_with.startswith("120 applicants")
    assert (drift["income"].change, drift["region"].change) == ("much", "much")
    assert drift["region"].unknown == pytest.approx(1 / 3, abs=0.15)


def test_a_version_without_data_is_compared_with_its_first_applicants(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create(name="fresh", segments=[], objective=OBJECTIVE, model=LOGISTIC)
    assert engine.queries.report("fresh").bands == []
    live(engine, 200, "fresh")
    assert engine.queries.report("fresh").drift == []  # nobody came after the first ones
    live(engine, 60, "fresh", seed=1)
    assert [one.change for one in engine.queries.report("fresh").drift] == ["none", "none"]
    last = live(engine, 80, "fresh", seed=2, most=30.0)
    report = engine.queries.report("fresh")
    assert report.compared_with == "the first 200 applicants"
    assert {one.feature: one.change for one in report.drift}["income"] == "much"
    for one in last[:3]:
        engine.erase(one["id"])
    report = engine.queries.report("fresh")
    assert (report.without_features, report.decisions) == (3, 340)
    engine.close()


def test_regions_without_outcomes(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create(name="fresh", segments=[], objective=OBJECTIVE, model=LOGISTIC)
    made = live(engine, 120, "fresh", seed=3, least_known=40.0)
    region = next(one for one in engine.queries.report("fresh").regions if one.features == ["income"])
    assert region.where.startswith("Income below")
    poor = [one for one in made if one["features"]["income"] <= 40]
    assert region.applicants >= 0.6 * len(poor)
    assert region.accepted == sum(one["decision"] == "accept" for one in poor) or region.applicants != len(poor)
    engine.close()


def test_pooled_versions_have_bands_and_segments_without_outcomes(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create(segments=["a", "b"], objective=OBJECTIVE, model={"type": "shared"})
    made = engine.batch(["a", "b"] * 12)
    record(engine, {one["id"]: True for one in made if one["segment"] == "a"})
    report = engine.queries.report("cards")
    assert (report.model, report.decisions, report.outcomes) == ("shared", 24, 12)
    assert [region.where for region in report.regions] == ["B"]
    assert (report.effects, report.drift) == ([], [])
    with pytest.raises(NotFound):
        engine.queries.report("cards", 7)
    engine.close()


def test_a_challenger_by_features_is_compared_in_money(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    offers = {"amount": [1000.0], "cost": [0.6], "currency": "$"}
    objective = {"type": "discounted", "offers": offers, "discount": 0.9}
    engine.create(name="loans", segments=["a", "b"], objective=objective)
    assert engine.queries.shadows("loans").shadows == []
    engine.create(name="loans", segments=[], objective=objective, model=LOGISTIC, activate=False)
    engine.state("loans", "shadow", 2)
    live(engine, 40, "loans", seed=4, segment="a", offer=OfferRequest(amount=1000.0, cost=0.6))
    (result,) = engine.queries.shadows("loans").shadows
    assert (result.model, result.active_model, result.currency) == ("logistic", "own", "$")
    assert result.decisions == result.both_accept + result.both_reject + result.only_active + result.only_shadow == 40
    views = [
        engine.queries.decision(one.id) for one in engine.queries.page(Filters(policy="loans"), None, 100).decisions
    ]
    assert result.only_active == sum(
        view.decision == "accept" and view.shadows[0].decision == "reject" for view in views
    )
    # The expected profits by a version's own estimates are those that the decisions state.
    own = sum(view.expected_profit or 0.0 for view in views if view.decision == "accept")
    assert result.expected[0].active == pytest.approx(own)
    shadow = sum(view.shadows[0].expected_profit or 0.0 for view in views if view.shadows[0].decision == "accept")
    assert result.expected[1].shadow == pytest.approx(shadow)
    known = [view.profit for view in views if view.decision == "accept" and view.shadows[0].decision == "reject"]
    assert result.observed.profit == pytest.approx(sum(profit for profit in known if profit is not None))
    # The page of the shadow version shows its own estimates.
    report = engine.queries.report("loans", 2)
    assert (report.decisions, report.model) == (40, "logistic")
    assert engine.audit().findings == []
    engine.close()


def test_explanations_add_up_and_say_the_evidence(served: tuple[Engine, list[Json]]) -> None:
    engine, made = served
    most = max(made, key=lambda one: one["belief"]["n"])
    view = engine.queries.decision(most["id"])
    assert view.log_odds is not None
    assert view.reference_log_odds is not None
    total = sum(one.log_odds for one in view.contributions)
    assert total == pytest.approx(view.log_odds - view.reference_log_odds, abs=1e-9)
    assert f"{round(most['belief']['n']):,} similar outcome" in (view.evidence or "")
