"""Clients outside the process: they retry with the same key, send twice, disconnect, and survive its death."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from faults.operations import Operation, Planner
from lenience.service.domain.problems import Conflict, Damaged, NotFound, Problem, Unavailable
from lenience.service.domain.receipts import CommandAnswer
from lenience.service.http.service import Service

MOST_TRIES = 4


@dataclass(slots=True)
class Observations:
    """What clients have seen, and what they must not have seen."""

    notes: list[str] = field(default_factory=list)  # signed checkpoints
    violations: list[str] = field(default_factory=list)
    unavailable: int = 0


class BusinessClient:
    """A client that sends operations one after the other."""

    def __init__(self, random: Random, planner: Planner, seen: Observations) -> None:
        self._random, self._planner, self._seen = random, planner, seen
        self._current: Operation | None = None  # not sure whether it was written

    async def run(self, service: Service, number: int) -> None:
        """Send a number of operations to a running service."""
        for _ in range(number):
            if self._current is None and self._random.random() < 0.2:
                await self._send_together(service)
                continue
            operation = self._current
            if operation is None or (not operation.keyed and self._random.random() < 0.5):
                operation = self._current = self._planner.plan()
            for _ in range(MOST_TRIES):
                await self._think()
                if await self._send(service, operation):
                    break
            self._current = None

    async def _send_together(self, service: Service) -> None:
        """Send several operations at once, so that they share a transaction."""
        operations = [self._planner.plan() for _ in range(self._random.randrange(2, 7))]
        await self._think()
        await asyncio.gather(*(self._try(service, operation) for operation in operations))

    async def _think(self) -> None:
        seconds = 1.1 if self._random.random() < 0.08 else self._random.random() * 0.01
        await asyncio.sleep(seconds)

    async def _send(self, service: Service, operation: Operation) -> bool:
        """Send an operation, and return whether the client needs no further try."""
        random = self._random
        if operation.keyed and random.random() < 0.1:
            await asyncio.gather(self._try(service, operation), self._try(service, operation))
            return True
        if random.random() < 0.1:  # it disconnects
            operation.sent += 1
            task = asyncio.ensure_future(service.perform(operation.make()))
            await asyncio.wait([task], timeout=random.random() * 0.002)
            if task.done() and not task.cancelled() and task.exception() is None:
                self._accept(operation, task.result())
                return True
            task.cancel()
            return random.random() < 0.3
        return await self._try(service, operation)

    async def _try(self, service: Service, operation: Operation) -> bool:
        operation.sent += 1
        try:
            answer = await service.perform(operation.make())
        except (Unavailable, Damaged):
            self._seen.unavailable += 1
            return self._random.random() < 0.1
        except Problem as problem:
            operation.refusals.append(problem)
        except Exception as error:
            self._seen.violations.append(f"{operation.name} ({operation.kind}): {error!r}")
        else:
            self._accept(operation, answer)
        return True

    def _accept(self, operation: Operation, answer: CommandAnswer) -> None:
        operation.answers.append(answer)
        self._planner.learn(operation, msgspec.json.decode(answer.body))


class Reader:
    """A client that reads: it holds checkpoints, and expects to find what was acknowledged."""

    def __init__(self, random: Random, planner: Planner, seen: Observations) -> None:
        self._random, self._planner, self._seen = random, planner, seen

    async def run(self, service: Service) -> None:
        """Read from a running service until it is cancelled."""
        while True:
            await asyncio.sleep(self._random.random() * 0.2)
            await self._read(service)

    async def _read(self, service: Service) -> None:
        try:
            if self._planner.known and self._random.random() < 0.5:
                identity = self._random.choice(list(self._planner.known))
                await service.ask(lambda: service.queries.decision(identity))
            else:
                answer: Any = await service.ask(service.proofs.checkpoint)
                self._seen.notes.append(answer.note)
        except (Unavailable, Damaged):
            self._seen.unavailable += 1
        except NotFound as problem:
            self._seen.violations.append(f"an acknowledged decision cannot be read: {problem.detail}")
        except Conflict as problem:
            if self._seen.notes:
                self._seen.violations.append(f"a checkpoint that was there is gone: {problem.detail}")
        except Exception as error:
            self._seen.violations.append(f"a query failed: {error!r}")
