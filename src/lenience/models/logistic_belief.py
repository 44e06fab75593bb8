"""A Gaussian belief about the coefficients of a logistic regression, under several hypotheses, with its design.

It is what a logistic model knows: the scales of its columns, and weights, means and covariances. Everything that learns
or predicts with it is here, without scikit-learn, so that a model of the library and one that is restored from stored
bytes run the same code.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lenience.models.batch_learning import learn_labels
from lenience.models.hypotheses import learn_row, liken_rows, predict_rows, project_rows, relabel_row

Rows = NDArray[np.float64]


class Design(Protocol):
    """What turns rows of numbers into rows of the design."""

    @property
    def inputs(self) -> int:
        """The number of columns of the rows that it takes."""

    @property
    def width(self) -> int:
        """The number of columns of the design."""

    def sources(self) -> list[int]:
        """Return the input column that each column comes from; negative for those without one."""

    def rows(self, X: Rows) -> Rows:
        """Return the design of rows."""


class LabelChange(NamedTuple):
    """How one label at x moved each hypothesis: μ ← μ + u · shift and Σ ← Σ − uuᵀ · shrink, with u = Σx before it.

    Parameters
    ----------
    shift, shrink
        One number per hypothesis.
    U
        u of each hypothesis, one line each.
    """

    shift: Rows
    shrink: Rows
    U: Rows


class LogisticBelief:
    """Weights of the hypotheses, and mean and covariance of the coefficients under each.

    Parameters
    ----------
    design
        From rows of numbers to rows of the design.
    weights
        The weight of each hypothesis; they add up to 1.
    means, covariances
        The Gaussian of each hypothesis. Learning overwrites them.
    labels
        The number of labels learnt.

    Examples
    --------
    >>> from lenience.models.logistic_design import LogisticDesign
    >>> design = LogisticDesign(np.zeros(1), np.ones(1))
    >>> belief = LogisticBelief(design, np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> belief.learn(np.array([[1.0]]), np.ones(1), np.ones(1))
    >>> n, mean = belief.beliefs(np.array([[1.0]]))
    >>> mean.round(2), belief.labels
    (array([0.64]), 1)
    """

    def __init__(self, design: Design, weights: Rows, means: Rows, covariances: Rows, labels: int = 0) -> None:
        self.design = design
        self.weights = weights
        self.means = means
        self.covariances = covariances
        self.labels = labels

    def learn(self, X: Rows, y: Rows, label_weights: Rows) -> None:
        """Learn labels: one by a rank-one update, several at once so that their order does not matter."""
        learn_labels(self.design.rows(X), y, label_weights, self.weights, self.means, self.covariances)
        self.labels += len(y)

    def learn_one(self, row: Rows, outcome: float) -> LabelChange:
        """Learn one label and return how the belief moved, so that the log-odds of other rows can follow."""
        shift, shrink = np.empty((2, len(self.weights)))
        change = LabelChange(shift, shrink, np.empty(self.means.shape))
        learn_row(self.design.rows(row[None])[0], outcome, self.weights, self.means, self.covariances, *change)
        self.labels += 1
        return change

    def relabel_one(self, row: Rows, outcome: float) -> LabelChange:
        """Turn a label that was learnt into its opposite, ``outcome``, and return how the belief moved.

        This multiplies the likelihood by e^η or e^{−η}, with η the log-odds at the row. So the mean of each Gaussian
        moves by Σx, its covariance stays, and its weight changes by the mass e^{±m + v/2} of the product.

        Examples
        --------
        >>> from lenience.models.logistic_design import LogisticDesign
        >>> design, x = LogisticDesign(np.zeros(1), np.ones(1)), np.array([1.0])
        >>> wrong = LogisticBelief(design, np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
        >>> wrong.learn(x[None], np.zeros(1), np.ones(1))
        >>> change = wrong.relabel_one(x, 1.0)
        >>> wrong.beliefs(x[None])[1].round(2)  # as if the label had been right at once
        array([0.64])
        """
        sign = 1.0 if outcome > 0.0 else -1.0
        several = len(self.weights)
        change = LabelChange(np.full(several, sign), np.zeros(several), np.empty(self.means.shape))
        relabel_row(self.design.rows(row[None])[0], sign, self.weights, self.means, self.covariances, change.U)
        return change

    def log_odds(self, X: Rows) -> tuple[Rows, Rows]:
        """Return the mean and the variance of the log-odds at each row, one column per hypothesis."""
        m, v = np.empty((2, len(X), len(self.weights)))
        project_rows(self.design.rows(X), self.means, self.covariances, m, v)
        return m, v

    def beliefs(self, X: Rows) -> tuple[Rows, Rows]:
        """Return n and p̂ at each row."""
        mean, n = np.empty((2, len(X)))
        predict_rows(self.design.rows(X), self.weights, self.means, self.covariances, mean, n)
        return n, mean

    def likeness(self, X: Rows, R: Rows) -> Rows:
        """Return ρ² between each row of X and each row of R."""
        likeness = np.empty((len(X), len(R)))
        design = self.design
        liken_rows(design.rows(X), design.rows(R), self.weights, self.means, self.covariances, likeness)
        return likeness
