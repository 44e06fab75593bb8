"""Reject unknown query parameters, because a misspelled filter would otherwise be ignored."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection
from litestar.enums import ParamType
from litestar.handlers import BaseRouteHandler
from litestar.params import ParameterKwarg

from lenience.service.domain.problems import BadRequest


async def reject_unknown_parameters(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Raise BadRequest for a query parameter that the endpoint does not have or that is repeated."""
    if not connection.scope["query_string"]:
        return
    allowed = _of(handler, set(connection.path_params))
    for name in connection.query_params:
        if name not in allowed:
            known = f"use {', '.join(allowed)}" if allowed else "it takes none"
            detail = f"{name[:80]!r} is not a query parameter of this address; {known}"
            raise BadRequest(detail, code="unknown_field", field=name[:80], allowed=", ".join(allowed) or None)
        if len(connection.query_params.getall(name)) > 1:
            raise BadRequest(f"the query parameter {name!r} must be given once", code="duplicate", field=name)


def _of(handler: BaseRouteHandler, in_path: set[str]) -> list[str]:
    """Return the query parameters of an endpoint."""
    fields = handler.parsed_fn_signature.parameters.items()
    return [
        name
        for name, field in fields
        if isinstance(field.kwarg_definition, ParameterKwarg)
        and field.kwarg_definition.param_type == ParamType.QUERY
        and name not in in_path
    ]
