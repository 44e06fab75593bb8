"""lenience delay: what late labels cost, and how many may be pending."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from lenience.cli.options import (
    FILE,
    as_dict,
    bold,
    console,
    cost_option,
    json_option,
    print_json,
    prior_option,
    table,
    told_units,
)
from lenience.cli.progress import each, saying
from lenience.core.belief import Belief
from lenience.core.errors import InputError, TooLargeError
from lenience.core.formatting import counted, duration
from lenience.core.validation import whole
from lenience.objectives.delayed import Delayed

if TYPE_CHECKING:
    from lenience.analysis.delay import DelayValue
    from lenience.core.bounds import Bounds
    from lenience.policies.beliefs.exposure import ExposurePolicy
    from lenience.simulation.delay_events import SimulatedValue

DELAYS = (1 / 12, 0.25, 0.5, 1.0)
MOST_SECONDS = 15.0  # of a solve, as estimated
MOST_SIMULATED = 30.0  # seconds, by the estimate, of what is simulated instead
REPLICATIONS = 1_000
ROW_SECONDS = 1e-4  # of a simulated policy, for each arrival that counts: to look up its limits takes longest
MOST_UPDATES = 2e9  # of the evaluation of one rival: about ten seconds
HALF = 1.96  # standard errors in half a 95 % interval
SIZES = (0, 1, 3, 8, 18, 48, 98)  # labels since the prior at which limits are printed


@click.command(short_help="What late labels cost, and how many acceptances may be pending.")
@cost_option
@click.option("--arrivals", type=float, required=True, help="Individuals a year.")
@click.option("--discount-rate", type=float, required=True, help="The yearly interest rate, such as 0.1.")
@click.option(
    "--label-delay",
    "delays",
    type=float,
    multiple=True,
    help="The mean delay of an outcome in years; may be repeated. Limits are shown for the last.",
)
@prior_option
@click.option("--cap", "caps", type=int, multiple=True, default=(1, 3, 10), help="Fixed caps to compare with.")
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="The relative gap of values.")
@click.option("--pending", type=int, default=0, show_default=True, help="How many are pending now.")
@click.option("--applicants", type=int, help="How many of this many applicants to accept now, at the prior.")
@click.option("--figure", type=FILE, help="Draw value against mean delay to this file (PNG, SVG or PDF).")
@click.option("--limits-figure", type=FILE, help="Draw the map of exposure limits to this file (PNG, SVG or PDF).")
@json_option
def delay(
    cost: float,
    arrivals: float,
    discount_rate: float,
    delays: tuple[float, ...],
    prior: Belief,
    caps: tuple[int, ...],
    tolerance: float,
    pending: int,
    applicants: int | None,
    figure: str | None,
    limits_figure: str | None,
    as_json: bool,
) -> None:
    """Labels that come late: the optimal exposure limits, and what policies that ignore what is pending lose.

    \b
    Example:
      lenience delay --cost 0.8 --arrivals 50 --discount-rate 0.1 --label-delay 0.25 --label-delay 1
      lenience delay --cost 0.8 --arrivals 50 --discount-rate 0.1 --label-delay 1 --applicants 12
    """
    from lenience.analysis.delay import OPTIMAL, rivals

    for option, path in (("--figure", figure), ("--limits-figure", limits_figure)):
        if path is not None:
            from lenience.plot.style import check_path

            check_path(path, option)
    if 0.0 in delays:
        raise InputError(
            "--label-delay must be a number above 0, not 0: for labels that come at once use lenience solve"
        )
    whole("pending", pending)
    for cap in caps:
        whole("cap", cap, least=1)
    if applicants is not None:
        whole("applicants", applicants)
    told_units(discount_rate, delays)
    problems = [Delayed(cost, arrivals, discount_rate, years) for years in delays or DELAYS]
    try:
        with saying("Solving for labels that come late"):
            policy = problems[-1].solve(prior, tolerance=tolerance, seconds=MOST_SECONDS)
    except TooLargeError as error:
        raise TooLargeError(f"{error}; here by --tolerance, or by the --arrivals of one segment") from error
    values = [
        row
        for problem in each("Evaluating what policies earn with late labels", problems)
        for row in _values(problem, policy, caps, tolerance)
    ]
    names = [OPTIMAL, *rivals(problems[-1], prior, caps)]
    drawn = _simulated(problems, prior, caps, {(row.policy, row.label_delay) for row in values})
    accept_now = None if applicants is None else policy.accept_now(prior, pending, applicants)
    files = _draw(problems[-1], prior, policy, values, figure, limits_figure)
    if as_json:
        print_json(
            {
                "objective": msgspec.to_builtins(policy.objective),
                "prior": msgspec.to_builtins(prior),
                "pending": pending,
                "limit": policy.limit(prior),
                "accept": policy.accepts(prior, pending),
                "accept_now": accept_now,
                "explanation": policy.explain(prior, pending),
                "value": as_dict(policy.value(prior, pending)),
                "expire_after": policy.expire_after,
                "certificate": {**msgspec.to_builtins(policy.certificate), "statement": policy.certificate.statement},
                "values": [
                    {"policy": row.policy, "label_delay": row.label_delay, "value": as_dict(row.value)}
                    for row in values
                ],
                "simulated": [
                    {"policy": name, "label_delay": years, "mean": one.mean, "half_width": HALF * one.error}
                    for (name, years), one in drawn.items()
                ],
                "figures": files,
            }
        )
        return
    years = list(dict.fromkeys(problem.label_delay for problem in problems))
    _print(policy, prior, pending, applicants, accept_now, values, drawn, names, years)
    for name in files:
        click.echo(f"Wrote {name}")


def _values(problem: Delayed, policy: ExposurePolicy, caps: tuple[int, ...], tolerance: float) -> list[DelayValue]:
    """What each policy earns at this delay, without those that would take too long."""
    from lenience.analysis.delay import OPTIMAL, DelayValue, evaluate_pending, rivals

    prior, years = policy.prior, problem.label_delay
    work: dict[str, Callable[[], Bounds]] = {
        OPTIMAL: lambda: (
            policy.value(prior)
            if problem == policy.objective
            else problem.enclose(prior, tolerance=tolerance, seconds=MOST_SECONDS)[0]
        )
    }
    for name, rival in rivals(problem, prior, caps).items():
        work[name] = partial(evaluate_pending, rival, problem, prior, tolerance, MOST_UPDATES)
    found = []
    for name, value in work.items():
        with suppress(TooLargeError):
            found.append(DelayValue(name, years, value()))
    return found


def _simulated(
    problems: list[Delayed], prior: Belief, caps: tuple[int, ...], exact: set[tuple[str, float]]
) -> dict[tuple[str, float], SimulatedValue]:
    """By simulation, what those policies earn whose exact evaluation would take too long, if that takes less."""
    from lenience.analysis.delay import rivals
    from lenience.simulation.delay_events import DelayLaw, arrivals_that_count, simulate_delays

    wanted = {}
    for problem in problems:
        others = rivals(problem, prior, caps).items()
        wanted[problem] = {name: one for name, one in others if (name, problem.label_delay) not in exact}
    seconds = sum(len(some) * arrivals_that_count(one) * ROW_SECONDS for one, some in wanted.items())
    if not any(wanted.values()) or seconds > MOST_SIMULATED:
        return {}
    count = sum(len(some) for some in wanted.values())
    click.echo(
        f"{counted(count, 'value')} would take too long to be exact: simulating, about {seconds:.0f} s …", err=True
    )
    found = {}
    for problem, some in wanted.items():
        law = DelayLaw("exponential", problem.label_delay)
        for one in simulate_delays(some, problem, prior, law, REPLICATIONS) if some else ():
            found[one.policy, problem.label_delay] = one
    return found


def _print(
    policy: ExposurePolicy,
    prior: Belief,
    pending: int,
    applicants: int | None,
    accept_now: int | None,
    values: list[DelayValue],
    drawn: dict[tuple[str, float], SimulatedValue],
    policies: list[str],
    delays: list[float],
) -> None:
    out = console()
    out.print(bold(policy.objective), f", prior n = {prior.n:g}, s = {prior.s:g}\n", sep="")
    out.print(policy.explain(prior, pending))
    if accept_now is not None:
        out.print(f"Of {applicants:,} applicants now, accept ", bold(f"{accept_now:,}"), ".", sep="")
    out.print("Value before the next arrival: ", bold(policy.value(prior, pending)), sep="")
    out.print(f"A label that has not come expires after {duration(policy.expire_after)}.\n")

    grid = table("Value before the first arrival, by mean delay")
    grid.add_column("policy")
    for years in delays:
        grid.add_column(duration(years), justify="right")
    known = {(row.policy, row.label_delay): f"{row.value.midpoint:.4f}" for row in values}
    for key, one in drawn.items():
        known[key] = f"{one.mean:.2f} ± {HALF * one.error:.2f}"
    for name in policies:
        grid.add_row(name, *(known.get((name, years), "–") for years in delays))
    out.print(grid)
    if drawn:
        out.print(f"±: simulated, {REPLICATIONS:,} replications with their 95 % interval; exact would take too long.")
    if len(known) < len(policies) * len(delays):
        out.print(
            "–: exact evaluation would take too long at this size; a shorter --label-delay or fewer --arrivals (those "
            "of one segment) would fit.\n"
        )

    limits = table(f"Accept while fewer than this many are pending (mean delay {duration(delays[-1])})")
    limits.add_column("labels n", justify="right")
    limits.add_column("successes s → limit")
    for k in SIZES:
        if k < policy.rows:
            limits.add_row(f"{prior.n + k:g}", _limits(policy, k))
    out.print(limits)
    out.print(policy.certificate.statement)


def _limits(policy: ExposurePolicy, k: int) -> str:
    """The limits of one row that are neither 0 nor without end."""
    from lenience.analysis.delay import limit_points

    points = limit_points(policy, [k])
    some = [f"{point.s:g} → {point.limit:,}" for point in points if point.limit]
    free = next((point.s for point in points if point.limit is None), None)
    if free is not None:
        some.append(f"{free:g} or more → no limit")
    return ",  ".join(some) or "none is accepted"


def _draw(
    problem: Delayed,
    prior: Belief,
    policy: ExposurePolicy,
    values: list[DelayValue],
    figure: str | None,
    limits_figure: str | None,
) -> list[str]:
    """Draw what was asked for; the names of the files written."""
    if figure is None and limits_figure is None:
        return []
    from lenience import plot
    from lenience.objectives.discounted import Discounted

    files = []
    if figure is not None:
        at_once = Discounted.from_rates(problem.cost, problem.arrivals, problem.discount_rate)
        best = at_once.discount * at_once.solve(prior, rows=1).value(prior).midpoint
        title = f"{problem.arrivals:g} a year, money at {100 * problem.discount_rate:g} %, c = {problem.cost:g}"
        files.append(str(plot.save(plot.value_against_delay(values, best, title), figure)))
    if limits_figure is not None:
        title = f"{problem.arrivals:g} a year, labels after {duration(problem.label_delay)} on average"
        files.append(str(plot.save(plot.limit_map(policy, title=title), limits_figure)))
    return files
