"""The guided way to a policy as a person goes it: pages, forms, and a small file of past decisions."""

from __future__ import annotations

import html
import re
from typing import Any

import httpx

HEADING = "region,approved,repaid,decided\n"


ROWS = [
    *[("north", "yes", "1", f"2024-01-{day:02}") for day in range(1, 25)],
    *[("north", "yes", "0", f"2024-02-{day:02}") for day in range(1, 4)],
    *[("south", "yes", "10"[day % 2], f"2024-03-{day:02}") for day in range(1, 11)],
    *[("south", "no", "", f"2024-04-{day:02}") for day in range(1, 6)],
    ("east", "no", "", "2024-05-01"),
    ("east", "no", "1", "2024-05-02"),  # bad: an outcome on a rejection
    ("", "yes", "1", "2024-05-03"),  # bad: no segment
]


CSV = HEADING + "".join(",".join(row) + "\n" for row in ROWS)


OBJECTIVE = {"known": "rate", "cost": "80", "future": "discount", "discount": "0.99", "name": "loans"}


class Browser:
    """Just enough of a browser: cookies, the token of the forms, hidden fields and the choices made."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=30)
        found = re.search(r'name="token" value="([^"]+)"', self.http.get("/new").text)
        assert found
        self.token = found[1]

    def upload(self, content: bytes, name: str = "past.csv") -> httpx.Response:
        return self.http.post("/new/file", data={"token": self.token}, files={"file": (name, content)})

    def uploaded(self, content: bytes) -> dict[str, Any]:
        """The answers after an upload: those of the form that the columns' step shows."""
        sent = self.upload(content)
        assert sent.status_code == 303, sent.text
        return self.answers(self.http.get(sent.headers["location"]))

    def post(self, path: str, **data: Any) -> httpx.Response:
        return self.http.post(path, data={"token": self.token, **data})

    @staticmethod
    def answers(shown: httpx.Response) -> dict[str, Any]:
        """What the page's form would send as it stands."""
        assert shown.status_code == 200, shown.text
        found: dict[str, Any] = {}

        def add(name: str, value: str) -> None:
            found.setdefault(name, []).append(html.unescape(value))

        for tag in re.findall(r"<input[^>]*>", shown.text):
            kind, name, value = (_attribute(tag, key) for key in ("type", "name", "value"))
            if name and name != "token" and (kind not in ("checkbox", "radio") or "checked" in tag):
                add(name, value)
        for name, inside in re.findall(r'<select name="([^"]+)"(.*?)</select>', shown.text, re.S):
            chosen = re.search(r"<option[^>]*\bselected\b[^>]*>", inside)
            add(name, _attribute(chosen[0], "value") if chosen else "")
        return found


def alert(response: httpx.Response) -> str:
    """What the page says is wrong."""
    found = re.search(r'<p class="trouble" role="alert"[^>]*>(.*?)</p>', response.text, re.S)
    return html.unescape(found[1]) if found else ""


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', tag)
    return found[1] if found else ""
