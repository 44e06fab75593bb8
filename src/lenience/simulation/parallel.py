"""Run independent pieces of work with joblib: on the cores of this machine, or on a Dask or Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from lenience.core.errors import InputError

Result = TypeVar("Result")


def run_in_parallel(
    work: Callable[..., Result], pieces: Sequence[tuple[Any, ...]], workers: int | None
) -> Iterator[Result]:
    """Yield the result of each piece, in order.

    Parameters
    ----------
    work
        A function that can be sent to another process.
    pieces
        Its arguments, for each piece.
    workers
        The number of processes; ``None`` as ``joblib.parallel_config`` says, and one without joblib.

    Yields
    ------
    Result
        What ``work`` returned.

    Raises
    ------
    InputError
        If the number is invalid, or several workers are asked for without joblib.

    Examples
    --------
    >>> list(run_in_parallel(max, [(1, 2), (4, 3)], workers=1))
    [2, 4]
    """
    if jobs(workers) == 1:
        for piece in pieces:
            yield work(*piece)
        return
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    # Ray returns all results at the end, the others one by one.
    one_by_one = get_active_backend()[0].supports_return_generator
    run = Parallel(n_jobs=workers, return_as="generator" if one_by_one else "list")
    yield from run(delayed(work)(*piece) for piece in pieces)


def jobs(workers: int | None) -> int:
    """Return how many pieces run at the same time.

    >>> jobs(1)
    1
    """
    if workers is not None and (not isinstance(workers, int) or workers == 0):
        raise InputError("workers", workers, "a whole number other than 0, or None")
    try:
        from joblib import effective_n_jobs
    except ImportError as error:
        if workers not in (None, 1):
            raise InputError.missing_package("several workers", "joblib", "simulate") from error
        return 1
    return int(effective_n_jobs(workers))
