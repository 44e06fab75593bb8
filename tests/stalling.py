"""A connection to PostgreSQL that dies without a word: a proxy that stops forwarding and keeps its sockets open."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from pathlib import Path

from sqlalchemy import make_url


class StallingProxy:
    """A TCP proxy on loopback in front of a PostgreSQL server's socket."""

    def __init__(self, folder: str) -> None:
        (self._target,) = [str(path) for path in Path(folder).glob(".s.PGSQL.*") if path.suffix != ".lock"]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._forwarding = threading.Event()
        self._forwarding.set()
        self._closed = False
        self._clients: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def address(self, database: str) -> str:
        """The address of a database by way of this proxy."""
        url = make_url(database).set(host="127.0.0.1", port=self.port, query={"sslmode": "disable"})
        return url.set(drivername="postgresql").render_as_string(hide_password=False)

    def stall(self) -> None:
        """Forward nothing from now on."""
        self._forwarding.clear()

    def go_on(self) -> None:
        """Forward again."""
        self._forwarding.set()

    def close(self) -> None:
        """Close every socket and wait for the threads, so that none of them opens another one later."""
        self._closed = True
        self._forwarding.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        for client in self._clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._clients.append(client)
            thread = threading.Thread(target=self._forward, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _forward(self, client: socket.socket) -> None:
        self._forwarding.wait()
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError, ValueError):
            server.connect(self._target)
            others = {client: server, server: client}
            while not self._closed:
                for one in select.select([client, server], [], [], 0.2)[0]:
                    self._forwarding.wait()
                    data = one.recv(65536)
                    if not data:
                        return
                    others[one].sendall(data)
