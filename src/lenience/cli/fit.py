"""lenience fit: estimate the success rate of each segment from past decisions."""

from __future__ import annotations

import math
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lenience.cli.economics import economics_options
from lenience.cli.feature_options import FEATURE_MODELS, feature_options, without_feature_options
from lenience.cli.monitored import monitored_json, print_monitored
from lenience.cli.options import bold, console, doubt_option, json_option, print_json, table, unit_of
from lenience.cli.past import PastOptions, history_options, read_past_options
from lenience.cli.policy_options import policy_options, read_settings
from lenience.cli.progress import announcing
from lenience.core.formatting import counted, even_percent, plural
from lenience.core.money import Money
from lenience.history.beliefs import MODELS
from lenience.reports.exposure_text import describe_limits, exposure_json, limits_text

if TYPE_CHECKING:
    from lenience.history.economics import SegmentEconomics
    from lenience.segments.starting import OfferStart, Start

MOST_SHOWN = 40
NARROW = 78  # columns: in a narrower window, numbers may wrap, so that names have room


@click.command(short_help="Estimate success rates from past decisions, by segment or by features.")
@partial(history_options, models=(*MODELS, *FEATURE_MODELS), segment_required=False)
@feature_options
@policy_options
@economics_options(required=False)
@doubt_option
@json_option
def fit(as_json: bool, cost: float | None, money: Money, **options: Any) -> None:
    """Count past decisions in SOURCE (CSV, Parquet, or a table of --connection) and estimate success rates.

    With --segment, success is estimated by segment. With --model logistic or calibrated, it is estimated from features
    or from your own score. --output writes the policy to a file.

    With --cost, or --gain and --loss, the decision of each segment is shown. Where amounts differ, name the columns of
    gain and loss, or those of the loans' amount, rate and term.

    \b
    Example:
      lenience fit loans.csv --segment region --accepted approved --outcome repaid
      lenience fit loans.csv --segment region --accepted approved --outcome repaid --monitor sex --monitor age_band
      lenience fit loans.csv --score-bands score:5 --all-accepted --outcome repaid --gain 200 --loss 800 --currency $ \\
        --arrivals 500 --discount-rate 0.1 --output policy.json
      lenience fit loans.parquet --segment region --segment grade --accepted approved --outcome repaid \\
        --time decided --maturity 365 --cost 0.8 --arrivals 500 --discount-rate 0.1 --label-delay 1
      lenience fit loans.csv --segment grade --accepted approved --outcome status --time decided \\
        --outcome-time closed --maturing --cost 0.8 --arrivals last-year --discount-rate 0.1
      lenience fit loans.csv --segment grade --accepted approved --outcome repaid --amount amount --rate interest \\
        --term "36 months" --loss-given-default 0.6 --currency $ --arrivals 500 --discount-rate 0.1
      lenience fit loans.csv --model logistic --feature income --feature purpose --accepted approved \\
        --outcome repaid --cost 0.8 --arrivals 500 --discount-rate 0.1 --output policy.json
      lenience fit loans.csv --model calibrated --score pd --trust 200 --accepted approved --outcome repaid \\
        --cost 0.8 --arrivals 500 --discount-rate 0.1 --output policy.json
    """
    if options["model"] in FEATURE_MODELS:
        from lenience.cli.fit_features import fit_by_features

        fit_by_features(as_json, cost, money, **options)
        return
    without_feature_options(options)
    settings, output = read_settings(options), options.pop("output")
    past = read_past_options(**options, cost=cost)
    if output is not None:
        from lenience.cli.policy_file import write_specification

        settings = msgspec.structs.replace(
            settings, segment_costs=past.costs, doubt=options["doubt"], protected=past.protected,
            monitored=options["monitor"],
        )  # fmt: skip
        write_specification(past, output, settings, money)
    starts = _starts(past)
    late = {row.name: row for row in past.exposures()}
    warning = past.warning(
        {name: late[name].starts is not False if late else row.starts for name, row in starts.items()}
    )
    if as_json:
        rows = []
        for row, shrunk in zip(past.history.segments, past.fitted.shrinkage, strict=True):
            entry: dict[str, Any] = {
                **{key: value for key, value in msgspec.to_builtins(row).items() if key != "economics"},
                "group": past.groups.get(row.segment, ""),
                "prior": msgspec.to_builtins(shrunk.prior),
                "belief": msgspec.to_builtins(shrunk.belief),
            }
            if row.segment in starts:
                start = starts[row.segment]
                entry |= {"volume": start.volume, "volume_to_start": start.needed, "accept": start.starts}
            if row.economics is not None:
                entry |= {**msgspec.to_builtins(row.economics), "break_even": row.economics.offers.mean_cost}
            if row.segment in starts and starts[row.segment].offers is not None:
                entry |= _offer_json(starts[row.segment])
            if row.segment in late:
                entry |= {"accept": late[row.segment].accept, "late": exposure_json(late[row.segment])}
            rows.append(entry)
        print_json(
            {
                "rows": past.history.rows,
                "bad": past.history.bad,
                "later": past.history.later,
                "description": past.history.describe(),
                "model": past.fitted.model,
                "unit": unit_of(cost, money),
                "selection": past.history.selection() or None,
                "warning": warning,
                "last_year": past.history.last_year,
                "immaturity": msgspec.to_builtins(past.history.immaturity),
                "price_dependence": msgspec.to_builtins(past.history.price_dependence),
                "timing": None if past.history.applied is None else msgspec.to_builtins(past.history.applied.curves),
                "segments": rows,
                "monitored": monitored_json(past.monitored),
                "decides_by_protected": list(past.protected),
                "shut_out_at_outset": msgspec.to_builtins(past.outset),
                "output": output,
            }
        )
        return
    out = console()
    out.print(past.described())
    if past.history.selection():
        out.print(bold("Selective labels:"), f" {past.history.selection()}", sep="")
    if warning:
        out.print(bold("Warning:"), f" {warning}.", sep="")
    out.print()
    grid = table()
    wide = out.width >= NARROW
    grid.add_column("segment", overflow="fold", min_width=8 if wide else None)
    grid.add_column("accepted\n/ arrivals", justify="right")  # may wrap, because the last column needs room
    headings = ["known\noutcomes", "own\nrate", "estimate"]
    offers = any(start.offers is not None for start in starts.values()) and not late
    if offers:
        headings += ["mean\namount", "break-\neven", "largest\namount", "now"]
    else:
        headings += (
            ["pending", "at most\nout", "now"] if late else ["volume", "to\nstart", "now"] if starts else ["pending"]
        )
    for heading in headings:
        grid.add_column(heading, justify="right", no_wrap=wide and not (late and heading == "now"))
    for row, shrunk in list(zip(past.history.segments, past.fitted.shrinkage, strict=True))[:MOST_SHOWN]:
        belief = shrunk.belief
        line = [row.segment, f"{row.accepted:,} / {row.arrivals:,}", f"{row.labels:,}"]
        line += ["" if row.rate is None else even_percent(row.rate), f"{even_percent(belief.mean)} of {belief.n:,.0f}"]
        if row.segment in late:
            own = late[row.segment]
            line += [f"{own.pending:,}", limits_text(own), own.now]
        elif row.segment in starts:
            start = starts[row.segment]
            if start.offers is not None and row.economics is not None:
                line += _offer_cells(start, start.offers, row.economics, money)
                grid.add_row(*line)
                continue
            line += [_volume(start.volume), _volume(start.needed), "accept" if start.starts else "reject"]
        else:
            line.append(f"{row.pending:,}")
        grid.add_row(*line)
    out.print(grid)
    if past.history.applied is not None:
        out.print("Own rate: known outcomes only. Estimate: with the pending, each according to its age.")
    if len(past.fitted.shrinkage) > MOST_SHOWN:
        out.print(f"The first {MOST_SHOWN} of {len(past.fitted.shrinkage):,} segments; --json prints all.")
    if starts:
        legend = "Estimate: the expected success rate, and how many outcomes it is based on. "
        if offers:
            legend += (
                "Mean amount: gain plus loss. Break-even: the success rate at which accepting everyone earns nothing. "
                "Largest amount: what is accepted now at this break-even. Small amounts are accepted first, because "
                "learning from them costs less."
            )
        elif past.late is None:
            legend += (
                "Volume: the number of applicants still to come, where later ones count less. Below the volume to "
                "start, learning costs more than it earns."
            )
        else:
            legend += describe_limits(past.late, list(late.values()), past.history.as_of is not None)
        out.print(legend)
        _print_outset(past)
    print_monitored(past.monitored)
    if output is not None:
        out.print(bold("Written:"), f"{output}.")
        out.print(f"Next: lenience check {shlex.quote(output)}")


def _starts(past: PastOptions) -> dict[str, Start]:
    """Return whether each segment starts; nothing if no break-even is known."""
    if past.segments is None:
        return {}
    from lenience.segments.starting import starts

    with announcing("Computing which segments would start"):
        return {row.name: row for row in starts(past.segments)}


def _print_outset(past: PastOptions) -> None:
    """Print by model and group how many segments are never accepted, and how many of them are above the break-even."""
    record = "true success rate" if past.truths is not None else "past success rate"
    at_once = "" if past.late is None else ", if labels came at once"
    grid = table(f"Segments that each model never accepts{at_once}")
    grid.add_column("model")
    if any(row.group for row in past.outset):
        grid.add_column("group", overflow="fold")
    grid.add_column(f"segments that never start; of those above the break-even by their {record}")
    for row in past.outset:
        never = plural(row.segments, "never starts", "never start")
        text = f"{row.shut:,} of {counted(row.segments, 'segment')} {never}; "
        text += f"of the {row.deserving:,} above the break-even, {row.deserving_shut:,}"
        grid.add_row(row.model, *([row.group] if len(grid.columns) == 3 else []), text)
    console().print("\n", grid, sep="")


def _offer_cells(start: Start, offers: OfferStart, economics: SegmentEconomics, money: Money) -> list[str]:
    """Return the cells of a segment with offers: mean amount, break-even, largest amount and decision."""
    share = offers.share_accepted
    now = "accept" if share == 1.0 else f"accept {even_percent(share, 0)}" if share else "reject"
    most = "any" if math.isinf(offers.largest) else money.format(offers.largest)
    return [money.format(economics.offers.mean_amount), even_percent(start.cost), most, now]


def _offer_json(start: Start) -> dict[str, Any]:
    """Return what is accepted of a segment with offers, for JSON."""
    assert start.offers is not None
    return {
        "volume_to_start": None,
        "largest_amount": start.offers.largest,
        "share_accepted": start.offers.share_accepted,
        "label_value": start.offers.label_value,
        "reason": start.reason,
    }


def _volume(volume: float) -> str:
    """Format a volume with one decimal, or with two significant digits if it is below 1.

    >>> [_volume(v) for v in (1234.5, 12.34, 0.5, 0.01234, float("inf"))]
    ['1,234', '12.3', '0.50', '0.012', 'far more']
    """
    if volume == float("inf"):
        return "far more"
    if 0 < volume < 0.995:
        return f"{volume:#.2g}"
    return f"{volume:,.1f}" if volume < 100 else f"{volume:,.0f}"
