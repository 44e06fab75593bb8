"""Engines that are broken on purpose, to show that the simulation finds what it is made to find."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Connection

from lenience.service.commands.seal import SealLog
from lenience.service.domain.answers import CheckpointAnswer
from lenience.service.domain.receipts import CommandAnswer
from lenience.service.queries.log_proofs import LogProofs
from lenience.service.storage import private_file, schema, store, writer
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.log_tree import latest_checkpoint
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store


@contextmanager
def acknowledging_before_the_commit() -> Iterator[None]:
    """Commit a transaction only when the next one begins, after its commands were answered."""
    original = Store.write

    @contextmanager
    def write(self: Store, patience: float | None = None) -> Iterator[Connection]:
        state: Any = self
        if getattr(state, "uncommitted", None) is not None:
            state.uncommitted.__exit__(None, None, None)
            state.uncommitted = None
        transaction = original(self, patience)
        connection = transaction.__enter__()
        try:
            yield connection
        except BaseException:
            if not transaction.__exit__(*sys.exc_info()):
                raise
        state.uncommitted = transaction

    with patch.object(Store, "write", write):
        yield


@contextmanager
def without_a_sync_at_each_commit() -> Iterator[None]:
    """Let SQLite sync at checkpoints only."""
    original = store._pragmas

    def pragmas(connection: Any, record: object) -> None:
        original(connection, record)
        connection.execute("PRAGMA synchronous = NORMAL")

    with patch.object(store, "_pragmas", pragmas):
        yield


@contextmanager
def without_storing_answers() -> Iterator[None]:
    """Do not store answers under their keys."""
    with patch.object(Ledger, "add_answer", lambda self, *values: None):
        yield


@contextmanager
def publishing_checkpoints_before_the_commit() -> Iterator[None]:
    """Show a checkpoint to clients as soon as it is signed."""
    published: list[CheckpointAnswer] = []
    original, shown = SealLog.run, LogProofs.checkpoint

    def run(self: SealLog, ledger: Ledger) -> CommandAnswer:
        answer = original(self, ledger)
        row = latest_checkpoint(ledger.connection)
        published[:] = [CheckpointAnswer(row.size, ledger.time, row.note)]
        return answer

    def checkpoint(self: LogProofs) -> CheckpointAnswer:
        return published[0] if published else shown(self)

    with patch.object(SealLog, "run", run), patch.object(LogProofs, "checkpoint", checkpoint):
        yield


@contextmanager
def keeping_beliefs_of_failed_commits() -> Iterator[None]:
    """Keep the model states of a transaction before it is committed, and also if the commit fails."""
    original = Ledger.flush

    def flush(self: Ledger, **options: Any) -> None:
        original(self, **options)
        self.publish()

    with patch.object(Ledger, "flush", flush), patch.object(PolicyCache, "forget", lambda self: None):
        yield


@contextmanager
def trusting_the_clock_after_a_start() -> Iterator[None]:
    """Do not look at the newest time in the log when a process starts."""
    with patch.object(writer, "_last_time", lambda store: 0):
        yield


@contextmanager
def without_syncing_the_folder() -> Iterator[None]:
    """Create the key that signs the log without syncing its folder."""
    with patch.object(private_file, "sync_folder", lambda path: None):
        yield


@contextmanager
def writing_decisions_apart_from_their_events() -> Iterator[None]:
    """Commit the events of a transaction before everything else."""
    original = Ledger.flush

    def flush(self: Ledger, **options: Any) -> None:
        self.store.insert(self.connection, schema.event, self._events)
        self.connection.exec_driver_sql("COMMIT")
        self.connection.exec_driver_sql("BEGIN IMMEDIATE")
        events, self._events = self._events, []
        original(self, **options)
        self._events = events

    with patch.object(Ledger, "flush", flush):
        yield


Sabotage = Callable[[], Any]
ALL: tuple[Sabotage, ...] = (
    acknowledging_before_the_commit,
    without_a_sync_at_each_commit,
    without_storing_answers,
    publishing_checkpoints_before_the_commit,
    keeping_beliefs_of_failed_commits,
    trusting_the_clock_after_a_start,
    writing_decisions_apart_from_their_events,
    without_syncing_the_folder,
)
