"""lenience plot: draw figures."""

from __future__ import annotations

import click

from lenience.cli.options import FILE, given, optional_cost_options, prior_option
from lenience.core.belief import Belief
from lenience.core.money import Money
from lenience.objectives.discounted import Discounted

DEFAULT_COST = 0.8
FIGURES = ("values", "thresholds", "characteristics", "regret")


@click.command(short_help="Draw value functions, thresholds, operating characteristics or regret.")
@click.argument("figure", type=click.Choice(FIGURES))
@click.option("--output", "-o", type=FILE, required=True, help="The file to write (.png, .svg or .pdf).")
@optional_cost_options
@click.option("--discount", "discounts", type=float, multiple=True, help="Discounts γ; may be repeated.")
@prior_option
@click.option("--most", type=float, help="The largest n (thresholds, 1000) or horizon (regret, 1000) shown.")
@click.option("--json", "as_json", is_flag=True, help="Print the file's name as a JSON object.")
def plot(
    figure: str,
    output: str,
    cost: float | None,
    money: Money,
    discounts: tuple[float, ...],
    prior: Belief,
    most: float | None,
    as_json: bool,
) -> None:
    """Draw FIGURE: the paper's value functions, thresholds against n, operating characteristics, or regret.

    Without --cost or --gain and --loss, the break-even is 0.8.

    \b
    Example:
      lenience plot values --output figure1.png
      lenience plot thresholds --cost 0.8 --discount 0.99 --output thresholds.svg
    """
    from lenience import plot as draw
    from lenience.cli.options import print_json
    from lenience.cli.progress import solving
    from lenience.core.errors import InputError
    from lenience.core.validation import real

    if most is not None and figure not in ("thresholds", "regret"):
        raise InputError.because(
            f"can be used for thresholds and regret, not for {figure}", "--most", code="conflicting_fields"
        )
    if len(discounts) > 1 and figure == "characteristics":
        raise InputError.because(
            "must be given once: characteristics are drawn for one discount",
            "--discount",
            value=list(discounts),
            code="duplicate",
        )
    if discounts and figure == "regret":
        raise InputError.because(
            "cannot be used for regret, which is not discounted", "--discount", code="conflicting_fields"
        )
    if given("prior") and figure in ("values", "thresholds"):
        raise InputError.because(
            f"can be used for characteristics and regret; {figure} do not depend on a prior",
            "--prior",
            code="conflicting_fields",
        )
    even = DEFAULT_COST if cost is None else cost
    limit = 1000.0 if most is None else real("most", most, above=1)
    draw.check_path(output)
    problems = [Discounted(even, discount) for discount in discounts or (0.99,)]
    if figure == "values":
        panels = discounts or (0.99, 0.95)
        drawn = solving("Computing the figure", lambda: draw.value_functions(even, panels, money=money))
    elif figure == "thresholds":
        drawn = solving("Computing the figure", lambda: draw.thresholds(problems, limit))
    elif figure == "characteristics":
        drawn = solving("Computing the figure", lambda: draw.operating_characteristics(problems[0], prior, money=money))
    else:
        from lenience.analysis.regret import regret_table

        real("most", limit, least=30, most=30_000)
        horizons = [h for h in (10, 30, 100, 300, 1000, 3000, 10_000, 30_000) if h <= limit]
        drawn = solving(
            "Computing the figure",
            lambda: draw.regret_against_horizon(regret_table(even, prior, horizons), even, money),
        )
    path = draw.save(drawn, output)
    if as_json:
        print_json({"figure": figure, "file": str(path)})
    else:
        click.echo(f"Wrote {path}")
