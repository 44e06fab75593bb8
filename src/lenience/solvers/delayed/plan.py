"""How far to look ahead, and how many pending to follow, when labels come late: chosen, then verified.

The enclosure of :mod:`lenience.solvers.delayed.recursion` has three sources of width at the prior:

- the look-ahead N. Relative to the value, it costs what it costs without delay, which the one-plane
  recursion of :mod:`lenience.solvers.stopping.solve` tells in milliseconds (measured over nine problems: within 30%);
- the pending cap M. With x = M μ/λ the relative gap follows one curve in x up to a factor, which a first coarse
  solve supplies, and beyond x = 1 the Poisson tail P(pending > M) (measured for 50 to 5,000 arrivals a year);
- the states dropped at the band's ends, at most twice ``drop``.

These are guesses that decide the cost only. The gap that is reported is the one that was proved; when it is
above the tolerance, the solve is repeated with a longer look-ahead and a higher cap.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError, TooLargeError
from lenience.solvers.delayed.estimate import estimate_delayed, pending_nodes
from lenience.solvers.delayed.recursion import DelayedBand, solve_delayed
from lenience.solvers.stopping.clairvoyant import gain_of_knowing
from lenience.solvers.stopping.solve import solve_discounted

NANOSECONDS = 2.0  # measured per state and pending count, both bounds together: 1.4 to 2.2
MEMORY_LIMIT = 2 * 1024**3
# The relative gap that the cap leaves, up to a factor, at M μ/λ = 0.06, 0.12, …: measured, see the docs.
_SHARE = (0.0, 0.06, 0.12, 0.24, 0.5, 0.75, 0.9, 1.0)
_LOG_GAP = (4.2, 3.14, 2.08, 0.9, -0.92, -2.5, -3.7, -4.6)


class DelayedProblem(NamedTuple):
    """The numbers of the problem: prior, cost, and rates per unit of time."""

    n: float
    s: float
    f: float
    cost: float
    arrivals: float
    rate: float
    resolve: float

    @property
    def horizon(self) -> float:
        """g = λ/r, the discounted number of arrivals."""
        return self.arrivals / self.rate

    @property
    def in_flight(self) -> float:
        """λ/μ, the mean number pending when everyone is accepted."""
        return self.arrivals / self.resolve


class DelayedSolution(NamedTuple):
    """An enclosure of the value at the prior for each number pending, and how it was reached."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    band: DelayedBand
    look_ahead: int
    pending_cap: int
    relative_gap: float


class DelayedPlan(NamedTuple):
    """A look-ahead and a cap, with what they are estimated to take."""

    look_ahead: int
    pending_cap: int
    seconds: float
    memory: float


def solve_problem(
    problem: DelayedProblem,
    *,
    rows: int | None,
    tolerance: float,
    pending_cap: int | None,
    look_ahead: int | None,
    seconds: float,
) -> DelayedSolution:
    """Enclose the value at the prior within a relative gap of ``tolerance``.

    The gap is relative to the value, or to a thousandth of the clairvoyant's where the value is less than
    that (and never to less than 1e-10 g: double precision proves no more). With both ``pending_cap`` and
    ``look_ahead`` given there is one solve, whatever gap it leaves; with one of them, there are two at most.
    """
    scale = max(1e-3 * clairvoyant(problem), 1e-10 * problem.horizon)
    if pending_cap is not None and look_ahead is not None:
        plan = estimate_cost(problem, look_ahead, pending_cap)
        _refuse(problem, plan, tolerance, seconds)
        return _solve(problem, plan, tolerance, scale, rows)

    # The least that any tolerance below a hundredth was seen to take: refuse the absurd before the first solve.
    least = estimate_cost(problem, math.ceil(0.5 * problem.horizon), math.ceil(0.1 * problem.in_flight))
    if least.seconds > 10.0 * seconds:
        _refuse(problem, least, tolerance, seconds)

    # A coarse solve gives the size of the value and the factor of the cap's share.
    in_flight = problem.in_flight
    coarse_cap = min(pending_cap or max(3, math.ceil(in_flight / 8)), 800)
    # It leaves a gap of at least 10/g (30/g to 110/g were seen), so that what is too large can be told without it.
    likely = min(10.0 / problem.horizon, 1.0)
    _refuse(
        problem,
        _plan(problem, 0.5 * tolerance, 0.3 * tolerance, likely, coarse_cap, pending_cap, look_ahead),
        tolerance,
        seconds,
    )
    coarse = _solve(
        problem,
        estimate_cost(problem, min(look_ahead or 10**9, rows_for(problem, 3e-4), 20_000), coarse_cap),
        1e-4,
        scale,
        1,
    )
    rest = min(coarse.relative_gap, 1.0)
    if rest == 0.0:
        # Rejecting at the prior, with nothing pending, is proved: the value is 0 whatever the cap.
        rest = tolerance
    plan = _plan(problem, 0.5 * tolerance, 0.3 * tolerance, rest, coarse_cap, pending_cap, look_ahead)
    scale = max(scale, float(coarse.lower[0]))
    fixed = pending_cap is not None or look_ahead is not None
    spent = 0.0
    for attempt in range(5):
        _refuse(problem, plan, tolerance, seconds - spent)
        solution = _solve(problem, plan, tolerance, scale, rows)
        if solution.relative_gap <= tolerance or (fixed and attempt == 1):
            return solution
        spent += plan.seconds
        scale = max(scale, float(solution.lower[0]))
        excess = 3.0 * solution.relative_gap / tolerance
        shorter = 0.5 * tolerance / excess
        higher = max(
            cap_for(problem, 0.3 * tolerance / excess, rest, coarse_cap),
            plan.pending_cap + math.ceil(2 * math.sqrt(in_flight + 1)),
        )
        plan = estimate_cost(
            problem,
            look_ahead or max(rows_for(problem, shorter), plan.look_ahead + plan.look_ahead // 5),
            pending_cap or higher,
        )
    raise InputError.because(
        f"of {tolerance!r} cannot be proved in double precision here; the relative gap reached is "
        f"{solution.relative_gap:.1e}",
        "tolerance",
        label="a tolerance",
        value=tolerance,
        hint=f"Use a tolerance of at least {solution.relative_gap:.1e}.",
        code="tolerance_not_reached",
    )


def clairvoyant(problem: DelayedProblem) -> float:
    """g E(p − c)⁺, what one who knew p would earn: an upper bound of the value."""
    return problem.horizon * gain_of_knowing(problem.n, problem.s, problem.cost)


def rows_for(problem: DelayedProblem, relative: float) -> int:
    """The look-ahead whose share of the relative gap is about ``relative``, as it would be without delay."""
    value = _without_delay(problem, None)
    if value <= 0.0:
        value = max(1e-3 * clairvoyant(problem), 1e-10 * problem.horizon)
    low, high = 16, 64
    while high < 40 * problem.horizon + 200 and value - _without_delay(problem, high) > relative * value:
        low, high = high, 2 * high
    while high > low + max(low // 16, 8):
        between = (low + high) // 2
        if value - _without_delay(problem, between) > relative * value:
            low = between
        else:
            high = between
    return high


def cap_for(problem: DelayedProblem, relative: float, measured: float, at: int) -> int:
    """The cap whose share of the relative gap is about ``relative``, given the gap ``measured`` with the cap ``at``."""
    in_flight = problem.in_flight
    if in_flight <= 2:
        return max(at, 4 + math.ceil(-math.log(relative) / 1.2))
    level = math.log(relative / measured) + float(np.interp(at / in_flight, _SHARE, _LOG_GAP))
    if level > _LOG_GAP[-1]:
        share = float(np.interp(-level, [-x for x in _LOG_GAP], _SHARE))
        return max(at, math.ceil(share * in_flight))
    return max(at, _poisson_cap(in_flight, 0.5 * math.exp(max(level - _LOG_GAP[-1], -600.0))))


def _poisson_cap(mean: float, tail: float) -> int:
    """The least k that a Poisson variable of this mean exceeds with probability below ``tail``, and one more.

    The probability falls with k, so it is found by bisection: for 10¹² in flight a list of candidates would be long.

    >>> _poisson_cap(30.0, 1e-9)
    69
    """
    from scipy.special import gammainc  # scipy.stats has it ready, and costs 60 MB

    low, high = math.floor(mean) - 1, math.ceil(mean + 40 * math.sqrt(mean) + 400)
    while high > low + 1:
        between = (low + high) // 2
        if gammainc(between + 1.0, mean) < tail:
            high = between
        else:
            low = between
    return high + 1


def estimate_cost(problem: DelayedProblem, look_ahead: int, pending_cap: int) -> DelayedPlan:
    """The time and the memory that a solve will take, from the width that the band had when measured."""
    spread = problem.cost * (1 - problem.cost)
    width = min(8 * math.sqrt(spread * min(problem.horizon, look_ahead / 2)) + 16, look_ahead + 1)
    updates = width * look_ahead * (pending_cap + 1)
    memory = (pending_cap + 1) * (2 * width + 344) * 24.0
    return DelayedPlan(look_ahead, pending_cap, updates * NANOSECONDS * 1e-9, memory)


def _plan(
    problem: DelayedProblem,
    ahead_share: float,
    cap_share: float,
    measured: float,
    at: int,
    pending_cap: int | None,
    look_ahead: int | None,
) -> DelayedPlan:
    return estimate_cost(
        problem,
        look_ahead or rows_for(problem, ahead_share),
        pending_cap or cap_for(problem, cap_share, measured, at),
    )


def _refuse(problem: DelayedProblem, plan: DelayedPlan, tolerance: float, seconds: float) -> None:
    if plan.memory <= MEMORY_LIMIT and plan.seconds <= seconds:
        return
    raise TooLargeError(
        f"Solving {problem.arrivals:,.10g} arrivals a year to a tolerance of {tolerance:g}",
        seconds=plan.seconds,
        allowed_seconds=max(seconds, 0.0),
        detail=(
            f"{_told(plan.memory / 2**20)} MB; {_told(plan.look_ahead)} rows, up to {_told(plan.pending_cap)} pending"
        ),
        allowed=f"{max(seconds, 0.0):,.0f} s or {MEMORY_LIMIT / 2**20:,.0f} MB",
        field=("tolerance", "seconds"),
        value=tolerance,
        hint="Use a larger tolerance or more seconds.",
    )


def _told(number: float) -> str:
    """A size in full, as long as it can be read.

    >>> _told(123_456.7), _told(10**20)
    ('123,457', '1e+20')
    """
    return f"{number:,.0f}" if number < 1e12 else f"{number:.2g}"


def _solve(
    problem: DelayedProblem, plan: DelayedPlan, tolerance: float, scale: float, rows: int | None
) -> DelayedSolution:
    table = plan.look_ahead // 2 if rows is None else min(rows, plan.look_ahead)
    # The clairvoyant's worth of rejecting is never above g, so the drop stays above the smallest normal numbers.
    drop = max(0.05 * tolerance * scale, 1e-15 * problem.horizon)
    band = DelayedBand(*solve_delayed(*problem, plan.look_ahead, plan.pending_cap, drop, max(table, 1)))
    n, s, c = problem.n, problem.s, problem.cost
    # V = Q + g (p̂ − c): five roundings of numbers no larger than g and Q.
    shift = problem.horizon * ((s - c * n) / n)
    slack = 2e-15 * (problem.horizon + np.abs(band.upper))
    lower = np.maximum(band.lower + shift - slack, 0.0)
    upper = np.maximum(band.upper + shift + slack, 0.0)
    if _rejects_at_once(band):
        # Rejecting with nothing pending is proved, and then nothing ever changes: the value is exactly 0.
        lower[0] = upper[0] = 0.0
    gap = float(upper[0] - lower[0]) / max(float(lower[0]), scale, 1e-300)
    return DelayedSolution(lower, upper, band, plan.look_ahead, plan.pending_cap, gap)


def _rejects_at_once(band: DelayedBand) -> bool:
    if band.unlimited[0] == 0:
        return False
    return bool(band.first[0] > 0 or (band.limits[0] == 0 and band.settled[0]))


def _without_delay(problem: DelayedProblem, rows: int | None) -> float:
    """The lower bound of the value, if labels came at once, that so many rows (or as many as it takes) prove."""
    gamma = problem.arrivals / (problem.arrivals + problem.rate)
    sure = 1e-10 * problem.horizon
    return gamma * solve_discounted(problem.n, problem.s, problem.cost, gamma, 1, sure, rows).value.lower


def estimate_value(problem: DelayedProblem, solution: DelayedSolution) -> float:
    """The value at the prior by the geometric grid of :mod:`lenience.solvers.delayed.estimate`; not a bound."""
    in_flight = problem.in_flight
    nodes = pending_nodes(math.ceil(in_flight + 6 * math.sqrt(in_flight) + 8), ratio=1.05)
    rows = max(solution.look_ahead, rows_for(problem, 1e-6))
    drop = 1e-6 * max(float(solution.lower[0]), 1e-3 * clairvoyant(problem))
    worth = estimate_delayed(*problem, rows, nodes, drop)
    return worth + problem.horizon * ((problem.s - problem.cost * problem.n) / problem.n)
