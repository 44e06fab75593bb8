"""Service: the store, its writer and its readers, shared by the handlers of one process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TypeVar

import msgspec
from sqlalchemy import delete

from lenience.service.commands.expire_referrals import ExpireReferrals
from lenience.service.commands.keys import Keyring
from lenience.service.commands.lifecycle import ChangeState, CreateVersion, SolvedVersion, solve_version
from lenience.service.commands.outcomes import Expire
from lenience.service.commands.probe import Probe
from lenience.service.commands.seal import SealLog
from lenience.service.commands.solve_progress import SolveProgress
from lenience.service.domain.alerts import Reading
from lenience.service.domain.answers import ExpiryAnswer, VersionAnswer
from lenience.service.domain.clock import SECOND, allowed_step, now
from lenience.service.domain.problems import Problem, Unavailable
from lenience.service.domain.receipts import CommandAnswer, Sender, encoder
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.background_solves import BackgroundSolve, BackgroundSolves
from lenience.service.queries.alert_readings import read_alert_readings
from lenience.service.queries.log_proofs import LogProofs
from lenience.service.queries.protected_policies import policies_deciding_by_protected
from lenience.service.queries.reading import Queries
from lenience.service.storage import schema
from lenience.service.storage.alert_states import apply_readings, begin_check, forget_delivered, read_readings
from lenience.service.storage.clock_check import check_clock
from lenience.service.storage.command import Command
from lenience.service.storage.ended_sessions import forget_ended
from lenience.service.storage.log_key import read_log_key
from lenience.service.storage.log_tree import has_unsealed
from lenience.service.storage.people import forget_people
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.referrals import any_refers, has_referrals
from lenience.service.storage.store import Store
from lenience.service.storage.webhook_outbox import send_due
from lenience.service.storage.writer import Result, Writer

KEYS_EVERY = 1.0  # seconds between reads of the list of keys
CHORES_EVERY = 60.0  # seconds between rounds of expiry and clean-up
SEAL_EVERY = 1.0  # seconds between additions to the Merkle tree of the log
CHECKPOINT_EVERY = 1.0  # seconds between attempts to empty a -wal file that holds erased data
ALERTS_EVERY = 60.0  # seconds between checks of the conditions of alerts
SEND_EVERY = 5.0  # seconds between looks for messages of webhooks that are due
PROTECTED_EVERY = 10.0  # seconds between reads of which policies decide by protected attributes
CLOCK_TRIAL = 600.0  # seconds after a start in which nothing expires if the clock may be wrong
READY_SECONDS = 5.0  # for the writer to commit a probe
KEEP_ANSWERS = 7 * 86_400 * 1_000_000  # microseconds for which answers under idempotency keys are stored
EXPIRY_ACTOR = "expiry"

Value = TypeVar("Value")


@dataclass(slots=True)
class _SharedSolve:
    """A solve, and how many requests wait for it."""

    task: asyncio.Task[SolvedVersion]
    progress: SolveProgress
    waiting: int = 0


log = logging.getLogger("lenience.service")


class Service:
    """The shared state of one process of the service."""

    def __init__(self, database: str, written: Callable[[Sequence[CommandAnswer]], None] | None = None) -> None:
        self.store = Store(database, serving=True)
        try:
            self.store.check_durability()
            self.store.check_integrity()
            self.store.upgrade()
            self.store.checkpoint()  # erased personal data may be in a -wal file that a crash has left
            check_clock(self.store)
            self.registry = PolicyCache()
            self.keyring = Keyring(self.store)
            self.keyring.refresh()
            self.queries = Queries(self.store, self.registry)
            self.proofs = LogProofs(self.store, self.registry)
            self.log_key = read_log_key(self.store.url, create=True)
            self.deciding_by_protected: dict[str, list[str]] = {}  # the attributes, by policy
            self.refers = False  # whether a policy leaves cases to people, or has done so
            self.find_protected()
            self.writer = Writer(self.store, self.registry, after=self._wake_loop, written=written)
        except BaseException:
            self.store.close()
            raise
        self.readings: list[Reading] = []  # what the last check of alerts found
        self._done: list[tuple[asyncio.Future[CommandAnswer], Result]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._chores: list[asyncio.Task[None]] = []
        self._checking: asyncio.Task[None] | None = None
        self._solving: dict[bytes, _SharedSolve] = {}
        self.solves = BackgroundSolves()
        # One solve at a time, so that a long one does not block readers.
        self.solver = ThreadPoolExecutor(1, thread_name_prefix="solver")
        silent = self.writer.silence > allowed_step()
        self._chores_from = monotonic() + (CLOCK_TRIAL if silent else 0.0)
        if silent:
            fields = {"minutes": CLOCK_TRIAL / 60}
            log.info("no decision lately: outcomes do not expire in the first minutes", extra={"fields": fields})
        self._probe: asyncio.Task[CommandAnswer] | None = None
        self._sealed_until = -1  # the batches of the writer when nothing was left to seal

    async def start(self) -> None:
        """Start the periodic tasks."""
        self._loop = asyncio.get_running_loop()
        self._chores = [
            asyncio.create_task(self._every(KEYS_EVERY, self.keyring.refresh)),
            asyncio.create_task(self._every(CHORES_EVERY, self.do_chores)),
            asyncio.create_task(self._every(CHECKPOINT_EVERY, self.empty_wal)),
            asyncio.create_task(self._every(SEAL_EVERY, self.seal_log)),
            asyncio.create_task(self._every(PROTECTED_EVERY, self.find_protected)),
            asyncio.create_task(self._every(ALERTS_EVERY, self.check_alerts)),
            asyncio.create_task(self._every(SEND_EVERY, self.send_messages)),
        ]

    async def stop(self) -> None:
        """Stop the periodic tasks, write the waiting commands and close the database."""
        for task in self._chores:
            task.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        await asyncio.to_thread(self.writer.close)
        self._wake()
        self.solver.shutdown(wait=False, cancel_futures=True)
        self.store.close()

    async def perform(self, command: Command) -> CommandAnswer:
        """Run a command. It returns when the result is on the disk."""
        loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[CommandAnswer] = loop.create_future()
        self.writer.submit(command, lambda result: self._done.append((future, result)))
        if self._done:
            self._wake()  # the writer rejected the command immediately
        answer = await future
        if isinstance(command, ChangeState):
            await self.ask(self.find_protected)
        return answer

    async def solve(self, work: Callable[[], Value]) -> Value:
        """Run a solve after those that are queued."""
        return await asyncio.get_running_loop().run_in_executor(self.solver, work)

    async def solve_version(self, specification: PolicySpecification) -> SolvedVersion:
        """Solve a version. Equal concurrent requests (e.g. retries) share one solve.

        If the caller is cancelled, for instance because its client disconnected, and nobody else waits for the same
        solve, it stops within a few seconds.
        """
        key = encoder.encode(specification)
        shared = self._solving.get(key)
        if shared is None or shared.progress.cancelled:
            progress = SolveProgress()
            work = partial(solve_version, specification, progress)
            shared = _SharedSolve(asyncio.get_running_loop().create_task(self.solve(work)), progress)
            self._solving[key] = shared
            shared.task.add_done_callback(partial(self._forget, key, shared))
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            if shared.waiting == 0 and not shared.task.done():
                shared.progress.cancelled = True

    def _forget(self, key: bytes, ended: _SharedSolve, task: asyncio.Task[SolvedVersion]) -> None:
        """Forget a solve that has ended."""
        if not task.cancelled():
            task.exception()  # it is retrieved, also if nobody waits any longer
        if self._solving.get(key) is ended:
            del self._solving[key]

    def solve_in_background(
        self, specification: PolicySpecification, sender: Sender, activate: bool = False
    ) -> BackgroundSolve:
        """Start to solve and store a version, and to activate it if that is wanted, and return at once."""

        async def work(progress: SolveProgress) -> CommandAnswer:
            solved = await self.solve(partial(solve_version, specification, progress))
            progress.check()
            created = await self.perform(CreateVersion(sender, solved))
            if not activate:
                return created
            number = msgspec.json.decode(created.body, type=VersionAnswer).version
            return await self.perform(ChangeState(sender, specification.name, "active", number))

        return self.solves.start(specification.name, work)

    async def ask(self, question: Callable[[], Value]) -> Value:
        """Run a query in another thread."""
        return await asyncio.to_thread(question)

    async def check_ready(self) -> None:
        """Raise Unavailable or Damaged unless the writer commits within a few seconds and the database is readable.

        Anyone may ask, so concurrent requests share one check, and at most one probe waits for the writer.
        """
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check_database())
            self._checking.add_done_callback(lambda task: task.cancelled() or task.exception())  # it is retrieved
        await asyncio.shield(self._checking)

    async def _check_database(self) -> None:
        """Let the writer commit a probe, and read the database."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self.perform(Probe()))
            self._probe.add_done_callback(lambda probe: probe.cancelled() or probe.exception())  # it is retrieved
        try:
            await asyncio.wait_for(asyncio.shield(self._probe), READY_SECONDS)
            await asyncio.wait_for(self.ask(self.store.check_readable), READY_SECONDS)
        except TimeoutError:
            raise Unavailable(f"the database has not answered for {READY_SECONDS:g} seconds") from None

    def find_protected(self) -> None:
        """Find the policies that decide by protected attributes, and whether one leaves cases to people.

        Another process may have activated one.
        """
        with self.store.read() as connection:
            self.refers = any_refers(connection)
            self.deciding_by_protected = policies_deciding_by_protected(connection)

    def empty_wal(self) -> None:
        """Empty the -wal file of SQLite if it still holds personal data that was erased."""
        if self.writer.wal_holds_erased:
            self.writer.wal_holds_erased = not self.store.checkpoint()

    def seal_log(self, others: bool = False) -> None:
        """Append what was written since the last time to the Merkle tree of the log, and sign a checkpoint.

        With ``others``, also look for what other processes have written. Usually they seal it themselves.
        """
        batches = self.writer.batches
        if batches == self._sealed_until and not others:
            return
        with self.store.read() as connection:
            due = has_unsealed(connection)
        if not due:
            self._sealed_until = batches
            return
        command = SealLog(self.log_key)
        while command.more:
            self.writer.call(command)

    def check_alerts(self) -> None:
        """Find the alerts that begin and end, unless another process has just done so, and show them in the metrics."""
        at = now()
        if begin_check(self.store, at, int(0.9 * ALERTS_EVERY * SECOND)):
            apply_readings(self.store, read_alert_readings(self.queries, at), at)
        with self.store.read() as connection:
            self.readings = read_readings(connection)

    def send_messages(self) -> None:
        """Send the messages of webhooks that are due."""
        send_due(self.store, now)

    def do_chores(self) -> None:
        """Let overdue outcomes expire, and delete old idempotency keys, sessions and names.

        After a start with a clock that is far ahead of the newest decision, wait a while: the clock of a machine that
        has just started may be wrong until it is synchronized.
        """
        if monotonic() < self._chores_from:
            return
        forget_ended(self.store)
        forget_people(self.store)
        forget_delivered(self.store, now())
        for entry in self.queries.policies().policies:
            self._expire_referrals(entry.name)
            if entry.active is None:
                continue
            with self.store.read() as connection:
                record = self.registry.load(connection, entry.name)
            days = None if record.active is None else record.active.specification.expiry_days
            if days is None:
                continue
            before = now() - int(days * 86_400 * 1_000_000)
            more = True
            while more:
                answer = self.writer.call(Expire(Sender(EXPIRY_ACTOR), entry.name, before))
                more = msgspec.json.decode(answer.body, type=ExpiryAnswer).more
        with self.store.write() as connection:
            table = schema.idempotency
            connection.execute(delete(table).where(table.c.created_at < now() - KEEP_ANSWERS))

    def _expire_referrals(self, policy: str) -> None:
        """Let referred cases of a policy lapse that nobody has decided in time."""
        with self.store.read() as connection:
            record = self.registry.load(connection, policy)
            if not has_referrals(connection, record):
                return
        more = True
        while more:
            answer = self.writer.call(ExpireReferrals(Sender(EXPIRY_ACTOR), policy))
            more = msgspec.json.decode(answer.body, type=ExpiryAnswer).more

    async def _every(self, seconds: float, chore: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(chore)
            except Unavailable:
                pass  # the next round retries
            except Problem as problem:
                log.warning("a periodic task was rejected", extra={"fields": {"detail": problem.detail}})
            except Exception as error:
                log.error("a periodic task failed", exc_info=error)

    def _wake_loop(self) -> None:
        """Wake the event loop once for all commands of a transaction."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        done, self._done = self._done, []
        for future, result in done:
            if future.done():  # the client disconnected
                continue
            if isinstance(result, CommandAnswer):
                future.set_result(result)
            else:
                future.set_exception(result)
