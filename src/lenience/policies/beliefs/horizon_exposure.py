"""HorizonExposurePolicy: exposure limits where the number of arrivals is known and labels come late.

The fewer arrivals are left, the less a label is worth, and a label that comes after the last arrival is worth nothing.
So a limit depends on the belief and on the number of arrivals left. JSON holds the problem and its certificate; the
tables are solved when the first decision needs them.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
import numpy as np

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError, TooLargeError
from lenience.core.formatting import counted, observed, percents
from lenience.core.json_arrays import decode_array
from lenience.core.lattice import AT_COST
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import UNITS, Money
from lenience.core.objective import ExposureObjective
from lenience.core.validation import whole
from lenience.policies.beliefs.offers import check_belief, lattice_position
from lenience.solvers.delayed.horizon import HorizonSolution, horizon_seconds, solve_late_horizon
from lenience.solvers.delayed.horizon_blocks import HorizonBlocks, solve_horizon_blocks

SECONDS = 3.0  # of an exact solve, by its estimate; longer ones are estimated
MOST_SPARE = 40


class HorizonCertificate(msgspec.Struct, frozen=True):
    """What is stated about a problem with late labels and a horizon.

    Parameters
    ----------
    value
        Bounds of the optimal value at the prior, before the first arrival and with nothing pending.
    proved
        Whether the bounds are proved: the recursion was exact but for rounding, which they include. Otherwise they are
        an estimate less and plus its stated error.

    Examples
    --------
    >>> from lenience import Delayed
    >>> Delayed(0.7, arrivals=50, label_delay=1, horizon=100).solve(Belief(2, 1)).certificate.proved
    True
    """

    value: Bounds
    proved: bool

    @property
    def statement(self) -> str:
        """The certificate in words."""
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
        >>> print(HorizonCertificate(Bounds(99.5, 100.5), proved=False).describe())
        The optimal value at the prior is estimated at 100 ± 0.5, and so are the limits. The problem is too large to
        solve exactly in the time allowed.
        """
        if self.proved:
            return (
                f"The optimal value at the prior is proved to be {money.format_bounds(self.value)}. Every limit is the "
                "least number pending at which rejecting is optimal, up to rounding."
            )
        middle, error = self.value.midpoint, (self.value.upper - self.value.lower) / 2.0
        value = f"{money.format(middle)} ± {money.format(error)}" if money.known else f"{middle:.6g} ± {error:.1g}"
        return (
            f"The optimal value at the prior is estimated at {value}, and so are the limits. The problem is too large "
            "to solve exactly in the time allowed."
        )


class HorizonExposurePolicy(msgspec.Struct, frozen=True, eq=False, tag="horizon_exposure", tag_field="type"):
    """The optimal policy for late labels and a known number of arrivals.

    The ``solve`` method of :class:`~lenience.Delayed` creates it if the objective has a horizon. Every method takes
    ``left``, the number of arrivals that are left, this one included; by default the whole horizon.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance, as a mixture.
    certificate
        What is proved or stated.

    Examples
    --------
    >>> from lenience import Delayed
    >>> policy = Delayed(cost=0.7, arrivals=50, label_delay=0.2, horizon=200).solve(prior=Belief(2, 1))
    >>> [policy.limit(Belief(10, 6), left) for left in (190, 100, 20)]
    [3, 2, 0]
    >>> policy.accepts(Belief(10, 6), pending=1, left=100)
    True
    """

    objective: ExposureObjective
    prior: MixtureBelief
    certificate: HorizonCertificate

    @classmethod
    def solve(
        cls, objective: ExposureObjective, prior: Belief | MixtureBelief, seconds: float = SECONDS
    ) -> HorizonExposurePolicy:
        """Solve an objective with a horizon: exactly if that fits the time, and otherwise by an estimate.

        Parameters
        ----------
        objective : Delayed
            The objective.
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        seconds : float
            Longest time to allow for an exact solve, in seconds, without compiling.

        Returns
        -------
        HorizonExposurePolicy
            The policy.

        Raises
        ------
        TooLargeError
            If the prior is a mixture, and the problem is too large to solve exactly.
        """
        given = MixtureBelief.of(check_belief(prior, "prior"))
        horizon = objective.horizon or 0
        spare = _spare(objective)
        if horizon_seconds(horizon, spare) <= seconds:
            solution = _exact(objective, given.simplified, horizon, spare)
            return cls(objective, given, HorizonCertificate(solution.values[0], True))
        blocks = _estimated(objective, _single(given, horizon), horizon)
        value = Bounds(max(blocks.value - blocks.error, 0.0), blocks.value + blocks.error)
        return cls(objective, given, HorizonCertificate(value, False))

    @property
    def horizon(self) -> int:
        """The number of arrivals in all."""
        return self.objective.horizon or 0

    @property
    def expire_after(self) -> float:
        """The age, in the problem's unit of time, at which an outcome expires and no longer counts as pending."""
        return self.objective.expire_after or 0.0

    def limit(self, belief: Belief | MixtureBelief, left: int | None = None) -> int | None:
        """Return how many outcomes may be pending at once, including that of the next acceptance.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        left : int, optional
            The number of arrivals left, this one included; by default the whole horizon.

        Returns
        -------
        int or None
            The exposure limit; None if there is no limit. A limit above what the exact solver follows is given as the
            number that it follows.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=50, label_delay=0.2, horizon=200).solve(prior=Belief(2, 1))
        >>> policy.limit(Belief(10, 6)), policy.limit(Belief(10, 8))
        (3, None)
        """
        check_belief(belief)
        arrivals = self.horizon if left is None else whole("left", left, least=1, most=self.horizon)
        if belief.mean >= self.objective.cost * (1 - AT_COST):
            return None
        if not self.certificate.proved:
            return _estimated_limit(self._blocks(belief), self.objective.cost, belief, arrivals)
        spare = _spare(self.objective)
        at = lattice_position(self.prior, belief, spare + self.horizon - arrivals + 1)
        if at is None:
            own = MixtureBelief.of(belief).simplified
            return _exact(self.objective, own, arrivals, spare).limit(arrivals, 0, 0)
        return _exact(self.objective, self.prior.simplified, self.horizon, spare).limit(arrivals, *at)

    def accepts(self, belief: Belief | MixtureBelief, pending: int = 0, left: int | None = None) -> bool:
        """Return whether the next individual is accepted.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.
        left : int, optional
            The number of arrivals left, this one included; by default the whole horizon.

        Returns
        -------
        bool
            True to accept.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=50, label_delay=0.2, horizon=200).solve(prior=Belief(2, 1))
        >>> policy.accepts(Belief(10, 6), pending=2), policy.accepts(Belief(10, 6), pending=3)
        (True, False)
        """
        limit = self.limit(belief, left)
        return limit is None or whole("pending", pending) < limit

    def accept_now(self, belief: Belief | MixtureBelief, pending: int, applicants: int, left: int | None = None) -> int:
        """Return how many of several applicants to accept now, all at once.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.
        applicants : int
            The number of applicants.
        left : int, optional
            The number of arrivals left, these included; by default the whole horizon.

        Returns
        -------
        int
            The number to accept.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=50, label_delay=0.2, horizon=200).solve(prior=Belief(2, 1))
        >>> policy.accept_now(Belief(10, 6), pending=1, applicants=20)
        2
        """
        count = whole("applicants", applicants)
        limit = self.limit(belief, left)
        return count if limit is None else min(max(limit - whole("pending", pending), 0), count)

    def value(self, belief: Belief | MixtureBelief, pending: int = 0, left: int | None = None) -> Bounds:
        """Return what the optimal policy earns from a belief on, before the next arrival.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.
        left : int, optional
            The number of arrivals left; by default the whole horizon.

        Returns
        -------
        Bounds
            Proved bounds, or an estimate less and plus its stated error.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=50, label_delay=0.2, horizon=200).solve(prior=Belief(2, 1))
        >>> round(policy.value(Belief(2, 1)).midpoint, 3), round(policy.value(Belief(2, 1), left=100).midpoint, 3)
        (6.973, 2.793)
        """
        check_belief(belief)
        arrivals = self.horizon if left is None else whole("left", left, least=1, most=self.horizon)
        count = whole("pending", pending)
        most = max(count, _spare(self.objective))
        if self.certificate.proved and horizon_seconds(arrivals, most) <= 4.0 * SECONDS:
            return _exact(self.objective, MixtureBelief.of(belief).simplified, arrivals, most).values[count]
        blocks = _estimated(self.objective, _single(MixtureBelief.of(belief), arrivals), arrivals)
        estimate = float(np.interp(count, blocks.pending, blocks.values))
        error = blocks.error * max(estimate / blocks.value, 1.0) if blocks.value > 0.0 else blocks.error
        return Bounds(max(estimate - error, 0.0), estimate + error)

    def explain(
        self, belief: Belief | MixtureBelief, pending: int = 0, left: int | None = None, money: Money = UNITS
    ) -> str:
        """Return the decision and its reason, in words.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        pending : int
            The number of accepted individuals without an outcome.
        left : int, optional
            The number of arrivals left, this one included; by default the whole horizon.
        money : Money, optional
            How to show amounts; by default in units of gain + loss.

        Returns
        -------
        str
            A few sentences.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=50, label_delay=0.2, horizon=200).solve(prior=Belief(2, 1))
        >>> print(policy.explain(Belief(10, 6), pending=5, left=100))
        Reject for now: 6 of 10 succeeded (60%), below the break-even of 70%. With 100 arrivals left, the limit is 2
        pending outcomes, and 5 are pending.
        """
        limit = self.limit(belief, left)
        arrivals = self.horizon if left is None else left
        mean, even = percents(belief.mean, self.objective.cost)
        seen = observed(belief, mean) if isinstance(belief, Belief) else f"the expected success rate is {mean}"
        if limit is None:
            return f"Accept: {seen}, not below the break-even of {even}. Any number of outcomes may be pending."
        seen = f"{seen}, below the break-even of {even}"
        loss = f"the expected loss of {money.format(self.objective.cost - belief.mean)}"
        to_come = f"With {counted(arrivals, 'arrival')} left,"
        if limit == 0:
            return f"Reject: {seen}. {to_come} what one more outcome teaches is not worth {loss}."
        verb = "is" if pending == 1 else "are"
        exposure = f"{to_come} the limit is {counted(limit, 'pending outcome')}, and {pending:,} {verb} pending."
        return f"{'Accept' if pending < limit else 'Reject for now'}: {seen}. {exposure}"

    def to_json(self) -> str:
        """Return the policy as JSON text: the problem and its certificate.

        Returns
        -------
        str
            JSON text.
        """
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> HorizonExposurePolicy:
        """Read a policy that :meth:`to_json` wrote. Its tables are solved again when they are needed.

        Parameters
        ----------
        text : str or bytes
            The JSON text.

        Returns
        -------
        HorizonExposurePolicy
            The policy.

        Raises
        ------
        InputError
            If the text is not the JSON of such a policy.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=50, label_delay=0.2, horizon=200).solve(prior=Belief(2, 1))
        >>> HorizonExposurePolicy.from_json(policy.to_json()).limit(Belief(10, 6), left=100)
        2
        """
        try:
            return msgspec.json.decode(text, type=cls, dec_hook=decode_array)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError.because(
                f"is not the JSON of exposure limits with a horizon: {error}", "text", code="invalid_file"
            ) from error

    def __repr__(self) -> str:
        return f"HorizonExposurePolicy({self.objective!r}, prior={self.prior.simplified!r})"

    def _blocks(self, belief: Belief | MixtureBelief) -> HorizonBlocks:
        """Return the estimates of the prior, or those of a belief that is smaller than the prior."""
        start = _single(self.prior, self.horizon)
        single = _single(MixtureBelief.of(belief), self.horizon)
        return _estimated(self.objective, start if single.n >= start.n * (1.0 - 1e-9) else single, self.horizon)


def _spare(objective: ExposureObjective) -> int:
    """Return how many labels more than one an arrival the exact solver follows.

    The number of arrivals left is often a forecast, so more may be pending than it allows for.
    """
    return min(math.ceil(objective.label_delay * (objective.arrivals or 0.0)) + 10, MOST_SPARE)


def _single(prior: MixtureBelief, horizon: int) -> Belief:
    """Return the only belief of a mixture, or raise TooLargeError: mixtures are solved exactly only."""
    simple = prior.simplified
    if isinstance(simple, Belief):
        return simple
    raise TooLargeError(
        "Solving late labels with a horizon and a prior that may be wrong",
        size=horizon,
        unit="arrivals",
        field="horizon",
        value=horizon,
        hint="Use a Belief instead of a MixtureBelief: then any horizon is estimated.",
    )


def _estimated_limit(blocks: HorizonBlocks, cost: float, belief: Belief | MixtureBelief, left: int) -> int:
    """Return a limit, interpolated between arrivals left, belief sizes and rates, at equal (p̂ − c)√n."""
    row = int(np.clip(np.searchsorted(blocks.sizes, belief.n, side="right") - 1, 0, blocks.sizes.size - 2))
    between = float(
        np.clip(np.log(belief.n / blocks.sizes[row]) / np.log(blocks.sizes[row + 1] / blocks.sizes[row]), 0, 1)
    )
    later = int(np.clip(np.searchsorted(blocks.lefts, left, side="left"), 1, blocks.lefts.size - 1))
    gap = blocks.lefts[later] - blocks.lefts[later - 1]
    passed = float(np.clip((left - blocks.lefts[later - 1]) / gap, 0.0, 1.0))
    total = 0.0
    for t, share in ((later - 1, 1.0 - passed), (later, passed)):
        for k, weight in ((row, 1.0 - between), (row + 1, between)):
            if share * weight == 0.0:
                continue
            rate = cost + (belief.mean - cost) * np.sqrt(belief.n / blocks.sizes[k])
            position = (rate - blocks.lowest[k]) / blocks.steps[k]
            last = int(np.ceil((cost - blocks.lowest[k]) / blocks.steps[k] - 1e-9)) - 1
            at = int(np.clip(np.floor(position), 0, max(last - 1, 0)))
            if position <= 0.0 or last < 1:
                continue
            low, high = np.log1p(blocks.limits[t, k, at : at + 2].astype(np.float64))
            total += share * weight * float(low + np.clip(position - at, 0.0, 2.0) * (high - low))
    return int(np.floor(np.expm1(total) + 0.5))


@lru_cache(maxsize=16)
def _exact(objective: ExposureObjective, belief: Belief | MixtureBelief, left: int, pending: int) -> HorizonSolution:
    """Return the exact tables of a belief."""
    return solve_late_horizon(
        belief,
        objective.cost,
        objective.arrivals or 0.0,
        objective.discount_rate or 0.0,
        1.0 / objective.label_delay,
        left,
        pending,
    )


@lru_cache(maxsize=16)
def _estimated(objective: ExposureObjective, belief: Belief, left: int) -> HorizonBlocks:
    """Return the estimates of a belief."""
    return solve_horizon_blocks(
        belief.n,
        belief.s,
        objective.cost,
        objective.arrivals or 0.0,
        objective.discount_rate or 0.0,
        1.0 / objective.label_delay,
        left,
    )
