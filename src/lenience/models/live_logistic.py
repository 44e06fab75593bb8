"""A live logistic regression: declared features in, a Gaussian belief that learns label by label, bytes out.

It is what a fitted :class:`~lenience.models.BayesianLogistic` or
:class:`~lenience.models.CalibratedScore` knows, together with the declaration of its features. It
needs no scikit-learn. The frame holds columns and scales. The numbers hold, for each hypothesis, its weight, the mean
of its coefficients and the lower triangle of their covariance. Coefficients that a hypothesis leaves out take no space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.models.feature_columns import FeatureColumn, RowEncoding
from lenience.models.live_model import ApplicantBelief, StoredModel, checked_outcome
from lenience.models.logistic_belief import Design, LogisticBelief
from lenience.models.logistic_design import LogisticDesign
from lenience.models.rank_columns import RankColumns
from lenience.models.score_design import ScoreDesign
from lenience.models.selection import Selection
from lenience.models.state_bytes import Array, invalid_state, pack, unpack

ONE = np.ones(1)


class RankFrame(msgspec.Struct, frozen=True):
    """Columns for bends: the stored values and ranks of each feature that has them, and the scales of the columns."""

    source: Array
    kind: Array
    start: Array
    values: Array
    ranks: Array
    centre: Array
    scale: Array


class SelectionFrame(msgspec.Struct, frozen=True):
    """The selection index."""

    weights: Array
    points: Array
    score: Array
    depth: Array
    strength: float


class FeaturesFrame(msgspec.Struct, frozen=True, tag="features"):
    """The design of standardised features."""

    centre: Array
    scale: Array
    limit: float
    intercept: bool
    ranks: RankFrame | None
    selection: SelectionFrame | None

    @classmethod
    def of(cls, design: LogisticDesign) -> FeaturesFrame:
        """Return the frame of a design."""
        ranks = selection = None
        if design.ranks is not None:
            ranks = RankFrame(*(Array.of(each) for each in (*design.ranks, design.bend_centre, design.bend_scale)))
        if design.selection is not None:
            chosen = design.selection
            weights, points, score, depth = (Array.of(each) for each in chosen[:4])
            selection = SelectionFrame(weights, points, score, depth, chosen.strength)
        return cls(Array.of(design.centre), Array.of(design.scale), design.limit, design.intercept, ranks, selection)

    def design(self) -> LogisticDesign:
        """Return the design."""
        out = LogisticDesign(self.centre.values(), self.scale.values(), self.limit, self.intercept)
        if self.ranks is not None:
            given = self.ranks
            columns = RankColumns(
                *(each.values() for each in (given.source, given.kind, given.start, given.values, given.ranks))
            )
            out = out._replace(ranks=columns, bend_centre=given.centre.values(), bend_scale=given.scale.values())
        if self.selection is not None:
            chosen = self.selection
            weights, points, score, depth = (
                each.values() for each in (chosen.weights, chosen.points, chosen.score, chosen.depth)
            )
            out = out._replace(selection=Selection(weights, points, score, depth, chosen.strength))
        return out


class ScoreFrame(msgspec.Struct, frozen=True, tag="score"):
    """The design of a calibrated score."""

    position: int
    scale: int
    points_centre: float
    points_scale: float
    centre: Array
    spread: Array
    limit: float
    knots: Array

    @classmethod
    def of(cls, design: ScoreDesign) -> ScoreFrame:
        """Return the frame of a design."""
        d = design
        return cls(
            d.position, d.scale, d.points_centre, d.points_scale,
            Array.of(d.centre), Array.of(d.spread), d.limit, Array.of(d.knots),
        )  # fmt: skip

    def design(self) -> ScoreDesign:
        """Return the design."""
        return ScoreDesign(
            self.position, self.scale, self.points_centre, self.points_scale,
            self.centre.values(), self.spread.values(), self.limit, self.knots.values(),
        )  # fmt: skip


class LogisticFrame(msgspec.Struct, frozen=True):
    """What never changes: the declared features, the design, and which coefficients each hypothesis has."""

    columns: list[FeatureColumn]
    design: FeaturesFrame | ScoreFrame
    active: Array


class LogisticNumbers(msgspec.Struct, frozen=True):
    """The belief: the number of labels, and weights, means and triangles of covariances of the hypotheses."""

    labels: int
    weights: Array
    means: Array
    covariances: Array


class LiveLogistic(StoredModel):
    """A logistic regression with declared features that can be stored, restored and hashed.

    Parameters
    ----------
    columns : sequence of FeatureColumn
        The features.
    belief : LogisticBelief
        What is known, such as ``belief_`` of a fitted :class:`~lenience.models.BayesianLogistic`. Its rows must be
        those that :class:`~lenience.models.RowEncoding` makes of the columns.

    Raises
    ------
    InputError
        If the columns do not make the rows that the belief is about.

    Examples
    --------
    >>> from lenience.models import BayesianLogistic, FeatureColumn, RowEncoding, restore
    >>> columns = [FeatureColumn("age"), FeatureColumn("region", "category", values=("north", "south"))]
    >>> past = [{"age": 30, "region": "north"}, {"age": 50, "region": "south"}, {"age": 60, "region": "south"}]
    >>> encoding = RowEncoding(columns)
    >>> fitted = BayesianLogistic().spare(encoding.spare).prepare(encoding.rows(past))
    >>> model = LiveLogistic(columns, fitted.belief_)
    >>> model.observe({"age": 40, "region": "south"}, True)
    >>> again = restore(model.state())
    >>> again.observe({"age": None, "region": "west"}, False)  # missing and unseen values are allowed
    >>> n, mean = again.belief({"age": 40, "region": "south"})
    >>> round(mean, 2)
    0.66
    """

    kind: ClassVar[str] = "logistic"

    def __init__(self, columns: Sequence[FeatureColumn], belief: LogisticBelief) -> None:
        self.encoding = RowEncoding(columns)
        self.knowledge = belief
        features = belief.design.inputs
        if features != self.encoding.width:
            raise InputError.because(
                f"make rows of {self.encoding.width} numbers, but the model was prepared with rows of {features}",
                "columns",
                value=self.encoding.width,
                code="length_mismatch",
                hint="Prepare the model with RowEncoding(columns).rows(...).",
            )
        # A coefficient that a hypothesis leaves out has no variance.
        self._active = np.diagonal(belief.covariances, axis1=1, axis2=2) != 0.0
        self._triangle = _triangles(self._active)
        # Rounding may have made a covariance asymmetric. Only one triangle is stored, so the other must be equal.
        of, row, column = self._triangle
        belief.covariances[of, column, row] = belief.covariances[self._triangle]

    @property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """The declared features."""
        return self.encoding.columns

    @property
    def labels(self) -> int:
        """The number of labels learnt."""
        return self.knowledge.labels

    def observe(self, applicant: Mapping[str, Any], outcome: bool) -> None:
        """Learn one label.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.
        outcome : bool
            Whether it was a success.

        Raises
        ------
        InputError
            If a value is invalid or the outcome is not 0 or 1.
        """
        self.observe_row(self.encoding.row(applicant), outcome)

    def observe_row(self, row: NDArray[np.float64], outcome: bool) -> None:
        """Learn the label of an encoded row.

        Parameters
        ----------
        row : ndarray
            The row that the encoding makes of the applicant.
        outcome : bool
            Whether it was a success.
        """
        self.knowledge.learn(row[None], np.array([checked_outcome(outcome)]), ONE)

    def belief(self, applicant: Mapping[str, Any]) -> ApplicantBelief:
        """Return the belief about an applicant.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.

        Returns
        -------
        ApplicantBelief
            Belief size and expected success probability.
        """
        n, mean = self.knowledge.beliefs(self.encoding.row(applicant)[None])
        return ApplicantBelief(float(n[0]), float(mean[0]))

    def numbers(self) -> bytes:
        """Return the belief as bytes.

        Returns
        -------
        bytes
            The numbers.
        """
        known = self.knowledge
        return pack(
            LogisticNumbers(
                known.labels,
                Array.of(known.weights),
                Array.of(known.means[self._active]),
                Array.of(known.covariances[self._triangle]),
            )
        )

    def _frame(self) -> bytes:
        design = _design_frame(self.knowledge.design)
        return pack(LogisticFrame(list(self.columns), design, Array.of(self._active.astype(np.int64))))

    @classmethod
    def _restore(cls, frame: bytes, numbers: bytes) -> Self:
        described, given = unpack(frame, LogisticFrame), unpack(numbers, LogisticNumbers)
        active = described.active.values().astype(np.bool_)
        hypotheses, size = active.shape
        means, covariances = np.zeros((hypotheses, size)), np.zeros((hypotheses, size, size))
        of, row, column = _triangles(active)
        try:
            means[active] = given.means.values()
            triangle = given.covariances.values()
            covariances[of, row, column] = triangle
            covariances[of, column, row] = triangle
        except ValueError as error:
            raise invalid_state(str(error)) from error
        belief = LogisticBelief(described.design.design(), given.weights.values(), means, covariances, given.labels)
        model = cls(described.columns, belief)
        model._active, model._triangle = active, (of, row, column)
        return model


def _design_frame(design: Design) -> FeaturesFrame | ScoreFrame:
    if isinstance(design, LogisticDesign):
        return FeaturesFrame.of(design)
    if isinstance(design, ScoreDesign):
        return ScoreFrame.of(design)
    raise InputError("belief", design, "a belief with a design that can be stored")


def _triangles(active: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions (hypothesis, row, column) of the lower triangles of the active covariances."""
    parts = []
    for k, own in enumerate(active):
        columns = np.flatnonzero(own)
        row, column = np.tril_indices(columns.size)
        parts.append((np.full(row.size, k), columns[row], columns[column]))
    of, rows, columns = (np.concatenate(each) for each in zip(*parts, strict=True))
    return of, rows, columns
