"""lenience outcomes: send outcomes from a file to a running service."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click
import msgspec

from lenience.cli.file_options import dates_option, outcome_words, sheet_option
from lenience.cli.options import FILE, json_option, print_json, service_options
from lenience.cli.streams import ignoring_broken_pipe
from lenience.core.errors import InputError

if TYPE_CHECKING:
    from lenience.client.outcomes_import import OutcomesImport
    from lenience.files.date_formats import Order

EVERY = 2.0  # seconds between two progress messages


@click.command(short_help="Send the outcomes in a file to a running service.")
@click.argument("file", type=FILE)
@service_options("outcome")
@click.option("--id", "identity", help="The column of the decisions' ids; by default id.")
@click.option("--reference", help="Instead of --id: the column of the references given with the decisions.")
@click.option("--outcome", default="outcome", show_default=True, help="The column of outcomes; empty: not known yet.")
@outcome_words
@click.option("--date", help="The column of the outcomes' own dates.")
@dates_option
@sheet_option
@json_option
def outcomes(
    file: str,
    url: str,
    key: str | None,
    identity: str | None,
    reference: str | None,
    outcome: str,
    success: tuple[str, ...],
    failure: tuple[str, ...],
    pending: tuple[str, ...],
    date: str | None,
    dates: Order | None,
    sheet: str | None,
    as_json: bool,
) -> None:
    """Record the outcomes in FILE, a CSV or Excel file of decisions' ids and outcomes (success, failure, late or
    current).

    The file may have any number of lines. It is safe to import it again: each outcome counts once. Lines that cannot be
    read, or that the service rejects, are named and do not stop the others; the exit code is then 2.

    \b
    Example:
      lenience outcomes repaid.csv --url http://127.0.0.1:8000 --key lk_…
      lenience outcomes loans.csv.gz --id decision --outcome status --json
      lenience outcomes loans.csv --reference number --outcome status --success repaid --pending running
    """
    from lenience.client.client import Client, ServiceError

    if identity is not None and reference is not None:
        raise InputError.because(
            "Give either --id or --reference, not both", ("--id", "--reference"), label="", code="conflicting_fields"
        )
    last_message = time.monotonic()
    done: OutcomesImport | None = None

    def progress(so_far: OutcomesImport) -> None:
        nonlocal last_message, done
        done = so_far
        if time.monotonic() - last_message > EVERY:
            last_message = time.monotonic()
            click.echo(f"{so_far.lines:,} lines read, {so_far.recorded:,} outcomes recorded", err=True)

    with Client(url, key) as client:
        try:
            result = client.import_outcomes(
                file,
                id_column=identity or "id",
                outcome_column=outcome,
                reference_column=reference,
                success=success,
                failure=failure,
                pending=pending,
                date_column=date,
                sheet=sheet,
                dates=dates,
                progress=progress,
            )
        except ServiceError as error:
            so_far = f" Before: {done.describe()} Import the file again: each outcome counts once." if done else ""
            raise click.ClickException(f"{error}.{so_far}") from error
    with ignoring_broken_pipe():  # a closed pipe must not change the exit code
        if as_json:
            print_json(msgspec.to_builtins(result))
        else:
            summary, *problems = result.describe().splitlines()
            click.echo(summary)
            for problem in problems:
                click.echo(problem, err=True)
    sys.exit(2 if result.refused else 0)
