"""What is asked on the what-if page: six numbers, each a slider and a field, and the problem they make.

They are in the units someone in risk uses: per cent, applicants a year, weeks. A policy's segment gives them their
first values; what the segment does not say (in which time the applicants come that count) is said to be unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import refusal
from lenience.core.formatting import count
from lenience.core.validation import real
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.service.domain.specification import (
    Objective,
    PolicySpecification,
    SegmentProblem,
)

WEEKS = 52.0  # in a year
RATE = 10.0  # per cent a year, where a policy says how many applicants count and not in which time


class Slider(msgspec.Struct, frozen=True):
    """A number that can be dragged or typed: what may be typed reaches further than the slider."""

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
        """Where a value is on the slider.

        >>> SLIDERS[1].place(100.0), SLIDERS[0].place(80.0)
        (2.0, 80.0)
        """
        inside = min(max(value, self.low), self.high)
        return math.log10(inside) if self.log else inside

    @property
    def allowed(self) -> str:
        """What may be typed, in words.

        >>> SLIDERS[0].allowed, SLIDERS[1].allowed
        ('from 0.1 to 99.9 %', 'from 0.01 to 1,000,000,000')
        """
        return f"from {self.least:,.12g} to {self.most:,.12g} {self.unit}".rstrip()

    @property
    def ends(self) -> tuple[float, float, float]:
        """The slider's lowest and highest place, and its step."""
        return (self.place(self.low), self.place(self.high), 0.01 if self.log else self.step)


SLIDERS = (
    Slider("break_even", "Break-even success rate", "%", 5, 99, 0.1, 99.9, step=0.5),
    Slider("applicants", "Applicants a year", "", 1, 100_000, 0.01, 1e9, log=True),
    Slider("rate", "Discount rate a year", "%", 1, 100, 0.01, 10_000, log=True),
    Slider("weeks", "Outcomes come after", "weeks", 0, 104, 0, 1_000, hint="0: at once. On average."),
    Slider("success", "Believed success rate", "%", 1, 99, 0.1, 99.9, step=0.5),
    Slider(
        "seen", "… as if from", "outcomes", 0.5, 500, 0.1, 100_000, log=True, hint="More: surer, and slower to learn."
    ),
)


class Asked(msgspec.Struct, frozen=True):
    """The six numbers."""

    break_even: float = 80.0
    applicants: float = 500.0
    rate: float = RATE
    weeks: float = 0.0
    seen: float = 2.0
    success: float = 50.0

    @property
    def cost(self) -> float:
        """The break-even success rate."""
        return self.break_even / 100

    @property
    def volume(self) -> float:
        """How many applicants count: those of a year over the discount rate."""
        return self.applicants / (self.rate / 100)

    @property
    def prior(self) -> Belief:
        """What is believed beforehand."""
        return Belief(self.seen, self.seen * self.success / 100)

    @property
    def at_once(self) -> Discounted:
        """The problem if outcomes came at once."""
        return Discounted.from_rates(self.cost, self.applicants, self.rate / 100)

    @property
    def problem(self) -> Discounted | Delayed:
        """The problem."""
        if self.weeks == 0:
            return self.at_once
        return Delayed(self.cost, self.applicants, self.rate / 100, self.weeks / WEEKS)

    def objective(self, share: float = 1.0) -> Objective:
        """The objective of a policy of which this is a share of the applicants."""
        arrivals, rate = self.applicants / share, self.rate / 100
        if self.weeks == 0:
            return Discounted(self.cost, arrivals=arrivals, discount_rate=rate)
        return Delayed(self.cost, arrivals, rate, self.weeks / WEEKS)

    @property
    def fields(self) -> dict[str, str]:
        """The numbers as they are written in a form or an address."""
        return {slider.name: f"{getattr(self, slider.name):.12g}" for slider in SLIDERS}


def read_asked(given: Mapping[str, str], start: Asked | None = None) -> Asked:
    """What is asked by a form or an address; what is not given there is as at the start.

    >>> read_asked({"break_even": "70", "weeks": "8"}).problem
    Delayed(cost=0.7, arrivals=500.0, discount_rate=0.1, label_delay=0.15384615384615385)
    >>> read_asked({"rate": "cheap"})
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: rate must be a number from 0.01 to 10000, both included, not 'cheap'
    """
    first = start or Asked()
    found = {}
    for slider in SLIDERS:
        text = given.get(slider.name)
        if text is None:
            continue
        try:
            value = float(text)
        except ValueError:
            raise refusal(
                slider.name, text, f"a number from {slider.least:g} to {slider.most:g}, both included"
            ) from None
        found[slider.name] = real(slider.name, value, least=slider.least, most=slider.most)
    return msgspec.structs.replace(first, **found)


class Preset(msgspec.Struct, frozen=True):
    """The numbers of a policy's segment: as they are shown, to the last digit, and what it leaves open."""

    asked: Asked
    exact: Asked
    word: str = ""

    def exactly(self, asked: Asked) -> Asked:
        """What is asked, with every number that was not moved as the segment has it, not as it is shown.

        >>> found = preset(Discounted(0.8, 0.99), Belief(67, 54))
        >>> found.asked.success, found.exactly(found.asked).success
        (80.6, 80.59701492537313)
        """
        kept = {name: getattr(self.exact, name) for name in self.unmoved(asked)}
        return msgspec.structs.replace(asked, **kept)

    def unmoved(self, asked: Asked) -> set[str]:
        """The numbers that are as they were shown first."""
        return {one.name for one in SLIDERS if getattr(asked, one.name) == getattr(self.asked, one.name)}


def preset_of(specification: PolicySpecification, segment: SegmentProblem) -> Preset:
    """The numbers of a policy's segment: its applicants and rate a year as they were given, where they were.

    >>> yearly = PolicySpecification("cards", Discounted(0.8, arrivals=900, discount_rate=0.05))
    >>> found = preset_of(yearly, yearly.problems()[0])
    >>> found.asked.applicants, found.asked.rate, found.word
    (900.0, 5.0, '')
    """
    aim = specification.objective
    rates = None
    if aim.arrivals is not None and aim.discount_rate is not None:
        rates = (aim.arrivals * segment.share, aim.discount_rate)
    return preset(segment.problem, segment.prior, rates)


def preset(problem: Objective, prior: Belief, rates: tuple[float, float] | None = None) -> Preset:
    """The numbers of a segment's problem; ``rates`` are its arrivals and the discount rate a year, where it has them.

    >>> preset(Discounted(0.8, 0.99), Belief(2, 1)).asked
    Asked(break_even=80.0, applicants=9.9, rate=10.0, weeks=0.0, seen=2.0, success=50.0)
    """
    rate, word = RATE, ""
    if rates is None and problem.arrivals is not None and problem.discount_rate is not None:
        rates = (problem.arrivals, problem.discount_rate)
    weeks = WEEKS * problem.label_delay
    if rates is not None:
        applicants, rate = rates[0], 100 * rates[1]
    elif problem.horizon is not None:
        applicants = problem.horizon * rate / 100
        word = (
            f"The policy has an end, after {problem.horizon:,} applicants; here as many count, at a discount rate of "
            f"{rate:g} % a year and without an end."
        )
    else:
        applicants = problem.volume * rate / 100
        word = (
            f"The policy says how many applicants count ({count(problem.volume)}), not how many come in a year: these "
            f"are the numbers at a discount rate of {rate:g} % a year. Only their ratio matters while outcomes come "
            "at once."
        )
    values = {
        "break_even": 100 * problem.cost,
        "applicants": applicants,
        "rate": rate,
        "weeks": weeks,
        "seen": prior.n,
        "success": 100 * prior.mean,
    }
    limits = {slider.name: (slider.least, slider.most) for slider in SLIDERS}
    inside = {name: min(max(value, limits[name][0]), limits[name][1]) for name, value in values.items()}
    # Four digits are as many as anyone reads.
    shown = Asked(**{name: float(f"{value:.4g}") for name, value in inside.items()})
    return Preset(shown, Asked(**inside), word)


def draft(
    asked: Asked, name: str, base: PolicySpecification | None = None, segment: str | None = None
) -> PolicySpecification:
    """The specification that a draft is made of: a new one, or that of a policy with what was changed.

    Break-even, volume, rate and delay become the whole policy's, at its size; what is believed beforehand becomes the
    segment's. What was not changed stays as it was, to the last digit.
    """
    if base is None:
        return PolicySpecification(name, asked.objective(), asked.prior)
    mine = next(one for one in base.problems() if one.name == segment)
    before = preset_of(base, mine)
    changed = {slider.name for slider in SLIDERS} - before.unmoved(asked)
    asked = before.exactly(asked)
    made = msgspec.structs.replace(base, name=name)
    if changed & {"break_even", "applicants", "rate", "weeks"}:
        made = msgspec.structs.replace(made, objective=asked.objective(mine.share))
    return _believing(made, mine.name, asked.prior) if changed & {"seen", "success"} else made


def _believing(spec: PolicySpecification, segment: str, prior: Belief) -> PolicySpecification:
    """The specification with another belief about one segment, whose history is in it already."""
    from lenience.service.domain.specification import SegmentSpec

    if not spec.segments and not spec.features:
        return msgspec.structs.replace(spec, prior=prior, history={})
    given = {one.name: one for one in (SegmentSpec(s) if isinstance(s, str) else s for s in spec.segments)}
    # A cell of features that had nothing of its own is named from now on.
    given[segment] = msgspec.structs.replace(given.get(segment, SegmentSpec(segment)), prior=prior)
    history = {name: past for name, past in spec.history.items() if name != segment}
    return msgspec.structs.replace(spec, segments=list(given.values()), history=history)
