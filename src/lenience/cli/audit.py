"""lenience audit: recompute the log of a service and check every row against it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lenience.cli.keys import opened
from lenience.cli.options import FILE, console, json_option, print_json
from lenience.cli.serve import database_option, require_service
from lenience.cli.streams import ignoring_broken_pipe
from lenience.cli.verify import read_public_key, read_text
from lenience.core.errors import InputError, in_words
from lenience.core.formatting import counted

if TYPE_CHECKING:
    from lenience.service.domain.signed_note import Checkpoint
    from lenience.service.queries.audit import AuditReport, Finding
    from lenience.service.storage.store import Store

LAST = "last"


@click.command(short_help="Recompute a service's log and check every decision.")
@database_option
@click.option("--expect", type=FILE, help="The --json output of an earlier audit, which must still hold.")
@click.option(
    "--checkpoint",
    "checkpoints",
    type=FILE,
    multiple=True,
    help="A checkpoint that you hold; the log must begin with it.",
)
@click.option("--log-key", help="The public key of the log, or a file that holds it; with --checkpoint.")
@click.option(
    "--since",
    help="Recompute only what came after an earlier state: a checkpoint (with --log-key), the --json output of an "
    "earlier audit without findings, or 'last' for the last audit that the dashboard has run.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="How many processes recompute a long log: by default one for each core.",
)
@json_option
def audit(
    database: str,
    expect: str | None,
    checkpoints: tuple[str, ...],
    log_key: str | None,
    since: str | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Recompute the log, and check its chains, every belief and every decision.

    The exit code is 0 if everything holds and 1 otherwise; each finding says where. Damage to the file or to an index
    is a finding, too. Keep the --json output in another
    place and give it as --expect next time. The audit then also detects a log that was cut off or rewritten. The
    service may keep running.

    \b
    Example:
      lenience audit --database decisions.db
      lenience audit --database decisions.db --json > audit.json
      lenience audit --database decisions.db --expect audit.json
      lenience audit --database decisions.db --checkpoint witnessed.txt --log-key log.key
      lenience audit --database decisions.db --since audit.json
    """
    require_service()
    from lenience.service.queries.audit import audit as run

    earlier = None if expect is None else _earlier("expect", expect).heads
    held = [_verified(each, log_key) for each in checkpoints]
    with opened(database, "read", check_schema=False) as store:  # the audit reports a damaged schema itself
        start = None if since is None else _start(store, since, log_key)
        report = run(store, earlier, held, workers, start)
    with ignoring_broken_pipe():  # a closed pipe must not change the exit code
        _print(report, as_json)
    sys.exit(0 if report.whole else 1)


def _earlier(field: str, path: str) -> AuditReport:
    """Return the report of an earlier audit, or raise InputError."""
    from lenience.service.queries.audit import AuditReport

    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=AuditReport)
    except (OSError, msgspec.MsgspecError) as error:
        reason = f"it must be the --json output of an earlier audit ({in_words(error)})"
        raise InputError.unreadable(field, path, reason, "invalid_file") from None


def _start(store: Store, since: str, log_key: str | None) -> Checkpoint:
    """Return the state of the log from which an incremental audit starts, or raise InputError."""
    hint = "Run a full audit first, without --since."
    if since == LAST:
        from lenience.service.queries.audit import last_clean_audit

        start = last_clean_audit(store)
        reason = "the dashboard has not run an audit without findings yet"
        hint = "Run one with “Run an audit now” on the dashboard, or give the --json output of an earlier audit."
    elif read_text("since", since).lstrip().startswith("{"):
        start = _earlier("since", since).checkpoint
        reason = "the audit had findings, or the log had no tree yet"
    else:
        return _verified(since, log_key)
    if start is None:
        raise InputError.because(
            f"cannot be {since!r}, because {reason}",
            "since",
            value=since,
            hint=hint,
            code="invalid_file",
        )
    return start


def _verified(path: str, log_key: str | None) -> Checkpoint:
    """Return a checkpoint whose signature is valid, or raise InputError."""
    from lenience.service.domain.signed_note import InvalidNoteError, verify_note

    if log_key is None:
        raise InputError.because("must be given with --checkpoint", "log-key", code="missing")
    try:
        return verify_note(read_text("checkpoint", path), read_public_key(log_key))
    except InvalidNoteError as error:
        raise InputError.unreadable("checkpoint", path, str(error), "invalid_file") from None


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings, one per line."""
    out = console()
    for finding in findings:
        out.print(f"{finding.where}: {finding.what}", markup=False, soft_wrap=True)


def _print(report: AuditReport, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        print_findings(report.findings)
        out = console()
        verdict = "Everything holds" if report.whole else counted(len(report.findings), "finding")
        out.print(
            f"{verdict}: {counted(report.events, 'event')} in {counted(report.chains, 'chain')}, "
            f"{counted(report.decisions, 'decision')} recomputed. Digest of the heads: {report.digest}",
            soft_wrap=True,
        )
        if report.since:
            out.print(
                f"Only what came after the first {counted(report.since, 'event')} was recomputed. "
                "Earlier rows and the totals were not compared.",
                soft_wrap=True,
            )
        if report.labels_not_recomputed or report.decisions_not_recomputed:
            out.print(
                f"The features of {counted(report.labels_not_recomputed, 'label')} and "
                f"{counted(report.decisions_not_recomputed, 'decision')} have been erased. The audit checked these by "
                "stored model states and by the numbers in the log.",
                soft_wrap=True,
            )
        if report.assignments_not_recomputed:
            out.print(
                f"The references of {counted(report.assignments_not_recomputed, 'decision')} in a rollout have been "
                "erased, so the audit cannot recompute which version had to decide them.",
                soft_wrap=True,
            )
