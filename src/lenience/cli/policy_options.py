"""Options of lenience fit for the policy that it writes: its file, name, purpose and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lenience.core.errors import InputError
from lenience.core.validation import real
from lenience.history.specification import PolicySettings

Command = TypeVar("Command", bound=Callable[..., Any])
# Options that mean nothing without a file, by parameter.
SETTINGS = {
    "policy_name": "--name",
    "description": "--description",
    "exploration_floor": "--exploration-floor",
    "exposure_cap": "--exposure-cap",
    "expire_after": "--expire-after",
}


def policy_options(command: Command) -> Command:
    """Add the options of the policy that is written to a file."""
    for option in (
        click.option("--expire-after", type=float, help="Days after which a missing outcome expires; with --output."),
        click.option(
            "--exposure-cap", type=int, help="The most outcomes that may be pending in a segment; with --output."
        ),
        click.option(
            "--exploration-floor",
            type=float,
            help="The share of a stopped segment that is still accepted, such as 0.02; with --output.",
        ),
        click.option("--description", help="The purpose of the policy; with --output."),
        click.option("--name", "policy_name", help="The name of the policy; by default that of the file of --output."),
        click.option(
            "--output",
            type=click.Path(dir_okay=False),
            help="Write the policy to this file, for lenience check, serve and export-sql.",
        ),
        click.option(
            "--segment-cost",
            "segment_cost_texts",
            multiple=True,
            help="The break-even of one segment, where it differs from --cost, e.g. students=0.9; may be repeated.",
        ),
    ):
        command = option(command)
    return command


def read_settings(options: dict[str, Any]) -> PolicySettings:
    """Remove the options of the policy and return them; raise InputError if one is given without a file."""
    output = options.get("output")
    given = {name: options.pop(name) for name in SETTINGS}
    for name, option in SETTINGS.items():
        if given[name] is not None and output is None:
            raise InputError.because("needs --output, the file of the policy", option, code="missing")
    if output is None:
        return PolicySettings(name="policy")
    from lenience.service.domain.policy_file import policy_name

    if given["exploration_floor"] is not None:
        real("--exploration-floor", given["exploration_floor"], least=0, below=1)
    if given["exposure_cap"] is not None:
        real("--exposure-cap", given["exposure_cap"], least=1)
    if given["expire_after"] is not None:
        real("--expire-after", given["expire_after"], above=0, most=36_500)
    return PolicySettings(
        name=given["policy_name"] or policy_name(output),
        description=given["description"] or "",
        exploration_floor=given["exploration_floor"] or 0.0,
        exposure_cap=given["exposure_cap"],
        expire_after_days=given["expire_after"],
    )
