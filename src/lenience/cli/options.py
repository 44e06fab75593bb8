"""Options and output that commands share."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.settings import KEY, URL
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Command = TypeVar("Command", bound=Callable[..., Any])

MOST_RATE, MOST_YEARS = 1.0, 20.0  # of interest and of delays, beyond which they may be meant otherwise
PIPED_WIDTH = 120  # columns, where output goes to a file or another command


class PriorType(click.ParamType[Belief]):
    """A belief written as n,s."""

    name = "n,s"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Belief:
        """Read 'n,s'."""
        if isinstance(value, Belief):
            return value
        try:
            n, s = (float(part) for part in str(value).split(","))
        except ValueError:
            raise InputError("prior", value, "n,s (observations, successes), such as 2,1") from None
        try:
            return Belief(n, s)
        except InputError as error:
            raise error.at(f"--prior {value}") from None


# Shells complete these as file names; what is wrong with a file is said where it is read or written.
FILE = click.Path(readable=False)
FOLDER = click.Path(file_okay=False, readable=False)

cost_option = click.option("--cost", type=float, required=True, help="The break-even success rate, between 0 and 1.")
prior_option = click.option(
    "--prior",
    type=PriorType(),
    default=Belief(2, 1),
    show_default="2,1, which is Beta(1, 1)",
    help="The belief at the start: n,s, observations and successes, virtual ones included.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
tolerance_option = click.option(
    "--tolerance", type=float, default=1e-9, show_default=True, help="How closely values are to be known."
)
rows_option = click.option(
    "--rows", type=int, default=1000, show_default=True, help="How many belief sizes n to decide."
)


def service_options(role: str) -> Callable[[Command], Command]:
    """The options that say which running service is meant, and with which key it is asked."""

    def added(command: Command) -> Command:
        key = f"An API key with the role {role}, where keys exist."
        command = click.option("--key", envvar=KEY, show_envvar=True, help=key)(command)
        return click.option(
            "--url", default="http://127.0.0.1:8000", show_default=True, envvar=URL, show_envvar=True,
            help="The service's address, as lenience serve prints it.",
        )(command)  # fmt: skip

    return added


def objective_options(command: Command) -> Command:
    """The options that say what is to be maximised; :func:`objective` reads them."""
    for option in (
        click.option("--horizon", type=int, help="Individuals in all, instead of an infinite number."),
        click.option("--discount-rate", type=float, help="The yearly interest rate, such as 0.1, with --arrivals."),
        click.option("--arrivals", type=float, help="Individuals a year; with --discount-rate, instead of --discount."),
        click.option("--discount", type=float, help="The discount γ from one individual to the next, in [0, 1)."),
        cost_option,
    ):
        command = option(command)
    return command


def objective(
    cost: float, discount: float | None, arrivals: float | None, discount_rate: float | None, horizon: int | None
) -> Discounted | FiniteHorizon:
    """The objective that the options describe."""
    if horizon is not None:
        if arrivals is not None or discount_rate is not None:
            raise InputError.because(
                "cannot be combined with --arrivals or --discount-rate",
                ("--horizon", "--arrivals", "--discount-rate"),
                label="--horizon",
                hint="Use it with --discount, or alone.",
                code="conflicting_fields",
            )
        return FiniteHorizon(cost, horizon, 1.0 if discount is None else discount)
    return discounted(cost, discount, arrivals, discount_rate, ", or --horizon")


def discounted(
    cost: float, discount: float | None, arrivals: float | None, discount_rate: float | None, else_: str = ""
) -> Discounted:
    """The discounted objective that the options describe; ``else_`` is what the command would take instead."""
    if discount is not None:
        if arrivals is not None or discount_rate is not None:
            raise InputError.because(
                "Give either --discount or --arrivals with --discount-rate, not both",
                ("--discount", "--arrivals"),
                label="",
                code="conflicting_fields",
            )
        return Discounted(cost, discount)
    if arrivals is None or discount_rate is None:
        raise InputError.because(
            f"Give --discount, or --arrivals with --discount-rate{else_}",
            ("--discount", "--arrivals", "--discount-rate"),
            label="",
            code="missing",
        )
    told_units(discount_rate)
    return Discounted.from_rates(cost, arrivals, discount_rate)


def told_units(discount_rate: float, delays: Sequence[float] = ()) -> None:
    """Say on stderr that a rate or a delay is hardly in the unit that is asked for."""
    if discount_rate > MOST_RATE:
        of = f"{discount_rate:g} is {100 * discount_rate:,.6g}% a year"
        click.echo(f"Note: --discount-rate is a fraction a year, 0.1 for 10%: {of}.", err=True)
    for years in delays:
        if years > MOST_YEARS:
            click.echo(f"Note: --label-delay is in years, 0.25 for three months: {years:g} is long.", err=True)


def told_width(width: float, tolerance: float) -> None:
    """Say on stderr that rounding leaves more open than was asked for."""
    if width > 2 * tolerance:  # a little more is nothing to speak of
        click.echo(f"Note: so near a discount of 1 rounding leaves {width:.1g} open, more than --tolerance.", err=True)


def given(option: str) -> bool:
    """Whether the command line has an option, and not only its default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def known(module: str, names: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A shell completion from the names that a module has, or a function of it gives; loaded when asked for."""

    def complete(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        found = getattr(import_module(module), names)
        return [name for name in (found() if callable(found) else found) if name.startswith(typed)]

    return complete


def as_dict(bounds: Bounds) -> dict[str, float]:
    """Bounds for JSON."""
    return {"lower": bounds.lower, "upper": bounds.upper}


def print_json(answer: object) -> None:
    """Print one JSON object; JSON knows no infinity, which is null."""
    click.echo(json.dumps(_finite(answer), indent=2, allow_nan=False))


def console() -> Console:
    """Where tables go: wide enough for them where no terminal says how wide it is.

    Brackets and colons are printed as they are, for names come from data; what is to stand out is :func:`bold`.
    """
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise

    piped = not sys.stdout.isatty() and not os.environ.get("COLUMNS")
    return Plain(highlight=False, markup=False, emoji=False, width=PIPED_WIDTH if piped else None)


def bold(text: object) -> Text:
    """Text that stands out."""
    from rich.text import Text

    return Text(str(text), style="bold")


def table(title: str | None = None) -> Table:
    """An empty table in the house's style."""
    from rich import box
    from rich.table import Table

    class Folding(Table):
        def add_column(self, *heading: Any, **how: Any) -> None:
            # In a narrow window a word is broken: cut off, it could not be read.
            super().add_column(*heading, **{"overflow": "ellipsis" if how.get("no_wrap") else "fold"} | how)

    return Folding(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def show(bounds: Bounds, digits: int = 6) -> str:
    """Bounds as one number where they agree to so many digits, else both."""
    if bounds.lower == float("inf"):
        return "∞"
    if bounds.upper == float("inf"):
        return f"≥ {bounds.lower:.{digits}g}"
    lower, upper = f"{bounds.lower:.{digits}g}", f"{bounds.upper:.{digits}g}"
    if lower == upper or bounds.width <= 10.0**-digits:
        return f"{bounds.midpoint:.{digits}g}"
    return f"{lower} … {upper}"


def _finite(answer: Any) -> Any:
    """An answer with null for numbers that JSON does not know.

    >>> _finite({"upper": float("inf"), "rows": [(1.5, float("nan"))]})
    {'upper': None, 'rows': [[1.5, None]]}
    """
    if isinstance(answer, dict):
        return {key: _finite(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [_finite(value) for value in answer]
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer
