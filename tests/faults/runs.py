"""Schedules of one process, in a module that other processes can import."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

from faults import sabotage
from faults.machine import Machine
from faults.schedule import ScheduleResult, Simulator


class Job(NamedTuple):
    """The share of one process."""

    first: int  # seed
    most: int | None  # schedules of all processes together
    until: float | None
    every_step: bool
    parts: int  # processes
    sabotage: str | None


def run_all(job: Job) -> tuple[Counter[str], list[ScheduleResult]]:
    """Run the share of one process, and return counts and the schedules that failed."""
    totals, failures = Counter[str](), list[ScheduleResult]()
    machine = Machine()
    broken = next((each for each in sabotage.ALL if each.__name__ == job.sabotage), nullcontext)
    with machine.installed():
        simulator = Simulator(machine)
        simulator.prepare()
        began = time.process_time()
        for result in schedules(simulator, job, broken):
            totals.update(
                schedules=1,
                operations=result.operations,
                acknowledged=result.acknowledged,
                kills=result.kills,
                power_losses=result.power_losses,
                **{f"{kind}_faults": number for kind, number in result.failed.items()},
            )
            if result.violations:
                failures.append(result)
                print(f"seed {result.seed} failed", file=sys.stderr, flush=True)
        totals["cpu_ms"] = int(1000 * (time.process_time() - began))
    return totals, failures


def schedules(simulator: Simulator, job: Job, broken: Callable[[], Any]) -> Iterator[ScheduleResult]:
    """Run schedules, as many or as long as wanted. A broken engine is run until it is found."""
    seed, last = job.first, None if job.most is None else job.first + job.most
    while last is None or seed < last:
        step: int | None = None
        steps = 0
        while step is None or step <= steps:
            if job.until is not None and time.monotonic() >= job.until:
                return
            with broken():
                result = simulator.run(seed, kill_at=step)
            yield result
            if job.sabotage and result.violations:
                return
            if step is None:
                steps = result.first_steps if job.every_step else 0
            step = (step or 0) + 1
        seed += job.parts
