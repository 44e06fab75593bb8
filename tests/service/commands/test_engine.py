"""Decide, record, correct, give up, override: on both databases, and audited after each test."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engines import Engine
from lenience.core.belief import Belief
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.lifecycle import ChangeState, CreateVersion, solve_version
from lenience.service.commands.outcomes import Change, Expire, OutcomeItem, RecordOutcomes
from lenience.service.domain.problems import BadRequest, Conflict, NotFound
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.queries import export
from lenience.service.queries.reading import Filters
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.writer import Writer
from serving import LATE, SPEC


def test_the_belief_is_the_prior_and_the_outcomes(engine: Engine) -> None:
    engine.create()
    ids = [engine.decide()["id"] for _ in range(3)]
    assert engine.counts() == (2, 1, 3)
    answer = engine.outcome(ids[0], "success")
    assert (answer["belief"], answer["pending"], answer["status"]) == ({"n": 3, "s": 2}, 2, "success")
    engine.outcome(ids[1], "failure")
    assert engine.counts() == (4, 2, 1)
    assert engine.counts("old") == (2, 1, 0)
    assert engine.decide()["belief"] == {"n": 4, "s": 2}


def test_decisions_are_those_of_the_segments_own_problem(engine: Engine) -> None:
    engine.create(segments=[{"name": "young", "share": 0.25, "prior": {"n": 4, "s": 3}, "cost": 0.7}, "old"])
    own = Discounted(0.7, 0.99 * 0.25 / (0.01 + 0.99 * 0.25)).solve(Belief(4, 3))
    belief, seen = Belief(4, 3), set()
    for _ in range(12):
        decision = engine.decide()
        assert decision["belief"] == {"n": belief.n, "s": belief.s}
        assert (decision["decision"] == "accept") == own.accepts(belief)
        assert decision["threshold"] == pytest.approx(own.threshold(belief.n, 1e-6).midpoint, abs=0.01)
        seen.add(decision["decision"])
        if decision["decision"] == "reject":
            break
        engine.outcome(decision["id"], "failure")
        belief = belief.observe(False)
    assert seen == {"accept", "reject"}
    assert engine.decide("old")["cost"] == 0.8


def test_a_rejection_gives_its_principal_reasons(engine: Engine) -> None:
    engine.create()
    first = engine.decide()
    assert first["principal_reasons"] == []
    engine.outcome(first["id"], "failure")
    rejected = engine.decide()
    assert rejected["decision"] == "reject"
    # The reason separates observed outcomes from the prior.
    seen = "33.3% (0 of 1 succeeded, plus prior evidence worth 2 outcomes)"
    assert seen in rejected["reason"]
    assert seen in rejected["principal_reasons"][0]["text"]
    codes = [reason["code"] for reason in rejected["principal_reasons"]]
    assert codes == ["record_of_similar_applicants", "limited_experience_with_segment"]
    view = engine.queries.decision(rejected["id"])
    assert "1 of 1 outcome a success instead of a failure: accept." in view.would_have_changed
    assert view.value is not None
    assert view.value_of_continuing is not None
    assert view.value.upper == 0 > view.value_of_continuing.upper
    accepted = engine.queries.decision(first["id"])
    assert accepted.would_have_changed == ["1 further failure: reject."]  # before any outcome there was
    assert accepted.value_of_continuing is not None
    assert accepted.value_of_continuing.lower > 0


def test_an_outcome_counts_once(engine: Engine) -> None:
    engine.create()
    decision = engine.decide()["id"]
    assert engine.outcome(decision, "success")["recorded"] is True
    assert engine.outcome(decision, "success")["recorded"] is False
    assert engine.outcome(decision, "success", key="again")["recorded"] is False
    with pytest.raises(Conflict, match="has the outcome success already: if that was wrong, POST its /correction"):
        engine.outcome(decision, "failure")
    assert engine.counts() == (3, 2, 0)


def test_corrections_replace_and_both_stay(engine: Engine) -> None:
    engine.create()
    decision = engine.decide()["id"]
    with pytest.raises(Conflict, match="no outcome to correct: it is pending"):
        engine.correct(decision, "failure")
    engine.outcome(decision, "success")
    assert engine.correct(decision, "failure")["belief"] == {"n": 3, "s": 1}
    assert engine.correct(decision, "failure")["recorded"] is False
    assert engine.correct(decision, "success")["belief"] == {"n": 3, "s": 2}
    kinds = [entry.kind for entry in engine.queries.decision(decision).history]
    assert kinds == ["decision", "outcome", "correction", "correction"]


def test_outcomes_that_never_come_are_given_up_and_may_still_come(engine: Engine) -> None:
    engine.create()
    decisions = [engine.decide()["id"] for _ in range(5)]
    assert engine.give_up(decisions[0])["status"] == "expired"
    assert engine.give_up(decisions[0])["recorded"] is False
    assert engine.counts() == (2, 1, 4)
    assert engine.outcome(decisions[0], "success")["pending"] == 4
    with pytest.raises(Conflict, match="is success, not pending"):
        engine.give_up(decisions[0])
    far = 2**60
    first = engine.call(Expire(make_sender("tester", "k1", "", ""), "cards", far, most=3))
    assert first == {"expired": 3, "more": True}
    assert engine.call(Expire(make_sender("tester", "k1", "", ""), "cards", far, most=3)) == first
    assert engine.call(Expire(make_sender("tester", None, "", ""), "cards", far, most=3)) == {
        "expired": 1,
        "more": False,
    }
    assert engine.call(Expire(make_sender("tester", "k2", "", ""), "cards", far)) == {"expired": 0, "more": False}
    assert engine.counts() == (3, 2, 0)


def test_overrides_by_a_person_still_teach(engine: Engine) -> None:
    engine.create()
    first = engine.decide()["id"]
    engine.outcome(first, "failure")
    rejected = engine.decide()["id"]
    with pytest.raises(Conflict, match="is to reject, so it has no outcome: override it"):
        engine.outcome(rejected, "success")
    assert engine.override(rejected, "accept")["status"] == "pending"
    with pytest.raises(Conflict, match="is already to accept"):
        engine.override(rejected, "accept")
    assert engine.counts() == (3, 1, 1)
    engine.outcome(rejected, "success")
    assert engine.counts() == (4, 2, 0)
    with pytest.raises(Conflict, match="can no longer be overridden"):
        engine.override(rejected, "reject")
    other = engine.decide("old")["id"]
    assert engine.override(other, "reject")["decision"] == "reject"
    assert engine.counts("old") == (2, 1, 0)
    view = engine.queries.decision(rejected)
    assert view.overridden
    assert "head of credit" in view.reason
    assert [(entry.by, entry.reason) for entry in view.history if entry.kind == "override"] == [
        ("head of credit", "known to the branch")
    ]


def test_batches_decide_in_order_each_as_if_alone(engine: Engine) -> None:
    engine.create(constraints={"exposure_cap": 3})
    made = engine.batch(["young"] * 5 + ["old"])
    assert [one["decision"] for one in made] == ["accept"] * 3 + ["reject"] * 2 + ["accept"]
    assert [one["pending"] for one in made] == [0, 1, 2, 3, 3, 0]
    assert made[3]["rule"] == "exposure_cap"
    assert "3 outcomes are pending" in made[3]["reason"]
    engine.outcome(made[0]["id"], "success")
    assert [one["decision"] for one in engine.batch(["young", "young"])] == ["accept", "reject"]


def test_batches_that_name_an_unknown_segment_change_nothing(engine: Engine) -> None:
    engine.create()
    with pytest.raises(BadRequest, match="segment must be one of 'young', 'old', not 'middle'"):
        engine.batch(["young", "middle"])
    assert engine.counts() == (2, 1, 0)


def test_exposure_limits_of_late_labels(engine: Engine) -> None:
    engine.create(**LATE, segments=[])
    policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
    belief, pending = Belief(2, 1), 0
    seen = set()
    waiting: list[str] = []
    for step in range(30):
        decision = engine.decide(None, "loans")
        assert decision["limit"] == policy.limit(belief)
        assert (decision["decision"] == "accept") == policy.accepts(belief, pending)
        seen.add(decision["rule"])
        if decision["decision"] == "accept":
            waiting.append(decision["id"])
            pending += 1
        elif waiting:
            good = step % 3 > 0
            engine.outcome(waiting.pop(0), "success" if good else "failure")
            belief, pending = belief.observe(good), pending - 1
    assert {"worth_learning", "exposure_limit"} <= seen


def test_horizons_end(engine: Engine) -> None:
    engine.create(objective={"type": "horizon", "cost": 0.3, "horizon": 4}, segments=[])
    made = [engine.decide(None) for _ in range(6)]
    assert [one["decision"] for one in made] == ["accept"] * 4 + ["reject"] * 2
    assert made[4]["rule"] == "horizon_over"
    assert made[4]["reason"] == "Reject: all 4 acceptances of the horizon have been made."
    assert engine.queries.decision(made[4]["id"]).would_have_changed == ["A longer horizon."]


def test_the_exploration_floor_keeps_a_stopped_segment_open(engine: Engine) -> None:
    engine.create(constraints={"exploration_floor": 0.3, "exposure_cap": 40})
    engine.outcome(engine.decide()["id"], "failure")
    made = engine.batch(["young"] * 100)
    chosen = [one for one in made if one["decision"] == "accept"]
    assert 10 < len(chosen) <= 40
    assert {one["rule"] for one in chosen} == {"exploration_floor"}
    assert {one["probability"] for one in made} <= {0.3, 0.0}
    assert (
        "Another draw of the exploration floor: reject." in engine.queries.decision(chosen[0]["id"]).would_have_changed
    )


def test_features_instead_of_segments(engine: Engine) -> None:
    features = [{"name": "score", "edges": [600, 700]}, {"name": "region", "values": ["north"]}]
    own = {"name": "score<600, region=north", "share": 0.5, "prior": {"n": 10, "s": 9}, "group": "north"}
    engine.create(segments=[own], features=features)
    rules = engine.registry.known("cards").ruling().rules  # type: ignore[union-attr]
    assert [round(rule.share, 3) for rule in rules.values()] == [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    assert [rule.table.prior.n for rule in rules.values()] == [10, 2, 2, 2, 2, 2]
    made = engine.decide(None, features={"score": 650, "region": "west"}, reference="17")
    assert made["segment"] == "score 600..700, region=other"
    view = engine.queries.decision(made["id"])
    assert (view.features, view.reference) == ({"score": 650, "region": "west"}, "17")
    assert made["warnings"] == view.warnings == ["the value of region is not one of north; decided as other"]
    near = engine.decide(None, features={"score": 650, "region": " North"})
    assert near["warnings"] == ["'North' is not a value of region (nearest: 'north'); decided as other"]
    blank = engine.decide(None, features={"score": 650, "region": " north\t"})
    assert (blank["segment"], blank["warnings"]) == ("score 600..700, region=north", [])
    assert engine.queries.decision(blank["id"]).features == {"score": 650, "region": "north"}
    for wrong, said in (
        ({"score": 650}, "features must have 'region'"),
        ({"score": 650, "region": "west", "x": 1}, "the policy does not use 'x'"),
        ({"score": "high", "region": "north"}, "the feature 'score' must be a number"),
        ({"score": 1, "region": 2}, "the feature 'region' must be a text"),
    ):
        with pytest.raises(BadRequest, match=said):
            engine.decide(None, features=wrong)
    with pytest.raises(BadRequest, match="needs features instead of a segment"):
        engine.decide("young")
    assert engine.audit().whole


def test_the_same_key_gives_the_same_answer(engine: Engine) -> None:
    made = engine.create(key="make")
    assert engine.create(key="make", activate=False) == made
    assert len(engine.queries.policies().policies[0].versions) == 1
    first = engine.decide(key="one")
    assert engine.decide(key="one") == first
    with pytest.raises(Conflict, match="already used for a different request"):
        engine.decide("old", key="one")
    assert engine.decide(key="two")["id"] != first["id"]
    batch = engine.batch(["young", "old"], key="batch")
    assert engine.batch(["young", "old"], key="batch") == batch
    outcome = engine.outcome(first["id"], "success", key="out")
    engine.decide()
    assert engine.outcome(first["id"], "success", key="out") == outcome
    with pytest.raises(Conflict, match="different request"):
        engine.outcome(first["id"], "failure", key="out")
    assert engine.counts() == (3, 2, 3)


def test_keys_belong_to_who_used_them(engine: Engine) -> None:
    engine.create()
    asked = DecisionRequest("young")
    first = engine.call(Decide(make_sender("one", "key", "p", asked), "cards", [asked], True))
    second = engine.call(Decide(make_sender("two", "key", "p", asked), "cards", [asked], True))
    assert first["id"] != second["id"]


def test_many_outcomes_at_once(engine: Engine) -> None:
    engine.create(constraints={"exposure_cap": 4})
    made = engine.batch(["young"] * 5)
    ids = [one["id"] for one in made]
    items = [
        OutcomeItem(id=ids[0], outcome="success"),
        OutcomeItem(id=ids[0], outcome="success"),
        OutcomeItem(id=ids[0], outcome="failure"),
        OutcomeItem(id="unknown", outcome="success"),
        OutcomeItem(id=ids[4], outcome="success"),
        OutcomeItem(id=ids[1], outcome="failure"),
    ]
    answer = engine.call(RecordOutcomes(make_sender("tester", "many", "", ""), items))
    assert (answer["recorded"], answer["repeated"]) == (2, 1)
    assert [(one["position"], one["status"]) for one in answer["problems"]] == [(2, 409), (3, 404), (4, 409)]
    assert engine.call(RecordOutcomes(make_sender("tester", "many", "", ""), items)) == answer
    again = engine.call(RecordOutcomes(make_sender("tester", "more", "", ""), items[:1]))
    assert (again["recorded"], again["repeated"]) == (0, 1)
    # What changed nothing is logged as such, because its answer is remembered by its key.
    assert [entry.kind for entry in engine.queries.decision(ids[0]).history] == ["decision", "outcome", "repeat"]
    assert engine.counts() == (4, 2, 2)
    with pytest.raises(NotFound, match="none of these"):
        engine.call(RecordOutcomes(make_sender("tester", None, "", ""), [OutcomeItem(id="unknown", outcome="success")]))


def test_outcomes_by_reference(engine: Engine) -> None:
    engine.create(constraints={"exposure_cap": 4})
    given = ["Ada", "Bob", "Bob", "Eve", "Eve", "Joe"]  # the last two are rejected
    made = [engine.decide("young", reference=reference)["id"] for reference in given]
    items = [OutcomeItem(reference=one, outcome="success") for one in ("Ada", "Bob", "Eve", "Joe", "Nobody", "Ada")]
    items.append(OutcomeItem(id=made[0], outcome="failure"))
    command = RecordOutcomes(make_sender("tester", "many", "", ""), items)
    answer = engine.call(command)
    assert (answer["recorded"], answer["repeated"]) == (2, 1)
    assert [(one["position"], one["status"], one["detail"]) for one in answer["problems"]] == [
        (1, 409, f"2 accepted decisions have this reference: give their ids ({made[1]}, {made[2]})"),
        (3, 404, "no accepted decision has this reference"),
        (4, 404, "no accepted decision has this reference"),
        (6, 409, f"the decision {made[0]} has the outcome success already: if that was wrong, POST its /correction"),
    ]
    assert engine.call(command) == answer
    assert engine.counts() == (4, 3, 2)
    with pytest.raises(NotFound, match="none of these"):
        engine.call(RecordOutcomes(make_sender("tester", None, "", ""), items[4:5]))
    with pytest.raises(ValueError, match="either id or reference"):
        OutcomeItem(outcome="success")


def test_decisions_are_listed_by_reference(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create()
    engine.create(name="loans")
    given = ["Ada", "Bob", "Ada", None, "Ada", "Ada", "Eve"]
    where = [("young", "cards"), ("old", "cards"), ("young", "loans"), ("old", "loans")]
    made = [engine.decide(*where[i % 4], reference=reference)["id"] for i, reference in enumerate(given)]
    engine.outcome(made[0], "success")
    ada = [made[i] for i in (0, 2, 4, 5)]
    wanted: list[tuple[Filters, list[str]]] = [
        (Filters(reference="Ada"), ada),
        (Filters(reference="Ada", policy="cards"), [ada[0], ada[2], ada[3]]),
        (Filters(reference="Ada", policy="loans", segment="old"), []),
        (Filters(reference="Ada", segment="young"), ada[:3]),
        (Filters(reference="Ada", status="success"), ada[:1]),
        (Filters(reference="Nobody"), []),
    ]
    for few in (3, 4):  # more have it than are looked up one by one, and as many
        monkeypatch.setattr("lenience.service.storage.references.FEW", few)
        for filters, ids in wanted:
            for size, newest in ((1, False), (2, True), (4, False)):
                paged, after = [], None
                while True:
                    page = engine.queries.page(filters, after, size, newest)
                    paged += [one.id for one in page.decisions]
                    after = page.next
                    if after is None:
                        break
                assert paged == (ids[::-1] if newest else ids), (few, filters, size)


def test_a_reference_is_not_looked_for_among_all_decisions(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path / "plan.db"))  # PostgreSQL plans by how many rows there are
    engine.create()
    for _ in range(3):
        engine.decide(reference="Ada")
    with engine.store.read() as connection:
        for filters in (Filters(reference="Ada"), Filters(reference="Ada", policy="cards", status="pending", since=9)):
            asked = engine.queries.matching(connection, filters).where(schema.decision.c.id > "0").limit(9)
            written = asked.compile(connection, compile_kwargs={"literal_binds": True})
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {written}").all()
            assert [row[3] for row in plan] == ["SEARCH decision USING PRIMARY KEY (id=?)"]
    engine.close()


def test_what_is_not_there_is_not_found(engine: Engine) -> None:
    with pytest.raises(NotFound, match="the policy 'cards' does not exist"):
        engine.decide()
    with pytest.raises(NotFound, match="there is no decision 'x'"):
        engine.outcome("x", "success")
    with pytest.raises(NotFound, match="the policy 'cards' does not exist"):
        engine.state("cards", "active")
    engine.create(activate=False)
    with pytest.raises(Conflict, match="no active version"):
        engine.decide()


def test_pages_filters_and_exports(engine: Engine) -> None:
    engine.create()
    made = [engine.decide("young" if i % 3 else "old")["id"] for i in range(10)]
    engine.outcome(made[0], "success")
    queries = engine.queries
    first = queries.page(Filters(), None, 4)
    second = queries.page(Filters(), first.next, 4)
    third = queries.page(Filters(), second.next, 4)
    assert [one.id for page in (first, second, third) for one in page.decisions] == made
    assert third.next is None
    assert [one.id for one in queries.page(Filters(segment="old"), None, 100).decisions] == made[::3]
    assert [one.id for one in queries.page(Filters(policy="cards", status="success"), None, 9).decisions] == made[:1]
    assert queries.page(Filters(decision="reject"), None, 9).decisions == []
    assert queries.page(Filters(policy="cards", segment="nobody"), None, 9).decisions == []
    with engine.store.read() as connection:
        from sqlalchemy import text

        times = {row[0]: row[1] for row in connection.execute(text("SELECT id, at FROM decision"))}
    later = queries.page(Filters(since=times[made[5]], until=times[made[8]]), None, 9)
    assert [one.id for one in later.decisions] == made[5:8]
    lines = b"".join(export.csv_parts(queries, Filters(segment="young"))).decode().splitlines()
    assert len(lines) == 1 + 6
    import io

    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(export.parquet(queries, Filters())))
    assert table.column("id").to_pylist() == made
    assert table.column("status").to_pylist()[:2] == ["success", "pending"]


def test_only_new_outcomes_count_for_the_metrics(engine: Engine) -> None:
    engine.create()
    made = engine.decide()["id"]
    for kind, outcome, counted in (("outcome", "success", 1), ("outcome", "success", 0), ("correction", "failure", 0)):
        command = Change(make_sender("tester", None, "", ""), made, kind, outcome)  # type: ignore[arg-type]
        assert engine.writer.call(command).made.outcomes == counted


def test_decisions_count_for_the_metrics(engine: Engine) -> None:
    engine.create()
    requests = [DecisionRequest("young") for _ in range(3)]
    answer = engine.writer.call(Decide(make_sender("tester", None, "cards", requests), "cards", requests, False))
    decisions = [one["decision"] for one in msgspec.json.decode(answer.body)["decisions"]]
    accepted = decisions.count("accept")
    assert accepted > 0
    assert answer.status == 201
    assert (answer.made.policy, answer.made.accepted, answer.made.rejected) == ("cards", accepted, 3 - accepted)


def test_a_segment_that_another_process_added_is_known(engine: Engine) -> None:
    engine.create()
    engine.decide("young")  # from here on the policy is in this process's cache
    elsewhere = Writer(engine.store, PolicyCache())
    specification = msgspec.convert({**SPEC, "segments": [*SPEC["segments"], "new"]}, PolicySpecification)
    for command in (
        CreateVersion(make_sender("tester", None, "create", 2), solve_version(specification)),
        ChangeState(make_sender("tester", None, "active", 2), "cards", "active", 2),
    ):
        elsewhere.call(command)
    elsewhere.close()
    assert engine.decide("new")["policy_version"] == 2
