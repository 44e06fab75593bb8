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
        page.wait_for_selector("tr:has(th .name:text-is('abroad')) strong:not(:text-is('50%'))")
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
        assert page.locator("text=is live").count() == 1
        assert page.locator("hgroup .mark:text-is('active')").count() == 1
