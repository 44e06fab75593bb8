"""A network between the service and PostgreSQL: a TCP proxy on loopback that delays each direction by a fixed time.

It runs in a process of its own, so that it takes no time of the interpreter that measures:
``python -m benchmarks.delay SOCKET MILLISECONDS`` prints its port, and ends when its input is closed.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

from sqlalchemy import make_url


@contextmanager
def delayed(address: str, milliseconds: float) -> Iterator[str]:
    """The address of a PostgreSQL server behind a network whose round trip takes twice the given time."""
    url = make_url(address)
    (target,) = [path for path in Path(str(url.query["host"])).glob(".s.PGSQL.*") if path.suffix != ".lock"]
    command = [sys.executable, "-m", "benchmarks.delay", str(target), str(milliseconds)]
    proxy = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    )
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    try:
        port = int(proxy.stdout.readline())
        moved = url.set(host="127.0.0.1", port=port, query={"sslmode": "disable"}, drivername="postgresql")
        yield moved.render_as_string(hide_password=False)
    finally:
        proxy.stdin.close()
        proxy.wait(10)
        proxy.stdout.close()


def main(target: str, milliseconds: float) -> None:
    """Forward connections to a socket until the input is closed."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            client, _ = listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            server.connect(target)
            for source, sink in ((client, server), (server, client)):
                later: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
                threading.Thread(target=receive, args=(source, later, milliseconds / 1e3), daemon=True).start()
                threading.Thread(target=send, args=(sink, later), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


def receive(source: socket.socket, later: SimpleQueue[tuple[float, bytes]], seconds: float) -> None:
    """Note what arrives, and when it may go on."""
    data = b"."
    while data:
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        later.put((time.perf_counter() + seconds, data))


def send(sink: socket.socket, later: SimpleQueue[tuple[float, bytes]]) -> None:
    """Send on what has waited long enough."""
    with suppress(OSError):
        while True:
            due, data = later.get()
            time.sleep(max(due - time.perf_counter(), 0.0))
            if not data:
                break
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
    sink.close()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
