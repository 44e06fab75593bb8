"""lenience report: one page on the segments of a history."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lenience.cli.options import FILE, json_option, print_json
from lenience.cli.past import history_options, read_past_options
from lenience.cli.progress import saying
from lenience.core.errors import InputError, TooLargeError
from lenience.core.formatting import duration, percent
from lenience.core.validation import real, whole

if TYPE_CHECKING:
    from lenience.analysis.fairness import ConstraintCost
    from lenience.analysis.ignored_delay import Ignored
    from lenience.history.fit import History
    from lenience.segments.exposure_limits import Exposure

MOST_MONEY = 1e12


@click.command(short_help="One HTML page on the segments of past decisions.")
@history_options
@click.option("--cost", type=float, help="The break-even success rate, between 0 and 1; or --gain and --loss.")
@click.option("--gain", type=float, help="What a success gains, in money; with --loss, instead of --cost.")
@click.option("--loss", type=float, help="What a failure loses, in money.")
@click.option("--floor", type=float, help="A least acceptance probability; the page says what it costs by group.")
@click.option("--floor-group", multiple=True, help="A group the floor is for; may be repeated (all groups).")
@click.option("--cap", type=int, help="Acceptances after which a segment's exploration ends; the page says its cost.")
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
    gain: float | None,
    loss: float | None,
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
        --arrivals 500 --discount-rate 0.1 --label-delay 0.75
    """
    from lenience.analysis.fairness import cost_of_exposure_cap, cost_of_floor, group_fates, segment_fates
    from lenience.analysis.ignored_delay import cost_of_ignoring
    from lenience.analysis.status_quo import CAVEAT, Money, compare_with_status_quo, describe_status_quo
    from lenience.reports.exposure_text import describe_limits, exposure_json
    from lenience.reports.segment_report import write_segments_report
    from lenience.reports.segment_report_exposure import describe_ignored

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
    options["cost"], unit = _break_even(cost, gain, loss)
    past = read_past_options(**options, floor_group=floor_group)
    assert past.segments is not None
    with saying(f"Solving {len(past.segments.cells):,} segments"):
        policies = past.segments.solve()
    late = past.exposures(values=True)
    begins = {row.name: row.starts is not False for row in late}
    warning = past.warning(begins or {name: policies.accepts(name) for name in past.segments.names})
    compared, money = compare_with_status_quo(policies, past.history, late), Money(unit, _part_of_a_year(options))
    ignored: list[Ignored] = []
    if late:
        with saying("Finding what ignoring the delay costs"):
            ignored = cost_of_ignoring(late)
    constraints: dict[str, list[ConstraintCost] | str] = {}
    if floor is not None:
        floors = dict.fromkeys(floor_group or past.segments.groups, floor)
        with saying("Finding what the floor costs"):
            least = f"accept at least {percent(floor, 2)}"
            constraints[least] = _unless_too_large(lambda: cost_of_floor(policies, floors))
    if cap is not None:
        caps = dict.fromkeys(past.segments.names, cap)
        with saying("Finding what the cap costs"):
            constraints[f"explore at most {cap:,} acceptances"] = _unless_too_large(
                lambda: cost_of_exposure_cap(policies, caps)
            )
    with saying("Following the segments forward and writing the page"):
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
            facts=_facts(past.history, options),
            money=money,
            late=late,
            ignored=ignored,
        )
    if as_json:
        print_json(
            {
                "file": output,
                "segments": len(past.segments.cells),
                "value": math.fsum(row.worth for row in late) if late else policies.value().midpoint,
                "groups": msgspec.to_builtins(group_fates(segment_fates(policies, past.truths))),
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
        click.echo(f"Note: {warning}.")
    if past.late is not None:
        click.echo(f"Late labels: {describe_limits(past.late, late, past.history.as_of is not None)}")
        click.echo(" ".join(filter(None, [_counted_limits(late), describe_ignored(ignored, money)])))
    click.echo(f"Compared with today: {describe_status_quo(compared, money)} {CAVEAT}")
    for name, why in constraints.items():
        if isinstance(why, str):
            click.echo(f"The cost of the constraint to {name} was not computed: {why}.")
    click.echo(f"Wrote {output}")


def _break_even(cost: float | None, gain: float | None, loss: float | None) -> tuple[float, float | None]:
    """The break-even success rate, and what a unit of value is in money where that is known."""
    if cost is not None and gain is None and loss is None:
        return cost, None
    if cost is not None or gain is None or loss is None:
        raise InputError.because(
            "Give either --cost, or --gain with --loss", ("--cost", "--gain", "--loss"), label="", code="missing"
        )
    gain, loss = real("gain", gain, above=0, most=MOST_MONEY), real("loss", loss, above=0, most=MOST_MONEY)
    return loss / (gain + loss), gain + loss


def _part_of_a_year(options: dict[str, Any]) -> float | None:
    """By what a value in all is the yearly sum of a stream worth as much: λ(1 − γ), or r where labels come late."""
    arrivals, rate = options["arrivals"], options["discount_rate"]
    if options["label_delay"] is not None:
        return float(rate)
    return None if arrivals is None else arrivals * rate / (arrivals + rate)


def _counted_limits(late: list[Exposure]) -> str:
    """How many segments are to do what, in one sentence."""
    kinds = {
        "to accept without a limit": sum(row.unlimited for row in late),
        "to accept up to a limit": sum(bool(row.room) for row in late),
        "to wait for labels": sum(row.now == "wait" for row in late),
        "to reject": sum(row.limit == 0 for row in late),
        "not computed": sum(bool(row.not_computed) for row in late),
    }
    said = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    return f"{len(late):,} segments: {said}."


def _unless_too_large(work: Callable[[], list[ConstraintCost]]) -> list[ConstraintCost] | str:
    """What a constraint costs, or why that would take too long: the page is worth having without it."""
    try:
        return work()
    except TooLargeError as error:
        return error.sentence


def _facts(history: History, options: dict[str, Any]) -> dict[str, str]:
    """What the page was made from."""
    facts = {"file": options["source"], "model": options["model"], "break-even": f"{options['cost']:g}"}
    if options["discount"] is not None:
        facts["discount"] = f"{options['discount']:g}"
    else:
        facts["arrivals a year"] = f"{options['arrivals']:,.10g}"
        facts["yearly interest rate"] = f"{options['discount_rate']:g}"
    if options["label_delay"] is not None:
        facts["labels after"] = f"{duration(options['label_delay'])} on average"
    facts["prior"] = f"{options['prior'].s:g} of {options['prior'].n:g}"
    if history.as_of is not None:
        facts["counted as of"] = f"{history.as_of:%Y-%m-%d}"
        facts["maturity"] = f"{history.maturity:g} days" if history.maturity else "none"
    return facts
