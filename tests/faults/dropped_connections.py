"""Schedules on a real PostgreSQL whose connections drop before or after any round trip, also that of a commit."""

from __future__ import annotations

import itertools
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

import msgspec
import psycopg

from engines import Engine
from faults.checks import check_answers, check_audit, check_log, check_reused, reusing_a_key
from faults.image import KEY, solved
from faults.machine import START
from faults.operations import Operation, Planner
from lenience.service.commands.lifecycle import ChangeState, CreateVersion
from lenience.service.commands.seal import SealLog
from lenience.service.domain import identity
from lenience.service.domain.problems import Damaged, Problem, Unavailable
from lenience.service.domain.receipts import make_sender
from lenience.service.queries.log_proofs import LogProofs
from lenience.service.storage.command import Command
from lenience.service.storage.postgres import COMMIT, DeadlineConnection
from lenience.service.storage.statements import Statement

POLICIES = ["cards", "shops", "applicants", "loans"]
MOST_TRIES = 4
Value = TypeVar("Value")
MOST_ROUND_TRIPS = 12  # after which a connection drops; a transaction has about as many


@dataclass(slots=True)
class Line:
    """The line to the server. It is cut at a round trip, before the request arrives or before its answer does."""

    cut_in: int | None = None  # round trips until then
    cut_commit: bool = False  # or at the next commit
    after: bool = False
    cuts: Counter[str] = field(default_factory=Counter)

    def draw(self, random: Random) -> None:
        """Draw when the line is cut next, if at all."""
        self.cut_in, self.cut_commit, self.after = None, random.random() < 0.3, random.random() < 0.5
        if not self.cut_commit and random.random() < 0.5:
            self.cut_in = random.randrange(1, MOST_ROUND_TRIPS)

    def mend(self) -> None:
        """Let nothing be cut from now on."""
        self.cut_in, self.cut_commit = None, False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let all connections go through this line."""
        wait, exchange = DeadlineConnection.wait, DeadlineConnection.exchange

        def cut_wait(connection: DeadlineConnection, gen: Any, *args: Any, **options: Any) -> Any:
            self.cut_in = None if self.cut_in is None else self.cut_in - 1
            if self.cut_in != 0:
                return wait(connection, gen, *args, **options)
            self.cut_in = None
            return self._cut(connection, "statement", lambda: wait(connection, gen, *args, **options))

        def cut_commit(connection: DeadlineConnection, statements: Sequence[Statement], *hooks: Any) -> Any:
            if not self.cut_commit or statements[-1] != COMMIT:
                return exchange(connection, statements, *hooks)
            self.cut_commit = False
            return self._cut(connection, "commit", lambda: exchange(connection, statements, *hooks))

        with patch.multiple(DeadlineConnection, wait=cut_wait, exchange=cut_commit):
            yield

    def _cut(self, connection: DeadlineConnection, what: str, send: Callable[[], Value]) -> Value:
        self.cuts[f"{what}, {'after' if self.after else 'before'}"] += 1
        if self.after:
            send()
            connection.close()
            raise psycopg.OperationalError("the connection was lost")
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
        return send()


def run_dropping(database: str, seed: int, number: int) -> tuple[list[str], Line]:
    """Send a number of operations to an empty database, and return what is wrong afterwards, and the line."""
    random, line = Random(f"{seed}/line"), Line()
    noise = SimpleNamespace(urandom=Random(f"{seed}/noise").randbytes)
    ticks = itertools.count(START, 1_000)

    def clock() -> int:
        return next(ticks)

    with patch.object(identity, "os", noise), patch.multiple(identity, _last=0, _noise="", _taken=0), line.installed():
        engine = Engine(database, clock)
        for policy in POLICIES:
            engine.call(CreateVersion(make_sender("alice", None, "", ""), solved(policy)))
            engine.call(ChangeState(make_sender("bob", None, "", ""), policy, "active", None))
        planner, wrong, notes = Planner(Random(f"{seed}/operations"), POLICIES), list[str](), list[str]()
        for _ in range(number):
            operation = planner.plan()
            for _ in range(MOST_TRIES):
                line.draw(random)
                if _send(engine, planner, operation, wrong):
                    break
            if random.random() < 0.2:
                notes += _seal(engine, wrong)
            if random.random() < 0.1:
                line.mend()
                engine.close()
                engine = Engine(database, clock)
        line.mend()
        keyed = [operation for operation in planner.operations if operation.keyed]
        wrong += check_log(engine.store, planner.operations)
        first, again = ([_result(engine, each.make()) for each in keyed] for _ in range(2))
        wrong += check_answers(keyed, first, again)
        answered = next(operation for operation in keyed if operation.answers)
        wrong += check_reused(answered, _result(engine, reusing_a_key(answered)))
        wrong += check_audit(engine.store, notes, KEY)
        wrong += check_log(engine.store, planner.operations)
        engine.close()
    return wrong, line


def _send(engine: Engine, planner: Planner, operation: Operation, wrong: list[str]) -> bool:
    """Send an operation once, and return whether the client is sure what came of it."""
    operation.sent += 1
    result = _result(engine, operation.make())
    if isinstance(result, Unavailable | Damaged):
        return False
    if isinstance(result, Problem):
        operation.refusals.append(result)
    elif isinstance(result, BaseException):
        wrong.append(f"{operation.name} ({operation.kind}): {result!r}")
    else:
        operation.answers.append(result)
        planner.learn(operation, msgspec.json.decode(result.body))
    return True


def _seal(engine: Engine, wrong: list[str]) -> list[str]:
    """Seal the log, and return the checkpoint that a client then sees."""
    try:
        engine.writer.call(SealLog(KEY))
        return [LogProofs(engine.store, engine.registry).checkpoint().note]
    except (Unavailable, Damaged):
        return []
    except Exception as error:
        wrong.append(f"the log cannot be sealed: {error!r}")
        return []


def _result(engine: Engine, command: Command) -> Any:
    try:
        return engine.writer.call(command)
    except Exception as error:
        return error
