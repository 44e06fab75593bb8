"""BackgroundSolves: versions that are solved while their clients do other things.

A solve belongs to this process. After a restart it is gone, and nothing of it was stored: the client posts again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

import msgspec

from lenience.service.commands.solve_progress import SolveProgress
from lenience.service.domain.answers import SolveAnswer, SolveState, VersionAnswer
from lenience.service.domain.problems import Conflict, NotFound, Problem, log_unforeseen
from lenience.service.domain.receipts import CommandAnswer

KEPT = 200  # solves that have ended
MOST = 20  # solves that run or wait
PATIENCE = 3.0  # seconds for which a form waits before it shows the progress


@dataclass(slots=True)
class BackgroundSolve:
    """A version that is being solved, or was."""

    id: str
    policy: str
    progress: SolveProgress
    task: asyncio.Task[CommandAnswer]

    async def ended_within(self, seconds: float) -> bool:
        """Wait for the end, but not longer than this; return whether it has ended."""
        await asyncio.wait({self.task}, timeout=seconds)
        return self.task.done()

    @property
    def state(self) -> SolveState:
        """Where the solve stands."""
        if not self.task.done():
            if self.progress.cancelled:
                return "cancelling"
            return "solving" if self.progress.started else "waiting"
        if self.task.cancelled() or self.progress.cancelled:
            return "cancelled"
        return "done" if self.task.exception() is None else "failed"

    @property
    def answer(self) -> SolveAnswer:
        """The state as clients see it."""
        state, problem, version = self.state, None, None
        if state == "failed":
            error = self.task.exception()
            problem = error.detail if isinstance(error, Problem) else "the solve failed; the service has logged why"
        if state == "done":
            version = msgspec.json.decode(self.task.result().body, type=VersionAnswer)
        return SolveAnswer(self.id, self.policy, state, self.progress.done, self.progress.total, version, problem)


class BackgroundSolves:
    """The solves of one process, the newest last."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, BackgroundSolve] = OrderedDict()

    def start(self, policy: str, work: Callable[[SolveProgress], Awaitable[CommandAnswer]]) -> BackgroundSolve:
        """Start a solve and return it at once; raise Conflict if too many run."""
        if sum(not solve.task.done() for solve in self._all.values()) >= MOST:
            raise Conflict(f"{MOST} versions are being solved; try again when one is done", code="too_many_solves")
        progress = SolveProgress()

        async def run() -> CommandAnswer:
            try:
                return await work(progress)
            except Problem:
                raise
            except Exception as error:
                log_unforeseen(error)
                raise

        task = asyncio.get_running_loop().create_task(run())
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # it is retrieved
        solve = BackgroundSolve(uuid4().hex, policy, progress, task)
        self._all[solve.id] = solve
        ended = [one.id for one in self._all.values() if one.task.done()]
        for identity in ended[: max(len(ended) - KEPT, 0)]:
            del self._all[identity]
        return solve

    def find(self, identity: str) -> BackgroundSolve:
        """Return a solve, or raise NotFound."""
        solve = self._all.get(identity)
        if solve is None:
            raise NotFound(f"the solve {identity!r} does not exist", code="unknown_solve", field="id", value=identity)
        return solve

    def list(self) -> list[SolveAnswer]:
        """Return all solves, the newest first."""
        return [solve.answer for solve in reversed(self._all.values())]

    def cancel(self, identity: str) -> BackgroundSolve:
        """Cancel a solve that has not ended. It stops within a few seconds."""
        solve = self.find(identity)
        if not solve.task.done():
            solve.progress.cancelled = True
        return solve
