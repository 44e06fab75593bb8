"""lenience sample: write simulated loans, to try every command on."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from lenience.cli.options import bold, console, json_option, print_json
from lenience.core.errors import InputError
from lenience.data.sample import sample_loans

NEXT = """lenience report {file} --segment grade --accepted approved --outcome status --time decided \\
  --outcome-time closed --maturing --pending Current --pending Late --amount amount --rate rate --term term \\
  --loss-given-default 0.6 --currency $ --arrivals last-year --discount-rate 0.1 --output report.html
lenience fit {file} --segment grade --accepted approved --outcome status --time decided \\
  --outcome-time closed --maturing --pending Current --pending Late --amount amount --rate rate --term term \\
  --loss-given-default 0.6 --currency $ --arrivals last-year --discount-rate 0.1 --output policy.json
lenience check policy.json
lenience serve --policy policy.json"""


@click.command(short_help="Write simulated loans to a CSV file, to try the other commands on.")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--rows", type=int, default=3000, show_default=True, help="The number of applications.")
@click.option("--seed", type=int, default=1, show_default=True, help="The seed: the same seed gives the same loans.")
@click.option("--replace", is_flag=True, help="Replace a file that exists.")
@json_option
def sample(file: str, rows: int, seed: int, replace: bool, as_json: bool) -> None:
    """Write three years of loan applications of a made-up lender to FILE.

    The columns are application, decided, score, grade, income, purpose, region, amount, rate, term, approved, status,
    closed and sex. Most low scores were rejected, so their outcomes are unknown, as at a real lender.

    \b
    Example:
      lenience sample loans.csv
    """
    if Path(file).exists() and not replace:
        raise InputError.because(
            "exists already", "file", label=file, value=file, code="conflicting_fields",
            hint="Choose another name, or add --replace.",
        )  # fmt: skip
    columns = sample_loans(rows, seed)
    with Path(file).open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    if as_json:
        print_json({"output": file, "rows": rows, "columns": list(columns)})
        return
    out = console()
    out.print(bold("Written:"), f" {file}, {rows:,} simulated applications.", sep="")
    out.print("Try next:")
    click.echo(NEXT.format(file=file))
