"""Solve the problem with offers to a tolerance: choose how far to look ahead, and check what was reached.

Amounts are divided by their mean before the recursion runs, so that a tolerance means the same in every currency.

Rounding alone keeps the bounds apart: by about 1.6·10⁻¹⁴/(1−γ)² of the mean amount, and for a mixture whose largest
component has n observations by about 1.6·10⁻¹³ (n + 2)/(1−γ)^1.5 more. A smaller tolerance cannot be reached. The
bounds and the certificate then show the precision that was reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.solvers.offers.band import MARGIN, solve_offer_band
from lenience.solvers.offers.learning_gain import known_gain
from lenience.solvers.stopping.solve import check_size, guess_look_ahead, progress

SECONDS_A_STATE = 2e-9  # on one core
MOST_STATES = 1e11  # about three minutes
MOST_TABLE = 2e8  # states that the table keeps, of 16 bytes each
ATTEMPTS = 4
MOST_KINKS = 16  # that the guess of the look-ahead considers


class OfferArrays(NamedTuple):
    """Hold the offers as the kernel takes them, with the amounts divided by ``unit``."""

    amount: NDArray[np.float64]
    cost: NDArray[np.float64]
    start: NDArray[np.int64]
    share: NDArray[np.float64]
    kink: NDArray[np.float64]
    slope: NDArray[np.float64]
    breaks: NDArray[np.float64]
    unit: float


class OfferSolution(NamedTuple):
    """Hold the value of a label at the first rows, and the bounds at the prior, in money."""

    value: Bounds
    label_value: Bounds
    rows: NDArray[np.int64]  # row k: its first state, its position in the table, its number of states
    table: NDArray[np.float64]  # lower and upper bounds of the value of a label
    undecided: int
    look_ahead: int
    width: float  # the widest bounds of the value at the first rows
    states: int


def prepare(offers: Offers, charges: Sequence[float] = ()) -> OfferArrays:
    """Return the kernel's arrays: offers that are never the best of their menu are left out.

    ``charges`` are what accepting each offer costs beside its expected loss, in money. An offer of amount a with the
    charge t has the break-even c + t/a. That may be 1 or more: then only the label can make it worth accepting.
    """
    unit = offers.mean_amount
    amount: list[float] = []
    cost: list[float] = []
    start = [0]
    shares: list[float] = []
    slopes: dict[float, float] = {}
    breaks: set[float] = set()
    charged = charges or [0.0] * len(offers.amount)
    menus: list[list[tuple[float, float]]] = [[] for _ in offers.share]
    for a, c, charge, menu in zip(offers.amount, offers.cost, charged, offers.menu_of, strict=True):
        menus[menu].append((a / unit, c + charge / a if charge else c))
    for lines, share in zip(menus, offers.share, strict=True):
        if share == 0.0:
            continue
        best, crossings = upper_envelope(lines)
        amount += [a for a, _ in best]
        cost += [c for _, c in best]
        start.append(len(amount))
        shares.append(share)
        zero = min(c for _, c in best)
        breaks.update(at for at in (*crossings, zero) if at < 1.0)
        # The kinks of the best gain where it is positive.
        active = [a for (a, _), until in zip(best, [*crossings, math.inf], strict=True) if until > zero]
        kinks = [zero, *(at for at in crossings if at > zero)]
        before = 0.0
        for at, a in zip(kinks, active, strict=True):
            if at < 1.0:  # A gain from 1 on is never made.
                slopes[at] = slopes.get(at, 0.0) + share * (a - before)
            before = a
    kink = sorted(slopes)
    return OfferArrays(
        np.array(amount),
        np.array(cost),
        np.array(start, dtype=np.int64),
        np.array(shares),
        np.array(kink),
        np.array([slopes[at] for at in kink]),
        np.array(sorted(breaks)),
        unit,
    )


def upper_envelope(lines: list[tuple[float, float]]) -> tuple[list[tuple[float, float]], list[float]]:
    """Return the lines a(p − c) that are largest somewhere in 0 < p < 1, by slope, and where one follows another."""
    if len(lines) == 1:
        return lines, []
    best: list[tuple[float, float]] = []
    crossings: list[float] = []
    for a, c in sorted(lines, key=lambda line: (line[0], -line[1])):
        if best and best[-1][0] == a:
            # The same amount at a lower break-even is better everywhere.
            best.pop()
            if crossings:
                crossings.pop()
        while best:
            at = _crossing(best[-1], (a, c))
            if at <= 0.0 or (crossings and at <= crossings[-1]):
                best.pop()
                if crossings:
                    crossings.pop()
                continue
            if at < 1.0:
                best.append((a, c))
                crossings.append(at)
            break
        if not best:
            best.append((a, c))
    return best, crossings


def _crossing(shallow: tuple[float, float], steep: tuple[float, float]) -> float:
    """Return the mean from which the steeper line is the larger one."""
    (a, c), (b, d) = shallow, steep
    return c if c == d else (b * d - a * c) / (b - a)


def solve_offers(
    prior: Belief | MixtureBelief,
    offers: Offers,
    discount: float,
    rows: int,
    tolerance: float,
    look_ahead: int | None = None,
    charges: Sequence[float] = (),
) -> OfferSolution:
    """Solve from a prior for its first ``rows`` rows; a given ``look_ahead`` is used as it is.

    The tolerance is in units of the mean amount. With ``charges``, each acceptance of an offer costs its charge too.
    """
    arrays = prepare(offers, charges)
    if arrays.kink.size == 0:  # No offer ever pays, so no label is worth anything.
        nothing = Bounds(0.0, 0.0)
        empty = np.zeros((rows, 3), dtype=np.int64)
        return OfferSolution(nothing, nothing, empty, np.zeros((2, 0)), 0, 0, 0.0, 0)
    mixture, log_start, mean_error = components(prior)
    mean = prior.mean
    scale = 1.0 / (1.0 - discount)
    target = max(tolerance, _rounding_floor(scale, mean_error))
    drop = target / scale / 8.0
    ahead = _guess_look_ahead(arrays, prior.n + rows, discount, target) if look_ahead is None else look_ahead
    for attempt in range(ATTEMPTS):
        last = rows + ahead
        progress[:] = 0, last
        space = int(_states(arrays, prior.n, rows, drop)) + 1024
        _check_effort(arrays, prior.n, rows, last, drop)
        low, high, widest, undecided, states, index, table = solve_offer_band(
            mixture, log_start, *arrays[:7], discount, last, rows, drop, mean_error, arrays.unit, space, progress
        )
        width = max(widest, high - low) * scale
        if width <= target or look_ahead is not None or attempt == ATTEMPTS - 1 or discount == 0.0:
            break
        ahead += math.ceil((math.log(width / target) + 1.0) / -math.log(discount))
        drop /= 64.0
    known = math.fsum(
        b * max(mean - at, 0.0) for at, b in zip(arrays.kink.tolist(), arrays.slope.tolist(), strict=True)
    )
    slack = 0.0 if high == 0.0 and known == 0.0 else 8e-15 * (1.0 + high)
    unit = arrays.unit
    value = Bounds(max(known + low - slack, 0.0) * scale * unit, (known + high + slack) * scale * unit)
    return OfferSolution(
        value=value,
        label_value=Bounds(*table[:, index[0, 1]].tolist()) if index[0, 2] else Bounds(0.0, 0.0),
        rows=index,
        table=table,
        undecided=undecided,
        look_ahead=ahead,
        width=widest * scale * unit,
        states=states,
    )


def offer_seconds(prior: Belief | MixtureBelief, offers: Offers, discount: float, rows: int, tolerance: float) -> float:
    """Estimate how many seconds :func:`solve_offers` takes, if its first attempt is enough."""
    scale = 1.0 / (1.0 - discount)
    target = max(tolerance, _rounding_floor(scale, components(prior)[2]))
    arrays = prepare(offers)
    last = rows + _guess_look_ahead(arrays, prior.n + rows, discount, target)
    return _states(arrays, prior.n, last, target / scale / 8.0) * SECONDS_A_STATE


def gain_of_knowing(prior: Belief | MixtureBelief, offers: Offers) -> float:
    """Bound from above what knowing the success rate adds to the profit of an arrival, in money."""
    arrays = prepare(offers)
    mixture, log_start, _ = components(prior)
    return arrays.unit * known_gain(0, 0, mixture, log_start, arrays.kink, arrays.slope)


def table_states(prior: Belief | MixtureBelief, offers: Offers, rows: int) -> float:
    """Estimate how many states a table of so many rows has."""
    return _states(prepare(offers), prior.n, rows, 1e-9)


def components(prior: Belief | MixtureBelief) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the prior's components, the logarithms of their starting weights, and the error of a posterior mean."""
    beliefs = prior.beliefs if isinstance(prior, MixtureBelief) else (prior,)
    weights = prior.weights if isinstance(prior, MixtureBelief) else (1.0,)
    mixture = np.empty((len(beliefs), 3))
    for line, (belief, weight) in enumerate(zip(beliefs, weights, strict=True)):
        check_size(belief.n)
        mixture[line] = weight, belief.s, belief.n - belief.s
    if len(beliefs) == 1:
        return mixture, np.zeros(1), 0.0
    log_start = np.array(
        [math.log(weight) + math.lgamma(s + f) - math.lgamma(s) - math.lgamma(f) for weight, s, f in mixture.tolist()]
    )
    # The weights' relative error grows with the number of labels k, the distance of the components' means falls as n/k.
    return mixture, log_start, 2e-14 * (2.0 + max(belief.n for belief in beliefs))


def _rounding_floor(scale: float, mean_error: float) -> float:
    """Estimate how far rounding alone puts the bounds apart. A longer look-ahead does not make them any closer.

    The posterior means of a mixture are known only to within ``mean_error``, which is often the larger part.
    """
    return 4.0 * MARGIN * scale * scale + 8.0 * mean_error * scale * math.sqrt(scale)


def _guess_look_ahead(arrays: OfferArrays, n: float, discount: float, target: float) -> int:
    """Guess how many rows it takes until the last row's bounds have closed to the target."""
    h = discount / (1.0 - discount)
    kinks, slopes = arrays.kink.tolist(), arrays.slope.tolist()
    if len(kinks) > MOST_KINKS:  # Every so many are enough for a guess.
        step = -(-len(kinks) // MOST_KINKS)
        kinks, slopes = kinks[::step], [math.fsum(slopes[i : i + step]) for i in range(0, len(slopes), step)]

    def gap(size: float) -> float:
        part = h / (size + h) / size
        gaps = [
            math.fsum(
                0.5 * slope * (math.hypot(math.sqrt(at * (1.0 - at) * part), at - kink) - abs(at - kink))
                for kink, slope in zip(kinks, slopes, strict=True)
            )
            for at in kinks
        ]
        return max(gaps, default=0.0)

    return guess_look_ahead(gap, n, discount, target)


def _states(arrays: OfferArrays, n: float, last: int, drop: float) -> float:
    """Estimate how many states are computed: between the lowest and the highest kink, and beside them."""
    distance = float(arrays.kink[-1] - arrays.kink[0])
    beside = 1.5 * math.sqrt(2.0 * max(math.log(1.0 / drop), 1.0) * 0.25 * (n + last))
    return last * (distance * (n + last) / 2.0 + beside)


def _check_effort(arrays: OfferArrays, n: float, rows: int, last: int, drop: float) -> None:
    """Raise TooLargeError for a problem that would take minutes."""
    states = _states(arrays, n, last, drop)
    if states > MOST_STATES or _states(arrays, n, rows, drop) > MOST_TABLE:
        raise TooLargeError(
            "Solving this problem",
            seconds=states * SECONDS_A_STATE,
            allowed_seconds=MOST_STATES * SECONDS_A_STATE,
            detail=f"{last:,} rows, about {states:.2g} states",
            allowed=f"{MOST_STATES * SECONDS_A_STATE / 60:,.0f} minutes or a table of {MOST_TABLE:.0g} states",
            field=("rows", "tolerance"),
            value=rows,
            hint="Use a larger tolerance or fewer rows.",
        )
