"""create_api: the HTTP API of one process of the service. Other packages may add routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.config.response_cache import ResponseCacheConfig
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, ControllerRouterHandler

from lenience.__about__ import __version__
from lenience.core.errors import InputError
from lenience.service.domain import limits
from lenience.service.domain.answers import Health
from lenience.service.domain.problems import Problem
from lenience.service.http import decisions, erasures, feed, log, monitoring, policies, solves, webhooks
from lenience.service.http.auth import needs_role
from lenience.service.http.bodies import StrictRequest, check_content_type
from lenience.service.http.direct_decisions import DirectDecisions
from lenience.service.http.errors import (
    documented,
    on_exception,
    on_http_exception,
    on_input_error,
    on_nested,
    on_problem,
)
from lenience.service.http.metrics import CONTENT_TYPE, Metrics
from lenience.service.http.middleware import RequestMiddleware
from lenience.service.http.parameters import reject_unknown_parameters
from lenience.service.http.service import Service
from lenience.service.http.strict_schema import StrictStructSchemas


@get("/health", responses={}, tags=["operations"], opt={"open": True})
async def health() -> Health:
    """Report whether the process runs."""
    return Health("ok", __version__)


@get("/ready", responses=documented(), tags=["operations"], opt={"open": True})
async def ready(request: Request[None, None, State]) -> Health:
    """Report whether the writer commits, and the database can be read."""
    service: Service = request.app.state.service
    await service.check_ready()
    return Health("ready", __version__)


@get(
    "/metrics",
    responses=documented(),
    tags=["operations"],
    opt={"role": "read"},
    guards=[needs_role],
    media_type=MediaType.TEXT,
)
async def metrics(request: Request[None, None, State]) -> Response[str]:
    """Return the metrics of the service for Prometheus."""
    state = request.app.state
    text = state.metrics.text(state.service.writer)
    return Response(text, media_type=CONTENT_TYPE)


@get("/openapi.json", include_in_schema=False, sync_to_thread=True)
def description(request: Request[None, None, State]) -> Response[bytes]:
    """Return the description of all endpoints (OpenAPI). It is encoded once, because anyone may ask for it."""
    state = request.app.state
    if state.description is None:
        state.description = msgspec.json.encode(request.app.openapi_schema.to_schema())
    return Response(state.description, media_type="application/json")


def create_api(
    database: str,
    *,
    log_requests: bool = False,
    route_handlers: Sequence[ControllerRouterHandler] = (),
    state: Mapping[str, Any] | None = None,
    exception_handlers: Mapping[type[Exception], Any] | None = None,
) -> ASGIApp:
    """Create the application that serves the API and any added routes.

    The application opens the database, upgrades its schema and serves until it is shut down.

    Parameters
    ----------
    database : str
        A file (SQLite) or the address of a PostgreSQL database.
    log_requests : bool
        Log every request, not only those that failed.
    route_handlers : sequence of handlers
        Routes to serve beside the API, such as the pages of the dashboard.
    state : mapping, optional
        What these routes need in the application's state.
    exception_handlers : mapping, optional
        Handlers that replace those of the API, by type of exception.

    Returns
    -------
    ASGIApp
        The application, for a server such as uvicorn.

    Raises
    ------
    InputError
        If the database cannot be opened, or another process serves it.
    """
    metrics_of_process = Metrics()
    service = Service(database, metrics_of_process.written)

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        await service.start()
        watching = asyncio.create_task(metrics_of_process.watch(service.writer, lambda: service.readings))
        try:
            yield
        finally:
            watching.cancel()
            await service.stop()

    api = Router(
        "/v1",
        route_handlers=[
            *policies.HANDLERS,
            *monitoring.HANDLERS,
            *webhooks.HANDLERS,
            *feed.HANDLERS,
            *solves.HANDLERS,
            *decisions.HANDLERS,
            *erasures.HANDLERS,
            *log.HANDLERS,
        ],
        guards=[needs_role, reject_unknown_parameters, check_content_type],
        request_class=StrictRequest,
    )
    app = Litestar(
        route_handlers=[api, metrics, health, ready, description, *route_handlers],
        lifespan=[lifespan],
        state=State({"service": service, "metrics": metrics_of_process, "description": None, **(state or {})}),
        plugins=[StrictStructSchemas()],
        exception_handlers=cast(
            Any,
            {
                Problem: on_problem,
                InputError: on_input_error,
                HTTPException: on_http_exception,
                RecursionError: on_nested,
                Exception: on_exception,
                **(exception_handlers or {}),
            },
        ),
        request_max_body_size=limits.BODY,
        openapi_config=OpenAPIConfig(
            title="lenience",
            version=__version__,
            description="Accept or reject, when only the accepted reveal their outcome: decisions one can prove.",
            path="/v1/description",  # the router there answers 404; the description itself is at /openapi.json
            render_plugins=[JsonRenderPlugin()],
            use_handler_docstrings=True,
            components=Components(
                security_schemes={"key": SecurityScheme(type="http", scheme="bearer", description="An API key")}
            ),
            security=[{"key": []}, {}],
        ),
        response_cache_config=ResponseCacheConfig(),
        logging_config=None,
        pdb_on_exception=False,
        debug=False,
    )
    direct = DirectDecisions(cast(ASGIApp, app), service)
    return cast(ASGIApp, RequestMiddleware(cast(ASGIApp, app), metrics_of_process, log_requests, direct))
