"""lenience serve: the decision service."""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from lenience.cli.options import FILE, json_option
from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.core.settings import DATABASE, LOG_REQUESTS, MULTIPROCESS, SESSION_SECRET

if TYPE_CHECKING:
    import uvicorn

database_option = click.option(
    "--database",
    type=FILE,
    metavar="FILE|URL",
    default="lenience.db",
    show_default=True,
    envvar=DATABASE,
    show_envvar=True,
    help="A file (SQLite), or postgresql://user@host/name (the password in ~/.pgpass).",
)


@click.command(short_help="Serve decisions over HTTP, durable and auditable.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address; others than loopback need keys.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 chooses a free one.")
@database_option
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes (PostgreSQL only)."
)
@click.option("--log-requests", is_flag=True, help="Log every request, not only those that failed.")
@json_option
def serve(host: str, port: int, database: str, workers: int, log_requests: bool, as_json: bool) -> None:
    """Answer «accept or reject?» over HTTP, learn from outcomes as they come, and keep a log that proves it.

    The database is made, or brought to the newest schema, by itself. Only this machine can reach the service until
    API keys exist (lenience keys).

    \b
    Example:
      lenience serve --port 8000 --database decisions.db
      lenience serve --database postgresql://lenience@localhost/lenience --workers 4
    """
    needed()
    import uvicorn

    from lenience.service.http.logs import configure_logs

    prepare(host, database, workers)
    listening = listen(host, port)
    actual = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    os.environ[DATABASE] = database
    os.environ[LOG_REQUESTS] = "1" if log_requests else "0"
    os.environ.setdefault(SESSION_SECRET, secrets.token_hex(32))  # of the dashboard's sessions, shared by all processes
    configure_logs()
    address = f"http://{shown}:{actual}"
    sentence = f"Serving {address} (dashboard there; API under {address}/v1, described at {address}/openapi.json)"
    announce_start(workers)
    line = json.dumps({"url": address}) if as_json else sentence
    Thread(target=announce_when_ready, args=(listening.getsockname()[:2], line), daemon=True).start()
    application = "lenience.dashboard.app:from_environment"
    options: dict[str, Any] = {
        "factory": True,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 10,
    }
    if workers > 1:
        with tempfile.TemporaryDirectory(prefix="lenience-metrics-") as folder:
            os.environ.setdefault(MULTIPROCESS, folder)
            supervise(uvicorn.Config(application, workers=workers, **options), listening)
    else:
        uvicorn.Server(uvicorn.Config(application, **options)).run(sockets=[listening])


def supervise(config: uvicorn.Config, listening: socket.socket) -> None:
    """Keep so many processes running; of one that dies, say so with what ended it."""
    from uvicorn.supervisors import Multiprocess

    class Watched(Multiprocess):
        def keep_subprocess_alive(self) -> None:
            before = list(self.processes)
            super().keep_subprocess_alive()
            log_dead_processes([one.process for one in before if one not in self.processes])  # those that were replaced

    Watched(config, sockets=[listening]).run()


def log_dead_processes(processes: Sequence[BaseProcess]) -> None:
    """An error in the log for each process that has ended by itself: another is started in its place."""
    for process in processes:
        code = process.exitcode
        if code is not None:
            ended = {"signal": signal.Signals(-code).name} if code < 0 else {"exit_code": code}
            fields = {"pid": process.pid, **ended}
            logging.getLogger("lenience.service").error("a process died", extra={"fields": fields})


def announce_start(workers: int) -> None:
    """A word to people; where stderr is no terminal, a line of the log, which is JSON throughout."""
    message = f"Starting {counted(workers, 'process', 'processes')} …"
    if sys.stderr.isatty():
        click.echo(message, err=True)
    else:
        logging.getLogger("lenience.service").info(message)


def announce_when_ready(address: tuple[str, int], line: str) -> None:
    """Print a line once the service answers that it is ready: whoever reads it may send requests."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0])  # all addresses: this machine's own
    while True:
        connection = HTTPConnection(host, address[1], timeout=5)
        with suppress(OSError, HTTPException):
            connection.request("GET", "/ready")
            if connection.getresponse().status == 200:
                break
        connection.close()
        time.sleep(0.05)
    connection.close()
    click.echo(line)


def prepare(host: str, database: str, workers: int) -> None:
    """Refuse what cannot be served, before anything is: a second writer, an open door, a database out of reach."""
    from lenience.service.commands.keys import list_keys
    from lenience.service.domain.problems import Problem
    from lenience.service.http.auth import loopback
    from lenience.service.storage.store import Store

    store = None
    try:
        store = Store(database, serving=True)
        if store.sqlite and workers > 1:
            raise InputError(
                "workers", workers, "1 with SQLite, which has one writer", hint="For several workers use PostgreSQL."
            )
        store.upgrade()
        store.check_writable()
        if not loopback(host) and not list_keys(store):
            raise InputError(
                "host",
                host,
                "a loopback address such as 127.0.0.1 until an API key exists",
                hint="Make a key with lenience keys create.",
            )
    except Problem as problem:
        raise InputError.because(problem.full_detail, "database", label="", code="database_unusable") from None
    finally:
        if store is not None:
            store.close()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or an error that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Those it accepts inherit this: processes that share it do not know it for TCP, and an answer would wait 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError.because(
            f"The service cannot listen on {host} port {port}: {error.strerror}",
            ("host", "port"),
            label="",
            value=port,
            code="address_unusable",
        ) from None
    listening.set_inheritable(True)
    return listening


def needed(extra: str = "lenience[serve]", *more: str) -> None:
    """Say which extra is missing, if it is."""
    from importlib.util import find_spec

    for package in ("alembic", "jinja2", "litestar", "sqlalchemy", "uvicorn", *more):
        if find_spec(package) is None:
            raise InputError.because(
                f"The service needs the package {package}",
                value=package,
                hint=f"Install it: pip install '{extra}'",
                code="missing_package",
            )
