"""lenience verify: check that a decision was in a log on a day, with the public key of the log alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec

from lenience.cli.options import FILE, json_option, print_json
from lenience.core.errors import InputError, in_words

if TYPE_CHECKING:
    from lenience.service.domain.signed_note import PublicKey


@click.command(short_help="Check the proof of a decision with the public key of the log.")
@click.argument("proof", type=FILE)
@click.option("--log-key", required=True, help="The public key of the log, or a file that holds it.")
@click.option(
    "--checkpoint", type=FILE, help="A checkpoint that you hold, e.g. from a witness. The proof must be for this one."
)
@json_option
def verify(proof: str, log_key: str, checkpoint: str | None, as_json: bool) -> None:
    """Check that a decision is in the log, unchanged, with nothing but the public key of the log.

    PROOF is what GET /v1/decisions/{id}/proof answers. No service is needed. The exit code is 0 if the proof holds and
    1 if it does not.

    \b
    Example:
      curl localhost:8000/v1/decisions/0190…/proof > decision.json
      lenience keys log-key --database decisions.db > log.key
      lenience verify decision.json --log-key log.key
      lenience verify decision.json --log-key log.key --checkpoint witnessed.txt
    """
    from lenience.service.domain.clock import iso_time
    from lenience.service.domain.decision_proof import DecisionProof, verify_decision
    from lenience.service.domain.signed_note import InvalidNoteError

    try:
        given = msgspec.json.decode(Path(proof).read_bytes(), type=DecisionProof)
    except (OSError, msgspec.MsgspecError) as error:
        reason = f"it must be the answer of /v1/decisions/{{id}}/proof ({in_words(error)})"
        raise InputError.unreadable("proof", proof, reason, "invalid_file") from None
    key = read_public_key(log_key)
    try:
        shown = verify_decision(given, key, None if checkpoint is None else read_text("checkpoint", checkpoint))
    except InvalidNoteError as error:
        not_valid(error, as_json)
    if as_json:
        print_json({"valid": True, **msgspec.to_builtins(shown), "decided_at": iso_time(shown.decided_at)})
        return
    whose = "" if shown.reference is None else f" (reference {shown.reference!r})"
    click.echo(
        f"Valid: decision {shown.decision}{whose} of policy {shown.policy!r}, segment {shown.segment!r}: "
        f"{shown.choice}, decided at {iso_time(shown.decided_at)}. It was in the log {shown.log!r} by "
        f"{shown.logged_by}, as one of {shown.log_size:,} events, and has not changed since."
    )


def not_valid(error: Exception, as_json: bool) -> NoReturn:
    """Print why something does not hold, and exit with 1."""
    if as_json:
        print_json({"valid": False, "reason": str(error)})
    else:
        click.echo(f"Not valid: {error}.", err=True)
    sys.exit(1)


def read_public_key(text: str) -> PublicKey:
    """Return the public key that an option names, directly or by a file."""
    from lenience.service.domain.signed_note import PublicKey as Key

    return Key.read(text if "+" in text and not Path(text).is_file() else read_text("log-key", text))


def read_text(field: str, path: str) -> str:
    """Return the text of a file, or raise InputError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.unreadable(field, path, in_words(error), "unreadable_file") from None
