"""The inputs of the what-if page: seven numbers, each a slider and a field, and the problem they define.

They use the units of a risk department: percent, applicants per year, weeks. A segment of a policy gives their first
values. A note says what the segment does not define, such as the time in which its applicants arrive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import count, percent
from lenience.core.money import UNITS, Money
from lenience.core.offers import Offers
from lenience.core.validation import real
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.service.domain.specification import (
    Objective,
    PolicySpecification,
    SegmentProblem,
)

WEEKS = 52.0  # in a year
RATE = 10.0  # percent per year, assumed if a policy gives a discount factor and no yearly rates


class Slider(msgspec.Struct, frozen=True):
    """A number to drag or type. The typed number may exceed the range of the slider."""

    name: str
    label: str
    unit: str
    low: float
    high: float
    least: float
    most: float
    log: bool = False
    step: float = 1.0
    hint: str = ""

    def place(self, value: float) -> float:
        """Return the position of a value on the slider.

        >>> SLIDERS[1].place(100.0), SLIDERS[0].place(80.0)
        (2.0, 80.0)
        """
        inside = min(max(value, self.low), self.high)
        return math.log10(inside) if self.log else inside

    @property
    def allowed(self) -> str:
        """The range of numbers that may be typed, as text.

        >>> SLIDERS[0].allowed, SLIDERS[1].allowed
        ('from 0.1 to 99.9%', 'from 0.01 to 1,000,000,000')
        """
        unit = self.unit if self.unit in ("", "%") else f" {self.unit}"
        return f"from {self.least:,.12g} to {self.most:,.12g}{unit}"

    @property
    def ends(self) -> tuple[float, float, float]:
        """The lowest and highest position of the slider, and its step."""
        return (self.place(self.low), self.place(self.high), 0.01 if self.log else self.step)


SLIDERS = (
    Slider("break_even", "Break-even success rate", "%", 5, 99, 0.1, 99.9, step=0.5),
    Slider("applicants", "Applicants per year", "", 1, 100_000, 0.01, 1e9, log=True),
    Slider("rate", "Discount rate per year", "%", 1, 100, 0.01, 10_000, log=True),
    Slider("weeks", "Delay of outcomes", "weeks", 0, 104, 0, 1_000, hint="On average. 0 means no delay."),
    Slider("success", "Expected success rate", "%", 1, 99, 0.1, 99.9, step=0.5),
    Slider("seen", "Confidence", "outcomes", 0.5, 500, 0.1, 100_000, log=True, hint="Evidence behind the rate."),
    Slider(
        *("starter", "Starter amount", "%", 2, 100, 0.1, 100),
        hint="Share of the full amount that may be offered first. 100% means no starter offer.",
    ),
)


class WhatIfQuestion(msgspec.Struct, frozen=True):
    """The seven numbers."""

    break_even: float = 80.0
    applicants: float = 500.0
    rate: float = RATE
    weeks: float = 0.0
    seen: float = 2.0
    success: float = 50.0
    starter: float = 100.0

    @property
    def cost(self) -> float:
        """The break-even success rate."""
        return self.break_even / 100

    @property
    def volume(self) -> float:
        """The discounted number of applicants: those per year divided by the discount rate."""
        return self.applicants / (self.rate / 100)

    @property
    def prior(self) -> Belief:
        """The starting estimate."""
        return Belief(self.seen, self.seen * self.success / 100)

    @property
    def at_once(self) -> Discounted:
        """The problem without delay of outcomes."""
        return Discounted.from_rates(self.cost, self.applicants, self.rate / 100)

    @property
    def problem(self) -> Discounted | Delayed:
        """The problem that the numbers define."""
        if self.weeks == 0:
            return self.at_once
        return Delayed(self.cost, self.applicants, self.rate / 100, self.weeks / WEEKS)

    @property
    def menu(self) -> Offers | None:
        """The starter offer and the full offer, in units of the full amount, or None without a starter offer."""
        return Offers.menu((self.starter / 100, 1.0), (self.cost, self.cost)) if self.starter < 100 else None

    def objective(self, share: float = 1.0, amount: float = 1.0, currency: str = "") -> Objective:
        """Return the objective of a policy in which this population is a share of the applicants.

        With a starter offer, ``amount`` is the gain plus the loss of the full amount.
        """
        arrivals, rate = self.applicants / share, self.rate / 100
        if self.menu is not None:
            if self.weeks > 0:
                raise InputError.because(
                    "cannot be saved with late outcomes: set the delay of outcomes to 0, or the starter amount to 100%",
                    "starter",
                    label="a starter amount",
                    value=self.starter,
                    code="conflicting_fields",
                )
            sizes = (amount * self.starter / 100, amount)
            return Discounted(
                offers=Offers.menu(sizes, (self.cost, self.cost), currency), arrivals=arrivals, discount_rate=rate
            )
        if self.weeks == 0:
            return Discounted(self.cost, arrivals=arrivals, discount_rate=rate)
        return Delayed(self.cost, arrivals, rate, self.weeks / WEEKS)

    @property
    def fields(self) -> dict[str, str]:
        """The numbers as a form or an address holds them."""
        return {slider.name: f"{getattr(self, slider.name):.12g}" for slider in SLIDERS}


def read_question(given: Mapping[str, str], start: WhatIfQuestion | None = None) -> WhatIfQuestion:
    """Read the numbers of a form or an address. Missing numbers keep their start values.

    >>> read_question({"break_even": "70", "weeks": "8"}).problem
    Delayed(cost=0.7, arrivals=500.0, discount_rate=0.1, label_delay=0.15384615384615385)
    >>> read_question({"rate": "cheap"})
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: rate must be a number from 0.01 to 10000, both included, not 'cheap'
    """
    first = start or WhatIfQuestion()
    values = {}
    for slider in SLIDERS:
        text = given.get(slider.name)
        if text is None:
            continue
        try:
            value = float(text)
        except ValueError:
            raise InputError(
                slider.name, text, f"a number from {slider.least:g} to {slider.most:g}, both included"
            ) from None
        values[slider.name] = real(slider.name, value, least=slider.least, most=slider.most)
    return msgspec.structs.replace(first, **values)


class Preset(msgspec.Struct, frozen=True):
    """The numbers of a policy's segment: rounded for display, exact, and a note about what it does not define."""

    shown: WhatIfQuestion
    exact: WhatIfQuestion
    note: str = ""
    money: Money = UNITS  # how to show values: one unit is the gain plus the loss of the full amount

    def exactly(self, question: WhatIfQuestion) -> WhatIfQuestion:
        """Return the question with the exact value of every number that the user has not changed.

        >>> start = preset(Discounted(0.8, 0.99), Belief(67, 54))
        >>> start.shown.success, start.exactly(start.shown).success
        (80.6, 80.59701492537313)
        """
        exact_values = {name: getattr(self.exact, name) for name in self.unmoved(question)}
        return msgspec.structs.replace(question, **exact_values)

    def unmoved(self, question: WhatIfQuestion) -> set[str]:
        """Return the names of the numbers that the user has not changed."""
        return {slider.name for slider in SLIDERS if getattr(question, slider.name) == getattr(self.shown, slider.name)}


def preset_of(specification: PolicySpecification, segment: SegmentProblem) -> Preset:
    """Return the numbers of a policy's segment, with its yearly applicants and rate if the policy gives them.

    >>> yearly = PolicySpecification("cards", Discounted(0.8, arrivals=900, discount_rate=0.05))
    >>> start = preset_of(yearly, yearly.problems()[0])
    >>> start.shown.applicants, start.shown.rate, start.note
    (900.0, 5.0, '')
    """
    aim = specification.objective
    rates = None
    if aim.arrivals is not None and aim.discount_rate is not None:
        rates = (aim.arrivals * segment.share, aim.discount_rate)
    return preset(segment.problem, segment.belief, rates)


def preset(problem: Objective, prior: Belief, rates: tuple[float, float] | None = None) -> Preset:
    """Return the numbers of a problem. ``rates`` are its arrivals and discount rate per year, if known.

    >>> preset(Discounted(0.8, 0.99), Belief(2, 1)).shown
    WhatIfQuestion(break_even=80.0, applicants=9.9, rate=10.0, weeks=0.0, seen=2.0, success=50.0, starter=100.0)
    """
    rate, note = RATE, ""
    if rates is None and problem.arrivals is not None and problem.discount_rate is not None:
        rates = (problem.arrivals, problem.discount_rate)
    weeks = WEEKS * problem.label_delay
    if rates is not None:
        applicants, rate = rates[0], 100 * rates[1]
    elif problem.horizon is not None:
        applicants = problem.horizon * rate / 100
        note = (
            f"The policy ends after {problem.horizon:,} applicants. This page shows a policy without an end, with as "
            f"many discounted applicants at a discount rate of {rate:g}% per year."
        )
    else:
        applicants = problem.volume * rate / 100
        note = (
            f"The policy gives the number of discounted applicants ({count(problem.volume)}), not the number per year. "
            f"The numbers here assume a discount rate of {rate:g}% per year. Only their ratio matters if outcomes "
            "arrive immediately."
        )
    money, starter, cost = UNITS, 100.0, problem.cost
    if problem.offers is not None:
        money, cost = Money(problem.offers.mean_amount, problem.offers.currency), problem.offers.mean_cost
        starter = _starter(problem.offers)
        if starter == 100.0 and len(problem.offers.amount) > 1:
            note = f"{note} {_typical(problem.offers)}".strip()
    values = {
        "starter": starter,
        "break_even": 100 * cost,
        "applicants": applicants,
        "rate": rate,
        "weeks": weeks,
        "seen": prior.n,
        "success": 100 * prior.mean,
    }
    limits = {slider.name: (slider.least, slider.most) for slider in SLIDERS}
    inside = {name: min(max(value, limits[name][0]), limits[name][1]) for name, value in values.items()}
    # Four digits are enough to read.
    shown = WhatIfQuestion(**{name: float(f"{value:.4g}") for name, value in inside.items()})
    return Preset(shown, WhatIfQuestion(**inside), note, money)


def _starter(offers: Offers) -> float:
    """Return the starter amount in percent if the offers are a starter offer and a full one, else 100.

    >>> _starter(Offers.menu([500, 5000], [0.8, 0.8])), _starter(Offers([500, 5000], [0.8, 0.8]))
    (10.0, 100.0)
    """
    if offers.menu_count > 1 or len(offers.amount) != 2 or offers.cost[0] != offers.cost[1]:
        return 100.0
    return 100 * min(offers.amount) / max(offers.amount)


def _typical(offers: Offers) -> str:
    """Say that one typical offer stands for all."""
    sizes = offers.money.format_range(min(offers.amount), max(offers.amount))
    mean = offers.money.format(offers.mean_amount)
    return (
        f"The policy expects {len(offers.amount):,} kinds of offers with a gain plus loss of {sizes}. The sliders "
        f"assume that every applicant brings an average one: {mean} at a break-even of {percent(offers.mean_cost)}."
    )


def draft(
    question: WhatIfQuestion, name: str, base: PolicySpecification | None = None, segment: str | None = None
) -> PolicySpecification:
    """Return the specification of a draft: a new one, or that of a policy with the changes.

    Break-even, volume, rate and delay apply to the whole policy, scaled to its size. The starting estimate applies to
    the segment. Unchanged numbers keep their exact values.
    """
    if base is None:
        return PolicySpecification(name, question.objective(), question.prior)
    problem = next(each for each in base.problems() if each.name == segment)
    before = preset_of(base, problem)
    changed = {slider.name for slider in SLIDERS} - before.unmoved(question)
    question = before.exactly(question)
    changed_base = msgspec.structs.replace(base, name=name)
    if base.objective.offers is not None:
        _check_offers_kept(changed)
        if changed & {"applicants", "rate"}:
            arrivals, rate = question.applicants / problem.share, question.rate / 100
            same = Discounted(offers=base.objective.offers, arrivals=arrivals, discount_rate=rate)
            changed_base = msgspec.structs.replace(changed_base, objective=same)
    elif changed & {"break_even", "applicants", "rate", "weeks", "starter"}:
        changed_base = msgspec.structs.replace(changed_base, objective=question.objective(problem.share))
    return _with_prior(changed_base, problem.name, question.prior) if changed & {"seen", "success"} else changed_base


def _check_offers_kept(changed: set[str]) -> None:
    """Raise InputError if a number has changed that would replace the offers of a policy."""
    labels = {"break_even": "the break-even", "weeks": "the delay of outcomes", "starter": "the starter amount"}
    name = next((name for name in labels if name in changed), None)
    if name is not None:
        raise InputError.because(
            "cannot be saved, because the policy has offers of its own. Set it back, and create a version with other "
            "offers under New policy",
            name,
            label=labels[name],
            code="unsupported_offers",
        )


def _with_prior(spec: PolicySpecification, segment: str, prior: Belief) -> PolicySpecification:
    """Return the specification with another prior of one segment, which already includes its history."""
    from lenience.service.domain.specification import SegmentSpec

    if not spec.segments and not spec.features:
        return msgspec.structs.replace(spec, prior=prior, history={})
    given = {own.name: own for own in (SegmentSpec(s) if isinstance(s, str) else s for s in spec.segments)}
    # This also adds a cell of features that had no settings of its own.
    given[segment] = msgspec.structs.replace(given.get(segment, SegmentSpec(segment)), prior=prior)
    history = {name: past for name, past in spec.history.items() if name != segment}
    return msgspec.structs.replace(spec, segments=list(given.values()), history=history)
