"""compare_with_status_quo: how much better the proposal is expected to be than continuing as in the past.

The status quo accepts the same share of each segment as in the past, whatever the labels show. By the belief about the
segment, an arrival then earns (accepted / arrivals)(p̂ − c). All arrivals together, discounted, earn
rate · w(1 + N)(p̂ − c), where w is the weight of the segment's own problem in the total and N its volume. A fixed
acceptance rate is one of the policies that the optimum is chosen from, so under the same beliefs the proposal never
earns less. Beliefs rest on the accepted alone: if the rejected of a segment were worse than its accepted, accepting
more earns less than computed here.

If an arrival is worth y, all arrivals are worth y/(1 − γ) in total and λy per year, where λ arrive per year. The yearly
amount of a total value V is therefore V · λ(1 − γ), that of the constant stream with the same value.

If labels come late, the value of the proposal is the least that the optimum is proved to earn, and values are as of
now, before the next arrival: the status quo earns rate · N(p̂ − c), and the yearly amount of V is V times the yearly
discount rate.

Where each applicant has a gain and a loss of their own, the status quo earns what the accepted ones of the past would:
p̂ · gain − (1 − p̂) · loss on average, with the mean gain and the mean loss of the accepted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from lenience.core.formatting import even_percent, percent
from lenience.core.money import Money
from lenience.history.history import History
from lenience.history.segment_history import SegmentHistory
from lenience.segments.exposure_limits import Exposure
from lenience.segments.policies import SegmentPolicies
from lenience.segments.segments import Segment

CAVEAT = (
    "Both amounts are estimated from applicants who were accepted. If the rejected applicants of a segment would have "
    "done worse than its accepted ones, accepting more earns less than this."
)


class StatusQuoComparison(msgspec.Struct, frozen=True):
    """The status quo and the proposal for one segment.

    Parameters
    ----------
    segment : str
        The name of the segment.
    accepted : float
        The share accepted in the past.
    accept : bool
        Whether the proposal accepts.
    as_now : float
        What the status quo is expected to earn from now on.
    proposed : float
        What the proposal is expected to earn from now on.
    now : str, optional
        The decision in words, if it is more than accept or reject.
    """

    segment: str
    accepted: float
    accept: bool
    as_now: float
    proposed: float
    now: str = ""

    @property
    def more(self) -> float:
        """How much more the proposal earns."""
        return self.proposed - self.as_now

    @property
    def change(self) -> str:
        """The change in words, e.g. '30.0% → accept'."""
        return f"{even_percent(self.accepted)} → {self.now or ('accept' if self.accept else 'reject')}"


def compare_with_status_quo(
    policies: SegmentPolicies, history: History, late: Sequence[Exposure] = ()
) -> list[StatusQuoComparison]:
    """Compare the proposal with the status quo for each segment.

    ``late`` holds the exposure limits if labels come late.

    >>> from lenience import Discounted, fit_history
    >>> past = {"region": ["north"] * 4, "in": [1, 1, 1, 0], "good": [1, 1, 0, None]}
    >>> history = fit_history(past, "region", "in", "good")
    >>> [row] = compare_with_status_quo(history.divide(Discounted(0.5, 0.9)).solve(), history)
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
            all_accepted = own.objective.volume * _mean_profit(cell, past)
            rows.append(StatusQuoComparison(cell.name, rate, bool(own.accept), rate * all_accepted, own.worth, own.now))
            continue
        worth = policies.segment_value(cell.name).midpoint
        if cell.objective.offers is None:
            share = float(policies.accepts(cell.name))
        else:
            share = policies[cell.name].share_accepted(cell.prior)
        now = f"accept {percent(share, 0)} of offers" if 0.0 < share < 1.0 else ""
        as_now = rate * cell.weight * (1.0 + cell.volume) * _mean_profit(cell, past)
        rows.append(StatusQuoComparison(cell.name, rate, share > 0.0, as_now, worth, now))
    return rows


def _mean_profit(cell: Segment, past: SegmentHistory) -> float:
    """Return what an accepted applicant of the past is expected to earn, by the belief about the segment."""
    mean = cell.prior.mean
    if cell.objective.offers is None:
        return mean - cell.objective.cost
    if past.economics is not None:
        return mean * past.economics.accepted_gain - (1.0 - mean) * past.economics.accepted_loss
    return cell.objective.offers.mean_amount * (mean - cell.objective.offers.mean_cost)


def describe_status_quo(rows: Sequence[StatusQuoComparison], money: Money) -> str:
    """Summarise the comparison of all segments in a few sentences.

    >>> print(describe_status_quo([StatusQuoComparison("north", 0.75, True, 0.75, 1.25)], Money()))
    Keeping today's acceptance rates would earn 0.75. The proposal would earn 1.25, which is 0.5 more (67%). Amounts
    are in units of gain + loss, in total from now on.
    """
    now, then = (math.fsum(values) for values in zip(*((row.as_now, row.proposed) for row in rows), strict=True))
    share = f" ({percent((then - now) / now, 0)})" if now > 0 else ""
    return (
        f"Keeping today's acceptance rates would earn {money.format(now)}. The proposal would earn "
        f"{money.format(then)}, which is {money.format(then - now)} more{share}. Amounts are {money.words}."
    )
