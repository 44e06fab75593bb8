"""One schedule: processes that serve clients, fail and die, and a last one that is checked."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any

from faults.checks import check_answers, check_audit, check_files, check_log, check_reused, reusing_a_key
from faults.clients import BusinessClient, Observations, Reader
from faults.disk import FaultPlan, Operation
from faults.event_loop import SimulatedLoop
from faults.image import first_image
from faults.machine import Machine
from faults.operations import Planner
from faults.scheduler import Killed
from lenience.core.errors import InputError
from lenience.core.settings import FOUR_EYES
from lenience.service.commands.keys import create_key, list_keys, revoke_key
from lenience.service.commands.probe import Probe
from lenience.service.domain.problems import Damaged, Unavailable
from lenience.service.http.service import Service
from lenience.service.storage.command import Command
from lenience.service.storage.store import Store

HOUR = 3_600_000_000
STEPS_BACK_AND_FORTH = (-2 * HOUR, -HOUR, -5_000_000, 5_000_000, HOUR // 2, 30 * HOUR)
FIRST_STARTS = 0.02  # of the schedules begin without a database
FLAVOURS = (("cards",), ("cards",), ("shops",), ("applicants",), ("loans",), ("cards", "shops", "applicants"))
COLLECT_EVERY = 50


@dataclass(slots=True)
class ScheduleResult:
    """What happened in a schedule."""

    seed: int
    kill_at: int | None = None  # the step at which the first process was killed, if that was wanted
    violations: list[str] = field(default_factory=list)
    steps: int = 0
    first_steps: int = 0  # of the first process
    operations: int = 0
    acknowledged: int = 0
    kills: int = 0
    power_losses: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    digest: str = ""  # of the log at the end, and of everything that the clients saw


class Simulator:
    """Runs schedules on one machine. Use it inside ``machine.installed()``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._images: dict[tuple[str, ...], dict[str, bytes]] = {}
        self._runs = 0

    def run(self, seed: int, kill_at: int | None = None) -> ScheduleResult:
        """Run the schedule of a seed and check it. With ``kill_at``, kill its first process at this step."""
        random = Random(f"{seed}/schedule")
        policies = random.choice(FLAVOURS)
        first = self._image(policies)
        image = {} if random.random() < FIRST_STARTS else first
        gc.disable()
        try:
            return Schedule(self.machine, seed, random, list(policies), image).run(kill_at)
        finally:
            self._runs += 1
            if self._runs % COLLECT_EVERY == 0:
                gc.collect()
            gc.enable()

    def prepare(self) -> None:
        """Make all databases from which schedules start, because a broken engine may fail to make them."""
        for policies in FLAVOURS:
            self._image(policies)

    def _image(self, policies: tuple[str, ...]) -> dict[str, bytes]:
        if policies not in self._images:
            self._images[policies] = first_image(self.machine, policies)
            gc.collect()
            gc.freeze()  # what is loaded stays, so that later collections need not look at it
        return self._images[policies]


class Schedule:
    """One schedule."""

    def __init__(
        self, machine: Machine, seed: int, random: Random, policies: list[str], image: dict[str, bytes]
    ) -> None:
        machine.reset(str(seed), image)
        self.machine, self.random = machine, random
        self.seen = Observations()
        self.planner = Planner(Random(f"{seed}/operations"), policies)
        self.clients = [
            BusinessClient(Random(f"{seed}/client {i}"), self.planner, self.seen) for i in range(random.randrange(1, 5))
        ]
        self.reader = Reader(Random(f"{seed}/reader"), self.planner, self.seen)
        self.result = ScheduleResult(seed)
        self._later: tuple[FaultPlan, int | None] | None = None  # faults and death after the start
        machine.scheduler.switch_share = random.choice((0.0, 0.05, 0.3))
        os.environ[FOUR_EYES] = random.choice(("", "1"))

    def run(self, kill_at: int | None) -> ScheduleResult:
        """Run processes until the last one, then check."""
        self.result.kill_at = kill_at
        for number in range(1 if self.random.random() < 0.7 else 2):
            self._draw_faults()
            if number == 0 and kill_at is not None:
                self.machine.scheduler.kill_at = kill_at
            self._serve()
            if number == 0:
                self.result.first_steps = self.machine.scheduler.steps
        self.machine.disk.plan = FaultPlan()
        self._check()
        result, scheduler = self.result, self.machine.scheduler
        result.violations = [*self.seen.violations, *result.violations]
        result.violations += [f"a thread failed: {error!r}" for error in scheduler.failures]
        result.steps, result.failed = scheduler.steps, self.machine.disk.failed
        result.operations = len(self.planner.operations)
        result.acknowledged = sum(bool(each.answers) for each in self.planner.operations)
        result.digest = self._digest()
        return result

    def _digest(self) -> str:
        """Return the digest of the files at the end, and of everything that the clients saw."""
        digest = sha256(repr((self.machine.scheduler.steps, self.machine.scheduler.time, self.seen)).encode())
        for operation in self.planner.operations:
            digest.update(repr((operation.name, operation.sent, operation.answers, operation.refusals)).encode())
        for name, file in sorted(self.machine.disk.files.items()):
            digest.update(name.encode() + file.durable)
        return digest.hexdigest()

    def _draw_faults(self) -> None:
        """Draw what fails while the next process runs, and when it dies: while it starts, or afterwards."""
        random = self.random
        self.machine.disk.plan, self._later = FaultPlan(), None
        faults, death = random.random() < 0.7, random.random() < 0.8
        first, length = int(10 ** random.uniform(0.5, 2.5)), int(10 ** random.uniform(1, 2.7))
        kinds: list[Operation] = ["read", "write", "sync", "truncate", "delete"]
        shares = {kind: 10 ** random.uniform(-2.3, -0.3) for kind in kinds if random.random() < 0.5}
        plan = FaultPlan(shares, first, first + length, random.random() < 0.4) if faults else FaultPlan()
        self._later = plan, int(10 ** random.uniform(0.5, 3)) if death else None
        if random.random() < 0.2:
            self._begin_faults()

    def _begin_faults(self) -> None:
        """Count the steps to the faults, and to the death of the process, from now on."""
        if self._later is not None:
            (plan, kill_in), self._later = self._later, None
            scheduler = self.machine.scheduler
            plan.first, plan.last = plan.first + scheduler.steps, plan.last + scheduler.steps
            self.machine.disk.plan = plan
            if kill_in is not None and scheduler.kill_at is None:
                scheduler.kill_at = scheduler.steps + kill_in

    def _serve(self) -> None:
        """Run a process until it stops or dies, and leave what the next one finds."""
        machine, random = self.machine, self.random
        service: Service | None = None
        living: Coroutine[Any, Any, None] | None = None
        loop = SimulatedLoop(machine.scheduler)
        try:
            service = self._start()
            if service is not None:
                living = self._live(service)
                loop.run_until_complete(living)
                service = None
        except Killed:
            pass
        died = machine.scheduler.dead
        self._bury(loop, service, living)
        power = died and random.random() < 0.5
        self.result.kills += died
        self.result.power_losses += power
        if random.random() < 0.3:
            machine.ahead += random.choice(STEPS_BACK_AND_FORTH)
        machine.stopped_at = None
        machine.disk.crash(power=power)
        machine.start_process()

    def _start(self) -> Service | None:
        """Start the service. A disk that fails may prevent it, but only in a way that the operator understands."""
        try:
            return Service(self.machine.database)
        except Exception as error:
            if self.machine.scheduler.dead:
                raise Killed from None
            expected = isinstance(error, Unavailable | Damaged | InputError) and any(self.machine.disk.failed)
            if not expected:
                self.seen.violations.append(f"the service does not start: {error!r}")
            return None

    async def _live(self, service: Service) -> None:
        """Serve the clients, recover from the faults, and stop."""
        if self.random.random() < 0.7:
            service._chores_from = 0.0
        await service.start()
        self._begin_faults()
        others = [asyncio.create_task(self.reader.run(service)), asyncio.create_task(self._operate(service))]
        await asyncio.gather(*(client.run(service, self.random.randrange(1, 8)) for client in self.clients))
        for task in others:
            task.cancel()
        self.machine.disk.plan = FaultPlan()
        await self._recover(service)
        await service.stop()

    async def _operate(self, service: Service) -> None:
        """Set the clock, and do the chores, at some time."""
        machine, random = self.machine, self.random
        while True:
            await asyncio.sleep(random.random())
            chance = random.random()
            if chance < 0.2:
                machine.ahead += random.choice(STEPS_BACK_AND_FORTH)
            elif chance < 0.3:
                machine.stopped_at = machine.machine_time()
            elif chance < 0.4:
                machine.stopped_at = None
            elif chance < 0.75:
                try:
                    await service.ask(service.do_chores if chance < 0.65 else lambda: self._change_keys(service.store))
                except (Unavailable, Damaged):
                    self.seen.unavailable += 1
                except Exception as error:
                    self.seen.violations.append(f"the chores or keys failed: {error!r}")

    def _change_keys(self, store: Store) -> None:
        """Create or revoke a key, beside the writer."""
        keys = [key.id for key in list_keys(store) if key.revoked_at is None]
        if len(keys) > 1:
            revoke_key(store, keys[0], "operator")
        else:
            create_key(store, "a key", ("admin",), None, "operator")

    async def _recover(self, service: Service) -> None:
        """Once nothing fails any longer, the service works again without a restart."""
        try:
            await service.perform(Probe())
            await service.ask(service.store.check_readable)
        except Exception as error:
            self.seen.violations.append(f"the service has not recovered from faults that are over: {error!r}")

    def _bury(self, loop: SimulatedLoop, service: Service | None, living: Coroutine[Any, Any, None] | None) -> None:
        """Take a process that stopped or died out of this one."""
        machine = self.machine
        machine.scheduler.bury()
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(BaseException):
                task.get_coro().close()
        if living is not None:
            living.close()
        loop.close()
        if service is not None:
            service.store.close()

    def _check(self) -> None:
        """Start a last process, and check everything."""
        machine, result = self.machine, self.result
        machine.scheduler.switch_share = 0.0
        service = Service(machine.database)
        loop = SimulatedLoop(machine.scheduler)
        operations = self.planner.operations

        async def answers(commands: Iterable[Command]) -> list[object]:
            return await asyncio.gather(*map(service.perform, commands), return_exceptions=True)

        async def check() -> None:
            await service.ask(service.seal_log)
            result.violations += check_log(service.store, operations)
            keyed = [operation for operation in operations if operation.keyed]
            given = await answers(each.make() for each in [*keyed, *keyed])
            result.violations += check_answers(keyed, given[: len(keyed)], given[len(keyed) :])
            for operation in [each for each in keyed if each.answers][:1]:
                reused = await answers([reusing_a_key(operation)])
                result.violations += check_reused(operation, reused[0])
            result.violations += check_audit(service.store, self.seen.notes, service.log_key)
            result.violations += check_log(service.store, operations)
            await service.stop()

        loop.run_until_complete(check())
        loop.close()
        result.violations += check_files(machine.disk.folder, operations)
