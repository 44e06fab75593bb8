"""lenience monitor: check whether applicants and outcomes of a running policy are as expected."""

from __future__ import annotations

import sys
from typing import Any

import click

from lenience.cli.options import json_option, print_json, service_options

WORDS = {"ok": "as expected", "watch": "watch", "act": "act", "no_data": "not enough data"}


@click.command(short_help="Check whether applicants and outcomes of a running policy are as expected.")
@click.argument("policy")
@click.option("--version", "number", type=click.IntRange(1), help="The version; by default the live one.")
@click.option("--strict", is_flag=True, help="Exit with 1 if something needs action.")
@service_options("read")
@json_option
def monitor(policy: str, number: int | None, strict: bool, url: str, key: str | None, as_json: bool) -> None:
    """Compare the applicants, outcomes and acceptance of POLICY with what its live version expected.

    \b
    Example:
      lenience monitor cards --url http://127.0.0.1:8000 --key lk_…
      lenience monitor cards --strict --json
    """
    from lenience.client.client import Client, ServiceError

    try:
        with Client(url, key) as client:
            report = client.monitoring(policy, number)
    except ServiceError as error:
        raise click.ClickException(f"{error}.") from error
    if as_json:
        print_json(report)
    else:
        for line in _lines(report):
            click.echo(line)
    sys.exit(1 if strict and report["state"] == "act" else 0)


def _lines(report: dict[str, Any]) -> list[str]:
    """Return the report in sentences: a summary, and whatever is not as expected."""
    lines = [
        f"{report['policy']}, version {report['version']}: {report['sentence']}",
        f"Applicants: {report['population_sentence']}",
        f"Outcomes: {report['outcomes_sentence']}",
        f"Acceptance: {report['acceptance']['sentence']}",
    ]
    for one in (*report["population"], *report["by_segment"], *report["by_month"]):
        if one["state"] in ("watch", "act"):
            lines.append(f"  {WORDS[one['state']]}: {one['name']}: {one['sentence']}")
    return lines
