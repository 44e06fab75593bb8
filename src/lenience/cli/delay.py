"""lenience delay: compute what late labels cost, and how many acceptances may be pending."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from lenience.cli.delay_doubt import check_doubt_options, show_doubt
from lenience.cli.delay_horizon import show_horizon
from lenience.cli.options import (
    FILE,
    as_dict,
    bold,
    console,
    cost_options,
    doubt_option,
    json_option,
    note_units,
    print_json,
    prior_option,
    table,
    unit_of,
)
from lenience.cli.progress import announcing, each
from lenience.core.belief import Belief
from lenience.core.errors import InputError, TooLargeError
from lenience.core.formatting import counted, describe_unit, duration
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.validation import whole
from lenience.objectives.delayed import Delayed

if TYPE_CHECKING:
    from lenience.analysis.delay import DelayValue
    from lenience.core.bounds import Bounds
    from lenience.policies.beliefs.counted_cap import CountedCap
    from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
    from lenience.policies.beliefs.exposure import ExposurePolicy
    from lenience.policies.beliefs.pending import Blind, Capped
    from lenience.simulation.delay_events import SimulatedValue

DELAYS = (1 / 12, 0.25, 0.5, 1.0)
MOST_SECONDS = 15.0  # the longest solve, by its estimate
MOST_SIMULATED = 30.0  # the longest simulation in seconds, by its estimate
REPLICATIONS = 1_000
ROW_SECONDS = 1e-4  # seconds to simulate one arrival of one policy; looking up the limit takes longest
MOST_UPDATES = 2e9  # limit for the exact evaluation of a baseline: about ten seconds
HALF = 1.96  # standard errors in half a 95% interval
SIZES = (0, 1, 3, 8, 18, 48, 98)  # numbers of labels after the prior for which limits are printed


@click.command(short_help="Compute what late labels cost, and how many acceptances may be pending.")
@cost_options
@click.option("--arrivals", type=float, required=True, help="Individuals per year.")
@click.option(
    "--discount-rate", type=float, help="The yearly interest rate, such as 0.1. With --horizon it is 0 by default."
)
@click.option(
    "--label-delay",
    "delays",
    type=float,
    multiple=True,
    help="The mean delay of an outcome in years; may be repeated. Limits are shown for the last one.",
)
@click.option("--horizon", type=int, help="The number of arrivals in all. By default there is no end.")
@prior_option
@doubt_option
@click.option("--cap", "caps", type=int, multiple=True, default=(1, 3, 10), help="Fixed caps to compare with.")
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="The relative gap of values.")
@click.option(
    "--pending", type=int, default=0, show_default=True, help="The number of acceptances that are pending now."
)
@click.option("--applicants", type=int, help="Show how many of this many applicants to accept now.")
@click.option("--figure", type=FILE, help="Draw value against mean delay to this file (PNG, SVG or PDF).")
@click.option("--limits-figure", type=FILE, help="Draw the map of exposure limits to this file (PNG, SVG or PDF).")
@json_option
def delay(
    cost: float,
    money: Money,
    arrivals: float,
    discount_rate: float | None,
    delays: tuple[float, ...],
    horizon: int | None,
    prior: Belief,
    doubt: float | None,
    caps: tuple[int, ...],
    tolerance: float,
    pending: int,
    applicants: int | None,
    figure: str | None,
    limits_figure: str | None,
    as_json: bool,
) -> None:
    """Compute optimal exposure limits for late labels, and what policies lose that ignore pending acceptances.

    \b
    Example:
      lenience delay --cost 0.8 --arrivals 50 --discount-rate 0.1 --label-delay 0.25 --label-delay 1
      lenience delay --cost 0.8 --arrivals 50 --discount-rate 0.1 --label-delay 1 --applicants 12
      lenience delay --cost 0.7 --arrivals 50 --label-delay 0.2 --horizon 200
      lenience delay --cost 0.8 --arrivals 50 --discount-rate 0.1 --label-delay 1 --prior 4,2.8 --doubt 0.2
    """
    from lenience.analysis.delay import OPTIMAL, baselines

    for option, path in (("--figure", figure), ("--limits-figure", limits_figure)):
        if path is not None:
            from lenience.plot.style import check_path

            check_path(path, option)
    if 0.0 in delays:
        raise InputError("--label-delay", 0, "a number above 0", hint="If labels come at once, use lenience solve.")
    whole("pending", pending)
    for cap in caps:
        whole("cap", cap, least=1)
    if applicants is not None:
        whole("applicants", applicants)
    if doubt is not None:
        check_doubt_options(
            [
                ("--horizon", horizon),
                ("--applicants", applicants),
                ("--figure", figure),
                ("--limits-figure", limits_figure),
            ]
        )
    if horizon is not None:
        if figure is not None or limits_figure is not None:
            raise InputError.because(
                "cannot be drawn with --horizon", "--figure" if figure else "--limits-figure", code="conflicting_fields"
            )
        show_horizon(
            [Delayed(cost, arrivals, discount_rate or 0.0, years, horizon=horizon) for years in delays or DELAYS],
            prior, pending, applicants, money, as_json,
        )  # fmt: skip
        return
    if discount_rate is None:
        raise InputError.because(
            "is missing", "--discount-rate", hint="Give --discount-rate 0.1, or --horizon.", code="missing"
        )
    note_units(discount_rate, delays)
    problems = [Delayed(cost, arrivals, discount_rate, years) for years in delays or DELAYS]
    if doubt is not None:
        doubted = MixtureBelief.doubt(prior, doubt)
        show_doubt(problems, doubted, caps, tolerance, pending, MOST_UPDATES, money, as_json)
        return
    with announcing("Solving for labels that come late"):
        policy = problems[-1].solve(prior, tolerance=tolerance, seconds=MOST_SECONDS)
    rivals: dict[Delayed, Mapping[str, Blind | Capped | CountedCap]] = {problem: {} for problem in problems}
    for problem in problems:
        with suppress(TooLargeError):  # the table then has the exposure limit alone
            rivals[problem] = baselines(problem, prior, caps)
    values = [
        row
        for problem in each("Evaluating what policies earn with late labels", problems)
        for row in _values(problem, policy, rivals[problem], tolerance)
    ]
    names = [OPTIMAL, *rivals[problems[-1]]]
    simulated = _simulated(prior, rivals, {(row.policy, row.label_delay) for row in values})
    accept_now = None if applicants is None else policy.accept_now(prior, pending, applicants)
    files = _draw(problems[-1], prior, policy, values, money, figure, limits_figure)
    if as_json:
        print_json(
            {
                "objective": msgspec.to_builtins(policy.objective),
                "prior": msgspec.to_builtins(prior),
                "pending": pending,
                "limit": policy.limit(prior),
                "accept": policy.accepts(prior, pending),
                "accept_now": accept_now,
                "explanation": policy.explain(prior, pending, money),
                "value": as_dict(policy.value(prior, pending)),
                "unit": unit_of(cost, money),
                "expire_after": policy.expire_after,
                "certificate": {
                    **msgspec.to_builtins(policy.certificate),
                    "statement": policy.certificate.describe(money),
                },
                "values": [
                    {"policy": row.policy, "label_delay": row.label_delay, "value": as_dict(row.value)}
                    for row in values
                ],
                "simulated": [
                    {"policy": name, "label_delay": years, "mean": value.mean, "half_width": HALF * value.error}
                    for (name, years), value in simulated.items()
                ],
                "figures": files,
            }
        )
        return
    years = list(dict.fromkeys(problem.label_delay for problem in problems))
    _print(policy, prior, pending, applicants, accept_now, values, simulated, names, years, money)
    for name in files:
        click.echo(f"Wrote {name}")


def _values(
    problem: Delayed,
    policy: ExposurePolicy | EstimatedExposurePolicy,
    rivals: Mapping[str, Blind | Capped | CountedCap],
    tolerance: float,
) -> list[DelayValue]:
    """Return what each policy earns at this delay, without policies that would take too long to evaluate."""
    from lenience.analysis.delay import OPTIMAL, DelayValue, evaluate_pending

    prior, years = policy.prior, problem.label_delay
    work: dict[str, Callable[[], Bounds]] = {
        OPTIMAL: lambda: (
            policy.value(prior)
            if problem == policy.objective
            else problem.solve(prior, 1, tolerance, seconds=MOST_SECONDS).value(prior)
        )
    }
    for name, baseline in rivals.items():
        work[name] = partial(evaluate_pending, baseline, problem, prior, tolerance, MOST_UPDATES)
    values = []
    for name, evaluate in work.items():
        with suppress(TooLargeError):
            values.append(DelayValue(name, years, evaluate()))
    return values


def _simulated(
    prior: Belief, rivals: dict[Delayed, Mapping[str, Blind | Capped | CountedCap]], exact: set[tuple[str, float]]
) -> dict[tuple[str, float], SimulatedValue]:
    """Simulate the policies whose exact evaluation would take too long, unless that would take too long as well."""
    from lenience.simulation.delay_events import arrivals_that_count, simulate_delays
    from lenience.simulation.label_delay import LabelDelay

    missing = {
        problem: {name: policy for name, policy in own.items() if (name, problem.label_delay) not in exact}
        for problem, own in rivals.items()
    }
    seconds = sum(len(policies) * arrivals_that_count(problem) * ROW_SECONDS for problem, policies in missing.items())
    if not any(missing.values()) or seconds > MOST_SIMULATED:
        return {}
    count = sum(len(policies) for policies in missing.values())
    click.echo(
        f"{counted(count, 'value')} would take too long to compute exactly: simulating, about {seconds:.0f} s …",
        err=True,
    )
    simulated = {}
    for problem, chosen in missing.items():
        law = LabelDelay("exponential", problem.label_delay)
        for value in simulate_delays(chosen, problem, prior, law, REPLICATIONS) if chosen else ():
            simulated[value.policy, problem.label_delay] = value
    return simulated


def _print(
    policy: ExposurePolicy | EstimatedExposurePolicy,
    prior: Belief,
    pending: int,
    applicants: int | None,
    accept_now: int | None,
    values: list[DelayValue],
    simulated: dict[tuple[str, float], SimulatedValue],
    policies: list[str],
    delays: list[float],
    money: Money,
) -> None:
    out = console()
    out.print(bold(policy.objective), f", prior n = {prior.n:g}, s = {prior.s:g}\n", sep="")
    out.print(policy.explain(prior, pending, money))
    if accept_now is not None:
        out.print(f"Of {applicants:,} applicants now, accept ", bold(f"{accept_now:,}"), ".", sep="")
    out.print("Value before the next arrival: ", bold(money.format_bounds(policy.value(prior, pending))), sep="")
    out.print(describe_unit(policy.objective.cost, money))
    out.print(f"A label that has not come expires after {duration(policy.expire_after)}.\n")

    grid = table("Value before the first arrival, by mean delay")
    grid.add_column("policy")
    for years in delays:
        grid.add_column(duration(years), justify="right")
    texts = {(row.policy, row.label_delay): money.format(row.value.midpoint, 4) for row in values}
    for key, value in simulated.items():
        texts[key] = f"{money.format(value.mean, 2)} ± {money.format(HALF * value.error, 2)}"
    for name in policies:
        grid.add_row(name, *(texts.get((name, years), "–") for years in delays))
    out.print(grid)
    if simulated:
        out.print(
            f"±: simulated, {REPLICATIONS:,} replications with their 95% interval. An exact value would take too long."
        )
    if len(texts) < len(policies) * len(delays):
        out.print("–: an exact value would take too long at this size.\n")

    limits = table(f"Accept while fewer than this many are pending (mean delay {duration(delays[-1])})")
    limits.add_column("labels n", justify="right")
    limits.add_column("successes s → limit")
    for k in SIZES:
        if k < policy.rows:
            limits.add_row(f"{prior.n + k:g}", _limits(policy, k))
    out.print(limits)
    out.print(policy.certificate.describe(money))


def _limits(policy: ExposurePolicy | EstimatedExposurePolicy, k: int) -> str:
    """Format the limits of one row, without those that are 0."""
    from lenience.analysis.delay import limit_points

    points = limit_points(policy, [k])
    limits = [f"{point.s:g} → {point.limit:,}" for point in points if point.limit]
    unlimited = next((point.s for point in points if point.limit is None), None)
    if unlimited is not None:
        limits.append(f"{unlimited:g} or more → no limit")
    return ",  ".join(limits) or "nobody is accepted"


def _draw(
    problem: Delayed,
    prior: Belief,
    policy: ExposurePolicy | EstimatedExposurePolicy,
    values: list[DelayValue],
    money: Money,
    figure: str | None,
    limits_figure: str | None,
) -> list[str]:
    """Draw the figures that the options name, and return the names of the files."""
    if figure is None and limits_figure is None:
        return []
    from lenience import plot
    from lenience.objectives.discounted import Discounted

    files = []
    if figure is not None:
        at_once = Discounted.from_rates(problem.cost, problem.arrivals, problem.discount_rate)
        best = at_once.discount * at_once.solve(prior, rows=1).value(prior).midpoint
        title = f"{problem.arrivals:g} per year, interest {100 * problem.discount_rate:g}%, c = {problem.cost:g}"
        files.append(str(plot.save(plot.value_against_delay(values, best, title, money), figure)))
    if limits_figure is not None:
        title = f"{problem.arrivals:g} per year, labels after {duration(problem.label_delay)} on average"
        files.append(str(plot.save(plot.limit_map(policy, title=title), limits_figure)))
    return files
