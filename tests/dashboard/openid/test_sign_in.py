"""Sign-in with OpenID Connect over HTTP: what people may do, and what attackers may not."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import select

from lenience.dashboard.session import read_session
from lenience.service.commands.keys import Keyring, create_key
from lenience.service.domain.events import StateChanged, VersionCreated, read
from lenience.service.storage import schema
from lenience.service.storage.store import Store
from openid_providers import LyingProvider, free_port, settings_file
from serving import SPEC, Served, audited, sqlite_file


@pytest.fixture(scope="module")
def there() -> Iterator[LyingProvider]:
    made = LyingProvider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def service(there: LyingProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with four eyes whose people come from the provider that a test controls."""
    folder, port = tmp_path_factory.mktemp("openid"), free_port()
    options = ("--four-eyes", "--oidc", settings_file(folder, there.issuer, port))
    made = Served(sqlite_file(folder), *options, port=port)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def key(service: Served) -> str:
    store = Store(service.database)
    _, made = create_key(store, "batch program", ("admin",), None, "test")
    store.close()
    return made


@pytest.fixture
def honest(there: LyingProvider) -> LyingProvider:
    there.honest()
    return there


def browser(service: Served) -> httpx.Client:
    return httpx.Client(base_url=service.url, follow_redirects=False)


def begun(http: httpx.Client, back: str = "/") -> str:
    """Follow the button to the provider."""
    answer = http.get("/sign-in/oidc", params={"next": back})
    assert answer.status_code == 303
    return answer.headers["location"]


@contextmanager
def signed_in(service: Served, there: LyingProvider, subject: str) -> Iterator[httpx.Client]:
    with browser(service) as http:
        assert http.get(there.code_for(begun(http), subject)).status_code == 200
        yield http


def token(http: httpx.Client, path: str = "/") -> str:
    found = re.search(r'X-CSRF-Token": "([0-9a-f]+)"', http.get(path).text)
    assert found is not None
    return found[1]


def set_state(http: httpx.Client, version: int, state: str) -> httpx.Response:
    form = {"token": token(http, "/policies/cards"), "version": str(version), "state": state}
    return http.post("/policies/cards/state", data=form)


def test_without_a_session_everything_is_closed_even_if_no_key_exists(service: Served, there: LyingProvider) -> None:
    with browser(service) as http:
        assert http.get("/decisions").headers["location"] == "/sign-in?next=/decisions"
        assert http.get("/v1/policies").status_code == 401
        assert "Sign in with Example Bank" in http.get("/sign-in").text


def test_two_people_and_a_key_make_four_eyes(service: Served, honest: LyingProvider, key: str) -> None:
    api = {"Authorization": f"Bearer {key}"}
    with service.client(key) as client:
        client.create_policy(SPEC)  # by the program
    with signed_in(service, honest, "1001") as anna, signed_in(service, honest, "1002") as bela:
        assert "Anna Berg (anna@bank.example)" in anna.get("/").text
        assert set_state(anna, 1, "active").status_code == 303  # what the key created
        draft = {"policy": "cards", "name": "cards", "break_even": "70", "weeks": "0"}
        assert anna.post("/what-if/draft", data={"token": token(anna), **draft}).status_code == 303
        while "Version 2" not in anna.get("/policies/cards").text:  # solved in the background
            time.sleep(0.1)
        own = set_state(anna, 2, "active")
        assert own.status_code == 409, service.logged()
        assert (
            "Version 2 was created by Anna Berg (anna@bank.example) and must be activated by somebody else" in own.text
        )
        assert "Somebody else must activate it" in anna.get("/policies/cards").text
        assert "Somebody else must activate it" not in bela.get("/policies/cards").text
        assert set_state(bela, 2, "active").status_code == 303
        assert "by Bela Cruz (bela@bank.example)" in anna.get("/policies/cards").text
    store = Store(service.database, reading=True)
    with store.read() as connection:
        events = [read(body) for body in connection.scalars(select(schema.event.c.body))]
    store.close()
    authors = {one.number: one.actor for one in events if isinstance(one, VersionCreated)}
    activators = {one.number: one.actor for one in events if isinstance(one, StateChanged) and one.state == "active"}
    assert authors[2] == activators[1] == f"{honest.issuer}#1001"
    assert activators[2] == f"{honest.issuer}#1002"
    assert httpx.get(f"{service.url}/v1/policies", headers=api).status_code == 200
    assert audited(service.database)["findings"] == []


def test_roles_come_from_groups(service: Served, honest: LyingProvider) -> None:
    with signed_in(service, honest, "1003") as reader:
        assert reader.get("/decisions").status_code == 200
        assert reader.get("/new").status_code == 403
        assert "Chi Dao (chi@bank.example) does not have the role" in reader.get("/new").text
    with browser(service) as http:
        refused = http.get(honest.code_for(begun(http), "1004"))
        assert refused.status_code == 403
        assert "Dan Eno (dan@bank.example), but your account has no role" in refused.text
        assert "lenience_session" not in http.cookies
    assert "marketing" not in service.logged()


def test_a_session_is_no_api_key_and_ends_at_sign_out(service: Served, honest: LyingProvider) -> None:
    honest.metadata = {"end_session_endpoint": f"{honest.issuer}/end"}
    with signed_in(service, honest, "1001") as http:
        assert http.get("/v1/policies").status_code == 401
        kept = dict(http.cookies)
        out = http.post("/sign-out", data={"token": token(http)})
        assert out.status_code == 200 or out.headers["location"] == "/sign-in"
        assert not http.cookies.get("lenience_session")
        http.cookies.update(kept)  # somebody has copied it
        assert http.get("/decisions").status_code == 303


def test_another_provider_or_none_ends_the_sessions_of_its_people(service: Served, honest: LyingProvider) -> None:
    import msgspec

    from lenience.dashboard.openid.settings import OpenIdSettings

    with signed_in(service, honest, "1001") as http:
        cookie = http.cookies["lenience_session"]
    store = Store(service.database)
    keyring = Keyring(store)
    keyring.refresh()
    settings = OpenIdSettings(issuer=honest.issuer, client_id="x", address=service.url, roles={"read": ["risk-admins"]})
    person = read_session(keyring, cookie, settings)
    assert person is not None
    assert person.roles == ("read",)  # roles are those of the settings of today
    assert read_session(keyring, cookie, None) is None
    assert read_session(keyring, cookie, msgspec.structs.replace(settings, issuer="https://other.example")) is None
    store.close()


def test_only_the_browser_that_began_can_finish(service: Served, honest: LyingProvider) -> None:
    """Login CSRF: an attacker sends a visitor to the callback with the attacker's own code."""
    with browser(service) as attacker, browser(service) as victim:
        address = honest.code_for(begun(attacker), "1002")
        assert victim.get(address).status_code == 400  # without an attempt of their own
        begun(victim)
        assert victim.get(address).status_code == 400  # with one
        assert not victim.cookies.get("lenience_session")
        forged = re.sub("state=[0-9a-f]+", f"state={'0' * 64}", address)
        assert attacker.get(forged).status_code == 400
        assert attacker.get(address.replace("state=", "other=")).status_code == 400


def test_a_callback_works_once(service: Served, honest: LyingProvider) -> None:
    with browser(service) as http:
        address = honest.code_for(begun(http))
        attempt = http.cookies["lenience_sign_in"]
        code = honest.codes[address.split("code=")[1].split("&")[0]]
        assert http.get(address).status_code == 200
        assert not http.cookies.get("lenience_sign_in")
        http.cookies.set("lenience_sign_in", attempt)
        assert http.get(address).status_code == 401  # the provider knows the code no more
        honest.codes["again"] = code  # a provider that does not check it
        assert http.get(re.sub("code=[^&]+", "code=again", address)).status_code == 401
    assert "this attempt has signed somebody in before" in service.logged()


def test_an_old_session_is_never_taken_over(service: Served, honest: LyingProvider) -> None:
    """Session fixation: whatever cookie was there before, sign-in makes a new one."""
    with signed_in(service, honest, "1003") as http:
        planted = http.cookies["lenience_session"]
        assert http.get(honest.code_for(begun(http), "1002")).status_code == 200
        assert http.cookies["lenience_session"] != planted
        assert "Bela Cruz" in http.get("/").text


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_sign_in_leads_to_pages_of_this_service_only(service: Served, honest: LyingProvider, back: str) -> None:
    with browser(service) as http:
        page = http.get(honest.code_for(begun(http, back))).text
    assert 'content="0; url=/"' in page
    assert "evil" not in page


def test_the_page_that_was_wanted_opens(service: Served, honest: LyingProvider) -> None:
    with browser(service) as http:
        page = http.get(honest.code_for(begun(http, "/decisions?status=failure&policy=cards")))
        assert 'content="0; url=/decisions?status=failure&amp;policy=cards"' in page.text
        cookie = next(one for one in page.headers.get_list("set-cookie") if one.startswith("lenience_session="))
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie


def test_other_sites_cannot_begin_a_sign_in(service: Served) -> None:
    with browser(service) as http:
        assert http.get("/sign-in/oidc", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert not http.cookies


def test_with_https_no_neighbour_can_plant_a_cookie(service: Served, honest: LyingProvider) -> None:
    with browser(service) as http:
        behind = {"X-Forwarded-Proto": "https"}
        cookie = http.get("/sign-in/oidc", headers=behind).headers["set-cookie"]
    assert cookie.startswith("__Host-lenience_sign_in=")
    assert "Secure" in cookie
    assert "Path=/;" in cookie
    assert "domain" not in cookie.lower()


def test_what_the_provider_refuses_is_a_page(service: Served, honest: LyingProvider) -> None:
    with browser(service) as http:
        state = urlsplit(honest.code_for(begun(http))).query.split("state=")[1]
        for answer in ("error=access_denied", "error=<b>", "code="):
            denied = http.get(f"/sign-in/oidc/callback?{answer}&state={state}")
            assert denied.status_code == 401 or denied.status_code == 400
            assert "<b>" not in denied.text
            begun(http)


def test_a_mixed_up_issuer_is_rejected(service: Served, honest: LyingProvider) -> None:
    with browser(service) as http:
        assert http.get(honest.code_for(begun(http), iss="https://evil.example")).status_code == 401
        assert http.get(honest.code_for(begun(http), iss=honest.issuer)).status_code == 200


def test_a_lying_token_is_a_page_and_a_line_of_the_log(service: Served, honest: LyingProvider) -> None:
    honest.bend = lambda claims: {**claims, "nonce": "stolen"}
    with browser(service) as http:
        refused = http.get(honest.code_for(begun(http)))
        assert refused.status_code == 401
        assert "could not be verified" in refused.text
        assert "nonce" not in refused.text
    assert "belongs to another sign-in" in service.logged()


def test_secrets_are_nowhere(service: Served, honest: LyingProvider) -> None:
    from openid_providers import SECRET

    with signed_in(service, honest, "1001") as http:
        issued = http.cookies["lenience_id_token"]
    content = b"".join(path.read_bytes() for path in Path(service.database).parent.glob("*.db*"))
    for secret in (SECRET, issued):
        assert secret.encode() not in content
        assert secret not in service.logged()
    command = Path(f"/proc/{service.process.pid}/cmdline").read_text()
    assert SECRET not in command


def test_a_provider_that_is_down_stops_neither_the_service_nor_keys(tmp_path: Path, there: LyingProvider) -> None:
    port, dead = free_port(), free_port()
    database = sqlite_file(tmp_path)
    served = Served(database, "--oidc", settings_file(tmp_path, f"http://127.0.0.1:{dead}", port), port=port)
    try:
        store = Store(database)
        _, key = create_key(store, "analyst", ("read",), None, "test")
        store.close()
        with browser(served) as http:
            down = http.get("/sign-in/oidc")
            assert (down.status_code, down.headers["retry-after"]) == (503, "30")
            assert "is not available now" in down.text
            assert http.post("/sign-in", data={"key": key}).status_code == 303
            assert http.get("/").status_code == 200
        assert "the OpenID provider cannot be used" in served.logged()
    finally:
        served.stop()


def test_a_service_without_openid_has_no_such_pages(forms: Served) -> None:
    with browser(forms) as http:
        assert http.get("/sign-in/oidc").status_code == 404
        assert http.get("/sign-in/oidc/callback", params={"code": "x", "state": "y"}).status_code == 404
        assert "/sign-in/oidc" not in http.get("/sign-in").text


def test_invalid_settings_stop_the_start(run: Any, tmp_path: Path) -> None:
    path = settings_file(tmp_path, "http://login.example.org", 1)
    code, _, told = run("serve", "--database", sqlite_file(tmp_path), "--oidc", path)
    assert code == 2
    assert "issuer" in told
    assert "Traceback" not in told
