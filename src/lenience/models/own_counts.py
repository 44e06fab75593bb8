"""The model of own counts: each cell learns only from its own labels, starting from a given prior.

This is the simplest model. It often does badly for rare cells: a cell learns nothing from its neighbours, and the prior
alone decides whether the cell is ever tried.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.validation import check_cost, listed, real, whole

UNIFORM = Belief(2, 1)  # the uniform prior: every success probability is equally likely
JEFFREYS = Belief(1, 0.5)  # Jeffreys' prior: half a success and half a failure


def skeptical(cost: float, n: float = 4.0, chance: float = 0.1) -> Belief:
    """Return a prior under which a cell is unlikely to be above the break-even.

    Parameters
    ----------
    cost : float
        The break-even success rate c.
    n : float, default 4
        The size of the prior, in observations.
    chance : float, default 0.1
        The probability that the prior gives to p > c.

    Returns
    -------
    Belief
        The prior.

    Raises
    ------
    InputError
        If ``cost`` or ``chance`` is not between 0 and 1, or ``n`` is not above 0.

    Examples
    --------
    >>> prior = skeptical(cost=0.8)
    >>> round(prior.mean, 3), round(prior.exceeds(0.8), 6)
    (0.495, 0.1)
    """
    c, size = check_cost(cost), real("n", n, above=0)
    target = real("chance", chance, above=0, below=1)
    low, high = 0.0, size
    for _ in range(200):
        middle = 0.5 * (low + high)
        if Belief(size, middle).exceeds(c) < target:
            low = middle
        else:
            high = middle
    return Belief(size, 0.5 * (low + high))


PRIORS = "a Belief, such as Belief(n=2, s=1), or one for each cell"


class OwnCounts:
    """Cells that learn only from their own labels, with one prior for all cells or one for each.

    Parameters
    ----------
    cells : int
        The number of cells.
    prior : Belief or sequence of Belief, default Belief(2, 1)
        The prior of all cells, or of each.

    Raises
    ------
    InputError
        If the number of priors is not the number of cells.

    Examples
    --------
    >>> OwnCounts(3, JEFFREYS).priors([0, 0, 5], [0, 0, 4])
    (array([1., 1., 1.]), array([0.5, 0.5, 0.5]))
    """

    def __init__(self, cells: int, prior: Belief | Sequence[Belief] = UNIFORM) -> None:
        self._cells = whole("cells", cells, least=1)
        priors = (
            [prior] * self._cells
            if isinstance(prior, Belief)
            else [check_prior(each) for each in listed("prior", prior, PRIORS)]
        )
        if len(priors) != self._cells:
            raise InputError.because(
                f"must be one Belief, or one for each of the {cells} cells, not {len(priors)}",
                "prior",
                value=len(priors),
                code="length_mismatch",
            )
        self.given = tuple(priors)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self._cells

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the given priors, whatever the labels are.

        Parameters
        ----------
        labels : array_like
            Ignored.
        successes : array_like
            Ignored.

        Returns
        -------
        tuple of arrays
            n₀ and s₀ of each cell.

        Examples
        --------
        >>> OwnCounts(cells=2).priors([10, 0], [9, 0])
        (array([2., 2.]), array([1., 1.]))
        """
        return np.array([prior.n for prior in self.given]), np.array([prior.s for prior in self.given])

    def __repr__(self) -> str:
        first = self.given[0]
        alike = all(prior == first for prior in self.given)
        return f"OwnCounts({self._cells}, {first if alike else 'own priors'})"
