"""Pages and parts of pages: templates filled in, with the headers that keep a browser from running anything else."""

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
from lenience.core.formatting import amount, duration, percent
from lenience.dashboard.session import cookie_of, visitor_of

DIGITS = "0123456789"
HTML = "text/html"  # the letters' encoding is added to every text
NOTICE = "lenience_notice"
MOST_TOLD = 1_800  # bytes of a message: a cookie holds twice as many characters and no more
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
UNIT = "in units of a success's gain plus a failure's loss"  # a success earns 1 − c of it, a failure loses c
SCRIPTS = ("htmx-2.0.11.min.js", "dashboard.js")
STYLES = ("pico-2.1.1.min.css", "dashboard.css")


def page(request: Request[Any, Any, Any], template: str, status: int = 200, **values: Any) -> Response[bytes]:
    """A whole page."""
    visitor = visitor_of(request)
    notice = read_notice(request.cookies.get(NOTICE, "")) if "/" not in template else []
    everywhere = {"visitor": visitor, "path": request.url.path, "notice": notice}
    text = environment().get_template(template).render(everywhere | values)
    response = Response(
        text.encode(), status_code=status, media_type=HTML, headers={"Content-Security-Policy": CONTENT_POLICY}
    )
    if visitor is not None and visitor.cookie is not None:
        response.cookies.append(cookie_of(visitor, request.url.scheme == "https"))
    if notice:
        response.delete_cookie(NOTICE)
    return response


def part(request: Request[Any, Any, Any], template: str, **values: Any) -> Response[bytes]:
    """A part of a page, which htmx puts in its place."""
    return page(request, f"parts/{template}", **values)


def redirect(address: str, message: str = "", *warnings: str) -> Response[bytes]:
    """On to another page, after a form was accepted; the message is shown there, once, and warnings as such."""
    response = Response(b"", status_code=303, headers={"Location": address})
    if message:
        text = "\n".join([message, " ".join(warnings)]).strip().encode()[:MOST_TOLD]
        response.set_cookie(NOTICE, text.hex(), path="/", max_age=20, samesite="strict", httponly=True)
    return response


def read_notice(text: str) -> list[str]:
    """The message that the page before left for this one, and its warning.

    >>> read_notice("Made.\\nIt never starts.".encode().hex()), read_notice("no such thing")
    (['Made.', 'It never starts.'], [])
    """
    try:
        raw = bytes.fromhex(text[: 2 * MOST_TOLD])
    except ValueError:
        return []
    return raw.decode(errors="ignore").split("\n", 1) if raw else []


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates, with the words and numbers they use."""
    made = Environment(
        loader=PackageLoader("lenience.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        percent=percent,
        amount=amount,
        duration=duration,
        count=count,
        figures=words.count,
        signed=signed,
        moment=moment,
        ago=ago,
    )
    made.globals.update(
        version=__version__,
        scripts=[address(name) for name in SCRIPTS],
        styles=[address(name) for name in STYLES],
        icon=address("icon.svg"),
        unit=UNIT,
    )
    return made


@lru_cache
def asset(name: str) -> bytes:
    """A file of the dashboard."""
    return files("lenience.dashboard").joinpath("static", name).read_bytes()


@lru_cache
def address(name: str) -> str:
    """A file's address, which changes with the file: a browser may keep it for good."""
    return f"/static/{name}?{sha256(asset(name)).hexdigest()[:12]}"


def natural(name: str) -> list[tuple[int, int, str]]:
    """What names are sorted by: whatever their case, numbers in them by their size, and bands from below.

    >>> sorted(["1000-1099", "beta", "Alpha", "300-499", "5 east", "12 west"], key=natural)
    ['5 east', '12 west', '300-499', '1000-1099', 'Alpha', 'beta']
    >>> sorted(["score>=700", "score<600", "score 600..700"], key=natural)
    ['score<600', 'score 600..700', 'score>=700']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name.casefold().replace("<", "\0"))
    return [(0, int(part), "") if part[0] in DIGITS else (1, 0, part) for part in parts]


def count(number: float) -> str:
    """A whole number with separators.

    >>> count(1234567.0)
    '1,234,567'
    """
    return f"{number:,.0f}"


def signed(number: float, digits: int = 1) -> str:
    """A number with its sign, a true minus.

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
    """A time of the log (ISO 8601, UTC) to the second.

    >>> moment("2023-11-14T22:13:20.000000Z")
    '2023-11-14 22:13:20'
    """
    return time[:19].replace("T", " ")


def ago(seconds: float) -> str:
    """How long ago, in the largest unit.

    >>> ago(5), ago(130), ago(7200), ago(3 * 86400)
    ('5 s', '2 min', '2 h', '3 days')
    """
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
