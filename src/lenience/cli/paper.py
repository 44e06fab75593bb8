"""lenience paper: check every claim of the paper."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from lenience.cli.options import FILE, console, json_option, print_json, table
from lenience.cli.progress import announcing
from lenience.core.errors import InputError


@click.command(short_help="Check every claim of the paper and write one HTML report.")
@click.option("--output", "-o", type=FILE, default="paper.html", show_default=True, help="The report to write.")
@click.option("--seed", type=int, default=2020, show_default=True, help="The seed of the simulations.")
@json_option
def paper(output: str, seed: int, as_json: bool) -> None:
    """Regenerate the paper's Figure 1, check every claim numerically, and write one self-contained HTML report.

    If the file name ends in .md, the report is a Markdown page without figures.

    \b
    Example:
      lenience paper --output paper.html
    """
    from lenience.paper.check import check_paper
    from lenience.reports.paper_report import write_paper_report

    target = Path(output)
    if target.suffix not in (".html", ".md"):
        raise InputError("output", output, "a file name ending in .html or .md")
    if not target.parent.is_dir():
        raise InputError("output", str(target.parent), "in a folder that exists", code="missing_file")
    with announcing("Checking every claim"):
        claims = check_paper(seed)
    write_paper_report(target, claims, seed)
    if as_json:
        print_json({"claims": msgspec.to_builtins(claims), "file": output})
    else:
        grid = table("The paper, claim by claim")
        for heading in ("where", "claim", "verdict"):
            grid.add_column(heading)
        for claim in claims:
            grid.add_row(claim.section, claim.claim, claim.verdict)
        out = console()
        out.print(grid)
        out.print(f"{sum(claim.stands for claim in claims)} of {len(claims)} claims stand. Wrote {output}")
    if not all(claim.stands for claim in claims):
        raise SystemExit(1)
