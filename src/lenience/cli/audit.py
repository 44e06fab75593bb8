"""lenience audit: recompute the log of a service and check every row against it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lenience.cli.keys import opened
from lenience.cli.options import FILE, console, json_option, print_json
from lenience.cli.serve import database_option, needed
from lenience.cli.streams import to_a_reader
from lenience.core.errors import InputError, in_words
from lenience.core.formatting import counted

if TYPE_CHECKING:
    from lenience.service.queries.audit import AuditReport


@click.command(short_help="Recompute a service's log: is everything as it was decided?")
@database_option
@click.option("--expect", type=FILE, help="The --json output of an earlier audit: must still hold.")
@json_option
def audit(database: str, expect: str | None, as_json: bool) -> None:
    """Recompute the log: the chain is whole, every belief is the one the events give, every decision the policy's own.

    The exit code is 0 only if all holds, 1 if anything does not; each finding says where. Keep the --json output
    somewhere else, and give it as --expect next time: then even a log that was cut off or written anew is found out.
    The service may go on running meanwhile.

    \b
    Example:
      lenience audit --database decisions.db
      lenience audit --database decisions.db --json > audit.json
      lenience audit --database decisions.db --expect audit.json
    """
    needed()
    from lenience.service.queries.audit import AuditReport
    from lenience.service.queries.audit import audit as run

    earlier = None
    if expect is not None:
        try:
            earlier = msgspec.json.decode(Path(expect).read_bytes(), type=AuditReport).heads
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError.unreadable(
                "expect",
                expect,
                f"it must be the --json output of an earlier audit ({in_words(error)})",
                "invalid_file",
            ) from None
    with opened(database, "read") as store:
        report = run(store, earlier)
    with to_a_reader():  # whose going must not change the code
        _print(report, as_json)
    sys.exit(0 if report.whole else 1)


def _print(report: AuditReport, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        out = console()
        for finding in report.findings:
            out.print(f"{finding.where}: {finding.what}", markup=False, soft_wrap=True)
        verdict = "All holds" if report.whole else counted(len(report.findings), "finding")
        out.print(
            f"{verdict}: {counted(report.events, 'event')} in {counted(report.chains, 'chain')}, "
            f"{counted(report.decisions, 'decision')} recomputed. Digest of the heads: {report.digest}",
            soft_wrap=True,
        )
