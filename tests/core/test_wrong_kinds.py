"""A value of the wrong kind raises an InputError with its field, the value and what is allowed, not a TypeError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lenience
from lenience.core.errors import CODES

ln: Any = lenience  # what the types refuse is what is tried here
PROBLEM, PRIOR, WORLD = ln.Discounted(0.8, 0.9), ln.Belief(2, 1), ln.simulation.Bernoulli(0.9)
BLIND = '{"type":"blind","policy":{"type":"greedy","cost":0.8}}'
CLIENT = ln.Client("http://127.0.0.1:1", retries=0)  # nobody is there, and nobody is asked


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (
            lambda: ln.compare_policies({"g": 3}, WORLD, cost=0.8, horizon=5),
            "policies['g']",
        ),
        (lambda: ln.compare_policies(3, WORLD, cost=0.8, horizon=5), "policies must be a policy .*, not 3"),
        (
            lambda: ln.compare_policies([ln.policies.Greedy], WORLD, cost=0.8, horizon=5),
            "must be a policy .*, not <class",
        ),
        (lambda: ln.check_policy(3), "policy must be a policy, .* not 3"),
        (lambda: ln.evaluate("greedy", PROBLEM, PRIOR), "policy must be a policy, .* not 'greedy'"),
        (lambda: ln.characteristics(3, 0.9), "policy must be a policy, .* not 3"),
        (lambda: ln.acceptance_by_arrival(3, 5), "policy must be a policy, .* not 3"),
        (lambda: ln.analysis.evaluate_pending(3, PROBLEM, PRIOR), "policy must be a policy that knows .* not 3"),
        (lambda: ln.policy_from_json(BLIND), "the policy blind must be given its cost"),
        (lambda: ln.policies.Blind(3, 0.8), "policy must be a policy, .* not 3"),
        (
            lambda: ln.policies.Capped(ln.policies.Greedy(0.8), 0.8, 3, "no"),
            "everywhere must be True or False, not 'no'",
        ),
        (lambda: ln.Segment("north", 0.5, PROBLEM, PRIOR, 7), "group must be a text, not 7"),
        (lambda: ln.Segments([3]), "cells must be a list of Segment, not 3"),
        (lambda: ln.Segments.of(3, PROBLEM, PRIOR), "shares must be a mapping .*, not 3"),
        (lambda: ln.starts(["north"]), "segments must be Segments, .* not 'north'"),
        (lambda: ln.segment_fates(3), "policies must be solved segments, .* not 3"),
        (lambda: ln.reports.segments_report(3), "policies must be solved segments, .* not 3"),
        (lambda: ln.replay([[1.0], [2.0]], [0, 1], PROBLEM, {3}), r"policies must be a mapping .*, not \{3\}"),
        (lambda: ln.analysis.run_sweep(3), "sweep must be a Sweep or the path of a file, not 3"),
        (lambda: ln.models.beliefs(3, [1], [1]), "model must be a model, .* not 3"),
        (lambda: ln.models.Curve({"a": 1}), "scores must be numbers, not {'a': 1}"),
        (lambda: ln.simulation.Mixture(3), "shares must be a list of shares, not 3"),
        (lambda: ln.segments.ArrivalCounts([3]), r"counts must be a mapping .*, not \[3\]"),
        (lambda: ln.policy_from_json(3), "text must be the JSON of a policy, as text, not 3"),
        (lambda: ln.policies.policy_named({}), "policy must be one of .*, not {}"),
        (lambda: ln.segments.loss_of_keeping(3, PRIOR, PROBLEM, PRIOR), "solved must be a Discounted objective, not 3"),
        (lambda: ln.analysis.drift_study(0.5, 0.9, PRIOR, hazards=3), "hazards must be a list of numbers, not 3"),
        (lambda: CLIENT.decide_batch("cards", ["young"]), r"individuals\[0\] must be a mapping .*, not 'young'"),
        (lambda: CLIENT.decide_batch("cards", "young"), "individuals must be a list, .*, not 'young'"),
        (lambda: CLIENT.decide("cards", features=[3]), r"features must be a mapping .*, not \[3\]"),
        (
            lambda: CLIENT.import_outcomes(7),
            "outcomes",
        ),
        (lambda: CLIENT.import_outcomes(["x"]), "outcomes"),
        (lambda: CLIENT.outcomes([("x", "success")]), "outcomes"),
        (lambda: CLIENT.create_policy("cards"), "specification"),
    ],
)
def test_wrong_kinds_are_refused_by_name(call: Callable[[], object], field: str) -> None:
    with pytest.raises(ln.InputError) as caught:
        call()
    assert caught.value.field == field
    assert caught.value.code in CODES
    assert len(str(caught.value).splitlines()) == 1
