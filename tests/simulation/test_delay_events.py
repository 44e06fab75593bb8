"""The event simulation against exact values, and its random numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief
from lenience.analysis.delay import baselines, evaluate_pending
from lenience.objectives.delayed import Delayed
from lenience.policies import Greedy
from lenience.policies.beliefs.counted_cap import CountedCap
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.beliefs.pending import Blind, Capped
from lenience.simulation.delay_events import limit_table, simulate_delays
from lenience.simulation.label_delay import LabelDelay, delay_of
from rejections import rejected

PROBLEM = Delayed(cost=0.7, arrivals=20, discount_rate=0.5, label_delay=0.5)
PRIOR = Belief(3, 2)


def test_agrees_with_the_exact_values() -> None:
    best = PROBLEM.solve(PRIOR)
    policies: dict[str, ExposurePolicy | Blind | Capped | CountedCap] = {
        "best": best,
        **baselines(PROBLEM, PRIOR, caps=[2]),
    }
    run = simulate_delays(policies, PROBLEM, PRIOR, LabelDelay("exponential", 0.5), 20_000, seed=3)
    assert [one.policy for one in run] == list(policies)
    for one in run:
        exact = evaluate_pending(policies[one.policy], PROBLEM, PRIOR, 1e-5).midpoint
        # Four standard errors, and the share of the worth that is left when a replication ends.
        assert abs(one.mean - exact) < 4 * one.error + 1e-4 * 40 * 0.3, one
        assert one.error < 0.1
    assert run[0].difference == run[0].difference_error == 0
    assert run[1].difference < -4 * run[1].difference_error  # the blind policy is worse


def test_seeds() -> None:
    policies: dict[str, Blind | Capped] = {
        "greedy": Blind(Greedy(0.5), 0.5),
        "cap": Capped(Greedy(0.5), 0.5, 2, everywhere=True),
    }
    problem = Delayed(0.5, 10, 0.5, 0.5)
    law = LabelDelay("lognormal", 0.5, sigma=0.8)
    first = simulate_delays(policies, problem, PRIOR, law, 300, seed=5)
    assert simulate_delays(policies, problem, PRIOR, law, 300, seed=5) == first
    assert simulate_delays(policies, problem, PRIOR, law, 300, seed=6) != first
    # A policy's result does not depend on which others run beside it.
    assert simulate_delays({"cap": policies["cap"]}, problem, PRIOR, law, 300, seed=5)[0].mean == first[1].mean


def test_everyone_is_accepted_above_the_cost() -> None:
    """With p = 1 and a belief above the cost, the value is the annuity of (1 − c), whatever the delay."""
    for law in (LabelDelay("fixed", 3), LabelDelay("lognormal", 1), LabelDelay("exponential", 1, missing=0.5)):
        run = simulate_delays({"greedy": Blind(Greedy(0.5), 0.5)}, PROBLEM, Belief(4, 3), law, 400, rate=1.0)
        assert run[0].mean == pytest.approx(20 / 0.5 * 0.3, rel=0.02)
        assert run[0].accepted == pytest.approx(20 * math.log(1e4) / 0.5, rel=0.03)


def test_labels_that_never_come_block_until_written_off() -> None:
    waiting = {"wait": Capped(Greedy(0.5), 0.5, 1, everywhere=True)}
    law = LabelDelay("fixed", 0.5, missing=0.5)
    blocked = simulate_delays(waiting, PROBLEM, Belief(4, 3), law, 500, rate=1.0)[0]
    freed = simulate_delays(waiting, PROBLEM, Belief(4, 3), law, 500, rate=1.0, expire_after=1.5)[0]
    assert blocked.accepted == pytest.approx(2, abs=0.25)  # a geometric number, mean 2
    # One acceptance a cycle: the mean wait for an arrival and for the label or the write-off.
    assert freed.accepted == pytest.approx(math.log(1e4) / 0.5 / (1 / 20 + 1.0), rel=0.05)


def test_a_label_written_off_is_still_learnt_from() -> None:
    """Fixed delay 2, written off at 1: with p = 0 the first label still stops a greedy policy."""
    run = simulate_delays(
        {"cap": Capped(Greedy(0.5), 0.5, 1, everywhere=True)},
        Delayed(0.5, 50, 0.1, 1),
        Belief(3, 2),
        LabelDelay("fixed", 2),
        200,
        rate=0.0,
        expire_after=1.0,
    )[0]
    assert 2 <= run.accepted <= 4


def test_fixed_rate_and_strata() -> None:
    policy = {"greedy": Blind(Greedy(0.5), 0.5)}
    low = simulate_delays(policy, PROBLEM, PRIOR, LabelDelay("fixed", 0.5), 300, rate=0.2)[0]
    high = simulate_delays(policy, PROBLEM, PRIOR, LabelDelay("fixed", 0.5), 300, rate=0.9)[0]
    assert low.mean < 0 < high.mean


def test_limit_table() -> None:
    policy = PROBLEM.solve(PRIOR)
    first, offsets, limits = limit_table(policy, PRIOR, PROBLEM.cost, 40)
    for k in (0, 1, 7, 40):
        good = PRIOR.s + np.arange(k + 1)
        for j, limit in enumerate(policy.exposure(PRIOR.n + k, good)):
            if j < first[k]:
                assert limit == 0
            elif j < first[k] + offsets[k + 1] - offsets[k]:
                assert limit == limits[offsets[k] + j - first[k]]
            else:
                assert limit > 10**6


def test_labels_at_once_and_labels_that_never_come() -> None:
    policy = {"greedy": Blind(Greedy(0.5), 0.5)}

    def mean(law: LabelDelay, expire_after: float | None = None) -> float:
        return simulate_delays(policy, PROBLEM, PRIOR, law, 200, expire_after=expire_after)[0].mean

    assert mean(LabelDelay("none")) == mean(LabelDelay("fixed", 0)) == mean(LabelDelay("exponential", 0))
    # Without a label the prior, above the cost, is never revised: everyone is accepted, as under an endless delay.
    assert mean(LabelDelay("never")) == mean(LabelDelay("fixed", 1, missing=1)) == mean(LabelDelay("fixed", 1e6))
    assert mean(LabelDelay("never")) < mean(LabelDelay("none"))


@pytest.mark.parametrize("kind", ["none", "exponential", "fixed", "lognormal", "never"])
def test_worlds_and_the_event_simulation_draw_from_the_same_law(kind: str) -> None:
    law, count = LabelDelay(kind, mean=30, sigma=0.5, missing=0.2), 20_000
    chance, second, lost = np.random.default_rng(1).random((3, count))
    drawn = np.array(
        [delay_of(*law.for_kernels, *each) for each in zip(chance, second, lost, strict=True)],
    )
    lags = law.lags(chance, lost, horizon=10_000)
    assert np.array_equal(np.isinf(drawn), lags == 10_001)
    for level in (5, 20, 30, 60):
        assert np.mean(np.ceil(drawn) <= level) == pytest.approx(np.mean(lags <= level), abs=0.015), level


def test_bad_input() -> None:
    policy = {"greedy": Blind(Greedy(0.5), 0.5)}
    with rejected("kind", "unknown_name"):
        LabelDelay("weekly", 1)
    with rejected("mean"):
        LabelDelay("fixed", -1)
    with rejected("missing"):
        LabelDelay("fixed", 1, missing=2)
    with rejected("policies"):
        simulate_delays({}, PROBLEM, PRIOR, LabelDelay("fixed", 1))
    with rejected("replications"):
        simulate_delays(policy, PROBLEM, PRIOR, LabelDelay("fixed", 1), 1)
    with rejected("replications", "too_large"):
        simulate_delays(policy, PROBLEM, PRIOR, LabelDelay("fixed", 1), 10**9)
    with rejected("rate"):
        simulate_delays(policy, PROBLEM, PRIOR, LabelDelay("fixed", 1), 10, rate=2)
    with rejected("expire_after"):
        simulate_delays(policy, PROBLEM, PRIOR, LabelDelay("fixed", 1), 10, expire_after=0)
