"""Segments that are solved in a process of their own, and end when the solve is cancelled."""

from __future__ import annotations

import subprocess
import threading
from typing import Any

import pytest

from lenience import Belief, Delayed, Discounted, FiniteHorizon, MixtureBelief
from lenience.core.errors import TooLargeError
from lenience.service.commands import solve_process
from lenience.service.commands.solve_process import may_take_long, solve_cancellable
from lenience.service.commands.solve_progress import SolveProgress
from lenience.service.domain.problems import Conflict
from lenience.service.domain.solved_tables import solve
from lenience.service.domain.specification import SegmentProblem


def segment(problem: Any, prior: Belief | MixtureBelief) -> SegmentProblem:
    return SegmentProblem("all", 1.0, problem, prior, None, 0.0)


SHORT = segment(Discounted(0.8, 0.99), Belief(2, 1))
TOO_LARGE = segment(Discounted(0.8, 1 - 1e-9), Belief(2, 1))
LONG = segment(Discounted(0.8, 1 - 2e-7), Belief(2, 1))


def test_segments_that_may_take_long_are_solved_apart() -> None:
    assert not may_take_long(SHORT)
    assert may_take_long(LONG)
    late = Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    assert not may_take_long(segment(late, Belief(2, 1)))
    assert may_take_long(segment(late, MixtureBelief.doubt(Belief(2, 1), 0.2)))
    estimated = Delayed(0.8, arrivals=50_000, discount_rate=0.1, label_delay=1)
    assert not may_take_long(segment(estimated, Belief(2, 1)))
    assert not may_take_long(segment(FiniteHorizon(0.8, horizon=100), Belief(2, 1)))


def test_a_process_returns_the_same_table_or_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_process, "may_take_long", lambda segment: True)
    assert solve_cancellable(SHORT, SolveProgress()) == solve(SHORT)
    with pytest.raises(TooLargeError) as error:
        solve_cancellable(TOO_LARGE, SolveProgress())
    with pytest.raises(TooLargeError) as expected:
        solve(TOO_LARGE)
    assert str(error.value) == str(expected.value)
    assert error.value.code == expected.value.code


def test_cancelling_ends_the_process_inside_a_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    progress, processes, start = SolveProgress(), [], subprocess.Popen

    def started(*arguments: Any, **options: Any) -> Any:
        processes.append(start(*arguments, **options))
        threading.Timer(0.3, setattr, (progress, "cancelled", True)).start()
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", started)
    with pytest.raises(Conflict) as error:
        solve_cancellable(LONG, progress)
    assert error.value.code == "solve_cancelled"
    [process] = processes
    assert process.returncode is not None
    assert process.returncode < 0  # it was killed, long before its minute was over
