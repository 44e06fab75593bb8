"""lenience witness: watch the log of a service, so that its operator cannot rewrite it without being noticed."""

from __future__ import annotations

from pathlib import Path

import click

from lenience.cli.options import FILE, json_option, print_json, service_options
from lenience.cli.verify import not_valid, read_public_key, read_text
from lenience.core.errors import InputError, in_words


@click.command(short_help="Check that a service's log only grows, and countersign its checkpoints.")
@click.option("--log-key", required=True, help="The public key of the log, or a file that holds it.")
@click.option(
    "--state",
    required=True,
    type=click.Path(dir_okay=False),
    help="The file with the last checkpoint that was checked. The first call creates it.",
)
@click.option("--sign-with", type=FILE, help="A file with your own private key, to countersign the checkpoint.")
@click.option("--post", metavar="URL", help="Also send the checkpoint to this address, as text.")
@service_options("read")
@json_option
def witness(
    log_key: str, state: str, sign_with: str | None, post: str | None, url: str, key: str | None, as_json: bool
) -> None:
    """Fetch the newest checkpoint, check that the log begins with the one that was checked before, and store it.

    Run it every hour on a machine that the service's operator does not control. If the log was rewritten or cut off,
    the exit code is 1 and the state file stays. Create a key of your own with lenience keys log-key --new.

    \b
    Example:
      lenience witness --url http://127.0.0.1:8000 --log-key log.key --state witnessed.txt
      lenience witness --log-key log.key --state witnessed.txt --sign-with my.key --post https://example.org/checkpoints
    """
    from lenience.client.client import Client, ServiceError
    from lenience.service.domain.merkle import verify_consistency
    from lenience.service.domain.signed_note import InvalidNoteError, SigningKey, verify_note

    public = read_public_key(log_key)
    own = None if sign_with is None else SigningKey.read(read_text("sign-with", sign_with))
    try:
        with Client(url, key) as client:
            note = str(client.checkpoint()["note"])
            new = verify_note(note, public)
            if Path(state).exists():
                old = verify_note(read_text("state", state), public)
                if new.size < old.size:
                    raise InvalidNoteError(f"the log had {old.size:,} events on {old.time} and has {new.size:,} now")
                path = [bytes.fromhex(each) for each in client.consistency(old.size, new.size)["path"]]
                if not verify_consistency(old.size, new.size, path, old.root, new.root):
                    raise InvalidNoteError(f"the log no longer begins with the {old.size:,} events of {old.time}")
    except ServiceError as error:
        raise click.ClickException(f"{error}.") from error
    except InvalidNoteError as error:
        not_valid(error, as_json)
    signed = note if own is None else own.sign(note)
    try:
        Path(state).write_text(signed, encoding="utf-8")
    except OSError as error:
        raise InputError.unreadable("state", state, in_words(error), "unreadable_file") from None
    if post is not None:
        _post(post, signed)
    if as_json:
        print_json({"valid": True, "log": new.origin, "size": new.size, "time": new.time, "note": signed})
    else:
        click.echo(
            f"The log {new.origin!r} has {new.size:,} events at {new.time} and has only grown. Stored in {state}."
        )


def _post(url: str, note: str) -> None:
    """Send a checkpoint to an address."""
    import httpx

    try:
        httpx.post(url, content=note.encode(), headers={"Content-Type": "text/plain; charset=utf-8"}).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise click.ClickException(f"the checkpoint could not be sent to {url}: {error}.") from error
