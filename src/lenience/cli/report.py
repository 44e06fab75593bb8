"""lenience report: write one HTML page on the segments of past decisions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from lenience.cli.economics import economics_options
from lenience.cli.monitored import monitored_json, print_monitored
from lenience.cli.options import FILE, doubt_option, json_option, print_json, unit_of
from lenience.cli.past import PastOptions, history_options, part_of_a_year, read_past_options
from lenience.cli.progress import announcing
from lenience.core.errors import InputError, TooLargeError
from lenience.core.formatting import duration, percent
from lenience.core.money import Money
from lenience.core.validation import real, whole

if TYPE_CHECKING:
    from lenience.analysis.fair_optimum import FairOptimum, PriceOfFairness
    from lenience.analysis.fairness import ConstraintCost
    from lenience.analysis.ignored_delay import Ignored
    from lenience.history.history import History
    from lenience.segments.exposure_limits import Exposure

Result = TypeVar("Result")
SOLVE_SECONDS = 0.05  # for one segment, by the solver's estimate; more than that narrows the bounds, and hardly more


@click.command(short_help="Write one HTML page on the segments of past decisions.")
@history_options
@economics_options(required=True)
@doubt_option
@click.option("--floor", type=float, help="A minimum acceptance probability; the page shows its cost by group.")
@click.option(
    "--floor-group", multiple=True, help="A group that the floor is for; may be repeated. By default all groups."
)
@click.option("--cap", type=int, help="Acceptances after which exploration of a segment ends; the page shows its cost.")
@click.option(
    "--fair",
    "fair_kind",
    type=click.Choice(["parity", "opportunity"]),
    help="Show the price of equal acceptance rates, or of equal rates of those who succeed (opportunity).",
)
@click.option("--fair-group", multiple=True, help="A column of the groups for --fair; by default those of --group.")
@click.option("--within", type=float, help="The largest difference between groups for --fair; by default 0.05.")
@click.option("--output", "-o", type=FILE, default="report.html", show_default=True, help="The page to write.")
@click.option("--title", help="The page's title. By default it names the columns that divide applicants.")
@json_option
def report(
    output: str,
    title: str | None,
    as_json: bool,
    floor: float | None,
    floor_group: tuple[str, ...],
    cap: int | None,
    fair_kind: str | None,
    fair_group: tuple[str, ...],
    within: float | None,
    cost: float | None,
    money: Money,
    **options: Any,
) -> None:
    """Solve every segment of the past decisions in SOURCE and write one self-contained HTML page on them.

    \b
    Example:
      lenience report loans.csv --segment region --accepted approved --outcome repaid \\
        --cost 0.8 --arrivals 500 --discount-rate 0.1 --output report.html
      lenience report loans.csv --segment band --score band --model curve --monitor sex --monitor age_band \\
        --accepted approved --outcome repaid --cost 0.8 --discount 0.999
      lenience report loans.csv --segment region --accepted approved --outcome repaid --gain 400 --loss 6000 \\
        --currency $ --arrivals 500 --discount-rate 0.1 --label-delay 0.75
      lenience report loans.csv --segment grade --accepted approved --outcome status --time decided \\
        --outcome-time closed --maturing --cost 0.8 --arrivals last-year --discount-rate 0.1
      lenience report loans.csv --segment grade --accepted approved --outcome repaid --amount amount --rate interest \\
        --term "36 months" --loss-given-default 0.6 --currency $ --arrivals 500 --discount-rate 0.1
    """
    from lenience.analysis.fairness import cost_of_exposure_cap, cost_of_floor
    from lenience.analysis.ignored_delay import cost_of_ignoring
    from lenience.analysis.status_quo import CAVEAT, compare_with_status_quo, describe_status_quo
    from lenience.reports.exposure_text import describe_limits, exposure_json
    from lenience.reports.segment_report import write_segments_report
    from lenience.reports.segment_report_exposure import describe_ignored
    from lenience.reports.segment_report_groups import followed_groups
    from lenience.segments.starting import starts

    target = Path(output)
    if target.suffix != ".html":
        raise InputError("output", output, "a file name ending in .html")
    if not target.parent.is_dir():
        raise InputError("output", str(target.parent), "in a folder that exists", code="missing_file")
    if floor_group and floor is None:
        raise InputError.because("needs --floor", ("--floor-group", "--floor"), label="--floor-group", code="missing")
    if floor_group and not options["group_columns"]:
        raise InputError.because(
            "needs --group, the segment column that holds the groups",
            ("--floor-group", "--group"),
            label="--floor-group",
            code="missing",
        )
    limit = "--floor" if floor is not None else None if cap is None else "--cap"
    if options["doubt"] is not None and limit is not None:
        raise InputError.because(
            "cannot be combined with --doubt: its cost is computed for a prior that is right",
            (limit, "--doubt"),
            label=limit,
            code="conflicting_fields",
        )
    if floor is not None:
        real("--floor", floor, above=0, most=1)
    if cap is not None:
        whole("--cap", cap)
    options["cost"] = cost
    groups = _fair_groups(fair_kind, fair_group, within, options)
    past = read_past_options(**options, floor_group=floor_group, mix_columns=groups)
    options["arrivals"] = past.arrivals
    money = money.per_year(part_of_a_year(options))
    assert past.segments is not None
    with announcing(f"Solving {len(past.segments.cells):,} segments"):
        policies = past.segments.solve(seconds=SOLVE_SECONDS)
    late = past.exposures(values=True)
    begins = {row.name: row.starts is not False for row in late}
    if not begins and options["economics"] is None:
        begins = {name: policies.accepts(name) for name in past.segments.names}
    accepts = begins or {row.name: row.starts for row in starts(past.segments)}
    warning = past.warning(accepts)
    compared = compare_with_status_quo(policies, past.history, late)
    ignored: list[Ignored] = []
    if late:
        with announcing("Computing what ignoring the delay costs"):
            ignored = cost_of_ignoring(late)
    constraints: dict[str, list[ConstraintCost] | str] = {}
    fine = 1e-6 if options["economics"] is None else 1e-4  # in units of gain + loss, or of the mean amount
    if floor is not None:
        floors = dict.fromkeys(floor_group or past.segments.groups, floor)
        with announcing("Computing what the floor costs"):
            least = f"accept at least {percent(floor, 2)}"
            constraints[least] = _unless_too_large(lambda: cost_of_floor(policies, floors, fine))
    if cap is not None:
        caps = dict.fromkeys(past.segments.names, cap)
        with announcing("Computing what the cap costs"):
            constraints[f"explore at most {cap:,} acceptances"] = _unless_too_large(
                lambda: cost_of_exposure_cap(policies, caps, fine)
            )
    fair = None
    if fair_kind is not None:
        with announcing("Computing the price of fairness"):
            fair = _unless_too_large(lambda: _price_of_fairness(past, fair_kind, within))
    with announcing("Following the segments forward and writing the page"):
        write_segments_report(
            target,
            policies,
            title=title or f"Whom to accept, by {' and '.join(options['segment_columns'])}",
            truths=past.truths,
            shrinkage=past.fitted.shrinkage,
            history=past.history,
            outset=past.outset,
            constraints=constraints,
            warning=past.warning(accepts, on_page=True),
            facts=_facts(past.history, options, money),
            money=money,
            late=late,
            ignored=ignored,
            fair=fair,
            monitored=past.monitored,
        )
    if as_json:
        by_group = followed_groups(policies, past.truths)
        print_json(
            {
                "file": output,
                "segments": len(past.segments.cells),
                "unit": unit_of(cost, money),
                "value": math.fsum(row.worth for row in late) if late else policies.value().midpoint,
                "groups": None if isinstance(by_group, str) else msgspec.to_builtins(by_group),
                "shut_out_at_outset": msgspec.to_builtins(past.outset),
                "constraints": {
                    name: None if isinstance(rows, str) else math.fsum(row.cost.midpoint for row in rows)
                    for name, rows in constraints.items()
                },
                "not_computed": {name: why for name, why in constraints.items() if isinstance(why, str)},
                "monitored": monitored_json(past.monitored),
                "decides_by_protected": list(past.protected),
                "fair": None if fair is None or isinstance(fair, str) else msgspec.to_builtins(fair[0]),
                "selection": past.history.selection() or None,
                "warning": warning,
                "last_year": past.history.last_year,
                "immaturity": msgspec.to_builtins(past.history.immaturity),
                "price_dependence": msgspec.to_builtins(past.history.price_dependence),
                "than_now": {
                    "amounts": money.words,
                    "as_now": money.amount(math.fsum(row.as_now for row in compared)),
                    "proposed": money.amount(math.fsum(row.proposed for row in compared)),
                    "segments": [
                        {
                            **msgspec.to_builtins(row),
                            "as_now": money.amount(row.as_now),
                            "proposed": money.amount(row.proposed),
                        }
                        for row in compared
                    ],
                },
                "late": [{"segment": row.name, **exposure_json(row)} for row in late] if late else None,
                "ignoring_the_delay": [
                    {
                        "segment": row.segment,
                        "limited": money.amount(row.limited),
                        "blind": None if row.blind is None else money.amount(row.blind),
                    }
                    for row in ignored
                ],
            }
        )
        return
    click.echo(past.described())
    if past.history.selection():
        click.echo(f"Selective labels: {past.history.selection()}")
    if warning:
        click.echo(f"Warning: {warning}.")
    if past.late is not None:
        click.echo(f"Late labels: {describe_limits(past.late, late, past.history.as_of is not None)}")
        click.echo(" ".join(filter(None, [_counted_limits(late), describe_ignored(ignored, money)])))
    click.echo(f"Compared with today: {describe_status_quo(compared, money)} {CAVEAT}")
    print_monitored(past.monitored)
    for name, why in constraints.items():
        if isinstance(why, str):
            click.echo(f"The cost of the constraint to {name} was not computed: {why}.")
    click.echo(f"Wrote {output}")


def _counted_limits(late: list[Exposure]) -> str:
    """Count the segments by what to do with them, in one sentence."""
    from lenience.reports.exposure_text import is_limited

    kinds = {
        "to accept without a limit": sum(not is_limited(row) for row in late),
        "to accept up to a limit": sum(bool(row.room) or (row.unlimited and is_limited(row)) for row in late),
        "to wait for labels": sum(row.now == "wait" for row in late),
        "to reject": sum(row.limit == 0 for row in late),
        "not computed": sum(bool(row.not_computed) for row in late),
    }
    counts = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    return f"{len(late):,} segments: {counts}."


def _fair_groups(
    kind: str | None, groups: tuple[str, ...], within: float | None, options: dict[str, Any]
) -> tuple[str, ...]:
    """Return the columns of groups that are no segments; check the options of the price of fairness."""
    if kind is None:
        if groups or within is not None:
            raise InputError.because(
                "need --fair",
                ("--fair-group", "--within", "--fair"),
                label="--fair-group and --within",
                code="missing",
            )
        return ()
    columns = groups or options["group_columns"]
    if not columns:
        raise InputError.because(
            "needs --fair-group, the column of the groups", ("--fair", "--fair-group"), label="--fair", code="missing"
        )
    if options["economics"] is not None or options["label_delay"] is not None:
        raise InputError.because(
            "takes one break-even for all and outcomes that come at once",
            ("--fair", "--gain", "--label-delay"),
            label="--fair",
            hint="Give --cost, or numbers for --gain and --loss, and no --label-delay.",
            code="unsupported_offers",
        )
    if within is not None:
        real("--within", within, least=0, most=1)
    return tuple(columns)


def _price_of_fairness(past: PastOptions, kind: str, within: float | None) -> tuple[FairOptimum, PriceOfFairness]:
    """Return the fair optimum at the limit, and at every limit."""
    from lenience.analysis.fair_constraints import EqualOpportunity, Parity
    from lenience.analysis.fair_optimum import fair_optimum, price_of_fairness

    assert past.segments is not None
    assert past.mix is not None
    limit = 0.05 if within is None else within
    rule = Parity(limit) if kind == "parity" else EqualOpportunity(limit)
    result = fair_optimum(past.segments, past.mix.shares, rule)
    return result, price_of_fairness(past.segments, past.mix.shares, rule.measure)


def _unless_too_large(work: Callable[[], Result]) -> Result | str:
    """Return the result of a computation, or why it takes too long; the page is useful without it."""
    try:
        return work()
    except TooLargeError as error:
        return error.sentence


def _facts(history: History, options: dict[str, Any], money: Money) -> dict[str, str]:
    """Return what the page is based on."""
    facts = {"file": options["source"], "model": options["model"]}
    if options["economics"] is not None:
        offers = history.offers_of_all()
        facts["mean amount at stake"] = money.per_year(None).format(offers.mean_amount)
        facts["break-even of all"] = percent(offers.mean_cost, 2)
        given = options["economics"].given
        facts |= {name.replace("_", " "): str(value) for name, value in given.items()}
    else:
        facts["break-even"] = percent(options["cost"], 2)
    if money.known and options["economics"] is None:
        one = money.per_year(None)
        facts["gain"], facts["loss"] = one.format(1.0 - options["cost"]), one.format(options["cost"])
    if options["discount"] is not None:
        facts["discount"] = f"{options['discount']:g}"
    else:
        facts["arrivals a year"] = f"{options['arrivals']:,.10g}"
        facts["yearly interest rate"] = percent(options["discount_rate"], 2)
    if options["label_delay"] is not None:
        facts["labels after"] = f"{duration(options['label_delay'])} on average"
    facts["prior"] = f"{options['prior'].s:g} of {options['prior'].n:g}"
    if options["doubt"] is not None:
        facts["prior is wrong"] = f"with probability {percent(options['doubt'])}"
    if history.as_of is not None:
        facts["counted as of"] = f"{history.as_of:%Y-%m-%d}"
        if history.applied is not None:
            facts["pending outcomes"] = "count according to their age"
        else:
            facts["maturity"] = f"{history.maturity:g} days" if history.maturity else "none"
    return facts
