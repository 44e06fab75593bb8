"""lenience erase: erase personal data from a running service."""

from __future__ import annotations

import click

from lenience.cli.options import json_option, print_json, service_options
from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.core.validation import real


@click.command(short_help="Erase personal data, by reference or by age, from a running service.")
@click.option("--reference", help="Only decisions with this reference, given when they were decided.")
@click.option("--older-than", type=float, metavar="DAYS", help="Only decisions older than this many days.")
@click.option("--policy", help="Only decisions of this policy.")
@click.option("--yes", is_flag=True, help="Erase for good; without it, only count the decisions.")
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
    """Erase references, features, monitored attributes and reasons of overrides; decisions, outcomes and the log stay.

    Without --yes nothing is erased; the command prints how many decisions match. Erasing cannot be undone. It is safe
    to repeat.

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
        click.echo("No matching decision has personal data.")
    elif yes:
        click.echo(f"Erased the personal data of {counted(number, 'decision')}. The log stays complete.")
    else:
        click.echo(f"{counted(number, 'decision')} would lose personal data for good. Add --yes to erase it.")
