"""Decisions by features: the library's own, replayed from the log, with features that can be erased."""

from __future__ import annotations

import random
import uuid
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, text

from engines import SQLITE, Engine, Json
from lenience import Belief, Discounted, Offers
from lenience.models import BayesianLogistic, FeatureColumn, LiveLogistic, RowEncoding
from lenience.policies import FeatureRule
from lenience.service.commands import decide as decide_command
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.outcomes import Change
from lenience.service.domain.feature_models import FeatureModel, LogisticModel, first_state
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.pooled_models import ModelLabel
from lenience.service.domain.problems import BadRequest, Conflict
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification, Record
from lenience.service.queries.audit import audit_connection
from lenience.service.storage import ledger, schema
from lenience.service.storage.writer import QueuedCommand
from rejections import rejected
from serving import LATE, Postgres, sqlite_file

COLUMNS: list[Json] = [
    {"name": "income", "minimum": 0, "maximum": 100, "unit": "thousand USD"},
    {"name": "region", "type": "category", "values": ["north", "south"]},
]
LOGISTIC: Json = {"type": "logistic", "columns": COLUMNS}
OBJECTIVE: Json = {"type": "discounted", "cost": 0.7, "discount": 0.99}
LATE_OFFERS: Json = {
    "type": "delayed", "offers": {"amount": [500, 5000], "cost": [0.7, 0.7]}, "arrivals": 40, "discount_rate": 0.2,
    "label_delay": 0.5,
}  # fmt: skip


def make(engine: Engine, model: Json = LOGISTIC, **changes: Any) -> Json:
    return engine.create(**{"segments": [], "objective": OBJECTIVE, "model": model, **changes})


def person(rng: random.Random) -> Json:
    return {"income": round(rng.uniform(0, 100), 1), "region": rng.choice(["north", "south", "west"])}


def decide(engine: Engine, features: Json, **more: Any) -> Json:
    return engine.decide(None, features=features, **more)


def repaid(features: Json, rng: random.Random) -> str:
    return "success" if rng.random() < 0.4 + 0.005 * features["income"] else "failure"


def live(engine: Engine, rounds: int, seed: int = 0, known: float = 0.8, **more: Any) -> list[Json]:
    """Decide applicants and record outcomes; return the decisions with their features and outcomes."""
    rng, made = random.Random(seed), []
    for i in range(rounds):
        features = person(rng)
        decision = decide(engine, features, reference=f"person {seed}/{i}", **more)
        outcome = repaid(features, rng)
        if decision["decision"] == "accept" and rng.random() < known:
            engine.outcome(decision["id"], outcome)
            decision["outcome"] = outcome
        made.append({**decision, "features": features})
    return made


@pytest.mark.parametrize(
    ("objective", "offer"),
    [(OBJECTIVE, None), ({"type": "horizon", "cost": 0.7, "horizon": 200}, None), (LATE["objective"], None),
     ({"type": "discounted", "offers": {"amount": [500, 5000], "cost": [0.7, 0.7]}, "discount": 0.99}, 500),
     (LATE_OFFERS, 500)],
    ids=["discounted", "horizon", "late", "offers", "late offers"],
)  # fmt: skip
def test_decisions_are_those_of_the_library_bit_for_bit(tmp_path: Path, objective: Json, offer: float | None) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(engine, objective=objective)
    spec = msgspec.convert({"name": "x", "objective": objective, "model": LOGISTIC}, PolicySpecification)
    assert isinstance(spec.model, LogisticModel)
    rule = FeatureRule.from_state(b64decode(first_state(spec.model, spec.objective, 0.0)))
    rng = random.Random(1)
    pending: dict[str, Json] = {}
    for arrival in range(25):
        features = person(rng)
        more: Json = {} if offer is None else {"offer": OfferRequest(amount=offer, cost=0.7)}
        decision = decide(engine, features, **more)
        menu = None if offer is None else Offers.menu([offer], [0.7])
        same = rule.decide(features, menu, list(pending.values()), arrival)
        assert (decision["decision"] == "accept") == same.accepted
        assert (decision["belief"]["n"], decision["probability"]) == (same.n, same.propensity)
        assert decision["belief"]["s"] == same.n * same.mean
        if same.accepted:
            pending[decision["id"]] = features
        for identity in list(pending)[: max(len(pending) - 3, 0)]:
            outcome = repaid(pending[identity], rng)
            engine.outcome(identity, outcome)
            rule.observe(pending.pop(identity), outcome == "success")
    assert engine.audit().findings == []
    engine.close()


BY_AMOUNT: Json = {"type": "discounted", "offers": {"amount": [500, 5000], "cost": [0.7, 0.7]}, "discount": 0.99}


@pytest.mark.parametrize(
    ("objective", "more"),
    [(OBJECTIVE, {"exploration_floor": 0.3, "exposure_cap": 9}),
     (LATE["objective"], {}),
     ({"type": "horizon", "cost": 0.7, "horizon": 20}, {}),
     (BY_AMOUNT, {"exposure_cap_amount": 9000})],
    ids=["discounted", "late", "horizon", "offers"],
)  # fmt: skip
def test_a_batch_decides_as_single_requests_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: Json, more: Json
) -> None:
    """Bit for bit, with a shadow version next to it: in two databases with the same ids."""
    rng = random.Random(9)
    menu = [OfferRequest(amount=500, cost=0.7), OfferRequest(amount=5000, cost=0.7)]
    offers: Json = {"offers": menu} if "offers" in objective else {}
    people = [DecisionRequest(features=person(rng), reference="x", **offers) for _ in range(24)]
    answers: list[list[Json]] = []
    for parts in ([people], [[one] for one in people]):
        ids = (str(uuid.UUID(int=i)) for i in range(1000))
        monkeypatch.setattr(decide_command, "new_id_and_salt", lambda now, ids=ids: (next(ids), "0" * 32))
        engine = Engine(sqlite_file(tmp_path), clock=lambda: 1_700_000_000_000_000)
        make(engine, objective=objective, constraints=more)
        make(engine, objective=objective, activate=False)
        engine.state("cards", "shadow", 2)
        sender = make_sender("tester", None, "", "")
        made = [one for part in parts for one in engine.call(Decide(sender, "cards", part, False))["decisions"]]
        for one in made[:12]:
            if one["decision"] == "accept":
                engine.outcome(one["id"], "failure")
        made += [one for part in parts for one in engine.call(Decide(sender, "cards", part, False))["decisions"]]
        with engine.store.read() as connection:
            bodies = connection.scalars(select(schema.event.c.body).where(schema.event.c.body.contains("decision")))
            made += [msgspec.json.decode(body) for body in bodies]
        assert engine.audit().findings == []
        engine.close()
        answers.append(made)
    assert answers[0] == answers[1]
    assert len({one["decision"] for one in answers[0][:48]}) == 2


def test_a_calibrated_score_starts_from_what_the_score_says(engine: Engine) -> None:
    make(engine, {"type": "calibrated", "score": "pd", "trust": 200}, objective={**OBJECTIVE, "cost": 0.9})
    good, bad = (decide(engine, {"pd": pd}) for pd in (0.02, 0.5))
    assert good["belief"]["s"] / good["belief"]["n"] == pytest.approx(0.98, abs=0.02)
    assert bad["belief"]["s"] / bad["belief"]["n"] == pytest.approx(0.5, abs=0.05)
    assert (good["decision"], bad["decision"]) == ("accept", "reject")
    engine.outcome(good["id"], "success")
    with pytest.raises(BadRequest) as problem:
        decide(engine, {"pd": 2.0})
    assert (problem.value.field, problem.value.code) == ("features.pd", "invalid_value")
    assert "0 to 1" in str(problem.value.allowed)
    with pytest.raises(BadRequest) as problem:
        decide(engine, {})
    assert (problem.value.field, problem.value.code) == ("features.pd", "missing")


def test_similar_applicants_pending_limit_an_offer(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(engine, {"type": "calibrated", "score": "pd", "trust": 20}, objective=LATE_OFFERS)
    asked = {"pd": 0.36}
    first = decide(engine, asked, offer=OfferRequest(amount=1, cost=0.7))
    short = 0.7 - first["belief"]["s"] / first["belief"]["n"]
    asks = OfferRequest(amount=0.8 * first["label_value"]["lower"] / short, cost=0.7)  # it loses 80% of the label
    made = [decide(engine, asked, offer=asks) for _ in range(25)]
    accepted = [one["decision"] == "accept" for one in made]
    assert accepted[0]
    assert accepted == sorted(accepted, reverse=True)
    held = made[accepted.index(False)]
    assert held["rule"] == "exposure_limit"
    assert held["principal_reasons"][0]["code"] == "exposure_limit_reached"
    assert decide(engine, asked, offer=OfferRequest(amount=1, cost=0.7))["decision"] == "accept"
    assert decide(engine, asked, offer=OfferRequest(amount=1e7, cost=0.7))["rule"] == "below_threshold"
    for one in (first, *made[: accepted.index(False)]):
        engine.outcome(one["id"], "success")
    assert decide(engine, asked, offer=asks)["decision"] == "accept"
    assert engine.audit().findings == []
    engine.close()


def test_requests_with_missing_unknown_or_wrong_features(engine: Engine) -> None:
    make(engine)
    assert decide(engine, {"region": "north"})["warnings"] == []
    assert decide(engine, {"income": None, "region": "north"})["warnings"] == []
    (warning,) = decide(engine, {"income": 5, "region": "Atlantis"})["warnings"]
    assert "region" in warning
    assert "Atlantis" not in warning
    for features, field in (
        ({"income": 1000, "region": "north"}, "features.income"),
        ({"income": "much"}, "features.income"),
        ({"age": 30}, "features"),
    ):
        with pytest.raises(BadRequest) as problem:
            decide(engine, features)
        assert problem.value.field is not None
        assert problem.value.field.startswith(field)
    with pytest.raises(BadRequest) as problem:
        engine.decide(None)
    assert (problem.value.field, problem.value.code) == ("features", "missing")
    with pytest.raises(BadRequest) as problem:
        engine.decide("young", features={"income": 5})
    assert problem.value.field == "segment"


def test_caps_count_and_reasons_say_so(engine: Engine) -> None:
    make(engine, constraints={"exposure_cap": 1})
    first, second = decide(engine, {"income": 90}), decide(engine, {"income": 90})
    assert (first["decision"], second["decision"], second["rule"]) == ("accept", "reject", "exposure_cap")
    assert [one["code"] for one in second["principal_reasons"]] == ["exposure_cap_reached"]
    view = engine.queries.decision(second["id"])
    assert view.features == {"income": 90.0}
    assert view.belief is not None
    assert view.belief.n == second["belief"]["n"]
    assert view.would_have_changed


@SQLITE
def test_a_cap_in_money_holds_if_the_request_names_no_offer(engine: Engine) -> None:
    menu = {"amount": [400, 2000], "cost": [0.3, 0.3], "menus": [0, 0]}  # they lose 120 and 600
    objective = {"type": "discounted", "offers": menu, "discount": 0.99}
    make(engine, objective=objective, constraints={"exposure_cap_amount": 800})
    made = [decide(engine, {"income": 90}) for _ in range(3)]
    assert [(one["decision"], one["rule"], one["offer"]["amount"]) for one in made] == [
        ("accept", "above_break_even", 2000.0),
        ("accept", "above_break_even", 400.0),
        ("reject", "exposure_cap_amount", 2000.0),
    ]
    engine.outcome(made[0]["id"], "success")
    assert decide(engine, {"income": 90})["offer"]["amount"] == 2000.0
    assert engine.audit().findings == []


def test_a_correction_is_close_to_having_known_the_right_outcome() -> None:
    spec = LogisticModel([FeatureColumn("x", minimum=0.0, maximum=1.0)])
    model = FeatureModel(spec, first_state(spec, Discounted(0.7, 0.99), 0.0))
    rng, right, wrong = random.Random(3), model.start({}), model.start({})
    people = [(f'{{"x":{rng.random():.3f}}}', rng.random() < 0.7) for _ in range(80)]
    mistaken = (7, 40, 77)
    for i, (inputs, good) in enumerate(people):
        right = model.learn(right, ModelLabel("all", int(good), int(not good), inputs))
        seen = good != (i in mistaken)
        wrong = model.learn(wrong, ModelLabel("all", int(seen), int(not seen), inputs))
    off = abs(wrong.rule.belief({"x": 0.4}).mean - right.rule.belief({"x": 0.4}).mean)
    for i in mistaken:
        inputs, good = people[i]
        step = 1 if good else -1
        wrong = model.learn(wrong, ModelLabel("all", step, -step, inputs, learnt_at=1))
    corrected = abs(wrong.rule.belief({"x": 0.4}).mean - right.rule.belief({"x": 0.4}).mean)
    assert corrected < off / 10
    assert wrong.rule.decide({"x": 0.4}).threshold == pytest.approx(right.rule.decide({"x": 0.4}).threshold, abs=0.01)


def test_what_was_not_learnt_is_not_corrected() -> None:
    spec = LogisticModel([FeatureColumn("x", minimum=0.0, maximum=1.0)])
    model = FeatureModel(spec, first_state(spec, Discounted(0.7, 0.99), 0.0))
    state = model.start({}, at=10)
    assert model.learn(state, ModelLabel("all", 1, -1, '{"x":0.5}', learnt_at=9)) is state
    assert model.learn(state, ModelLabel("all", 1, -1, '{"x":0.5}')) is state
    assert model.learn(state, ModelLabel("all", 1, 0)) is state
    moved = model.learn(state, ModelLabel("all", 1, 0, '{"x":0.5}'))
    assert moved.digest() != state.digest() == model.start({}).digest()
    assert model.restore(moved.encode()).digest() == moved.digest() == model.digest_of(moved.encode())


def test_a_version_starts_from_a_fitted_model(engine: Engine) -> None:
    columns = msgspec.convert(COLUMNS, list[FeatureColumn])
    encoding, rng = RowEncoding(columns), random.Random(0)
    past = [person(rng) for _ in range(60)]
    rows, outcomes = encoding.rows(past), [float(repaid(one, rng) == "success") for one in past]
    fitted = BayesianLogistic().centre_on(0.7).spare(1).prepare(rows).learn(rows, outcomes)
    model = LiveLogistic(columns, fitted.belief_)
    make(engine, {**LOGISTIC, "state": b64encode(model.state()).decode(), "reference": past[:20]})
    belief = model.belief({"income": 50, "region": "south"})
    answer = decide(engine, {"income": 50, "region": "south"})["belief"]
    assert (answer["n"], answer["s"]) == (belief.n, belief.n * belief.mean)
    other = LiveLogistic(columns[:1], BayesianLogistic().prepare(rows[:, :1]).belief_)
    for state in ("A", b64encode(b"nonsense").decode(), b64encode(other.state()).decode()):
        with pytest.raises(BadRequest):
            make(engine, {**LOGISTIC, "state": state})


def test_a_challenger_by_features_runs_next_to_segments(engine: Engine) -> None:
    engine.create(objective=OBJECTIVE)
    make(engine, activate=False)
    engine.state("cards", "shadow", 2)
    rng = random.Random(5)
    for i in range(12):
        decision = engine.decide("young" if i % 2 else "old", features=person(rng))
        if decision["decision"] == "accept":
            engine.outcome(decision["id"], "success" if i % 3 else "failure")
    view = engine.queries.decision(decision["id"])
    assert [shadow.version for shadow in view.shadows] == [2]
    assert engine.queries.decision(engine.decide("young")["id"]).shadows == []
    engine.state("cards", "active", 2)
    assert decide(engine, person(rng))["policy_version"] == 2
    live(engine, 5)


def test_two_processes_learn_in_one_order(postgres: Postgres) -> None:
    database = postgres.emptied()
    one, two = Engine(database), Engine(database)
    make(one)
    rng = random.Random(2)
    for i in range(10):
        deciding, recording = (one, two) if i % 2 else (two, one)
        features = person(rng)
        decision = decide(deciding, features)
        if decision["decision"] == "accept":
            recording.outcome(decision["id"], repaid(features, rng))
    assert decide(one, {"income": 50})["belief"] == decide(two, {"income": 50})["belief"]
    assert one.audit().findings == []
    two.close()
    one.close()


def test_random_lives_pass_the_audit_and_tampering_is_found(
    database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Decisions, outcomes, corrections, expiries, overrides, erasures and restarts in random order."""
    monkeypatch.setattr(ledger, "SNAPSHOT_EVERY", 7)
    rng = random.Random(11)
    engine = Engine(database)
    make(engine, constraints={"exploration_floor": 0.2})
    made: list[str] = []
    erased: set[str] = set()
    for _ in range(90):
        step = rng.random()
        status = {} if not made else {row.id: row.status for row in _decisions(engine)}
        if step < 0.4 or not made:
            made.append(decide(engine, person(rng), reference="someone")["id"])
        elif step < 0.72:
            pending = [one for one in made if status[one] in ("pending", "expired")]
            if pending:
                engine.outcome(rng.choice(pending), rng.choice(["success", "failure"]))
        elif step < 0.8:
            known = [one for one in made if status[one] in ("success", "failure")]
            if known:
                chosen = rng.choice(known)
                engine.correct(chosen, "failure" if status[chosen] == "success" else "success")
        elif step < 0.84:
            waiting = [one for one in made if status[one] == "pending"]
            if waiting:
                engine.give_up(rng.choice(waiting))
        elif step < 0.87:
            rejections = [one for one in made if status[one] == "rejected"]
            if rejections:
                engine.override(rng.choice(rejections), "accept")
        elif step < 0.96:
            chosen = rng.choice(made)
            erased.add(chosen)
            engine.erase(chosen)
        else:
            engine.close()
            engine = Engine(database)
    report = engine.audit()
    assert report.findings == []
    assert report.decisions_not_recomputed >= len(erased)
    labels = _labels(engine)
    relearnt = sum('"relearnt":true' in body for body in _label_events(engine).values())
    assert relearnt > 0
    assert report.labels_not_recomputed <= sum(decision in erased for decision in labels) + relearnt
    _tamper(engine, rng)
    engine.close()


def _decisions(engine: Engine) -> list[Any]:
    with engine.store.read() as connection:
        return list(connection.execute(select(schema.decision)).all())


def _label_events(engine: Engine) -> dict[int, str]:
    events = schema.event
    with engine.store.read() as connection:
        rows = connection.execute(select(events).where(events.c.body.startswith('{"kind":"label"'))).all()
    return {row.seq: row.body for row in rows}


def _labels(engine: Engine) -> list[str]:
    return [msgspec.json.decode(body)["decision"] for body in _label_events(engine).values()]


def _tamper(engine: Engine, rng: random.Random) -> None:
    """Change one thing after the other; the audit must name the place each time."""
    with engine.store.read() as connection:
        states = connection.execute(select(schema.model_state)).all()
        people = connection.execute(select(schema.personal).where(schema.personal.c.details.is_not(None))).all()
        labels = connection.execute(select(schema.event).where(schema.event.c.body.startswith('{"kind":"label"'))).all()
    kept = rng.choice(states)
    given = next(row for row in people if "income" in row.details)
    label = rng.choice(labels)
    changes = [
        ("UPDATE model_state SET body = replace(body, 'A', 'B') WHERE seq = :seq", {"seq": kept.seq}, "model state"),
        ("UPDATE model_state SET body = '9' || body WHERE seq = :seq", {"seq": kept.seq}, "model state"),
        ("UPDATE model_state SET revised = replace(revised, 'A', 'B') WHERE revised IS NOT NULL", {}, "model state"),
        (
            "UPDATE personal SET details = :other WHERE chain_id = :chain AND seq = :seq",
            {"chain": given.chain_id, "seq": given.seq, "other": '{"income":1.0}'},
            f"event {given.seq} of segment",
        ),
        (
            "UPDATE event SET body = replace(body, :old, :new) WHERE chain_id = :chain AND seq = :seq",
            {"chain": label.chain_id, "seq": label.seq, "old": '"segment":"all"', "new": '"segment":"any"'},
            f"event {label.seq} of policy",
        ),
        (
            "DELETE FROM event WHERE chain_id = :chain AND seq = :seq",
            {"chain": label.chain_id, "seq": label.seq},
            "cards",
        ),
    ]
    for statement, values, place in changes:
        with engine.store.write() as connection:
            changed = connection.execute(text(statement), values).rowcount
            report = audit_connection(connection, "test")
            connection.rollback()
        assert not changed or any(place in finding.where for finding in report.findings), (statement, report.findings)


def test_the_states_of_erased_labels_are_kept_and_needed(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    make(engine)
    known = [one for one in live(engine, 14, known=1.0) if "outcome" in one]
    assert len(known) > 6
    for one in (known[1], known[5], known[4]):  # the last two are learnt one after the other
        engine.erase(one["id"])
    report = engine.audit()
    assert (report.findings, report.labels_not_recomputed) == ([], 3)
    with engine.store.read() as connection:
        stored = connection.execute(select(schema.model_state).order_by(schema.model_state.c.seq)).all()
    assert len(stored) == 3, "the start, one for the first label, and one for the two that follow each other"
    before = decide(engine, {"income": 50})["belief"]
    for row in stored[1:]:
        with engine.store.write() as connection:
            connection.execute(text("DELETE FROM model_state WHERE seq = :seq"), {"seq": row.seq})
            report = audit_connection(connection, "test")
            connection.rollback()
        assert [finding.what for finding in report.findings] == [
            "the model state of version 1 before it was not stored"
        ]
    engine.close()
    engine = Engine(str(tmp_path / Path(engine.database).name))
    assert decide(engine, {"income": 50})["belief"] == before
    engine.outcome(known[0]["id"], known[0]["outcome"])
    engine.close()


def test_an_outcome_after_the_erasure_teaches_nothing(engine: Engine) -> None:
    make(engine)
    first, second, third = (decide(engine, {"income": 90}, reference="someone")["id"] for _ in range(3))
    engine.erase(second)
    engine.outcome(first, "success")
    before = decide(engine, {"income": 90})
    engine.outcome(second, "failure")
    assert decide(engine, {"income": 90})["belief"] == before["belief"]
    engine.outcome(third, "success")
    engine.erase(first)  # the next label is also erased, but no state was stored after it
    assert engine.audit().labels_not_recomputed == 1


@pytest.mark.parametrize("field", ["segments", "prior", "history"])
def test_settings_that_a_model_by_features_cannot_have(field: str) -> None:
    settings: Json = {"segments": ["a"], "prior": Belief(4, 3), "history": {"all": Record(1, 1)}}
    model = msgspec.convert(LOGISTIC, LogisticModel)
    with rejected(field, "conflicting_fields"):
        PolicySpecification("x", Discounted(0.7, 0.9), model=model, **{field: settings[field]})


def test_a_prior_needs_ranges(engine: Engine) -> None:
    with pytest.raises(BadRequest) as problem:
        make(engine, {"type": "logistic", "columns": [{"name": "income"}]})
    assert problem.value.field == "model.columns.income"


def test_a_protected_feature_needs_consent(engine: Engine) -> None:
    model = {"type": "logistic", "columns": [{"name": "sex", "type": "category", "values": ["f", "m"]}]}
    with pytest.raises(BadRequest) as problem:
        make(engine, model)
    assert (problem.value.field, problem.value.code) == ("model.columns", "decides_by_protected")
    assert make(engine, model, decide_by_protected=True)["version"] == 1


def test_the_model_of_a_version_can_be_downloaded(engine: Engine) -> None:
    make(engine)
    live(engine, 6, known=1.0)
    answer = engine.queries.model("cards")
    rule = FeatureRule.from_state(b64decode(answer.state))
    assert rule.state_hash() == answer.digest
    decision = decide(engine, {"income": 40})
    assert rule.decide({"income": 40}).n == decision["belief"]["n"]
    engine.create(name="plain")
    with pytest.raises(Conflict) as conflict:
        engine.queries.model("plain")
    assert conflict.value.code == "no_feature_model"
    engine.state("cards", "retired")
    assert engine.queries.model("cards").version == 1


@SQLITE
@pytest.mark.parametrize("kinds", ["EO", "OE", "EOoe", "oEOe", "OECoe"])
def test_an_erasure_and_labels_in_one_transaction(engine: Engine, kinds: str) -> None:
    """In any order: a model has not learned from features that were erased before the label."""
    make(engine)
    first, second = (decide(engine, {"income": income, "region": "north"})["id"] for income in (90, 80))
    kind: dict[str, Any] = {"E": "erasure", "O": "outcome", "C": "correction"}
    commands = [
        Change(
            make_sender("tester", None, "", ""),
            second if each.islower() else first,
            kind[each.upper()],
            {"O": "success", "C": "failure"}.get(each.upper()),  # type: ignore[arg-type]
        )
        for each in kinds
    ]
    results = engine.writer._write([QueuedCommand(command, lambda result: None) for command in commands])
    assert [getattr(result, "status", result) for result in results] == [200] * len(kinds)
    assert engine.audit().findings == []
    engine.registry.forget()
    decide(engine, {"income": 50, "region": "south"})  # the state that a restart reads is the one in the log
