"""A real browser for the tests: Debian's Chromium, driven by playwright; and a check that nothing goes wrong in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PHONE, DESK = (390, 844), (1280, 900)
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
OF_LOOKS = (
    "color-contrast",
    "target-size",
    "scrollable-region-focusable",
    "link-in-text-block",
)  # those of size and scheme


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, for the length of a block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A person's visit: a page, and everything in it that went wrong (console errors, failed requests)."""

    def __init__(self, browser: Browser, url: str, size: tuple[int, int] = DESK, dark: bool = False) -> None:
        self.url = url
        self.context: BrowserContext = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.trouble: list[str] = []
        self.allowed: set[int] = set()
        self.page.on("console", lambda message: self._console(message))
        self.page.on("pageerror", lambda error: self.trouble.append(f"script: {error}"))
        self.page.on("requestfailed", lambda request: self._failed(request))

    def open(self, path: str, status: int = 200) -> Page:
        """Open a page, which must answer with the status."""
        self.allowed = {status} if status >= 400 else set()
        response = self.page.goto(self.url + path)
        assert response is not None
        assert response.status == status, f"{path} answered {response.status}"
        return self.page

    def accessible(self, where: str, rules: tuple[str, ...] = RULES) -> None:
        """No violation of the accessibility rules that a program can check (axe-core, WCAG 2.2 AA)."""
        kind = "rule" if rules == OF_LOOKS else "tag"
        options = {"runOnly": {"type": kind, "values": rules}, "resultTypes": ["violations"]}  # what passes is not told
        found = Axe().run(self.page, options=options).response["violations"]
        told = [f"{one['id']}: {one['help']} ({[node['target'] for node in one['nodes']][:3]})" for one in found]
        assert not told, f"{where}: {told}"

    def fits(self, where: str) -> None:
        """The page is not wider than the window (tables scroll in their own frame)."""
        width = self.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert width[0] <= width[1], f"{where} is {width[0]} px wide in a window of {width[1]} px"
        left = self.page.evaluate("document.querySelector('main h1').getBoundingClientRect().left")
        assert left >= 8, f"{where} begins {left} px from the edge of a window of {width[1]} px"

    def looks_right(self, where: str) -> None:
        """The page fits and is accessible on a phone in the dark and on a desk in the light."""
        self._look(f"{where} (phone, dark)", PHONE, "dark", OF_LOOKS)
        self._look(f"{where} (desk, light)", DESK, "light", RULES)

    def close(self) -> None:
        """End the visit; nothing may have gone wrong."""
        self.context.close()
        assert self.trouble == []

    def _look(
        self, where: str, size: tuple[int, int], scheme: Literal["dark", "light"], rules: tuple[str, ...]
    ) -> None:
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.page.emulate_media(color_scheme=scheme)
        self.fits(where)
        self.accessible(where, rules)

    def _console(self, message: Any) -> None:
        expected = any(f"status of {status}" in message.text for status in self.allowed)
        if message.type in ("error", "warning") and not expected:
            self.trouble.append(f"console: {message.text}")

    def _failed(self, request: Any) -> None:
        # Leaving a page ends what it was still asking for.
        if "ERR_ABORTED" not in (request.failure or ""):
            self.trouble.append(f"request: {request.url} {request.failure}")


@contextmanager
def visiting(browser: Browser, url: str, size: tuple[int, int] = DESK, dark: bool = False) -> Iterator[Visit]:
    """A visit for the length of a block."""
    visit = Visit(browser, url, size, dark)
    yield visit
    visit.close()
