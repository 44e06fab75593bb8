"""The outlook of a policy before its first decision: value, cost of learning, whether it starts, wrongful rejections.

The answer must be immediate while a slider moves. Most problems are solved in a few milliseconds. For the others (large
volumes, or many pending outcomes) the first answer solves a simpler problem and says so. An exact answer follows.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.formatting import count
from lenience.core.money import UNITS, Money
from lenience.core.offers import Offers
from lenience.dashboard.read_models.what_if_inputs import WhatIfQuestion
from lenience.objectives.discounted import Discounted
from lenience.segments.starting import starting_volume
from lenience.service.domain.exposure_tables import ExposureTable
from lenience.service.domain.solved_tables import Effort, SolvedTable, load, solve
from lenience.service.domain.specification import Objective, SegmentProblem
from lenience.solvers.stopping.boundary_walk import fate
from lenience.solvers.stopping.clairvoyant import gain_of_knowing

ROWS = 2_000  # acceptances over which shut-outs are computed, and beliefs that a picture can show


QUANTILES = 1_000  # success rates over which a profit is averaged


class SolveLimits(NamedTuple):
    """How much work an answer may take."""

    volume: float  # largest discounted volume without delay
    late: float  # largest discounted volume with late outcomes
    effort: Effort
    starter_seconds: float  # to solve for a starter offer, as estimated by the solver


QUICK = SolveLimits(5_000, 1_000, Effort(ROWS, 1e-6, 1e-5, 0.1, limit=False), 0.03)
PATIENT = SolveLimits(200_000, 1e9, Effort(ROWS, 1e-6, 1e-5, 3.0, limit=False), 1.0)


class Outlook(msgspec.Struct, frozen=True):
    """The outlook of a population with a prior.

    Values are as of now, before the first applicant. ``shut_out`` is the probability of a stop for good, given that the
    population is worth accepting (p > c). It is an upper bound if outcomes are late (``at_most``). ``needed`` is the
    discounted volume at which a first acceptance pays, or None if it is not defined.
    """

    table: SolvedTable
    volume: float
    value: Bounds
    knowing: float
    deserving: float
    shut_out: float
    at_most: bool
    starts: bool
    needed: float | None

    @property
    def learning(self) -> float:
        """The expected cost of learning: the value if the success rate were known, minus the optimal value."""
        return max(self.knowing - self.value.midpoint, 0.0)

    @property
    def learning_share(self) -> float:
        """The cost of learning as a share of the value if the success rate were known."""
        return self.learning / self.knowing if self.knowing > 0 else 0.0


class WhatIfAnswer(msgspec.Struct, frozen=True):
    """An outlook, and a note about what was simplified to answer immediately."""

    outlook: Outlook
    note: str = ""
    more: bool = False  # whether a slower solve gives a better answer


def answer_question(question: WhatIfQuestion, limits: SolveLimits = QUICK) -> WhatIfAnswer:
    """Return the outlook for a question within the limits, else that of the nearest simpler problem.

    >>> answer = answer_question(WhatIfQuestion(break_even=80, applicants=9.9, rate=10))
    >>> round(answer.outlook.volume, 6), answer.outlook.starts, round(answer.outlook.shut_out, 3)
    (99.0, True, 0.329)
    """
    problem = question.problem
    if problem.label_delay and question.volume <= limits.late:
        try:
            return WhatIfAnswer(_foresee(problem, question.prior, limits.effort))
        except TooLargeError:
            pass
    volume = min(question.volume, limits.volume)
    first = Discounted(question.cost, volume / (1 + volume))
    outlook = _foresee(first, question.prior, limits.effort)
    simplifications = []
    if question.weeks > 0:
        simplifications.append("as if outcomes arrived immediately (late ones delay acceptances and reduce the value)")
    if volume < question.volume:
        simplifications.append(f"for {volume:,.0f} discounted applicants (with more, the policy is more lenient)")
    if not simplifications:
        return WhatIfAnswer(outlook)
    note = f"Shown {' and '.join(simplifications)}."
    if limits is PATIENT:
        return WhatIfAnswer(outlook, f"{note} The exact result would take too long to compute here.")
    return WhatIfAnswer(outlook, note, more=True)


@lru_cache(maxsize=512)
def _foresee(problem: Objective, prior: Belief, effort: Effort) -> Outlook:
    text = solve(SegmentProblem("", 1.0, problem, prior, None, 0.0), effort)
    return foresee(problem, prior, load(text))


def foresee(problem: Objective, prior: Belief, table: SolvedTable) -> Outlook:
    """Return the outlook of a problem under its solved table. With offers, values are in money."""
    if problem.offers is not None:
        return _foresee_offers(problem, problem.offers, prior, table)
    gain = gain_of_knowing(prior.n, prior.s, problem.cost)
    late = isinstance(table, ExposureTable)
    needed: float | None = starting_volume(prior, problem.cost).midpoint
    volume = problem.volume
    if problem.horizon is not None:
        needed = None
    if problem.stationary:
        first = Discounted(problem.cost, problem.discount).enclose(prior, 1e-6)[0]  # value at the first applicant
        worth = Bounds(problem.discount * first.lower, problem.discount * first.upper)
    else:
        worth = table.value(0, 0, 0)[0] or Bounds(0.0, volume * gain)
    starts = table.limit(0, 0) != 0
    ahead = fate(prior.n, prior.s, problem.cost, _followed(table)) if not prior.certain else None
    deserving = ahead.deserving if ahead else float(prior.mean > problem.cost)
    shut = ahead.shut_out / ahead.deserving if ahead and ahead.deserving > 0 else 0.0
    return Outlook(table, volume, worth, volume * gain, deserving, shut, late, starts, needed)


def _foresee_offers(problem: Objective, offers: Offers, prior: Belief, table: SolvedTable) -> Outlook:
    """Return the outlook where amounts differ. A population is worth accepting above the lowest break-even."""
    knowing = problem.volume * _profit_if_known(offers, prior)
    first = table.value(0, 0, 0)[0]
    worth = Bounds(0.0, knowing)
    if first is not None:
        # Without an end, the value is as of now, before the first applicant.
        until_first = problem.discount if problem.horizon is None else 1.0
        worth = Bounds(until_first * first.lower, until_first * first.upper)
    ahead = fate(prior.n, prior.s, min(offers.cost), _followed(table)) if not prior.certain else None
    deserving = ahead.deserving if ahead else float(prior.mean > min(offers.cost))
    shut = ahead.shut_out / ahead.deserving if ahead and ahead.deserving > 0 else 0.0
    return Outlook(table, problem.volume, worth, knowing, deserving, shut, False, table.limit(0, 0) != 0, None)


def _profit_if_known(offers: Offers, prior: Belief) -> float:
    """Return what an arrival would earn on average if the success rate were known.

    >>> round(_profit_if_known(Offers([1.0, 5.0], [0.8, 0.8]), Belief(2, 1)), 6)
    0.06
    >>> round(_profit_if_known(Offers.menu([1.0, 5.0], [0.8, 0.8]), Belief(2, 1)), 3)
    0.1
    """
    from scipy.special import betaincinv

    if not offers.menus:
        rows = zip(offers.share, offers.amount, offers.cost, strict=True)
        return math.fsum(share * size * gain_of_knowing(prior.n, prior.s, cost) for share, size, cost in rows)
    if prior.certain:
        return offers.profit_if_known(prior.mean)
    # The middles of many ranges of equal probability: the best profit is convex and piecewise linear in the rate.
    middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    rates = betaincinv(prior.s, prior.n - prior.s, middles)
    return math.fsum(offers.profit_if_known(float(rate)) for rate in rates) / QUANTILES


def _followed(table: SolvedTable) -> NDArray[np.int64]:
    """Return the boundary over the same number of rows for every table, extended by the last row's rate."""
    least = np.asarray(table.boundary[:ROWS], dtype=np.int64)
    if len(least) == ROWS or table.horizon is not None:
        return least
    n, s = table.prior.n, table.prior.s
    last = (s + least[-1] - 1) / (n + len(least) - 1)
    rest = np.floor(last * (n + np.arange(len(least), ROWS)) - s).astype(np.int64) + 1
    return np.concatenate((least, np.maximum(rest, least[-1])))


def summary(outlook: Outlook, money: Money = UNITS) -> str:
    """Describe the outlook in a sentence or two."""
    if not outlook.starts:
        if outlook.needed is None or math.isinf(outlook.needed):
            return "The policy never starts: no number of applicants makes a first acceptance pay."
        return (
            f"The policy never starts: a first acceptance needs {count(outlook.needed)} discounted applicants to pay, "
            f"and there are {count(outlook.volume)}."
        )
    bound = "at most " if outlook.at_most else ""
    value, learning = (
        money.format(one) if money.known else count(one) for one in (outlook.value.midpoint, round(outlook.learning, 4))
    )
    return (
        f"The expected total value is {value}. Learning costs "
        f"{learning} ({100 * outlook.learning_share:.0f}% of the value if the success rate "
        f"were known). The risk of rejecting a good population for good is {bound}{100 * outlook.shut_out:.1f}%."
    )
