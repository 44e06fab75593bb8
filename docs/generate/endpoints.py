"""Every endpoint of the service, from the description that the service itself gives (OpenAPI)."""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from generate.markdown import table

PATH = "reference/endpoints.md"
Json = dict[str, Any]


@lru_cache(maxsize=1)
def description() -> Json:
    """What `GET /openapi.json` answers."""
    from litestar import Litestar

    from lenience.dashboard.app import create_app

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what Litestar says of handlers is no matter of this page
        around: Any = create_app(str(Path(folder) / "empty.db"))
        app = cast(Litestar, around.app)
        try:
            return app.openapi_schema.to_schema()
        finally:
            asyncio.run(app.state.service.stop())


def page() -> str:
    """The page."""
    found = description()
    parts = [
        "# Endpoints",
        "Every path of the decision service with what it takes and gives, as `GET /openapi.json` describes it; [the "
        "decision service](../service.md) tells how they are used. Errors are `application/problem+json` with "
        "`status`, `title` and a `detail` of one sentence.",
    ]
    for path, methods in found["paths"].items():
        for method, about in methods.items():
            parts += _operation(method.upper(), path, about)
    parts.append("## Bodies")
    for name, schema in found["components"]["schemas"].items():
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
    return "\n\n".join(part for part in parts if part) + "\n"


def anchor(method: str, path: str) -> str:
    """The anchor of an operation.

    >>> anchor("POST", "/v1/policies/{name}/activate")
    'post-v1-policies-name-activate'
    """
    return "-".join([method.lower(), *path.replace("{", "").replace("}", "").replace(".", "-").strip("/").split("/")])


def _operation(method: str, path: str, about: Json) -> list[str]:
    said: str = about.get("description") or about.get("summary") or ""
    parts = [f"## {method} {path} {{ #{anchor(method, path)} }}", said]
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
