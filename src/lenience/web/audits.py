"""Audits from the dashboard: the whole log replayed by a process of its own, so that decisions need not wait for it."""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec

from lenience.service.audit import AuditReport
from lenience.service.clock import now, when
from lenience.settings import DATABASE


class AuditStatus(msgspec.Struct, frozen=True):
    """The last audit that was asked of this process of the service."""

    running: bool
    at: str | None = None
    report: AuditReport | None = None
    error: str = ""


class Audits:
    """Starts audits, one at a time, and keeps the last one's result."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None
        self.last = AuditStatus(running=False)

    def start(self) -> None:
        """Begin one, unless one is running."""
        if self._task is None or self._task.done():
            self.last = msgspec.structs.replace(self.last, running=True)
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        # The address may hold a password: it goes by the environment, which other users cannot read.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lenience", "audit", "--json"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, DATABASE: self._database},
        )
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            raise
        at = when(now())
        try:
            self.last = AuditStatus(False, at, msgspec.json.decode(out, type=AuditReport))
        except msgspec.DecodeError:
            self.last = AuditStatus(False, at, None, err.decode(errors="replace").strip()[:300] or "it did not answer")
