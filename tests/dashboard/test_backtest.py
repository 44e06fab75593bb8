"""The past, decided again by the new rule."""

from __future__ import annotations

import numpy as np
import pytest

import lenience
from lenience.core.belief import Belief
from lenience.dashboard.wizard.backtest import backtest, halved
from lenience.dashboard.wizard.past_file import Known
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.service.domain.specification import PolicySpecification


def _known(outcomes: str, segment: str = "all") -> list[Known]:
    return [Known(segment, mark == "1", None, place) for place, mark in enumerate(outcomes)]


def test_the_replay_stops_where_the_optimal_policy_stops() -> None:
    outcomes = "".join(np.random.default_rng(2).choice(["0", "1"], 400, p=[0.45, 0.55]))
    specification = PolicySpecification("p", Discounted(0.7, 0.99))
    found = backtest(specification, {"all": Belief(2, 1)}, _known(outcomes))
    policy = Discounted(0.7, 0.99).solve(Belief(2, 1))
    belief, accepted = Belief(2, 1), 0
    while policy.accepts(belief):
        belief = belief.observe([outcomes[accepted] == "1"])
        accepted += 1
    (row,) = found.segments
    assert 0 < accepted < 400
    assert (row.new.accepted, row.stopped_after) == (accepted, accepted)
    assert row.new.successes == belief.s - 1
    assert (row.past.accepted, row.past.successes) == (400, outcomes.count("1"))
    assert found.new_value == pytest.approx(row.new.successes - 0.7 * accepted)
    assert found.course[-1] == pytest.approx((400, found.past_value, found.new_value))


def test_the_replay_waits_for_late_outcomes() -> None:
    # Applicants come 50 a year and outcomes two years later, so before the hundredth nothing is known.
    objective = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=2)
    prior = Belief(2, 1)
    found = backtest(PolicySpecification("p", objective), {"all": prior}, _known("1" * 90))
    limit = lenience.Delayed(0.8, 50, 0.1, 2).enclose(prior)[1]
    assert limit is not None
    assert found.new.accepted == limit < 90
    assert found.held_back == 90 - limit


def test_the_later_half_is_decided_with_what_was_known_by_then() -> None:
    # In the earlier half nine of ten failed: the later one is closed from the start, and would have paid.
    known = [Known("all", i >= 50 or i % 10 == 0, i / 100, i) for i in range(100)]
    earlier, later = halved(known)
    assert (len(earlier), len(later)) == (50, 50)
    prior = Belief(2 + 50, 1 + 5)
    found = backtest(PolicySpecification("p", Discounted(0.7, 0.99)), {"all": prior}, later)
    assert (found.new.accepted, found.past.accepted, found.segments[0].stopped_after) == (0, 50, 0)
    assert found.past_value == pytest.approx(50 * 0.3)
    assert halved([Known("all", True, 0.0, i) for i in range(4)])[0] == []
    assert halved(_known("0101")) == ((), ())
