"""The guided form writes the policy file, and reads it back: upload, review, a version."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest

from lenience.service.domain.policy_file import decode_policy_file
from new_policies import CSV, OBJECTIVE, Browser, alert
from serving import Served


def send(clerk: Browser, content: bytes, name: str = "policy.json") -> Any:
    return clerk.http.post("/new/policy", data={"token": clerk.token}, files={"file": (name, content)})


@pytest.fixture
def file(clerk: Browser) -> bytes:
    """The policy file that the form writes for a small file of past decisions."""
    answers = {**clerk.uploaded(CSV.encode()), **OBJECTIVE, "name": "from-file", "segment_costs": "south, 60"}
    assert "/new/policy.json?" in clerk.http.get("/new/check", params=answers).text
    shown = clerk.http.get("/new/policy.json", params=answers)
    assert "attachment" in shown.headers["content-disposition"]
    return shown.content


def test_a_file_of_the_form_becomes_a_version(clerk: Browser, forms: Served, file: bytes) -> None:
    sent = send(clerk, file)
    assert sent.status_code == 303, sent.text
    review = clerk.http.get(sent.headers["location"])
    text = " ".join(html.unescape(review.text).split())
    assert all(words in text for words in ("from-file", "past.csv", "/new/first?file="))
    token = sent.headers["location"].partition("file=")[2]
    first = " ".join(html.unescape(clerk.http.get("/new/first", params={"file": token}).text).split())
    assert all(words in first for words in ("north", "60.0%", "Of 100 applicants at the start", "never starts"))
    answers = clerk.answers(review)
    made = clerk.post("/new/create", **answers, state="active")
    assert (made.status_code, made.headers["location"]) == (303, "/policies/from-file?version=1")
    with forms.client() as client:
        policy = client.policy("from-file")
    written = decode_policy_file(file, "policy.json")
    assert decode_policy_file(json.dumps(policy["specification"]).encode(), "policy.json") == written
    # The same file under another name is another policy; a bad name is shown at the review.
    again = send(clerk, file).headers["location"].partition("file=")[2]
    assert "Policy name" in clerk.post("/new/create", file=again, name="bad name!", state="draft").text
    made = clerk.post("/new/create", file=again, name="renamed", state="draft")
    assert made.headers["location"] == "/policies/renamed?version=1"


@pytest.mark.parametrize("content", [b"{}", b"region,repaid\nnorth,1\n", b'{"name": "x", "objective": 3}', b"\xff\xfe"])
def test_what_is_no_policy_is_rejected_at_the_start(clerk: Browser, content: bytes) -> None:
    shown = send(clerk, content, "loans.json")
    assert shown.status_code == 400
    assert "loans.json" in alert(shown)
    assert "lenience fit --output" in alert(shown)


def test_steps_of_other_sources_do_not_take_a_policy_file(clerk: Browser, file: bytes) -> None:
    token = send(clerk, file).headers["location"].partition("file=")[2]
    assert clerk.http.get("/new/objective", params={"file": token}).status_code == 404
    other = clerk.uploaded(CSV.encode())["file"]
    assert clerk.http.get("/new/review", params={"file": other}).status_code == 404
