"""A starter offer: what it is worth to offer a part of the full amount first, and which parts open a population."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.formatting import percent
from lenience.core.money import UNITS, Money
from lenience.core.offers import Offers
from lenience.dashboard.read_models.outlook import PATIENT, QUICK, SolveLimits
from lenience.dashboard.read_models.what_if_inputs import WhatIfQuestion
from lenience.objectives.discounted import Discounted
from lenience.segments.segments import Segment
from lenience.segments.small_starts import starter_offers
from lenience.solvers.offers.solve import offer_seconds, solve_offers

TOLERANCE = 1e-4  # of values, in units of the full amount
SEARCH_STEPS = 12  # solves that the search for the largest starter offer takes at most
SMALLEST = 0.02  # the smallest part of the full amount that the search tries


class StarterAnswer(msgspec.Struct, frozen=True):
    """The effect of a starter offer, in units of the full amount, before the first applicant.

    ``without`` and ``with_starter`` are values, None if they take too long to compute. ``starts`` says whether a first
    acceptance pays at the full amount, ``starts_small`` whether it does with the starter offer. ``largest`` is the
    largest part of the full amount at which it does (1 for the full amount, 0 for none), None if it is not known.
    """

    fraction: float
    without: Bounds | None = None
    with_starter: Bounds | None = None
    starts: bool = False
    starts_small: bool = False
    largest: float | None = None
    note: str = ""
    more: bool = False  # whether a slower solve gives an answer

    @property
    def chosen(self) -> bool:
        """Whether there is a starter offer."""
        return self.fraction < 1.0


def answer_starter(question: WhatIfQuestion, limits: SolveLimits = QUICK) -> StarterAnswer:
    """Return the effect of the starter offer of a question within the limits.

    >>> answer = answer_starter(WhatIfQuestion(break_even=80, applicants=1, rate=10, starter=10))
    >>> answer.starts, answer.starts_small, f"{answer.largest:.0%}", round(answer.with_starter.midpoint, 2)
    (False, True, '23%', 0.05)
    """
    fraction, volume = question.starter / 100, question.volume
    note = "As if outcomes arrived immediately." if question.weeks > 0 else ""
    menu = question.menu or Offers.menu((SMALLEST, 1.0), (question.cost, question.cost))
    seconds = offer_seconds(question.prior, menu, volume / (1 + volume), 1, TOLERANCE)
    if volume > limits.volume or seconds > limits.starter_seconds:
        if limits is PATIENT:
            return StarterAnswer(fraction, note="The effect of a starter offer would take too long to compute here.")
        return StarterAnswer(fraction, note="Computing the effect of a starter offer …", more=True)
    search = SEARCH_STEPS * seconds <= limits.starter_seconds
    return msgspec.structs.replace(_answer(question.cost, volume, question.prior, fraction, search), note=note)


@lru_cache(maxsize=512)
def _answer(cost: float, volume: float, prior: Belief, fraction: float, search: bool) -> StarterAnswer:
    discount = volume / (1 + volume)
    objective = Discounted(cost, discount)
    without = _before(objective.enclose(prior, TOLERANCE)[0], discount)
    starts = objective.starts(prior)
    largest = 1.0 if starts else None
    if not starts and search:
        cell = Segment("all", 1.0, objective, prior)
        largest = starter_offers([cell], min(max(fraction, SMALLEST), 0.99), SMALLEST)[0].largest
    if fraction >= 1.0:
        return StarterAnswer(1.0, without, without, starts, starts, largest)
    solution = solve_offers(prior, Offers.menu((fraction, 1.0), (cost, cost)), discount, 1, TOLERANCE)
    small = starts or fraction * (prior.mean - cost) + solution.label_value.lower > 0.0
    return StarterAnswer(fraction, without, _before(solution.value, discount), starts, small, largest)


def _before(value: Bounds, discount: float) -> Bounds:
    """Return a value before the first applicant, from that at the first applicant."""
    return Bounds(discount * value.lower, discount * value.upper)


def starter_summary(answer: StarterAnswer, money: Money = UNITS) -> str:
    """Describe the effect in a sentence or two.

    >>> answer = answer_starter(WhatIfQuestion(break_even=80, applicants=1, rate=10, starter=10))
    >>> print(starter_summary(answer, Money(5000, "$")))
    With a starter offer of 10% ($500), the policy starts, and is worth $239. Without it, it never starts.
    >>> print(starter_summary(answer_starter(WhatIfQuestion(break_even=80, applicants=1, rate=10)), Money(5000, "$")))
    Without a starter offer, the policy never starts. It starts with one of at most 23% ($1,171).
    """
    if answer.without is None or answer.with_starter is None:
        return answer.note
    largest, full = answer.largest, money.format(answer.without.midpoint)
    opens = ""
    if not answer.starts and largest is not None:
        opens = "No starter offer opens it."
        if largest > 0.0:
            opens = f"It starts with one of at most {percent(largest, 0)}{_size(largest, money)}."
    if not answer.chosen:
        if answer.starts:
            return f"Without a starter offer, the policy starts, and is worth {full}."
        return f"Without a starter offer, the policy never starts. {opens}".strip()
    offer = f"a starter offer of {percent(answer.fraction)}{_size(answer.fraction, money)}"
    if not answer.starts_small:
        return f"Even with {offer}, the policy never starts. {opens}".strip()
    value = money.format(answer.with_starter.midpoint)
    if not answer.starts:
        return f"With {offer}, the policy starts, and is worth {value}. Without it, it never starts."
    more = money.format(max(answer.with_starter.midpoint - answer.without.midpoint, 0.0))
    return f"With {offer}, the policy is worth {value}, which is {more} more than the {full} without it."


def _size(fraction: float, money: Money) -> str:
    return f" ({money.format(fraction)})" if money.known else ""
