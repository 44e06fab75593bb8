"""What one more label is worth at any belief, for any rate of arrivals, where labels come late and offers differ.

With features everyone has a belief (n, p̂) of their own, and people like x arrive at a rate of their own. An offer is
accepted while a(p̂ − c) + D > 0, where D = V(m+1) − V(m) is what one more label is worth if m are pending. So D is
needed at another place for each decision, and solving for each of them takes too long. But measured in mean delays, a
problem has only two rates: λ arrivals and r discounting. So it is solved once with
:mod:`lenience.solvers.offers.delayed_blocks` for each power of 2 of the arrivals, for all beliefs from a size of
``SMALLEST`` on and all numbers pending.

D has a kink wherever a decision changes, which also depends on the rates. With gains g_k and shares w_k, the recursion
(r + m) V(m) = λ Σ w_k (g_k + D)⁺ + m R says that

    D (r + m)/λ + Σ w_k [(g_k + D)⁺ − g_k⁺] = Y,     Y = [(r + m) V(m+1) − m R]/λ − Σ w_k g_k⁺.

Y is smooth. So the table holds Y and interpolates it linearly in log n, p̂, m and log λ, and each look-up solves this
equation for D, as in :mod:`lenience.solvers.offers.label_table`.

The discount rate is that of the objective, and is solved as it is. A solve takes about 0.2 s and is done when the first
belief needs it.

Guarantees: none. The tests compare labels and the limits that follow with certified solves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.offers import Offers
from lenience.solvers.delayed.limit_table import ARRIVALS, FINENESS, POINTS, SMALLEST, between_powers
from lenience.solvers.offers.delayed_blocks import label_rows
from lenience.solvers.offers.label_table import best_gains, label_at
from lenience.solvers.offers.solve import OfferArrays, prepare

STARTS = (0.2, 0.45, 0.7)  # belief sizes from which more solves start, because steps of one label are large there
FEW = 5.0  # belief size up to which these are kept
LARGEST = 3e4  # belief size where the table ends
NODES = 64  # solves kept, of about 1 MB each


class LateLabelNode(NamedTuple):
    """One solve: Y in units of the mean amount, by belief size, success rate and number pending."""

    sizes: NDArray[np.float64]
    rates: NDArray[np.float64]
    counts: NDArray[np.float64]
    rises: NDArray[np.float32]


def late_label_value(offers: Offers, n: float, mean: float, pending: float, arrivals: float, rate: float) -> float:
    """Return what one more label is worth at a belief, in the unit of the offers.

    Parameters
    ----------
    offers : Offers
        What arrivals bring.
    n : float
        Belief size: how many observations the estimate is worth.
    mean : float
        Expected success rate.
    pending : float
        The number of labels pending, which need not be whole.
    arrivals : float
        Arrivals per mean delay of a label.
    rate : float
        Discount rate per mean delay of a label.

    Returns
    -------
    float
        Money. It is an estimate.

    Examples
    --------
    >>> from lenience import Belief, Delayed, Offer
    >>> loans = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    >>> late = Delayed(offers=loans, arrivals=50, discount_rate=0.5, label_delay=0.25)
    >>> late.solve(Belief(2, 1)).limit(Belief(2, 1), Offer(0.1, 0.8))
    11
    >>> [late_label_value(loans, 2, 0.5, m, arrivals=12.5, rate=0.125) > 0.03 for m in (10, 11)]
    [True, False]
    """
    rise = 0.0
    first, between = between_powers(arrivals, *ARRIVALS)
    for power, share in ((first, 1.0 - between), (first + 1, between)):
        if share > 0.0:
            rise += share * look_up_rise(*_node(offers, power, float(rate)), float(n), float(mean), float(pending))
    arrays = _arrays(offers)
    solved = 2.0 ** (first + between)  # the arrivals, within what is solved
    lines = arrays.amount, arrays.cost, arrays.start, arrays.share
    return arrays.unit * label_at(rise, solved / (rate + pending), float(mean), *lines)


@lru_cache(maxsize=NODES)
def _arrays(offers: Offers) -> OfferArrays:
    return prepare(offers)


@lru_cache(maxsize=NODES)
def _node(offers: Offers, arrivals: int, rate: float) -> LateLabelNode:
    """Solve the problem with 2^arrivals arrivals and a discount rate per mean delay, from several belief sizes on."""
    parts = []
    for first in (SMALLEST, *STARTS):
        sizes, rates, counts, labels = label_rows(offers, 2.0**arrivals, rate, first, LARGEST, FINENESS, POINTS)
        kept = sizes < (math.inf if first == SMALLEST else FEW)
        parts.append((sizes[kept], rates[kept], labels[kept]))
    sizes, rates, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(sizes)
    sizes, rates, labels = sizes[order], rates[order], labels[order]
    arrays = _arrays(offers)
    labels /= arrays.unit
    rises = labels * ((rate + counts) / 2.0**arrivals)
    for share, gain in zip(arrays.share.tolist(), best_gains(arrays, rates), strict=True):
        own = gain[..., None]
        rises += share * (np.maximum(own + labels, 0.0) - np.maximum(own, 0.0))
    return LateLabelNode(sizes, rates, counts, rises.astype(np.float32))


@compiled
def look_up_rise(
    sizes: NDArray[np.float64],
    rates: NDArray[np.float64],
    counts: NDArray[np.float64],
    rises: NDArray[np.float32],
    n: float,
    mean: float,
    pending: float,
) -> float:
    """Return Y of :class:`LateLabelNode` at a belief, with a number pending. Beside the table it is 0."""
    last = counts.size - 1
    if pending > counts[last]:
        return 0.0
    count = min(max(int(np.searchsorted(counts, pending)) - 1, 0), last - 1)
    part = (pending - counts[count]) / (counts[count + 1] - counts[count])
    row = min(max(int(np.searchsorted(sizes, n)) - 1, 0), max(sizes.size - 2, 0))
    share = 0.0
    if sizes.size > 1:
        share = min(max(math.log(n / sizes[row]) / math.log(sizes[row + 1] / sizes[row]), 0.0), 1.0)
    total = 0.0
    for step in range(2):
        weight = share if step else 1.0 - share
        if weight == 0.0:
            continue
        line = rates[row + step]
        if not line[0] <= mean <= line[line.size - 1]:
            continue
        left = min(max(int(np.searchsorted(line, mean)) - 1, 0), line.size - 2)
        place = (mean - line[left]) / (line[left + 1] - line[left])
        for side in range(2):
            values = rises[row + step, left + side]
            rise = values[count] + part * (values[count + 1] - values[count])
            total += weight * (place if side else 1.0 - place) * rise
    return total
