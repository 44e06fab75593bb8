"""The dashboard in a real browser, as a person uses it. In none of these may anything go wrong in the console."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serving import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from serving import Postgres

pytest.importorskip("playwright")
from browsing import PHONE, Visit, visiting

PAGES = [
    "/",
    "/policies/cards",
    "/policies/starter-loans",
    "/policies/business-loans",
    "/decisions",
    "/policies/cards?version=2",
    "/what-if?policy=starter-loans",
    "/what-if?policy=business-loans&starter=10",
    "/fairness",
    "/fairness?policy=cards&by=age (simulated) × sex (simulated)",
    "/fairness?policy=business-loans",
    "/monitoring?policy=cards",
    "/policies/cards/rejections",
]


WEIGHT = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .reduce((sum, entry) => sum + entry.decodedBodySize, 0)"""


def test_every_page_opens_fits_is_accessible_and_weighs_less_than_a_megabyte(
    browser: Browser, portfolio: Served
) -> None:
    with visiting(browser, portfolio.url) as visit:
        for path in PAGES:
            page = visit.open(path)
            page.wait_for_load_state("networkidle")
            assert page.locator("h1").count() == 1
            assert 50_000 < page.evaluate(WEIGHT) < 1_000_000, path
            visit.looks_right(path)
        for width in (600, 1024):  # a small window, or a large one magnified
            page.set_viewport_size({"width": width, "height": 800})
            visit.fits(f"{path} at {width}")


MARK = ".scroll tbody .mark"


def test_the_longest_names_are_broken_and_widen_no_page(browser: Browser, portfolio: Served) -> None:
    name, segment = "p" * 64, "s" * 200
    with portfolio.client() as client:
        client.create_policy(
            {"name": name, "objective": {"type": "discounted", "cost": 0.8, "discount": 0.9}, "segments": [segment]}
        )
        client.activate(name)
        made = client.decide(name, segment=segment, reference="r" * 200)
    with visiting(browser, portfolio.url, PHONE) as visit:
        for path in (f"/decisions/{made['id']}", f"/what-if?policy={name}", f"/monitoring?policy={name}"):
            visit.open(path)
            visit.fits(path)
        for path in (f"/policies/{name}", "/decisions"):  # what matters is seen without scrolling
            page = visit.open(path)
            page.wait_for_selector(MARK)
            # In one go, for the page asks for its parts anew while it is looked at.
            assert 0 < page.evaluate(f"document.querySelector('{MARK}').getBoundingClientRect().right") <= PHONE[0], (
                path
            )
    with portfolio.client() as client:
        client.retire(name)


def test_a_decision_and_its_outcome_are_recorded_and_seen(browser: Browser, portfolio: Served) -> None:
    with visiting(browser, portfolio.url) as visit:
        page = visit.open("/policies/cards")
        page.select_option("select[name=segment]", "score 80–90")
        page.fill("input[name=offer_gain]", "90")
        page.fill("input[name=offer_loss]", "210")
        page.fill("input[name=reference]", "application <b>17</b>")
        page.click("button:has-text('Decide')")
        page.wait_for_url(re.compile("/decisions/[0-9a-f-]{36}"))
        assert page.locator("h1").inner_text().startswith("Accepted")
        assert page.locator("text=application <b>17</b>").count() == 1
        own = page.url
        page.click("button:has-text('It succeeded')")
        page.wait_for_selector("text=The outcome is recorded")
        assert page.locator(".life li").count() == 2
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("button:has-text('Correct to failure')")
        page.wait_for_selector("text=The correction is recorded")
        assert page.locator(".life li").count() == 3
        visit.accessible("a decision")
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("button:has-text('Erase personal data')")
        page.wait_for_selector("text=were erased on request")
        visit.open("/decisions?status=failure&policy=cards")
        assert page.locator(f"a[href='{own.removeprefix(portfolio.url)}']").count() == 1
        ends = (
            page.locator(".filters")
            .locator("input, button")
            .evaluate_all(
                "elements => elements.slice(-2).map(element => Math.round(element.getBoundingClientRect().bottom))"
            )
        )
        assert ends[0] == ends[1]  # the button stands level with what it searches by


def test_an_offer_is_typed_decided_and_counted_in_money(browser: Browser, portfolio: Served) -> None:
    with visiting(browser, portfolio.url) as visit:
        page = visit.open("/policies/business-loans?segment=returning customers")
        assert page.locator(".summary").inner_text().startswith("Today: ")
        assert page.locator("svg.wide path.recent").count() > 0
        page.fill("input[name=offer_gain]", "1")
        visit.allowed = {400}
        page.click("button:has-text('Decide')")
        page.wait_for_selector("text=The loss of a failure is missing.")
        assert page.locator("input[name=offer_gain]").input_value() == "1"
        page.select_option("select[name=segment]", "returning customers")
        page.locator("summary:has-text('Or describe a loan')").focus()
        page.keyboard.press("Enter")  # it opens from the keyboard
        page.fill("input[name=offer_gain]", "")
        for name, value in (("amount", "100"), ("rate", "40"), ("term", "3"), ("loss_given_default", "50")):
            page.fill(f"input[name=offer_{name}]", value)
        visit.accessible("the form of an offer")
        page.click("button:has-text('Decide')")
        page.wait_for_selector("text=Value of the outcome")
        assert page.locator("h1").inner_text().startswith("Accepted")
        page.click("button:has-text('It succeeded')")
        page.wait_for_selector("text=Realised profit")
        visit.looks_right("a decision about an offer")
        page = visit.open("/what-if?policy=business-loans")
        slider = page.locator("input[type=range][aria-label^='Starter amount']")
        slider.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("text=Value with the starter offer")
        assert page.input_value("#starter") == "99"


def test_a_rejection_is_overridden_with_a_reason(browser: Browser, portfolio: Served) -> None:
    with visiting(browser, portfolio.url) as visit:
        page = visit.open("/policies/cards")
        page.select_option("select[name=segment]", "score 0–10")
        page.fill("input[name=offer_gain]", "90")
        page.fill("input[name=offer_loss]", "210")
        page.click("button:has-text('Decide')")
        page.wait_for_selector("text=Principal reasons")
        page.click("summary:has-text('Override this decision')")
        page.fill("input[name=by]", "head of credit")
        page.fill("textarea[name=reason]", "known to the branch")
        page.click("button:has-text('Accept instead')")
        page.wait_for_selector("text=The override is recorded")
        assert page.locator("h1").inner_text().startswith("Accepted")
        assert page.locator("text=“known to the branch”").count() == 1


def test_a_number_that_cannot_be_is_marked_and_nothing_follows_from_it(browser: Browser, portfolio: Served) -> None:
    with visiting(browser, portfolio.url) as visit:
        page = visit.open("/what-if?policy=starter-loans&segment=thin+file")
        for name, bad, words in (
            ("break_even", "101", "Must be a number from 0.1 to 99.9%."),
            ("weeks", "-1", "Must be a number from 0 to 1,000 weeks."),
            ("applicants", "1e12", "Must be a number from 0.01 to 1,000,000,000."),
        ):
            good = page.input_value(f"#{name}")
            page.fill(f"#{name}", bad)
            assert page.get_attribute(f"#{name}", "aria-invalid") == "true"
            assert page.inner_text(f"#{name}-wrong") == words
            assert page.locator("#answer[inert]").count() == 1
            assert page.locator("#save button").is_disabled()
            page.fill(f"#{name}", good)
            assert page.locator("#answer[inert], [aria-invalid]").count() == 0
            assert page.locator("#save button").is_enabled()


def test_sliders_are_moved_and_a_draft_is_saved(browser: Browser, portfolio: Served) -> None:
    with visiting(browser, portfolio.url) as visit:
        page = visit.open("/what-if?policy=starter-loans&segment=thin+file")
        before, weeks = page.inner_text(".summary"), page.input_value("#weeks")
        slider = page.locator(".slider:has(#applicants) [type=range]")
        slider.focus()
        for _ in range(30):
            page.keyboard.press("ArrowRight")
        typed = page.input_value("#applicants")
        assert float(typed) == pytest.approx(197.1 * 10**0.3, rel=0.02)
        assert slider.get_attribute("aria-valuetext") == typed
        page.wait_for_selector(f"input[form=save][name=applicants][value='{typed}']", state="attached")
        after = page.inner_text(".summary")
        assert after != before
        # Too many for an answer at once: what is shown first is replaced by the late labels' own.
        page.wait_for_selector(".result:not([hx-get]) .figure .limit-1", state="attached")
        page.fill("#break_even", "75")
        page.fill("#weeks", "0")
        page.wait_for_selector("input[form=save][name=weeks][value='0']", state="attached")
        assert "break-even 75%" in page.inner_html(".picture")
        assert page.locator("#live").inner_text() == page.inner_text(".summary")
        page.fill("#break_even", "70")  # a policy with offers keeps its break-even and its delay
        page.fill("#weeks", weeks)
        page.wait_for_selector(f"input[form=save][name=weeks][value='{weeks}']", state="attached")
        page.fill("#save [name=name]", "starter-twice")
        page.click("text=Save as draft")
        page.wait_for_selector("text=Saved version 1 of starter-twice as a draft")


def test_a_segment_is_chosen_from_the_table_by_keyboard(browser: Browser, portfolio: Served) -> None:
    with visiting(browser, portfolio.url) as visit:
        page = visit.open("/policies/cards")
        page.focus("a:has-text('score 40–50')")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("segment=score"))
        assert page.locator("figcaption strong").first.inner_text() == "score 40–50"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"


def test_pictures_move_as_outcomes_come(browser: Browser, portfolio: Served) -> None:
    with visiting(browser, portfolio.url) as visit, portfolio.client() as client:
        page = visit.open("/policies/cards?segment=score%2080%E2%80%9390")
        before = page.locator("tr.chosen td").nth(5).inner_text()
        made = client.decide_batch("cards", [{"segment": "score 80–90", "offer": {"amount": 300, "cost": 0.7}}] * 5)
        client.outcomes({one["id"]: "success" for one in made})
        page.wait_for_function(
            "before => document.querySelectorAll('tr.chosen td')[5].innerText !== before", arg=before
        )


def test_fairness_is_shown_by_monitored_attribute(browser: Browser, portfolio: Served) -> None:
    with portfolio.client() as client:
        made = [one["id"] for one in client.decisions(policy="cards")]
        sexes = [client.decision(identity)["monitored"].get("sex (simulated)") for identity in made[:12]]
    assert set(sexes) == {"female", "male"}
    with visiting(browser, portfolio.url) as visit:
        page = visit.open("/fairness?policy=cards")
        page.set_default_timeout(60_000)  # the measures of all groups are computed anew, beside other tests
        page.select_option("select[name=by]", "sex (simulated)")
        page.wait_for_url(re.compile("by=sex"))
        page.wait_for_selector("text=The policy decides without sex (simulated)")
        rows = page.locator("[aria-labelledby=by-group] tbody tr")
        assert sorted(rows.locator("th").all_inner_texts()) == ["female", "male"]
        applicants = [int(text.replace(",", "")) for text in rows.locator("td:nth-child(2)").all_inner_texts()]
        assert len(made) - 20 <= sum(applicants) <= len(made)  # other tests add decisions without attributes
        groups = page.locator("[aria-labelledby=by-group]")
        while "…" in groups.inner_text():  # the page's own rules forbid wait_for_function
            page.wait_for_timeout(100)
        assert page.locator("text=It is not a law of lending").count() == 1
        visit.looks_right("fairness by sex")
        page = visit.open(f"/decisions/{made[0]}")
        assert page.locator("text=The decision did not look at this").count() == 1


def test_deciding_by_a_protected_attribute_is_told_on_every_page(browser: Browser, empty: Served) -> None:
    from serving import SPEC

    with empty.client() as client:
        client.create_policy({**SPEC, "segments": ["sex=f", "sex=m"], "decide_by_protected": True})
        client.activate("cards")
    with visiting(browser, empty.url) as visit:
        for path in ("/", "/decisions", "/fairness", "/monitoring", "/what-if", "/new"):
            assert visit.open(path).locator("text=Decisions differ by sex").count() == 1, path


def test_versions_change_state_after_a_question(browser: Browser, empty: Served, tmp_path: Path) -> None:
    from serving import SPEC

    with empty.client() as client:
        client.create_policy(SPEC)
        client.activate("cards")
        client.create_policy({**SPEC, "objective": {**SPEC["objective"], "cost": 0.7}})
    with visiting(browser, empty.url) as visit:
        page = visit.open("/policies/cards")
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.click("button[aria-label='Activate version 2']")
        page.once("dialog", lambda dialog: dialog.accept())
        page.fill("[aria-label='Reason for the change of version 2']", "A lower break-even")
        page.click("button[aria-label='Activate version 2']")
        page.wait_for_selector("text=Version 2 of cards is now active")
        page.click("summary:has-text('Change history')")
        assert page.locator(".life li").first.inner_text().count("version 2 became active: A lower break-even") == 1
        with page.expect_download() as download:
            page.click("text=version 2 as HTML")
        assert download.value.suggested_filename == "cards-version-2.html"
        pack = tmp_path / "pack.html"
        download.value.save_as(pack)
        page.goto(pack.as_uri())  # it needs nothing of the service
        assert page.locator("h2[id^=chapter-]").count() == 8
        assert page.locator("text=A lower break-even").count() == 2
        visit.looks_right("the documentation pack")


def test_an_empty_service_says_where_to_begin(browser: Browser, empty: Served) -> None:
    with visiting(browser, empty.url) as visit:
        page = visit.open("/")
        assert page.locator("text=No policy yet").count() == 1
        visit.accessible("an empty overview")
        page = visit.open("/decisions")
        assert page.locator("text=No decision yet").count() == 1
        visit.open("/policies/none", status=404)
        assert page.locator("text=The policy 'none' does not exist").count() == 1
        visit.open("/nowhere", status=404)
        visit.accessible("an error")


def test_with_keys_one_signs_in_and_sees_what_the_role_allows(browser: Browser, empty: Served) -> None:
    from lenience.service.commands.keys import create_key
    from lenience.service.storage.store import Store
    from serving import SPEC

    with empty.client() as client:
        client.create_policy(SPEC)
        client.activate("cards")
    store = Store(empty.database)
    _, reader = create_key(store, "analyst", ("read",), None, "test")
    _, admin = create_key(store, "head of risk", ("admin",), None, "test")
    store.close()
    with visiting(browser, empty.url) as visit:
        page = visit.page
        page.goto(empty.url + "/policies/cards")
        # A service notices its first key within a second; a page that came before asks again after five.
        page.wait_for_url(re.compile("/sign-in"), timeout=15_000)
        visit.accessible("sign in")
        visit.allowed = {401}
        page.fill("input[name=key]", "lk_wrong_key")
        page.click("button:has-text('Sign in')")
        page.wait_for_selector("text=This key is invalid")
        page.fill("input[name=key]", reader)
        page.click("button:has-text('Sign in')")
        page.wait_for_url(re.compile("/policies/cards"))
        assert page.locator("text=Make a decision").count() == 0
        assert page.locator("button:has-text('Retire')").count() == 0
        cookie = next(one for one in visit.context.cookies() if one["name"] == "lenience_session")
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.click("button:has-text('Sign out')")
        page.wait_for_url(re.compile("/sign-in"))
        page.fill("input[name=key]", admin)
        page.click("button:has-text('Sign in')")
        page.wait_for_url(empty.url + "/")
        visit.open("/policies/cards")
        assert page.locator("text=Make a decision").count() == 1


def test_the_same_on_postgresql(browser: Browser, postgres: Postgres) -> None:
    from lenience.cli.demo_portfolio import Portfolio, simulate_past

    database = postgres.emptied()
    simulate_past(database, Portfolio(), days=1)
    with serving(database) as service, visiting(browser, service.url) as visit:
        for path in ("/decisions", "/fairness"):
            visit.open(path).wait_for_load_state("load")
        page = visit.open("/policies/cards")
        page.select_option("select[name=segment]", "score 80–90")
        page.fill("input[name=offer_gain]", "90")
        page.fill("input[name=offer_loss]", "210")
        page.click("button:has-text('Decide')")
        page.wait_for_url(re.compile("/decisions/[0-9a-f-]{36}"))
        page.click("button:has-text('It failed')")
        page.wait_for_selector("text=The outcome is recorded")
        visit.open("/")
        page.click("button:has-text('Run an audit now')")
        page.wait_for_selector("text=passed", timeout=30_000)


def test_trouble_is_told_when_the_service_is_gone(browser: Browser, empty: Served) -> None:
    visit = Visit(browser, empty.url)
    page = visit.open("/")
    empty.kill()
    page.wait_for_selector("#trouble:not([hidden])", timeout=15_000)
    visit.context.close()
