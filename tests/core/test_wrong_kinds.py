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
        (lambda: ln.compare_policies(3, WORLD, cost=0.8, horizon=5), "policies"),
        (
            lambda: ln.compare_policies({"g": ln.policies.Greedy}, WORLD, cost=0.8, horizon=5),
            "policies['g']",
        ),
        (lambda: ln.check_policy(3), "policy"),
        (lambda: ln.evaluate("greedy", PROBLEM, PRIOR), "policy"),
        (lambda: ln.characteristics(3, 0.9), "policy"),
        (lambda: ln.acceptance_by_arrival(3, 5), "policy"),
        (lambda: ln.analysis.evaluate_pending(3, PROBLEM, PRIOR), "policy"),
        (lambda: ln.policy_from_json(BLIND), "cost"),
        (lambda: ln.policies.Blind(3, 0.8), "policy"),
        (
            lambda: ln.policies.Capped(ln.policies.Greedy(0.8), 0.8, 3, "no"),
            "everywhere",
        ),
        (lambda: ln.Segment("north", 0.5, PROBLEM, PRIOR, 7), "group"),
        (lambda: ln.Segments([3]), "cells"),
        (lambda: ln.Segments.of(3, PROBLEM, PRIOR), "shares"),
        (lambda: ln.starts(["north"]), "segments"),
        (lambda: ln.segment_fates(3), "policies"),
        (lambda: ln.reports.segments_report(3), "policies"),
        (lambda: ln.replay([[1.0], [2.0]], [0, 1], PROBLEM, {3}), "policies"),
        (lambda: ln.analysis.run_sweep(3), "sweep"),
        (lambda: ln.models.beliefs(3, [1], [1]), "model"),
        (lambda: ln.models.Curve({"a": 1}), "scores"),
        (lambda: ln.simulation.Mixture(3), "shares"),
        (lambda: ln.segments.ArrivalCounts([3]), "counts"),
        (lambda: ln.policy_from_json(3), "text"),
        (lambda: ln.policies.policy_named({}), "policy"),
        (lambda: ln.segments.loss_of_keeping(3, PRIOR, PROBLEM, PRIOR), "solved"),
        (lambda: ln.analysis.drift_study(0.5, 0.9, PRIOR, hazards=3), "hazards"),
        (lambda: CLIENT.decide_batch("cards", ["young"]), "individuals[0]"),
        (lambda: CLIENT.decide_batch("cards", "young"), "individuals"),
        (lambda: CLIENT.decide("cards", features=[3]), "features"),
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
