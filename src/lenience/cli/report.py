"""lenience report: one page on the segments of a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lenience.cli.options import json_option, print_json
from lenience.cli.past import history_options, read_past
from lenience.errors import InputError


@click.command(short_help="One HTML page on the segments of past decisions.")
@history_options
@click.option("--output", "-o", default="report.html", show_default=True, help="The page to write.")
@click.option("--title", default="Segments", show_default=True, help="The page's title.")
@json_option
def report(output: str, title: str, as_json: bool, **options: Any) -> None:
    """Solve every segment of the past decisions in SOURCE and write one self-contained HTML page on them.

    \b
    Example:
      lenience report loans.csv --segment region --accepted approved --outcome repaid \\
        --cost 0.8 --arrivals 500 --discount-rate 0.1 --output report.html
    """
    from lenience.study.segment_report import write_report

    target = Path(output)
    if target.suffix != ".html":
        raise InputError(f"output must be a file name ending in .html, not {output!r}")
    if not target.parent.is_dir():
        raise InputError(f"output must be in a folder that exists, not {str(target.parent)!r}")
    if options["cost"] is None:
        raise InputError("--cost must be given: the report decides each segment")
    past = read_past(**options)
    assert past.segments is not None
    policies = past.segments.solve()
    write_report(target, policies, title=title, shrinkage=past.shrinkage, history=past.history)
    if as_json:
        print_json({"file": output, "segments": len(past.segments.cells), "value": policies.value().midpoint})
    else:
        click.echo(f"{past.history.describe()}\nWrote {output}")
