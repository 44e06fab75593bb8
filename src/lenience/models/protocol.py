"""What every model of the cells can do: from the labels seen, say what is believed of each cell.

A model gives each cell a *prior* (n₀, s₀): what is believed of it apart from its own labels. The belief is that plus
the cell's own labels, (n₀ + n, s₀ + s), so a cell's own labels take over as they come. How far the prior pulls is
shown, not hidden: :class:`Shrinkage` has the prior, the cell's own data and the belief side by side.
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
    """How a cell's belief came about: the prior it was given, its own labels, and both together.

    ``pull`` is the weight of the prior in the belief's mean: 1 where there are no own labels, towards 0 where there
    are many.
    """

    cell: str
    prior: Belief
    labels: float
    successes: float
    belief: Belief

    @property
    def own_rate(self) -> float | None:
        """The success rate of the cell's own labels, where it has any."""
        return self.successes / self.labels if self.labels else None

    @property
    def pull(self) -> float:
        """The weight of the prior in the belief's mean."""
        return self.prior.n / self.belief.n


@runtime_checkable
class Model(Protocol):
    """Labels in, a prior for each cell out."""

    @property
    def cells(self) -> int:
        """How many cells there are."""

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """n₀ and s₀ of every cell, given how many labels and successes each cell has had."""


def beliefs(model: Model, labels: ArrayLike, successes: ArrayLike) -> list[Belief]:
    """The belief of every cell: the model's prior plus the cell's own labels.

    >>> from lenience.models.own_counts import OwnCounts
    >>> beliefs(OwnCounts(2), labels=[10, 0], successes=[7, 0])
    [Belief(n=12.0, s=8.0), Belief(n=2.0, s=1.0)]
    """
    n, s = checked_counts(having("model", model, "priors", "a model, such as OwnCounts(2)").cells, labels, successes)
    n0, s0 = model.priors(n, s)
    return [Belief(float(a), float(min(b, a))) for a, b in zip(n0 + n, s0 + s, strict=True)]


def shrinkage(model: Model, labels: ArrayLike, successes: ArrayLike, names: list[str] | None = None) -> list[Shrinkage]:
    """For each cell the prior, its own data and the belief.

    >>> from lenience.models.own_counts import OwnCounts
    >>> row = shrinkage(OwnCounts(1), [18], [12])[0]
    >>> row.own_rate, row.pull, row.belief.mean
    (0.6666666666666666, 0.1, 0.65)
    """
    n, s = checked_counts(having("model", model, "priors", "a model, such as OwnCounts(2)").cells, labels, successes)
    n0, s0 = model.priors(n, s)
    called = names or [str(i) for i in range(model.cells)]
    return [
        Shrinkage(
            called[i],
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
    """The counts as arrays, one number a cell, successes no more than labels."""
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
