"""Send a file to a running service: progress on stderr, the result on stdout, and what to do after an interruption."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

import click
import msgspec

from lenience.cli.options import print_json
from lenience.cli.streams import ignoring_broken_pipe

if TYPE_CHECKING:
    from lenience.client.client import Client

EVERY = 2.0  # seconds between two progress messages


class Sent(Protocol):
    """What was sent so far."""

    def describe(self) -> str:
        """Return a summary, and one line for each problem."""


Result = TypeVar("Result", bound=Sent)


def send_file(
    url: str,
    key: str | None,
    send: Callable[[Client, Callable[[Result], None]], Result],
    progress_text: Callable[[Result], str],
    problems: Callable[[Result], int],
    unit: str,
    as_json: bool,
) -> NoReturn:
    """Send a file, print the result and exit: with code 2 if there were problems.

    Parameters
    ----------
    url, key
        The service.
    send
        Sends the file and reports what was sent so far.
    progress_text
        The words for what was sent so far.
    problems
        The number of rows that were not recorded.
    unit
        What counts once if the file is sent again.
    as_json
        Whether to print JSON.

    Raises
    ------
    click.ClickException
        If the service answers with an error. It says what was sent before.
    """
    from lenience.client.client import Client, ServiceError

    last_message = time.monotonic()
    done: Result | None = None

    def progress(so_far: Result) -> None:
        nonlocal last_message, done
        done = so_far
        if time.monotonic() - last_message > EVERY:
            last_message = time.monotonic()
            click.echo(progress_text(so_far), err=True)

    with Client(url, key) as client:
        try:
            result = send(client, progress)
        except ServiceError as error:
            so_far = f" Before: {done.describe()} Import the file again: each {unit} counts once." if done else ""
            raise click.ClickException(f"{error}.{so_far}") from error
    with ignoring_broken_pipe():  # a closed pipe must not change the exit code
        if as_json:
            print_json(msgspec.to_builtins(result))
        else:
            summary, *lines = result.describe().splitlines()
            click.echo(summary)
            for line in lines:
                click.echo(line, err=True)
    sys.exit(2 if problems(result) else 0)
