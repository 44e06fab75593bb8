"""The guided form for a new policy, as a browser walks it: against a service that runs."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

import lenience
from lenience.belief import Belief
from lenience.service.specification import PolicySpecification
from lenience.web import uploads
from lenience.web.backtest import backtest
from lenience.web.past_file import Known
from tests.serving import Served, serving, sqlite_file

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


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', tag)
    return found[1] if found else ""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("new")
    kept = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)  # where the service keeps uploads
    try:
        with serving(sqlite_file(folder)) as running:
            yield running
    finally:
        os.environ.pop("TMPDIR")
        if kept is not None:
            os.environ["TMPDIR"] = kept


@pytest.fixture
def browser(served: Served) -> Iterator[Browser]:
    made = Browser(served.url)
    with made.http:
        yield made


def _alert(response: httpx.Response) -> str:
    found = re.search(r'<p class="trouble" role="alert"[^>]*>(.*?)</p>', response.text, re.S)
    return html.unescape(found[1]) if found else ""


def test_from_a_file_to_an_active_policy_with_the_beliefs_of_its_history(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    answers = browser.uploaded(CSV.encode())
    assert answers["segment"] == ["region"]
    assert answers["accepted"] == ["approved"]
    assert answers["outcome_means"] == ["yes:1", "no:0"]
    assert answers["time"] == ["decided"]
    beliefs = browser.http.get("/new/beliefs", params=answers)
    assert "1 row not used: an outcome on a rejection." in beliefs.text
    assert "1 row not used: no segment." in beliefs.text
    assert "The past chose whom to accept: 37 of 43 (86%)" in beliefs.text
    assert "1 of 3 segments has no outcome at all" in beliefs.text
    shown = browser.http.get("/new/objective", params={**browser.answers(beliefs), "model": "independent"})
    answers = {**browser.answers(shown), **OBJECTIVE}
    panel = browser.http.get("/new/starting", params=answers).text
    assert "2 start" in panel and "1 never" in panel and "never starts" in panel
    check = browser.http.get("/new/check", params=answers)
    answers = browser.answers(check)
    past = browser.http.get("/new/past", params=answers).text
    assert "5 + 1"[0:1] in past and "whom the past rejected have no outcome" in past
    made = browser.post("/new/create", **answers, state="active")
    assert made.status_code == 303 and made.headers["location"] == "/policies/loans?version=1"

    file = tmp_path / "past.csv"
    file.write_text(CSV)
    history = lenience.fit_history(file, "region", "approved", "repaid", "decided")
    with served.client() as client:
        policy = client.policy("loans")
    assert policy["state"] == "active"
    told = {one["segment"]: Belief(**one["belief"]) for one in policy["segments"]}
    assert told == history.beliefs()
    # The file is used up: the form cannot be sent twice.
    again = browser.post("/new/create", **answers, state="active")
    assert again.status_code == 404 and "not kept any more" in again.text
