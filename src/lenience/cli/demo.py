"""lenience demo: the paper's example, from the problem to the proof."""

from __future__ import annotations

from pathlib import Path

import click

from lenience.belief import Belief
from lenience.cli.options import console, json_option, print_json
from lenience.cli.solve import answer, print_policy
from lenience.objective.discounted import Discounted


@click.command(short_help="Solve the paper's example, show what is proved, and draw its figure.")
@click.option("--folder", default="demo-output", show_default=True, help="Where figures are written.")
@json_option
def demo(folder: str, as_json: bool) -> None:
    """Solve the paper's example (c = 0.8, γ = 0.99), print what is proved, and draw its Figure 1.

    \b
    Example:
      lenience demo --folder demo-output
    """
    from lenience import plot
    from lenience.solver.paper import paper_values

    policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    figures = [
        plot.save(plot.value_functions(), target / "figure1.png"),
        plot.save(plot.thresholds([policy.objective]), target / "thresholds.png"),  # type: ignore[list-item]
    ]
    if as_json:
        print_json({**answer(policy), "figures": [str(path) for path in figures]})
        return
    out = console()
    out.rule("Accept or reject, when only the accepted reveal their outcome")
    print_policy(policy)
    table = paper_values(0.8, 0.99, [10, 100])
    out.print(
        f"\nThe paper's own computation (N = 1000) is off by at most {table.error(10):.1e} at n = 10 and "
        f"{table.error(100):.1e} at n = 100; all of its decisions are proved optimal for n ≤ {table.proved_through}."
    )
    for path in figures:
        out.print(f"Wrote {path}")
