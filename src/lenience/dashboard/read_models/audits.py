"""Audits started from the dashboard. A separate process recomputes the log, so that decisions do not wait for it.

The database stores the result of the last audit, so that all processes of a service show the same result and only one
audit runs at a time. A running audit updates a heartbeat every few seconds. Without one, its process has died.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import msgspec
from sqlalchemy import delete, insert, select, update

from lenience.core.settings import DATABASE
from lenience.service.domain.clock import iso_time, now
from lenience.service.domain.problems import Problem
from lenience.service.http.service import Service
from lenience.service.queries.audit import AuditReport
from lenience.service.storage import schema

HEARTBEAT_EVERY = 10.0  # seconds
LOST_AFTER = 30_000_000  # microseconds without a heartbeat
log = logging.getLogger("lenience.service")


class FinishedAudit(msgspec.Struct, frozen=True):
    """The result of an audit."""

    at: str
    report: AuditReport | None = None
    error: str = ""


class AuditStatus(msgspec.Struct, frozen=True):
    """Whether an audit is running, and the result of the last one."""

    running: bool = False
    last: FinishedAudit | None = None


class Audits:
    """Start audits, one at a time."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None

    async def start(self, service: Service) -> None:
        """Start an audit unless one is running in any process."""
        if await service.ask(lambda: _begin(service)):
            self._task = asyncio.get_running_loop().create_task(self._run(service))

    async def _run(self, service: Service) -> None:
        # The address may hold a password, so pass it in the environment, which other users cannot read.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lenience", "audit", "--json"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, DATABASE: self._database},
        )
        answer = asyncio.ensure_future(process.communicate())
        try:
            while not (await asyncio.wait([answer], timeout=HEARTBEAT_EVERY))[0]:
                await self._keep(service, {"running_at": now()})
        except asyncio.CancelledError:
            process.kill()
            raise
        out, err = answer.result()
        try:
            # Drop the heads: the page does not need them, and there is one per segment.
            report = msgspec.structs.replace(msgspec.json.decode(out, type=AuditReport), heads=[])
            finished = FinishedAudit(iso_time(now()), report)
        except msgspec.DecodeError:
            finished = FinishedAudit(
                iso_time(now()), None, err.decode(errors="replace").strip()[:300] or "the audit gave no answer"
            )
        await self._keep(service, {"running_at": None, "found": msgspec.json.encode(finished).decode()})

    async def _keep(self, service: Service, values: dict[str, object]) -> None:
        def write() -> None:
            with service.store.write() as connection:
                connection.execute(update(schema.audited).values(values))

        try:
            await service.ask(write)
        except Problem as problem:  # the database is unreachable: the next write may succeed
            log.warning("an audit could not be recorded", extra={"fields": {"detail": problem.detail}})


def _begin(service: Service) -> bool:
    """Record that an audit starts. Return False if one is running."""
    with service.store.write() as connection:
        row = connection.execute(select(schema.audited).with_for_update()).one_or_none()
        if row is not None and _runs(row.running_at):
            return False
        connection.execute(delete(schema.audited))
        values = {"id": 1, "running_at": now(), "found": None if row is None else row.found}
        connection.execute(insert(schema.audited), values)
    return True


def _runs(heartbeat: int | None) -> bool:
    return heartbeat is not None and heartbeat > now() - LOST_AFTER


def audit_status(service: Service) -> AuditStatus:
    """Return the state of audits, which all processes share."""
    with service.store.read() as connection:
        row = connection.execute(select(schema.audited)).one_or_none()
    if row is None:
        return AuditStatus()
    last = None if row.found is None else msgspec.json.decode(row.found, type=FinishedAudit)
    return AuditStatus(_runs(row.running_at), last)
