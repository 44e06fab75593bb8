"""lenience restore: put a backup in the place of a service's database."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from lenience.cli.audit import print_findings
from lenience.cli.keys import problems_as_errors
from lenience.cli.options import FILE, json_option, print_json
from lenience.cli.serve import database_option, require_service
from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.files.unreadable import begins


@click.command(short_help="Put a backup in the place of a service's database.")
@database_option
@click.option("--input", "backup", type=FILE, required=True, help="A file that lenience backup wrote.")
@json_option
def restore(database: str, backup: str, as_json: bool) -> None:
    """Audit a backup, put it in the place of the database, and audit the result. Stop the service first.

    A SQLite database is moved aside, with the time in its name; delete it when you no longer need it. A PostgreSQL
    database must be empty. A backup of an earlier version is upgraded. The backup itself does not change.

    Erasures and revoked keys since the backup are undone: repeat them before you start the service.

    The exit code is 1 if an audit finds something. If the backup fails its audit, nothing is replaced.

    \b
    Example:
      lenience restore --database decisions.db --input backup.db
    """
    require_service()
    from lenience.service.commands.backup import restore as run

    if Path(backup).is_file() and begins(Path(backup)) != b"SQLi":
        raise InputError("input", backup, "a file that lenience backup wrote", code="invalid_file")
    with problems_as_errors():
        result = run(database, backup)
    report = result.report
    if as_json:
        print_json({**msgspec.to_builtins(report), "restored": result.done, "previous": result.previous})
    else:
        print_findings(report.findings)
        if not result.done:
            click.echo(f"Nothing was restored: {counted(len(report.findings), 'finding')} in the backup.")
        else:
            verdict = "Everything holds" if report.whole else counted(len(report.findings), "finding")
            contents = f"{counted(report.events, 'event')}, {counted(report.decisions, 'decision')}"
            click.echo(f"Restored the database. {verdict}: {contents}.")
            if result.previous is not None:
                click.echo(f"The previous database is {result.previous}.")
    sys.exit(0 if result.done and report.whole else 1)
