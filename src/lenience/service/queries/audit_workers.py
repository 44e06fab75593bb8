"""Processes that recompute parts of a log at the same time. All of them see the same state of the database.

PostgreSQL gives the state of one transaction to others. SQLite does not. There each process begins a transaction, and
all of them begin again until they see the same chains. If a busy service prevents that, the audit runs in one process.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DBAPIError

from lenience.service.domain.problems import Problem
from lenience.service.domain.rollout import Stage
from lenience.service.storage import schema
from lenience.service.storage.store import Store

PARALLEL_EVENTS = 50_000  # events for which starting processes takes less time than it saves
MOST_TRIES = 50  # to see the same state of a SQLite file


class SegmentTask(NamedTuple):
    """Recompute the chain of a segment, and compare its rows."""

    policy: int
    name: str  # of the policy
    chain: int
    segment: str
    versions: tuple[int, ...]  # those that are as the log says
    stages: tuple[Stage, ...]  # of rollouts
    activated: tuple[int, ...]


class MonitoredTask(NamedTuple):
    """Recompute the chain of a policy's monitored attributes, and compare its rows."""

    name: str  # of the policy
    chain: int
    segments: tuple[tuple[int, str], ...]  # the chain of each segment, and its label


class OtherTask(NamedTuple):
    """Something about the whole database: ``integrity``, ``receipts`` or ``tree``."""

    kind: str
    held: tuple[Any, ...] = ()  # checkpoints


Task = SegmentTask | MonitoredTask | OtherTask


class TaskResult(NamedTuple):
    """The result of a task, and its findings: whether another one has caused it, where and what."""

    value: Any
    findings: list[tuple[bool, str, str]]


def usable_workers(workers: int | None, events: int, least: int = PARALLEL_EVENTS) -> int:
    """Return how many processes an audit of a number of events uses: by default one for each core.

    >>> usable_workers(None, 10), usable_workers(1, 10**9)
    (1, 1)
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if events < least else max(workers or cores, 1)


class AuditWorkers:
    """Processes that see the same state of a database as a transaction.

    Parameters
    ----------
    store : Store
        The database.
    connection : Connection
        The transaction. It must have read nothing that a service could change before the processes see its state.
    number : int
        How many processes to start.
    """

    def __init__(self, store: Store, connection: Connection, number: int) -> None:
        self._lock = threading.Lock()
        self._tasks: list[tuple[int, Task, Future[TaskResult]]] = []  # by weight, the heaviest last
        self._ready = threading.Condition(self._lock)
        self._closed = False
        context = multiprocessing.get_context("spawn")
        snapshot = None if store.sqlite else connection.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        address = store.url.render_as_string(hide_password=False)
        self._workers: list[tuple[Any, Pipe]] = []
        for _ in range(number):
            own, other = context.Pipe()
            process = context.Process(target=_work, args=(address, snapshot, other), daemon=True)
            process.start()
            other.close()
            self._workers.append((process, own))
        self._threads: list[threading.Thread] = []

    def agree(self, connection: Connection) -> bool:
        """Return whether all processes see the same state as a transaction, which has just begun."""
        expected = state_of(connection)
        return all(seen == expected for seen in [pipe.recv() for _, pipe in self._workers])

    def begin_again(self) -> None:
        """Let all processes begin a new transaction."""
        for _, pipe in self._workers:
            pipe.send("again")

    def start(self) -> None:
        """Begin to work on tasks."""
        for _, pipe in self._workers:
            thread = threading.Thread(target=self._serve, args=(pipe,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def submit(self, task: Task, weight: int) -> Future[TaskResult]:
        """Add a task. The heaviest ones are done first."""
        future: Future[TaskResult] = Future()
        with self._ready:
            self._tasks.append((weight, task, future))
            self._tasks.sort(key=lambda one: one[0])
            self._ready.notify()
        return future

    def close(self) -> None:
        """End the processes. Tasks that nobody waits for are not done."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
        for process, pipe in self._workers:
            pipe.close()
            process.terminate()
            process.join()
        for thread in self._threads:
            thread.join()

    def _serve(self, pipe: Pipe) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._tasks or self._closed)
                if self._closed:
                    return
                _, task, future = self._tasks.pop()
            try:
                pipe.send(task)
                future.set_result(pipe.recv())
            except (EOFError, OSError) as error:  # the process has ended
                future.set_exception(error)
                return


def open_workers(store: Store, number: int) -> tuple[AuditWorkers, Any, Connection] | None:
    """Start processes, and begin a transaction that sees what they see.

    Returns the processes, the context of the transaction and the transaction, or None if that is not possible.
    """
    workers: AuditWorkers | None = None
    for _ in range(MOST_TRIES):
        context = store.read()
        connection = context.__enter__()
        try:
            if workers is None:
                workers = AuditWorkers(store, connection, number)
            if workers.agree(connection):
                workers.start()
                return workers, context, connection
            workers.begin_again()
        except (DBAPIError, EOFError, OSError, Problem):
            context.__exit__(None, None, None)
            break
        context.__exit__(None, None, None)
    if workers is not None:
        workers.close()
    return None


def state_of(connection: Connection) -> Sequence[Any]:
    """Return what tells two states of a log apart: every transaction that changes it makes a chain longer."""
    chains = schema.chain
    return tuple(connection.execute(select(func.count(), func.sum(chains.c.length)).select_from(chains)).one())


def _work(address: str, snapshot: str | None, pipe: Pipe) -> None:
    """Do tasks in a process of its own, in one transaction."""
    from lenience.service.queries.audit import TaskAudit

    store = Store(address, reading=True)
    while True:
        with store.read() as connection:
            if snapshot is not None:
                connection.execute(text(f"SET TRANSACTION SNAPSHOT '{snapshot}'"))
            pipe.send(state_of(connection))
            audit = TaskAudit(connection, "")
            while True:
                try:
                    task = pipe.recv()
                except (EOFError, OSError):
                    return
                if task == "again":
                    break
                pipe.send(audit.perform_apart(task))
