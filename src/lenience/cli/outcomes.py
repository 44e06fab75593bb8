"""lenience outcomes: send outcomes from a file to a running service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from lenience.cli.file_options import dates_option, outcome_words, sheet_option
from lenience.cli.options import FILE, json_option, service_options
from lenience.cli.sent_files import send_file
from lenience.core.errors import InputError

if TYPE_CHECKING:
    from lenience.client.client import Client
    from lenience.client.outcomes_import import OutcomesImport
    from lenience.files.date_formats import Order


# The options that give the parameters of ``Client.import_outcomes``.
OPTIONS = {
    "id_column": "--id",
    "reference_column": "--reference",
    "outcome_column": "--outcome",
    "date_column": "--date",
}


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
    if identity is not None and reference is not None:
        raise InputError.because(
            "Give either --id or --reference, not both", ("--id", "--reference"), label="", code="conflicting_fields"
        )

    def send(client: Client, progress: Callable[[OutcomesImport], None]) -> OutcomesImport:
        try:
            return client.import_outcomes(
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
        except InputError as error:
            if error.field == "id_column" and identity is None:
                hint = "Name the column of decision ids with --id, or the column of your references with --reference."
                raise InputError("--id", "id", error.allowed, hint=hint, code="unknown_name") from None
            raise error.with_fields(OPTIONS) from None

    send_file(
        url,
        key,
        send,
        progress_text=lambda so_far: f"{so_far.lines:,} lines read, {so_far.recorded:,} outcomes recorded",
        problems=lambda result: result.refused,
        unit="outcome",
        as_json=as_json,
    )
