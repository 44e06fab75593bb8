"""lenience rollout: roll a version out to a share of applicants of a running service, and compare both versions."""

from __future__ import annotations

from typing import Any

import click

from lenience.cli.options import json_option, print_json, service_options
from lenience.core.errors import InputError
from lenience.core.validation import real


@click.command(short_help="Roll a version out to a share of applicants, or compare it with the active one.")
@click.argument("policy")
@click.option("--percent", type=float, help="The share of applicants that the version decides; 0 rolls it back.")
@click.option("--version", type=int, help="The version; by default the one in rollout, or else the newest.")
@click.option("--activate", is_flag=True, help="Finish: let the version in rollout decide everybody.")
@click.option("--reason", help="The reason, which the change log of the policy records.")
@service_options("admin")
@json_option
def rollout(
    policy: str,
    percent: float | None,
    version: int | None,
    activate: bool,
    reason: str | None,
    url: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Let a version of POLICY decide a share of the applicants next to the active version.

    Without --percent and --activate, the command compares both versions in profit per applicant. For that, a key with
    the role read is enough.

    \b
    Example:
      lenience rollout loans --version 3 --percent 10
      lenience rollout loans
      lenience rollout loans --percent 0
      lenience rollout loans --activate
    """
    from lenience.client.client import Client, ServiceError

    if percent is not None and activate:
        raise InputError.because(
            "Give either --percent or --activate, not both", ("--percent", "--activate"), label="",
            code="conflicting_fields",
        )  # fmt: skip
    if percent is not None:
        real("--percent", percent, least=0, most=100)
    with Client(url, key) as client:
        try:
            if activate:
                running = next((one for one in client.policy(policy)["versions"] if one["state"] == "rollout"), None)
                if running is None and version is None:
                    raise InputError.because(
                        f"needs a version in rollout, and {policy} has none", "--activate",
                        hint="Name it with --version.", code="missing",
                    )  # fmt: skip
                result: Any = client.activate(policy, version or running["version"], reason=reason)  # type: ignore[index]
            elif percent is not None:
                result = client.roll_out(policy, percent, version, reason=reason)
            else:
                result = client.rollout(policy)
        except ServiceError as error:
            raise click.ClickException(f"{error}.") from error
    if as_json:
        print_json(result)
    elif percent is None and not activate:
        click.echo(f"No version of {policy} is rolled out." if result is None else result["sentence"])
    else:
        state = {"active": "decides all applicants", "retired": "is rolled back"}.get(
            result["state"], f"decides {result['percent']}% of applicants"
        )
        click.echo(f"Version {result['version']} of {policy} {state}.")
        for warning in result["warnings"]:
            click.echo(f"Warning: {warning}", err=True)
