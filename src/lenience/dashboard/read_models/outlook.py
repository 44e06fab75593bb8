"""What a policy promises before its first decision: its worth, the cost of learning, whom it shuts out, if it starts.

While a slider moves the answer must be there at once. Most problems are solved in a few milliseconds; those that take
longer (many applicants that count, or many outcomes on their way) are answered first by a simpler problem, which is
said, and then solved with patience.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import TooLargeError
from lenience.core.formatting import count
from lenience.dashboard.pages.what_if_form import Asked
from lenience.objectives.discounted import Discounted
from lenience.segments.starting import starting_volume
from lenience.service.domain.solved_tables import Effort, ExposureTable, SolvedTable, load, solve
from lenience.service.domain.specification import Objective, SegmentProblem
from lenience.solvers.stopping.boundary_walk import fate
from lenience.solvers.stopping.clairvoyant import gain_of_knowing

ROWS = 2_000  # acceptances over which a shut-out is followed, and beliefs that a picture may show


class Pains(NamedTuple):
    """How much work an answer may be."""

    volume: float  # applicants that count, where outcomes come at once
    late: float  # and where they come late
    effort: Effort


QUICK = Pains(5_000, 1_000, Effort(ROWS, 1e-6, 1e-5, 0.1, limit=False))
PATIENT = Pains(200_000, 1e9, Effort(ROWS, 1e-6, 1e-5, 3.0, limit=False))


class Outlook(msgspec.Struct, frozen=True):
    """What lies ahead of a population with a prior.

    Values are as of now, before the first applicant. ``shut_out`` is the probability of a stop for good, given that
    the population deserves acceptance (p > c): an upper bound where labels come late (``at_most``). ``needed`` is the
    number of applicants that must count for a first acceptance to pay; nothing where there is no such number to tell.
    """

    table: SolvedTable
    volume: float
    value: Bounds
    knowing: float
    deserving: float
    shut_out: float
    at_most: bool
    starts: bool
    needed: float | None

    @property
    def learning(self) -> float:
        """The expected cost of learning: what one who knew the success rate would earn, less the optimum."""
        return max(self.knowing - self.value.midpoint, 0.0)

    @property
    def learning_share(self) -> float:
        """The same as a share of what one who knew would earn."""
        return self.learning / self.knowing if self.knowing > 0 else 0.0


class Answer(msgspec.Struct, frozen=True):
    """An outlook, and what was left out to give it at once."""

    outlook: Outlook
    word: str = ""
    more: bool = False  # whether patience would give a better one


def answer(asked: Asked, pains: Pains = QUICK) -> Answer:
    """The outlook of what is asked, with so many pains; else that of the nearest problem that takes less.

    >>> found = answer(Asked(break_even=80, applicants=9.9, rate=10))
    >>> round(found.outlook.volume, 6), found.outlook.starts, round(found.outlook.shut_out, 3)
    (99.0, True, 0.329)
    """
    problem = asked.problem
    if problem.label_delay and asked.volume <= pains.late:
        try:
            return Answer(_foresee(problem, asked.prior, pains.effort))
        except TooLargeError:
            pass
    volume = min(asked.volume, pains.volume)
    first = Discounted(asked.cost, volume / (1 + volume))
    found = _foresee(first, asked.prior, pains.effort)
    words = []
    if asked.weeks > 0:
        words.append("as if outcomes came at once: late ones make acceptances wait, and are worth less")
    if volume < asked.volume:
        words.append(f"for {volume:,.0f} applicants that count: with more one is more lenient still")
    if not words:
        return Answer(found)
    said = f"Shown {' and '.join(words)}."
    if pains is PATIENT:
        return Answer(found, f"{said} To solve it in full would take too long here.")
    return Answer(found, said, more=True)


@lru_cache(maxsize=512)
def _foresee(problem: Objective, prior: Belief, effort: Effort) -> Outlook:
    text = solve(SegmentProblem("", 1.0, problem, prior, None, 0.0), effort)
    return foresee(problem, prior, load(text))


def foresee(problem: Objective, prior: Belief, table: SolvedTable) -> Outlook:
    """The outlook of a problem under its solved table."""
    gain = gain_of_knowing(prior.n, prior.s, problem.cost)
    late = isinstance(table, ExposureTable)
    needed: float | None = starting_volume(prior, problem.cost).midpoint
    volume = problem.volume
    if problem.horizon is not None:
        needed = None
    if problem.stationary:
        first = Discounted(problem.cost, problem.discount).enclose(prior, 1e-6)[0]  # as of the first applicant, to come
        worth = Bounds(problem.discount * first.lower, problem.discount * first.upper)
    else:
        worth = table.value(0, 0, 0)[0] or Bounds(0.0, volume * gain)
    starts = table.limit(0, 0) != 0
    ahead = fate(prior.n, prior.s, problem.cost, _followed(table)) if not prior.certain else None
    deserving = ahead.deserving if ahead else float(prior.mean > problem.cost)
    shut = ahead.shut_out / ahead.deserving if ahead and ahead.deserving > 0 else 0.0
    return Outlook(table, volume, worth, volume * gain, deserving, shut, late, starts, needed)


def _followed(table: SolvedTable) -> NDArray[np.int64]:
    """The boundary over as many rows for every table: beyond its last one, the rates stopped at there are stops too."""
    least = np.asarray(table.boundary[:ROWS], dtype=np.int64)
    if len(least) == ROWS or table.horizon is not None:
        return least
    n, s = table.prior.n, table.prior.s
    last = (s + least[-1] - 1) / (n + len(least) - 1)
    rest = np.floor(last * (n + np.arange(len(least), ROWS)) - s).astype(np.int64) + 1
    return np.concatenate((least, np.maximum(rest, least[-1])))


def summary(found: Outlook) -> str:
    """The outlook in a sentence."""
    if not found.starts:
        if found.needed is None or math.isinf(found.needed):
            return "It never starts: no number of applicants makes a first acceptance pay."
        return (
            f"It never starts: {count(found.volume)} applicants count, and only from {count(found.needed)} on would a "
            "first acceptance pay."
        )
    bound = "at most " if found.at_most else ""
    return (
        f"Worth {count(found.value.midpoint)} in all, after {count(round(found.learning, 4))} for learning "
        f"({100 * found.learning_share:.0f} % of what one who knew would earn); a good population is shut out with a "
        f"probability of {bound}{100 * found.shut_out:.1f} %."
    )
