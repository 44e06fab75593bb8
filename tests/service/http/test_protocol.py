"""What a client can use before it is authenticated: connections, headers, and time to send and to read."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import httpx
import pytest
import uvicorn

from lenience.service.http import protocol
from lenience.service.http.protocol import LimitedProtocol
from serving import Served

LONG = 30.0  # seconds for which a test waits for an answer that should come at once


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body, or with 64 MB if asked for them, or say that the client disconnected."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/large":
        for _ in range(64):
            await send({"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": True})
    await send({"type": "http.response.body", "body": str(size).encode()})


@contextmanager
def listening() -> Iterator[int]:
    """A server of this protocol in a thread: its port."""
    config = uvicorn.Config(echo, http=LimitedProtocol, ws="none", lifespan="off", log_config=None, port=0)
    server = uvicorn.Server(config)
    with closing(socket.create_server(("127.0.0.1", 0))) as place:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[place])))
        thread.start()
        try:
            yield place.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    with listening() as number:
        yield number


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LONG)


def all_of(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:  # it closed the connection while more was on its way
        pass
    return b"".join(parts)


def status_of(port: int, request: bytes) -> bytes:
    with connect(port) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        return all_of(connection)[9:12]


def head(*lines: str, path: str = "/", method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *lines, "", ""]).encode()


def test_an_ordinary_request_is_answered(port: int) -> None:
    assert status_of(port, head()) == b"200"
    assert status_of(port, head(*(f"X-{i}: {'v' * 200}" for i in range(90)))) == b"200"
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        assert client.post("/", content=b"x" * 3_000_000).text == "3000000"
        assert [client.get("/").text for _ in range(3)] == ["0"] * 3


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (head(*(f"X-{i}: v" for i in range(200))), b"431"),
        (head(f"X: {'v' * 100_000}"), b"431"),
        (b"GET / HTTP/1.1\r\nX: " + b"v" * 200_000, b"431"),  # a header that never ends
        (b"GET / HTTP/1.1\r\n" + b"v" * 200_000, b"431"),
        (head(path="/" + "p" * 17_000), b"414"),
    ],
    ids=["many", "large", "endless-value", "endless-name", "address"],
)
def test_a_large_head_is_refused(port: int, request_: bytes, status: bytes) -> None:
    # A connection that is closed while more is on its way may be reset before the answer is read.
    assert status_of(port, request_) in ({status} if len(request_) < 20_000 else {status, b""})
    assert status_of(port, head()) == b"200"


def test_a_head_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    with connect(port) as silent, connect(port) as slow, connect(port) as later:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        later.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert all_of(silent) == b""
        assert all_of(slow)[9:12] == b"408"
        assert later.recv(1 << 16)[9:12] == b"200"
        later.sendall(b"\r\n")  # stops the timer of an idle connection
        assert all_of(later)[9:12] == b"408"


def test_a_body_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.3)
    with connect(port) as slow:
        slow.sendall(head("Content-Length: 10", method="POST") + b"x")
        assert all_of(slow)[9:12] == b"408"
    monkeypatch.setattr(protocol, "BODY_RATE", 1)  # what was sent buys more time
    with connect(port) as fast:
        fast.sendall(head("Content-Length: 1002", method="POST") + b"x" * 1_000)
        fast.settimeout(1.0)
        with pytest.raises(TimeoutError):
            fast.recv(1)
        fast.settimeout(LONG)
        fast.sendall(b"yy")
        assert all_of(fast)[9:12] == b"200"


def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.3)
    with connect(port) as lazy:
        lazy.sendall(head(path="/large"))
        closed = threading.Event()
        closed.wait(1.5)
        assert len(all_of(lazy)) < 64 << 20
    with connect(port) as eager:
        eager.sendall(head(path="/large"))
        assert len(all_of(eager)) > 64 << 20


def test_connections_have_a_limit(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(protocol, "CONNECTIONS", 2)
    with connect(port) as first, connect(port) as second:
        for connection in (first, second):  # both are accepted
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(1 << 16)[9:12] == b"200"
        with connect(port) as third:
            assert all_of(third)[9:12] == b"503"


def test_the_service_uses_this_protocol(empty: Served) -> None:
    assert httpx.get(f"{empty.url}/health", headers={f"X-{i}": "v" for i in range(200)}).status_code == 431
    assert httpx.get(f"{empty.url}/health?{'q' * 17_000}").status_code == 414
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}
    assert httpx.get(f"{empty.url}/health", headers=upgrade).status_code == 200
