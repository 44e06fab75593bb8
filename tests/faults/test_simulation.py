"""The simulation finds engines that are broken, repeats a seed exactly, and finds nothing wrong with the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from faults import sabotage
from faults.image import first_image
from faults.machine import Machine
from faults.schedule import Simulator

FEW = range(1_000, 1_030)
QUICKLY_FOUND = 120  # schedules that must find a broken engine; most need one or two
# These need several hundred schedules: python -m tests.faults --sabotage NAME.
SLOWLY_FOUND = {"publishing_checkpoints_before_the_commit", "without_syncing_the_folder"}


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    machine = Machine()
    with machine.installed():
        simulator = Simulator(machine)
        simulator.prepare()
        yield simulator


def test_the_engine_withstands_faults(simulator: Simulator) -> None:
    results = [simulator.run(seed) for seed in FEW]
    assert {result.seed: result.violations for result in results if result.violations} == {}
    assert sum(result.acknowledged for result in results) > 80
    assert sum(result.kills for result in results) > 10
    assert sum(result.power_losses for result in results) > 5
    assert sum(sum(result.failed.values()) for result in results) > 5


def test_a_seed_gives_the_same_schedule(simulator: Simulator) -> None:
    first = [simulator.run(seed).digest for seed in range(3)]
    assert [simulator.run(seed).digest for seed in range(3)] == first
    assert len(set(first)) == 3


def test_a_loop_that_runs_already_changes_nothing(simulator: Simulator) -> None:
    expected = simulator.run(0).digest
    before, other = asyncio._get_running_loop(), asyncio.new_event_loop()
    asyncio._set_running_loop(other)
    try:
        assert first_image(simulator.machine, ["cards"])
        assert simulator.run(0).digest == expected
        assert asyncio._get_running_loop() is other
    finally:
        asyncio._set_running_loop(before)
        other.close()


@pytest.mark.parametrize("broken", [each for each in sabotage.ALL if each.__name__ not in SLOWLY_FOUND])
def test_a_broken_engine_is_found(simulator: Simulator, broken: sabotage.Sabotage) -> None:
    with broken():
        assert any(simulator.run(seed).violations for seed in range(QUICKLY_FOUND))
