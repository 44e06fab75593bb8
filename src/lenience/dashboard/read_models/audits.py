"""Audits from the dashboard: the whole log recomputed by a process of its own, so that decisions need not wait for it.

What the last one found is kept in the database, so that all processes of a service show the same, and no two begin at
once. One that is running gives a sign of life every few seconds; without it, its process has died.
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

SIGN_EVERY = 10.0  # seconds
LOST_AFTER = 30_000_000  # microseconds without a sign of life
log = logging.getLogger("lenience.service")


class FinishedAudit(msgspec.Struct, frozen=True):
    """How an audit ended."""

    at: str
    report: AuditReport | None = None
    error: str = ""


class AuditStatus(msgspec.Struct, frozen=True):
    """Whether an audit is running, and how the last one ended."""

    running: bool = False
    last: FinishedAudit | None = None


class Audits:
    """Starts audits, one at a time."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None

    async def start(self, service: Service) -> None:
        """Begin one, unless one is running, in whichever process."""
        if await service.ask(lambda: _begin(service)):
            self._task = asyncio.get_running_loop().create_task(self._run(service))

    async def _run(self, service: Service) -> None:
        # The address may hold a password: it goes by the environment, which other users cannot read.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lenience", "audit", "--json"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, DATABASE: self._database},
        )
        answer = asyncio.ensure_future(process.communicate())
        try:
            while not (await asyncio.wait([answer], timeout=SIGN_EVERY))[0]:
                await self._keep(service, {"running_at": now()})
        except asyncio.CancelledError:
            process.kill()
            raise
        out, err = answer.result()
        try:
            # The heads are for one who keeps them elsewhere, and there are as many as segments.
            report = msgspec.structs.replace(msgspec.json.decode(out, type=AuditReport), heads=[])
            finished = FinishedAudit(iso_time(now()), report)
        except msgspec.DecodeError:
            finished = FinishedAudit(
                iso_time(now()), None, err.decode(errors="replace").strip()[:300] or "it did not answer"
            )
        await self._keep(service, {"running_at": None, "found": msgspec.json.encode(finished).decode()})

    async def _keep(self, service: Service, values: dict[str, object]) -> None:
        def write() -> None:
            with service.store.write() as connection:
                connection.execute(update(schema.audited).values(values))

        try:
            await service.ask(write)
        except Problem as problem:  # the database is out of reach: the next sign, or the next audit, will do
            log.warning("an audit could not be recorded", extra={"fields": {"detail": problem.detail}})


def _begin(service: Service) -> bool:
    """Say that an audit begins; false where one is running."""
    with service.store.write() as connection:
        row = connection.execute(select(schema.audited).with_for_update()).one_or_none()
        if row is not None and _runs(row.running_at):
            return False
        connection.execute(delete(schema.audited))
        values = {"id": 1, "running_at": now(), "found": None if row is None else row.found}
        connection.execute(insert(schema.audited), values)
    return True


def _runs(sign: int | None) -> bool:
    return sign is not None and sign > now() - LOST_AFTER


def audit_status(service: Service) -> AuditStatus:
    """How it stands with audits, as all processes see it."""
    with service.store.read() as connection:
        row = connection.execute(select(schema.audited)).one_or_none()
    if row is None:
        return AuditStatus()
    last = None if row.found is None else msgspec.json.decode(row.found, type=FinishedAudit)
    return AuditStatus(_runs(row.running_at), last)
