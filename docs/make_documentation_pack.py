"""The example of a documentation pack, for the documentation: ``make pack``.

A policy is fitted to the sample until 2025, served, and decides the applicants of 2026. Everything is
simulated; the decisions, outcomes, log and audit are those of the real service.
"""

from __future__ import annotations

import csv
import datetime as dt
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lenience.cli import main as run
from lenience.cli.policy_file import read_policy_file
from lenience.data import sample_loans
from lenience.data.sample import RISK
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.lifecycle import ChangeState, CreateVersion, solve_version
from lenience.service.commands.outcomes import Change, OutcomeItem, OverrideRequest, RecordOutcomes
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.receipts import Sender
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store
from lenience.service.storage.writer import Writer

ROOT = Path(__file__).parents[1]
START = dt.date(2026, 1, 1)
DAY = 86_400 * 1_000_000  # microseconds
MODELLER, APPROVER, SYSTEM = Sender("credit-modelling"), Sender("head-of-risk"), Sender("loan-system")
LOSS_GIVEN_DEFAULT = 0.6
MEAN_DAYS = 60.0  # until an outcome is known
OVERRIDE_EVERY = 90  # decisions
PURPOSE = (
    "Decides instalment loans of two years for private customers, by grade and by the terms of the loan. Owner: "
    "consumer "
    "lending. The pack is an example: the applicants are simulated."
)

Row = dict[str, Any]


def main(folder: Path) -> None:
    """Write the pack."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = sample_loans(3000, seed=1)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    with tempfile.TemporaryDirectory() as scratch:
        past, policy = Path(scratch) / "loans-until-2025.csv", Path(scratch) / "loans.json"
        write_past(past, [as_of_start(row) for row in rows if row["decided"] < START.isoformat()])
        command(
            *("fit", str(past), "--segment", "grade", "--accepted", "approved", "--outcome", "status"),
            *(
                "--time",
                "decided",
                "--outcome-time",
                "closed",
                "--maturing",
                "--pending",
                "Current",
                "--pending",
                "Late",
            ),
            *(
                "--amount",
                "amount",
                "--rate",
                "rate",
                "--term",
                "term",
                "--loss-given-default",
                str(LOSS_GIVEN_DEFAULT),
            ),
            *("--currency", "$", "--arrivals", "last-year", "--discount-rate", "0.1", "--output", str(policy)),
        )
        database = Path(scratch) / "decisions.db"
        serve_applicants(database, policy, [row for row in rows if row["decided"] >= START.isoformat()])
        page = folder / "documentation-pack.html"
        command("document", "loans", "--database", str(database), "--data", str(past), "--output", str(page))
        photograph(page, ROOT / "docs/figures/documentation-pack.png")


def photograph(page: Path, picture: Path) -> None:
    """Take a picture of the first screen of a page with Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=shutil.which("chromium"))
        opened = browser.new_page(viewport={"width": 1100, "height": 1150})
        opened.goto(page.absolute().as_uri())
        opened.screenshot(path=picture)
        browser.close()


def command(*words: str) -> None:
    """Run a command of lenience."""
    sys.argv = ["lenience", *words]
    try:
        run()
    except SystemExit as end:
        if end.code:
            raise


def as_of_start(row: Row) -> Row:
    """Return a loan as it was known on the first day of the service."""
    if row["closed"] and row["closed"] >= START.isoformat():
        return {**row, "status": "Current", "closed": ""}
    return row


def write_past(path: Path, rows: list[Row]) -> None:
    """Write rows as a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def serve_applicants(database: Path, policy: Path, rows: list[Row]) -> None:
    """Let the real service decide applicants on their own dates, and report outcomes when they become known."""
    chance = np.random.default_rng(7)
    time = microseconds(START) - DAY
    store = Store(str(database), serving=True)
    store.upgrade()
    writer = Writer(store, PolicyCache(), clock=lambda: time)
    due: list[tuple[float, str, Any]] = []
    try:
        specification = msgspec.structs.replace(read_policy_file(str(policy)), description=PURPOSE)
        writer.call(CreateVersion(MODELLER, solve_version(specification)))
        time += DAY // 2
        writer.call(
            ChangeState(APPROVER, "loans", "active", 1, reason="Approved by the credit committee, 15 December 2025")
        )
        for number, row in enumerate(rows, 1):
            time = max(time + 1, microseconds(dt.date.fromisoformat(row["decided"])) + number * 1_000_000)
            known = [item for item in due if item[0] <= time]
            due = [item for item in due if item[0] > time]
            if known:
                writer.call(RecordOutcomes(SYSTEM, [OutcomeItem(id=each[1], outcome=each[2]) for each in known]))
            offer = OfferRequest(
                amount=row["amount"], rate=row["rate"], term=2.0, loss_given_default=LOSS_GIVEN_DEFAULT
            )
            monitored = {"sex": row["sex"]} if row["sex"] else None
            request = DecisionRequest(row["grade"], row["application"], offer=offer, monitored=monitored)
            made = msgspec.json.decode(writer.call(Decide(SYSTEM, "loans", [request], True)).body)
            if made["decision"] != "accept":
                continue
            if number % OVERRIDE_EVERY == 0:
                reason = OverrideRequest("reject", "branch manager", "Income could not be confirmed")
                writer.call(Change(SYSTEM, made["id"], "override", override=reason))
                continue
            odds = 2.0 + 0.02 * (row["score"] - 660) + 0.4 * np.log(row["income"] / 40_000) + RISK[row["purpose"]]
            outcome = "success" if chance.random() < 1 / (1 + np.exp(-odds)) else "failure"
            due.append((time + chance.exponential(MEAN_DAYS) * DAY, made["id"], outcome))
    finally:
        writer.close()
        store.close()


def microseconds(day: dt.date) -> int:
    """Return the start of a day (UTC) in microseconds since 1970."""
    return int(dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()) * 1_000_000


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "examples")
