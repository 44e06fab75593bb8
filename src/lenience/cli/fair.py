"""lenience fair: the best policy under a fairness constraint, its price, and who pays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from lenience.cli.economics import economics_options
from lenience.cli.options import FILE, bold, console, discounted, json_option, print_json, table, unit_of
from lenience.cli.past import LAST_YEAR, PastOptions, history_options, part_of_a_year, read_past_options
from lenience.cli.progress import announcing
from lenience.core.errors import InputError
from lenience.core.formatting import counted, even_percent, percent, plural
from lenience.core.money import Money
from lenience.core.validation import whole

if TYPE_CHECKING:
    from lenience.analysis.fair_constraints import Constraint, Measure
    from lenience.analysis.fair_optimum import FairOptimum, FairSegment, PriceOfFairness
    from lenience.segments.segments import Segments

FICO = "fico"  # stands for the tables that come with the package
FICO_COLUMNS = ("race", "band")
KINDS: dict[str, Measure] = {"parity": "acceptance", "opportunity": "opportunity"}
COLUMNS = {"segment_columns": "--segment", "accepted_column": "--accepted", "outcome_column": "--outcome"}
MOST_SHOWN = 40
BANDS, EVIDENCE = 10, 20.0  # of the FICO tables, by default


class Population(NamedTuple):
    """Segments, and the groups of each."""

    segments: Segments
    groups: dict[str, dict[str, float]]
    past: PastOptions | None

    @property
    def names(self) -> list[str]:
        """The groups."""
        return list(dict.fromkeys(group for own in self.groups.values() for group in own))


@click.command(short_help="Compute the best policy under a fairness constraint, and its price.")
@history_options
@economics_options(required=True)
@click.option(
    "--constraint",
    type=click.Choice([*KINDS, "floor"]),
    default="parity",
    show_default=True,
    help="Equal acceptance rates, equal rates of those who succeed (opportunity), or a lowest rate (floor).",
)
@click.option("--within", type=float, help="The largest difference between groups, such as 0.05, which is the default.")
@click.option("--raise-only", is_flag=True, help="Only raise rates: no group's rate may fall.")
@click.option("--floor", type=float, help="The lowest acceptance rate of a group; with --constraint floor.")
@click.option("--floor-group", multiple=True, help="A group that the floor is for; may be repeated. By default all.")
@click.option("--points", type=int, default=6, show_default=True, help="Limits in the table of prices; 0 for no table.")
@click.option("--evidence", type=float, help="With fico: the outcomes that are known of each segment; by default 20.")
@click.option("--bands", type=int, help="With fico: the number of score bands; by default 10.")
@click.option("--figure", type=FILE, help="Draw the price of fairness into this file (.png, .svg or .pdf).")
@json_option
def fair(
    cost: float | None,
    money: Money,
    constraint: str,
    within: float | None,
    raise_only: bool,
    floor: float | None,
    floor_group: tuple[str, ...],
    points: int,
    evidence: float | None,
    bands: int | None,
    figure: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compute the best policy for the past decisions in SOURCE under a fairness constraint, with a proof.

    SOURCE is a file or table of past decisions, or the word fico for the Federal Reserve's tables. Name the column of
    the groups with --group. If it is a --segment too, decisions differ by group, which is illegal for lenders in many
    countries. If it is not, decisions depend on the segment alone, and groups count by their share of each segment.

    \b
    Example:
      lenience fair loans.csv --segment region --group sex --accepted approved --outcome repaid \\
        --gain 400 --loss 6000 --currency $ --arrivals 500 --discount-rate 0.1 --within 0.05
      lenience fair fico --segment band --group race --cost 0.8 --discount 0.9998 --figure price.png
      lenience fair fico --segment race --segment band --group race --cost 0.8 --discount 0.9998 --raise-only
    """
    from lenience.analysis.fair_optimum import fair_optimum, price_of_fairness
    from lenience.plot.style import check_path

    rule = _constraint(constraint, within, raise_only, floor, floor_group)
    count = whole("--points", points)
    if count == 1:
        raise InputError("--points", points, "0, or a whole number of at least 2")
    if figure is not None:
        if not count or constraint == "floor":
            raise InputError.because(
                "needs --constraint parity or opportunity, and --points of at least 2",
                ("--figure", "--constraint", "--points"),
                label="--figure",
                code="conflicting_fields",
            )
        check_path(figure, "--figure")
    options |= {"cost": cost, "label_delay": None, "truths": None}
    if options["monitor"]:
        raise InputError.because("is --group here, the column of the groups", "--monitor", code="conflicting_fields")
    population = _population(options, evidence, bands)
    if population.past is not None:
        options["arrivals"] = population.past.arrivals
    money = money.per_year(part_of_a_year(options))
    segments, groups = population.segments, population.groups
    for group in floor_group:
        if group not in population.names:
            raise InputError.unknown_name("--floor-group", group, population.names)
    with announcing(f"Solving {counted(len(segments), 'segment')} under the constraint"):
        result = fair_optimum(segments, groups, rule)
    curve = None
    if count and constraint != "floor":
        with announcing("Computing the price of fairness"):
            curve = price_of_fairness(segments, groups, KINDS[constraint], points=count)
    if figure is not None and curve is not None:
        from lenience.plot.fairness import plot_price_of_fairness

        plot_price_of_fairness(curve, figure, money)
    past = population.past
    if as_json:
        print_json(
            {
                **msgspec.to_builtins(result),
                "price": msgspec.to_builtins(result.price),
                "lowered": [row.group for row in result.lowered],
                "raised": [row.group for row in result.raised],
                "unit": unit_of(cost, money),
                "rows": None if past is None else past.history.rows,
                "description": None if past is None else past.history.describe(),
                "selection": None if past is None else past.history.selection() or None,
                "warning": None if past is None else _warning(past),
                "without_group": None if past is None or past.mix is None else past.mix.unknown,
                "curve": [] if curve is None else _curve_json(curve),
                "figure": figure,
            }
        )
        return
    _print(result, curve, past, money)
    if figure is not None:
        console().print(f"Wrote {Path(figure)}")


# The FICO tables have their columns, and true rates or late labels have no part in this computation.
for _parameter in fair.params:
    _parameter.required = _parameter.required and _parameter.name not in COLUMNS
    if isinstance(_parameter, click.Option) and _parameter.name == "group_columns":
        _parameter.help = "The column of the groups; may be repeated."
fair.params = [parameter for parameter in fair.params if parameter.name not in ("label_delay", "truths")]


def _constraint(
    kind: str, within: float | None, raise_only: bool, floor: float | None, floor_group: tuple[str, ...]
) -> Constraint:
    """Return the constraint that the options describe."""
    from lenience.analysis.fair_constraints import EqualOpportunity, Floors, Parity

    if kind == "floor":
        if floor is None or within is not None or raise_only:
            raise InputError.because(
                "needs --floor, and neither --within nor --raise-only: a floor only raises",
                ("--constraint", "--floor", "--within"),
                label="--constraint floor",
                code="missing" if floor is None else "conflicting_fields",
            )
        return Floors(dict.fromkeys(floor_group, floor) if floor_group else floor)
    if floor is not None or floor_group:
        raise InputError.because(
            "need --constraint floor", ("--floor", "--floor-group"), label="--floor and --floor-group", code="missing"
        )
    limit = 0.05 if within is None else within
    return Parity(limit, raise_only) if kind == "parity" else EqualOpportunity(limit, raise_only)


def _population(options: dict[str, Any], evidence: float | None, bands: int | None) -> Population:
    """Return the segments and their groups, from a file or from the FICO tables."""
    groups = options["group_columns"]
    if options["source"] == FICO:
        return _fico(options, evidence, bands)
    if evidence is not None or bands is not None:
        raise InputError.because(
            "need the source fico", ("--evidence", "--bands"), label="--evidence and --bands", code="conflicting_fields"
        )
    missing = [option for name, option in COLUMNS.items() if not options[name]] + ([] if groups else ["--group"])
    if missing:
        raise InputError.because(f"Give {' and '.join(missing)}", tuple(missing), label="", code="missing")
    if options["economics"] is not None:
        raise InputError.because(
            "fair takes one break-even for all, not the gain and the loss of each row",
            ("--gain", "--loss", "--amount"),
            label="",
            hint="Give --cost, or numbers for --gain and --loss.",
            code="unsupported_offers",
        )
    if not all(name in options["segment_columns"] for name in groups):
        options = {**options, "group_columns": ()}  # Beliefs do not look at the group either.
    past = read_past_options(**options, mix_columns=groups)
    assert past.segments is not None
    assert past.mix is not None
    return Population(past.segments, past.mix.shares, past)


def _fico(options: dict[str, Any], evidence: float | None, bands: int | None) -> Population:
    """Return the FICO tables as segments: score bands, or score bands of each group."""
    from lenience.segments.fico_bands import fico_segments

    columns = options["segment_columns"] or FICO_COLUMNS
    for option, names in (("--segment", columns), ("--group", options["group_columns"])):
        for name in names:
            if name not in FICO_COLUMNS:
                raise InputError.unknown_name(option, name, FICO_COLUMNS, "the columns of fico")
    if "band" not in columns or options["group_columns"] not in ((), ("race",)):
        raise InputError.because(
            "has the segments band, or race and band, and the group race",
            ("--segment", "--group"),
            label="fico",
            hint="Give --segment band --group race.",
        )
    given = next((option for name, option in COLUMNS.items() if name != "segment_columns" and options[name]), None)
    if given is not None:
        raise InputError.because(f"has no column for {given}", given, label="fico", code="conflicting_fields")
    if options["arrivals"] == LAST_YEAR:
        raise InputError("--arrivals", LAST_YEAR, "a number above 0, because fico has no dates")
    problem = discounted(options["cost"], options["discount"], options["arrivals"], options["discount_rate"])
    segments, mix = fico_segments(
        problem,
        by_group="race" in columns,
        bands=BANDS if bands is None else bands,
        evidence=EVIDENCE if evidence is None else evidence,
    )
    return Population(segments, mix, None)


def _curve_json(curve: PriceOfFairness) -> list[dict[str, Any]]:
    """Return the points of the curve for JSON."""
    return [
        {
            "within": limit,
            "value": msgspec.to_builtins(point.value),
            "value_raise_only": msgspec.to_builtins(raised.value),
            curve.measure: {
                group.group: {"value": _rate(point, g, curve), "raise_only": _rate(raised, g, curve)}
                for g, group in enumerate(point.groups)
            },
        }
        for limit, point, raised in zip(curve.within, curve.points, curve.raising, strict=True)
    ]


def _rate(point: FairOptimum, group: int, curve: PriceOfFairness) -> float:
    row = point.groups[group]
    return (row.acceptance if curve.measure == "acceptance" else row.opportunity).midpoint


def _print(result: FairOptimum, curve: PriceOfFairness | None, past: PastOptions | None, money: Money) -> None:
    """Print what the constraint costs, who pays, and the shifted break-evens."""
    from lenience.reports.segment_report_fair import (
        AVERAGE_NOTE,
        describe_inversion,
        describe_payers,
        describe_price,
        legal_note,
    )

    out = console()
    if past is not None:
        out.print(past.described())
        if past.history.selection():
            out.print(bold("Selective labels:"), f" {past.history.selection()}", sep="")
        if warning := _warning(past):
            out.print(bold("Warning:"), f" {warning}.", sep="")
        if past.mix is not None and past.mix.unknown:
            unknown = past.mix.unknown
            out.print(f"{counted(unknown, 'applicant')} {plural(unknown, 'has', 'have')} no group and count for none.")
    label = "Warning:" if result.group_aware else "Note:"
    out.print(bold(label), f" {legal_note(result)}", sep="")
    out.print()
    out.print(describe_price(result, money), describe_payers(result))
    if inverted := describe_inversion(result):
        out.print(bold("Warning:"), f" {inverted}", sep="")
    out.print(f"Amounts are {money.words}. {AVERAGE_NOTE}")
    out.print()
    grid = table("Groups: without the limit → with it")
    for heading in ("group", "share", "accepted", "of those who succeed", "value"):
        grid.add_column(heading, justify="left" if heading == "group" else "right")
    for row in result.groups:
        grid.add_row(
            row.group,
            even_percent(row.share),
            f"{even_percent(row.acceptance_without.midpoint)} → {even_percent(row.acceptance.midpoint)}",
            f"{even_percent(row.opportunity_without.midpoint)} → {even_percent(row.opportunity.midpoint)}",
            f"{money.format(row.value_without.midpoint)} → {money.format(row.value.midpoint)}",
        )
    out.print(grid)
    grid = table("Segments: the break-even to decide by")
    for heading in ("segment", "own break-even", "shifted to", "accepted"):
        grid.add_column(heading, justify="left" if heading == "segment" else "right")
    for segment in result.segments[:MOST_SHOWN]:
        before, after = segment.acceptance_without.midpoint, segment.acceptance.midpoint
        grid.add_row(
            segment.name, percent(segment.cost, 2), _shifted(segment), f"{even_percent(before)} → {even_percent(after)}"
        )
    out.print("\n", grid, sep="")
    if len(result.segments) > MOST_SHOWN:
        out.print(f"The first {MOST_SHOWN} of {len(result.segments):,} segments; --json prints all.")
    if curve is not None:
        out.print("\n", _price_table(curve, money), sep="")


def _warning(past: PastOptions) -> str | None:
    """Return warnings about the beliefs, and about outcomes that come late."""
    pending = sum(row.pending for row in past.history.segments)
    late = (
        f"{counted(pending, 'outcome')} {plural(pending, 'is', 'are')} pending, but the policies assume that outcomes "
        "come at once"
    )
    return "; ".join(filter(None, [past.fitted.warning, late if pending else ""])) or None


def _shifted(segment: FairSegment) -> str:
    """Describe the shifted break-evens of a segment."""
    if len(segment.policies) == 1:
        return percent(segment.policies[0].cost, 2)
    return " or ".join(f"{percent(each.cost, 2)} ({percent(each.probability, 0)})" for each in segment.policies)


def _price_table(curve: PriceOfFairness, money: Money) -> Any:
    """Return the table of prices by limit."""
    grid = table("The price of fairness, by the largest difference between groups")
    for heading in ("points", "rates rise and fall: value", "price", "rates only rise: value", "price"):
        grid.add_column(heading, justify="right")
    for limit, point, raised in zip(curve.within, curve.points, curve.raising, strict=True):
        cells = [bounds for each in (point, raised) for bounds in (each.value, each.price)]
        grid.add_row(f"{100 * limit:.1f}", *(money.format(bounds.midpoint) for bounds in cells))
    return grid
