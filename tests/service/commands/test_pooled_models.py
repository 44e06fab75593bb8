"""Segments that learn from each other: beliefs, thresholds, states, restarts, several processes, and the audit."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, text

from engines import Engine, Json
from lenience import Belief, Discounted, FiniteHorizon
from lenience.models.curve import Curve
from lenience.models.protocol import Model, beliefs
from lenience.models.shared import Shared
from lenience.service.domain.events import Learned, read, write
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.overall import Capacity
from lenience.service.domain.pooled_models import Borrowed, CurveModel, ModelLabel, PooledModel, SharedModel
from lenience.service.domain.problems import Conflict
from lenience.service.domain.specification import PolicySpecification, Record, SegmentSpec
from lenience.service.storage import ledger, schema
from lenience.solvers.stopping.solve import DiscountedProblem
from lenience.solvers.stopping.threshold import enclose_threshold
from portfolios import import_rows, rows_of
from rejections import rejected
from serving import LATE, OFFERS, Postgres, sqlite_file

NAMES = ["a", "b", "c", "d"]
SCORES = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
DISCOUNTED = {"type": "discounted", "cost": 0.8, "discount": 0.999}
SHARED: dict[str, Any] = {"type": "shared"}
CURVE: dict[str, Any] = {"type": "curve", "scores": SCORES}


def make(engine: Engine, model: Json = SHARED, **changes: Any) -> Json:
    return engine.create(**{"segments": NAMES, "objective": DISCOUNTED, "model": model, **changes})


def live(engine: Engine, rounds: int, seed: int = 0, policy: str = "cards", **more: Any) -> dict[str, list[int]]:
    """Decide and record outcomes at random, with some corrections; return labels and successes of each segment."""
    rng, labels = random.Random(seed), {name: [0, 0] for name in NAMES}
    known: list[tuple[str, str, str]] = []
    for _ in range(rounds):
        name = rng.choice(NAMES)
        decision = engine.decide(name, policy=policy, **more)
        if decision["decision"] == "accept" and rng.random() < 0.9:
            outcome = "success" if rng.random() < 0.8 else "failure"
            engine.outcome(decision["id"], outcome)
            labels[name][0] += 1
            labels[name][1] += outcome == "success"
            known.append((decision["id"], name, outcome))
    for identity, name, outcome in known[::5]:
        other = "failure" if outcome == "success" else "success"
        engine.correct(identity, other)
        labels[name][1] += 1 if other == "success" else -1
    return labels


@pytest.mark.parametrize(("model", "same"), [(SHARED, Shared(4)), (CURVE, Curve(list(SCORES.values())))])
def test_a_segment_believes_what_the_model_of_all_outcomes_says(free_engine: Engine, model: Json, same: Model) -> None:
    make(free_engine, model)
    labels = live(free_engine, 40)
    expected = beliefs(same, [labels[name][0] for name in NAMES], [labels[name][1] for name in NAMES])
    assert sum(n for n, _ in labels.values()) > 10
    for name, belief in zip(NAMES, expected, strict=True):
        decision = free_engine.decide(name)
        assert decision["belief"] == pytest.approx({"n": belief.n, "s": belief.s}, rel=1e-9)
        gamma = DISCOUNTED["discount"] / 4 / (1 - 0.999 + 0.999 / 4)  # type: ignore[operator]
        exact = enclose_threshold(DiscountedProblem(0.8, gamma), belief.n, 1e-4, 0.6).midpoint
        assert decision["threshold"] == pytest.approx(exact, abs=0.01 * (0.8 - exact) + 2e-4)
        assert (decision["decision"] == "accept") == (belief.mean > decision["threshold"])
        assert decision["belief"] == pytest.approx(
            msgspec.to_builtins(free_engine.queries.decision(decision["id"]).belief)
        )
    assert free_engine.counts("a")[:2] == pytest.approx((expected[0].n, expected[0].s))
    assert free_engine.audit().findings == []


def test_history_counts_as_labels_and_at_most_the_cap_as_own(engine: Engine) -> None:
    past = {"a": {"successes": 45, "failures": 5}, "b": {"successes": 8, "failures": 2}}
    make(engine, history=past, history_cap=20)
    n, s = Shared(4).priors([50, 10, 0, 0], [45, 8, 0, 0])
    for name, own, good in (("a", 20, 18), ("b", 10, 8), ("c", 0, 0)):
        assert engine.decide(name)["belief"] == pytest.approx({"n": n[0] + own, "s": s[0] + good})


def test_the_horizon_counts_the_segment_s_own_outcomes(engine: Engine) -> None:
    make(engine, objective={"type": "horizon", "cost": 0.8, "horizon": 200}, segments=["a", "b"])
    first = engine.decide("a")["threshold"]
    for _ in range(20):
        engine.outcome(engine.decide("a")["id"], "success")
    belief = engine.decide("a")["belief"]
    left = FiniteHorizon(0.8, 100).discount_at(20)
    exact = enclose_threshold(DiscountedProblem(0.8, left), belief["n"], 1e-4, 0.7).midpoint
    last = engine.decide("a")
    assert last["threshold"] == pytest.approx(exact, abs=2e-3)
    assert first < last["threshold"]
    assert engine.queries.policy("cards").segments[0].value is not None


@pytest.mark.parametrize(
    ("objective", "more"),
    [(LATE["objective"], {}), ({**OFFERS, "discount": 0.999}, {"offer": OfferRequest(amount=500, cost=0.8)})],
    ids=["late", "offers"],
)
def test_other_objectives(engine: Engine, objective: Json, more: Json) -> None:
    make(engine, CURVE, objective=objective)
    labels = live(engine, 30, **more)
    expected = beliefs(Curve(list(SCORES.values())), [n for n, _ in labels.values()], [s for _, s in labels.values()])
    for name, belief in zip(NAMES, expected, strict=True):
        decision = engine.decide(name, **more)
        assert decision["belief"] == pytest.approx({"n": belief.n, "s": belief.s})
        above = decision["rule"] in ("above_break_even", "worth_learning")
        if not more and decision["rule"] in ("above_break_even", "worth_learning", "below_threshold"):
            assert above == (belief.mean > decision["threshold"]) or belief.mean == decision["threshold"]


def test_a_restart_continues_from_the_last_stored_state(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SNAPSHOT_EVERY", 4)
    first = Engine(database)
    make(first)
    live(first, 20)
    before = first.decide("a")["belief"]
    with first.store.read() as connection:
        stored = connection.execute(select(schema.model_state)).all()
        labels = [read(row.body) for row in connection.execute(select(schema.event)).all()]
    first.close()
    learnt = sum(isinstance(event, Learned) for event in labels)
    assert len(stored) == 1, "a stored state replaces the one before"
    assert msgspec.json.decode(stored[0].body)[2] == stored[0].seq - 2, "the first two events are no labels"
    assert 0 <= learnt + 2 - stored[0].seq < 4
    again = Engine(database)
    assert again.decide("a")["belief"] == before
    live(again, 10, seed=1)
    assert again.audit().findings == []
    again.close()


def test_two_processes_see_the_same_state(postgres: Postgres) -> None:
    database = postgres.emptied()
    one, two = Engine(database), Engine(database)
    make(one)
    for i in range(12):
        deciding, recording = (one, two) if i % 2 else (two, one)
        decision = deciding.decide(NAMES[i % 4])
        if decision["decision"] == "accept":
            recording.outcome(decision["id"], "success" if i % 3 else "failure")
    assert one.decide("a")["belief"] == two.decide("a")["belief"]
    assert one.audit().findings == []
    two.close()
    one.close()


def test_a_challenger_that_pools_runs_next_to_a_champion_that_does_not(engine: Engine) -> None:
    engine.create(segments=NAMES, objective=DISCOUNTED)
    live(engine, 10)
    make(engine, activate=False)
    engine.state("cards", "shadow", 2)
    labels = live(engine, 10, seed=1)
    assert labels
    decision = engine.queries.decision(engine.decide("b")["id"])
    assert [shadow.version for shadow in decision.shadows] == [2]
    engine.state("cards", "active", 2)
    after = engine.decide("b")["belief"]
    totals = {one.name: one for one in engine.queries.policy("cards", 1).segments}
    own = [totals[name].belief.n - 2 for name in NAMES], [totals[name].belief.s - 1 for name in NAMES]
    expected = beliefs(Shared(4), *own)[1]
    assert after == pytest.approx({"n": expected.n, "s": expected.s})
    engine.state("cards", "active", 1)
    live(engine, 5, seed=2)
    engine.state("cards", "active", 2)  # it starts again from the outcomes of all segments
    live(engine, 5, seed=3)


def test_past_decisions_are_imported_before_the_model_learns(engine: Engine) -> None:
    make(engine, activate=False, segments=["young", "old"])
    import_rows(engine, rows_of(10, segments=("young", "old")))
    engine.state("cards", "active")
    engine.decide("young")
    with pytest.raises(Conflict) as conflict:
        import_rows(engine, rows_of(12, segments=("young", "old")))
    assert conflict.value.code == "model_learns"


def test_a_decision_in_the_middle_of_a_transaction_sees_the_labels_before_it(engine: Engine) -> None:
    make(engine)
    ids = [one["id"] for one in engine.batch(["a", "b", "c"])]
    for identity in ids:
        engine.outcome(identity, "success")
    assert len({one["belief"]["n"] for one in engine.batch(["d", "d"])}) == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prior": Belief(4, 3)}, "prior"),
        ({"segments": [SegmentSpec("a", prior=Belief(4, 3))]}, "prior"),
        ({"doubt": 0.1}, "doubt"),
        ({"history_model": "shared", "history": {"a": Record(1, 1)}}, "history_model"),
        ({"capacity": Capacity(acceptances=5)}, "capacity"),
    ],
)
def test_settings_that_a_refitted_model_cannot_have(changes: Json, field: str) -> None:
    settings = {"segments": ["a"], "model": SharedModel(), **changes}
    with rejected(field, "conflicting_fields"):
        PolicySpecification("x", Discounted(0.8, 0.9), **settings)


def test_scores_are_those_of_the_segments() -> None:
    spec = PolicySpecification("x", Discounted(0.8, 0.9), segments=["a"], model=CurveModel({"a": 1.0, "z": 2.0}))
    with rejected("model.scores", "unknown_name"):
        spec.problems()


def test_a_forged_state_or_evidence_is_found_where_it_is(tmp_path: Any) -> None:
    from lenience.service.domain.chain import genesis, link

    engine = Engine(sqlite_file(tmp_path))
    make(engine)
    live(engine, 8)

    def forged(change: Any) -> list[str]:
        """What the audit says if every event goes through ``change`` and all hashes are computed anew."""
        with engine.store.write() as connection:
            chains = {row.id: row for row in connection.execute(select(schema.chain)).all()}
            heads = {
                number: genesis(None if number == 1 else "cards", row.segment)
                for number, row in chains.items()
                if row.length
            }
            for row in connection.execute(schema.event.select().order_by(schema.event.c.seq)).all():
                body = write(change(read(row.body)))
                heads[row.chain_id] = link(heads[row.chain_id], body)
                connection.execute(
                    text("UPDATE event SET body = :body, hash = :hash WHERE chain_id = :chain AND seq = :seq"),
                    {"body": body, "hash": heads[row.chain_id], "chain": row.chain_id, "seq": row.seq},
                )
            for number, head in heads.items():
                connection.execute(text("UPDATE chain SET head = :head WHERE id = :id"), {"head": head, "id": number})
            from lenience.service.queries.audit import audit_connection

            report = audit_connection(connection, "test")
            connection.rollback()
        return [f"{finding.where}: {finding.what}" for finding in report.findings]

    assert forged(lambda event: event) == []
    replace = msgspec.structs.replace

    def other_digest(event: Any) -> Any:
        return replace(event, states=((1, "0" * 64),)) if isinstance(event, Learned) else event

    found = forged(other_digest)
    assert found[0].startswith("event 3 of policy 'cards': the model state of version 1 does not follow")

    def other_label(event: Any) -> Any:
        swapped = isinstance(event, Learned) and event.successes == 1 and event.failures == 0
        return replace(event, successes=0, failures=1) if swapped else event

    found = forged(other_label)
    assert any("the log of the segment does not hold this outcome" in one for one in found)

    def other_evidence(event: Any) -> Any:
        own = getattr(event, "borrowed", None)
        return event if own is None else replace(event, borrowed=replace(own, outcomes=own.outcomes + 0.01))

    found = forged(other_evidence)
    assert any("segment" in one and "borrows evidence worth" in one for one in found)

    def no_state(event: Any) -> Any:
        return replace(event, model_at=None) if getattr(event, "model_at", None) is not None else event

    assert any("does not say which model state" in one for one in forged(no_state))
    engine.close()


def test_the_model_fits_each_state_once() -> None:
    model = PooledModel(SharedModel(), ["a", "b"], [(0.0, 0.0)] * 2, 20.0)
    state = model.learn(model.start({"a": (3, 1)}), ModelLabel("b", 0, 1))
    assert (state.successes, state.failures, state.labels) == ((3, 0), (1, 1), 1)
    assert model.learn(state, ModelLabel("elsewhere", 1, 0)) is state
    assert model.restore(state.encode()) == state
    n, s = Shared(2).priors([4, 1], [3, 0])
    assert model.borrowed(state, "a").outcomes == pytest.approx(n[0] - 1)
    assert model.borrowed(state, "a") is model.borrowed(state, "a")
    assert Belief(float(n[0]), float(s[0])).mean == pytest.approx(
        (0.5 + model.borrowed(state, "a").successes) / (1 + model.borrowed(state, "a").outcomes)
    )


def test_history_is_learnt_whole_and_counts_as_own_up_to_the_cap() -> None:
    past = [(50.0, 45.0), (10.0, 8.0), (0.0, 0.0)]
    model = PooledModel(SharedModel(), ["a", "b", "c"], past, 20.0)
    n, s = Shared(3, 100.0).priors([54, 10, 2], [48, 8, 1])
    state = model.start({"a": (3, 1), "c": (1, 1)})
    for i, (name, own, good) in enumerate((("a", 20, 18), ("b", 10, 8), ("c", 0, 0))):
        borrowed = model.borrowed(state, name)
        assert borrowed.outcomes == pytest.approx(n[i] + own - 1)
        assert borrowed.successes == pytest.approx(s[i] + good - 0.5)
    assert not model.by_features
    curve = PooledModel(CurveModel({"b": 5.0, "a": 1.0}), ["a", "b"], past[:2], 0.0)
    n, s = Curve([1.0, 5.0], cap=20.0).priors([50, 10], [45, 8])
    assert curve.borrowed(curve.start({}), "b").successes == pytest.approx(s[1] - 0.5)
    assert curve.borrowed(curve.start({}), "b").outcomes == pytest.approx(n[1] - 1)
    learnt = model.learn(state, ModelLabel("b", 2, -1))
    assert (learnt.successes, learnt.failures, learnt.labels) == ((3, 2, 1), (1, -1, 1), 1)
    assert model.learn(learnt, ModelLabel("c", 1, 0)).labels == 2


def test_fits_agree_up_to_rounding() -> None:
    small, large = Borrowed(0.0, 0.0), Borrowed(1000.0, 500.0)
    assert small.close_to(Borrowed(1e-7, 1e-7))
    for other in (Borrowed(1.5e-7, 0.0), Borrowed(0.0, 1.5e-7)):
        assert not small.close_to(other)
        assert not other.close_to(small)
    assert large.close_to(Borrowed(1000.0 + 9e-5, 500.0 - 9e-5))
    assert not large.close_to(Borrowed(1000.0, 500.0 + 1.5e-4))
    assert not large.close_to(Borrowed(1000.0 + 1.5e-4, 500.0))


@pytest.mark.parametrize(
    ("successes", "failures", "correction"), [(1, 0, False), (0, 1, False), (1, -1, True), (-1, 1, True), (1, 1, False)]
)
def test_a_correction_moves_an_outcome(successes: int, failures: int, correction: bool) -> None:
    assert ModelLabel("a", successes, failures).is_correction == correction
