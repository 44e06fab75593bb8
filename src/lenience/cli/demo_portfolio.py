"""Simulate a lender for the demo: policies on real success rates, three months of history, and new applicants.

The true success rates come from the Federal Reserve's score tables (:func:`lenience.data.load_fico`): four groups by
five score bands. Loans to firms, whose amounts and prices differ, have made-up rates. The history is played through the
service's own engine with a simulated clock, so the log is a real one and ``lenience audit`` accepts it. After that,
applicants arrive over HTTP, and their labels some time later.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from lenience.client.client import Client, ServiceError
from lenience.data.fico import Cell, load_fico
from lenience.models.curve import Curve
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.lifecycle import ChangeState, CreateVersion, solve_version
from lenience.service.commands.outcomes import OutcomeItem, RecordOutcomes
from lenience.service.domain.clock import now
from lenience.service.domain.events import Outcome
from lenience.service.domain.problems import Problem
from lenience.service.domain.receipts import Sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.store import Store
from lenience.service.storage.writer import Writer

CARDS, LOANS, BUSINESS = "cards", "starter-loans", "business-loans"
DAYS, STEPS_A_DAY = 90, 4
DAY = 86_400 * 1_000_000  # microseconds
CARDS_A_DAY, LOANS_A_DAY, BUSINESS_A_DAY = 34.0, 1.2, 2.5
LABEL_DAYS = {CARDS: 9.0, LOANS: 20.0, BUSINESS: 12.0}
PAST = 600  # earlier decisions that the first beliefs are based on: only scores above 60 were accepted
LIVE_A_SECOND, LIVE_LABEL_SECONDS = 2.0, 25.0
AMOUNTS: dict[str, list[float]] = {
    "amount": [600, 2_400, 6_000, 2_400, 6_000, 15_000],
    "cost": [0.72, 0.72, 0.72, 0.82, 0.82, 0.86],
}
AMOUNT_SHARES = [3, 4, 2, 3, 2, 1]
FIRMS = {"returning customers": (0.9, 0.4, 24.0), "new customers": (0.79, 0.4, 6.0), "sole traders": (0.7, 0.2, 2.0)}
BANDS = {"new to credit": (20, 40, 0.3), "thin file": (40, 60, 0.45), "established": (60, 100, 0.25)}


class Portfolio:
    """The policies of the demo, and the true success rates of their segments."""

    def __init__(self, seed: int = 7) -> None:
        self.chance = np.random.default_rng(seed)
        self.business_chance = np.random.default_rng(seed + 1)
        self.cells = load_fico().cells(bands=5)
        self.truths = {CARDS: {cell.name: cell.p for cell in self.cells}, LOANS: self._loan_truths()}
        self.truths[BUSINESS] = {name: truth for name, (truth, _, _) in FIRMS.items()}
        self.shares = {
            CARDS: {cell.name: cell.share for cell in self.cells},
            LOANS: {name: share for name, (_, _, share) in BANDS.items()},
            BUSINESS: {name: share for name, (_, share, _) in FIRMS.items()},
        }

    def specifications(self) -> list[tuple[dict[str, Any], str]]:
        """Return the specifications of the policies, each with the state to put it in."""
        labels, good = self._past()
        n, s = Curve([cell.score for cell in self.cells], [cell.group for cell in self.cells]).priors(labels, good)
        flat = [{"name": cell.name, "group": cell.group, "share": cell.share} for cell in self.cells]
        with_priors = [
            {**cell, "prior": {"n": float(n[i]) + labels[i], "s": float(s[i]) + good[i]}} for i, cell in enumerate(flat)
        ]
        # A card that is repaid earns $90 and one that is not loses $210, so the break-even is 70%. The discount counts
        # about the next two thousand applicants.
        future = {"offers": {"amount": [300], "cost": [0.7], "currency": "$"}, "discount": 0.9995}
        cards = {"name": CARDS, "objective": {"type": "discounted", **future}, "expire_after_days": 120}
        rates = {"cost": 0.7, "arrivals": LOANS_A_DAY * 365, "discount_rate": 0.4}
        loans = {
            "name": LOANS,
            "objective": {"type": "delayed", **rates, "label_delay": LABEL_DAYS[LOANS] / 365},
            "segments": [{"name": name, "share": share} for name, share in self.shares[LOANS].items()],
            "description": "Labels come weeks later, so the number of pending loans is limited",
        }
        fitted = {
            **cards,
            "segments": with_priors,
            "description": "Beliefs from a curve in the score, fitted to the past",
        }
        unfitted = {**cards, "segments": flat, "description": "The same, but every segment starts without evidence"}
        business = {
            "name": BUSINESS,
            "objective": {
                "type": "discounted",
                "offers": {**AMOUNTS, "share": AMOUNT_SHARES, "currency": "$"},
                "arrivals": BUSINESS_A_DAY * 365,
                "discount_rate": 1.0,
            },
            "segments": [
                {"name": name, "share": share, "prior": {"n": size, "s": size * min(truth + 0.02, 0.8)}}
                for name, (truth, share, size) in FIRMS.items()
            ],
            "constraints": {"exposure_cap_amount": 60_000},
            "description": "Amounts and prices differ, so every applicant brings an offer",
        }
        return [(fitted, "active"), (unfitted, "shadow"), (loans, "active"), (business, "active")]

    def requests(self, policy: str, count: int) -> list[dict[str, Any]]:
        """Draw the requests of ``count`` applicants: their segments, and their offers where amounts differ."""
        segments = self.applicants(policy, count)
        if policy != BUSINESS:
            return [{"segment": segment} for segment in segments]
        weights = np.array(AMOUNT_SHARES) / sum(AMOUNT_SHARES)
        requests = []
        for segment in segments:
            kind = int(self.business_chance.choice(len(weights), p=weights))
            size, price = self.business_chance.uniform(0.8, 1.25), self.business_chance.uniform(-0.02, 0.02)
            offer = {"amount": round(AMOUNTS["amount"][kind] * size), "cost": round(AMOUNTS["cost"][kind] + price, 3)}
            requests.append({"segment": segment, "offer": offer})
        return requests

    def chance_of(self, policy: str) -> np.random.Generator:
        """Return the random numbers of a policy. Those of the loans to firms leave the others as they are."""
        return self.business_chance if policy == BUSINESS else self.chance

    def applicants(self, policy: str, count: int) -> list[str]:
        """Draw the segments of ``count`` applicants."""
        shares = self.shares[policy]
        weights = np.array(list(shares.values()))
        names = self.chance_of(policy).choice(list(shares), size=count, p=weights / weights.sum())
        return [str(name) for name in names]

    def outcome(self, policy: str, segment: str) -> Outcome:
        """Draw the outcome of an accepted applicant."""
        return "success" if self.chance_of(policy).random() < self.truths[policy][segment] else "failure"

    def _past(self) -> tuple[list[float], list[float]]:
        """Draw labels and successes by cell from the time before, when only high scores were accepted."""
        shares = np.array([cell.share for cell in self.cells])
        came = self.chance.multinomial(PAST, shares / shares.sum())
        labels = [int(count) if cell.score >= 60 else 0 for cell, count in zip(self.cells, came, strict=True)]
        good = [int(self.chance.binomial(count, cell.p)) for cell, count in zip(self.cells, labels, strict=True)]
        return [float(count) for count in labels], [float(count) for count in good]

    def _loan_truths(self) -> dict[str, float]:
        def within(cell: Cell, low: float, high: float) -> bool:
            return low <= cell.score < high

        return {
            name: float(
                np.average(
                    [cell.p for cell in self.cells if within(cell, low, high)],
                    weights=[cell.share for cell in self.cells if within(cell, low, high)],
                )
            )
            for name, (low, high, _) in BANDS.items()
        }


class LabelQueue:
    """Labels that have not arrived yet, in the order in which they are due."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, str, Outcome]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, due: float, decision: str, outcome: Outcome) -> None:
        """Add a label."""
        heapq.heappush(self._due, (due, next(self._order), decision, outcome))

    def until(self, time: float) -> list[tuple[str, Outcome]]:
        """Remove and return the labels that are due."""
        labels = []
        while self._due and self._due[0][0] <= time:
            _, _, decision, outcome = heapq.heappop(self._due)
            labels.append((decision, outcome))
        return labels


def simulate_past(database: str, portfolio: Portfolio, days: int = DAYS, times: float = 1.0) -> LabelQueue:
    """Create the policies in an empty database, simulate days of applicants, and return the labels still to come.

    ``times`` multiplies the usual number of applicants.
    """
    end = now()
    time = end - days * DAY
    store = Store(database, serving=True)
    store.upgrade()
    writer = Writer(store, PolicyCache(), clock=lambda: time)
    labels = LabelQueue()
    sent_by = Sender("demonstration")
    try:
        for posted, state in portfolio.specifications():
            solved = solve_version(msgspec.convert(posted, PolicySpecification))
            writer.call(CreateVersion(sent_by, solved))
            writer.call(ChangeState(sent_by, posted["name"], state, None))  # type: ignore[arg-type]
        step = DAY // STEPS_A_DAY
        while time + step <= end:
            time += step
            for policy, rate in ((CARDS, CARDS_A_DAY), (LOANS, LOANS_A_DAY), (BUSINESS, BUSINESS_A_DAY)):
                chance = portfolio.chance_of(policy)
                drawn = portfolio.requests(policy, int(chance.poisson(times * rate / STEPS_A_DAY)))
                if drawn:
                    requests = [msgspec.convert(request, DecisionRequest) for request in drawn]
                    answer = msgspec.json.decode(writer.call(Decide(sent_by, policy, requests, False)).body)
                    for decision in answer["decisions"]:
                        if decision["decision"] == "accept":
                            due = time + chance.exponential(LABEL_DAYS[policy]) * DAY
                            labels.add(due, decision["id"], portfolio.outcome(policy, decision["segment"]))
            due_labels = labels.until(time)
            if due_labels:
                items = [OutcomeItem(id=identity, outcome=outcome) for identity, outcome in due_labels]
                writer.call(RecordOutcomes(sent_by, items))
    finally:
        writer.close()
        store.close()
    return labels


class ApplicantFeed(threading.Thread):
    """A thread that sends applicants to a running service, and their labels later."""

    def __init__(self, client: Client, portfolio: Portfolio, labels: LabelQueue, clock: Callable[[], float]) -> None:
        super().__init__(name="applicants", daemon=True)
        self.client, self.portfolio, self.clock = client, portfolio, clock
        self.stopping = threading.Event()
        self._labels = LabelQueue()
        # Labels that are pending at the end of the history arrive within the next minutes.
        for decision, outcome in labels.until(math.inf):
            self._labels.add(clock() + portfolio.chance.exponential(4 * LIVE_LABEL_SECONDS), decision, outcome)

    def run(self) -> None:
        """Send applicants and labels until stopped; after an error, wait and continue."""
        while not self.stopping.wait(1 / LIVE_A_SECOND):
            try:
                self.step()
            except (OSError, Problem, ServiceError, ValueError):
                self.stopping.wait(1.0)

    def step(self) -> None:
        """Send one applicant, and the labels that are due."""
        chance = self.portfolio.chance
        total = CARDS_A_DAY + LOANS_A_DAY + BUSINESS_A_DAY
        place = chance.random() * total
        policy = LOANS if place < LOANS_A_DAY else BUSINESS if place < LOANS_A_DAY + BUSINESS_A_DAY else CARDS
        answer = self.client.decide_batch(policy, self.portfolio.requests(policy, 1))[0]
        if answer["decision"] == "accept":
            due = self.clock() + chance.exponential(LIVE_LABEL_SECONDS)
            self._labels.add(due, answer["id"], self.portfolio.outcome(policy, answer["segment"]))
        for decision, outcome in self._labels.until(self.clock()):
            self.client.outcome(decision, outcome)
