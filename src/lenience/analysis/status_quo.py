"""compare_with_now: by how much the proposal is expected to be better than going on as in the past.

Going on as now: of each segment the share is accepted that was accepted in the past, whatever the labels say. By what
is believed of the segment, an arrival then earns (accepted / arrivals)(p̂ − c), and all that come, each counted at its
discount, rate · w(1 + N)(p̂ − c), w being what the segment's own problem counts in the whole and N its volume.
Accepting at a fixed rate is one of the policies the optimum was chosen from, so by the same beliefs the proposal never
earns less. What is believed rests on the accepted alone: where those rejected were worse than those accepted of the
same segment, to accept more earns less than is said.

What y an arrival is worth in all, y/(1 − γ), is λy a year where λ come in one; so the yearly amount of a value V in all
is V · λ(1 − γ), that of the constant stream worth as much.

Where labels come late the proposal is worth the least that the optimum is proved to earn, and values are as of now,
before the next arrival: going on as now earns rate · N(p̂ − c), and the yearly amount of V is V times the yearly
discount rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from lenience.core.formatting import even_percent, percent
from lenience.history.fit import History
from lenience.segments.exposure_limits import Exposure
from lenience.segments.policies import SegmentPolicies

CAVEAT = (
    "Both amounts are estimated from applicants who were accepted. If the rejected applicants of a segment would have "
    "done worse than its accepted ones, accepting more earns less than this."
)


class ThanNow(msgspec.Struct, frozen=True):
    """One segment: the share that was accepted, whether the proposal accepts, and what each is expected to earn from
    now on."""

    segment: str
    accepted: float
    accept: bool
    as_now: float
    proposed: float
    now: str = ""  # what the proposal is, where that is more than accept or reject

    @property
    def more(self) -> float:
        """How much more the proposal earns."""
        return self.proposed - self.as_now

    @property
    def change(self) -> str:
        """In words, such as '30.0% → accept'."""
        return f"{even_percent(self.accepted)} → {self.now or ('accept' if self.accept else 'reject')}"


class Money(msgspec.Struct, frozen=True):
    """What a unit of value is in money, a success's gain and a failure's loss together, where that is known; and the
    part of a value in all that a year has, where that is asked for."""

    unit: float | None = None
    yearly: float | None = None

    def amount(self, value: float) -> float:
        """A value in all as money, a year where that is asked for."""
        unit, yearly = 1.0 if self.unit is None else self.unit, 1.0 if self.yearly is None else self.yearly
        return value * unit * yearly + 0.0  # which makes −0 a 0

    def show(self, value: float) -> str:
        """The same in writing.

        >>> Money(1000, 0.1).show(12.345), Money().show(12.345), Money().show(-0.0), Money(1000, 0.1).show(-0.001)
        ('1,234', '12.35', '0.00', '0')
        """
        digits = 2 if self.unit is None else 0
        return f"{self.amount(value):z,.{digits}f}"

    @property
    def words(self) -> str:
        """What an amount is."""
        kind = "in units of gain + loss" if self.unit is None else "in money"
        return f"{kind}, {'in total from now on' if self.yearly is None else 'per year'}"


def compare_with_now(policies: SegmentPolicies, history: History, late: Sequence[Exposure] = ()) -> list[ThanNow]:
    """Each segment of the proposal beside going on as in the past; ``late`` are the limits where labels come late.

    >>> from lenience import Discounted, fit_history
    >>> past = {"region": ["north"] * 4, "in": [1, 1, 1, 0], "good": [1, 1, 0, None]}
    >>> history = fit_history(past, "region", "in", "good")
    >>> [row] = compare_with_now(history.divide(Discounted(0.5, 0.9)).solve(), history)
    >>> row.change, round(row.as_now, 4), row.proposed > row.as_now
    ('75.0% → accept', 0.75, True)
    """
    rows = []
    known = {row.segment: row for row in history.segments if row.arrivals}
    limits = {row.name: row for row in late}
    for cell in policies.segments:
        if cell.name not in known:
            continue
        past = known[cell.name]
        rate = past.accepted / past.arrivals
        if cell.name in limits:
            own = limits[cell.name]
            all_accepted = own.objective.volume * (own.belief.mean - own.objective.cost)
            rows.append(ThanNow(cell.name, rate, bool(own.accept), rate * all_accepted, own.worth, own.now))
            continue
        all_accepted = cell.weight * (1.0 + cell.volume) * (cell.prior.mean - cell.objective.cost)
        worth = policies.segment_value(cell.name).midpoint
        rows.append(ThanNow(cell.name, rate, policies.accepts(cell.name), rate * all_accepted, worth))
    return rows


def describe_than_now(rows: Sequence[ThanNow], money: Money) -> str:
    """The whole in a sentence or two.

    >>> print(describe_than_now([ThanNow("north", 0.75, True, 0.75, 1.25)], Money()))
    Keeping today's acceptance rates would earn 0.75. The proposal would earn 1.25, which is 0.50 more (67%). Amounts
    are in units of gain + loss, in total from now on.
    """
    now, then = (math.fsum(values) for values in zip(*((row.as_now, row.proposed) for row in rows), strict=True))
    share = f" ({percent((then - now) / now, 0)})" if now > 0 else ""
    return (
        f"Keeping today's acceptance rates would earn {money.show(now)}. The proposal would earn {money.show(then)}, "
        f"which is {money.show(then - now)} more{share}. Amounts are {money.words}."
    )
