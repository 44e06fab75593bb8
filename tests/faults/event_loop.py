"""An asyncio event loop in simulated time. Every callback is a step at which the process can be killed."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any

from faults.scheduler import Killed, Scheduler

CALLBACK_SECONDS = 20e-6


class SimulatedLoop(asyncio.BaseEventLoop):
    """The event loop of a simulated process.

    Parameters
    ----------
    scheduler : Scheduler
        Runs the threads of the process.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self.set_exception_handler(lambda loop, context: None)

    def time(self) -> float:
        """Return the simulated time."""
        return self._scheduler.time

    def run_until_complete(self, future: Any) -> Any:
        """Run until a future is done. The thread may have a loop that runs already, e.g. that of Playwright."""
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            return super().run_until_complete(future)
        finally:
            asyncio._set_running_loop(outer)

    def _run_once(self) -> None:
        """Run the callbacks that are ready in their order. If there is none, wait for one or for a timer."""
        loop: Any = self  # BaseEventLoop keeps its queues to itself
        scheduler = self._scheduler
        while not loop._ready:
            if loop._scheduled and loop._scheduled[0]._cancelled:
                heapq.heappop(loop._scheduled)
                continue
            seconds = max(0.0, loop._scheduled[0]._when - scheduler.time) if loop._scheduled else None
            if seconds == 0.0:
                break
            scheduler.wait(lambda: bool(loop._ready), seconds)
            break
        while loop._scheduled and loop._scheduled[0]._when <= scheduler.time:
            handle = heapq.heappop(loop._scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                loop._ready.append(handle)
        for _ in range(len(loop._ready)):
            handle = loop._ready.popleft()
            if handle._cancelled:
                continue
            scheduler.step(CALLBACK_SECONDS)
            if scheduler.dead:
                raise Killed
            handle._run()
            if scheduler.dead:
                raise Killed
            scheduler.pause()

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function in another thread of the scheduler."""
        future = self.create_future()

        def job() -> None:
            try:
                result = func(*args)
            except Exception as error:
                self.call_soon(_set_error, future, error)
            else:
                self.call_soon(_set_result, future, result)

        self._scheduler.spawn("worker", job)
        return future

    def _timer_handle_cancelled(self, handle: object) -> None:
        """Cancelled timers are skipped when they are due."""

    def _process_events(self, event_list: object) -> None:
        """There are no sockets."""

    def _write_to_self(self) -> None:
        """There is no selector to wake."""


def _set_result(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _set_error(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
