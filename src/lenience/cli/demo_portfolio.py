"""Simulate a lender for the demo: policies on real success rates, three months of history, and new applicants.

The true success rates come from the Federal Reserve's score tables (:func:`lenience.data.load_fico`): four groups by
ten score bands. The policies decide by score and amount, and only monitor the groups. All attributes of applicants are
simulated. Loans to firms, whose amounts and prices differ, and loans for cars, which are decided by features, have
made-up rates. The history is played through the service's own engine with a simulated clock, so the log is a real one
and ``lenience audit`` accepts it. After that, applicants arrive over HTTP, and their labels some time later.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

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

CARDS, LOANS, BUSINESS, CARS = "cards", "starter-loans", "business-loans", "car-loans"
DAYS, STEPS_A_DAY = 90, 4
DAY = 86_400 * 1_000_000  # microseconds
A_DAY = {CARDS: 34.0, LOANS: 1.2, BUSINESS: 2.5, CARS: 4.0}  # applicants
LABEL_DAYS = {CARDS: 9.0, LOANS: 20.0, BUSINESS: 12.0, CARS: 10.0}
PAST = 600  # earlier decisions that the first beliefs are based on: only scores above 60 were accepted
LIVE_A_SECOND, LIVE_LABEL_SECONDS = 2.0, 25.0
AMOUNTS: dict[str, list[float]] = {
    "amount": [600, 2_400, 6_000, 2_400, 6_000, 15_000],
    "cost": [0.72, 0.72, 0.72, 0.82, 0.82, 0.86],
}
AMOUNT_SHARES = [3, 4, 2, 3, 2, 1]
FIRMS = {"returning customers": (0.9, 0.4, 24.0), "new customers": (0.79, 0.4, 6.0), "sole traders": (0.7, 0.2, 2.0)}
STARTERS = {"new to credit": (20, 40, 0.3), "thin file": (40, 60, 0.45), "established": (60, 100, 0.25)}
LOAN, LOAN_COST = 1_500.0, 0.7
CAR_LOAN, CAR_COST = 8_000.0, 0.75  # a success earns $2,000 and a failure loses $6,000
CAR_COLUMNS: list[dict[str, Any]] = [
    {"name": "income", "minimum": 0, "maximum": 500_000, "unit": "USD a year"},
    {"name": "debt", "minimum": 0, "maximum": 100, "unit": "% of income"},
    {"name": "years in job", "minimum": 0, "maximum": 60},
    {"name": "purpose", "type": "category", "values": ["new car", "used car", "repair"]},
]
LATER_INCOME = 0.5  # the incomes of applicants for cars fall to this in the last month of the history
CARD_AMOUNTS: dict[str, list[float]] = {"amount": [300, 600, 1_200], "cost": [0.7, 0.7, 0.74]}
CARD_SHARES = [5, 3, 2]
FLOOR = 0.03  # of card applicants who are accepted at random where the policy has stopped
UNKNOWN_RACE = 0.2  # share of applicants who do not say


class Applicant(NamedTuple):
    """A simulated applicant: the request to the service, and the true success rate, which nobody sees."""

    request: dict[str, Any]
    truth: float


class Portfolio:
    """The policies of the demo, and applicants with their true success rates.

    The policies decide by score and amount. Race comes from the tables. Sex and age band are made up: sex follows
    nothing, and young applicants are more frequent among low scores.

    Parameters
    ----------
    seed
        The seed of all random numbers.
    by_features
        Whether there is also a policy that decides by features, for loans for cars.
    floor
        The share of card applicants who are accepted at random where the policy has stopped.
    """

    def __init__(self, seed: int = 7, *, by_features: bool = False, floor: float = 0.0) -> None:
        self.by_features, self.floor = by_features, floor
        self.rates = {name: rate for name, rate in A_DAY.items() if by_features or name != CARS}
        self.chance = np.random.default_rng(seed)
        self.business_chance = np.random.default_rng(seed + 1)
        self.car_chance = np.random.default_rng(seed + 2)
        self.incomes = 1.0  # a factor of the incomes of applicants for cars
        self.cells = load_fico().cells(bands=10)
        self.bands = [f"score {10 * band}–{10 * band + 10}" for band in range(10)]
        self.shares = {
            CARDS: {name: sum(c.share for c in self._in_band(i)) for i, name in enumerate(self.bands)},
            LOANS: {name: share for name, (_, _, share) in STARTERS.items()},
            BUSINESS: {name: share for name, (_, share, _) in FIRMS.items()},
        }

    def specifications(self) -> list[tuple[dict[str, Any], str]]:
        """Return the specifications of the policies, each with the state to put it in."""
        labels, good = self._past()
        n, s = Curve([10.0 * band + 5 for band in range(10)]).priors(labels, good)
        flat = [{"name": name, "share": share} for name, share in self.shares[CARDS].items()]
        with_priors = [
            {**cell, "prior": {"n": float(n[i]) + labels[i], "s": float(s[i]) + good[i]}, "past_outcomes": labels[i]}
            for i, cell in enumerate(flat)
        ]
        # A card with a limit of $300 earns $90 if it is repaid and loses $210 if not, so its break-even is 70%. The
        # discount counts about the next two thousand applicants.
        future = {"offers": {**CARD_AMOUNTS, "share": CARD_SHARES, "currency": "$"}, "discount": 0.9995}
        cards = {
            "name": CARDS,
            "objective": {"type": "discounted", **future},
            "expire_after_days": 120,
            "constraints": {"exploration_floor": self.floor},
        }
        rates = {
            "offers": {"amount": [LOAN], "cost": [LOAN_COST], "currency": "$"},
            "arrivals": A_DAY[LOANS] * 365,
            "discount_rate": 0.4,
        }
        loans = {
            "name": LOANS,
            "objective": {"type": "delayed", **rates, "label_delay": LABEL_DAYS[LOANS] / 365},
            "segments": [{"name": name, "share": share} for name, share in self.shares[LOANS].items()],
            "description": "Outcomes come weeks later, so the number of open loans is limited",
        }
        fitted = {
            **cards,
            "segments": with_priors,
            "description": "Starts from a curve in the score, fitted to past outcomes",
        }
        unfitted = {**cards, "segments": flat, "description": "The same, but every segment starts without evidence"}
        business = {
            "name": BUSINESS,
            "objective": {
                "type": "discounted",
                "offers": {**AMOUNTS, "share": AMOUNT_SHARES, "currency": "$"},
                "arrivals": A_DAY[BUSINESS] * 365,
                "discount_rate": 1.0,
            },
            "segments": [
                {"name": name, "share": share, "prior": {"n": size, "s": size * min(truth + 0.02, 0.8)}}
                for name, (truth, share, size) in FIRMS.items()
            ],
            "constraints": {"exposure_cap_amount": 60_000},
            "description": "Amounts and prices differ, so every applicant brings an offer",
        }
        policies: list[tuple[dict[str, Any], str]] = [
            (fitted, "active"),
            (unfitted, "shadow"),
            (loans, "active"),
            (business, "active"),
        ]
        return [*policies, (self._cars(), "active")] if self.by_features else policies

    def _cars(self) -> dict[str, Any]:
        """Return the specification of the policy that decides by features."""
        return {
            "name": CARS,
            "objective": {
                "type": "discounted",
                "offers": {"amount": [CAR_LOAN], "cost": [CAR_COST], "currency": "$"},
                "arrivals": A_DAY[CARS] * 365,
                "discount_rate": 0.5,
            },
            "model": {
                "type": "logistic",
                "columns": CAR_COLUMNS,
                "reference": [self._car().request["features"] for _ in range(150)],
            },
            "description": "Each applicant is decided by its own features",
        }

    def applicants(self, policy: str, count: int) -> list[Applicant]:
        """Draw applicants of a policy."""
        draw = {CARDS: self._card, LOANS: self._loan, BUSINESS: self._firm, CARS: self._car}[policy]
        return [draw() for _ in range(count)]

    def chance_of(self, policy: str) -> np.random.Generator:
        """Return the random numbers of a policy. Those of the loans to firms leave the others as they are."""
        return {BUSINESS: self.business_chance, CARS: self.car_chance}.get(policy, self.chance)

    def outcome(self, policy: str, applicant: Applicant) -> Outcome:
        """Draw the outcome of an accepted applicant."""
        return "success" if self.chance_of(policy).random() < applicant.truth else "failure"

    def _card(self) -> Applicant:
        shares = np.array([cell.share for cell in self.cells])
        cell = self.cells[int(self.chance.choice(len(self.cells), p=shares / shares.sum()))]
        kind = int(self.chance.choice(len(CARD_SHARES), p=np.array(CARD_SHARES) / sum(CARD_SHARES)))
        offer = {"amount": CARD_AMOUNTS["amount"][kind], "cost": CARD_AMOUNTS["cost"][kind]}
        request = {"segment": self.bands[cell.band], "offer": offer, "monitored": self._monitored(cell)}
        return Applicant(request, cell.p)

    def _loan(self) -> Applicant:
        names = list(STARTERS)
        weights = np.array([STARTERS[name][2] for name in names])
        low, high, _ = STARTERS[names[segment := int(self.chance.choice(len(names), p=weights))]]
        several = [cell for cell in self.cells if low <= 10 * cell.band < high]
        shares = np.array([cell.share for cell in several])
        cell = several[int(self.chance.choice(len(several), p=shares / shares.sum()))]
        return Applicant({"segment": names[segment], "monitored": self._monitored(cell)}, cell.p)

    def _firm(self) -> Applicant:
        names, chance = list(FIRMS), self.business_chance
        weights = np.array([share for _, share, _ in FIRMS.values()])
        segment = names[int(chance.choice(len(names), p=weights / weights.sum()))]
        kind = int(chance.choice(len(AMOUNT_SHARES), p=np.array(AMOUNT_SHARES) / sum(AMOUNT_SHARES)))
        size, price = chance.uniform(0.8, 1.25), chance.uniform(-0.02, 0.02)
        offer = {"amount": round(AMOUNTS["amount"][kind] * size), "cost": round(AMOUNTS["cost"][kind] + price, 3)}
        return Applicant({"segment": segment, "offer": offer}, FIRMS[segment][0])

    def _car(self) -> Applicant:
        chance = self.car_chance
        income = round(float(chance.lognormal(10.7, 0.45)) * self.incomes, -2)
        debt, years = round(float(chance.uniform(0, 60)), 1), round(float(chance.exponential(5.0)), 1)
        purpose = str(chance.choice(["new car", "used car", "repair"], p=[0.3, 0.5, 0.2]))
        odds = 1.1 + 1.3 * math.log(income / 45_000) - 0.03 * (debt - 30) + 0.08 * (min(years, 12.0) - 5)
        odds -= 0.6 if purpose == "repair" else 0.0
        features = {"income": income, "debt": debt, "years in job": min(years, 60.0), "purpose": purpose}
        return Applicant({"features": features}, 1.0 / (1.0 + math.exp(-odds)))

    def _monitored(self, cell: Cell) -> dict[str, str]:
        """Draw attributes that are monitored and never decide: race as in the tables, the others made up."""
        attributes = {"race (simulated)": cell.group} if self.chance.random() > UNKNOWN_RACE else {}
        attributes["sex (simulated)"] = "female" if self.chance.random() < 0.5 else "male"
        young = self.chance.random() < 0.6 - 0.05 * cell.band
        attributes["age (simulated)"] = "18–34" if young else "35 and over"
        return attributes

    def _in_band(self, band: int) -> list[Cell]:
        return [cell for cell in self.cells if cell.band == band]

    def _past(self) -> tuple[list[float], list[float]]:
        """Draw labels and successes by band from the time before, when only high scores were accepted."""
        shares = np.array([cell.share for cell in self.cells])
        came = self.chance.multinomial(PAST, shares / shares.sum())
        labels, good = [0.0] * 10, [0.0] * 10
        for cell, count in zip(self.cells, came, strict=True):
            if cell.band >= 6:
                labels[cell.band] += float(count)
                good[cell.band] += float(self.chance.binomial(count, cell.p))
        return labels, good


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
            portfolio.incomes = LATER_INCOME if time > end - days * DAY // 3 else 1.0
            for policy, rate in portfolio.rates.items():
                chance = portfolio.chance_of(policy)
                drawn = portfolio.applicants(policy, int(chance.poisson(times * rate / STEPS_A_DAY)))
                if drawn:
                    requests = [msgspec.convert(applicant.request, DecisionRequest) for applicant in drawn]
                    answer = msgspec.json.decode(writer.call(Decide(sent_by, policy, requests, False)).body)
                    for applicant, decision in zip(drawn, answer["decisions"], strict=True):
                        # Drawn for everyone, so that later applicants do not depend on whom the floor accepts.
                        due = time + chance.exponential(LABEL_DAYS[policy]) * DAY
                        outcome = portfolio.outcome(policy, applicant)
                        if decision["decision"] == "accept":
                            labels.add(due, decision["id"], outcome)
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
        rates = self.portfolio.rates
        shares = np.array(list(rates.values()))
        policy = list(rates)[int(chance.choice(len(rates), p=shares / shares.sum()))]
        applicant = self.portfolio.applicants(policy, 1)[0]
        answer = self.client.decide_batch(policy, [applicant.request])[0]
        if answer["decision"] == "accept":
            due = self.clock() + chance.exponential(LIVE_LABEL_SECONDS)
            self._labels.add(due, answer["id"], self.portfolio.outcome(policy, applicant))
        for decision, outcome in self._labels.until(self.clock()):
            self.client.outcome(decision, outcome)
