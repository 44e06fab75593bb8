"""ExposurePolicy: accept while fewer than m*(n, s) outcomes are pending (labels that come late).

The optimal policy of a :class:`~lenience.objectives.delayed.Delayed` problem looks at the belief and at the number
pending. Where p̂ ≥ c it accepts whatever is pending. Below, it accepts up to an *exposure limit*: as many as are worth
having out at once before the first of them has answered. That is almost always the exact optimum, but not quite
always: in a few states acceptance resumes at a larger number pending (c = 0.7, one arrival, one label a year, money at
10 %, 4 of 6 successes: accept, reject, accept, reject at 0, 1, 2, 3 pending). The policy takes the first rejection for
its limit; the certificate counts the exceptions.

A solved policy is a table: for each belief size n on the prior's lattice the limits of the states where they are
neither 0 nor without end. No decision on the lattice needs a solver. Beyond the last row the limit is one
of the last rows' as far below the break-even (limits settle slowly to a function of c·n − s alone; this is not proved);
beliefs off the lattice are decided by a solve of their own.
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
from lenience.core.formatting import observed, percent
from lenience.core.json_arrays import decode_array, encode_array
from lenience.core.objective import ExposureObjective
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import whole
from lenience.policies.beliefs.exposure_certificate import ExposureCertificate

LATTICE = 1e-9  # how near, in units of one observation, a belief must be to the lattice to be looked up


class ExposurePolicy(msgspec.Struct, frozen=True, eq=False, tag="exposure", tag_field="type"):
    """The exposure limits of a :class:`~lenience.objectives.delayed.Delayed` problem.

    ``expire_after`` is the age (in the problem's unit of time) at which a label that has not come expires and no
    longer counts as pending: three mean delays. Under the exponential delay of the model that is never needed; in life
    some labels never come, and they would block acceptance for good.

    >>> from lenience import Delayed
    >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
    >>> policy.limit(Belief(10, 7)), policy.accepts(Belief(10, 7), pending=4), policy.accepts(Belief(10, 7), pending=5)
    (5, True, False)
    >>> policy.acceptance(10, [6, 7, 8], pending=1)
    array([0., 1., 1.])
    >>> policy.expire_after
    3.0
    """

    objective: ExposureObjective
    prior: Belief
    first: np.ndarray[Any, np.dtype[np.int64]]  # by row: the new successes below which the limit is 0
    offsets: np.ndarray[Any, np.dtype[np.int64]]  # by row: where its limits begin in ``limits``
    limits: np.ndarray[Any, np.dtype[np.int64]]
    settled: np.ndarray[Any, np.dtype[np.int64]]  # by limit: 1 where it is proved
    lower: tuple[float, ...]  # by number pending: the value at the prior
    upper: tuple[float, ...]
    certificate: ExposureCertificate
    expire_after: float

    @property
    def rows(self) -> int:
        """How many belief sizes n the table holds, from the prior's on."""
        return self.certificate.rows

    def limit(self, belief: Belief) -> int | None:
        """How many may be pending at most when one more is accepted, itself included; nothing if there is no limit."""
        found = int(self.exposure(belief.n, belief.s)[()])
        return None if found == UNLIMITED else found

    def proved(self, belief: Belief) -> bool:
        """Whether the limit at a belief of the table is proved to be the least number pending that is rejected at."""
        k, j = self._place(belief)
        if not 0 <= k < self.rows or not 0 <= j <= k:
            return False
        at = self.offsets[k] + j - self.first[k]
        return bool(j < self.first[k] or at >= self.offsets[k + 1] or self.settled[at])

    def accepts(self, belief: Belief, pending: int = 0) -> bool:
        """Whether the next individual is accepted with so many outcomes pending."""
        return whole("pending", pending) < int(self.exposure(belief.n, belief.s)[()])

    def accept_now(self, belief: Belief, pending: int, applicants: int) -> int:
        """How many of this many applicants to accept now, all at once, with so many outcomes pending.

        Deciding a cohort at one instant is deciding its members in turn without hearing back in between: accept until
        the limit is reached.

        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
        >>> policy.accept_now(Belief(10, 9), pending=3, applicants=4), policy.accept_now(Belief(10, 7), 3, 4)
        (4, 2)
        """
        room = int(self.exposure(belief.n, belief.s)[()]) - whole("pending", pending)
        return min(max(room, 0), whole("applicants", applicants))

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """The probability of acceptance (0 or 1) at many beliefs and numbers pending at once."""
        return (np.asarray(pending) < self.exposure(n, s)).astype(np.float64)

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """The limits at many beliefs at once; ``UNLIMITED`` (the largest integer) where there is none."""
        sizes, good = np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64)
        rows = np.rint(sizes - self.prior.n)
        new = np.rint(good - self.prior.s)
        near = (np.abs(sizes - self.prior.n - rows) <= LATTICE) & (np.abs(good - self.prior.s - new) <= LATTICE)
        inside = near & (rows >= 0) & (new >= 0) & (new <= rows)
        row, shift = self._within(np.maximum(rows, 0).astype(np.int64))
        j = np.where(inside, new - shift, 0).astype(np.int64)
        unlimited = self.first[row] + self.offsets[row + 1] - self.offsets[row]
        at = np.clip(self.offsets[row] + j - self.first[row], 0, max(self.limits.size - 1, 0))
        found = self.limits[at] if self.limits.size else np.zeros(at.shape, dtype=np.int64)
        # A rate equal to the cost but for its last digits is at the cost: 16 of 20 where the cost is 0.8.
        above = (j >= unlimited) | (good >= self.objective.cost * sizes * (1 - 1e-12))
        result = np.where(above, UNLIMITED, np.where(j < self.first[row], 0, found))
        for position in np.argwhere(~inside):
            where = tuple(position)
            size, successes = np.broadcast_arrays(sizes, good)
            result[where] = self._decide(Belief(n=float(size[where]), s=float(successes[where])))
        return result

    def value(self, belief: Belief, pending: int = 0) -> Bounds:
        """The optimal value from here on, before the next arrival; beliefs other than the prior are solved for."""
        count = whole("pending", pending)
        if belief == self.prior and count < len(self.lower):
            return Bounds(self.lower[count], self.upper[count])
        return _enclose(self.objective, belief, count, self.certificate.tolerance)[0]

    def explain(self, belief: Belief, pending: int = 0) -> str:
        """The decision and its reason, in words.

        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.8, arrivals=200, discount_rate=0.1, label_delay=1).solve(Belief(2, 1), rows=20)
        >>> print(policy.explain(Belief(10, 7), pending=1))
        Accept: 7 of 10 succeeded (70 %), short of the 80 % break-even, but 1 is pending of at most 13 that are worth
        having out at once: what one more label teaches is worth more than its expected loss of 0.1.
        """
        count = whole("pending", pending)
        limit = self.limit(belief)
        cost = self.objective.cost
        seen = observed(belief)
        out = f"{count:,} {'is' if count == 1 else 'are'} pending" if count else "none is pending"
        if limit is None:
            return f"Accept: {seen}, not below the {percent(cost)} break-even, so nothing pending stands in the way."
        short = f"{seen}, short of the {percent(cost)} break-even"
        loss = f"expected loss of {cost - belief.mean:.2g}"
        if count < limit:
            return (
                f"Accept: {short}, but {out} of at most {limit:,} that {'is' if limit == 1 else 'are'} worth having "
                f"out at once: what one more label teaches is worth more than its {loss}."
            )
        if limit > 0:
            return (
                f"Reject for now: {short}, and {out}, while at most {limit:,} {'is' if limit == 1 else 'are'} worth "
                "having out at once: wait for a label before accepting again."
            )
        if count > 0:
            return (
                f"Reject for now: {short}, by so much that one more label is not worth its {loss}; the {count:,} "
                "pending may still change that."
            )
        return (
            f"Reject: {short}, by so much that one more label is not worth its {loss}. With nothing pending the "
            "rejection is final, for nothing more is learnt without acceptances."
        )

    @property
    def steady_limit(self) -> None:
        """There is no limit where p̂ ≥ c."""
        return None

    def stop_floor(self, n: float) -> float:
        """The best rate at belief size n at which nothing is accepted, whatever is pending (−1 if none is known)."""
        k = round(n - self.prior.n)
        if k < 0 or abs(n - self.prior.n - k) > LATTICE:
            return -1.0
        row, shift = self._within(np.asarray(k))
        first = int(self.first[row]) + int(shift)
        return (self.prior.s + first - 1) / n if first > 0 else -1.0

    def to_json(self) -> str:
        """The policy as JSON text; :meth:`from_json` reads it without solving anything."""
        return msgspec.json.encode(self, enc_hook=encode_array).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> ExposurePolicy:
        """The policy that :meth:`to_json` wrote."""
        try:
            fields = msgspec.json.decode(text)
            if isinstance(fields, dict) and "write_off_after" in fields:  # the name in older files and databases
                fields["expire_after"] = fields.pop("write_off_after")
            return msgspec.convert(fields, type=cls, dec_hook=decode_array)
        except msgspec.MsgspecError as error:
            raise InputError(f"this is not the JSON of an exposure policy: {error}") from error

    def __repr__(self) -> str:
        return f"ExposurePolicy({self.objective!r}, prior={self.prior!r}, rows={self.rows})"

    def _within(self, k: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The row of the table that stands for row k, and how many new successes more row k has at the same place."""
        if not np.any(k >= self.rows):
            return k, np.zeros(k.shape, dtype=np.int64)
        # Beyond the table, of its last rows the one in which c·n lies nearest to where it lies between two states.
        last = np.arange(max(self.rows - 64, 0), self.rows)
        cost = self.objective.cost
        apart = np.abs((cost * (k[..., np.newaxis] - last) + 0.5) % 1 - 0.5)
        row = np.where(k >= self.rows, last[np.argmin(apart, axis=-1)], k)
        return row, np.rint(cost * (k - row)).astype(np.int64)

    def _place(self, belief: Belief) -> tuple[int, int]:
        """The row and the new successes of a belief on the lattice, or (−1, −1)."""
        k, j = round(belief.n - self.prior.n), round(belief.s - self.prior.s)
        near = abs(belief.n - self.prior.n - k) <= LATTICE and abs(belief.s - self.prior.s - j) <= LATTICE
        return (k, j) if near else (-1, -1)

    def _decide(self, belief: Belief) -> int:
        """The limit at a belief that is not on the lattice."""
        limit = _enclose(self.objective, belief, 0, self.certificate.tolerance)[1]
        return UNLIMITED if limit is None else limit


@lru_cache(maxsize=4096)
def _enclose(objective: ExposureObjective, belief: Belief, pending: int, tolerance: float) -> tuple[Bounds, int | None]:
    return objective.enclose(belief, pending, tolerance)
