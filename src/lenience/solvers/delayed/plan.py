"""Choose how far to look ahead and how many pending outcomes to follow with late labels, and verify the choice.

The gap between the bounds of :mod:`lenience.solvers.delayed.recursion` at the prior has three sources:

- the look-ahead N. Relative to the value, its share of the gap is about the same as without delay (within 30% in nine
  problems). Without delay, the recursion of :mod:`lenience.solvers.stopping.solve` computes it in milliseconds;
- the pending cap M. With x = M μ/λ, the relative gap follows one curve in x up to a factor, which a first coarse solve
  measures. Beyond x = 1 it follows the Poisson tail P(pending > M) (measured for 50 to 5,000 arrivals a year);
- the states dropped at the ends of the band, at most twice ``drop``.

These guesses affect only the run time. The reported gap is always proved. If it is above the tolerance, the solve is
repeated with a longer look-ahead and a higher cap.
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
PLANNING = 3e-5  # seconds for each discounted arrival, to choose the look-ahead
# The logarithm of the relative gap that the cap leaves, up to a constant, at M μ/λ = 0, 0.06, 0.12, …, as measured.
_SHARE = (0.0, 0.06, 0.12, 0.24, 0.5, 0.75, 0.9, 1.0)
_LOG_GAP = (4.2, 3.14, 2.08, 0.9, -0.92, -2.5, -3.7, -4.6)


class DelayedProblem(NamedTuple):
    """The problem as numbers: the prior (n, s, f = n − s), the cost, and the rates λ, r and μ per unit of time."""

    n: float
    s: float
    f: float
    cost: float
    arrivals: float
    rate: float
    resolve: float

    @property
    def horizon(self) -> float:
        """The discounted number of arrivals, g = λ/r."""
        return self.arrivals / self.rate

    @property
    def in_flight(self) -> float:
        """The mean number pending if everyone is accepted, λ/μ."""
        return self.arrivals / self.resolve


class DelayedSolution(NamedTuple):
    """Bounds of the value at the prior by number pending, with the look-ahead, the cap and the gap reached."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    band: DelayedBand
    look_ahead: int
    pending_cap: int
    relative_gap: float


class DelayedPlan(NamedTuple):
    """A look-ahead and a cap, with the estimated time and memory of the solve."""

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
    """Return bounds of the value at the prior within a relative gap of ``tolerance``.

    The gap is relative to the value, or to a thousandth of the value of knowing p if the value is smaller than that,
    and never to less than 1e-10 g, because double precision cannot prove more. If both ``pending_cap`` and
    ``look_ahead`` are given, there is one solve, whatever the gap. If one of them is given, there are at most two.
    """
    scale = max(1e-3 * clairvoyant(problem), 1e-10 * problem.horizon)
    if pending_cap is not None and look_ahead is not None:
        plan = estimate_cost(problem, look_ahead, pending_cap)
        _check_effort(problem, plan, tolerance, seconds)
        return _solve(problem, plan, tolerance, scale, rows)

    # Reject hopeless problems before any solve.
    least = _least_plan(problem)
    if least.seconds > 10.0 * seconds:
        _check_effort(problem, least, tolerance, seconds)

    # A coarse solve measures the size of the value and the factor of the gap that is due to the cap.
    in_flight = problem.in_flight
    coarse_cap = min(pending_cap or max(3, math.ceil(in_flight / 8)), 800)
    # It leaves a gap of at least 10/g (30/g to 110/g were measured), so a problem that is too large is known before it.
    likely = min(10.0 / problem.horizon, 1.0)
    _check_effort(
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
        # It is proved that rejecting is optimal at the prior with nothing pending, so the value is 0 for any cap.
        rest = tolerance
    plan = _plan(problem, 0.5 * tolerance, 0.3 * tolerance, rest, coarse_cap, pending_cap, look_ahead)
    scale = max(scale, float(coarse.lower[0]))
    fixed = pending_cap is not None or look_ahead is not None
    spent = 0.0
    for attempt in range(5):
        _check_effort(problem, plan, tolerance, seconds - spent)
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


def least_seconds(problem: DelayedProblem) -> float:
    """Estimate from below how long a proof takes, with the solves without delay that choose its look-ahead."""
    return _least_plan(problem).seconds + PLANNING * problem.horizon


def _least_plan(problem: DelayedProblem) -> DelayedPlan:
    """Return a plan that is smaller than that of every measured problem with a tolerance below 0.01."""
    return estimate_cost(problem, math.ceil(0.5 * problem.horizon), math.ceil(0.1 * problem.in_flight))


def clairvoyant(problem: DelayedProblem) -> float:
    """Return g E(p − c)⁺, the value of knowing p, which is an upper bound of the value."""
    return problem.horizon * gain_of_knowing(problem.n, problem.s, problem.cost)


def rows_for(problem: DelayedProblem, relative: float) -> int:
    """Return the look-ahead that leaves a relative gap of about ``relative``, computed as if there were no delay."""
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
    """Return the cap that leaves a relative gap of about ``relative``, if the cap ``at`` leaves ``measured``."""
    in_flight = problem.in_flight
    if in_flight <= 2:
        return max(at, 4 + math.ceil(-math.log(relative) / 1.2))
    level = math.log(relative / measured) + float(np.interp(at / in_flight, _SHARE, _LOG_GAP))
    if level > _LOG_GAP[-1]:
        share = float(np.interp(-level, [-x for x in _LOG_GAP], _SHARE))
        return max(at, math.ceil(share * in_flight))
    return max(at, _poisson_cap(in_flight, 0.5 * math.exp(max(level - _LOG_GAP[-1], -600.0))))


def _poisson_cap(mean: float, tail: float) -> int:
    """Return 1 + the smallest k that a Poisson variable of this mean exceeds with a probability below ``tail``.

    The probability falls with k, so bisection finds it: with 10¹² labels in flight a list of candidates would be long.

    >>> _poisson_cap(30.0, 1e-9)
    69
    """
    from scipy.special import gammainc  # scipy.stats has this quantile, but importing it takes 60 MB of memory

    low, high = math.floor(mean) - 1, math.ceil(mean + 40 * math.sqrt(mean) + 400)
    while high > low + 1:
        between = (low + high) // 2
        if gammainc(between + 1.0, mean) < tail:
            high = between
        else:
            low = between
    return high + 1


def estimate_cost(problem: DelayedProblem, look_ahead: int, pending_cap: int) -> DelayedPlan:
    """Estimate the time and memory of a solve from the measured widths of bands."""
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
    """Return the look-ahead and the cap that are given, or that reach their shares of the gap."""
    return estimate_cost(
        problem,
        look_ahead or rows_for(problem, ahead_share),
        pending_cap or cap_for(problem, cap_share, measured, at),
    )


def _check_effort(problem: DelayedProblem, plan: DelayedPlan, tolerance: float, seconds: float) -> None:
    """Raise TooLargeError if a plan takes too much time or memory."""
    if plan.memory <= MEMORY_LIMIT and plan.seconds <= seconds:
        return
    raise TooLargeError(
        f"Solving {problem.arrivals:,.10g} arrivals a year to a tolerance of {tolerance:g}",
        seconds=plan.seconds,
        allowed_seconds=max(seconds, 0.0),
        detail=(
            f"{_show(plan.memory / 2**20)} MB; {_show(plan.look_ahead)} rows, up to {_show(plan.pending_cap)} pending"
        ),
        allowed=f"{max(seconds, 0.0):,.0f} s or {MEMORY_LIMIT / 2**20:,.0f} MB",
        field=("tolerance", "seconds"),
        value=tolerance,
        hint="Use a larger tolerance or more seconds.",
    )


def _show(number: float) -> str:
    """Format a size with all digits, or in scientific notation if it is huge.

    >>> _show(123_456.7), _show(10**20)
    ('123,457', '1e+20')
    """
    return f"{number:,.0f}" if number < 1e12 else f"{number:.2g}"


def _solve(
    problem: DelayedProblem, plan: DelayedPlan, tolerance: float, scale: float, rows: int | None
) -> DelayedSolution:
    """Run the recursion once and convert its bounds of Q to bounds of V."""
    table = plan.look_ahead // 2 if rows is None else min(rows, plan.look_ahead)
    # Q is never above g, so a drop of at least 1e-15 g loses nothing and avoids denormal numbers.
    drop = max(0.05 * tolerance * scale, 1e-15 * problem.horizon)
    band = DelayedBand(*solve_delayed(*problem, plan.look_ahead, plan.pending_cap, drop, max(table, 1)))
    n, s, c = problem.n, problem.s, problem.cost
    # V = Q + g (p̂ − c) takes five roundings of numbers that are at most g or Q.
    shift = problem.horizon * ((s - c * n) / n)
    slack = 2e-15 * (problem.horizon + np.abs(band.upper))
    lower = np.maximum(band.lower + shift - slack, 0.0)
    upper = np.maximum(band.upper + shift + slack, 0.0)
    if _rejects_at_once(band):
        # It is proved that rejecting is optimal with nothing pending. Then nothing ever changes, and the value is 0.
        lower[0] = upper[0] = 0.0
    gap = float(upper[0] - lower[0]) / max(float(lower[0]), scale, 1e-300)
    return DelayedSolution(lower, upper, band, plan.look_ahead, plan.pending_cap, gap)


def _rejects_at_once(band: DelayedBand) -> bool:
    """Return whether rejecting is proved optimal at the prior with nothing pending."""
    if band.unlimited[0] == 0:
        return False
    return bool(band.first[0] > 0 or (band.limits[0] == 0 and band.settled[0]))


def _without_delay(problem: DelayedProblem, rows: int | None) -> float:
    """Return the lower bound of the value without delay that a number of rows proves; None: as many as needed."""
    gamma = problem.arrivals / (problem.arrivals + problem.rate)
    sure = 1e-10 * problem.horizon
    return gamma * solve_discounted(problem.n, problem.s, problem.cost, gamma, 1, sure, rows).value.lower


def estimate_value(problem: DelayedProblem, solution: DelayedSolution) -> float:
    """Estimate the value at the prior with :mod:`lenience.solvers.delayed.estimate`. The estimate is not a bound."""
    in_flight = problem.in_flight
    nodes = pending_nodes(math.ceil(in_flight + 6 * math.sqrt(in_flight) + 8), ratio=1.05)
    rows = max(solution.look_ahead, rows_for(problem, 1e-6))
    drop = 1e-6 * max(float(solution.lower[0]), 1e-3 * clairvoyant(problem))
    worth = estimate_delayed(*problem, rows, nodes, drop)
    return worth + problem.horizon * ((problem.s - problem.cost * problem.n) / problem.n)
