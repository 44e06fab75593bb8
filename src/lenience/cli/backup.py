"""lenience backup: copy a service's database into one file while the service runs."""

from __future__ import annotations

import sys

import click
import msgspec

from lenience.cli.audit import print_findings
from lenience.cli.keys import problems_as_errors
from lenience.cli.options import FILE, json_option, print_json
from lenience.cli.serve import database_option, require_service
from lenience.core.formatting import counted


@click.command(short_help="Copy a service's database into one file while the service runs.")
@database_option
@click.option("--output", type=FILE, required=True, help="The file to write. It must not exist.")
@json_option
def backup(database: str, output: str, as_json: bool) -> None:
    """Copy the database into one file, and audit the copy. The service may keep running.

    The file is a SQLite database, also if the service uses PostgreSQL. It holds personal data, and only its owner can
    read it. lenience restore puts it back. Keep the --json output in another place: it holds the heads of all chains,
    and lenience audit --expect takes it.

    The exit code is 1 if the audit finds something. The file is written even then.

    \b
    Example:
      lenience backup --database decisions.db --output backup.db
      lenience backup --database postgresql://lenience@localhost/lenience --output backup.db --json > backup.json
    """
    require_service()
    from lenience.service.commands.backup import back_up

    with problems_as_errors():
        result = back_up(database, output)
    if as_json:
        answer = {} if result.report is None else msgspec.to_builtins(result.report)
        about = {"file": result.file, "bytes": result.bytes, "schema": result.schema, "audited": bool(result.report)}
        print_json({**answer, **about, "findings": msgspec.to_builtins(result.findings)})
    else:
        print_findings(result.findings)
        size = f"{result.bytes / 1e6:,.1f} MB"
        if result.report is None:
            click.echo(
                f"Wrote {result.file} ({size}). It was checked for damage but not audited, because this version of "
                f"lenience has another schema than {result.schema}."
            )
        else:
            verdict = "Everything holds" if result.report.whole else counted(len(result.findings), "finding")
            click.echo(f"Wrote {result.file} ({size}). {verdict}: {counted(result.report.events, 'event')}.")
    sys.exit(1 if result.findings else 0)
