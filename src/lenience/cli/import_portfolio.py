"""lenience import: send past decisions from a file to a policy of a running service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lenience.cli.file_options import dates_option, sheet_option
from lenience.cli.options import FILE, json_option, service_options
from lenience.cli.sent_files import send_file
from lenience.core.errors import InputError

if TYPE_CHECKING:
    from lenience.client.client import Client
    from lenience.client.portfolio_import import PortfolioImport
    from lenience.files.date_formats import Order

Command = TypeVar("Command", bound=Callable[..., Any])


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

    def send(client: Client, progress: Callable[[PortfolioImport], None]) -> PortfolioImport:
        return client.import_portfolio(
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

    send_file(
        url,
        key,
        send,
        progress_text=lambda so_far: (
            f"{so_far.recorded + so_far.outcomes + so_far.repeated:,} of {so_far.rows:,} rows sent"
        ),
        problems=lambda result: result.rejected,
        unit="row",
        as_json=as_json,
    )


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Return the column of each name: NAME=COLUMN, or NAME if the column has the same name."""
    pairs = {}
    for text in texts:
        name, equals, column = text.partition("=")
        if not name or (equals and not column):
            raise InputError(option, text, "NAME=COLUMN, such as amount=loan_amount")
        pairs[name.strip()] = column.strip() or name.strip()
    return pairs
