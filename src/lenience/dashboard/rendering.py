"""Render pages and parts of pages from templates, with headers that keep a browser from running other code."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Request, Response

from lenience.__about__ import __version__
from lenience.core import formatting as words
from lenience.core.formatting import amount, duration, even_percent, percent
from lenience.core.protected_attributes import describe_consent as words_for_consent
from lenience.dashboard.session import cookie_of, visitor_of

DIGITS = "0123456789"
HTML = "text/html"  # the framework adds the charset
NOTICE = "lenience_notice"
LONGEST_NOTICE = 1_800  # bytes of a message, twice as many characters in a cookie, which holds about 4,000
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
UNIT = "in units of gain + loss"  # a success earns 1 − c of a unit, a failure loses c
SCRIPTS = ("htmx-2.0.11.min.js", "dashboard.js")
STYLES = ("pico-2.1.1.min.css", "dashboard.css")


def page(request: Request[Any, Any, Any], template: str, status: int = 200, **values: Any) -> Response[bytes]:
    """Render a whole page."""
    visitor = visitor_of(request)
    notice = read_notice(request.cookies.get(NOTICE, "")) if "/" not in template else []
    everywhere = {
        "visitor": visitor,
        "path": request.url.path,
        "notice": notice,
        "protected": _protected(request) if visitor is not None else [],
        "refers": visitor is not None and request.app.state.service.refers,
    }
    text = environment().get_template(template).render(everywhere | values)
    response = Response(
        text.encode(), status_code=status, media_type=HTML, headers={"Content-Security-Policy": CONTENT_POLICY}
    )
    if visitor is not None and visitor.cookie is not None:
        response.cookies.append(cookie_of(visitor, request.url.scheme == "https"))
    if notice:
        response.delete_cookie(NOTICE)
    return response


def _protected(request: Request[Any, Any, Any]) -> list[tuple[str, str]]:
    """Return each policy that decides by protected attributes, and the warning about it."""
    deciding: dict[str, list[str]] = request.app.state.service.deciding_by_protected
    return [(policy, words_for_consent(attributes)) for policy, attributes in deciding.items()]


def part(request: Request[Any, Any, Any], template: str, **values: Any) -> Response[bytes]:
    """Render a part of a page, which htmx inserts."""
    return page(request, f"parts/{template}", **values)


def redirect(address: str, message: str = "", *warnings: str) -> Response[bytes]:
    """Redirect after a form was accepted. The next page shows the message and the warnings once."""
    response = Response(b"", status_code=303, headers={"Location": address})
    if message:
        text = "\n".join([message, " ".join(warnings)]).strip().encode()[:LONGEST_NOTICE]
        response.set_cookie(NOTICE, text.hex(), path="/", max_age=20, samesite="strict", httponly=True)
    return response


def read_notice(text: str) -> list[str]:
    """Read the message and the warning that the previous page left for this one.

    >>> read_notice("Made.\\nIt never starts.".encode().hex()), read_notice("no such thing")
    (['Made.', 'It never starts.'], [])
    """
    try:
        raw = bytes.fromhex(text[: 2 * LONGEST_NOTICE])
    except ValueError:
        return []
    return raw.decode(errors="ignore").split("\n", 1) if raw else []


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the templates with their filters and constants."""
    templates = Environment(
        loader=PackageLoader("lenience.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        percent=percent,
        even_percent=even_percent,
        amount=amount,
        duration=duration,
        count=count,
        figures=words.count,
        signed=signed,
        moment=moment,
        ago=ago,
    )
    templates.globals.update(
        version=__version__,
        scripts=[address(name) for name in SCRIPTS],
        styles=[address(name) for name in STYLES],
        icon=address("icon.svg"),
        unit=UNIT,
        infinity=math.inf,
    )
    return templates


@lru_cache
def asset(name: str) -> bytes:
    """Return a static file of the dashboard."""
    return files("lenience.dashboard").joinpath("static", name).read_bytes()


@lru_cache
def address(name: str) -> str:
    """Return the address of a static file. It changes with the content, so browsers can cache it forever."""
    return f"/static/{name}?{sha256(asset(name)).hexdigest()[:12]}"


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key for names: ignore case, sort numbers by size, and bands from the lowest.

    >>> sorted(["1000-1099", "beta", "Alpha", "300-499", "5 east", "12 west"], key=natural)
    ['5 east', '12 west', '300-499', '1000-1099', 'Alpha', 'beta']
    >>> sorted(["score>=700", "score<600", "score 600..700"], key=natural)
    ['score<600', 'score 600..700', 'score>=700']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name.casefold().replace("<", "\0"))
    return [(0, int(part), "") if part[0] in DIGITS else (1, 0, part) for part in parts]


def count(number: float) -> str:
    """Format a whole number with separators.

    >>> count(1234567.0)
    '1,234,567'
    """
    return f"{number:,.0f}"


def signed(number: float, digits: int = 1) -> str:
    """Format a number with its sign, using a true minus.

    >>> signed(12.34), signed(-3), signed(0)
    ('+12.3', '−3.0', '0.0')
    """
    if not math.isfinite(number):
        return "–"
    text = f"{abs(number):,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return text
    return ("+" if number > 0 else "−") + text


def moment(time: str) -> str:
    """Format a time of the log (ISO 8601, UTC) to the second.

    >>> moment("2023-11-14T22:13:20.000000Z")
    '2023-11-14 22:13:20'
    """
    return time[:19].replace("T", " ")


def ago(seconds: float) -> str:
    """Format a duration in its largest unit.

    >>> ago(5), ago(130), ago(7200), ago(3 * 86400)
    ('5 s', '2 min', '2 h', '3 days')
    """
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
