"""EstimatedExposurePolicy: exposure limits of problems that are too large to prove anything in the time allowed.

The limits come from :mod:`lenience.solvers.delayed.blocks`: a table over belief sizes that grow geometrically and over
success rates below the break-even. A limit between the nodes is interpolated, at equal distances (p̂ − c)√n from the
break-even, so every belief from the prior's size on has a limit without a further solve.

Proved is only that p̂ ≥ c accepts, whatever the number pending. The value has a stated error, which the tests compare
with certified solves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.json_arrays import decode_array, encode_array
from lenience.core.lattice import AT_COST
from lenience.core.money import UNITS, Money
from lenience.core.objective import ExposureObjective
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import whole
from lenience.policies.beliefs.exposure_decisions import ExposureDecisions
from lenience.solvers.delayed.blocks import solve_blocks

SAME = 1e-9  # relative; a belief whose size differs from the prior's by less has the same size
RATIO = 1.02  # The table keeps a belief size if it is at least this many times the one before, or one label more.
MOST_RATES = 300  # below the cost that the table keeps


class EstimateCertificate(msgspec.Struct, frozen=True):
    """What is stated about an estimate, and not proved.

    Parameters
    ----------
    estimate
        The estimated value at the prior, before the first arrival and with nothing pending.
    error
        The stated error of the estimate: twice the distance of a fine and a coarse solve, plus 0.01% of the value and
        up to 0.01% of the discounted number of arrivals times the standard deviation of the success rate.

    Examples
    --------
    >>> from lenience import Delayed
    >>> late = Delayed(cost=0.8, arrivals=100_000, discount_rate=0.1, label_delay=1)
    >>> certificate = late.solve(Belief(2, 1)).certificate
    >>> round(certificate.estimate, -1), certificate.error < 10, certificate.proved
    (19880.0, True, False)
    """

    estimate: float
    error: float

    @property
    def value(self) -> Bounds:
        """The estimate less and plus its stated error."""
        return Bounds(max(self.estimate - self.error, 0.0), self.estimate + self.error)

    @property
    def proved(self) -> bool:
        """False: nothing is proved about an estimate."""
        return False

    @property
    def statement(self) -> str:
        """The certificate in words.

        Examples
        --------
        >>> print(EstimateCertificate(100.0, 0.05).statement)
        The optimal value at the prior is estimated at 100 ± 0.05, and so are the limits. The problem is too large to
        prove them in the time allowed.
        """
        return self.describe()

    def describe(self, money: Money = UNITS) -> str:
        """Return the certificate in words, with values in money where it is known.

        Parameters
        ----------
        money : Money, optional
            How to show values; by default in units of gain + loss.

        Returns
        -------
        str
            Two sentences.

        Examples
        --------
        >>> print(EstimateCertificate(100.0, 0.05).describe(Money(1000, "$")))
        The optimal value at the prior is estimated at $100,000 ± $50, and so are the limits. ...
        """
        value = f"{self.estimate:.6g} ± {self.error:.1g}"
        if money.known:
            value = f"{money.format(self.estimate)} ± {money.format(self.error)}"
        return (
            f"The optimal value at the prior is estimated at {value}, and so are the limits. The problem is too large "
            "to prove them in the time allowed."
        )


class EstimatedExposurePolicy(
    ExposureDecisions, frozen=True, eq=False, omit_defaults=True, tag="estimated_exposure", tag_field="type"
):
    """Estimated exposure limits of a :class:`~lenience.objectives.delayed.Delayed` problem of any size.

    The ``solve`` method of the objective creates it where proving takes longer than allowed.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance.
    sizes
        The belief sizes n of the table.
    lowest, steps
        For each size, the lowest success rate of the table and the step to the next.
    limits
        For each size and rate below the cost, the number pending from which on rejecting is better, not rounded.
    pending, values
        Values at the prior by number pending.
    certificate
        The estimate of the value and its stated error.
    expire_after
        The age, in the problem's unit of time, at which an outcome expires and no longer counts as pending.

    Examples
    --------
    >>> from lenience import Delayed
    >>> policy = Delayed(cost=0.8, arrivals=100_000, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
    >>> policy.limit(Belief(2, 1)), policy.limit(Belief(1000, 790)), policy.limit(Belief(1000, 810))
    (99, 2516, None)
    """

    sizes: np.ndarray[Any, np.dtype[np.float64]]
    lowest: np.ndarray[Any, np.dtype[np.float64]]
    steps: np.ndarray[Any, np.dtype[np.float64]]
    limits: np.ndarray[Any, np.dtype[np.float64]]
    pending: np.ndarray[Any, np.dtype[np.float64]]
    values: np.ndarray[Any, np.dtype[np.float64]]
    certificate: EstimateCertificate
    expire_after: float

    @classmethod
    def solve(cls, objective: ExposureObjective, prior: Belief) -> EstimatedExposurePolicy:
        """Estimate the limits of an objective from a prior on.

        Parameters
        ----------
        objective : ExposureObjective
            The objective, with one break-even.
        prior : Belief
            What is known of the success probability at the start.

        Returns
        -------
        EstimatedExposurePolicy
            The policy.

        Examples
        --------
        >>> from lenience import Delayed
        >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
        >>> EstimatedExposurePolicy.solve(late, Belief(2, 1)).limit(Belief(10, 7))
        5
        """
        cost, arrivals, rate = objective.cost, objective.arrivals, objective.discount_rate
        assert arrivals is not None
        assert rate is not None
        solution = solve_blocks(prior.n, prior.s, cost, arrivals, rate, 1.0 / objective.label_delay)
        rows = [0]
        for k in range(1, solution.sizes.size - 1):  # The last row is where the recursion starts, without limits.
            last = solution.sizes[rows[-1]]
            if solution.sizes[k] >= RATIO * last or solution.sizes[k] <= last + 1.0:
                rows.append(k)
        # Keep every second or third rate, counted from the last one below the cost, where limits change most.
        last = np.ceil((cost - solution.lowest[rows]) / solution.steps[rows] - 1e-9).astype(np.int64) - 1
        every = math.ceil((int(last.max()) + 1) / MOST_RATES)
        start = np.maximum(last, 0) % every
        columns = start[:, None] + every * np.arange(int(last.max()) // every + 2)
        limits = np.take_along_axis(solution.limits[rows], np.minimum(columns, solution.limits.shape[1] - 1), axis=1)
        return cls(
            objective=objective,
            prior=prior,
            sizes=solution.sizes[rows],
            lowest=solution.lowest[rows] + start * solution.steps[rows],
            steps=every * solution.steps[rows],
            limits=np.where(np.isfinite(limits), limits, -1.0).astype(np.float32).astype(np.float64),
            pending=solution.pending,
            values=solution.values,
            certificate=EstimateCertificate(solution.value, solution.error),
            expire_after=objective.expire_after or 0.0,
        )

    @property
    def rows(self) -> int:
        """The number of belief sizes in the table."""
        return int(self.sizes.size)

    def proved(self, belief: Belief) -> bool:
        """Return whether the limit at a belief is proved: only where there is none.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True if the success rate is at the break-even or above it.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = EstimatedExposurePolicy.solve(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))
        >>> policy.proved(Belief(10, 7)), policy.proved(Belief(10, 9))
        (False, True)
        """
        return self.limit(belief) is None

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
        >>> policy = EstimatedExposurePolicy.solve(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))
        >>> policy.exposure(10, [6, 7])
        array([1, 5])
        """
        sizes, good = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
        cost = self.objective.cost
        row = np.clip(np.searchsorted(self.sizes, sizes, side="right") - 1, 0, self.rows - 2)
        between = np.log(np.maximum(sizes, self.sizes[0]) / self.sizes[row])
        between = np.clip(between / np.log(self.sizes[row + 1] / self.sizes[row]), 0.0, 1.0)
        distance = (good / sizes - cost) * np.sqrt(sizes)
        logarithm = (1.0 - between) * self._logarithm(row, distance) + between * self._logarithm(row + 1, distance)
        limits = np.floor(np.expm1(logarithm) + 0.5)
        # A rate that differs from the cost only by rounding counts as equal to it, as in every policy.
        above = good >= cost * sizes * (1 - AT_COST)
        result = np.where(above, UNLIMITED, np.where(above, 0.0, limits).astype(np.int64))
        for position in np.argwhere(sizes < self.prior.n * (1.0 - SAME)):
            where = tuple(position)
            result[where] = _solved(self.objective, Belief(float(sizes[where]), float(good[where]))).exposure(
                sizes[where], good[where]
            )
        return result

    def value(self, belief: Belief, pending: int = 0) -> Bounds:
        """Return the estimated value from a belief on, before the next arrival, less and plus its stated error.

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
            The estimate less and plus its stated error. It is not proved.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = EstimatedExposurePolicy.solve(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))
        >>> 7.0002 in policy.value(Belief(2, 1))
        True
        """
        count = whole("pending", pending)
        own = self if belief == self.prior else _solved(self.objective, belief)
        estimate = float(np.interp(count, own.pending, own.values))
        start, error = own.certificate.estimate, own.certificate.error
        if start > 0.0:  # With more pending the value is larger, and so is its error.
            error *= max(estimate / start, 1.0)
        return Bounds(max(estimate - error, 0.0), estimate + error)

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which nobody is accepted, however many outcomes are pending.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The best such rate of the table; −1 if there is none.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = EstimatedExposurePolicy.solve(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))
        >>> 0.5 < policy.stop_floor(10) < 0.6
        True
        """
        rates = np.linspace(0.0, self.objective.cost, 400, endpoint=False)
        accepting = np.flatnonzero(self.exposure(n, rates * n) > 0)
        first = int(accepting[0]) if accepting.size else rates.size
        return float(rates[first - 1]) if first > 0 else -1.0

    def to_json(self) -> str:
        """Return the policy as JSON text; :meth:`from_json` reads it without solving anything.

        Returns
        -------
        str
            JSON text.
        """
        return msgspec.json.encode(self, enc_hook=encode_array).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> EstimatedExposurePolicy:
        """Read a policy that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The JSON text.

        Returns
        -------
        EstimatedExposurePolicy
            The policy.

        Raises
        ------
        InputError
            If the text is not the JSON of such a policy.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = EstimatedExposurePolicy.solve(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))
        >>> EstimatedExposurePolicy.from_json(policy.to_json()).limit(Belief(10, 7))
        5
        """
        try:
            return msgspec.json.decode(text, type=cls, dec_hook=decode_array)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError.because(
                f"is not the JSON of estimated exposure limits: {error}", "text", code="invalid_file"
            ) from error

    def __repr__(self) -> str:
        return f"EstimatedExposurePolicy({self.objective!r}, prior={self.prior!r})"

    def _logarithm(self, row: NDArray[np.int64], distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithm of 1 + the limit in a row of the table, at a distance (p̂ − c)√n below the cost."""
        cost = self.objective.cost
        rate = cost + distance / np.sqrt(self.sizes[row])
        position = (rate - self.lowest[row]) / self.steps[row]
        # The last rate below the cost: from there on the logarithm goes on as between the last two rates.
        last = np.ceil((cost - self.lowest[row]) / self.steps[row] - 1e-9).astype(np.int64) - 1
        left = np.clip(np.floor(position).astype(np.int64), 0, np.maximum(last - 1, 0))
        right = np.minimum(left + 1, np.maximum(last, 0))
        low, high = (
            np.log1p(np.maximum(self.limits[row, left], 0.0)),
            np.log1p(np.maximum(self.limits[row, right], 0.0)),
        )
        inside = low + np.clip(position - left, 0.0, 2.0) * (high - low)
        return np.asarray(np.where((position <= 0.0) | (last < 0), 0.0, inside))


@lru_cache(maxsize=256)
def _solved(objective: ExposureObjective, belief: Belief) -> EstimatedExposurePolicy:
    """Return the policy of a belief, cached."""
    return EstimatedExposurePolicy.solve(objective, belief)
