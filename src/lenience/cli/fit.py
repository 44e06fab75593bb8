"""lenience fit: from past decisions to beliefs."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from lenience.cli.options import bold, console, json_option, print_json, table
from lenience.cli.past import PastOptions, history_options, read_past_options
from lenience.core.formatting import even_percent
from lenience.reports.exposure_text import describe_limits, exposure_json

MOST_SHOWN = 40
NARROW = 78  # columns of a window, below which figures that may not wrap would leave names no room


@click.command(short_help="From past decisions to a belief for each segment.")
@history_options
@click.option("--cost", type=float, help="The break-even success rate; with it, segments are decided too.")
@json_option
def fit(as_json: bool, **options: Any) -> None:
    """Count past decisions in SOURCE (CSV, Parquet, or a table of --connection) and make beliefs of them.

    \b
    Example:
      lenience fit loans.csv --segment region --accepted approved --outcome repaid
      lenience fit loans.parquet --segment region --segment grade --accepted approved --outcome repaid \\
        --time decided --maturity 365 --cost 0.8 --arrivals 500 --discount-rate 0.1 --label-delay 1
    """
    past = read_past_options(**options)
    starts = {}
    if past.segments is not None:
        from lenience.segments.starting import starts as find_starts

        starts = {row.name: row for row in find_starts(past.segments)}
    late = {row.name: row for row in past.exposures()}
    warning = past.warning(
        {name: late[name].starts is not False if late else row.starts for name, row in starts.items()}
    )
    if as_json:
        rows = []
        for row, shrunk in zip(past.history.segments, past.fitted.shrinkage, strict=True):
            entry: dict[str, Any] = {
                **msgspec.to_builtins(row),
                "group": past.groups.get(row.segment, ""),
                "prior": msgspec.to_builtins(shrunk.prior),
                "belief": msgspec.to_builtins(shrunk.belief),
            }
            if row.segment in starts:
                start = starts[row.segment]
                entry |= {"volume": start.volume, "volume_to_start": start.needed, "accept": start.starts}
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
                "selection": past.history.selection() or None,
                "warning": warning,
                "segments": rows,
                "shut_out_at_outset": msgspec.to_builtins(past.outset),
            }
        )
        return
    out = console()
    out.print(past.described())
    if past.history.selection():
        out.print(bold("Selective labels:"), f" {past.history.selection()}", sep="")
    if warning:
        out.print(bold("Note:"), f" {warning}.", sep="")
    out.print()
    grid = table()
    wide = out.width >= NARROW
    grid.add_column("segment", overflow="fold", min_width=8 if wide else None)
    grid.add_column("accepted\n/ arrivals", justify="right")  # may wrap, for the last column must have room
    headings = ["labels", "own\nrate", "belief"]
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
            line += [f"{own.pending:,}", own.most, own.now]
        elif row.segment in starts:
            start = starts[row.segment]
            line += [_volume(start.volume), _volume(start.needed), "accept" if start.starts else "reject"]
        else:
            line.append(f"{row.pending:,}")
        grid.add_row(*line)
    out.print(grid)
    if len(past.fitted.shrinkage) > MOST_SHOWN:
        out.print(f"The first {MOST_SHOWN} of {len(past.fitted.shrinkage):,} segments; --json prints all.")
    if starts:
        said = "Belief: the expected success rate, and how many observations it rests on. "
        if past.late is None:
            said += (
                "Volume: the members still to come, each counted at its discount; below the volume to start, learning "
                "does not pay."
            )
        else:
            said += describe_limits(past.late, list(late.values()), past.history.as_of is not None)
        out.print(said)
        _print_outset(past)


def _print_outset(past: PastOptions) -> None:
    """By model and group, how many segments are shut out at the outset, and how many of the deserving."""
    record = "known success rate" if past.truths is not None else "record"
    at_once = "" if past.late is None else ", if labels came at once"
    grid = table(f"Whom each model shuts out at the outset{at_once}")
    grid.add_column("model")
    if any(row.group for row in past.outset):
        grid.add_column("group", overflow="fold")
    grid.add_column(f"segments that never start; of those that deserve acceptance by their {record}")
    for row in past.outset:
        one = row.segments == 1
        said = f"{row.shut:,} of {row.segments:,} segment{'' if one else 's'} never start{'s' if one else ''}; "
        said += f"of the {row.deserving:,} that deserve acceptance, {row.deserving_shut:,}"
        grid.add_row(row.model, *([row.group] if len(grid.columns) == 3 else []), said)
    console().print("\n", grid, sep="")


def _volume(volume: float) -> str:
    """A volume to the first decimal, of rare segments to two digits.

    >>> [_volume(v) for v in (1234.5, 12.34, 0.5, 0.01234, float("inf"))]
    ['1,234', '12.3', '0.50', '0.012', 'far more']
    """
    if volume == float("inf"):
        return "far more"
    if 0 < volume < 0.995:
        return f"{volume:#.2g}"
    return f"{volume:,.1f}" if volume < 100 else f"{volume:,.0f}"
