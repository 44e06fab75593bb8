"""OptimalPolicy: accept until the belief falls to its threshold, then stop for good (Theorem 1).

A solved policy is a small table: for each belief size n on the prior's lattice, the least number of successes that is
accepted. Each belief off the lattice, or beyond the table, needs its own solve.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import InputError
from lenience.core.formatting import describe_stopping
from lenience.core.json_arrays import decode_array, encode_array
from lenience.core.lattice import is_near, near, size_distance, success_distance
from lenience.core.money import UNITS, Money
from lenience.core.objective import StoppingObjective
from lenience.core.validation import check_tolerance, real

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_ROWS = 1 << 22  # beyond this size each belief gets its own solve
# Seconds. An explanation leaves out the threshold where one solve takes longer, because a threshold takes many solves.
LONG = 1.0


class OptimalPolicy(msgspec.Struct, frozen=True, eq=False, tag="optimal", tag_field="type"):
    """The optimal policy of a :class:`~lenience.Discounted` or :class:`~lenience.FiniteHorizon` problem.

    The ``solve`` method of the objective creates it.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance. The table holds the beliefs that can follow from it.
    accept_from
        For each number k of new observations, the least number of new successes that is accepted.
    certificate
        What the solver proved.

    Examples
    --------
    >>> from lenience import Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> policy.accepts(Belief(10, 7)), policy.accepts(Belief(10, 6))
    (True, False)
    >>> print(policy.threshold(10))
    0.65437640... ± ...
    >>> policy.acceptance([10, 10, 100], [6, 7, 78])
    array([0., 1., 1.])
    >>> policy
    OptimalPolicy(Discounted(cost=0.8, discount=0.99), prior=Belief(n=2.0, s=1.0), rows=1000)
    """

    monotone: ClassVar[bool] = True
    two_valued: ClassVar[bool] = True

    objective: StoppingObjective
    prior: Belief
    accept_from: np.ndarray[Any, np.dtype[np.int64]]  # by row k: the least accepted number of new successes
    certificate: Certificate

    @property
    def rows(self) -> int:
        """The number of belief sizes n in the table, starting with the prior's."""
        return self.certificate.rows

    def least_accepted(self, n: float) -> float | None:
        """Return the least s that is accepted at a belief size of the table.

        Parameters
        ----------
        n : float
            The belief size: the prior's n plus a whole number below ``rows``.

        Returns
        -------
        float or None
            The least number of successes, including the prior's; None if nobody is accepted at this n.

        Raises
        ------
        InputError
            If n is not in the table.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).least_accepted(10)
        7.0
        """
        k = self._row(n)
        if not 0 <= k < self.rows:
            raise InputError("n", n, f"prior.n + a whole number from 0 to {self.rows - 1}")
        least = int(self.accept_from[k])
        return None if least > k else self.prior.s + least

    def boundary(self, n: float, s: float, rows: int) -> NDArray[np.int64] | None:
        """Return the least accepted number of successes after a belief of the lattice, row by row.

        Parameters
        ----------
        n : float
            Number of observations of the belief.
        s : float
            Number of successes of the belief.
        rows : int
            The number of rows to return.

        Returns
        -------
        ndarray of int or None
            For 0, 1, … further observations, the least number of further successes that is accepted. None if the belief
            is off the lattice, or if a table with this many rows would take long to compute.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> policy.boundary(4, 2, 3), policy.boundary(4.5, 2, 3)
        (array([1, 1, 2]), None)
        """
        k, new = self._row(n), round(s - self.prior.s)
        on_lattice = is_near(s, self.prior.s, success_distance(self.prior))
        if not on_lattice or not 0 <= new <= k or k + rows > self._last_row():
            return None
        return self._table(k + rows)[k : k + rows] - new

    def accepts(self, belief: Belief) -> bool:
        """Return whether the next individual is accepted.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True to accept.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).accepts(Belief(10, 7))
        True
        """
        check_prior(belief, "belief")
        return bool(self.acceptance(belief.n, belief.s)[()])

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of accepting the next individual at many beliefs at once.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes; it broadcasts with n.

        Returns
        -------
        ndarray of float
            0 or 1 for each belief.

        Raises
        ------
        InputError
            If a number is not finite.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).acceptance(10, [6, 7, 8])
        array([0., 1., 1.])
        """
        if not (np.all(np.isfinite(n)) and np.all(np.isfinite(s))):
            raise InputError(("n", "s"), allowed="finite numbers")
        if np.ndim(n) == 0:
            row = self._row(float(n))  # type: ignore[arg-type]
            if 0 <= row < self._last_row():
                return self._row_acceptance(row, np.asarray(s, dtype=np.float64))
        sizes, successes = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64))
        rows = np.rint(sizes - self.prior.n)
        new = np.rint(successes - self.prior.s)
        on_lattice = near(sizes, self.prior.n, size_distance(self.prior))
        on_lattice &= near(successes, self.prior.s, success_distance(self.prior))
        inside = on_lattice & (rows >= 0) & (rows < self._last_row()) & (new >= 0) & (new <= rows)
        k = np.where(inside, rows, 0).astype(np.int64)
        table = self._table(int(k.max(initial=0)) + 1)
        result = np.where(inside, (new >= table[k]).astype(np.float64), 0.0)
        for position in np.argwhere(~inside):
            at = tuple(position)
            result[at] = self._decide(Belief(n=float(sizes[at]), s=float(successes[at])))
        return result

    def value(self, belief: Belief) -> Bounds:
        """Return V, what the optimal policy earns from a belief on.

        This takes one solve per belief, to the policy's tolerance. This policy earns as much, less at most the
        certificate's ``width`` at each undecided state.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        Bounds
            Proved bounds of the value; 0 where the horizon is over.

        Examples
        --------
        >>> from lenience import Discounted
        >>> print(Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).value(Belief(10, 7)))
        0.562832166... ± ...
        """
        check_prior(belief, "belief")
        left = self._left(belief.n)
        return _enclose(left, belief, self.certificate.tolerance)[0] if left else Bounds(0.0, 0.0)

    def continuation(self, belief: Belief) -> Bounds:
        """Return Ṽ, what accepting the next individual earns, with the optimal policy afterwards.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        Bounds
            Proved bounds; negative where rejecting is optimal.

        Raises
        ------
        InputError
            If the horizon is over at this belief.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).continuation(Belief(10, 6)).upper < 0
        True
        """
        check_prior(belief, "belief")
        left = self._left(belief.n)
        if left is None:
            raise InputError("n", belief.n, f"below {self.prior.n + self._horizon():g}, where the horizon ends")
        return _enclose(left, belief, self.certificate.tolerance)[1]

    def label_value(self, belief: Belief) -> Bounds:
        """Return what one more outcome is worth for later decisions: γ(M − V), where M is the mean of V after it.

        Accepting is optimal exactly if p̂ − c and the value of the label are above 0 together.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        Bounds
            Proved bounds, in units of reward.

        Raises
        ------
        InputError
            If the problem has a finite horizon, in which a label is worth less later.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> print(policy.label_value(Belief(10, 7)))
        0.105628321... ± ...
        """
        if self.objective.horizon is not None:
            raise InputError("objective", self.objective, "one without a horizon, such as Discounted")
        accepting = self.continuation(belief)
        profit = belief.mean - self.objective.cost
        # Accepting is worth profit + γM. Where it is above 0 it is V, and elsewhere V is 0.
        worth = [
            (1.0 - self.objective.discount) * one if one > 0.0 else one for one in (accepting.lower, accepting.upper)
        ]
        return Bounds(max(worth[0] - profit, 0.0), max(worth[1] - profit, 0.0))

    def threshold(self, n: float, tolerance: float | None = None) -> Bounds:
        """Return c_n, the success rate above which the policy accepts at a belief size.

        Parameters
        ----------
        n : float
            The belief size, any number above 0. With a finite horizon: the prior's n plus a whole number.
        tolerance : float, optional
            The precision; by default that of the policy.

        Returns
        -------
        Bounds
            Proved bounds of the threshold.

        Raises
        ------
        InputError
            If the horizon is over at this size.

        Examples
        --------
        >>> from lenience import Discounted
        >>> print(Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).threshold(10))
        0.65437640... ± ...
        """
        from lenience.solvers.stopping.threshold import enclose_threshold

        size = real("n", n, above=0)
        left = self._left(size)
        if left is None:
            raise InputError("n", n, f"below {self.prior.n + self._horizon():g}, where the horizon ends")
        fine = self.certificate.tolerance if tolerance is None else check_tolerance(tolerance)
        k = self._row(size)
        if not 0 <= k < self.rows or not 0 < self.accept_from[k] <= k:
            return enclose_threshold(left, size, fine)
        # The table already says between which two states it lies.
        middle = (self.prior.s + int(self.accept_from[k]) - 0.5) / size
        return enclose_threshold(left, size, fine, middle, 0.51 / size)

    def between(self, n: float) -> Bounds:
        """Return the two neighbouring rates of the table between which c_n lies. This needs no solve.

        Parameters
        ----------
        n : float
            The belief size: the prior's n plus a whole number below ``rows``.

        Returns
        -------
        Bounds
            The rates of the last state that is rejected and the first that is accepted.

        Raises
        ------
        InputError
            If n is not in the table.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).between(100)
        Bounds(lower=0.77, upper=0.78)
        """
        least = self.least_accepted(n)
        k = self._row(n)
        stopped = (self.prior.s + (k if least is None else least - self.prior.s - 1)) / n
        lowest = least is not None and least <= self.prior.s
        return Bounds(0.0 if lowest else stopped, self.objective.cost if least is None else least / n)

    def explain(self, belief: Belief, money: Money = UNITS) -> str:
        """Return the decision at a belief and its reason, in words.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        money : Money, optional
            How to show amounts; by default in units of gain + loss.

        Returns
        -------
        str
            One or two sentences.

        Examples
        --------
        >>> from lenience import Discounted
        >>> print(Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1)).explain(Belief(10, 7)))
        Accept: 7 of 10 succeeded (70%), below the break-even of 80%. The minimum after 10 observations is 65.4%. What
        the outcome teaches is worth more than the expected loss of 0.1. Accepting is worth 0.563 in all.

        Where a success gains $200 and a failure loses $800:

        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> print(policy.explain(Belief(10, 9), Money(unit=1000, currency="$")))
        Accept: 9 of 10 succeeded (90%), above the break-even of 80%. Accepting is worth $10,748 in all.
        """
        check_prior(belief, "belief")
        left = self._left(belief.n)
        if left is None:
            return f"Reject: the horizon of {self._horizon():,} individuals is over."
        continuation = _enclose(left, belief, self.certificate.tolerance)[1]
        long = left.solve_seconds(belief, 1, self.certificate.tolerance) > LONG
        threshold = None if long else self.threshold(belief.n, tolerance=1e-6).midpoint
        return describe_stopping(belief, left.cost, self.accepts(belief), continuation.midpoint, threshold, money)

    @property
    def stop_ceiling(self) -> float:
        """The cost: accepting is optimal where the success rate is above it. 1 with a horizon, at which it stops."""
        return 1.0 if self._horizon() else self.objective.cost

    @property
    def stop_limit(self) -> float:
        """A success probability at or below which the policy stops for good sooner or later, with certainty.

        It is the cost: thresholds rise to it, at a distance of order 1/n, and the walk s − cn falls below any bound
        even at p = c. With a horizon it is 1.
        """
        return 1.0 if self._horizon() else self.objective.cost

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which the policy has stopped, at size n and every larger one.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The rate of the best rejected belief at this n, because thresholds do not fall with n. −1 if none is known,
            and 1 after the horizon.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> policy.stop_floor(10)  # 6 of 10 is rejected, 7 of 10 is accepted
        0.6
        """
        k = self._row(n)
        if 0 < self._horizon() <= k:
            return 1.0
        if not 0 <= k < self._last_row():
            return -1.0
        least = int(self._table(k + 1)[k])
        return (self.prior.s + least - 1) / n if least > 0 else -1.0

    def expression(self, table: ir.Table, n: str = "n", s: str = "s") -> ir.BooleanColumn:
        """Return the decisions for a table of beliefs as an Ibis expression, computed in the engine that holds it.

        Parameters
        ----------
        table : ibis.Table
            The table, in any engine that Ibis supports.
        n : str
            The column with the numbers of observations, including the prior's.
        s : str
            The column with the numbers of successes, including the prior's.

        Returns
        -------
        ibis.BooleanColumn
            The decisions: true to accept, missing where the belief is missing.

        Raises
        ------
        InputError
            If the table lacks a column, or has too many observations or too many different beliefs off the lattice.

        Examples
        --------
        >>> import ibis, pyarrow
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> beliefs = ibis.memtable(pyarrow.table({"n": [10, 10, 2], "s": [6, 7, 1]}))
        >>> policy.expression(beliefs).to_pyarrow().to_pylist()
        [False, True, True]
        """
        from lenience.policies.beliefs.expression import decision_expression

        return decision_expression(self, table, n, s)

    def to_json(self) -> str:
        """Return the policy as JSON text; :meth:`from_json` reads it without solving anything.

        Returns
        -------
        str
            JSON text.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1), rows=10)
        >>> OptimalPolicy.from_json(policy.to_json()).accepts(Belief(10, 7))
        True
        """
        return msgspec.json.encode(self, enc_hook=encode_array).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> OptimalPolicy:
        """Read a policy that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The JSON text.

        Returns
        -------
        OptimalPolicy
            The policy.

        Raises
        ------
        InputError
            If the text is not the JSON of an optimal policy.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1), rows=10)
        >>> OptimalPolicy.from_json(policy.to_json())
        OptimalPolicy(Discounted(cost=0.8, discount=0.99), prior=Belief(n=2.0, s=1.0), rows=10)
        """
        try:
            policy = msgspec.json.decode(text, type=cls, dec_hook=decode_array)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError.because(
                f"is not the JSON of an optimal policy: {error}", "text", code="invalid_file"
            ) from error
        if policy.accept_from.shape != (policy.rows,):
            raise InputError.because(
                f"must have one entry for each of the {policy.rows} rows", "accept_from", code="length_mismatch"
            )
        return policy

    def __repr__(self) -> str:
        return f"OptimalPolicy({self.objective!r}, prior={self.prior!r}, rows={self.rows})"

    def _row(self, n: float) -> int:
        """Return the number of observations beyond the prior, or −1 off the lattice."""
        k = round(n - self.prior.n)
        return k if is_near(n, self.prior.n, size_distance(self.prior)) else -1

    def _row_acceptance(self, k: int, s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Decide one row, without the checks that beliefs of different sizes need."""
        new = s - self.prior.s
        result = np.asarray(new > self._table(k + 1)[k] - 0.5, dtype=np.float64)
        odd = ~near(s, self.prior.s, success_distance(self.prior)) | (np.rint(new) < 0) | (np.rint(new) > k)
        for position in np.argwhere(odd):
            at = tuple(position)
            result[at] = self._decide(Belief(n=self.prior.n + k, s=float(s[at])))
        return result

    def _last_row(self) -> float:
        """Return the row up to which decisions come from the table, which grows as long as a solve is quick."""
        return self._horizon() or MOST_ROWS

    def _table(self, rows: int) -> NDArray[np.int64]:
        """Return the least accepted numbers of new successes, for at least this many rows."""
        if rows <= self.rows:
            return self.accept_from
        return _grown(self.objective, self.prior, 1 << (rows - 1).bit_length(), self.certificate.tolerance)

    def _horizon(self) -> int:
        """Return the horizon, or 0 if there is none."""
        return self.objective.horizon or 0

    def _left(self, n: float) -> StoppingObjective | None:
        """Return the objective that remains at belief size n; None if the horizon is over."""
        if self.objective.horizon is None:
            return self.objective
        k = self._row(n)
        if k < 0:
            raise InputError("n", n, "the prior's n plus a whole number of acceptances")
        return self.objective.remaining(k)

    def _decide(self, belief: Belief) -> bool:
        """Decide a belief that is not in the table."""
        left = self._left(belief.n)
        return left is not None and _enclose(left, belief, self.certificate.tolerance)[1].lower > 0.0


@lru_cache(maxsize=4096)
def _enclose(objective: StoppingObjective, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
    """Return bounds of the value and of the value of accepting, cached."""
    return objective.enclose(belief, tolerance)


@lru_cache(maxsize=8)
def _grown(objective: StoppingObjective, prior: Belief, rows: int, tolerance: float) -> NDArray[np.int64]:
    """Return the table solved with more rows, cached."""
    most = rows if objective.horizon is None else min(rows, objective.horizon)
    table: NDArray[np.int64] = objective.solve(prior, rows=most, tolerance=tolerance).accept_from
    return table
