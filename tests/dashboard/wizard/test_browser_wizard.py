"""A policy made from an uploaded file in a real browser, step by step and back; every step accessible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serving import serving, sqlite_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("playwright")
from browsing import visiting


def _rows() -> str:
    lines = ["region,approved,loan_status,decided,score"]
    for region, score, good in (("north", 720, 9), ("south", 640, 6), ("abroad", 600, None)):
        for i in range(40):
            status = "" if good is None else "Fully Paid" if i % 10 < good else "Charged Off"
            lines.append(f"{region},{'no' if good is None else 'yes'},{status},2024-{1 + i % 12:02}-03,{score}")
    return "\n".join(lines) + "\n"


def test_a_policy_is_made_from_a_file(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "past.csv"
    file.write_text(_rows())
    with serving(sqlite_file(tmp_path)) as served, visiting(browser, served.url) as visit:
        page = visit.open("/new")
        visit.looks_right("from what")
        page.set_input_files("input[type=file]", file)
        page.click("text=Upload and continue")
        page.wait_for_url("**/new/columns*")
        # Another column has other values; back again the guesses are there.
        page.select_option("#outcome", "region")
        page.wait_for_selector("#outcome-means code:text('north')")
        # The bands wait for the outcome, and come by themselves.
        page.fill("[name='bands:score']", "2")
        page.wait_for_selector("#bands .calm:text('appear here after')")
        page.select_option("#outcome", "loan_status")
        page.wait_for_selector("#outcome-means code:text('Fully Paid')")
        page.wait_for_selector("#bands :text('makes 2 bands')")
        page.fill("[name=maturity]", "30")
        visit.looks_right("columns")
        page.click("text=Continue to the evidence")
        page.wait_for_url("**/new/beliefs*")
        assert page.locator("text=Selective labels.").count() == 1
        page.check("[value=curve]")
        page.wait_for_selector("tr:has(th .name:text-is('abroad')) strong:not(:text-is('50.0%'))")
        visit.looks_right("beliefs")
        page.click("text=Choose the objective")
        page.wait_for_url("**/new/objective*")
        page.check("[value=money]")
        page.fill("[name=gain]", "250")
        page.fill("[name=loss]", "1000")
        page.fill("[name=name]", "regional")
        page.wait_for_selector("#starting strong:text-is('80%')")
        page.wait_for_selector("#starting tbody tr")
        visit.looks_right("objective")
        page.click("text=Continue to the back-test")
        page.wait_for_selector("#backtest-title")
        visit.looks_right("what would have happened")
        page.go_back()
        page.wait_for_url("**/new/objective*")
        assert page.input_value("[name=gain]") == "250"
        page.go_forward()
        page.wait_for_selector("#backtest-title")
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("text=Activate now")
        page.wait_for_url("**/policies/regional?version=1")
        assert page.locator("text=/is (live|solved)/").count() == 1  # a slow solve has a page of its own
        assert page.locator("hgroup .mark:text-is('active')").count() == 1


def _loans() -> str:
    """Past loans: the higher the income, the more succeed; the lowest were rejected, and men and women are alike."""
    lines = ["income,purpose,sex,approved,repaid"]
    for i in range(120):
        income = 10_000 + 500 * ((7 * i) % 120)
        approved = income >= 25_000
        good = (13 * i) % 100 < 35 + income // 1_000
        purpose, sex = ("car", "home", "school")[i % 3], "fm"[(i // 3) % 2]
        lines.append(f"{income},{purpose},{sex},{'yes' if approved else 'no'},{int(good) if approved else ''}")
    return "\n".join(lines) + "\n"


def test_a_policy_by_features_is_made_from_a_file_and_shows_its_calibration(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "loans.csv"
    file.write_text(_loans())
    with serving(sqlite_file(tmp_path)) as served, visiting(browser, served.url) as visit:
        page = visit.open("/new")
        page.set_input_files("input[type=file]", file)
        page.click("text=Upload and continue")
        page.wait_for_url("**/new/columns*")
        page.click("nav.ways a:has-text('By features')")
        page.wait_for_url("**/new/features*")
        # A protected attribute is offered as monitored.
        uses = {name: page.input_value(f"[name='use:{name}']") for name in ("income", "purpose", "sex", "repaid")}
        assert uses == {"income": "number", "purpose": "category", "sex": "monitor", "repaid": ""}
        page.fill("[name='least:income']", "0")
        page.fill("[name='most:income']", "500000")
        page.fill("[name='unit:income']", "USD a year")
        visit.looks_right("features")
        page.focus("[name='unit:income']")
        page.keyboard.press("Enter")  # the form is sent from the keyboard
        page.wait_for_url("**/new/objective*")
        page.check("[value=money]")
        for name, value in (("gain", "300"), ("loss", "700"), ("money_currency", "$"), ("name", "by-features")):
            page.fill(f"[name={name}]", value)
        page.check("[name=future][value=discount]")
        page.fill("[name=discount]", "0.99")
        page.click("text=Continue to the summary")
        page.wait_for_selector("#learnt", timeout=60_000)
        assert page.locator("dd:has-text('income (USD a year), purpose')").count() == 1
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("text=Activate now")
        page.wait_for_url("**/policies/by-features?version=1", timeout=60_000)  # it may have to compile
        page.wait_for_selector("text=No decision has been made yet")
        visit.looks_right("the first day")
        with served.client() as client:
            people = [{"income": 20_000.0 + 900 * i, "purpose": ("car", "boat")[i % 2]} for i in range(60)]
            made = client.decide_batch("by-features", [{"features": one} for one in people])
            accepted = [one["id"] for one in made if one["decision"] == "accept"]
            client.outcomes({one: "failure" if i % 5 == 0 else "success" for i, one in enumerate(accepted)})
            report = client.report("by-features")
        page = visit.open("/policies/by-features")
        page.fill("[name='feature:income']", "90000")
        page.select_option("[name='feature:purpose']", "home")
        page.click("button:has-text('Decide')")
        page.wait_for_selector("h1:has-text('Accepted')")
        assert page.locator("tr:has(th:has-text('income')) td:text-is('90,000 USD a year')").count() == 1
        assert page.locator("text=There is as much evidence as from").count() == 1
        page.click("button:has-text('It succeeded')")
        page.wait_for_selector("text=The outcome is recorded")
        page = visit.open("/policies/by-features")
        assert f"({report['outcomes'] + 1} outcomes)" in page.locator(".summary").inner_text()
        assert page.locator("section svg.bar, td svg.bar").count() > 0
        assert page.locator("tr:has(th:has-text('purpose')) td:has-text('not declared')").count() == 1
        visit.looks_right("a policy by features")
