"""The FICO study: simulation against exact values, the optimum where it must win, and the results that the page
shows."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lenience import Belief, Discounted, Segments, characteristics
from lenience.models.own_counts import UNIFORM
from rejections import rejected
from research.cells import exact_value
from research.fico import (
    COSTS,
    DISCOUNTS,
    MODELS,
    RULES,
    Result,
    exact_share,
    exact_thresholds,
    fico_world,
    make_model,
    make_rule,
    study,
)

RESULTS = Path(__file__).parents[2] / "docs" / "fico_results.json"


def test_the_exact_walk_is_that_of_the_characteristics() -> None:
    own = Discounted(0.8, 0.98)
    policy = own.solve(Belief(2, 1))
    least, explore = exact_thresholds("optimal", own, Belief(2, 1))
    for p in (0.5, 0.79, 0.9):
        value, rest, stopped = exact_value(p, 0.8, 0.98, 2.0, 1.0, least, explore)
        found = characteristics(policy, p=p)
        assert value + math.copysign(rest, p - 0.8) == pytest.approx(found.reward.midpoint, abs=1e-4)
        assert rest < 1e-5
        assert stopped <= found.stops.upper


def test_simulated_and_exact_values_agree() -> None:
    rows = study(fico_world(3), [0.8], [0.995], ["independent"], RULES, runs=120)
    assert len(rows) == len(RULES)
    for row in rows:
        if row.exact is not None:
            assert abs(row.share - row.exact) <= 2 * row.half_width + 1e-3, row.rule
    assert sum(row.exact is not None for row in rows) == len(RULES) - 1  # Thompson is simulated only


def test_exact_values_add_up_over_segments() -> None:
    """A study's optimum with truths averaged over the prior is the segments' value."""
    world = fico_world(2)
    own = Discounted(0.8, 0.99)
    total = 0.0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for share in world.shares:
        mine = own.for_share(float(share))
        least, _ = exact_thresholds("optimal", mine, UNIFORM)
        values = [exact_value((x + 1) / 2, 0.8, mine.discount, 2.0, 1.0, least, 0.0)[0] for x in nodes]
        total += own.weight_of_share(float(share)) * float(np.dot(weights, values)) / 2
    shares = {str(i): float(share) for i, share in enumerate(world.shares)}
    best = Segments.of(shares, own, UNIFORM).solve().value()
    assert total == pytest.approx(best.midpoint, abs=2e-3)


def test_with_truths_drawn_from_the_prior_the_optimum_is_first() -> None:
    rows = study(fico_world(3), [0.8], [0.99, 0.998], ["independent"], RULES, runs=400, drawn_from_prior=True)
    for row in rows:
        assert row.behind >= -row.behind_half_width - 1e-12, (row.rule, row.discount)
    assert sum(row.behind > row.behind_half_width for row in rows) > len(rows) / 2


def test_on_fico_the_curve_beats_every_rule_with_independent_beliefs() -> None:
    world = fico_world()
    curve = study(world, [0.8], [0.999], ["curve"], ["optimal"], runs=40)[0]
    others = study(world, [0.8], [0.999], ["independent"], RULES, runs=40, exact=False)
    assert all(curve.share - curve.half_width > row.share + row.half_width for row in others)
    assert curve.share > 0.93


def test_pooled_history_is_a_trap() -> None:
    rows = study(fico_world(), [0.8], [0.999], ["history", "pooled history"], ["optimal"], runs=30)
    assert rows[0].share > 0.8
    assert rows[1].share < -0.5  # it accepts everyone, and cannot be taught


def test_unknown_names() -> None:
    world = fico_world(2)
    with rejected("rule"):
        make_rule("best", 0.8, 0.99, world.shares)
    with rejected("model"):
        make_model("best", world)


def test_exact_share_of_always_accepting() -> None:
    world = fico_world()
    mean = float(world.shares @ (world.p - 0.8))
    gain = float(world.shares @ np.maximum(world.p - 0.8, 0))
    assert exact_share(world, "always", 0.8, 0.999, UNIFORM) == pytest.approx(mean / gain)


def results() -> list[Result]:
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Result])


def test_the_kept_results_are_complete() -> None:
    rows = results()
    fico = {(row.cost, row.discount, row.model, row.rule) for row in rows if row.world == "FICO"}
    assert fico == {(c, g, m, r) for c in COSTS for g in DISCOUNTS for m in MODELS for r in RULES}
    prior = {(row.cost, row.discount, row.rule) for row in rows if row.world == "prior"}
    assert prior == {(c, g, r) for c in COSTS for g in DISCOUNTS for r in RULES}


def test_the_kept_results_say_what_the_page_says() -> None:
    rows = results()
    for cost in COSTS:
        for discount in DISCOUNTS:
            here = [row for row in rows if (row.cost, row.discount) == (cost, discount)]
            for row in here:
                if row.world == "prior":
                    # First, or not to be told apart from the first.
                    assert row.behind >= -2.5 * row.behind_half_width / 1.96, (row.rule, cost, discount)
            curve = next(row for row in here if (row.world, row.model, row.rule) == ("FICO", "curve", "optimal"))
            for row in here:
                if row.world == "FICO" and row.model in ("independent", "Jeffreys"):
                    assert curve.share > row.share + row.half_width, (row.rule, cost, discount)


def test_the_kept_results_agree_with_the_exact_ones() -> None:
    compared = [row for row in results() if row.exact is not None]
    assert len(compared) == 2 * len(COSTS) * len(DISCOUNTS) * (len(RULES) - 1)
    for row in compared:
        assert row.exact is not None
        assert abs(row.share - row.exact) <= 2.5 * row.half_width + 1e-3, (row.model, row.rule, row.cost, row.discount)


def test_the_page_shows_the_kept_results() -> None:
    page = (RESULTS.parent / "fico.md").read_text(encoding="utf-8")
    for row in results():
        if row.world == "FICO":
            assert f"{row.share:.3f} ± {row.half_width:.3f}" in page
    curve = [row.share for row in results() if (row.world, row.model, row.rule) == ("FICO", "curve", "optimal")]
    assert f"{min(curve):.3f} to {max(curve):.3f}" in page
