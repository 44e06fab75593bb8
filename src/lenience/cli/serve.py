"""lenience serve: run the decision service."""

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
from lenience.core.settings import CLOCK_STEP, DATABASE, FOUR_EYES, LOG_REQUESTS, MULTIPROCESS, OPENID, SESSION_SECRET
from lenience.core.validation import real

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
    help="A file (SQLite), or postgresql://user@host/name (put the password in ~/.pgpass).",
)


@click.command(short_help="Serve decisions over HTTP, durable and auditable.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address; any other than loopback needs API keys."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 chooses a free one."
)
@database_option
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes (PostgreSQL only)."
)
@click.option(
    "--clock-step",
    type=float,
    default=3600,
    show_default=True,
    envvar=CLOCK_STEP,
    show_envvar=True,
    help="The largest forward step of the machine's clock to follow, in seconds.",
)
@click.option(
    "--four-eyes",
    is_flag=True,
    envvar=FOUR_EYES,
    show_envvar=True,
    help="Let a version be activated only by somebody other than its author.",
)
@click.option(
    "--oidc",
    type=FILE,
    metavar="FILE",
    envvar=OPENID,
    show_envvar=True,
    help="A TOML file with the settings for sign-in with OpenID Connect.",
)
@click.option(
    "--policy",
    "policy_file",
    type=FILE,
    metavar="FILE",
    help="Make the policy in this file (lenience fit --output) the active version.",
)
@click.option("--log-requests", is_flag=True, help="Log every request, not only those that failed.")
@json_option
def serve(
    host: str,
    port: int,
    database: str,
    workers: int,
    clock_step: float,
    four_eyes: bool,
    oidc: str | None,
    policy_file: str | None,
    log_requests: bool,
    as_json: bool,
) -> None:
    """Decide over HTTP whom to accept, learn from outcomes as they arrive, and keep a log that can be audited.

    The service creates the database, or upgrades its schema, when it starts. Only this machine can reach the service
    until API keys exist (lenience keys) or sign-in with OpenID Connect is set up (--oidc).

    \b
    Example:
      lenience serve --policy policy.json
      lenience serve --port 8000 --database decisions.db
      lenience serve --database postgresql://lenience@localhost/lenience --workers 4
      lenience serve --four-eyes --oidc oidc.toml
    """
    require_service()
    import uvicorn

    from lenience.service.domain.clock import LARGEST_STEP
    from lenience.service.http.logs import configure_logs
    from lenience.service.storage.address import database_url

    os.environ[CLOCK_STEP] = str(real("clock_step", clock_step, above=0, most=LARGEST_STEP))
    prepare(host, database, workers, oidc, policy_file, not four_eyes)
    listening = listen(host, port)
    actual = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    os.environ[DATABASE] = database
    os.environ[FOUR_EYES] = "1" if four_eyes else "0"
    os.environ[OPENID] = oidc or ""
    os.environ[LOG_REQUESTS] = "1" if log_requests else "0"
    if database_url(database).get_backend_name() != "sqlite":  # with SQLite the secret is in a file
        os.environ.setdefault(SESSION_SECRET, secrets.token_hex(32))  # all processes share the dashboard's sessions
    configure_logs()
    address = f"http://{shown}:{actual}"
    sentence = f"Serving {address} (dashboard there; API under {address}/v1, described at {address}/openapi.json)"
    announce_start(workers)
    line = json.dumps({"url": address}) if as_json else sentence
    Thread(target=announce_when_ready, args=(listening.getsockname()[:2], line), daemon=True).start()
    application = "lenience.dashboard.app:from_environment"
    options: dict[str, Any] = {
        "factory": True,
        "http": "lenience.service.http.protocol:LimitedProtocol",
        "ws": "none",
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
    """Keep the worker processes running, and log each one that dies with its signal or exit code."""
    from uvicorn.supervisors import Multiprocess

    class Watched(Multiprocess):
        def keep_subprocess_alive(self) -> None:
            before = list(self.processes)
            super().keep_subprocess_alive()
            log_dead_processes([worker.process for worker in before if worker not in self.processes])

    Watched(config, sockets=[listening]).run()


def log_dead_processes(processes: Sequence[BaseProcess]) -> None:
    """Log an error for each process that ended without being asked to; another one has taken its place."""
    for process in processes:
        code = process.exitcode
        if code is not None:
            ended = {"signal": signal.Signals(-code).name} if code < 0 else {"exit_code": code}
            fields = {"pid": process.pid, **ended}
            logging.getLogger("lenience.service").error("a process died", extra={"fields": fields})


def announce_start(workers: int) -> None:
    """Print that the service is starting; if stderr is not a terminal, log it, so that the log is all JSON."""
    message = f"Starting {counted(workers, 'process', 'processes')} …"
    if sys.stderr.isatty():
        click.echo(message, err=True)
    else:
        logging.getLogger("lenience.service").info(message)


def announce_when_ready(address: tuple[str, int], line: str) -> None:
    """Print a line once the service is ready for requests."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0])  # "all addresses" cannot be called
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


def prepare(
    host: str,
    database: str,
    workers: int,
    oidc: str | None = None,
    policy_file: str | None = None,
    activate: bool = True,
) -> None:
    """Raise InputError if the service cannot run: bad settings, a second writer, no keys on a public address.

    If a policy file is given, its policy becomes the active version.
    """
    from lenience.dashboard.openid.settings import read_client_secret, read_openid_settings
    from lenience.service.commands.keys import list_keys
    from lenience.service.domain.problems import Problem
    from lenience.service.http.auth import loopback
    from lenience.service.storage.clock_check import check_clock
    from lenience.service.storage.session_secrets import SessionSecrets
    from lenience.service.storage.store import Store

    specification = None
    if policy_file is not None:
        from lenience.cli.policy_file import install, read_policy_file

        specification = read_policy_file(policy_file)
    openid = read_openid_settings(oidc)
    if openid is not None:
        read_client_secret(openid)
    store = None
    try:
        store = Store(database, serving=True)
        if store.sqlite and workers > 1:
            raise InputError(
                "workers", workers, "1 with SQLite, which has one writer", hint="For several workers use PostgreSQL."
            )
        store.check_durability()
        store.check_integrity()
        store.upgrade()
        store.check_writable()
        SessionSecrets(store.url)  # raises InputError if they cannot be used
        check_clock(store)
        if not loopback(host) and openid is None and not list_keys(store):
            raise InputError(
                "host",
                host,
                "a loopback address such as 127.0.0.1 until an API key exists",
                hint="Make a key with lenience keys create.",
            )
        if specification is not None:
            click.echo(install(store, specification, activate), err=True)
    except Problem as problem:
        raise InputError.because(problem.full_detail, "database", label="", code="database_unusable") from None
    finally:
        if store is not None:
            store.close()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise InputError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections inherit this. The worker processes cannot tell that the shared socket is TCP, so they do not
    # set it themselves, and every answer would wait 40 ms.
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


def require_service(extra: str = "lenience[serve]", *more: str) -> None:
    """Raise InputError with the extra to install if a package of the service is missing."""
    from importlib.util import find_spec

    for package in ("alembic", "httptools", "httpx", "jinja2", "joserfc", "litestar", "sqlalchemy", "uvicorn", *more):
        if find_spec(package) is None:
            raise InputError.because(
                f"The service needs the package {package}",
                value=package,
                hint=f"Install it: pip install '{extra}'",
                code="missing_package",
            )
