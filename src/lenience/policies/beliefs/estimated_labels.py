"""EstimatedLabels: a table of what one more outcome is worth, estimated for any number of outcomes and of open cases.

The table comes from :mod:`lenience.solvers.offers.delayed_blocks`. Its belief sizes grow geometrically, up to a million
outcomes and more. Between them, and between success rates and numbers pending, it is interpolated linearly. It is
stored in single precision, so that a service decides and audits from the same bytes.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers

if TYPE_CHECKING:
    from lenience.solvers.offers.delayed_blocks import OfferBlocks

LABEL_ERROR = 0.1  # of a label, relative to itself, beside the difference of its neighbours
NEGLIGIBLE_LABEL = 1e-3  # of the mean amount
SLIGHT = 1e-9  # weight of a neighbour that is left out


class EstimatedLabels(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Estimates of what one more outcome is worth, by successes, failures and the number pending.

    Parameters
    ----------
    prior
        The belief before the first outcome, as a mixture.
    pace
        The belief size of the first row.
    after
        The number of outcomes of each row: base64 of doubles.
    pending
        The numbers pending of the table: base64 of doubles.
    nodes
        For each row, the places at which labels are stored: base64 of doubles. A place is (a + successes)/(a + b +
        outcomes), where a and b are the least successes and failures of the prior's beliefs.
    labels
        The worth of a label by row, place and number pending: base64 of single-precision numbers.
    negligible
        The stated error of labels that are worth next to nothing.

    Examples
    --------
    >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
    >>> labels, _ = EstimatedLabels.solve(Belief(2, 1), offers, 5_000.0, 1.0, 0.1)
    >>> labels.worth(0, 0, pending=0) > labels.worth(0, 0, pending=1000) > 0
    True
    """

    prior: MixtureBelief
    pace: float
    after: str
    pending: str
    nodes: str
    labels: str
    negligible: float

    @classmethod
    def solve(
        cls,
        prior: Belief | MixtureBelief,
        offers: Offers,
        arrivals: float,
        label_delay: float,
        discount_rate: float,
        charges: Sequence[float] = (),
        first: float = 0.0,
    ) -> tuple[EstimatedLabels, OfferBlocks]:
        """Estimate the table of a problem; return it with the solver's own result.

        Parameters
        ----------
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        offers : Offers
            What arrivals bring.
        arrivals : float
            Individuals that arrive per unit of time.
        label_delay : float
            The mean time from an acceptance to its outcome.
        discount_rate : float
            The discount rate per unit of time.
        charges : sequence of float
            What accepting each offer costs beside its expected loss.
        first : float
            The number of outcomes with which the table begins. From more than 0 on it is a rough one, which is fast.

        Returns
        -------
        tuple of EstimatedLabels and OfferBlocks
            The table, and the estimates of the solver.

        Examples
        --------
        >>> labels, blocks = EstimatedLabels.solve(Belief(2, 1), Offers([1], [0.8]), 50.0, 1.0, 0.1)
        >>> round(blocks.value, 2)
        7.0
        """
        from lenience.solvers.offers.delayed_blocks import solve_offer_blocks

        blocks = solve_offer_blocks(prior, offers, arrivals, label_delay, discount_rate, charges, first)
        table = cls(
            prior=MixtureBelief.of(prior),
            pace=blocks.pace,
            after=_text(blocks.after, "<f8"),
            pending=_text(blocks.pending, "<f8"),
            nodes=_text(blocks.nodes, "<f8"),
            labels=_text(blocks.labels, "<f4"),
            negligible=NEGLIGIBLE_LABEL * offers.mean_amount,
        )
        return table, blocks

    def worth(self, successes: float, failures: float, pending: float = 0) -> float:
        """Return what one more outcome is worth.

        Parameters
        ----------
        successes, failures : float
            The outcomes since the prior.
        pending : float
            The number of accepted individuals without an outcome.

        Returns
        -------
        float
            Money; 0 for more pending than the table follows.

        Examples
        --------
        >>> labels, _ = EstimatedLabels.solve(Belief(2, 1), Offers([1], [0.8]), 50.0, 1.0, 0.1)
        >>> labels.worth(0, 0) > 0.3
        True
        """
        return self._worth(self._corners(successes, failures), pending)

    def _worth(self, corners: list[tuple[float, int, int]], pending: float) -> float:
        """Interpolate between the numbers pending, as numpy.interp does, but only at the two that are needed."""
        counts = self._count_list
        if pending > counts[-1]:
            return 0.0
        left = max(bisect_right(counts, pending) - 1, 0)
        below = self._total(corners, left)
        if left == len(counts) - 1 or pending <= counts[left]:
            return below
        above = self._total(corners, left + 1)
        return (above - below) / (counts[left + 1] - counts[left]) * (pending - counts[left]) + below

    def _total(self, corners: list[tuple[float, int, int]], place: int) -> float:
        """Return what one more outcome is worth at a stored number pending."""
        total = 0.0
        for weight, row, node in corners:
            total += float(np.float32(weight) * self._labels[row, node, place])
        return total

    def worths(self, successes: float, failures: float) -> NDArray[np.float64]:
        """Return what one more outcome is worth, for each number pending in :attr:`counts`.

        Parameters
        ----------
        successes, failures : float
            The outcomes since the prior.

        Returns
        -------
        ndarray of float
            Money.

        Examples
        --------
        >>> labels, _ = EstimatedLabels.solve(Belief(2, 1), Offers([1], [0.8]), 50.0, 1.0, 0.1)
        >>> labels.worths(10, 0).shape == labels.counts.shape
        True
        """
        total = np.zeros(self.counts.size)
        for weight, row, node in self._corners(successes, failures):
            total += weight * self._labels[row, node]
        return total

    def bounds(self, successes: float, failures: float, pending: float = 0) -> Bounds:
        """Return what one more outcome is worth, less and plus its stated error.

        The worth is not smooth, because decisions are discrete. So the error covers the stored labels around, and a
        share of the label.

        Parameters
        ----------
        successes, failures : float
            The outcomes since the prior.
        pending : float
            The number of accepted individuals without an outcome.

        Returns
        -------
        Bounds
            Money. It is not proved.

        Examples
        --------
        >>> labels, _ = EstimatedLabels.solve(Belief(2, 1), Offers([1], [0.8]), 50.0, 1.0, 0.1)
        >>> labels.worth(3, 1) in labels.bounds(3, 1)
        True
        """
        return self.worth_and_bounds(successes, failures, pending)[1]

    def worth_and_bounds(self, successes: float, failures: float, pending: float = 0) -> tuple[float, Bounds]:
        """Return :meth:`worth` and :meth:`bounds` together, which takes half the time.

        Parameters
        ----------
        successes, failures : float
            The outcomes since the prior.
        pending : float
            The number of accepted individuals without an outcome.

        Returns
        -------
        tuple of float and Bounds
            Money.

        Examples
        --------
        >>> labels, _ = EstimatedLabels.solve(Belief(2, 1), Offers([1], [0.8]), 50.0, 1.0, 0.1)
        >>> labels.worth_and_bounds(3, 1) == (labels.worth(3, 1), labels.bounds(3, 1))
        True
        """
        counts, corners = self._count_list, self._corners(successes, failures)
        right = min(bisect_left(counts, pending), len(counts) - 1)
        left = right if counts[right] == pending else max(right - 1, 0)
        around = [float(self._labels[row, node, place]) for _, row, node in corners for place in range(left, right + 1)]
        worth = self._worth(corners, pending)
        return worth, Bounds(
            max(min(min(around, default=0.0), worth) * (1.0 - LABEL_ERROR) - self.negligible, 0.0),
            max(max(around, default=0.0), worth) * (1.0 + LABEL_ERROR) + self.negligible,
        )

    def first_rejection(self, successes: float, failures: float, profit: float) -> int:
        """Return the fewest pending outcomes at which an expected loss is not worth taking.

        Parameters
        ----------
        successes, failures : float
            The outcomes since the prior.
        profit : float
            The expected profit of an offer, below 0.

        Returns
        -------
        int
            The number of outcomes.

        Examples
        --------
        >>> labels, _ = EstimatedLabels.solve(Belief(2, 1), Offers([1], [0.8]), 50.0, 1.0, 0.1)
        >>> labels.first_rejection(0, 0, -0.3)
        2
        """
        worths = self.worths(successes, failures)
        rejected = np.flatnonzero(profit + worths <= 0.0)
        if rejected.size == 0:
            return int(self.counts[-1]) + 1
        first = int(rejected[0])
        if first == 0:
            return 0
        left, right = self.counts[first - 1], self.counts[first]
        # Exact on the line between the two: the first whole number from which on the worth is at most the loss.
        above, below = float(worths[first - 1]), float(worths[first])
        place = left + (right - left) * (above + profit) / (above - below)
        return int(min(np.ceil(place), right))

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """The numbers pending of the table."""
        return _array(self.pending, "<f8")

    @cached_property
    def _rows(self) -> NDArray[np.float64]:
        return _array(self.after, "<f8")

    @cached_property
    def _nodes(self) -> NDArray[np.float64]:
        return _array(self.nodes, "<f8").reshape(self._rows.size, -1)

    # Lists of Python's numbers: a look-up of one state is several times as fast as with arrays, and equal in each bit.
    @cached_property
    def _count_list(self) -> list[float]:
        numbers: list[float] = self.counts.tolist()
        return numbers

    @cached_property
    def _row_list(self) -> list[float]:
        numbers: list[float] = self._rows.tolist()
        return numbers

    @cached_property
    def _node_lists(self) -> list[list[float]]:
        numbers: list[list[float]] = self._nodes.tolist()
        return numbers

    @cached_property
    def _labels(self) -> NDArray[np.float32]:
        numbers = np.frombuffer(b64decode(self.labels), dtype="<f4")
        return numbers.reshape(*self._nodes.shape, self.counts.size)

    @cached_property
    def _least(self) -> tuple[float, float]:
        beliefs = self.prior.beliefs
        return min(one.s for one in beliefs), min(one.n - one.s for one in beliefs)

    def _corners(self, successes: float, failures: float) -> list[tuple[float, int, int]]:
        """Return the stored places around a state: their weights, rows and nodes. Beside the nodes there are none."""
        a, b = self._least
        outcomes = successes + failures
        place = (a + successes) / (a + b + outcomes) if a + b > 0.0 else 0.0
        rows, lines = self._row_list, self._node_lists
        row = min(max(bisect_right(rows, outcomes) - 1, 0), max(len(rows) - 2, 0))
        share = 0.0
        if len(rows) > 1:
            first, second = math.log(self.pace + rows[row]), math.log(self.pace + rows[row + 1])
            share = min(max((math.log(self.pace + outcomes) - first) / (second - first), 0.0), 1.0)
        corners = []
        for weight, line in ((1.0 - share, row), (share, row + 1)):
            if weight > SLIGHT and lines[line][0] <= place <= lines[line][-1]:
                nodes = lines[line]
                left = min(bisect_right(nodes, place) - 1, len(nodes) - 2)
                part = (place - nodes[left]) / (nodes[left + 1] - nodes[left])
                corners += [
                    (weight * one, line, left + step) for step, one in enumerate((1.0 - part, part)) if one > SLIGHT
                ]
        return corners


def _text(numbers: NDArray[np.float64], kind: str) -> str:
    return b64encode(numbers.astype(kind).tobytes()).decode()


def _array(text: str, kind: str) -> NDArray[np.float64]:
    return np.frombuffer(b64decode(text), dtype=kind).astype(np.float64)
