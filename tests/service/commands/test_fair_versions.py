"""A version with a fairness limit: solved at shifted break-evens, explained, and checked by the audit."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from engines import SQLITE, Engine
from lenience import Belief, Discounted, Segments, fair_optimum
from lenience.analysis import Floors, Parity
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.dashboard.read_models.policy_description import describe_limits
from lenience.dashboard.read_models.policy_status import read_policy_status
from lenience.service.commands.lifecycle import solve_version
from lenience.service.domain.fair_version import (
    FairnessBody,
    GroupRates,
    MixedCost,
    _draw,
    _same,
    at_fair_cost,
    fairness_differences,
    fairness_warnings,
)
from lenience.service.domain.solved_tables import load
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.service import Service

MIX = {"young": {"A": 0.8, "B": 0.2}, "old": {"A": 0.3, "B": 0.7}}
FAIR: dict[str, Any] = {
    "objective": {"type": "discounted", "cost": 0.7, "discount": 0.98},
    "segments": [{"name": "young", "prior": {"n": 4, "s": 3.2}}, {"name": "old", "prior": {"n": 4, "s": 2}}],
    "fairness": {"constraint": {"type": "parity", "within": 0.1}, "groups": MIX},
}
CELLS = Segments.of({"young": 0.5, "old": 0.5}, Discounted(0.7, 0.98), {"young": Belief(4, 3.2), "old": Belief(4, 2)})


def specification(**changes: Any) -> PolicySpecification:
    return msgspec.convert({"name": "loans", **FAIR, **changes}, PolicySpecification)


def test_the_version_is_the_fair_optimum_of_the_library(engine: Engine) -> None:
    made = engine.create(**FAIR)
    expected = fair_optimum(CELLS, MIX, Parity(0.1))
    view = engine.queries.policy("cards").fairness
    assert view is not None
    assert not view.group_aware
    assert view.value == expected.value
    assert [row.acceptance for row in view.groups] == [row.acceptance for row in expected.groups]
    assert any("lowers expected acceptance rates: A from" in warning for warning in made["warnings"])
    # A weak segment is opened by the limit, and the reason says which break-even decides.
    decision = engine.decide("old")
    assert decision["decision"] == "accept"
    assert decision["cost"] == 0.7
    assert "for the fairness limit" in decision["reason"]
    with engine.store.read() as connection:
        rows = dict(describe_limits(read_policy_status(cast(Service, engine), connection, "cards")))
    assert rows["Fairness limit"] == Parity(0.1).describe()
    assert "Expected: B" in rows
    assert engine.audit().whole


@SQLITE
def test_a_group_aware_version_warns_of_the_law(engine: Engine) -> None:
    groups = {"young": "A", "old": "B"}
    floors = {"constraint": {"type": "floors", "rates": {"B": 0.3}}, "groups": groups}
    made = engine.create(**{**FAIR, "fairness": floors})
    (warning,) = (each for each in made["warnings"] if "decides by group" in each)
    assert "law" in warning
    view = engine.queries.policy("cards").fairness
    assert view is not None
    assert view.group_aware
    assert view.groups == [
        type(view.groups[0])(
            row.group, row.share, row.acceptance, row.acceptance_without, row.opportunity, row.opportunity_without
        )
        for row in fair_optimum(CELLS, groups, Floors({"B": 0.3})).groups
    ]


def test_the_draw_follows_the_seed_and_the_probabilities() -> None:
    exact = {"constraint": {"type": "parity", "within": 0.0}, "groups": MIX}
    bodies = [_body(specification(fairness={**exact, "seed": seed})) for seed in range(12)]
    mixed = [name for name, policies in bodies[0].policies.items() if len(policies) > 1]
    assert mixed
    for body in bodies:
        for name, cost in body.drawn.items():
            assert cost in [min(max(one.cost, 1e-9), 1 - 1e-9) for one in body.policies[name]]
    assert len({body.drawn[mixed[0]] for body in bodies}) == 2  # several seeds draw both


def test_a_draw_is_inside_the_open_interval_and_does_not_depend_on_segments_without_one() -> None:
    both = [MixedCost(0.3, 0.5), MixedCost(0.6, 0.5)]
    sure = [MixedCost(0.2, 1.0)]
    for seed in range(8):
        alone = _draw({"b": both}, seed)["b"]
        assert _draw({"b": both, "a": sure}, seed) == {"a": 0.2, "b": alone}
        assert _draw({"c": both, "b": both}, seed)["b"] == alone
    edges = _draw({"all": [MixedCost(0.0, 1.0)], "nobody": [MixedCost(1.0, 1.0)]}, 0)
    assert edges == {"all": 1e-9, "nobody": 1.0 - 1e-9}
    limit = specification().fairness
    assert limit
    assert limit.seed == 0


def test_what_the_limit_changes_is_stated() -> None:
    body = _body(specification())
    assert fairness_warnings(None) == []
    assert body.shift("old") == body.drawn["old"] - 0.7 != 0.0
    (problem, *_) = specification().problems()
    assert at_fair_cost(problem, None) is problem
    assert at_fair_cost(problem, body).problem.cost == body.drawn[problem.name]

    def warned(acceptance: Bounds, without: Bounds) -> bool:
        row = GroupRates("A", 1.0, acceptance, without, acceptance, without)
        return bool(fairness_warnings(msgspec.structs.replace(body, groups=[row])))

    assert not warned(Bounds(0.0, 0.0), Bounds(1e-6, 0.5))  # rounding alone
    assert warned(Bounds(0.0, 0.0), Bounds(1.5e-6, 0.5))
    assert not warned(Bounds(0.2, 0.4), Bounds(0.3, 0.5))
    assert not warned(Bounds(0.5, 0.5), Bounds(0.3, 0.3))


def test_rates_of_groups_agree_up_to_rounding() -> None:
    zero = GroupRates("A", 0.0, *[Bounds(0.0, 0.0)] * 4)
    changed = msgspec.structs.replace
    assert _same(zero, zero)
    assert not _same(zero, changed(zero, group="B"))
    for field, near, far in [("share", 1e-5, 1.5e-5)] + [
        (rate, Bounds(1e-5, 1e-5), Bounds(1.5e-5, 1.5e-5))
        for rate in ("acceptance", "acceptance_without", "opportunity", "opportunity_without")
    ]:
        assert _same(zero, changed(zero, **{field: near})), field
        assert not _same(zero, changed(zero, **{field: far})), field
        assert not _same(changed(zero, **{field: far}), zero), field
        assert _same(changed(zero, **{field: far}), changed(zero, **{field: far})), field


def _body(spec: PolicySpecification) -> FairnessBody:
    solved = solve_version(spec)
    digest = solved.segments[0].fairness
    assert digest is not None
    return msgspec.json.decode(solved.tables[digest], type=FairnessBody)


def test_the_audit_checks_the_stored_optimum() -> None:
    spec = specification()
    solved = solve_version(spec)
    body = _body(spec)
    tables = {segment.name: load(solved.tables[segment.solved]) for segment in solved.segments}
    assert fairness_differences(spec, body, tables) == []
    changed = msgspec.structs.replace
    rates = changed(body.groups[0], acceptance=Bounds(0.9, 0.9))
    unfair = {name: [MixedCost(0.7, 1.0)] for name in body.policies}
    wrong: list[tuple[FairnessBody | None, str]] = [
        (None, "no solution"),
        (changed(body, costs={"young": 0.6, "old": 0.7}), "before the fairness limit"),
        (changed(body, drawn=dict.fromkeys(body.drawn, 0.5)), "its seed draws"),
        (changed(body, drawn=dict.fromkeys(body.drawn, 0.5)), "not solved at the break-even"),
        (changed(body, policies=unfair), "miss the fairness limit"),
        (changed(body, groups=[rates, *body.groups[1:]]), "acceptance rates of its groups differ"),
    ]
    for other, words in wrong:
        assert any(words in difference for difference in fairness_differences(spec, other, tables)), words
    without = specification(fairness=None)
    assert fairness_differences(without, None, tables) == []
    assert fairness_differences(without, body, tables)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"doubt": 0.2}, "doubt"),
        ({"objective": {"type": "horizon", "cost": 0.7, "horizon": 100}}, "objective.horizon"),
        (
            {"objective": {"type": "delayed", "cost": 0.7, "arrivals": 50, "discount_rate": 0.1, "label_delay": 1}},
            "objective.label_delay",
        ),
        ({"capacity": {"acceptances": 10}}, "capacity"),
    ],
)
def test_what_cannot_be_combined_is_rejected(changes: dict[str, Any], field: str) -> None:
    with pytest.raises((InputError, msgspec.ValidationError), match=field):
        specification(**changes)


@SQLITE
def test_a_segment_without_groups_is_rejected(engine: Engine) -> None:
    with pytest.raises(Exception, match="missing for 'old'"):
        engine.create(
            **{**FAIR, "fairness": {"constraint": {"type": "parity", "within": 0.1}, "groups": {"young": "A"}}}
        )
