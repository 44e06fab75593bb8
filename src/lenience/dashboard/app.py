"""create_app: the application of one process, with the API of the service and the dashboard."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from threading import Thread

from litestar import Router
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, ControllerRouterHandler

from lenience.core.settings import DATABASE, LOG_REQUESTS
from lenience.dashboard.pages import document
from lenience.dashboard.router import create_dashboard, page_or_problem
from lenience.service.http.app import create_api
from lenience.service.http.auth import needs_role
from lenience.service.http.errors import on_http_exception
from lenience.service.http.logs import configure_logs
from lenience.service.http.parameters import reject_unknown_parameters


def create_app(
    database: str, *, log_requests: bool = False, route_handlers: Sequence[ControllerRouterHandler] = ()
) -> ASGIApp:
    """Create the application that serves the API and the dashboard.

    Parameters
    ----------
    database : str
        A file (SQLite) or the address of a PostgreSQL database.
    log_requests : bool
        Log every request, not only those that failed.
    route_handlers : sequence of handlers
        Routes to serve beside the API and the dashboard.

    Returns
    -------
    ASGIApp
        The application, for a server such as uvicorn.

    Raises
    ------
    InputError
        If the database cannot be opened, or another process serves it.
    """
    # The intervals of the fairness page need it. Importing it takes a second, so do that before the first visit.
    Thread(target=import_module, args=("scipy.stats",), name="imports", daemon=True).start()
    pages, state = create_dashboard(database)
    endpoints = Router("/v1", route_handlers=document.ENDPOINTS, guards=[needs_role, reject_unknown_parameters])
    return create_api(
        database,
        log_requests=log_requests,
        route_handlers=[pages, endpoints, *route_handlers],
        state=state,
        exception_handlers={HTTPException: page_or_problem(on_http_exception)},
    )


def from_environment() -> ASGIApp:
    """Create the application from environment variables, for a server that starts several processes."""
    configure_logs()
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()
    return create_app(os.environ[DATABASE], log_requests=os.environ.get(LOG_REQUESTS) == "1")


def _end_with(parent: BaseProcess) -> None:
    """Shut down when the parent process is gone, because nothing else would end or replace this process."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
