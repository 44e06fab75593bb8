"""lenience delay --horizon: exposure limits by the number of arrivals left."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lenience.cli.options import as_dict, bold, console, print_json, table, unit_of
from lenience.cli.progress import each
from lenience.core.belief import Belief
from lenience.core.formatting import describe_unit, duration
from lenience.core.money import Money
from lenience.objectives.delayed import Delayed

SHARES = (1.0, 0.75, 0.5, 0.25, 0.1)  # of the arrivals, for which limits are printed
LABELS = (0, 4, 9, 19)  # labels after the prior for which limits are printed


def show_horizon(
    problems: Sequence[Delayed], prior: Belief, pending: int, applicants: int | None, money: Money, as_json: bool
) -> None:
    """Solve problems that differ by their mean delay, and print the values of all and the limits of the last."""
    policies = [problem.solve(prior) for problem in each("Solving for labels that come late", problems)]
    problem, policy = problems[-1], policies[-1]
    horizon = policy.horizon
    lefts = list(dict.fromkeys(max(round(share * horizon), 1) for share in SHARES))
    accept_now = None if applicants is None else policy.accept_now(prior, pending, applicants)
    limits = [
        {
            "left": left,
            "n": prior.n + k,
            "s": prior.s + j,
            "limit": policy.limit(Belief(prior.n + k, prior.s + j), left),
        }
        for left in lefts
        for k in LABELS
        for j in range(k + 1)
        if k <= horizon - left
    ]
    if as_json:
        print_json(
            {
                "objective": msgspec.to_builtins(problem),
                "prior": msgspec.to_builtins(prior),
                "pending": pending,
                "limit": policy.limit(prior),
                "accept": policy.accepts(prior, pending),
                "accept_now": accept_now,
                "explanation": policy.explain(prior, pending, money=money),
                "value": as_dict(policy.value(prior, pending)),
                "unit": unit_of(problem.cost, money),
                "expire_after": policy.expire_after,
                "certificate": {
                    **msgspec.to_builtins(policy.certificate),
                    "statement": policy.certificate.describe(money),
                },
                "values": [
                    {"label_delay": own.objective.label_delay, "value": as_dict(own.certificate.value)}
                    for own in policies
                ],
                "limits": limits,
            }
        )
        return
    out = console()
    out.print(bold(problem), f", prior n = {prior.n:g}, s = {prior.s:g}\n", sep="")
    out.print(policy.explain(prior, pending, money=money))
    if accept_now is not None:
        out.print(f"Of {applicants:,} applicants now, accept ", bold(f"{accept_now:,}"), ".", sep="")
    grid = table("Value before the first arrival, by mean delay")
    grid.add_column("mean delay")
    grid.add_column("value", justify="right")
    for own in policies:
        grid.add_row(duration(own.objective.label_delay), money.format_bounds(own.certificate.value))
    out.print(grid)
    out.print(describe_unit(problem.cost, money))
    shown = table(f"Accept while fewer than this many are pending (mean delay {duration(problem.label_delay)})")
    shown.add_column("arrivals left", justify="right")
    shown.add_column("labels n", justify="right")
    shown.add_column("successes s → limit")
    for left in lefts:
        for k in LABELS:
            row = [one for one in limits if one["left"] == left and one["n"] == prior.n + k]
            texts = [f"{one['s']:g} → {one['limit']:,}" for one in row if one["limit"]]
            unlimited = next((one["s"] for one in row if one["limit"] is None), None)
            if unlimited is not None:
                texts.append(f"{unlimited:g} or more → no limit")
            if row:
                shown.add_row(f"{left:,}", f"{prior.n + k:g}", ",  ".join(texts) or "nobody is accepted")
    out.print(shown)
    out.print(policy.certificate.describe(money))
