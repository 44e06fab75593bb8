"""Start commands quickly: a process that has imported the service forks for each of them.

To import the service takes ten times as long as to start it, and the tests start it more than a hundred times.
Whatever is run gets its own process, arguments, environment, folder and streams, as if it had been started anew.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import IO

MESSAGE = 1 << 20  # bytes that a request may have


class WarmProcess:
    """A process that was forked, with those methods of ``subprocess.Popen`` that the tests use.

    It is no child of this process, so its exit code is not known: ``poll`` and ``wait`` return 0 when it has ended.
    """

    def __init__(self, pid: int, stdout: IO[str]) -> None:
        self.pid = pid
        self.stdout = stdout
        self._descriptor: int | None = None
        with suppress(ProcessLookupError):  # it has ended already
            self._descriptor = os.pidfd_open(pid)

    def _ended(self, seconds: float | None) -> bool:
        if self._descriptor is not None:
            waiting = select.poll()
            waiting.register(self._descriptor, select.POLLIN)
            if not waiting.poll(None if seconds is None else 1000 * seconds):
                return False
            os.close(self._descriptor)
            self._descriptor = None
        return True

    def poll(self) -> int | None:
        """Return None while it runs."""
        return 0 if self._ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended."""
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None and self._descriptor is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


class Starter:
    """The process that forks. It ends with this one."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair()
        with other:
            number = other.fileno()
            self._process = subprocess.Popen([sys.executable, __file__, str(number)], pass_fds=[number])

    def start(self, words: list[str], log: IO[str]) -> WarmProcess:
        """Start ``lenience`` with these words; what it says on stderr goes to ``log``."""
        reading, writing = os.pipe()
        message = json.dumps([words, dict(os.environ), os.getcwd()]).encode()
        assert len(message) < MESSAGE
        try:
            socket.send_fds(self._socket, [message], [writing, log.fileno()])
        finally:
            os.close(writing)
        answer = self._socket.recv(64)
        assert answer, "the process that forks has ended"
        return WarmProcess(int(answer), open(reading))


_starters: dict[int, Starter] = {}


def start(words: list[str], log: IO[str]) -> WarmProcess:
    """Start ``lenience`` with these words, from the process that this process keeps for it."""
    if os.getpid() not in _starters:
        _starters[os.getpid()] = Starter()
    return _starters[os.getpid()].start(words, log)


def _serve(connection: socket.socket) -> None:
    """Fork for every request until the other side has gone; the child returns from here and runs the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, MESSAGE, 2)
        if not message:
            sys.exit()
        child = os.fork()
        if child == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(str(child).encode())
    connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words, surroundings, folder = json.loads(message)
    os.environ.clear()
    os.environ.update(surroundings)
    os.chdir(folder)
    for number, descriptor in enumerate(descriptors, start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "wb", closefd=False)) for number in (1, 2))
    sys.argv = ["lenience", *words]


# All that a running service has imported.
MODULES = (
    "lenience.cli.serve", "lenience.service.http.app", "lenience.dashboard.app", "lenience.service.storage.postgres",
    "uvicorn", "uvicorn.loops.auto", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl", "uvicorn.logging",
    "uvicorn.protocols.websockets.auto", "anyio._backends._asyncio", "sqlalchemy.dialects.sqlite", "scipy.stats",
    "lenience.policies.beliefs.optimal", "lenience.objectives", "lenience.service.http.protocol", "uvloop",
)  # fmt: skip


if __name__ == "__main__":
    for name in MODULES:
        importlib.import_module(name)
    from lenience.cli import main

    _serve(socket.socket(fileno=int(sys.argv[1])))
    main()
