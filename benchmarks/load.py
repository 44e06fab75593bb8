"""A load generator: so many connections, each asking again as soon as it is answered, for so many seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import uvloop


@dataclass
class Load:
    """What came of a load: answers by status, and the time each took."""

    seconds: float = 0.0
    processor_seconds: float = 0.0  # of the servers
    busy: float = 0.0  # share of all cores that were busy, whoever used them
    statuses: dict[int, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.times) / self.seconds

    def quantile(self, share: float) -> float:
        """A quantile of the time to answer, in milliseconds."""
        ordered = sorted(self.times)
        return 1e3 * ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class _Connection(asyncio.Protocol):
    def __init__(self, request: Callable[[], bytes], load: Load, until: float) -> None:
        self.request, self.load, self.until = request, load, until
        self.buffer = b""
        self.started = 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._ask()

    def _ask(self) -> None:
        self.started = time.perf_counter()
        self.transport.write(self.request())

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ")
        length = int(self.buffer[at + 16 : self.buffer.find(b"\r", at)])
        if len(self.buffer) < head + 4 + length:
            return
        now = time.perf_counter()
        status = int(self.buffer[9:12])
        self.load.times.append(now - self.started)
        self.load.statuses[status] = self.load.statuses.get(status, 0) + 1
        self.buffer = b""
        if now < self.until:
            self._ask()
        else:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


def post(path: str, body: bytes) -> bytes:
    """A POST as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def run(
    ports: Sequence[int],
    connections: int,
    seconds: float,
    requests: Callable[[], bytes] | Sequence[Callable[[], bytes]],
) -> Load:
    """Put the load on, over the ports in turn. Each port may have a source of requests of its own."""
    sources = [requests] * len(ports) if callable(requests) else requests

    async def go() -> Load:
        load = Load()
        started = time.perf_counter()
        loop = asyncio.get_running_loop()
        made = await asyncio.gather(
            *(
                loop.create_connection(
                    partial(_Connection, sources[i % len(ports)], load, started + seconds),
                    "127.0.0.1",
                    ports[i % len(ports)],
                )
                for i in range(connections)
            )
        )
        await asyncio.gather(*(protocol.done for _, protocol in made))
        load.seconds = time.perf_counter() - started
        return load

    return uvloop.run(go())
