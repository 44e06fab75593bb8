"""ExposurePolicy: accept while fewer than m*(n, s) outcomes are pending (labels that come late).

The optimal policy of a :class:`~lenience.objectives.delayed.Delayed` problem looks at the belief and at the number
pending. Where p̂ ≥ c it accepts, however many are pending. Below, it accepts up to an *exposure limit*: the number of
acceptances that are worth having open at once. This is almost always the exact optimum. In a few states acceptance
resumes at a larger number pending (c = 0.7, one arrival and one label a year, a discount rate of 10%, 4 of 6
successes: accept, reject, accept, reject at 0, 1, 2, 3 pending). The policy's limit is the first rejection, and the
certificate counts the exceptions.

A solved policy is a table: for each belief size n on the prior's lattice, the limits of the states where they are
neither 0 nor infinite. No decision on the lattice needs a solver. Beyond the last row, the limit is that of one of the
last rows, equally far below the break-even (limits slowly become a function of c·n − s alone; this is not proved).
Each belief off the lattice needs its own solve.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.json_arrays import decode_array, encode_array
from lenience.core.lattice import AT_COST, is_near, near, size_distance, success_distance
from lenience.core.objective import ExposureObjective
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import whole
from lenience.policies.beliefs.exposure_certificate import ExposureCertificate
from lenience.policies.beliefs.exposure_decisions import ExposureDecisions


class ExposurePolicy(ExposureDecisions, frozen=True, eq=False, omit_defaults=True, tag="exposure", tag_field="type"):
    """The exposure limits of a :class:`~lenience.objectives.delayed.Delayed` problem.

    The ``solve`` method of the objective creates it.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance. The table holds the beliefs that can follow from it.
    first
        For each row, the number of new successes below which the limit is 0.
    offsets
        For each row, the position of its first limit in ``limits``.
    limits
        The limits that are neither 0 nor infinite, row after row.
    settled
        For each limit, 1 if it is proved.
    lower, upper
        Proved bounds of the value at the prior, by number pending.
    certificate
        What the solver proved.
    expire_after
        The age, in the problem's unit of time, at which an outcome expires and no longer counts as pending. It is three
        mean delays. The model's exponential delay would never need it, but in practice some labels never come and would
        block acceptance for good.
    open_rows
        Rows in which it is not proved that the limit is 0 below ``first``.

    Examples
    --------
    >>> from lenience import Delayed
    >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
    >>> policy.limit(Belief(10, 7)), policy.accepts(Belief(10, 7), pending=4), policy.accepts(Belief(10, 7), pending=5)
    (5, True, False)
    >>> policy.acceptance(10, [6, 7, 8], pending=1)
    array([0., 1., 1.])
    >>> policy.expire_after
    3.0
    """

    first: np.ndarray[Any, np.dtype[np.int64]]
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    limits: np.ndarray[Any, np.dtype[np.int64]]
    settled: np.ndarray[Any, np.dtype[np.int64]]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    certificate: ExposureCertificate
    expire_after: float
    open_rows: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """The number of belief sizes n in the table, starting with the prior's."""
        return self.certificate.rows

    def proved(self, belief: Belief) -> bool:
        """Return whether the limit at a belief is proved to be the least number pending at which rejecting is optimal.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True if the limit is proved; False for beliefs that are not in the table.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> policy.proved(Belief(10, 7)), policy.proved(Belief(10.5, 7))  # the second is not in the table
        (True, False)
        """
        k, j = self._place(belief)
        if not 0 <= k < self.rows or not 0 <= j <= k:
            return False
        at = self.offsets[k] + j - self.first[k]
        if j < self.first[k]:
            return k not in self.open_rows
        return bool(at >= self.offsets[k + 1] or self.settled[at])

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """Return the exposure limits at many beliefs at once.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.

        Returns
        -------
        ndarray of int
            The limits; the largest 64-bit integer where there is no limit.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> policy.exposure(10, [6, 7])
        array([1, 5])
        """
        sizes, good = np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64)
        rows = np.rint(sizes - self.prior.n)
        new = np.rint(good - self.prior.s)
        on_lattice = near(sizes, self.prior.n, size_distance(self.prior))
        on_lattice = on_lattice & near(good, self.prior.s, success_distance(self.prior))
        inside = on_lattice & (rows >= 0) & (new >= 0) & (new <= rows)
        row, shift = self._within(np.maximum(rows, 0).astype(np.int64))
        j = np.where(inside, new - shift, 0).astype(np.int64)
        unlimited = self.first[row] + self.offsets[row + 1] - self.offsets[row]
        at = np.clip(self.offsets[row] + j - self.first[row], 0, max(self.limits.size - 1, 0))
        tabulated = self.limits[at] if self.limits.size else np.zeros(at.shape, dtype=np.int64)
        # A rate that differs from the cost only by rounding counts as equal to it, e.g. 16 of 20 at a cost of 0.8.
        above = (j >= unlimited) | (good >= self.objective.cost * sizes * (1 - AT_COST))
        result = np.where(above, UNLIMITED, np.where(j < self.first[row], 0, tabulated))
        for position in np.argwhere(~inside):
            where = tuple(position)
            size, successes = np.broadcast_arrays(sizes, good)
            result[where] = self._decide(Belief(n=float(size[where]), s=float(successes[where])))
        return result

    def value(self, belief: Belief, pending: int = 0) -> Bounds:
        """Return the optimal value from a belief on, before the next arrival.

        Beliefs other than the prior need a solve.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.

        Returns
        -------
        Bounds
            Proved bounds of the value.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> print(policy.value(Belief(2, 1)))
        7.000202... ± ...
        """
        count = whole("pending", pending)
        if belief == self.prior and count < len(self.lower):
            return Bounds(self.lower[count], self.upper[count])
        return _enclose(self.objective, belief, count, self.certificate.tolerance)[0]

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which nobody is accepted, however many outcomes are pending.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The best such rate; −1 if none is known.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> policy.stop_floor(10), policy.limit(Belief(10, 5)), policy.limit(Belief(10, 6))
        (0.5, 0, 1)
        """
        k = round(n - self.prior.n)
        if k < 0 or not is_near(n, self.prior.n, size_distance(self.prior)):
            return -1.0
        row, shift = self._within(np.asarray(k))
        first = int(self.first[row]) + int(shift)
        return (self.prior.s + first - 1) / n if first > 0 else -1.0

    def to_json(self) -> str:
        """Return the policy as JSON text; :meth:`from_json` reads it without solving anything.

        Returns
        -------
        str
            JSON text.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1), rows=20)
        >>> ExposurePolicy.from_json(policy.to_json()).limit(Belief(10, 7))
        5
        """
        return msgspec.json.encode(self, enc_hook=encode_array).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> ExposurePolicy:
        """Read a policy that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The JSON text.

        Returns
        -------
        ExposurePolicy
            The policy.

        Raises
        ------
        InputError
            If the text is not the JSON of an exposure policy.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1), rows=20)
        >>> ExposurePolicy.from_json(policy.to_json()).limit(Belief(10, 7))
        5
        """
        try:
            fields = msgspec.json.decode(text)
            if isinstance(fields, dict) and "write_off_after" in fields:  # the name in older files and databases
                fields["expire_after"] = fields.pop("write_off_after")
            return msgspec.convert(fields, type=cls, dec_hook=decode_array)
        except msgspec.MsgspecError as error:
            raise InputError.because(
                f"is not the JSON of an exposure policy: {error}", "text", code="invalid_file"
            ) from error

    def __repr__(self) -> str:
        return f"ExposurePolicy({self.objective!r}, prior={self.prior!r}, rows={self.rows})"

    def _within(self, k: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the row of the table that stands for row k, and how many more new successes row k has there."""
        if not np.any(k >= self.rows):
            return k, np.zeros(k.shape, dtype=np.int64)
        # Beyond the table, use one of the last rows: the one where c·n lies most similarly between two states.
        last = np.arange(max(self.rows - 64, 0), self.rows)
        cost = self.objective.cost
        apart = np.abs((cost * (k[..., np.newaxis] - last) + 0.5) % 1 - 0.5)
        row = np.where(k >= self.rows, last[np.argmin(apart, axis=-1)], k)
        return row, np.rint(cost * (k - row)).astype(np.int64)

    def _place(self, belief: Belief) -> tuple[int, int]:
        """Return the row and the new successes of a belief on the lattice, or (−1, −1)."""
        k, j = round(belief.n - self.prior.n), round(belief.s - self.prior.s)
        on_row = is_near(belief.n, self.prior.n, size_distance(self.prior))
        return (k, j) if on_row and is_near(belief.s, self.prior.s, success_distance(self.prior)) else (-1, -1)

    def _decide(self, belief: Belief) -> int:
        """Return the limit at a belief that is not on the lattice."""
        limit = _enclose(self.objective, belief, 0, self.certificate.tolerance)[1]
        return UNLIMITED if limit is None else limit


@lru_cache(maxsize=4096)
def _enclose(objective: ExposureObjective, belief: Belief, pending: int, tolerance: float) -> tuple[Bounds, int | None]:
    """Return bounds of the value and the limit, cached."""
    return objective.enclose(belief, pending, tolerance)
