"""Which offers a segment accepts today: the largest amount for each break-even, and the highest break-even by amount.

An offer with the amount at stake a and the break-even c is accepted if and only if a(p̂ − c) + I > 0, where p̂ is the
expected success rate and I is the value of one more outcome, both from the stored table. A cap in money also leaves out
the offers whose loss a c does not fit beside what is pending.

If all segments share a capacity, the price λ of what the offer uses is subtracted: λ for an acceptance, or λ a c if the
loss is limited.
"""

from __future__ import annotations

import math

import msgspec
from sqlalchemy import Connection, select

from lenience.core.formatting import percent
from lenience.core.money import Money
from lenience.core.offers import Offers
from lenience.service.domain.rule import CAP, Counts, SegmentRule, Verdict
from lenience.service.storage import schema

ROWS = 6  # break-evens of the table
RECENT = 60  # offers of the latest applicants that a figure shows


class LargestAmount(msgspec.Struct, frozen=True):
    """The largest amount that is accepted at a break-even: infinity for any amount, 0 for none."""

    cost: float
    amount: float
    expected: bool  # whether the policy expects offers with this break-even
    capped: bool  # whether the cap on losses leaves out larger amounts, and nothing else does

    @property
    def loss(self) -> float:
        """What the largest amount loses if it fails."""
        return self.amount * self.cost


class RecentOffer(msgspec.Struct, frozen=True):
    """The offer of a recent applicant."""

    amount: float
    cost: float
    accepted: bool


class AcceptedOffers(msgspec.Struct, frozen=True):
    """What a segment accepts at its present evidence.

    ``rate`` is the expected success rate, ``label`` the proved value of one more outcome in money, ``room`` the loss
    that the cap in money still allows (infinity without a cap), and ``cap_reached`` whether the number of pending
    outcomes has reached its cap.
    """

    offers: Offers
    rate: float
    label: float
    room: float
    cap_reached: bool
    pending: int
    price: float = 0.0  # of an acceptance
    loss_price: float = 0.0  # of one unit of loss

    @property
    def money(self) -> Money:
        """How to show amounts."""
        return self.offers.money

    @property
    def share(self) -> float:
        """The share of the expected applicants who bring an offer that is accepted, caps aside."""
        rows = zip(self.offers.amount, self.offers.cost, self.offers.menu_of, strict=True)
        return math.fsum(
            self.offers.share[menu] for menu in {menu for amount, cost, menu in rows if self.accepts(amount, cost)}
        )

    def accepts(self, amount: float, cost: float) -> bool:
        """Return whether an offer is accepted, caps aside."""
        return amount * (self.rate - cost) - self.price - self.loss_price * amount * cost + self.label > 0.0

    def largest(self, cost: float) -> float:
        """Return the largest amount that is accepted at a break-even, caps aside: infinity for any, 0 for none."""
        gap, worth = cost - self.rate + self.loss_price * cost, self.label - self.price
        if gap > 0.0:
            return max(worth / gap, 0.0)
        return math.inf if gap < 0.0 or worth > 0.0 else 0.0

    def highest(self, amount: float) -> float:
        """Return the break-even below which an amount is accepted and its loss fits the cap."""
        pays = (self.rate + (self.label - self.price) / amount) / (1.0 + self.loss_price)
        return min(max(pays, 0.0), self.room / amount, 1.0)

    def paying(self, amount: float) -> float:
        """Return the break-even below which an amount earns the price of its capacity, whatever its outcome teaches."""
        return max((self.rate - self.price / amount) / (1.0 + self.loss_price), 0.0)

    @property
    def rows(self) -> list[LargestAmount]:
        """The largest amount for a few break-evens: those that the policy expects, and the edge of what pays."""
        expected = sorted(set(self.offers.cost))
        if len(expected) > ROWS:
            last = len(expected) - 1
            expected = [expected[round(i * last / (ROWS - 1))] for i in range(ROWS)]
        higher = [(1.0 + 2.0 * expected[-1]) / 3.0, (2.0 + expected[-1]) / 3.0] if len(expected) < 3 else []
        lower = [expected[0] * 0.8] if len(expected) < 3 else []
        costs = sorted({*expected, *(round(cost, 2) for cost in [*lower, *higher] if round(cost, 2) < 1.0)})
        return [self._row(cost, cost in expected) for cost in costs if cost > 0.0]

    def _row(self, cost: float, expected: bool) -> LargestAmount:
        pays, fits = self.largest(cost), self.room / cost
        return LargestAmount(cost, min(pays, fits), expected, fits < pays)

    @property
    def usual_cost(self) -> float | None:
        """The most frequent break-even at or above the expected success rate, or None if all are below it."""
        shares: dict[float, float] = {}
        for cost, menu in zip(self.offers.cost, self.offers.menu_of, strict=True):
            if cost * (1.0 + self.loss_price) >= self.rate:
                shares[cost] = shares.get(cost, 0.0) + self.offers.share[menu]
        return min(shares, key=lambda cost: (-shares[cost], cost)) if shares else None

    @property
    def sentence(self) -> str:
        """What is accepted today, for a reader who knows no formula."""
        if self.cap_reached:
            return (
                f"Today: none, until outcomes arrive. {self.pending:,} outcomes are pending, which is the exposure cap."
            )
        if self.price:
            price = self.money.format(self.price)
            return (
                f"Today: offers whose expected profit, with {self.money.format(self.label)} for what the outcome "
                f"teaches, is above {price}. That is what one acceptance of the limited capacity is worth."
            )
        below = f"a break-even below {percent(self.rate / (1.0 + self.loss_price))}"
        usual = self.usual_cost
        if usual is None:
            text = f"Today: every offer that this policy expects. Any amount is accepted with {below}."
        elif (most := self.largest(usual)) > 0.0 and most >= min(self.offers.amount) * 1e-3:
            small = f"amounts below {self.money.format(most)} at a break-even of {percent(usual)}, to learn"
            text = f"Today: any amount with {below}; above that, {small}."
        else:
            text = f"Today: any amount with {below}; above that, none."
        if usual is not None and self.share == 0.0:
            text += " None of the offers that this policy expects qualifies."
        if self.room < max(amount * cost for amount, cost in zip(self.offers.amount, self.offers.cost, strict=True)):
            loss = self.money.format(self.room)
            text += f" Until outcomes arrive, the cap on losses accepts only offers that can lose at most {loss}."
        return text


def accepted_offers(rule: SegmentRule, counts: Counts, verdict: Verdict) -> AcceptedOffers | None:
    """Return what a segment accepts now, or None if all applicants have one break-even.

    >>> from lenience.service.domain.solved_tables import load, solve
    >>> from lenience.service.domain.specification import PolicySpecification
    >>> from lenience.objectives.discounted import Discounted
    >>> loans = Discounted(offers=Offers([500, 5000], [0.8, 0.8], currency="$"), discount=0.99)
    >>> problem = PolicySpecification("loans", loans).problems()[0]
    >>> rule, start = SegmentRule("all", 1.0, load(solve(problem)), "", None, 0.0), Counts()
    >>> print(accepted_offers(rule, start, rule.decide(start, 1.0)).sentence)
    Today: any amount with a break-even below 50%; above that, amounts below $760 at a break-even of 80%, to learn.
    """
    table, label = rule.table, verdict.label_value
    if table.offers is None or label is None:
        return None
    cap = rule.exposure_cap_amount
    in_money = rule.capacity is not None and rule.capacity.capacity.loss is not None
    return AcceptedOffers(
        offers=table.offers,
        rate=rule.basis(counts).rate,
        label=label.lower,
        room=math.inf if cap is None else max(cap - counts.at_risk, 0.0),
        cap_reached=verdict.rule == CAP,
        pending=counts.pending,
        price=0.0 if in_money else rule.price,
        loss_price=rule.price if in_money else 0.0,
    )


def recent_offers(connection: Connection, chain: int, most: int = RECENT) -> list[RecentOffer]:
    """Return the offers of the latest decisions of a segment that had one, newest first."""
    table = schema.decision
    columns = (table.c.amount, table.c.cost, table.c.accepted)
    query = select(*columns).where(table.c.chain_id == chain).order_by(table.c.id.desc()).limit(most)
    rows = connection.execute(query)
    return [RecentOffer(row.amount, row.cost, bool(row.accepted)) for row in rows if row.amount is not None]
