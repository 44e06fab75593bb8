"""The interface of every model of cells: from labels to a prior, and from there to a belief, for each cell.

A model gives each cell a *prior* (n₀, s₀): the evidence on the cell apart from its own labels. The belief is the prior
plus the cell's own labels, (n₀ + n, s₀ + s), so a cell's own labels take over as they arrive. :class:`Shrinkage` shows
how much weight the prior has: the prior, the cell's own labels and the belief side by side.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.validation import floats, having


class Shrinkage(msgspec.Struct, frozen=True):
    """How a cell's belief came about: its prior, its own labels, and both together.

    Parameters
    ----------
    cell : str
        The name of the cell.
    prior : Belief
        The prior that the model gives the cell.
    labels : float
        The number of the cell's own labels.
    successes : float
        How many of them are successes.
    belief : Belief
        The prior plus the cell's own labels.

    Examples
    --------
    >>> row = Shrinkage("north", Belief(2, 1), 18, 12, Belief(20, 13))
    >>> row.pull
    0.1
    """

    cell: str
    prior: Belief
    labels: float
    successes: float
    belief: Belief

    @property
    def own_rate(self) -> float | None:
        """The success rate of the cell's own labels; None without labels."""
        return self.successes / self.labels if self.labels else None

    @property
    def pull(self) -> float:
        """The weight of the prior in the belief's mean: 1 without own labels, near 0 with many."""
        return self.prior.n / self.belief.n


@runtime_checkable
class Model(Protocol):
    """A model of cells: it turns the labels of all cells into a prior for each cell."""

    @property
    def cells(self) -> int:
        """The number of cells."""

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the prior of every cell.

        Parameters
        ----------
        labels : array_like
            The number of labels in each cell.
        successes : array_like
            The number of successes in each cell.

        Returns
        -------
        tuple of arrays
            n₀ and s₀ of each cell.

        Examples
        --------
        >>> from lenience.models import OwnCounts
        >>> n0, s0 = OwnCounts(cells=2).priors([10, 0], [9, 0])
        >>> n0, s0
        (array([2., 2.]), array([1., 1.]))
        """


def beliefs(model: Model, labels: ArrayLike, successes: ArrayLike) -> list[Belief]:
    """Return the belief about every cell: the model's prior plus the cell's own labels.

    Parameters
    ----------
    model : Model
        The model.
    labels : array_like
        The number of labels in each cell.
    successes : array_like
        The number of successes in each cell.

    Returns
    -------
    list of Belief
        The belief about each cell.

    Raises
    ------
    InputError
        If the counts are not one number for each cell, with 0 ≤ successes ≤ labels.

    Examples
    --------
    >>> from lenience.models.own_counts import OwnCounts
    >>> beliefs(OwnCounts(2), labels=[10, 0], successes=[7, 0])
    [Belief(n=12.0, s=8.0), Belief(n=2.0, s=1.0)]
    """
    n, s = checked_counts(having("model", model, "priors", "a model, such as OwnCounts(2)").cells, labels, successes)
    n0, s0 = model.priors(n, s)
    return [Belief(float(a), float(min(b, a))) for a, b in zip(n0 + n, s0 + s, strict=True)]


def shrinkage(model: Model, labels: ArrayLike, successes: ArrayLike, names: list[str] | None = None) -> list[Shrinkage]:
    """Return prior, own labels and belief of every cell.

    Parameters
    ----------
    model : Model
        The model.
    labels : array_like
        The number of labels in each cell.
    successes : array_like
        The number of successes in each cell.
    names : list of str, optional
        The names of the cells; by default "0", "1", …

    Returns
    -------
    list of Shrinkage
        One row for each cell.

    Raises
    ------
    InputError
        If the counts are not one number for each cell, with 0 ≤ successes ≤ labels.

    Examples
    --------
    >>> from lenience.models.own_counts import OwnCounts
    >>> row = shrinkage(OwnCounts(1), [18], [12])[0]
    >>> row.own_rate, row.pull, row.belief.mean
    (0.6666666666666666, 0.1, 0.65)
    """
    n, s = checked_counts(having("model", model, "priors", "a model, such as OwnCounts(2)").cells, labels, successes)
    n0, s0 = model.priors(n, s)
    cells = names or [str(i) for i in range(model.cells)]
    return [
        Shrinkage(
            cells[i],
            Belief(float(n0[i]), float(s0[i])),
            float(n[i]),
            float(s[i]),
            Belief(float(n0[i] + n[i]), float(min(s0[i] + s[i], n0[i] + n[i]))),
        )
        for i in range(model.cells)
    ]


def checked_counts(
    cells: int, labels: ArrayLike, successes: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts as arrays; raise InputError unless each has one number per cell and successes ≤ labels."""
    n, s = floats("labels", labels), floats("successes", successes)
    if n.shape != (cells,) or s.shape != (cells,):
        raise InputError.because(
            f"must have one number for each of the {cells} cells, not {n.shape} and {s.shape}",
            ("labels", "successes"),
            value=(n.shape, s.shape),
            code="length_mismatch",
        )
    if not (np.all(np.isfinite(n)) and np.all(s >= 0) and np.all(s <= n)):
        raise InputError(("labels", "successes"), allowed="finite, with 0 ≤ successes ≤ labels in every cell")
    return n, s
