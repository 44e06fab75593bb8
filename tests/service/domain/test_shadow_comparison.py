"""Shadow versions in money: counts, differences and intervals against a slow computation, and the verdict."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from lenience.core.money import Money
from lenience.service.domain.shadow_comparison import ComparedDecision, ShadowComparison, Side, compare_versions

DOLLARS = Money(1.0, "$")


def compared(decisions: list[ComparedDecision], money: Money = DOLLARS) -> ShadowComparison:
    return compare_versions(decisions, (1, 2), ("own", "logistic"), money)


def random_decisions(seed: int, size: int = 60) -> list[ComparedDecision]:
    rng = np.random.default_rng(seed)
    decisions = []
    for _ in range(size):
        active, shadow = (
            Side(
                bool(rng.random() < 0.6),
                float(rng.uniform(0.3, 0.95)),
                float(rng.uniform(1, 40)),
                float(amount),
                0.7,
                str(rng.choice(["a", "b"])),
            )
            for amount in rng.uniform(500, 5000, 2)
        )
        known = active.accepts and rng.random() < 0.7
        profit = float(rng.normal()) if known else None
        decisions.append(ComparedDecision(active, shadow, profit))
    return decisions


def test_counts_sums_and_intervals_are_those_of_a_slow_computation() -> None:
    decisions = random_decisions(1)
    result = compared(decisions)
    groups = [(one.active.accepts, one.shadow.accepts) for one in decisions]
    assert result.both_accept == groups.count((True, True))
    assert result.both_reject == groups.count((False, False))
    assert (result.only_active, result.only_shadow) == (groups.count((True, False)), groups.count((False, True)))
    for each, side in zip(result.expected, ("active", "shadow"), strict=True):
        means = [getattr(one, side).mean for one in decisions]
        sizes = [getattr(one, side).n for one in decisions]
        gaps, errors = [], {"a": 0.0, "b": 0.0}
        for one, mean, n in zip(decisions, means, sizes, strict=True):
            mine = one.shadow.amount * (mean - 0.7) if one.shadow.accepts else 0.0
            theirs = one.active.amount * (mean - 0.7) if one.active.accepts else 0.0
            gaps.append(mine - theirs)
            stake = abs(
                (one.shadow.amount if one.shadow.accepts else 0) - (one.active.amount if one.active.accepts else 0)
            )
            errors[getattr(one, side).group] += stake * math.sqrt(mean * (1 - mean) / (n + 1))
        assert each.difference == pytest.approx(sum(gaps))
        assert each.shadow - each.active == pytest.approx(sum(gaps))
        variance = len(gaps) * statistics.variance(gaps) + sum(error**2 for error in errors.values())
        assert each.interval.upper - each.difference == pytest.approx(1.6449 * math.sqrt(variance))
    lost = [one.profit for one in decisions if one.profit is not None and not one.shadow.accepts]
    assert result.observed.outcomes == len(lost)
    assert result.observed.profit == pytest.approx(sum(lost))
    assert result.observed.pending == result.only_active - len(lost)


def loans(
    count: int, active: bool, shadow: bool, rates: tuple[float, float], profit: float | None, n: float = 400.0
) -> list[ComparedDecision]:
    one = ComparedDecision(Side(active, rates[0], n, 1000, 0.7), Side(shadow, rates[1], n, 1000, 0.7), profit)
    return [one] * count


def test_a_verdict_needs_both_estimates_and_no_contradiction() -> None:
    same = loans(60, True, True, (0.9, 0.9), 300.0)
    assert compared(same[:20]).verdict == "too_early"
    assert compared(same).verdict == "same"
    good = loans(40, False, True, (0.8, 0.85), None)  # rejected for a limit, though both expect a profit
    assert compared(same + good).verdict == "better"
    assert "Nobody knows how the 40 applicants" in compared(same + good).unknown
    bad = loans(40, False, True, (0.5, 0.55), None)
    assert compared(same + bad).verdict == "worse"
    disputed = loans(40, False, True, (0.5, 0.85), None)
    assert compared(same + disputed).verdict == "unclear"
    unsure = loans(40, False, True, (0.71, 0.72), None, n=2.0)
    assert compared(same + unsure).verdict == "unclear"


def test_outcomes_decide_where_the_shadow_is_only_stricter() -> None:
    same = loans(60, True, True, (0.9, 0.9), 300.0)
    mixed = [*loans(15, True, False, (0.9, 0.5), -700.0), *loans(5, True, False, (0.9, 0.5), 300.0)]
    result = compared(same + mixed)
    assert (result.verdict, result.observed.outcomes) == ("better", 20)
    assert result.observed.profit == pytest.approx(15 * -700 + 5 * 300)
    assert result.observed.interval.upper < 0
    paying = [*loans(38, True, False, (0.5, 0.5), 300.0), *loans(2, True, False, (0.5, 0.5), -700.0)]
    assert compared(same + paying).verdict == "worse"
    few = loans(5, True, False, (0.9, 0.5), -700.0)
    assert compared(same + few).verdict == "unclear"
    # Outcomes that contradict both estimates leave it open, if something was not observed.
    contradicted = compared(
        [*same, *loans(40, True, False, (0.5, 0.5), 300.0), *loans(1, False, True, (0.9, 0.9), None)]
    )
    assert contradicted.verdict == "unclear"


def test_profits_without_money_are_in_units() -> None:
    result = compared(loans(40, False, True, (0.9, 0.9), None), Money())
    assert result.currency is None
    assert "units of gain + loss" in result.sentence
    assert compared([]).verdict == "too_early"
