"""lenience solve: the optimal acceptance policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lenience.belief import Belief
from lenience.cli.options import (
    as_dict,
    console,
    discounted,
    json_option,
    objective,
    objective_options,
    print_json,
    prior_option,
    rows_option,
    table,
    tolerance_option,
)
from lenience.cli.progress import solving
from lenience.errors import InputError, refusal
from lenience.objective.discounted import Discounted
from lenience.objective.horizon import FiniteHorizon

if TYPE_CHECKING:
    from lenience.policy.optimal import OptimalPolicy

TOLD = 3.0  # seconds of waiting that are foretold


@click.command(short_help="The optimal acceptance policy, proved.")
@objective_options
@prior_option
@rows_option
@tolerance_option
@click.option("--look-ahead", type=int, help="Rows beyond the last one decided, instead of as many as needed.")
@click.option("--segment", "segments", multiple=True, help="NAME=SHARE of the arrivals; may be repeated.")
@json_option
def solve(
    cost: float,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    horizon: int | None,
    prior: Belief,
    rows: int,
    tolerance: float,
    look_ahead: int | None,
    segments: tuple[str, ...],
    as_json: bool,
) -> None:
    """The optimal acceptance policy: for each number of observations n, how many successes are enough.

    \b
    Example:
      lenience solve --cost 0.8 --discount 0.99 --prior 2,1
      lenience solve --cost 0.8 --arrivals 50 --discount-rate 0.1
      lenience solve --cost 0.8 --horizon 1000 --json
      lenience solve --cost 0.8 --discount 0.9998 --segment north=0.7 --segment island=0.02
    """
    if segments:
        if horizon is not None or look_ahead is not None:
            raise InputError("--segment goes with an infinite horizon, without --horizon or --look-ahead")
        solve_segments(segments, discounted(cost, discount, arrivals, discount_rate), prior, rows, tolerance, as_json)
        return
    problem = objective(cost, discount, arrivals, discount_rate, horizon)
    if horizon is not None and look_ahead is not None:
        raise InputError("--look-ahead goes with an infinite horizon: over --horizon individuals nothing is cut off")

    def work() -> OptimalPolicy:
        if horizon is not None:
            policy = problem.solve(prior, rows=min(rows, horizon), tolerance=tolerance)
        else:
            policy = problem.solve(prior, rows=rows, tolerance=tolerance, look_ahead=look_ahead)  # type: ignore[call-arg]
        policy.value(prior)  # the other solve that is needed: what was found is kept
        return policy

    def foretold() -> str:
        return _foretold(
            problem, problem.solve_seconds(prior, rows, tolerance) + problem.solve_seconds(prior, 1, tolerance)
        )

    policy = solving("solving", work, foretold)
    if as_json:
        print_json(answer(policy))
    else:
        print_policy(policy)


def solve_segments(
    given: tuple[str, ...], whole: Discounted, prior: Belief, rows: int, tolerance: float, as_json: bool
) -> None:
    """Several segments, each at its own discount: how many are to come, how many would make a start worthwhile."""
    from lenience.segments.segment import Segments
    from lenience.segments.starting import starts

    shares = {}
    for text in given:
        name, _, share = text.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError as error:
            raise refusal("--segment", text, "NAME=SHARE, such as north=0.7") from error
    cells = Segments.of(shares, whole, prior)

    def foretold() -> str:
        return _foretold(whole, sum(cell.own.solve_seconds(cell.prior, rows, tolerance) for cell in cells.cells))

    policies = solving("solving", lambda: cells.solve(rows=rows, tolerance=tolerance), foretold)
    found = starts(cells)
    if as_json:
        listed = [
            {
                "segment": row.name,
                "share": cells[row.name].share,
                "discount": cells[row.name].own.discount,
                "volume": row.volume,
                "volume_to_start": row.needed if row.needed < float("inf") else None,
                "accept": row.starts,
                "value": as_dict(policies.segment_value(row.name)),
                "explanation": row.reason,
            }
            for row in found
        ]
        print_json({"objective": msgspec.to_builtins(whole), "value": as_dict(policies.value()), "segments": listed})
        return
    out = console()
    out.print(f"[bold]{whole}[/bold], prior n = {prior.n:g}, s = {prior.s:g}")
    out.print(f"Value of all segments: [bold]{policies.value()}[/bold]\n")
    grid = table()
    grid.add_column("segment", overflow="fold")
    for heading in ("share", "own discount", "volume", "volume to start", "worth", "now"):
        grid.add_column(heading, justify="right")
    for row in found:
        cell = cells[row.name]
        line = [f"{cell.share:.4g}", f"{cell.own.discount:.6f}", f"{row.volume:,.4g}"]
        line += ["far more" if row.needed == float("inf") else f"{row.needed:,.4g}"]
        line += [f"{policies.segment_value(row.name).midpoint:,.4g}", "accept" if row.starts else "never starts"]
        grid.add_row(row.name, *line)
    out.print(grid)


def answer(policy: OptimalPolicy) -> dict[str, object]:
    """The policy as one JSON object."""
    prior = policy.prior
    sizes = [prior.n + k for k in range(policy.rows)]
    return {
        "objective": msgspec.to_builtins(policy.objective),
        "prior": msgspec.to_builtins(prior),
        "accept": policy.accepts(prior),
        "value": as_dict(policy.value(prior)),
        "continuation": as_dict(policy.continuation(prior)),
        "explanation": policy.explain(prior),
        **_volumes(policy),
        "certificate": {
            **msgspec.to_builtins(policy.certificate),
            "proved": policy.certificate.proved,
            "statement": policy.certificate.statement,
        },
        "thresholds": [{"n": n, "accept_from": policy.least_accepted(n)} for n in sizes],
    }


def _volumes(policy: OptimalPolicy) -> dict[str, float | None]:
    """How many are still to come, each at its discount, and how many would make a start worthwhile."""
    if isinstance(policy.objective, FiniteHorizon):
        return {}
    from lenience.segments.starting import starting_volume

    discount = policy.objective.discount
    needed = starting_volume(policy.prior, policy.objective.cost).midpoint
    return {"volume": discount / (1.0 - discount), "volume_to_start": needed if needed < float("inf") else None}


def print_policy(policy: OptimalPolicy) -> None:
    """The policy as a table of thresholds, with its value and what is proved."""
    from lenience.policy.optimal import LONG

    out = console()
    prior, cost = policy.prior, policy.objective.cost
    out.print(f"[bold]{policy.objective}[/bold], prior n = {prior.n:g}, s = {prior.s:g}\n")
    out.print(policy.explain(prior))
    out.print(f"Value at the prior: [bold]{policy.value(prior)}[/bold]")
    volumes = _volumes(policy)
    if volumes:
        needed = volumes["volume_to_start"]
        enough = "no volume makes" if needed is None else f"{needed:,.4g} make"
        out.print(
            f"Discounted volume still to come: {volumes['volume']:,.4g}; {enough} a start from this prior worthwhile."
        )
    out.print()
    grid = table()
    # A threshold to four digits takes a dozen solves; where each is long the table, which is there, must do.
    long = policy.objective.solve_seconds(prior, 1, policy.certificate.tolerance) > LONG
    for heading in ("n", "accept from s", "which is p̂", "threshold cₙ", *([] if long else ["leniency c − cₙ"])):
        grid.add_column(heading, justify="right")
    for k in _some(policy.rows):
        n = prior.n + k
        least = policy.least_accepted(n)
        line = [f"{n:g}", "none" if least is None else f"{least:g}", "" if least is None else f"{least / n:.4f}"]
        if long:
            known = policy.between(n)
            line.append(f"{known.lower:.4f} … {known.upper:.4f}")
        else:
            threshold = policy.threshold(n, 5e-5)
            line += [f"{threshold.midpoint:.4f}", f"{cost - threshold.midpoint:.4f}"]
        grid.add_row(*line)
    out.print(grid)
    if long:
        out.print("Thresholds are those of the table, to within one observation: lenience threshold finds one closer.")
    out.print(policy.certificate.statement)


def _foretold(problem: Discounted | FiniteHorizon, seconds: float) -> str:
    return f"This takes about {seconds:,.0f} s: {problem} looks far ahead." if seconds > TOLD else ""


def _some(rows: int) -> list[int]:
    """Rows 0, 1, 2, 3, then ever further apart, and the last."""
    chosen = {0, 1, 2, 3, rows - 1}
    for power in range(8):
        chosen |= {step * 10**power - 2 for step in (1, 2, 5)}
    return sorted(k for k in chosen if 0 <= k < rows)
