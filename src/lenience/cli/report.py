"""lenience report: write one HTML page on the segments of past decisions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lenience.cli.economics import economics_options
from lenience.cli.options import FILE, json_option, print_json, unit_of
from lenience.cli.past import history_options, read_past_options
from lenience.cli.progress import announcing
from lenience.core.errors import InputError, TooLargeError
from lenience.core.formatting import duration, percent
from lenience.core.money import Money
from lenience.core.validation import real, whole

if TYPE_CHECKING:
    from lenience.analysis.fairness import ConstraintCost
    from lenience.analysis.ignored_delay import Ignored
    from lenience.history.fit import History
    from lenience.segments.exposure_limits import Exposure


@click.command(short_help="Write one HTML page on the segments of past decisions.")
@history_options
@economics_options(required=True)
@click.option("--floor", type=float, help="A minimum acceptance probability; the page shows its cost by group.")
@click.option(
    "--floor-group", multiple=True, help="A group that the floor is for; may be repeated. By default all groups."
)
@click.option("--cap", type=int, help="Acceptances after which exploration of a segment ends; the page shows its cost.")
@click.option("--output", "-o", type=FILE, default="report.html", show_default=True, help="The page to write.")
@click.option("--title", default="Segments", show_default=True, help="The page's title.")
@json_option
def report(
    output: str,
    title: str,
    as_json: bool,
    floor: float | None,
    floor_group: tuple[str, ...],
    cap: int | None,
    cost: float | None,
    money: Money,
    **options: Any,
) -> None:
    """Solve every segment of the past decisions in SOURCE and write one self-contained HTML page on them.

    \b
    Example:
      lenience report loans.csv --segment region --accepted approved --outcome repaid \\
        --cost 0.8 --arrivals 500 --discount-rate 0.1 --output report.html
      lenience report loans.csv --segment race --segment band --group race --score band --model curve \\
        --accepted approved --outcome repaid --cost 0.8 --discount 0.999 --floor 0.05 --floor-group hispanic
      lenience report loans.csv --segment region --accepted approved --outcome repaid --gain 400 --loss 6000 \\
        --currency $ --arrivals 500 --discount-rate 0.1 --label-delay 0.75
      lenience report loans.csv --segment grade --accepted approved --outcome repaid --amount amount --rate interest \\
        --term "36 months" --loss-given-default 0.6 --currency $ --arrivals 500 --discount-rate 0.1
    """
    from lenience.analysis.fairness import cost_of_exposure_cap, cost_of_floor, group_fates, segment_fates
    from lenience.analysis.ignored_delay import cost_of_ignoring
    from lenience.analysis.status_quo import CAVEAT, compare_with_status_quo, describe_status_quo
    from lenience.reports.exposure_text import describe_limits, exposure_json
    from lenience.reports.segment_report import write_segments_report
    from lenience.reports.segment_report_exposure import describe_ignored
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
    if floor is not None:
        real("--floor", floor, above=0, most=1)
    if cap is not None:
        whole("--cap", cap)
    options["cost"] = cost
    past = read_past_options(**options, floor_group=floor_group)
    money = money.per_year(_part_of_a_year(options))
    assert past.segments is not None
    with announcing(f"Solving {len(past.segments.cells):,} segments"):
        policies = past.segments.solve()
    late = past.exposures(values=True)
    begins = {row.name: row.starts is not False for row in late}
    if not begins and options["economics"] is None:
        begins = {name: policies.accepts(name) for name in past.segments.names}
    warning = past.warning(begins or {row.name: row.starts for row in starts(past.segments)})
    compared = compare_with_status_quo(policies, past.history, late)
    ignored: list[Ignored] = []
    if late:
        with announcing("Computing what ignoring the delay costs"):
            ignored = cost_of_ignoring(late)
    constraints: dict[str, list[ConstraintCost] | str] = {}
    if floor is not None:
        floors = dict.fromkeys(floor_group or past.segments.groups, floor)
        with announcing("Computing what the floor costs"):
            least = f"accept at least {percent(floor, 2)}"
            constraints[least] = _unless_too_large(lambda: cost_of_floor(policies, floors))
    if cap is not None:
        caps = dict.fromkeys(past.segments.names, cap)
        with announcing("Computing what the cap costs"):
            constraints[f"explore at most {cap:,} acceptances"] = _unless_too_large(
                lambda: cost_of_exposure_cap(policies, caps)
            )
    with announcing("Following the segments forward and writing the page"):
        write_segments_report(
            target,
            policies,
            title=title,
            truths=past.truths,
            shrinkage=past.fitted.shrinkage,
            history=past.history,
            outset=past.outset,
            constraints=constraints,
            warning=warning,
            facts=_facts(past.history, options, money),
            money=money,
            late=late,
            ignored=ignored,
        )
    if as_json:
        print_json(
            {
                "file": output,
                "segments": len(past.segments.cells),
                "unit": unit_of(cost, money),
                "value": math.fsum(row.worth for row in late) if late else policies.value().midpoint,
                "groups": None
                if options["economics"] is not None
                else msgspec.to_builtins(group_fates(segment_fates(policies, past.truths))),
                "shut_out_at_outset": msgspec.to_builtins(past.outset),
                "constraints": {
                    name: None if isinstance(rows, str) else math.fsum(row.cost.midpoint for row in rows)
                    for name, rows in constraints.items()
                },
                "not_computed": {name: why for name, why in constraints.items() if isinstance(why, str)},
                "selection": past.history.selection() or None,
                "warning": warning,
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
    for name, why in constraints.items():
        if isinstance(why, str):
            click.echo(f"The cost of the constraint to {name} was not computed: {why}.")
    click.echo(f"Wrote {output}")


def _part_of_a_year(options: dict[str, Any]) -> float | None:
    """Return the factor from a total value to the equivalent yearly payment: λ(1 − γ), or r if labels come late."""
    arrivals, rate = options["arrivals"], options["discount_rate"]
    if options["label_delay"] is not None:
        return float(rate)
    return None if arrivals is None else arrivals * rate / (arrivals + rate)


def _counted_limits(late: list[Exposure]) -> str:
    """Count the segments by what to do with them, in one sentence."""
    kinds = {
        "to accept without a limit": sum(row.unlimited for row in late),
        "to accept up to a limit": sum(bool(row.room) for row in late),
        "to wait for labels": sum(row.now == "wait" for row in late),
        "to reject": sum(row.limit == 0 for row in late),
        "not computed": sum(bool(row.not_computed) for row in late),
    }
    counts = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    return f"{len(late):,} segments: {counts}."


def _unless_too_large(work: Callable[[], list[ConstraintCost]]) -> list[ConstraintCost] | str:
    """Return the cost of a constraint, or why it takes too long to compute; the page is useful without it."""
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
    if history.as_of is not None:
        facts["counted as of"] = f"{history.as_of:%Y-%m-%d}"
        facts["maturity"] = f"{history.maturity:g} days" if history.maturity else "none"
    return facts
