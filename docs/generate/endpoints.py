"""The sections of the page about endpoints, from the service's OpenAPI description."""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from generate.tables import table

Json = dict[str, Any]


@lru_cache(maxsize=1)
def description() -> Json:
    """Return what `GET /openapi.json` answers."""
    from litestar import Litestar

    from lenience.dashboard.app import create_app

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about handlers: they do not concern this page
        around: Any = create_app(str(Path(folder) / "empty.db"))
        app = cast(Litestar, around.app)
        try:
            return app.openapi_schema.to_schema()
        finally:
            asyncio.run(app.state.service.stop())


def text() -> str:
    """Return a section for each operation, then one for each body."""
    openapi = description()
    parts: list[str] = []
    for path, methods in openapi["paths"].items():
        for method, about in methods.items():
            parts += _operation(method.upper(), path, about)
    parts.append("## Bodies")
    for name, schema in openapi["components"]["schemas"].items():
        rows = [
            [
                f"`{field}`",
                _type(each),
                "yes" if field in schema.get("required", ()) else "",
                each.get("description", ""),
            ]
            for field, each in schema.get("properties", {}).items()
        ]
        parts += [f"### {name} {{ #{name} }}", schema.get("description", "")]
        if rows:
            parts.append(table(["field", "type", "required", "meaning"], rows))
    return "\n\n".join(part for part in parts if part)


def anchor(method: str, path: str) -> str:
    """Return the anchor of an operation.

    >>> anchor("POST", "/v1/policies/{name}/activate")
    'post-v1-policies-name-activate'
    """
    return "-".join([method.lower(), *path.replace("{", "").replace("}", "").replace(".", "-").strip("/").split("/")])


def _operation(method: str, path: str, about: Json) -> list[str]:
    summary: str = about.get("description") or about.get("summary") or ""
    parts = [f"## {method} {path} {{ #{anchor(method, path)} }}", summary]
    rows = [
        [f"`{each['name']}`", each["in"], _type(each.get("schema", {})), each.get("description", "")]
        for each in about.get("parameters", ())
    ]
    if rows:
        parts.append(table(["parameter", "in", "type", "meaning"], rows))
    for kind, body in about.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body (`{kind}`): {_type(body.get('schema', {}))}.")
    answers: dict[str, list[str]] = {}
    for status, answer in about.get("responses", {}).items():
        types = {_type(body.get("schema", {})) for body in answer.get("content", {}).values()} - {"any"}
        answers.setdefault(", ".join(sorted(types)), []).append(status)
    shown = (f"{', '.join(statuses)} {types}".strip() for types, statuses in answers.items())
    return [*parts, "Answers: " + "; ".join(shown) + "."]


def _type(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name})"
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")
