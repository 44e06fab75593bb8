"""Decode JSON bodies strictly: a number given as text is invalid, and the error names every invalid entry.

The framework would accept "0.8" for 0.8, which is right in an address, where everything is text, and wrong in a body.
It would also read a body as JSON whatever its Content-Type. But a form, or a body without a type, is what a page of
another site can make a browser send without permission.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, get_args, get_origin

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from msgspec import UNSET

from lenience.core.errors import LONGEST, InputError
from lenience.service.domain import limits
from lenience.service.domain.problems import BadRequest, Unsupported
from lenience.service.http.large_bodies import process_body, stop_if_disconnected
from lenience.service.http.validation_text import explained

PLACE = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)  # the place at the end of a validator's message
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
JSON = "application/json"
LONG = 300  # digits of a whole number; longer ones are read as floats
MOST_LISTED = 20  # invalid entries that an error lists


class StrictRequest(Request[Any, Any, State]):
    """A request whose JSON body is decoded strictly into the type that its handler takes."""

    async def json(self) -> Any:
        """Return the body as the handler's type."""
        field = self.route_handler.parsed_data_field
        assert field is not None  # the handler takes a body
        kind = field.annotation
        return await process_body(self, await self.body(), lambda body: decoded(body, kind))


async def check_content_type(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Raise Unsupported if a body has another Content-Type than its endpoint reads, or is compressed."""
    headers = connection.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return
    wanted = str(handler.opt.get("body", JSON))
    given = headers.get("content-type", "")
    if given.split(";")[0].strip().lower() != wanted:
        reason = f"not {given[:80]!r}" if given else "but it is missing"
        detail = f"the Content-Type of the body must be {wanted}, {reason}"
        raise Unsupported(detail, field="Content-Type", value=given[:80], allowed=wanted)
    packed = headers.get("content-encoding", "identity")
    if packed.strip().lower() != "identity":
        detail = f"the body must not be compressed, but its Content-Encoding is {packed[:80]!r}"
        raise Unsupported(detail, field="Content-Encoding", value=packed[:80], allowed="identity")


class EmptyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request without parameters."""


async def require_empty_body(request: Request[Any, Any, State]) -> None:
    """Raise BadRequest if the body has content, because the sender would expect it to have an effect."""
    body = await request.body()
    if body.strip():
        await process_body(request, body, lambda content: decoded(content, EmptyBody | None))


def decoded(body: bytes, kind: Any) -> Any:
    """Decode a body as a type, or raise BadRequest with everything that is wrong in a list of entries.

    >>> from lenience.service.commands.outcomes import OutcomesRequest
    >>> decoded(b'{"outcomes": [{"id": "a", "outcome": "good"}, {"id": 1, "outcome": "failure"}]}', OutcomesRequest)
    Traceback (most recent call last):
        ...
    lenience.service.domain.problems.BadRequest: 2 entries of outcomes are invalid: outcomes[0].outcome ...
    """
    try:
        return _checked(body, kind)
    except msgspec.DecodeError as error:
        raise BadRequest(_no_json(body, error), code="invalid_json", field="body") from None
    except UnicodeDecodeError as error:
        detail = f"body must be in UTF-8 ({error.reason} at byte {error.start:,})"
        raise BadRequest(detail, code="invalid_json", field="body") from None
    except json.JSONDecodeError as error:  # the validator stopped before this place
        detail = f"body must be JSON ({error.msg} at character {error.pos:,})"
        raise BadRequest(detail, code="invalid_json", field="body") from None


def _checked(body: bytes, kind: Any) -> Any:
    """Decode a body as a type. Raise BadRequest if it is JSON of another form or repeats a field."""
    try:
        value = _decoder(kind).decode(body)
    except msgspec.ValidationError as error:
        raise _problem(_plain(body), kind, error) from None
    least = getattr(value, "least_fields", None)
    if least is None or body.count(b":") > least:  # with no more colons than fields, none is there twice
        _plain(body)
    return value


def _no_json(body: bytes, error: msgspec.DecodeError) -> str:
    """Explain why a body is not JSON, e.g. half a surrogate pair, which some parsers accept."""
    if SURROGATE.search(body):
        with suppress(ValueError):
            _plain(body)
            return r"body must be valid Unicode, but it has half a surrogate pair, such as \ud800 alone"
    return f"body must be JSON ({error})"


def _plain(body: bytes) -> Any:
    """Decode a body without types. Raise BadRequest if an object has a field twice.

    >>> _plain(b'{"cost": 0.8, "cost": 0.2}')
    Traceback (most recent call last):
        ...
    lenience.service.domain.problems.BadRequest: cost appears twice
    """
    return _reader.decode(body.decode())


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    stop_if_disconnected()
    unique = dict(fields)
    if len(unique) < len(fields):
        counts = Counter(name for name, _ in fields)  # linear: a body may have a hundred thousand fields
        repeated = next(name for name, count in counts.items() if count > 1)[:80]
        raise BadRequest(f"{repeated} appears twice", code="duplicate", field=repeated)
    return unique


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONG else float(digits)


_reader = json.JSONDecoder(object_pairs_hook=_once, parse_int=_whole, strict=False)


def join_sentences(wrong: Sequence[object]) -> str:
    """Join the errors, up to a limit, and say how many more there are.

    >>> join_sentences([f"line {i} is bad" for i in range(2, 24)]).endswith("; line 21 is bad; and 2 more like these")
    True
    """
    more = len(wrong) - MOST_LISTED
    return "; ".join(map(str, wrong[:MOST_LISTED])) + (f"; and {more:,} more like these" if more > 0 else "")


def explain(prefix: str, value: Any, kind: Any, error: msgspec.ValidationError) -> InputError:
    """Return the error for an invalid value, with its place, the value and what is allowed."""
    message, of_key, path = PLACE.fullmatch(str(error)).groups(default="")  # type: ignore[union-attr]
    place = (prefix + path).removeprefix(".")
    if isinstance(error.__cause__, InputError):  # raised by our own check at this place
        own = error.__cause__
        inside = {field: f"{place}.{field}" if place else field for field in own.fields}
        return own.with_fields(inside)
    field = place or "body"
    if of_key:
        return explained(f"a name in {field}", message)
    wrong = explained(field, message, _at(value, path))
    if wrong.code == "unknown_field" and not path and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return wrong.with_hint(f"The fields are {', '.join(kind.__struct_fields__)}.")
    return wrong


def _problem(value: Any, kind: Any, error: msgspec.ValidationError) -> BadRequest:
    container = re.search(r" - at `\$\.(\w+)\[[^`]*`$", str(error))
    if container is None or not isinstance(kind, type):
        return BadRequest.of(explain("", value, kind, error))
    name = container[1]
    entry = _entry(next(field.type for field in msgspec.structs.fields(kind) if field.name == name))
    wrong: list[InputError] = []
    # A body of 4 MiB can have two million invalid entries. To explain them all would take minutes.
    for key, item in islice(_entries(value[name]), limits.BATCH):
        try:
            msgspec.convert(item, entry)
        except msgspec.ValidationError as error_inside:
            wrong.append(explain(f"{name}[{repr(key)[:LONGEST]}]", item, entry, error_inside))
    if not wrong:  # the invalid entry comes after those that were checked
        return BadRequest.of(explain("", value, kind, error))
    if len(wrong) == 1:
        return BadRequest.of(wrong[0])
    first = f" of the first {limits.BATCH:,}" if len(value[name]) > limits.BATCH else ""
    detail = f"{len(wrong):,}{first} entries of {name} are invalid: {join_sentences(wrong)}"
    return BadRequest(detail, code=wrong[0].code, field=wrong[0].field, allowed=wrong[0].allowed)


def _entry(kind: Any) -> Any:
    """Return the type of the entries of a list or object, through annotations and optionals."""
    if get_origin(kind) in (list, dict):
        return get_args(kind)[-1]
    inner = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
    return next((inner_entry for part in inner if (inner_entry := _entry(part)) is not None), None)


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _at(value: Any, path: str) -> Any:
    """Return the value at a place such as .segments[1].share, if it exists."""
    for name, index in re.findall(r"\.(\w+)|\[([^\]]*)\]", path):
        try:
            value = value[name] if name else value[int(index)]
        except (KeyError, IndexError, TypeError, ValueError):
            return UNSET
    return value


@lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
