"""What is said of long work on stderr: a bar on a terminal, elsewhere a sentence, and only if it takes a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Progress

Result = TypeVar("Result")
Item = TypeVar("Item")

PATIENCE = 0.5  # seconds before the bar appears
SILENCE = 1.0  # seconds before a sentence does
EVERY = 15.0  # seconds between two words on how long it has gone on


@contextmanager
def saying(what: str) -> Iterator[None]:
    """While something is done: what it is, said on stderr if it takes more than a moment, and now and then for how long
    it has gone on."""
    done, start = Event(), time.monotonic()

    def say() -> None:
        wait, so_far = SILENCE, ""
        while not done.wait(wait):
            click.echo(f"{what} …{so_far}", err=True)
            wait, so_far = EVERY, f" for {time.monotonic() - start + EVERY:.0f} s so far"

    Thread(target=say, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def run_interruptible(work: Callable[[], Result]) -> Result:
    """Do the work in another thread, and wait for it in this one, which obeys an interruption at once: a compiled solve
    would not hear of it until it ends."""
    future = _apart(work)
    while not future.done():
        with suppress(NotYet):
            future.exception(0.1)
    return future.result()


def _apart(work: Callable[[], Result]) -> Future[Result]:
    """Do the work in another thread, which does not keep the process alive."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


def solving(label: str, work: Callable[[], Result], foretold: Callable[[], str] = str) -> Result:
    """Do the work in another thread, and show how many rows the solver has done.

    What is ``foretold`` of work that takes more than a moment goes to stderr, whether or not that is a terminal; where
    nothing is, and there is no bar, the label does.
    """
    from lenience.solvers.stopping.solve import progress

    future = _apart(work)
    try:
        return future.result(PATIENCE)
    except NotYet:
        if estimate := foretold():
            click.echo(estimate, err=True)
    with _bar() as bar, nullcontext() if estimate else _unless_seen(label):
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
    with _bar() as bar, _unless_seen(label):
        yield from bar.track(several, description=label)


def _unless_seen(label: str) -> AbstractContextManager[None]:
    """The label as a sentence, unless a bar shows it."""
    return nullcontext() if sys.stderr.isatty() else saying(label)


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
