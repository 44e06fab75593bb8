"""A live model of cells: counts by cell, and a model of cells that turns them into beliefs.

The state is the counts alone. The model of cells (own counts, a shared prior or a curve) is fitted again whenever
counts have changed and a belief is needed, always from the same start. So the beliefs depend on the counts, not on the
order in which labels came, and a label can be taken back. A fit takes a bounded number of Newton steps, each of which
visits every cell once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.validation import having, listed, real
from lenience.models.curve import Curve
from lenience.models.live_model import ApplicantBelief, StoredModel, checked_outcome
from lenience.models.own_counts import OwnCounts
from lenience.models.protocol import Model, checked_counts
from lenience.models.shared import Shared
from lenience.models.state_bytes import Array, invalid_state, pack, unpack


class OwnFrame(msgspec.Struct, frozen=True, tag="own"):
    """The priors of cells that learn from their own labels only."""

    n: Array
    s: Array


class SharedFrame(msgspec.Struct, frozen=True, tag="shared"):
    """The settings of a shared prior."""

    strongest: float


class CurveFrame(msgspec.Struct, frozen=True, tag="curve"):
    """The design and the prior of a curve."""

    design: Array
    mean: Array
    precision: Array
    cap: float


class CellFrame(msgspec.Struct, frozen=True):
    """What never changes: the names of the cells, and the model."""

    cells: list[str]
    model: OwnFrame | SharedFrame | CurveFrame


class CellNumbers(msgspec.Struct, frozen=True):
    """The counts."""

    labels: Array
    successes: Array


class CellCounts(StoredModel):
    """Count labels by cell, and give each cell the belief of a model of cells.

    Parameters
    ----------
    model : OwnCounts, Shared or Curve
        Where the prior of each cell comes from.
    cells : sequence of str
        The name of each cell.

    Raises
    ------
    InputError
        If the model is another one, or there is not one name for each cell.

    Examples
    --------
    >>> model = CellCounts(Shared(3), ["A", "B", "C"])
    >>> for outcome in [True, True, True, False]:
    ...     model.observe("A", outcome)
    >>> model.belief("C").mean > CellCounts(Shared(3), ["A", "B", "C"]).belief("C").mean  # A's labels count for C
    True
    """

    kind: ClassVar[str] = "cells"

    def __init__(self, model: Model, cells: Sequence[str]) -> None:
        self.model = having("model", model, "priors", "a model of cells, such as Shared(2)")
        self.cells = [str(cell) for cell in listed("cells", cells, "a list of names")]
        if len(self.cells) != model.cells or len(set(self.cells)) < len(self.cells):
            raise InputError(
                "cells", len(self.cells), f"{model.cells} different names, one for each cell", code="length_mismatch"
            )
        self._position = {cell: i for i, cell in enumerate(self.cells)}
        self.labels, self.successes = np.zeros(model.cells), np.zeros(model.cells)
        self._priors: Any = None

    def observe(self, applicant: str, outcome: bool, weight: float = 1.0) -> None:
        """Count a label.

        Parameters
        ----------
        applicant : str
            The name of the cell.
        outcome : bool
            Whether it was a success.
        weight : float, default 1
            How much the label counts.

        Raises
        ------
        InputError
            If the cell is unknown or the outcome is not 0 or 1.
        """
        at, good = self._at(applicant), checked_outcome(outcome)
        size = real("weight", weight, above=0)
        self.labels[at] += size
        self.successes[at] += size * good
        self._priors = None

    def retract(self, applicant: str, outcome: bool, weight: float = 1.0) -> None:
        """Take a label back, as if it had never been counted.

        Parameters
        ----------
        applicant : str
            The name of the cell.
        outcome : bool
            The outcome that was counted.
        weight : float, default 1
            How much it counted.

        Raises
        ------
        InputError
            If the cell has no such label.
        """
        at, good = self._at(applicant), checked_outcome(outcome)
        size = real("weight", weight, above=0)
        labels, successes = self.labels[at] - size, self.successes[at] - size * good
        if not 0.0 <= successes <= labels:
            raise InputError.because(
                f"has no such label to take back: {self.successes[at]:g} of its {self.labels[at]:g} labels are "
                "successes",
                "applicant",
                label=f"the cell {applicant!r}",
                value=applicant,
            )
        self.labels[at], self.successes[at] = labels, successes
        self._priors = None

    def belief(self, applicant: str) -> ApplicantBelief:
        """Return the belief about a cell.

        Parameters
        ----------
        applicant : str
            The name of the cell.

        Returns
        -------
        ApplicantBelief
            Belief size and expected success probability.
        """
        at = self._at(applicant)
        if self._priors is None:
            self._priors = self.model.priors(self.labels, self.successes)
        n = float(self._priors[0][at] + self.labels[at])
        return ApplicantBelief(n, float(min(self._priors[1][at] + self.successes[at], n)) / n)

    def _at(self, cell: str) -> int:
        at = self._position.get(cell)
        if at is None:
            raise InputError.unknown_name("cell", cell, self.cells)
        return at

    def numbers(self) -> bytes:
        """Return the counts as bytes.

        Returns
        -------
        bytes
            The numbers.
        """
        return pack(CellNumbers(Array.of(self.labels), Array.of(self.successes)))

    def _frame(self) -> bytes:
        return pack(CellFrame(self.cells, frame_of(self.model)))

    @classmethod
    def _restore(cls, frame: bytes, numbers: bytes) -> Self:
        described, counts = unpack(frame, CellFrame), unpack(numbers, CellNumbers)
        model = cls(model_of(described.model, len(described.cells)), described.cells)
        try:
            model.labels, model.successes = checked_counts(
                len(model.cells), counts.labels.values(), counts.successes.values()
            )
        except InputError as error:
            raise invalid_state(str(error)) from error
        return model


def frame_of(model: Model) -> OwnFrame | SharedFrame | CurveFrame:
    """Return the settings of a model of cells."""
    if isinstance(model, OwnCounts):
        return OwnFrame(
            Array.of(np.array([prior.n for prior in model.given])),
            Array.of(np.array([prior.s for prior in model.given])),
        )
    if isinstance(model, Shared):
        return SharedFrame(model.strongest)
    if isinstance(model, Curve):
        return CurveFrame(Array.of(model.design), Array.of(model.mean), Array.of(model.precision), model.cap)
    raise InputError("model", model, "an OwnCounts, a Shared or a Curve, which can be stored")


def model_of(frame: OwnFrame | SharedFrame | CurveFrame, cells: int) -> Model:
    """Return the model of cells with these settings."""
    if isinstance(frame, OwnFrame):
        priors = zip(frame.n.values().tolist(), frame.s.values().tolist(), strict=True)
        return OwnCounts(cells, [Belief(n, s) for n, s in priors])
    if isinstance(frame, SharedFrame):
        return Shared(cells, frame.strongest)
    return Curve.of_design(frame.design.values(), frame.mean.values(), frame.precision.values(), frame.cap)
