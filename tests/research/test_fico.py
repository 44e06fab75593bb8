"""The FICO study: simulation against exact values, the optimum where it must win, and the results that the page
shows."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lenience import Belief, Discounted, Segments, characteristics
from lenience.models.own_counts import JEFFREYS, UNIFORM
from rejections import rejected
from research.cells import exact_value
from research.fico import (
    COSTS,
    DISCOUNTS,
    MODELS,
    RULES,
    RuleResult,
    exact_share,
    exact_thresholds,
    fico_world,
    make_model,
    make_rule,
    study,
)
from research.fico_report import RUNS, prior_table, summary, tables

RESULTS = Path(__file__).parents[2] / "research" / "fico_results.json"


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
    with rejected("rule", "unknown_name"):
        make_rule("best", 0.8, 0.99, world.shares)
    with rejected("model", "unknown_name"):
        make_model("best", world)


def test_exact_share_of_always_accepting() -> None:
    world = fico_world()
    mean = float(world.shares @ (world.p - 0.8))
    gain = float(world.shares @ np.maximum(world.p - 0.8, 0))
    assert exact_share(world, "always", 0.8, 0.999, UNIFORM) == pytest.approx(mean / gain)


def results() -> list[RuleResult]:
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[RuleResult])


@pytest.fixture(scope="module")
def stored() -> list[RuleResult]:
    return results()


def stored_row(rows: list[RuleResult], like: RuleResult) -> RuleResult:
    key = (like.world, like.model, like.rule, like.cost, like.discount)
    (row,) = [row for row in rows if (row.world, row.model, row.rule, row.cost, row.discount) == key]
    return row


def test_the_stored_results_are_complete(stored: list[RuleResult]) -> None:
    fico = {(row.cost, row.discount, row.model, row.rule) for row in stored if row.world == "FICO"}
    assert fico == {(c, g, m, r) for c in COSTS for g in DISCOUNTS for m in MODELS for r in RULES}
    prior = {(row.cost, row.discount, row.rule) for row in stored if row.world == "prior"}
    assert prior == {(c, g, r) for c in COSTS for g in DISCOUNTS for r in RULES}
    assert len(stored) == len(fico) + len(prior)


@pytest.mark.parametrize("drawn_from_prior", [False, True])
def test_the_stored_results_are_what_the_study_computes(stored: list[RuleResult], drawn_from_prior: bool) -> None:
    models = ["independent"] if drawn_from_prior else ["independent", "curve", "history"]
    runs = RUNS[0.999] * (2 if drawn_from_prior else 1)
    rules = ["optimal", "ε-greedy 0.05", "Thompson", "Bayes-UCB 0.9"]
    again = study(fico_world(), [0.8], [0.999], models, rules, runs, drawn_from_prior=drawn_from_prior, exact=False)
    assert len(again) == len(models) * len(rules)
    for row in again:
        before = stored_row(stored, row)
        assert row.runs == before.runs == runs
        # The same individuals: only the last digits of a threshold may differ.
        assert row.share == pytest.approx(before.share, abs=0.1 * before.half_width), (row.model, row.rule)
        assert row.half_width == pytest.approx(before.half_width, rel=0.1), (row.model, row.rule)
        assert row.behind == pytest.approx(before.behind, abs=0.1 * before.behind_half_width + 1e-12), row.rule


def test_the_stored_exact_values_are_what_is_computed_and_simulated(stored: list[RuleResult]) -> None:
    world = fico_world()
    for rule in ("optimal", "greedy", "ε-greedy 0.1", "Bayes-UCB 0.95", "always"):
        for model, prior in (("independent", UNIFORM), ("Jeffreys", JEFFREYS)):
            (row,) = [
                row for row in stored
                if (row.world, row.model, row.rule, row.cost, row.discount) == ("FICO", model, rule, 0.8, 0.999)
            ]  # fmt: skip
            assert row.exact == pytest.approx(exact_share(world, rule, 0.8, 0.999, prior), abs=1e-3), (rule, model)
    compared = [row for row in stored if row.exact is not None]
    assert len(compared) == 2 * len(COSTS) * len(DISCOUNTS) * (len(RULES) - 1)
    for row in compared:
        assert row.exact is not None
        assert abs(row.share - row.exact) <= 2.5 * row.half_width + 1e-3, (row.model, row.rule, row.cost, row.discount)


def test_the_stored_results_say_what_the_page_says(stored: list[RuleResult]) -> None:
    for cost in COSTS:
        for discount in DISCOUNTS:
            here = [row for row in stored if (row.cost, row.discount) == (cost, discount)]
            for row in here:
                if row.world == "prior":
                    # First, or not to be told apart from the first.
                    assert row.behind >= -2.5 * row.behind_half_width / 1.96, (row.rule, cost, discount)
            curve = next(row for row in here if (row.world, row.model, row.rule) == ("FICO", "curve", "optimal"))
            for row in here:
                if row.world == "FICO" and row.model in ("independent", "Jeffreys"):
                    assert curve.share > row.share + row.half_width, (row.rule, cost, discount)


def test_the_pages_show_the_stored_results(stored: list[RuleResult]) -> None:
    page = (RESULTS.parent / "fico.md").read_text(encoding="utf-8")
    for part in (summary(stored), *tables(stored), prior_table(stored)):
        assert f"\n{part}\n" in page
    short = (RESULTS.parents[1] / "docs" / "fico.md").read_text(encoding="utf-8")
    assert "\n".join(line for line in summary(stored).splitlines() if line.startswith("|")) in short
    curve = [row.share for row in stored if (row.world, row.model, row.rule) == ("FICO", "curve", "optimal")]
    assert f"{min(curve):.3f} to {max(curve):.3f}" in short
