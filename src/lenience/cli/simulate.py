"""lenience simulate: compare policies in one simulated world, on the same individuals."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import click

from lenience.cli.name_and_parameters import parse_spec
from lenience.cli.options import (
    FILE,
    FOLDER,
    console,
    cost_or_offer_options,
    doubt_option,
    json_option,
    known,
    print_json,
    prior_option,
    table,
    unit_of,
)
from lenience.cli.progress import announcing
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.core.offers import Offers, describe_offers

DOUBT_WORLDS = ("prior", "bernoulli")  # worlds without drift and late labels
POLICIES = ("greedy", "thompson", "bayes-ucb", "epsilon-greedy", "always-accept")


@click.command(short_help="Compare policies in one simulated world, on the same individuals.")
@cost_or_offer_options
@click.option("--discount", type=float, default=1.0, show_default=True, help="The discount γ from one to the next.")
@click.option("--horizon", type=int, default=1000, show_default=True, help="Arrivals in each replication.")
@prior_option
@doubt_option
@click.option(
    "--policy",
    "policies",
    multiple=True,
    shell_complete=known("lenience.policies.registry", "policy_names"),
    help="name or name:parameter=value,…; may be repeated.",
)
@click.option(
    "--world",
    default="prior",
    show_default=True,
    shell_complete=known("lenience.simulation.named_worlds", "world_names"),
    help="name or name:parameter=value,…",
)
@click.option("--replications", type=int, default=2000, show_default=True, help="The number of replications.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same result.")
@click.option("--workers", type=int, help="The number of processes (-1: all cores); it does not change the result.")
@click.option("--figure", type=FILE, help="Draw the comparison to this file (PNG, SVG or PDF).")
@click.option("--save", "folder", type=FOLDER, help="Write the results as Parquet files to this folder.")
@json_option
def simulate(
    cost: float | None,
    money: Money,
    offers: Offers | None,
    discount: float,
    horizon: int,
    prior: Belief,
    doubt: float | None,
    policies: tuple[str, ...],
    world: str,
    replications: int,
    seed: int,
    workers: int | None,
    figure: str | None,
    folder: str | None,
    as_json: bool,
) -> None:
    """Simulate policies and the optimum in one world, with common random numbers.

    With --doubt, p is drawn from the prior or, with this probability, from a flat one, and the optimum knows that.

    If labels come late or p drifts, the optimum is named after its assumption. If delays are exponential, the policies
    are compared with optimal exposure limits.

    With --offer, each arrival asks for one of the offers, and rewards are in money. By default the optimum is compared
    with the greedy policy, with one policy for each break-even, with the same policy for all offers at their mean
    break-even, and with accepting everyone. A --policy that takes a cost gets the mean break-even.

    \b
    Example:
      lenience simulate --cost 0.8 --discount 0.99 --policy greedy --policy bayes-ucb:quantile=0.95
      lenience simulate --cost 0.8 --discount 0.99 --world bernoulli:p=0.85 --figure compare.png
      lenience simulate --gain 200 --loss 800 --currency $ --discount 0.99 --prior 10,7 --doubt 0.2
      lenience simulate --offer 500@0.8 --offer 5000@0.8 --discount 0.99 --currency $
    """
    from lenience.policies.registry import policy_named, takes
    from lenience.simulation.compare import compare_policies
    from lenience.simulation.named_worlds import world_named
    from lenience.simulation.reference_policies import columns_in_words

    if figure is not None:
        from lenience.plot.style import check_path

        check_path(figure, "figure")
    settings: dict[str, Any] = {"cost": cost, "discount": discount, "horizon": horizon, "prior": prior}
    if offers is not None:
        settings |= {"cost": offers.mean_cost, "offers": offers}
    chosen: Any = _offer_baselines(offers, discount, horizon, prior) if offers is not None and not policies else []
    for text in policies or (POLICIES if offers is None else ()):
        name, given = parse_spec("policy", text)
        filled = {key: value for key, value in settings.items() if takes(name, key)}
        chosen.append(policy_named(name, **{**filled, **given}))
    name, given = parse_spec("world", world)
    if name == "prior" and not given:
        given = {"prior": prior} if doubt is None else {"prior": prior, "doubt": doubt}
    named: Any = chosen
    if doubt is not None:
        if cost is None:
            raise InputError.because(
                "cannot be combined with --offer", ("--doubt", "--offer"), label="--doubt", code="conflicting_fields"
            )
        named = _with_doubt(chosen, name, cost, horizon, discount, prior, doubt)
    bar = not as_json and sys.stderr.isatty()
    with nullcontext() if bar else announcing(f"Simulating {replications:,} replications of {horizon:,} arrivals"):
        comparison = compare_policies(
            named,
            world_named(name, **given),
            cost=cost,
            offers=offers,
            horizon=horizon,
            prior=prior,
            discount=discount,
            replications=replications,
            seed=seed,
            workers=workers,
            progress=bar,
        )
    files = [str(path) for path in comparison.save(folder)] if folder is not None else []
    if figure is not None:
        from lenience.plot import plot_comparison

        plot_comparison(comparison, path=figure, money=money)
        files.append(figure)
    if as_json:
        print_json(
            {
                "horizon": horizon,
                "replications": replications,
                "unit": unit_of(cost, money),
                "summary": comparison.summary(),
                "reference": comparison.baseline,
                "note": comparison.note,
                "files": files,
            }
        )
        return
    lines = comparison.table(money=money)
    shown = [position for position, heading in enumerate(lines[0]) if heading not in ("regret", "learning cost")]
    what = f"c = {cost:g}" if offers is None else describe_offers(offers)
    grid = table(f"{replications:,} replications of {horizon:,} arrivals, {what}, γ = {discount:g} (95% intervals)")
    for position in shown:
        grid.add_column(lines[0][position], justify="left" if position == 0 else "right", no_wrap=position == 0)
    for line in lines[1:]:
        grid.add_row(*(line[position] for position in shown))
    out = console()
    out.print(grid)
    out.print(columns_in_words([comparison.baseline] if comparison.baseline else [], cost, money))
    if comparison.note:
        out.print(comparison.note)
    for path in files:
        click.echo(f"Wrote {path}")


def _with_doubt(
    policies: list[Any], world: str, cost: float, horizon: int, discount: float, prior: Belief, doubt: float
) -> dict[str, Any]:
    """Return the policies by name, after the optimum for a prior that may be wrong and the one without doubt."""
    from lenience.core.mixture_belief import MixtureBelief
    from lenience.objectives.finite_horizon import FiniteHorizon
    from lenience.policies.beliefs.mixture import MixturePolicy
    from lenience.policies.registry import label_of
    from lenience.simulation.reference_policies import OPTIMUM

    if world not in DOUBT_WORLDS:
        raise InputError.because(
            f"can be used with the worlds {' and '.join(DOUBT_WORLDS)}, not with {world}",
            ("--doubt", "--world"),
            label="--doubt",
            code="conflicting_fields",
        )
    problem = FiniteHorizon(cost, horizon, discount)
    mixture = MixtureBelief.doubt(prior, doubt)
    best = MixturePolicy.of(problem.solve(mixture), rows=horizon)
    named = {OPTIMUM: best, f"{OPTIMUM} without doubt": problem.solve(prior)}
    return {**named, **{label_of(policy): policy for policy in policies}}


def _offer_baselines(offers: Offers, discount: float, horizon: int, prior: Belief) -> dict[str, Any]:
    """Return what the optimum is compared with, unless policies are given."""
    from lenience.objectives.discounted import Discounted
    from lenience.objectives.finite_horizon import FiniteHorizon
    from lenience.policies.beliefs.constant import Constant
    from lenience.policies.beliefs.offer_baselines import GreedyOffers, PolicyPerCost

    def solved(cost: float) -> Any:
        problem = Discounted(cost, discount) if discount < 1.0 else FiniteHorizon(cost, horizon)
        return problem.solve(prior)

    return {
        "greedy": GreedyOffers(),
        "policy for each break-even": PolicyPerCost({cost: solved(cost) for cost in set(offers.cost)}),
        "same policy for all": solved(offers.mean_cost),
        "always accept": Constant(1.0),
    }
