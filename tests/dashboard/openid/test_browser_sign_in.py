"""Sign-in with OpenID Connect and four-eyes activation in a real browser, against an independent provider."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from openid_providers import free_port, independent_provider, settings_file
from serving import SPEC, Served, audited, sqlite_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("playwright")
from browsing import Visit, visiting


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with four eyes and one draft, created with a key."""
    from lenience.service.commands.keys import create_key
    from lenience.service.storage.store import Store

    folder, port = tmp_path_factory.mktemp("bank"), free_port()
    redirect = f"http://127.0.0.1:{port}/sign-in/oidc/callback"
    with independent_provider(redirect) as (issuer, client, secret):
        settings = settings_file(folder, issuer, port, client, secret)
        served = Served(sqlite_file(folder), "--four-eyes", "--oidc", settings, port=port)
        store = Store(served.database)
        _, key = create_key(store, "batch program", ("admin",), None, "test")
        store.close()
        with served.client(key) as api:
            api.create_policy(SPEC)
        yield served
        served.stop()


@contextmanager
def person(browser: Browser, bank: Served, subject: str, path: str) -> Iterator[Visit]:
    """Somebody who opens a page and signs in at the provider on the way."""
    with visiting(browser, bank.url) as visit:
        page = visit.page
        page.goto(bank.url + path)
        authorize(visit, subject)
        page.wait_for_url(bank.url + path)
        yield visit


def authorize(visit: Visit, subject: str) -> None:
    """Go from the sign-in page to the provider and back."""
    page = visit.page
    page.route(re.compile("^https://"), lambda route: route.fulfill(body=""))  # styles of the provider's pages
    page.click("text=Sign in with Example Bank")
    page.fill("input[name=sub]", subject)
    page.click("button:has-text('Authorize')")


def test_a_person_signs_in_and_out(browser: Browser, bank: Served) -> None:
    with person(browser, bank, "1003", "/decisions?status=failure") as visit:
        page = visit.page
        assert page.locator(".who").inner_text() == "Chi Dao (chi@bank.example)"
        assert page.locator("a[href='/new']").count() == 0
        cookie = next(one for one in visit.context.cookies() if one["name"] == "lenience_session")
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.click("button:has-text('Sign out')")
        page.wait_for_url(re.compile("/oauth2/end_session"))  # the session at the provider ends as well
        page.click("form [type=submit]")
        page.wait_for_url(re.compile(f"{bank.url}/sign-in"))
        visit.looks_right("sign in")
        visit.open("/decisions")
        assert page.url == f"{bank.url}/sign-in?next=/decisions"


def test_a_person_without_a_role_is_told(browser: Browser, bank: Served) -> None:
    with visiting(browser, bank.url) as visit:
        page = visit.open("/sign-in")
        visit.allowed = {403}
        authorize(visit, "1004")
        page.wait_for_selector("text=your account has no role in this service")
        visit.looks_right("no role")


def test_the_author_cannot_activate_a_version_and_a_colleague_can(browser: Browser, bank: Served) -> None:
    with person(browser, bank, "1001", "/what-if?policy=cards") as visit:
        page = visit.page
        page.fill("input[type=number][name=break_even]", "70")
        page.click("button:has-text('Save')")
        page.wait_for_url(re.compile("/policies/cards"))
        row = page.locator("tr", has_text="Version 2")
        assert "Anna Berg (anna@bank.example)" in row.inner_text()
        assert "You created this version. Somebody else must activate it" in row.inner_text()
        assert page.locator("button[aria-label='Activate version 2']").count() == 0
        assert page.locator("button[aria-label='Activate version 1']").count() == 1  # a program created it
        visit.looks_right("an own draft")
    with person(browser, bank, "1002", "/policies/cards?version=2") as visit:
        page = visit.page
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("button[aria-label='Activate version 2']")
        page.wait_for_selector("text=Version 2 of cards is now active")
        page.click("summary:has-text('Change history')")
        assert "by Bela Cruz (bela@bank.example)" in page.locator(".life li").first.inner_text()
    assert audited(bank.database)["findings"] == []
