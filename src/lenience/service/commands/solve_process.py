"""Solve a segment in a process of its own, which ends at once if the solve is cancelled.

Compiled solvers cannot be interrupted inside a thread. A segment that may take long is therefore solved in another
process. It starts in about two seconds, so segments that take no longer than that are solved in the thread.
"""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
from contextlib import suppress

from lenience.core.errors import InputError
from lenience.core.objective import ExposureObjective
from lenience.service.commands.solve_progress import SolveProgress
from lenience.service.domain import limits
from lenience.service.domain.solved_tables import solve, solve_seconds
from lenience.service.domain.specification import SegmentProblem

LONG = 3.0  # seconds, as estimated by the solver, from which a segment is solved in a process of its own
LOOK_EVERY = 0.1  # seconds between two looks at whether the solve was cancelled
PROCESSOR_SECONDS = 10 * int(limits.SOLVE_SECONDS)  # an orphan ends after this


def solve_cancellable(segment: SegmentProblem, progress: SolveProgress) -> str:
    """Solve a segment and return its table as text. Raise Conflict soon after the solve was cancelled.

    Parameters
    ----------
    segment
        The segment.
    progress
        Whether the solve was cancelled.

    Raises
    ------
    Conflict
        If the solve was cancelled.
    InputError
        If the problem is invalid or too large.
    """
    return _solve_apart(segment, progress) if may_take_long(segment) else solve(segment)


def may_take_long(segment: SegmentProblem) -> bool:
    """Return whether a solve may take more than a few seconds.

    Late outcomes with one break-even and one belief never do, because longer proofs are replaced by estimates. With
    offers or a doubtful prior they may take a minute.
    """
    if isinstance(segment.problem, ExposureObjective):
        return segment.problem.offers is not None or segment.belief != segment.prior
    return solve_seconds(segment) > LONG


def _solve_apart(segment: SegmentProblem, progress: SolveProgress) -> str:
    """Solve a segment in another process."""
    process = subprocess.Popen(
        (sys.executable, "-m", __name__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    given: bytes | None = pickle.dumps(segment)
    try:
        while True:
            try:
                output, errors = process.communicate(given, timeout=LOOK_EVERY)
                break
            except subprocess.TimeoutExpired:
                given = None  # it has been sent
                progress.check()
    finally:
        if process.returncode is None:
            process.kill()
            process.communicate()
    progress.check()
    if process.returncode != 0 or not output:
        raise RuntimeError(f"the solver's process ended with {process.returncode}: {errors.decode()[-2_000:]}")
    answer: str | InputError = pickle.loads(output)
    if isinstance(answer, InputError):
        raise answer
    return answer


def main() -> None:
    """Read a segment from stdin, and write its table, or the error, to stdout."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):  # a lower limit is there already
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, hard))
    segment: SegmentProblem = pickle.loads(sys.stdin.buffer.read())
    answer: str | InputError
    try:
        answer = solve(segment)
    except InputError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
