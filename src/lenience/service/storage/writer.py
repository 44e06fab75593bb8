"""Group commit: one thread writes; what arrives while it writes goes together into the next transaction.

Each command is acknowledged only after the commit that holds it. On SQLite those of one transaction are told of it when
the next is about to be committed (at once if there is none): one interpreter serves this thread and the event loop, and
so the loop answers them and reads new requests while the disk is waited for, not while the next transaction is made.
For the same reason a transaction there takes half of the commands that are under way, if they are many: one half is at
the disk while the other is answered and asks again.

A command that refuses (an unknown decision, a contradiction) has changed nothing and does not hinder the others. If a
transaction fails because another process got in its way, it is done again; and once if its connection was found dead
before it was to be committed (PostgreSQL has been restarted). If the database is full, gone or damaged, all its
commands are answered 503 and nothing is written; if one command fails in a way that nobody foresaw, the others
are done without it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from sqlalchemy import func, select

from lenience.service.domain.clock import now
from lenience.service.domain.identity import time_after
from lenience.service.domain.problems import Conflict, Damaged, Problem, Unavailable, log_cause, log_unforeseen
from lenience.service.domain.receipts import CommandAnswer
from lenience.service.storage import schema
from lenience.service.storage.command import Command
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store, try_again

MOST_COMMANDS = 256
A_GROUP = 8  # commands that are not divided among two transactions
MOST_ROWS = 6_000
MOST_TRIES = 8
MOST_BEHIND = 1.0  # seconds that a clock may be set back without a word
MOST_WAITING = 10_000  # commands in the queue; more are refused at once

log = logging.getLogger("lenience.service")

Result = CommandAnswer | BaseException


@dataclass(slots=True)
class QueuedCommand:
    """A command in the queue and what is called with its result (in the writer's thread)."""

    command: Command
    done: Callable[[Result], None]


class Writer:
    """The one thread that writes."""

    def __init__(
        self,
        store: Store,
        registry: PolicyCache,
        after: Callable[[], None] | None = None,
        written: Callable[[Sequence[CommandAnswer]], None] | None = None,
        clock: Callable[[], int] = now,
    ) -> None:
        self.store = store
        self.registry = registry
        self.batches = 0
        self._count = written  # called with what a transaction did, once that is on the disk
        self._clock = clock  # a demonstration plays the past at another speed
        self._latest = _last_time(store)
        self._set_back = False
        self._after = after  # called once after each batch: whoever waits is told in one go
        self._queue: SimpleQueue[QueuedCommand | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._closed = False
        self._committing = False  # from then on nobody knows whether a transaction that failed was written
        self._written: list[tuple[QueuedCommand, Result]] = []  # on the disk, and not told yet
        self._thread.start()

    def submit(self, command: Command, done: Callable[[Result], None]) -> None:
        """Put a command into the queue."""
        if self._closed:
            done(Unavailable("the service is stopping", code="stopping"))
        elif self._queue.qsize() > MOST_WAITING:
            done(Unavailable("too many requests are waiting", code="overloaded"))
        else:
            self._queue.put(QueuedCommand(command, done))

    def call(self, command: Command) -> CommandAnswer:
        """Put a command into the queue and wait for its answer."""
        future: Future[CommandAnswer] = Future()

        def done(result: Result) -> None:
            if isinstance(result, CommandAnswer):
                future.set_result(result)
            else:
                future.set_exception(result)

        self.submit(command, done)
        return future.result()

    @property
    def waiting(self) -> int:
        """How many commands are in the queue."""
        return self._queue.qsize()

    def close(self) -> None:
        """Write what is in the queue, then stop."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stop = False
        while not stop:
            first = self._next()
            if first is None:
                break
            batch, stop = self._gather(first)
            results = self._write(batch)
            self._tell()
            self._written = list(zip(batch, results, strict=True))
            self.batches += 1
            if not self.store.sqlite:  # the next transaction may wait for another process
                self._tell()
        self._tell()

    def _next(self) -> QueuedCommand | None:
        try:
            return self._queue.get_nowait()
        except Empty:
            self._tell()
            return self._queue.get()

    def _tell(self) -> None:
        """Tell those whose transaction is on the disk."""
        if self._written:
            written, self._written = self._written, []
            for waiting, result in written:
                waiting.done(result)
            if self._after is not None:
                self._after()

    def _gather(self, first: QueuedCommand) -> tuple[list[QueuedCommand], bool]:
        batch, rows = [first], first.command.size
        most = MOST_COMMANDS
        if self.store.sqlite and not self._written:  # all who are under way are in the queue, or will be
            most = min(most, max(A_GROUP, (1 + self._queue.qsize()) // 2))
        while len(batch) < most and rows < MOST_ROWS:
            try:
                another = self._queue.get_nowait()
            except Empty:
                break
            if another is None:
                return batch, True
            batch.append(another)
            rows += another.command.size
        return batch, False

    def _write(self, batch: Sequence[QueuedCommand]) -> list[Result]:
        commands = [waiting.command for waiting in batch]
        for attempt in range(MOST_TRIES):
            try:
                return self._transaction(commands)
            except (Damaged, Unavailable) as problem:
                self.registry.forget()
                if isinstance(problem, Unavailable) and problem.lost and not self._committing and attempt == 0:
                    continue
                log_cause(problem)
                return [problem] * len(batch)
            except Exception as error:
                if try_again(error) and attempt < MOST_TRIES - 1:
                    self.registry.forget()
                    continue
                if len(batch) > 1:
                    return [self._write([waiting])[0] for waiting in batch]
                log_unforeseen(error, command=type(commands[0]).__name__)
                return [error]
        raise AssertionError("unreachable")

    def _now(self) -> int:
        """The time, which never goes back: who reads decisions in the order of their ids would miss those made then."""
        time = self._clock()
        behind = (self._latest - time) / 1e6
        if behind > MOST_BEHIND and not self._set_back:
            fields = {"seconds": round(behind, 3)}
            log.warning("the clock was set back: times stand still until it has caught up", extra={"fields": fields})
        self._set_back = behind > MOST_BEHIND
        self._latest = max(time, self._latest)
        return self._latest

    def _transaction(self, commands: Sequence[Command]) -> list[Result]:
        results: list[Result | None] = [None] * len(commands)
        new: list[CommandAnswer] = []
        self._committing = False
        with self.store.write() as connection:
            ledger = Ledger(self.store, connection, self.registry, self._now())
            wanted: set[int] = set()
            about = [decision for command in commands for decision in command.decisions]
            ledger.find(about)
            for i, command in enumerate(commands):
                try:
                    command.resolve(ledger)
                    wanted.update(command.chains(ledger))
                except Problem as problem:
                    results[i] = problem
            ledger.lock(wanted)
            ledger.read_decisions(decision for decision in about if decision in ledger.chain_of)
            stored = _stored_answers(ledger, commands)
            for i, command in enumerate(commands):
                sender = command.sender
                if sender.key is not None and sender.key in stored:
                    request, answer = stored[sender.key]
                    results[i] = answer if request == sender.request else _other_body()
                    continue
                if results[i] is not None:
                    continue
                try:
                    answer = command.run(ledger)
                except Problem as problem:
                    results[i] = problem
                    continue
                results[i] = answer
                new.append(answer)
                if sender.key is not None:
                    stored[sender.key] = (sender.request, answer)
            ledger.flush()
            self._tell()
            self._committing = True
        if self._count is not None:
            self._count(new)
        return [result if result is not None else AssertionError("no result") for result in results]


def _last_time(store: Store) -> int:
    """The time of the newest decision: this process may have been started after the clock was set back."""
    with store.read() as connection:
        newest = connection.execute(select(func.max(schema.decision.c.id))).scalar_one()
    return 0 if newest is None else time_after(newest)


def _stored_answers(ledger: Ledger, commands: Sequence[Command]) -> dict[str, tuple[str, CommandAnswer]]:
    """The answers given before under the keys of these commands."""
    keys = list({command.sender.key for command in commands if command.sender.key is not None})
    if not keys:
        return {}
    table = schema.idempotency
    columns = (table.c.key, table.c.request, table.c.status, table.c.answer)
    rows = ledger.connection.execute(select(*columns).where(table.c.key.in_(keys)))
    return {row.key: (row.request, CommandAnswer(row.status, row.answer.encode())) for row in rows}


def _other_body() -> Conflict:
    detail = "this Idempotency-Key was used before with another request"
    return Conflict(detail, code="idempotency_key_reused", field="Idempotency-Key")
