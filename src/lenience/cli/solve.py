"""lenience solve: compute the optimal acceptance policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lenience.cli.options import (
    as_dict,
    bold,
    console,
    discounted,
    doubt_option,
    json_option,
    objective,
    objective_options,
    print_json,
    prior_option,
    rows_option,
    table,
    tolerance_option,
    unit_of,
    with_doubt,
)
from lenience.cli.progress import each, solving
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import count, counted, describe_rule, describe_unit, plural
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.objective import StoppingObjective
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon

if TYPE_CHECKING:
    from lenience.policies.beliefs.horizon_offers import HorizonOfferPolicy
    from lenience.policies.beliefs.offers import OfferPolicy
    from lenience.policies.beliefs.optimal import OptimalPolicy

LONG_WAIT = 3.0  # seconds from which an estimate of the time is printed


@click.command(short_help="Compute the optimal acceptance policy, with a proof.")
@objective_options
@prior_option
@doubt_option
@rows_option
@tolerance_option
@click.option(
    "--look-ahead", type=int, help="Rows to compute beyond the last one decided; by default as many as needed."
)
@click.option(
    "--segment", "segments", multiple=True, help="A segment and its share of the arrivals, NAME=SHARE; may be repeated."
)
@json_option
def solve(
    cost: float,
    money: Money,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    horizon: int | None,
    prior: Belief,
    doubt: float | None,
    rows: int,
    tolerance: float,
    look_ahead: int | None,
    segments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compute the optimal acceptance policy: for each number of observations n, how many successes are enough.

    \b
    Example:
      lenience solve --cost 0.8 --discount 0.99 --prior 2,1
      lenience solve --gain 400 --loss 1600 --currency $ --arrivals 50 --discount-rate 0.1
      lenience solve --cost 0.8 --horizon 1000 --json
      lenience solve --cost 0.8 --discount 0.9998 --segment north=0.7 --segment island=0.02
      lenience solve --cost 0.8 --discount 0.99 --prior 4,2.8 --doubt 0.2
    """
    start = with_doubt(prior, doubt)
    if isinstance(start, MixtureBelief):
        if segments:
            raise InputError.because(
                "cannot be combined with --segment: the volume to start is known for a prior without doubt only",
                ("--doubt", "--segment"),
                label="--doubt",
                code="conflicting_fields",
            )
    elif segments:
        if horizon is not None or look_ahead is not None:
            raise InputError.because(
                "needs an infinite horizon: do not use --horizon and --look-ahead",
                ("--segment", "--horizon", "--look-ahead"),
                label="--segment",
                code="conflicting_fields",
            )
        population = discounted(cost, discount, arrivals, discount_rate)
        solve_segments(segments, population, money, prior, rows, tolerance, as_json)
        return
    problem = objective(cost, discount, arrivals, discount_rate, horizon)
    if horizon is not None and look_ahead is not None:
        raise InputError.because(
            "cannot be combined with --horizon: over a finite horizon nothing is cut off",
            ("--look-ahead", "--horizon"),
            label="--look-ahead",
            code="conflicting_fields",
        )
    if isinstance(start, MixtureBelief):
        solve_with_doubt(problem, money, start, rows, tolerance, look_ahead, as_json)
        return

    def work() -> OptimalPolicy:
        if horizon is not None:
            policy: OptimalPolicy = problem.solve(prior, rows=min(rows, horizon), tolerance=tolerance)
        else:
            policy = problem.solve(prior, rows=rows, tolerance=tolerance, look_ahead=look_ahead)  # type: ignore[call-arg]
        policy.value(prior)  # solve for the value here too, while progress is shown; the result is cached
        return policy

    def estimate() -> str:
        return _time_estimate(
            problem, problem.solve_seconds(prior, rows, tolerance) + problem.solve_seconds(prior, 1, tolerance)
        )

    policy = solving("Solving", work, estimate)
    if as_json:
        print_json(answer(policy, money))
    else:
        print_policy(policy, money)


def solve_with_doubt(
    problem: Discounted | FiniteHorizon,
    money: Money,
    prior: MixtureBelief,
    rows: int,
    tolerance: float,
    look_ahead: int | None,
    as_json: bool,
) -> None:
    """Solve for a prior that may be wrong, and print the policy."""
    from lenience.cli.doubt import print_doubt

    def work() -> OfferPolicy | HorizonOfferPolicy:
        policy: OfferPolicy | HorizonOfferPolicy
        if isinstance(problem, FiniteHorizon):
            policy = problem.solve(prior, rows=min(rows, problem.horizon), tolerance=tolerance)
        else:
            policy = problem.solve(prior, rows=rows, tolerance=tolerance, look_ahead=look_ahead)
        policy.value(prior)  # solve for the value here too, while progress is shown; the result is cached
        return policy

    def estimate() -> str:
        return _time_estimate(problem, problem.solve_seconds(prior, rows, tolerance))

    print_doubt(solving("Solving", work, estimate), prior, money, as_json)


def solve_segments(
    texts: tuple[str, ...],
    population: Discounted,
    money: Money,
    prior: Belief,
    rows: int,
    tolerance: float,
    as_json: bool,
) -> None:
    """Solve several segments, each at its own discount, and print their volumes and the volumes needed to start."""
    from lenience.segments.segments import Segments
    from lenience.segments.starting import starts

    shares = {}
    for text in texts:
        name, _, share = text.rpartition("=")
        if name in shares:
            raise InputError.because(
                f"must name each segment once; {name!r} is there twice", "--segment", value=name, code="duplicate"
            )
        try:
            shares[name] = float(share)
        except ValueError as error:
            raise InputError("--segment", text, "NAME=SHARE, such as north=0.7") from error
    cells = Segments.of(shares, population, prior)

    def estimate() -> str:
        return _time_estimate(
            population, sum(cell.own.solve_seconds(cell.prior, rows, tolerance) for cell in cells.cells)
        )

    policies, rows_by_segment = solving(
        "Solving", lambda: (cells.solve(rows=rows, tolerance=tolerance), starts(cells)), estimate
    )
    if as_json:
        listed = [
            {
                "segment": row.name,
                "share": cells[row.name].share,
                "discount": cells[row.name].own.discount,
                "volume": row.volume,
                "volume_to_start": row.needed,
                "accept": row.starts,
                "value": as_dict(policies.segment_value(row.name)),
                "explanation": row.reason,
            }
            for row in rows_by_segment
        ]
        print_json(
            {
                "objective": msgspec.to_builtins(population),
                "value": as_dict(policies.value()),
                "unit": unit_of(population.cost, money),
                "segments": listed,
            }
        )
        return
    out = console()
    accepted = sum(row.starts for row in rows_by_segment)
    out.print(
        f"{accepted:,} of {counted(len(rows_by_segment), 'segment')} {plural(accepted, 'is', 'are')} worth a first "
        f"acceptance. Together they are expected to earn {money.format(policies.value().midpoint)}. "
        f"{describe_unit(population.cost, money)}\n"
    )
    grid = table()
    grid.add_column("segment", overflow="fold")
    for heading in ("share", "own discount", "volume", "volume to start", "worth", "now"):
        grid.add_column(heading, justify="right")
    for row in rows_by_segment:
        cell = cells[row.name]
        line = [f"{cell.share:.4g}", f"{cell.own.discount:.6f}", count(row.volume)]
        line += ["far more" if row.needed == float("inf") else count(row.needed)]
        line += [money.format(policies.segment_value(row.name).midpoint), "accept" if row.starts else "never starts"]
        grid.add_row(row.name, *line)
    out.print(grid)
    out.print(
        "Volume: the number of members still to come, where later ones count less. At or below the volume to start, "
        "learning costs more than it earns. Worth: what the segment is expected to earn.\n"
    )
    out.print(bold(population), f", prior n = {prior.n:g}, s = {prior.s:g}", sep="")
    out.print("Value of all segments: ", bold(money.format_bounds(policies.value())), sep="")


def answer(policy: OptimalPolicy, money: Money) -> dict[str, object]:
    """Return the policy for JSON."""
    prior = policy.prior
    sizes = [prior.n + k for k in range(policy.rows)]
    return {
        "objective": msgspec.to_builtins(policy.objective),
        "prior": msgspec.to_builtins(prior),
        "accept": policy.accepts(prior),
        "value": as_dict(policy.value(prior)),
        "continuation": as_dict(policy.continuation(prior)),
        "unit": unit_of(policy.objective.cost, money),
        "explanation": policy.explain(prior, money),
        **_volumes(policy),
        "certificate": {
            **msgspec.to_builtins(policy.certificate),
            "proved": policy.certificate.proved,
            "statement": policy.certificate.describe(money),
        },
        "thresholds": [{"n": n, "accept_from": policy.least_accepted(n)} for n in sizes],
    }


def _volumes(policy: OptimalPolicy) -> dict[str, float | None]:
    """Return the discounted number of individuals still to come, and the number needed to start."""
    if policy.objective.horizon is not None:
        return {}
    from lenience.segments.starting import starting_volume

    needed = starting_volume(policy.prior, policy.objective.cost).midpoint
    return {"volume": policy.objective.volume, "volume_to_start": needed if needed < float("inf") else None}


def print_policy(policy: OptimalPolicy, money: Money) -> None:
    """Print what to do and what it earns, then the thresholds, then the exact values and what is proved."""
    from lenience.policies.beliefs.optimal import LONG

    prior, cost = policy.prior, policy.objective.cost
    shown = _some(policy.rows)
    # A threshold to four digits takes a dozen solves. If one solve is slow, use the thresholds of the solved table.
    long = policy.objective.solve_seconds(prior, 1, policy.certificate.tolerance) > LONG
    minimum_rates = {}
    if not long:  # the explanation uses the first row's threshold too, so it is computed more precisely
        minimum_rates = {
            k: policy.threshold(prior.n + k, 5e-5 if k else 1e-6).midpoint for k in each("Finding thresholds", shown)
        }
    out = console()
    out.print(policy.explain(prior, money))
    if minimum_rates and policy.accepts(prior):
        out.print(describe_rule(cost, [(prior.n + k, minimum_rates[k]) for k in (0, 8, 98) if k in minimum_rates]))
    out.print(_earnings(policy, money) + "\n")
    grid = table()
    for heading in ("n", "successes needed", "which is p̂", "minimum rate cₙ", *([] if long else ["leniency c − cₙ"])):
        grid.add_column(heading, justify="right")
    for k in shown:
        n = prior.n + k
        least = policy.least_accepted(n)
        line = ["none are enough", ""] if least is None else [f"{least:g}", f"{least / n:.4f}"]
        if long:
            known = policy.between(n)
            line.append(f"{known.lower:.4f} … {known.upper:.4f}")
        else:
            line += [f"{minimum_rates[k]:.4f}", f"{cost - minimum_rates[k]:.4f}"]
        grid.add_row(f"{n:g}", *line)
    out.print(grid)
    if long:
        out.print("Minimum rates are precise to one observation. lenience threshold computes them more precisely.")
    out.print(
        "n: the number of observations. Observations and successes include the prior's virtual ones. Accept if the "
        "success rate is above the minimum rate. Leniency: how far the minimum rate is below the break-even.\n"
    )
    out.print(bold(policy.objective), f", prior n = {prior.n:g}, s = {prior.s:g}", sep="")
    out.print("Value at the prior: ", bold(money.format_bounds(policy.value(prior))), sep="")
    volumes = _volumes(policy)
    if volumes:
        needed = volumes["volume_to_start"]
        enough = "no volume is enough" if needed is None else f"{count(needed)} are needed"
        out.print(
            f"Volume still to come, where later individuals count less: {count(volumes['volume'] or 0.0)}. To start "
            f"from this prior, {enough}."
        )
    out.print(policy.certificate.describe(money))


def _time_estimate(problem: StoppingObjective, seconds: float) -> str:
    """Say how long a solve takes; return an empty text if it is short."""
    return f"This takes about {seconds:,.0f} s: {problem} looks far ahead." if seconds > LONG_WAIT else ""


def _earnings(policy: OptimalPolicy, money: Money) -> str:
    """Say what the policy earns, and what learning costs."""
    from lenience.solvers.stopping.clairvoyant import gain_of_knowing

    prior, objective = policy.prior, policy.objective
    best = gain_of_knowing(prior.n, prior.s, objective.cost) * objective.discounted_count
    value = policy.value(prior).midpoint
    earned, learning = "This earns nothing and loses nothing", "but learning it would cost more"
    if value:
        earned = f"This is expected to earn {money.format(value)} in total"
        learning = f"so learning costs {money.format(max(best - value, 0.0))}"
    return (
        f"{earned}. Someone who knew the success rate in advance would expect {money.format(best)}, {learning}. "
        f"{describe_unit(objective.cost, money)}"
    )


def _some(rows: int) -> list[int]:
    """Choose rows to print: the first ones, then ever further apart, and the last unless it is near the one before."""
    chosen = sorted({0, 1, *(step * 10**power - 2 for power in range(8) for step in (1, 2, 5))})
    shown = [k for k in chosen if 0 <= k < rows]
    return shown if rows - 1 < 1.2 * (shown[-1] + 2) else [*shown, rows - 1]
