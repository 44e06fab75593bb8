"""The HTTP protocol of the service: uvicorn's, with limits on what a client can use before it is authenticated.

uvicorn reads headers of any size, and waits forever for a request that never ends. A client without a key could so fill
the memory or hold every connection. Each limit here is far above what the service's own clients need. A reverse proxy
should have the same limits, and one on connections per address, which is not here because behind a proxy all
connections come from one address.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

CONNECTIONS = 1_000  # open at once, in one process
ADDRESS_BYTES = 16 * 1024  # of the path and the query
HEADERS = 100
HEAD_BYTES = 64 * 1024  # of the request line and all headers
HEAD_SECONDS = 10.0  # from the opening of a connection, or the first byte of a later request, to the end of the headers
BODY_SECONDS = 30.0  # to send a body, and one second more for each BODY_RATE bytes
BODY_RATE = 8 * 1024
WRITE_SECONDS = 60.0  # for which a client may not read the response at all


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if the client sends too much, too slowly, or does not read the response."""

    def __init__(self, *about: Any, **more: Any) -> None:
        super().__init__(*about, **more)
        self._part: Literal["head", "body"] | None = None  # what is being received; None between two requests
        self._watched: Literal["head", "body"] | None = None  # what the timer is for
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0  # received since the last complete head
        self._header_bytes = 0  # of the headers of this request
        self._body_bytes = 0
        self._body_began = 0.0
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or close it if there are too many."""
        full = len(self.connections) >= CONNECTIONS
        super().connection_made(transport)
        if full:
            self._refuse(503, "The service has too many open connections.")
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what was received. A request that arrives whole needs no timer."""
        if self._refused:
            return
        if self._part != "body":
            self._head_bytes += len(data)
        super().data_received(data)
        if self._part != "body" and self._head_bytes > HEAD_BYTES:  # the parser may hold one header that never ends
            self._refuse(431, "The headers are too large.")
        if not self._refused:
            self._watch()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._part, self._header_bytes = "head", 0

    def on_url(self, url: bytes) -> None:
        """Receive a part of the address."""
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES:
            self._refuse(414, "The address is too long.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header."""
        self._header_bytes += len(name) + len(value)
        if len(self.headers) >= HEADERS or self._header_bytes > HEAD_BYTES:
            self._refuse(431, f"A request may have {HEADERS} headers of {HEAD_BYTES:,} bytes in all.")
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer the request, unless it was refused."""
        self._part, self._head_bytes = "body", 0
        self._body_bytes, self._body_began = 0, self.loop.time()
        if not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        self._body_bytes += len(body)
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._part = None
        if not self._refused:
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Wait for a client that does not read the response, but not forever."""
        super().pause_writing()
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue to write the response."""
        super().resume_writing()
        self._stop_write_timer()

    def _watch(self) -> None:
        """Let the timer watch what the client still has to send."""
        waiting_for = self._part
        if waiting_for is None and (self.cycle is None or self.cycle.response_complete):
            # The next request. uvicorn has a timer for idle connections, but any byte from the client stops it.
            waiting_for = "head"
        if waiting_for == self._watched:
            return
        self._stop_timer()
        self._watched = waiting_for
        if waiting_for == "head":
            self._timer = self.loop.call_later(HEAD_SECONDS, self._end_of_head_time)
        elif waiting_for == "body":
            self._timer = self.loop.call_later(BODY_SECONDS, self._end_of_body_time)

    def _end_of_head_time(self) -> None:
        if self._head_bytes:
            self._refuse(408, "The headers took too long.")
        else:
            self.transport.close()  # nothing was sent, so nothing is answered

    def _end_of_body_time(self) -> None:
        rest = self._body_began + BODY_SECONDS + self._body_bytes / BODY_RATE - self.loop.time()
        if rest <= 0 and self.flow.read_paused:  # the service does not read: it is not the client that is slow
            rest = BODY_SECONDS
        if rest > 0:
            self._timer = self.loop.call_later(rest, self._end_of_body_time)
        else:
            self._refuse(408, "The body took too long.")

    def _refuse(self, status: int, message: str) -> None:
        """Answer with an error, if no other answer has begun, and close the connection."""
        if self._refused:
            return
        self._refused = True
        self._stop_timer()
        cycle = self.cycle
        busy = cycle is not None and not cycle.response_complete
        if busy and (cycle.response_started or status != 408):  # the answer to another request would be mixed up
            self.transport.abort()
            return
        lines = (
            b"content-type: text/plain; charset=utf-8\r\n",
            b"content-length: %d\r\n" % len(message),
            b"connection: close\r\n\r\n",
        )
        self.transport.write(STATUS_LINE[status] + b"".join(lines) + message.encode("ascii"))
        self.transport.close()

    def _stop_timer(self) -> None:
        self._watched = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
