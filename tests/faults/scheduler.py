"""One thread at a time: a seeded scheduler decides which thread runs, and time passes only when it says so.

The threads are real, so the engine and SQLite run unchanged in them, but only the one with the baton runs. It passes
the baton on where it waits, and sometimes where it reads or writes the disk. So one seed fixes the whole interleaving.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Killed(BaseException):
    """The simulated process is dead. Nothing of the engine may catch it."""


class StuckError(AssertionError):
    """All threads wait for each other, and for no time."""


class Fiber:
    """A thread that runs only while it has the baton."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.baton = threading.Lock()
        self.baton.acquire()
        self.condition: Callable[[], bool] | None = None  # what it waits for
        self.until: float | None = None  # when it stops waiting
        self.job: Callable[[], object] | None = None


class Scheduler:
    """The threads of one simulated process, and the time.

    Parameters
    ----------
    random : Random
        Decides who runs next, and how long everything takes.
    """

    def __init__(self, random: Random) -> None:
        self.idle: list[Fiber] = []
        self.main = Fiber("main")
        self.reset(random)

    def reset(self, random: Random) -> None:
        """Begin another schedule."""
        self.random = random
        self.time = 0.0  # seconds since the start of the schedule
        self.steps = 0
        self.kill_at: int | None = None  # the step at which the process is killed
        self.dead = False
        self.current = self.main
        self.fibers = [self.main]
        self.failures: list[BaseException] = []  # of jobs, which nobody foresaw
        self.switch_share = 0.2  # of the disk operations after which another thread may run

    def spawn(self, name: str, job: Callable[[], object]) -> None:
        """Let a thread run a job from now on."""
        if self.idle:
            fiber = self.idle.pop()
            fiber.name, fiber.job = name, job
        else:
            fiber = Fiber(name)
            fiber.job = job
            threading.Thread(target=self._serve, args=(fiber,), daemon=True).start()
        fiber.condition = fiber.until = None
        self.fibers.append(fiber)

    def step(self, seconds: float) -> None:
        """Count a step that takes about this long. Raise Killed if it is the last one."""
        self.steps += 1
        self.time += seconds * (0.5 + self.random.random())
        if self.kill_at is not None and self.steps >= self.kill_at:
            self.dead = True

    def pause(self) -> None:
        """Give another thread the chance to run."""
        if len(self.fibers) > 1 and self.random.random() < self.switch_share:
            self.wait(lambda: True)

    def wait(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Let others run until a condition holds, or some time has passed. Return whether it holds."""
        me = self.current
        if self.dead:
            raise Killed
        me.condition, me.until = condition, None if seconds is None else self.time + seconds
        self._pass_on(me)
        me.condition = None
        if self.dead:
            raise Killed
        return condition()

    def sleep(self, seconds: float) -> None:
        """Wait for some time."""
        self.wait(lambda: False, seconds)

    def bury(self) -> None:
        """Let all threads but the main one end, after the process was killed."""
        assert self.current is self.main
        self.dead = True
        while len(self.fibers) > 1:
            self.main.condition, self.main.until = (lambda: len(self.fibers) == 1), None
            self._pass_on(self.main)
        self.main.condition = None

    def revive(self) -> None:
        """Start a new process."""
        assert self.fibers == [self.main]
        self.dead, self.kill_at = False, None

    def _pass_on(self, me: Fiber) -> None:
        chosen = self._next()
        if chosen is not me:
            self.current = chosen
            chosen.baton.release()
            me.baton.acquire()

    def _next(self) -> Fiber:
        """Choose a thread that can run. If none can, let time pass."""
        if self.dead:  # whoever waits is woken, to end; the main one last
            others = [fiber for fiber in self.fibers if fiber is not self.main]
            return others[0] if others and self.current is self.main else self.main
        while True:
            ready = [fiber for fiber in self.fibers if self._runs(fiber)]
            if ready:
                return ready[0] if len(ready) == 1 else self.random.choice(ready)
            waiting = [fiber.until for fiber in self.fibers if fiber.until is not None]
            if not waiting:
                raise StuckError(f"all threads wait: {[fiber.name for fiber in self.fibers]}")
            self.time = max(self.time, min(waiting))

    def _runs(self, fiber: Fiber) -> bool:
        if fiber.condition is None or fiber.condition():
            return True
        return fiber.until is not None and fiber.until <= self.time

    def _serve(self, fiber: Fiber) -> None:
        """Run jobs, one after the other, each when the thread has the baton."""
        while True:
            fiber.baton.acquire()
            job, fiber.job = fiber.job, None
            if job is None:
                return
            try:
                if not self.dead:
                    job()
            except Killed:
                pass
            except BaseException as error:
                self.failures.append(error)
            self.fibers.remove(fiber)
            self.idle.append(fiber)
            chosen = self._next()
            self.current = chosen
            chosen.baton.release()

    def end(self) -> None:
        """End the idle threads."""
        for fiber in self.idle:
            fiber.baton.release()
        self.idle.clear()


class SimulatedThread:
    """A thread of the scheduler, instead of ``threading.Thread``."""

    def __init__(self, scheduler: Scheduler, target: Callable[[], object], name: str = "thread") -> None:
        self._scheduler, self._target, self._name = scheduler, target, name
        self._ended = False

    def start(self) -> None:
        """Start it."""
        self._scheduler.spawn(self._name, self._run)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        self._scheduler.wait(lambda: self._ended, timeout)

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self._ended = True


class SimulatedQueue(Generic[Value]):
    """A queue between threads of the scheduler, instead of ``SimpleQueue``."""

    def __init__(self, scheduler: Scheduler, empty: type[Exception]) -> None:
        self._scheduler, self._empty = scheduler, empty
        self._items: deque[Value] = deque()

    def put(self, item: Value) -> None:
        """Append an item."""
        self._items.append(item)

    def get_nowait(self) -> Value:
        """Return the first item, or raise Empty."""
        if not self._items:
            raise self._empty
        return self._items.popleft()

    def get(self) -> Value:
        """Wait for an item."""
        self._scheduler.wait(lambda: bool(self._items))
        return self._items.popleft()

    def qsize(self) -> int:
        """Return the number of items."""
        return len(self._items)


class SimulatedFuture(Generic[Value]):
    """A result that a thread of the scheduler waits for, instead of ``Future``."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._result: list[Value] = []
        self._error: BaseException | None = None

    def set_result(self, value: Value) -> None:
        """Set the result."""
        self._result.append(value)

    def set_exception(self, error: BaseException) -> None:
        """Set an error as the result."""
        self._error = error

    def result(self) -> Value:
        """Wait for the result, and return or raise it."""
        self._scheduler.wait(lambda: bool(self._result) or self._error is not None)
        if self._error is not None:
            raise self._error
        return self._result[0]


class SimulatedLock:
    """A lock between threads of the scheduler, for those that are held while the disk is read."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._held = False

    def __enter__(self) -> None:
        if self._held:
            self._scheduler.wait(lambda: not self._held)
        self._held = True

    def __exit__(self, *error: object) -> None:
        self._held = False
