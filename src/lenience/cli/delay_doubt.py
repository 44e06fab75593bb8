"""lenience delay --doubt: exposure limits by new outcomes, for a prior that may be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from lenience.cli.options import as_dict, bold, console, print_json, prior_text, table, unit_of
from lenience.cli.progress import each
from lenience.core.errors import InputError, TooLargeError
from lenience.core.formatting import describe_unit, duration
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.objectives.delayed import Delayed

OUTCOMES = (0, 1, 3, 8, 18)  # new outcomes for which limits are printed
LIMIT_SECONDS = 20.0  # no further line is begun after so long


def show_doubt(
    problems: Sequence[Delayed],
    prior: MixtureBelief,
    caps: Sequence[int],
    tolerance: float,
    pending: int,
    most: float,
    money: Money,
    as_json: bool,
) -> None:
    """Solve problems that differ by their mean delay, and print the values of all and the limits of the last."""
    from lenience.analysis.delay import OPTIMAL, DelayValue, baselines, evaluate_pending

    values: list[DelayValue] = []
    policies = [
        problem.solve(prior, tolerance=tolerance) for problem in each("Solving for labels that come late", problems)
    ]
    for policy in each("Evaluating what policies earn with late labels", policies):
        problem = policy.objective
        values.append(DelayValue(OPTIMAL, problem.label_delay, policy.value(prior)))
        with suppress(TooLargeError):  # the table then has the exposure limit alone
            for name, baseline in baselines(problem, prior, caps).items():
                value = evaluate_pending(baseline, problem, prior, tolerance, most)
                values.append(DelayValue(name, problem.label_delay, value))
    problem, policy = problems[-1], policies[-1]
    limits = _limits(lambda k, j: policy.limit(prior.after(k, j)))
    if as_json:
        print_json(
            {
                "objective": msgspec.to_builtins(problem),
                "prior": msgspec.to_builtins(prior),
                "pending": pending,
                "limit": policy.limit(prior),
                "accept": policy.accepts(prior, pending=pending),
                "explanation": policy.explain(prior, pending=pending, money=money),
                "value": as_dict(policy.value(prior)),
                "unit": unit_of(problem.cost, money),
                "values": [
                    {"policy": row.policy, "label_delay": row.label_delay, "value": as_dict(row.value)}
                    for row in values
                ],
                "limits": [
                    {"outcomes": k, "successes": j, "limit": limit} for k, row in limits.items() for j, limit in row
                ],
            }
        )
        return
    out = console()
    out.print(bold(problem), f", {prior_text(prior)}\n", sep="")
    out.print(policy.explain(prior, pending=pending, money=money))
    out.print("Value before the first arrival: ", bold(money.format_bounds(policy.value(prior))), sep="")
    out.print(describe_unit(problem.cost, money) + "\n")
    grid = table("Value before the first arrival, by mean delay")
    grid.add_column("policy")
    for own in problems:
        grid.add_column(duration(own.label_delay), justify="right")
    texts = {(row.policy, row.label_delay): money.format(row.value.midpoint, 4) for row in values}
    names = list(dict.fromkeys(row.policy for row in values))
    for name in names:
        grid.add_row(name, *(texts.get((name, own.label_delay), "–") for own in problems))
    out.print(grid)
    if len(names) == 1 or len(texts) < len(names) * len(problems):
        out.print("What is not shown would take too long to compute at this size.\n")
    shown = table(f"Accept while fewer than this many are pending (mean delay {duration(problem.label_delay)})")
    shown.add_column("new outcomes", justify="right")
    shown.add_column("successes → limit")
    for k, row in limits.items():
        parts = [f"{j:,} → {limit:,}" for j, limit in row if limit]
        unlimited = next((j for j, limit in row if limit is None), None)
        if unlimited is not None:
            parts.append(f"{unlimited:,} or more → no limit")
        shown.add_row(f"{k:,}", ",  ".join(parts) or "nobody is accepted")
    out.print(shown)
    out.print("New outcomes do not include the prior's. Outcomes that contradict it shift its weight to the flat one.")


def _limits(limit: Callable[[int, int], int | None]) -> dict[int, list[tuple[int, int | None]]]:
    """Return the limits by new outcomes and successes, from the first one above 0, as far as the time allows."""
    begun = time.perf_counter()
    rows: dict[int, list[tuple[int, int | None]]] = {}
    for k in OUTCOMES:
        if time.perf_counter() - begun > LIMIT_SECONDS:
            break
        row = []
        for j in range(k, -1, -1):
            row.append((j, limit(k, j)))
            if row[-1][1] == 0:  # fewer successes never have a larger limit
                break
        rows[k] = row[::-1]
    return rows


def check_doubt_options(given: Sequence[tuple[str, object]]) -> None:
    """Raise InputError for options that a prior that may be wrong does not have."""
    for option, value in given:
        if value is not None:
            raise InputError.because(
                "cannot be combined with --doubt", (option, "--doubt"), label=option, code="conflicting_fields"
            )
