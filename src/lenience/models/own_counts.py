"""The model of own counts: every cell is on its own, from a prior that is given.

The simplest model, and for rare cells often a bad one: nothing is learnt of a cell from its neighbours, and what the
prior says decides whether a cell is ever tried.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.validation import check_cost, listed, real, whole

UNIFORM = Belief(2, 1)  # every success probability is as likely as any other
JEFFREYS = Belief(1, 0.5)  # the invariant prior: half an observation less in each direction


def skeptical(cost: float, n: float = 4.0, chance: float = 0.1) -> Belief:
    """The prior of size n that gives the cell a small chance (one in ten) of deserving acceptance at all (p > c).

    >>> prior = skeptical(cost=0.8)
    >>> round(prior.mean, 3), round(prior.exceeds(0.8), 6)
    (0.495, 0.1)
    """
    c, size = check_cost(cost), real("n", n, above=0)
    wanted = real("chance", chance, above=0, below=1)
    low, high = 0.0, size
    for _ in range(200):
        middle = 0.5 * (low + high)
        if Belief(size, middle).exceeds(c) < wanted:
            low = middle
        else:
            high = middle
    return Belief(size, 0.5 * (low + high))


PRIORS = "a Belief, such as Belief(n=2, s=1), or one for each cell"


class OwnCounts:
    """Cells on their own, with one prior for all or one each.

    >>> OwnCounts(3, JEFFREYS).priors([0, 0, 5], [0, 0, 4])
    (array([1., 1., 1.]), array([0.5, 0.5, 0.5]))
    """

    def __init__(self, cells: int, prior: Belief | Sequence[Belief] = UNIFORM) -> None:
        self._cells = whole("cells", cells, least=1)
        given = (
            [prior] * self._cells
            if isinstance(prior, Belief)
            else [check_prior(one) for one in listed("prior", prior, PRIORS)]
        )
        if len(given) != self._cells:
            raise InputError.because(
                f"must be one Belief, or one for each of the {cells} cells, not {len(given)}",
                "prior",
                value=len(given),
                code="length_mismatch",
            )
        self.given = tuple(given)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self._cells

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The priors that were given, whatever was seen."""
        return np.array([prior.n for prior in self.given]), np.array([prior.s for prior in self.given])

    def __repr__(self) -> str:
        first = self.given[0]
        alike = all(prior == first for prior in self.given)
        return f"OwnCounts({self._cells}, {first if alike else 'own priors'})"
