"""Decide rows of features with offers: accept iff a(p̂ − c) plus the value of the label is above 0.

:mod:`lenience.policies.features.effective_discount` says how people like x are weighed, and
:mod:`lenience.solvers.offers.label_table` holds the value of a label for the population's offers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.offer_rows import OfferRows
from lenience.core.offers import Offers
from lenience.models.gaussian import belief_size
from lenience.models.hypotheses import compared_rows, describe_row, liken, mixed, mixed_roughly, project_all
from lenience.policies.features.effective_discount import explored_share, offer_shares, own_discount, stretched
from lenience.policies.features.label_worth import counts_as, label_worth
from lenience.solvers.offers.label_table import look_up_label

FIELDS = 8  # of a decided row: taken, propensity, p̂, n, γ′, effective pending, position of the offer, label's value
LATE_FIELDS = 4  # more where labels come late: q, S, explored acceptances pending, a label's value if none are pending


class ReferenceOffers(NamedTuple):
    """What each reference row brings: a line of shares, stakes (share times amount) and break-evens for each.

    Amounts are in units of the population's mean amount. A menu has its largest amount and its lowest break-even.
    """

    share: NDArray[np.float64]
    stake: NDArray[np.float64]
    cost: NDArray[np.float64]

    @classmethod
    def of(cls, rows: int, population: Offers, offers: OfferRows | None) -> ReferenceOffers:
        """Return what reference rows bring: their own offers, or the population's where these are not known.

        >>> ReferenceOffers.of(2, Offers([1, 3], [0.8, 0.8], share=[1, 1]), None).stake
        array([[1.],
               [1.]])
        """
        menus = [population.offers_of(menu) for menu in range(population.menu_count)]
        stakes = np.array([max(one.amount for one in menu) for menu in menus]) / population.mean_amount
        costs, which = np.unique([round(min(one.cost for one in menu), 12) for menu in menus], return_inverse=True)
        shares = np.array(population.share)
        share = np.bincount(which, weights=shares)
        stake = np.bincount(which, weights=shares * stakes)
        all_lines = cls(*(np.tile(each.astype(np.float64), (rows, 1)) for each in (share, stake, costs)))
        if offers is not None:
            for row in range(rows):
                all_lines.put(row, offers, row, population)
        return all_lines

    def put(self, row: int, offers: OfferRows, which: int, population: Offers) -> None:
        """Write what an arrival brought into a line."""
        for each in self:
            each[row] = 0.0
        self.share[row, 0] = 1.0
        first, end = int(offers.start[which]), int(offers.start[which + 1])
        self.stake[row, 0] = offers.amount[first:end].max() / population.mean_amount
        self.cost[row, 0] = offers.cost[first:end].min()

    def longer(self) -> ReferenceOffers:
        """Return the same with one more line, which is empty."""
        return ReferenceOffers(*(np.vstack((each, np.zeros(each.shape[1]))) for each in self))


@compiled
def decide_offer_rows(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    columns: NDArray[np.float64],
    reference_m: NDArray[np.float64],
    reference_v: NDArray[np.float64],
    shares: NDArray[np.float64],
    stakes: NDArray[np.float64],
    costs: NDArray[np.float64],
    pending: NDArray[np.float64],
    pending_m: NDArray[np.float64],
    pending_v: NDArray[np.float64],
    waiting: int,
    gammas: NDArray[np.float64],
    chances: NDArray[np.float64],
    explore: float,
    unit: float,
    row_amount: NDArray[np.float64],
    row_cost: NDArray[np.float64],
    row_start: NDArray[np.int64],
    amount: NDArray[np.float64],
    cost: NDArray[np.float64],
    start: NDArray[np.int64],
    share: NDArray[np.float64],
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    grid: NDArray[np.float64],
    cell: NDArray[np.int64],
    f: NDArray[np.float64],
    kink: NDArray[np.float64],
    slope: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Decide rows in turn with a logistic regression, and write the fields of each.

    ``columns`` is the design of the reference rows by column. ``pending`` is that of the ``waiting`` rows without an
    outcome, with room for those accepted here, and their log-odds follow.
    ``unit`` is what an amount of 1 in the table is worth. Where ``out`` has room for them, it also gets the
    ``LATE_FIELDS``.
    """
    several, size = means.shape
    late = out.shape[1] > FIELDS
    rows = columns.shape[1]
    m, v, p, s = np.empty((4, several))
    U = np.empty((several, size))
    reference = compared_rows(columns, weights, reference_m, reference_v, rows)
    earlier = compared_rows(pending, weights, pending_m, pending_v, waiting)
    precision, resolved, deviation, like = np.empty((4, rows))
    for r in range(rows):
        rate, spread = reference.rate[r], reference.spread[r]
        precision[r] = 1.0 / spread
        resolved[r] = spread / (rate * (1.0 - rate) + spread)
    dot, like_pending = np.empty((2, max(rows, pending.shape[1])))
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        mean, variance = mixed(weights, m, v, p, s)
        n = belief_size(mean, variance)
        rough, spread = mixed_roughly(weights, m, v, p, s)
        liken(reference, rows, weights, v, U, p, s, rough, spread, dot, like)
        for r in range(rows):
            deviation[r] = math.sqrt(like[r] * reference.spread[r])
        q, h, left, free, stake = offer_shares(
            like, reference.rate, precision, resolved, mean, rough, 1.0 / spread,
            spread / (rough * (1.0 - rough) + spread), shares, stakes, costs,
        )  # fmt: skip
        near = 0.0
        explored = 0.0
        liken(earlier, waiting, weights, v, U, p, s, rough, spread, dot, like_pending)
        for k in range(waiting):
            near += like_pending[k]
            if late:
                explored += like_pending[k] * explored_share(earlier.rate[k], mean, cost, start, share)
        discount = own_discount(gammas[i], q, h)
        where = stretched(mean, n, left, kink, slope)
        label = 0.0
        alone = 0.0
        passes = 2 if late and near > 0.0 else 1  # two: first as if nobody were pending
        for step in range(passes):
            ahead = near if step == passes - 1 else 0.0
            label = unit * stake * left * look_up_label(
                amount, cost, start, share, n0, n_step, g0, g_step, grid, cell, f, n + ahead, where, discount
            )  # fmt: skip
            if free > 0.0:
                worth = label_worth(
                    deviation, reference.rate, costs, stakes, counts_as(like.sum()), mean, math.sqrt(variance), n,
                    ahead, free, gammas[i],
                )  # fmt: skip
                label = min(label, unit * worth)
            alone = max(alone, label)
        best = best_offer(row_amount, row_cost, row_start[i], row_start[i + 1], mean)
        propensity = 1.0 if row_amount[best] * (mean - row_cost[best]) + label > 0.0 else explore
        taken = chances[i] < propensity
        out[i, 0] = 1.0 if taken else 0.0
        out[i, 1] = propensity
        out[i, 2] = mean
        out[i, 3] = n
        out[i, 4] = discount
        out[i, 5] = near
        out[i, 6] = best
        out[i, 7] = label
        if late:
            out[i, 8] = q
            out[i, 9] = stake
            out[i, 10] = explored
            out[i, 11] = alone
        if taken:
            pending[:, waiting] = X[i]
            describe_row(earlier, waiting, v, p, s, rough, spread)
            waiting += 1


@compiled
def best_offer(amount: NDArray[np.float64], cost: NDArray[np.float64], first: int, end: int, mean: float) -> int:
    """Return the position of the offer with the largest expected profit."""
    best = first
    for o in range(first + 1, end):
        if amount[o] * (mean - cost[o]) > amount[best] * (mean - cost[best]):
            best = o
    return best
