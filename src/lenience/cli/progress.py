"""A progress bar for long work: it appears only if the work takes a moment, and only on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Progress

Result = TypeVar("Result")
Item = TypeVar("Item")

PATIENCE = 0.5  # seconds before the bar appears


def solving(label: str, work: Callable[[], Result], foretold: Callable[[], str] = str) -> Result:
    """Do the work in another thread, and show how many rows the solver has done.

    What is ``foretold`` of work that takes more than a moment goes to stderr, whether or not that is a terminal.

    The thread does not keep the process alive, so that an interruption is obeyed at once.
    """
    from lenience.solver.stopping import progress

    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return future.result(PATIENCE)
    except NotYet:
        if said := foretold():
            click.echo(said, err=True)
    with _bar() as bar:
        task = bar.add_task(label, total=None)
        while True:
            bar.update(task, completed=int(progress[0]), total=int(progress[1]) or None)
            try:
                return future.result(0.1)
            except NotYet:
                continue


def each(label: str, items: Iterable[Item]) -> Iterator[Item]:
    """Go through the items and show how many are done."""
    several = list(items)
    with _bar() as bar:
        yield from bar.track(several, description=label)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    errors = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
