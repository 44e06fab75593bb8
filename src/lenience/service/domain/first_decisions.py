"""What a policy does with its first applicants: who is accepted, what that earns in money, and who never starts.

``lenience check`` and the last step of the guided form show it, before anything is decided.
"""

from __future__ import annotations

import math

import msgspec

from lenience.core.formatting import even_percent
from lenience.core.money import Money
from lenience.core.offers import Offers
from lenience.segments.segments import Segment
from lenience.segments.starting import Start, starts
from lenience.service.domain.specification import PolicySpecification, SegmentProblem


class FirstSegment(msgspec.Struct, frozen=True):
    """What happens to the first applicants of a segment.

    Parameters
    ----------
    start
        Whether it starts, and why.
    share
        Its share of the applicants.
    profit
        The expected profit on an applicant now; None if the policy knows no money.
    loss
        What accepting everyone would lose per applicant, if the segment does not start; None if that is not known.
    """

    start: Start
    share: float
    profit: float | None = None
    loss: float | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.start.name

    @property
    def share_accepted(self) -> float:
        """The share of its applicants who are accepted now."""
        return float(self.start.starts) if self.start.offers is None else self.start.offers.share_accepted

    @property
    def now(self) -> str:
        """The decision about the next applicant, in words."""
        share = self.share_accepted
        return "accept" if share == 1.0 else f"accept {even_percent(share, 0)}" if share else "reject"

    @property
    def reason(self) -> str:
        """Why it starts or not, with what accepting everyone would lose."""
        if self.start.starts or self.loss is None or self.start.offers is None:
            return f"{self.start.reason}."
        lost = Money(1.0, self.start.offers.currency).format(self.loss)
        return f"{self.start.reason}. Accepting everyone would lose {lost} an applicant."


class FirstDecisions(msgspec.Struct, frozen=True):
    """What a policy does with its first applicants.

    Parameters
    ----------
    segments
        What happens in each segment.
    arrivals
        The applicants a year; None if they are not known.
    money
        How to show amounts.
    """

    segments: list[FirstSegment]
    arrivals: float | None
    money: Money

    @property
    def accepted(self) -> float:
        """The share of all applicants who are accepted now."""
        return math.fsum(one.share * one.share_accepted for one in self.segments)

    @property
    def profit(self) -> float | None:
        """The expected profit on an applicant now; None if the policy knows no money."""
        each = [(one.share, one.profit) for one in self.segments]
        return None if any(profit is None for _, profit in each) else math.fsum(a * (b or 0.0) for a, b in each)

    @property
    def profit_per_year(self) -> float | None:
        """The same for a year's applicants; None if their number or the money is not known."""
        return None if self.profit is None or self.arrivals is None else self.arrivals * self.profit

    def describe(self) -> list[str]:
        """Return what happens to 100 applicants, in sentences."""
        sentences = [f"Of 100 applicants at the start, about {100 * self.accepted:.0f} are accepted."]
        if self.profit is not None:
            text = f"The expected profit on these 100 is {self.money.format(100 * self.profit)}"
            if self.profit_per_year is not None:
                text += f"; on {self.arrivals:,.0f} applicants a year it is {self.money.format(self.profit_per_year)}"
            sentences.append(f"{text}. What the policy learns from them adds to it later.")
        return sentences


def first_decisions(specification: PolicySpecification) -> FirstDecisions:
    """Compute what a policy of segments does with its first applicants.

    Examples
    --------
    >>> from lenience.objectives.discounted import Discounted
    >>> first = first_decisions(PolicySpecification("loans", Discounted(0.4, 0.9), segments=["a", "b"]))
    >>> first.describe()
    ['Of 100 applicants at the start, about 100 are accepted.']
    """
    problems = specification.problems()
    # Each problem is that of its segment alone, so its share is all of it.
    rows = starts([Segment(one.name, 1.0, one.problem, one.prior) for one in problems])
    offers = specification.objective.offers
    return FirstDecisions(
        [FirstSegment(row, one.share, *_profit_and_loss(one, row)) for one, row in zip(problems, rows, strict=True)],
        specification.objective.arrivals,
        Money(1.0, "" if offers is None else offers.currency),
    )


def _profit_and_loss(one: SegmentProblem, row: Start) -> tuple[float | None, float | None]:
    """Return the expected profit on an applicant now, and what accepting everyone would lose.

    An offer of amount a and break-even c is accepted if a(p̂ − c) plus the value of its outcome is above 0. Its own
    profit is a(p̂ − c), which is below 0 where the policy accepts in order to learn.
    """
    offers: Offers | None = one.problem.offers
    if offers is None or row.offers is None or offers.menu_count < len(offers.amount):
        return None, None
    each = [
        (share, amount * (one.prior.mean - cost))
        for amount, cost, share in zip(offers.amount, offers.cost, offers.share, strict=True)
    ]
    profit = math.fsum(share * own for share, own in each if own + row.offers.label_value > 0)
    lost = -math.fsum(share * own for share, own in each)
    return profit, lost if lost > 0 else None
