"""Versions: what they are made from, what they say of their segments, and which of them rules."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from engines import Engine
from lenience.models.curve import Curve
from lenience.models.protocol import beliefs
from lenience.models.shared import Shared
from lenience.service.commands.lifecycle import ChangeState, solve_version
from lenience.service.domain.problems import BadRequest, Conflict, NotFound
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from serving import LATE, SPEC


def test_priors_fitted_to_the_history_of_all_segments(engine: Engine) -> None:
    past = {"a": {"successes": 45, "failures": 5}, "b": {"successes": 40, "failures": 10}}
    names, labels, successes = ["a", "b", "c"], [50, 50, 0], [45, 40, 0]
    common: dict[str, Any] = {"segments": names, "history": past, "history_cap": 1000}
    engine.create(**common, history_model="shared")
    for name, belief in zip(names, beliefs(Shared(3), labels, successes), strict=True):
        assert engine.counts(name)[:2] == pytest.approx((belief.n, belief.s))
    scores = {"a": 3.0, "b": 2.0, "c": 1.0}
    engine.create(**common, history_model="curve", scores=scores)
    for name, belief in zip(names, beliefs(Curve([3, 2, 1]), labels, successes), strict=True):
        assert engine.counts(name)[:2] == pytest.approx((belief.n, belief.s))
    assert engine.decide("a")["policy_version"] == 2
    own_prior = [{"name": "a", "prior": {"n": 2, "s": 1}}, "b", "c"]
    for wrong, field, value, code in (
        ({"history_model": "curve", "scores": {"a": 1.0}}, "scores", "b", "unknown_name"),
        ({"history_model": "shared", "segments": own_prior}, "segments", "a", "conflicting_fields"),
    ):
        with pytest.raises(BadRequest) as refused:
            engine.create(**{**common, **wrong})
        assert (refused.value.field, refused.value.value, refused.value.code) == (field, value, code)
    with pytest.raises(msgspec.ValidationError, match="history_model 'shared'"):
        engine.create(**{**common, "history_model": "shared", "history": {}})
    with pytest.raises(msgspec.ValidationError, match="scores must be given with history_model 'curve'"):
        engine.create(**common, scores=scores)


def test_segments_say_their_volume_and_that_at_which_they_would_start(engine: Engine) -> None:
    engine.create(segments=[{"name": "many", "share": 0.96}, {"name": "few", "share": 0.04}])
    many, few = engine.queries.policy("cards").segments
    assert many.volume == pytest.approx(0.96 * 99)
    assert few.volume == pytest.approx(0.04 * 99)
    assert many.volume_to_start == few.volume_to_start == pytest.approx(32.14, abs=0.05)
    assert (many.accepts, few.accepts) == (True, False)
    engine.create(**LATE, segments=["hopeless"], prior={"n": 1000, "s": 1})
    late = engine.queries.policy("loans").segments[0]
    assert late.volume == pytest.approx(500)
    assert late.volume_to_start is None
    engine.create(objective={"type": "horizon", "cost": 0.3, "horizon": 4}, segments=[])
    ends = engine.queries.policy("cards").segments[0]
    assert (ends.volume, ends.volume_to_start) == (None, None)


def test_a_version_without_a_segment_of_which_something_is_known_warns(engine: Engine) -> None:
    engine.create()
    engine.outcome(engine.decide("young")["id"], "success")
    engine.decide("young")
    made = engine.create(segments=["old"], activate=False)
    assert ["'young' (1 outcome pending, 1 known)" in warning for warning in made["warnings"]] == [True]
    assert engine.state("cards", "active")["warnings"] == made["warnings"]
    assert engine.create()["warnings"] == []  # 'old' is new to nobody, and nothing is known of it


def test_versions_shadows_and_states(engine: Engine) -> None:
    engine.create()
    engine.outcome(engine.decide()["id"], "failure")
    engine.create(activate=False, objective={"type": "discounted", "cost": 0.2, "discount": 0.9})
    engine.state("cards", "shadow")
    made = engine.decide()
    assert (made["decision"], made["policy_version"]) == ("reject", 1)
    shadows = engine.queries.decision(made["id"]).shadows
    assert [(one.version, one.decision) for one in shadows] == [(2, "accept")]
    with pytest.raises(Conflict, match="version 1 of the policy 'cards' is active, not version 7"):
        engine.call(ChangeState(make_sender("tester", None, "", 2), "cards", "active", 2, replaces=7))
    changed = engine.state("cards", "active", 2, key="twice")
    assert (changed["changed"], changed["replaced"]) == (True, 1)
    assert engine.state("cards", "active", 2, key="twice") == changed
    for key in (None, "another"):
        again = engine.state("cards", "active", 2, key=key)
        assert (again["changed"], again["replaced"], again["state"]) == (False, None, "active")
    assert engine.decide()["policy_version"] == 2
    assert engine.decide()["belief"] == {"n": 3, "s": 1}
    states = {one.version: one.state for one in engine.queries.policy("cards").versions}
    assert states == {1: "retired", 2: "active"}
    with pytest.raises(Conflict, match="version 2 of 'cards' is active, so it cannot become shadow"):
        engine.state("cards", "shadow", 2)
    with pytest.raises(NotFound, match="has no version 7"):
        engine.state("cards", "active", 7)
    engine.state("cards", "retired")
    with pytest.raises(Conflict, match="no active version"):
        engine.decide()
    with pytest.raises(Conflict, match="no active version to retire"):
        engine.state("cards", "retired")
    engine.state("cards", "active", 1)
    assert engine.decide()["policy_version"] == 1


def test_a_new_version_may_have_other_segments(engine: Engine) -> None:
    engine.create()
    engine.decide("old")
    engine.create(segments=["young", "middle"])
    assert engine.decide("middle")["belief"] == {"n": 2, "s": 1}
    with pytest.raises(BadRequest, match="one of 'young', 'middle', not 'old'"):
        engine.decide("old")


def test_another_process_sees_a_new_version_at_once(engine: Engine) -> None:
    if engine.store.sqlite:
        pytest.skip("SQLite has one writing process")
    other = Engine(engine.database)
    engine.create()
    assert other.decide()["policy_version"] == 1
    engine.create(objective={"type": "discounted", "cost": 0.5, "discount": 0.9})
    assert other.decide()["policy_version"] == 2
    engine.create(segments=["elsewhere"])
    assert other.decide("elsewhere")["policy_version"] == 3
    other.close()


def test_a_restart_needs_no_solver(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create(**LATE, segments=[])
    engine.create()
    from lenience.service.storage.policy_cache import PolicyCache
    from lenience.solvers.delayed import plan as delayed_plan
    from lenience.solvers.stopping import solve as stopping

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr(stopping, "solve_discounted", refuse)
    monkeypatch.setattr(delayed_plan, "solve_problem", refuse)
    fresh = PolicyCache()
    engine.writer.registry = fresh
    assert engine.decide()["decision"] == "accept"
    assert engine.decide(None, "loans")["decision"] == "accept"


def test_what_was_known_beforehand_counts_as_experience(engine: Engine) -> None:
    engine.create(prior={"n": 1188, "s": 700}, segments=["known"])
    codes = [reason["code"] for reason in engine.decide("known")["principal_reasons"]]
    assert codes == ["record_of_similar_applicants"]


def test_segments_that_lose_are_told_from_those_too_few() -> None:
    posted = {
        **SPEC,
        "segments": [
            {"name": "losing", "share": 0.9, "prior": {"n": 1188, "s": 700}},
            {"name": "few", "share": 0.01},
        ],
    }
    losing, few = solve_version(msgspec.convert(posted, PolicySpecification)).warnings
    assert "('losing'): almost certainly a loss" in losing
    assert "('few'): given the prior, too few applicants" in few


def test_what_would_take_long_to_solve_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(**changes: Any) -> None:
        solve_version(msgspec.convert({**SPEC, **changes}, PolicySpecification))

    def patient(discount: float) -> Any:
        return {"type": "discounted", "cost": 0.8, "discount": discount}

    with pytest.raises(BadRequest) as caught:
        made(objective=patient(0.9999999), segments=[])
    assert (caught.value.code, caught.value.field) == ("too_large", "segments")
    assert caught.value.detail.endswith("Divide the largest segment into smaller ones.")
    several = [{"name": str(i), "prior": {"n": 2 + i, "s": 1}} for i in range(900)]
    with pytest.raises(BadRequest) as caught:
        made(objective=patient(0.99999999), segments=several)
    assert (caught.value.code, caught.value.field) == ("too_large", "segments")
    assert caught.value.detail.endswith("Use fewer segments.")
    monkeypatch.setattr("lenience.service.domain.limits.VERSION_SECONDS", 0.0)
    with pytest.raises(BadRequest, match="0 of 1 segments were solved"):
        made(objective=LATE["objective"], segments=[])
