"""lenience import: send past decisions from a file to a policy of a running service."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from lenience.cli.file_options import dates_option, sheet_option
from lenience.cli.options import FILE, json_option, print_json, service_options
from lenience.cli.streams import ignoring_broken_pipe
from lenience.core.errors import InputError

if TYPE_CHECKING:
    from lenience.files.date_formats import Order

Command = TypeVar("Command", bound=Callable[..., Any])
EVERY = 2.0  # seconds between two progress messages


def _words(name: str, means: str) -> Callable[[Command], Command]:
    return click.option(f"--{name}", multiple=True, help=f"A value that means {means}; may be repeated.")


@click.command("import", short_help="Import past decisions from a file into a policy of a running service.")
@click.argument("file", type=FILE)
@click.option("--policy", required=True, help="The policy that the decisions belong to.")
@service_options("admin")
@click.option("--date", required=True, help="The column of the decision's date.")
@click.option("--outcome", required=True, help="The column of the outcome; empty: not known yet.")
@click.option("--segment", multiple=True, help="The column of the segment; may be repeated.")
@click.option(
    "--feature", "features", multiple=True, help="A feature of the policy, as NAME or NAME=COLUMN; may be repeated."
)
@click.option("--reference", help="The column of your own number of each loan (personal data, can be erased).")
@click.option("--accepted", help="The column that says who was accepted; by default all were.")
@click.option("--outcome-date", help="The column of the outcome's date.")
@click.option("--offer", "offers", multiple=True, help="A part of the offer, as amount=COLUMN; may be repeated.")
@click.option(
    "--monitor",
    multiple=True,
    help="An attribute to measure fairness by, as NAME or NAME=COLUMN; decisions do not look at it; may be repeated.",
)
@dates_option
@sheet_option
@_words("success", "success")
@_words("failure", "failure")
@_words("pending", "not known yet")
@_words("late", "open and late")
@_words("current", "open and not late")
@_words("expired", "no longer expected")
@_words("accepted-value", "accepted")
@_words("rejected-value", "rejected")
@click.option("--leave-out-invalid", is_flag=True, help="Leave out rows that cannot be read, and record how many.")
@click.option("--not-in-prior", is_flag=True, help="State that the policy's prior does not hold these outcomes.")
@click.option("--dry-run", is_flag=True, help="Only check the file, and record nothing.")
@json_option
def import_portfolio(
    file: str,
    policy: str,
    url: str,
    key: str | None,
    date: str,
    outcome: str,
    segment: tuple[str, ...],
    features: tuple[str, ...],
    reference: str | None,
    accepted: str | None,
    outcome_date: str | None,
    offers: tuple[str, ...],
    monitor: tuple[str, ...],
    dates: Order | None,
    sheet: str | None,
    success: tuple[str, ...],
    failure: tuple[str, ...],
    pending: tuple[str, ...],
    late: tuple[str, ...],
    current: tuple[str, ...],
    expired: tuple[str, ...],
    accepted_value: tuple[str, ...],
    rejected_value: tuple[str, ...],
    leave_out_invalid: bool,
    not_in_prior: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import the past decisions in FILE, with their own dates, into a policy.

    Known outcomes count as evidence, and open loans are pending from the first day. The file is checked first, and
    nothing is recorded if a row is invalid. It is safe to import a file again, also after an interruption. A newer file
    of the same loans adds new loans and new outcomes; this needs --reference.

    \b
    Example:
      lenience import loans.csv --policy loans --date issued --segment grade --outcome status --reference id
      lenience import loans.csv --policy loans --date issued --segment grade --outcome status \\
        --outcome-date closed --late "Late (31-120 days)" --offer amount=amount --offer rate=rate --offer term=years
    """
    from lenience.client.client import Client, ServiceError
    from lenience.client.portfolio_import import PortfolioImport

    last_message = time.monotonic()
    done: PortfolioImport | None = None

    def progress(so_far: PortfolioImport) -> None:
        nonlocal last_message, done
        done = so_far
        if time.monotonic() - last_message > EVERY:
            last_message = time.monotonic()
            click.echo(
                f"{so_far.recorded + so_far.outcomes + so_far.repeated:,} of {so_far.rows:,} rows sent", err=True
            )

    with Client(url, key) as client:
        try:
            result = client.import_portfolio(
                policy,
                file,
                date=date,
                outcome=outcome,
                segment=segment,
                features=_pairs("--feature", features),
                reference=reference,
                accepted=accepted,
                outcome_date=outcome_date,
                offer=_pairs("--offer", offers),
                monitor=_pairs("--monitor", monitor),
                success=success,
                failure=failure,
                pending=pending,
                late=late,
                current=current,
                expired=expired,
                accepted_values=accepted_value,
                rejected_values=rejected_value,
                leave_out=leave_out_invalid,
                not_in_prior=not_in_prior,
                dry_run=dry_run,
                progress=progress,
                dates=dates,
                sheet=sheet,
            )
        except ServiceError as error:
            so_far = f" Before: {done.describe()} Import the file again: each row counts once." if done else ""
            raise click.ClickException(f"{error}.{so_far}") from error
    with ignoring_broken_pipe():  # a closed pipe must not change the exit code
        if as_json:
            print_json(msgspec.to_builtins(result))
        else:
            summary, *problems = result.describe().splitlines()
            click.echo(summary)
            for problem in problems:
                click.echo(problem, err=True)
    sys.exit(2 if result.rejected else 0)


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Return the column of each name: NAME=COLUMN, or NAME if the column has the same name."""
    pairs = {}
    for text in texts:
        name, equals, column = text.partition("=")
        if not name or (equals and not column):
            raise InputError(option, text, "NAME=COLUMN, such as amount=loan_amount")
        pairs[name.strip()] = column.strip() or name.strip()
    return pairs
