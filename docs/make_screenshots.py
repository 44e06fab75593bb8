"""Screenshots of every page of the dashboard, light and dark, for the documentation: ``make screenshots``.

It plays the demonstration's past into a new database, serves it, and opens each page in Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browsing import PHONE, chromium, visiting  # noqa: E402
from lenience.cli.demo_portfolio import FLOOR, Portfolio, simulate_past  # noqa: E402
from serving import serving, sqlite_file  # noqa: E402

PAGES = {
    "overview": "/",
    "policy": "/policies/cards",
    "rejections": "/policies/cards/rejections",
    "late-labels": "/policies/starter-loans",
    "features": "/policies/car-loans",
    "decisions": "/decisions",
    "what-if": "/what-if?policy=cards&segment=score%2040%E2%80%9350",
    "fairness": "/fairness?policy=cards&by=race (simulated)",
    "new-policy": "/new",
}
TALL = (1280, 1100)


def main(folder: Path) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        database = sqlite_file(Path(scratch))
        simulate_past(database, Portfolio(by_features=True, floor=FLOOR))
        with serving(database) as service, chromium() as browser:
            with service.client() as client:
                one = next(iter(client.decisions(policy="starter-loans", decision="reject")))
            pages = {**PAGES, "decision": f"/decisions/{one['id']}"}
            with visiting(browser, service.url, TALL) as visit:
                visit.open("/").wait_for_timeout(8000)  # what is still to come is computed when it is first asked for
            for dark in (False, True):
                with visiting(browser, service.url, TALL, dark) as visit:
                    for name, path in pages.items():
                        visit.open(path).wait_for_timeout(1500)
                        visit.page.screenshot(path=folder / f"{name}{'-dark' if dark else ''}.png")
            with visiting(browser, service.url, PHONE) as visit:
                for name in ("overview", "policy", "rejections", "fairness"):
                    visit.open(pages[name]).wait_for_timeout(1500)
                    visit.page.screenshot(path=folder / f"{name}-phone.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/figures/dashboard")
