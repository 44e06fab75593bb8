"""Sessions and forms without a browser: what another site, an old cookie or a lesser key may not do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import msgspec
import pytest
from click.testing import CliRunner, Result

from lenience import ServiceError
from lenience.cli.rollout import rollout
from lenience.dashboard.session import PURPOSE, Session, new_session, read_session, sign_in
from lenience.dashboard.signed_cookie import read_cookie, write_cookie
from lenience.service.commands.keys import Keyring, create_key, revoke_key
from lenience.service.storage.store import Store
from serving import SPEC, Served, serving, sqlite_file

POSTS = [
    *("/audit", "/sign-out", "/policies/cards/state", "/policies/cards/rollout", "/policies/cards/decide"),
    *(f"/decisions/{'0' * 36}/{kind}" for kind in ("outcome", "review")),
]


@pytest.fixture(scope="module")
def without_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with one policy, for all tests that make no key."""
    with serving(sqlite_file(tmp_path_factory.mktemp("session"))) as made:
        with made.client() as client:
            client.create_policy(SPEC)
            client.activate("cards")
        yield made


@pytest.fixture
def visitor(without_keys: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=without_keys.url, follow_redirects=False) as http:
        yield http


def _token(text: str) -> str:
    found = re.search(r'X-CSRF-Token": "([0-9a-f]+)"', text)
    assert found is not None
    return found.group(1)


def test_every_form_needs_the_token_of_its_own_session(visitor: httpx.Client) -> None:
    page = visitor.get("/policies/cards")
    assert page.status_code == 200
    token = _token(page.text)
    for path in POSTS:
        for given in ({}, {"token": "0" * 64}):
            answer = visitor.post(path, data={"state": "retired", "version": "1", "segment": "old", **given})
            assert answer.status_code == 403, path
            assert "The form belongs to another session" in answer.text
    made = visitor.post("/policies/cards/decide", data={"segment": "old", "token": token})
    assert made.status_code == 303
    assert made.headers["location"].startswith("/decisions/")
    other = httpx.get(f"{visitor.base_url}/policies/cards")
    assert _token(other.text) != token
    assert visitor.post("/audit", data={"token": _token(other.text)}).status_code == 403


def test_the_forms_of_a_rollout_and_of_a_review(without_keys: Served, visitor: httpx.Client) -> None:
    with without_keys.client() as client:
        client.create_policy({**SPEC, "name": "cases", "referral": {"near_minimum": 0.4}})
        client.activate("cases")
        client.create_policy({**SPEC, "name": "cases"})
        made = [client.decide("cases", "young", reference=f"person {i}")["id"] for i in range(2)]
        token = _token(visitor.get("/reviews").text)
        form = {"token": token, "version": "2"}
        assert visitor.post("/policies/cases/rollout", data={**form, "percent": "much"}).status_code == 400
        assert visitor.post("/policies/cases/rollout", data={**form, "percent": "25 %"}).status_code == 303
        assert client.policy("cases")["versions"][1]["percent"] == 25
        assert "Rollout" in visitor.get("/policies/cases").text
        assert visitor.post("/policies/cases/rollout", data={**form, "percent_now": "0"}).status_code == 303
        comparison = client.rollout("cases")
        assert comparison is None
        command = CliRunner()

        def run(*options: str) -> Result:
            return command.invoke(rollout, ["cases", "--url", without_keys.url, *options])

        assert run("--percent", "40").exit_code == 0
        shown = client.rollout("cases")
        assert shown is not None
        assert (json.loads(run("--json").stdout)["percent"], shown["sentence"] in run().stdout) == (40, True)
        assert run("--percent", "400").exception is not None
        assert run("--percent", "40", "--activate").exception is not None
        assert "rolled back" in run("--percent", "0").stdout
        assert run("--activate").exception is not None
        assert run("--percent", "0").exit_code == 1
        page = visitor.get("/reviews").text
        assert all(each in page for each in made)
        review = {"token": token, "decision": "accept", "by": "reviewer", "back": "/reviews?order=worth"}
        assert visitor.post(f"/decisions/{made[0]}/review", data=review).status_code == 400  # without a reason
        answer = visitor.post(f"/decisions/{made[0]}/review", data={**review, "reason": "fine"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/reviews?order=worth")
        away = {**review, "decision": "reject", "reason": "no", "back": "https://example.org/reviews?"}
        assert visitor.post(f"/decisions/{made[1]}/review", data=away).headers["location"].startswith("/decisions/")
        assert client.referrals("cases", order="worth")["waiting"] == 0
        report = client.reviews("cases")
        assert (report["decided"], report["disagreed"]) == (2, 1)
        with pytest.raises(ServiceError) as refused:
            client.review(made[0], "accept", "again")
        assert refused.value.code == "decision_not_referred"
        for status in ("referred", "lapsed"):
            assert visitor.get("/decisions", params={"status": status}).status_code == 200


def test_a_form_of_very_many_fields_is_rejected_before_it_is_parsed(visitor: httpx.Client) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    visitor.get("/")
    many = visitor.post("/audit", content=b"a&" * 10_000, headers=form)
    assert many.status_code == 400
    assert "10,001" in many.text
    assert visitor.post("/audit", content=b"a=" + b"a" * 600_000, headers=form).status_code == 413


def test_no_address_but_loopback_while_there_are_no_keys(visitor: httpx.Client) -> None:
    answer = visitor.get("/", headers={"Host": "evil.example:8000"})
    assert answer.status_code == 403
    assert "only at 127.0.0.1 or localhost" in answer.text


def test_pages_forbid_all_scripts_but_their_own(visitor: httpx.Client) -> None:
    answer = visitor.get("/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?![^>]*src=)|\son[a-z]+=|\sstyle=|<style", answer.text)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    asset = re.search(r"/static/dashboard\.css\?[0-9a-f]+", answer.text)
    assert asset is not None
    assert "immutable" in visitor.get(asset.group(0)).headers["cache-control"]
    assert visitor.get("/static/..%2fpage.py").status_code == 404


def test_bad_queries_are_a_page_in_one_sentence(visitor: httpx.Client) -> None:
    for path in ("/decisions?status=lost", "/policies/cards?version=0", "/policies/cards?segment=none", "/decisions/x"):
        answer = visitor.get(path, headers={"Accept": "text/html"})
        assert answer.status_code in (400, 404), path
        assert "<html" in answer.text
        assert "Traceback" not in answer.text
    assert visitor.get("/nowhere").headers["content-type"] == "application/problem+json"
    assert "<html" in visitor.get("/nowhere", headers={"Accept": "text/html"}).text


def test_sign_in_leads_nowhere_else(empty: Served) -> None:
    store = Store(empty.database)
    _, key = create_key(store, "analyst", ("read",), None, "test")
    store.close()
    with httpx.Client(base_url=empty.url) as http:
        for back, there in (("/decisions", "/decisions"), ("//evil.example", "/"), ("https://evil.example", "/")):
            answer = http.post("/sign-in", data={"key": key, "next": back})
            assert answer.status_code == 303
            assert answer.headers["location"] == there
        assert http.get("/").status_code == 200
        # A part of a page asked for after the session is over leads the whole page to the form.
        http.cookies.clear()
        answer = http.get("/overview/live", headers={"HX-Request": "true", "HX-Current-URL": f"{empty.url}/"})
        assert answer.headers["hx-redirect"] == "/sign-in?next=/"


def test_a_key_that_may_not_look_is_refused_and_links_are_those_one_may_follow(empty: Served) -> None:
    store = Store(empty.database)
    _, sender = create_key(store, "sender", ("decide", "outcome"), None, "test")
    _, reader = create_key(store, "reader", ("read",), None, "test")
    _, owner = create_key(store, "owner", ("admin",), None, "test")
    keyring = Keyring(store)
    keyring.refresh()
    earlier = sign_in(keyring, sender)
    store.close()
    html = {"Accept": "text/html"}
    with httpx.Client(base_url=empty.url) as http:
        refused = http.post("/sign-in", data={"key": sender, "next": "/"})
        assert refused.status_code == 403
        assert "needs the role read" in refused.text
        assert not http.cookies
        http.cookies.set("lenience_session", earlier.cookie or "")
        lost = http.get("/decisions")
        assert (lost.status_code, "Sign out" in lost.text) == (403, True)
        assert 'href="/decisions"' not in lost.text
        out = http.post("/sign-out", data={"token": earlier.token})
        assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
        http.cookies.set("lenience_session", earlier.cookie or "")  # someone has kept it
        assert http.get("/decisions").headers["location"].startswith("/sign-in")
        for key, may in ((reader, False), (owner, True)):
            http.cookies.clear()
            http.post("/sign-in", data={"key": key, "next": "/"})
            for path in ("/", "/fairness"):
                assert ('href="/new"' in http.get(path).text) is may
            assert "Sign out" in http.get("/nowhere", headers=html).text


def test_a_session_ends_with_its_key_and_cannot_be_forged(database: str) -> None:
    store = Store(database)
    store.upgrade()
    keyring = Keyring(store)
    keyring.refresh()
    local = new_session(keyring, "local")
    assert read_session(keyring, local.cookie) is not None
    identity, key = create_key(store, "analyst", ("read",), None, "test")
    keyring.refresh()
    assert read_session(keyring, local.cookie) is None  # once there are keys, being on this machine is not enough
    visitor = sign_in(keyring, key)
    assert visitor.cookie is not None
    assert (visitor.may("read"), visitor.may("admin")) == (True, False)
    again = read_session(keyring, visitor.cookie)
    assert again is not None
    assert again.token == visitor.token
    signed, signature = visitor.cookie.split(".")
    session = read_cookie([keyring.secrets.signing], PURPOSE, visitor.cookie, Session)
    assert session is not None
    longer = msgspec.structs.replace(session.content, end=session.content.end + 1)
    own = write_cookie(keyring.secrets.signing, PURPOSE, longer)
    assert read_session(keyring, own) is not None  # what only the service can sign
    for forged in (
        f"{own.split('.')[0]}.{signature}",
        write_cookie(b"another secret", PURPOSE, longer),
        write_cookie(keyring.secrets.signing, "sign-in", longer),  # signed for another purpose
        write_cookie(keyring.secrets.signing, PURPOSE, msgspec.structs.replace(longer, end=1)),
        f"{signed}.{signature}x",
        f"{signed}x.{signature}",
        f"{signed}.",
        ".",
        "nothing",
        "",
    ):
        assert read_session(keyring, forged) is None, forged
    revoke_key(store, identity, "test")
    keyring.refresh()
    assert read_session(keyring, visitor.cookie) is None
    store.close()
