"""lenience erase: the personal data of a person, or of long ago, from a running service."""

from __future__ import annotations

import click

from lenience.cli.options import json_option, print_json, service_options
from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.core.validation import real


@click.command(short_help="Erase the personal data of a person, or of long ago, from a running service.")
@click.option("--reference", help="Of the decisions with this reference, the one given when they were decided.")
@click.option("--older-than", type=float, metavar="DAYS", help="Of decisions that are older than so many days.")
@click.option("--policy", help="Only of decisions of this policy.")
@click.option("--yes", is_flag=True, help="Erase it for good, rather than count the decisions concerned.")
@service_options("admin")
@json_option
def erase(
    reference: str | None,
    older_than: float | None,
    policy: str | None,
    yes: bool,
    url: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Erase references, features and reasons of overrides; decisions and outcomes stay, and so does the log.

    Without --yes nothing is erased, and it is said of how many decisions it would be. It cannot be undone, and may be
    repeated: what is erased already is not erased again.

    \b
    Example:
      lenience erase --reference R-123
      lenience erase --reference R-123 --yes
      lenience erase --older-than 1095 --policy cards --yes --key lk_…
    """
    from lenience.client.client import Client, ServiceError

    if reference is None and older_than is None:
        raise InputError.because(
            "Give --reference or --older-than", ("--reference", "--older-than"), label="", code="missing"
        )
    if older_than is not None:
        real("--older-than", older_than, least=0, most=36_500)
    with Client(url, key) as client:
        try:
            number = client.erase_where(reference=reference, older_than_days=older_than, policy=policy, dry_run=not yes)
        except ServiceError as error:
            raise click.ClickException(f"{error}.") from error
    if as_json:
        print_json({"found": number, "erased": number if yes else 0})
    elif not number:
        click.echo("No such decision has personal data.")
    elif yes:
        click.echo(f"The personal data of {counted(number, 'decision')} is erased; the log stays whole.")
    else:
        click.echo(f"{counted(number, 'decision')} would lose personal data for good. Give --yes to erase it.")
