"""What an operator meets: sockets, rights, restarts, files, metrics and what is told to whom."""

from __future__ import annotations

import socket

from lenience.cli.serve import listen


def test_answers_do_not_wait_for_more_to_send() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
        listening.listen()
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
