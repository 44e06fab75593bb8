"""Group commit: one thread writes. Commands that arrive during a transaction go together into the next one.

A command is acknowledged only after the commit that holds it. The commands of one transaction are answered just before
the next commit (or at once if there is none, or if the next one must wait for another process). One interpreter runs
this thread and the event loop, so the loop then answers and reads new requests while this thread waits for the disk,
not while it prepares the next transaction. For the same reason a transaction takes only half of the waiting commands if
there are many: one half is written while the other half is answered and sends new requests.

A command that raises a Problem (an unknown decision, a conflict) has changed nothing and does not affect the others. A
transaction that conflicts with another process is repeated. It is also repeated once if its connection was lost before
the commit (PostgreSQL was restarted). If the database is full, unreachable or damaged, all commands get a 503 and
nothing is written. If one command fails unexpectedly, the others are run without it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from sqlalchemy import LargeBinary, cast, func, select

from lenience.service.domain.clock import now
from lenience.service.domain.events import readable_event
from lenience.service.domain.identity import time_after
from lenience.service.domain.problems import (
    Conflict,
    Damaged,
    Problem,
    Unavailable,
    UnreadableText,
    log_cause,
    log_unforeseen,
)
from lenience.service.domain.receipts import CommandAnswer
from lenience.service.storage import schema
from lenience.service.storage.command import Command
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store, try_again

MOST_COMMANDS = 256
SMALL_BATCH = 8  # commands that are not divided between two transactions
MOST_ROWS = 6_000
MOST_TRIES = 8
MOST_BEHIND = 1.0  # seconds that the clock may be set back without a warning
MOST_WAITING = 10_000  # commands in the queue; more are rejected at once

log = logging.getLogger("lenience.service")

Result = CommandAnswer | BaseException


@dataclass(slots=True)
class QueuedCommand:
    """A command in the queue, and the callback for its result (called in the writer's thread)."""

    command: Command
    done: Callable[[Result], None]


class Writer:
    """The only thread that writes."""

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
        self.wal_holds_erased = False  # personal data that was erased is still in the -wal file of SQLite
        self._count = written  # called with the answers of a transaction after its commit
        self._clock = clock  # a demonstration replays the past at another speed
        self._latest = _last_time(store)
        self._set_back = False
        self._after = after  # called once after each batch, to wake the event loop once
        self._queue: SimpleQueue[QueuedCommand | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._closed = False
        self._committing = False  # a transaction that fails during the commit may or may not be written
        self._written: list[tuple[QueuedCommand, Result]] = []  # committed, but not answered yet
        self._thread.start()

    def submit(self, command: Command, done: Callable[[Result], None]) -> None:
        """Queue a command."""
        if self._closed:
            done(Unavailable("the service is stopping", code="stopping"))
        elif self._queue.qsize() > MOST_WAITING:
            done(Unavailable("too many requests are waiting", code="overloaded"))
        else:
            self._queue.put(QueuedCommand(command, done))

    def call(self, command: Command) -> CommandAnswer:
        """Queue a command and wait for its answer."""
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
        """The number of commands in the queue."""
        return self._queue.qsize()

    @property
    def silence(self) -> float:
        """The seconds between the newest time in the log and now, or 0 if the log is empty."""
        return (self._clock() - self._latest) / 1e6 if self._latest else 0.0

    def close(self) -> None:
        """Write the commands in the queue, then stop."""
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
            self._answer()
            self._written = list(zip(batch, results, strict=True))
            self.batches += 1
        self._answer()

    def _next(self) -> QueuedCommand | None:
        try:
            return self._queue.get_nowait()
        except Empty:
            self._answer()
            return self._queue.get()

    def _answer(self) -> None:
        """Answer the commands whose transaction is committed."""
        if self._written:
            written, self._written = self._written, []
            for waiting, result in written:
                waiting.done(result)
            if self._after is not None:
                self._after()

    def _gather(self, first: QueuedCommand) -> tuple[list[QueuedCommand], bool]:
        batch, rows = [first], first.command.size
        most = MOST_COMMANDS
        if not self._written:  # no answers are outstanding, so all commands are in the queue
            most = min(most, max(SMALL_BATCH, (1 + self._queue.qsize()) // 2))
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
                self._answer()  # a new connection may take long
                self.registry.forget()
                if isinstance(problem, Unavailable) and problem.lost and not self._committing and attempt == 0:
                    continue
                if isinstance(problem, UnreadableText) and len(batch) > 1:
                    return [self._write([waiting])[0] for waiting in batch]
                log_cause(problem)
                return [problem] * len(batch)
            except Exception as error:
                self.registry.forget()  # it may hold changes of this transaction, which are undone
                if try_again(error) and attempt < MOST_TRIES - 1:
                    continue
                if len(batch) > 1:
                    return [self._write([waiting])[0] for waiting in batch]
                log_unforeseen(error, command=type(commands[0]).__name__)
                return [error]
        raise AssertionError("unreachable")

    def _now(self) -> int:
        """Return the time, which never goes back: readers page by id and would miss decisions with earlier ids."""
        time = self._clock()
        behind = (self._latest - time) / 1e6
        if behind > MOST_BEHIND and not self._set_back:
            fields = {"seconds": round(behind, 3)}
            log.warning(
                "the clock was set back: logged times stand still until it catches up", extra={"fields": fields}
            )
        self._set_back = behind > MOST_BEHIND
        self._latest = max(time, self._latest)
        return self._latest

    def _transaction(self, commands: Sequence[Command]) -> list[Result]:
        results: list[Result | None] = [None] * len(commands)
        new: list[CommandAnswer] = []
        self._committing = False
        with self.store.write() as connection:
            ledger = Ledger(self.store, connection, self.registry, self._now())
            chains: set[int] = set()
            decisions = [decision for command in commands for decision in command.decisions]
            ledger.find(decisions, waiting=self._answer)
            for i, command in enumerate(commands):
                ledger.expected.turn = i
                try:
                    command.resolve(ledger)
                    chains.update(command.chains(ledger))
                except Problem as problem:
                    results[i] = problem
            known = [decision for decision in decisions if decision in ledger.chain_of]
            keys = [command.sender.key for command in commands if command.sender.key is not None]
            rows = ledger.lock_and_read(chains, known, keys, waiting=self._answer)
            stored = {key: (request, CommandAnswer(status, text.encode())) for key, request, status, text in rows}
            for i, command in enumerate(commands):
                sender = command.sender
                if sender.key is not None and sender.key in stored:
                    request, answer = stored[sender.key]
                    results[i] = answer if request == sender.request else _key_reused()
                    continue
                if results[i] is not None:
                    continue
                ledger.expected.turn = i
                try:
                    answer = command.run(ledger)
                except Problem as problem:
                    results[i] = problem
                    continue
                results[i] = answer
                if answer.body:  # a probe has no answer and is not counted
                    new.append(answer)
                if sender.key is not None:
                    stored[sender.key] = (sender.request, answer)
            self._committing = True
            ledger.flush(commit=True, sent=self._answer)
        ledger.publish()
        if ledger.erases:
            self.wal_holds_erased = not self.store.checkpoint()
        if self._count is not None:
            self._count(new)
        return [result if result is not None else AssertionError("no result") for result in results]


def _last_time(store: Store) -> int:
    """Return the newest time in the log, because the clock may have been set back before this start.

    The newest decision is not enough: an outcome or a signed checkpoint may be later than every decision. Texts of
    SQLite are read as bytes, so that one that is damaged is left out and does not prevent the start.
    """
    chains, events, checkpoints = schema.chain, schema.event, schema.log_checkpoint
    last = (events.c.chain_id == chains.c.id) & (events.c.seq == chains.c.length)
    body = cast(events.c.body, LargeBinary) if store.sqlite else events.c.body
    with store.read() as connection:
        newest = connection.execute(select(func.max(schema.decision.c.id))).scalar_one()
        bodies = connection.execute(select(body).join(chains, last)).scalars()
        times = [event.at for event in map(readable_event, bodies) if event is not None]
        signed = connection.execute(select(func.max(checkpoints.c.at))).scalar_one()
    return max(0 if newest is None else time_after(newest), signed or 0, *times)


def _key_reused() -> Conflict:
    detail = "this Idempotency-Key was already used for a different request"
    return Conflict(detail, code="idempotency_key_reused", field="Idempotency-Key")
