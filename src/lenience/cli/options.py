"""Options and output that several commands share."""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.formatting import percent
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.offers import Offers
from lenience.core.settings import KEY, URL
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Command = TypeVar("Command", bound=Callable[..., Any])

MOST_RATE, MOST_YEARS = 1.0, 20.0  # a larger interest rate or delay is probably in another unit
PIPED_WIDTH = 120  # columns, if output goes to a file or another command


class PriorType(click.ParamType[Belief]):
    """A belief written as n,s."""

    name = "n,s"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Belief:
        """Parse 'n,s'."""
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


# Shells complete these as file names. Errors about a file are raised where it is read or written.
FILE = click.Path(readable=False)
FOLDER = click.Path(file_okay=False, readable=False)

prior_option = click.option(
    "--prior",
    type=PriorType(),
    default=Belief(2, 1),
    show_default="2,1, which is Beta(1, 1)",
    help="The belief at the start: n,s (observations and successes, including virtual ones).",
)
doubt_option = click.option(
    "--doubt",
    type=float,
    help="The probability that the prior is wrong, such as 0.2. If it is, a flat prior holds, Beta(1, 1).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
tolerance_option = click.option(
    "--tolerance", type=float, default=1e-9, show_default=True, help="The precision of the values."
)
rows_option = click.option(
    "--rows", type=int, default=1000, show_default=True, help="The number of belief sizes n to decide."
)


def with_doubt(prior: Belief, doubt: float | None) -> Belief | MixtureBelief:
    """Return the prior that the options --prior and --doubt describe."""
    return prior if doubt is None else MixtureBelief.doubt(prior, doubt)


def prior_text(prior: Belief | MixtureBelief) -> str:
    """Describe a prior in a few words.

    Examples
    --------
    >>> prior_text(Belief(4, 2.8)), prior_text(MixtureBelief.doubt(Belief(4, 2.8), 0.2))
    ('prior n = 4, s = 2.8', 'prior n = 4, s = 2.8 (80%) or n = 2, s = 1 (20%)')
    """
    if isinstance(prior, Belief):
        return f"prior n = {prior.n:g}, s = {prior.s:g}"
    parts = [
        f"n = {belief.n:g}, s = {belief.s:g} ({percent(weight)})"
        for belief, weight in zip(prior.beliefs, prior.weights, strict=True)
    ]
    return f"prior {' or '.join(parts)}"


def service_options(role: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options for the address and the key of a running service."""

    def add_options(command: Command) -> Command:
        key = f"An API key with the role {role}, if the service has keys."
        command = click.option("--key", envvar=KEY, show_envvar=True, help=key)(command)
        return click.option(
            "--url", default="http://127.0.0.1:8000", show_default=True, envvar=URL, show_envvar=True,
            help="The service's address, as lenience serve prints it.",
        )(command)  # fmt: skip

    return add_options


def cost_options(command: Command) -> Command:
    """Add the options for the break-even: --cost, or --gain with --loss and --currency.

    The command gets two parameters: ``cost``, the break-even success rate, and ``money``, how to show values.
    """
    return _with_money(command, required=True)


def optional_cost_options(command: Command) -> Command:
    """Add the options for the break-even to a command that needs none: ``cost`` may be None."""
    return _with_money(command, required=False)


def _with_money(command: Command, required: bool) -> Command:
    @functools.wraps(command)
    def run(*values: Any, gain: float | None, loss: float | None, currency: str, **options: Any) -> Any:
        cost, money = break_even(options.pop("cost"), gain, loss, currency, required)
        return command(*values, cost=cost, money=money, **options)

    for option in (
        click.option("--currency", default="", help="The currency to show amounts in, such as $ or EUR; with --gain."),
        click.option("--loss", type=float, help="What a failure loses, in money; with --gain."),
        click.option("--gain", type=float, help="What a success gains, in money; with --loss, instead of --cost."),
        click.option("--cost", type=float, help="The break-even success rate, between 0 and 1; or --gain and --loss."),
    ):
        run = option(run)
    return cast("Command", run)


def break_even(
    cost: float | None, gain: float | None, loss: float | None, currency: str, required: bool
) -> tuple[float | None, Money]:
    """Return the break-even success rate and how to show values, from the options that describe them."""
    if gain is None and loss is None:
        if currency:
            raise InputError.because(
                "needs --gain and --loss: without them, no amount of money is known",
                ("--currency", "--gain", "--loss"),
                label="--currency",
                code="missing",
            )
        if cost is not None and 1 <= cost <= 100:
            raise InputError(
                "--cost", cost, "a number strictly between 0 and 1", hint=f"Type {cost / 100:g} for {cost:g}%."
            )
        if cost is not None or not required:
            return cost, Money()
    if cost is not None or gain is None or loss is None:
        raise InputError.because(
            "Give either --cost, or --gain with --loss",
            ("--cost", "--gain", "--loss"),
            label="",
            code="missing" if cost is None else "conflicting_fields",
        )
    money = Money.from_gain_and_loss(gain, loss, currency)
    return loss / (gain + loss), money


def unit_of(cost: float | None, money: Money) -> dict[str, object] | None:
    """Return what one unit of value is worth, for JSON; None if no money is known.

    Examples
    --------
    >>> unit_of(0.75, Money(400, "$"))
    {'gain': 100.0, 'loss': 300.0, 'amount': 400.0, 'currency': '$'}
    """
    if money.unit is None or cost is None:
        return None
    loss = money.unit * cost
    return {"gain": money.unit - loss, "loss": loss, "amount": money.unit, "currency": money.currency}


def offer_option(required: bool) -> Callable[[Command], Command]:
    """Return the option --offer, whose texts :func:`parse_offers` reads."""
    instead = "" if required else " Instead of --cost."
    return click.option(
        "--offer",
        "texts",
        multiple=True,
        required=required,
        help="AMOUNT@BREAK-EVEN or AMOUNT@BREAK-EVEN@SHARE, such as 500@0.8; may be repeated. The amount at stake is "
        f"the gain plus the loss.{instead}",
    )


choose_option = click.option(
    "--choose", is_flag=True, help="Every applicant may be offered any of these. Without it, each asks for one."
)


def cost_or_offer_options(command: Command) -> Command:
    """Add the options for the break-even, and --offer with --choose instead of them.

    The command gets three parameters: ``cost``, None if there are offers; ``money``, how to show values; and
    ``offers``, None if there is a break-even for all.
    """

    @functools.wraps(command)
    def run(
        *values: Any,
        cost: float | None,
        gain: float | None,
        loss: float | None,
        currency: str,
        texts: tuple[str, ...],
        choose: bool,
        **options: Any,
    ) -> Any:
        if texts:
            if not (cost is gain is loss is None):
                raise InputError.because(
                    "cannot be combined with --cost, --gain or --loss",
                    ("--offer", "--cost", "--gain", "--loss"),
                    label="--offer",
                    code="conflicting_fields",
                )
            offers = parse_offers(texts, choose, currency)
            return command(*values, cost=None, money=offers.money, offers=offers, **options)
        if choose:
            raise InputError.because("needs --offer", ("--choose", "--offer"), label="--choose", code="missing")
        break_even_rate, money = break_even(cost, gain, loss, currency, required=True)
        return command(*values, cost=break_even_rate, money=money, offers=None, **options)

    for option in (
        choose_option,
        offer_option(required=False),
        click.option(
            "--currency", default="", help="The currency to show amounts in, such as $ or EUR; with --gain or --offer."
        ),
        click.option("--loss", type=float, help="What a failure loses, in money; with --gain."),
        click.option("--gain", type=float, help="What a success gains, in money; with --loss, instead of --cost."),
        click.option("--cost", type=float, help="The break-even success rate, between 0 and 1; or --gain and --loss."),
    ):
        run = option(run)
    return cast("Command", run)


def parse_offers(texts: tuple[str, ...], choose: bool, currency: str) -> Offers:
    """Return the offers that the options describe."""
    rows: list[list[float]] = []
    for text in texts:
        try:
            numbers = [float(part) for part in text.split("@")]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3):
            raise InputError("--offer", text, "AMOUNT@BREAK-EVEN or AMOUNT@BREAK-EVEN@SHARE, such as 500@0.8")
        rows.append(numbers)
    with_share = [len(row) == 3 for row in rows]
    if choose and any(with_share):
        raise InputError.because(
            "cannot have shares with --choose: every applicant may be offered any of them",
            "--offer",
            code="conflicting_fields",
        )
    if any(with_share) and not all(with_share):
        raise InputError.because("must all have a share, or none", "--offer", code="missing")
    shares = tuple(row[2] for row in rows) if all(with_share) else ()
    menus = (0,) * len(rows) if choose else ()
    return Offers(tuple(row[0] for row in rows), tuple(row[1] for row in rows), shares, menus, currency)


def objective_options(command: Command, costs: Callable[[Command], Command] = cost_options) -> Command:
    """Add the options that describe the objective; :func:`objective` reads them."""
    for option in (
        click.option("--horizon", type=int, help="The total number of individuals; by default infinite."),
        click.option("--discount-rate", type=float, help="The yearly interest rate, such as 0.1, with --arrivals."),
        click.option(
            "--arrivals", type=float, help="Individuals per year; with --discount-rate, instead of --discount."
        ),
        click.option("--discount", type=float, help="The discount γ from one individual to the next, in [0, 1)."),
        costs,
    ):
        command = option(command)
    return command


def objective_or_offer_options(command: Command) -> Command:
    """Add the options that describe the objective, with offers or a break-even."""
    return objective_options(command, cost_or_offer_options)


def objective(
    cost: float, discount: float | None, arrivals: float | None, discount_rate: float | None, horizon: int | None
) -> Discounted | FiniteHorizon:
    """Return the objective that the options describe."""
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
    """Return the discounted objective that the options describe; ``else_`` names what the command takes instead."""
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
    note_units(discount_rate)
    return Discounted.from_rates(cost, arrivals, discount_rate)


def note_units(discount_rate: float, delays: Sequence[float] = ()) -> None:
    """Print a note on stderr if a rate or a delay seems to be in the wrong unit."""
    if discount_rate > MOST_RATE:
        per_year = f"{discount_rate:g} is {100 * discount_rate:,.6g}% per year"
        click.echo(f"Note: --discount-rate is a fraction per year, 0.1 for 10%: {per_year}.", err=True)
    for years in delays:
        if years > MOST_YEARS:
            click.echo(f"Note: --label-delay is in years, 0.25 for three months: {years:g} is long.", err=True)


def note_rounding(width: float, tolerance: float) -> None:
    """Print a note on stderr if rounding makes the result less precise than the tolerance."""
    if width > 2 * tolerance:  # a slightly wider result does not matter
        click.echo(
            f"Note: this close to a discount of 1, rounding limits the precision to {width:.1g}, above --tolerance.",
            err=True,
        )


def given(option: str) -> bool:
    """Return whether the user gave an option on the command line."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def known(module: str, names: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a shell completion from the names in a module, or those that a function of it returns.

    The module is imported only when the shell asks for a completion.
    """

    def complete(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        source = getattr(import_module(module), names)
        return [name for name in (source() if callable(source) else source) if name.startswith(typed)]

    return complete


def as_dict(bounds: Bounds) -> dict[str, float]:
    """Return bounds for JSON."""
    return {"lower": bounds.lower, "upper": bounds.upper}


def print_json(answer: object) -> None:
    """Print one JSON object; infinite numbers and NaN become null."""
    click.echo(json.dumps(_finite(answer), indent=2, allow_nan=False))


def console() -> Console:
    """Return the console for tables; if no terminal gives a width, it is wide enough for them.

    Names come from data, so brackets and colons are printed literally. Use :func:`bold` for emphasis.
    """
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise

    piped = not sys.stdout.isatty() and not os.environ.get("COLUMNS")
    return Plain(highlight=False, markup=False, emoji=False, width=PIPED_WIDTH if piped else None)


def bold(text: object) -> Text:
    """Return bold text."""
    from rich.text import Text

    return Text(str(text), style="bold")


def table(title: str | None = None) -> Table:
    """Return an empty table in the style of all commands."""
    from rich import box
    from rich.table import Table

    class Folding(Table):
        def add_column(self, *heading: Any, **how: Any) -> None:
            # In a narrow window, wrap long words instead of cutting them off.
            super().add_column(*heading, **{"overflow": "ellipsis" if how.get("no_wrap") else "fold"} | how)

    return Folding(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def show(bounds: Bounds, digits: int = 6) -> str:
    """Format bounds as one number if they agree to ``digits`` digits, and otherwise as both."""
    if bounds.lower == float("inf"):
        return "∞"
    if bounds.upper == float("inf"):
        return f"≥ {bounds.lower:.{digits}g}"
    lower, upper = f"{bounds.lower:.{digits}g}", f"{bounds.upper:.{digits}g}"
    if lower == upper or bounds.width <= 10.0**-digits:
        return f"{bounds.midpoint:.{digits}g}"
    return f"{lower} … {upper}"


def _finite(answer: Any) -> Any:
    """Replace numbers that JSON cannot represent by None.

    Examples
    --------
    >>> _finite({"upper": float("inf"), "rows": [(1.5, float("nan"))]})
    {'upper': None, 'rows': [[1.5, None]]}
    """
    if isinstance(answer, dict):
        return {key: _finite(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [_finite(value) for value in answer]
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer
