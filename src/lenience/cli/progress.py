"""Show progress of long work on stderr: a bar on a terminal, otherwise a sentence, and only if it takes a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Progress

Result = TypeVar("Result")
Item = TypeVar("Item")

BAR_AFTER = 0.5  # seconds before the bar appears
SENTENCE_AFTER = 1.0  # seconds before a sentence appears
EVERY = 15.0  # seconds between two messages about the time taken


@contextmanager
def announcing(activity: str) -> Iterator[None]:
    """Print on stderr what is being done if it takes a while, and from time to time how long it has taken."""
    done, start = Event(), time.monotonic()

    def announce() -> None:
        wait, so_far = SENTENCE_AFTER, ""
        while not done.wait(wait):
            click.echo(f"{activity} …{so_far}", err=True)
            wait, so_far = EVERY, f" for {time.monotonic() - start + EVERY:.0f} s so far"

    Thread(target=announce, daemon=True).start()
    try:
        yield
    finally:
        done.set()


class Counter(Protocol):
    """How many of the parts of some work are done."""

    done: int
    total: int


@contextmanager
def counting(activity: str, counter: Counter) -> Iterator[None]:
    """Show on stderr how many parts another thread, or this one, has done: a bar on a terminal, otherwise sentences."""
    done = Event()

    def show() -> None:
        if done.wait(BAR_AFTER if sys.stderr.isatty() else SENTENCE_AFTER):
            return
        with _bar() as bar:
            task = bar.add_task(activity, total=None)
            wait = 0.0
            while not done.wait(wait):
                if bar.disable:
                    click.echo(f"{activity}: {counter.done} of {counter.total} segments are solved …", err=True)
                bar.update(task, completed=counter.done, total=counter.total or None)
                wait = EVERY if bar.disable else 0.1

    shown = Thread(target=show, daemon=True)
    shown.start()
    try:
        yield
    finally:
        done.set()
        shown.join()


def run_interruptible(work: Callable[[], Result]) -> Result:
    """Do the work in another thread, so that this one can react to Ctrl-C at once; compiled code would not."""
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


def solving(label: str, work: Callable[[], Result], estimate: Callable[[], str] = str) -> Result:
    """Do the work in another thread, and show how many rows the solver has done.

    If the work takes more than a moment, print the text of ``estimate`` on stderr, or, if it is empty and there is no
    progress bar, the label.
    """
    from lenience.solvers.stopping.solve import progress

    future = _apart(work)
    try:
        return future.result(BAR_AFTER)
    except NotYet:
        if message := estimate():
            click.echo(message, err=True)
    with _bar() as bar, nullcontext() if message else _unless_seen(label):
        task = bar.add_task(label, total=None)
        while True:
            bar.update(task, completed=int(progress[0]), total=int(progress[1]) or None)
            try:
                return future.result(0.1)
            except NotYet:
                continue


def each(label: str, items: Iterable[Item]) -> Iterator[Item]:
    """Iterate over the items and show how many are done."""
    if not sys.stderr.isatty():  # Without a terminal there is no bar, and importing it takes a while.
        with announcing(label):
            yield from items
        return
    with _bar() as bar, _unless_seen(label):
        yield from bar.track(list(items), description=label)


def _unless_seen(label: str) -> AbstractContextManager[None]:
    """Print the label as a sentence unless a progress bar shows it."""
    return nullcontext() if sys.stderr.isatty() else announcing(label)


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
