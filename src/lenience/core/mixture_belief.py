"""MixtureBelief: a prior that may be wrong, as a weighted choice between several beliefs.

For instance 80% of what one believes and 20% flat: if outcomes contradict the first, the second takes over. On the
lattice of outcomes only the mean of each state differs from that of one belief.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import listed, real

FLAT = Belief(2, 1)
WORTH, DOUBT, TOO_LOW_BY = 100.0, 0.4, 0.1  # of a stated rate that may be too low


class MixtureBelief(msgspec.Struct, frozen=True):
    """Describe what is known of a success probability by several beliefs, of which one is right.

    Parameters
    ----------
    beliefs : sequence of Belief
        The beliefs. None of several may be a certainty.
    weights : sequence of float
        The probability that each is the right one; scaled to sum to 1.

    Raises
    ------
    InputError
        If the lengths differ, a belief is certain, or a weight is not above 0.

    Examples
    --------
    >>> prior = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
    >>> round(prior.mean, 4)
    0.66
    >>> after = prior.observe([0, 0, 0, 0])
    >>> round(after.weights[1], 3), round(after.mean, 3)
    (0.542, 0.251)
    """

    beliefs: tuple[Belief, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        beliefs = tuple(listed("beliefs", self.beliefs, "a list of beliefs, such as [Belief(4, 2.8), Belief(2, 1)]"))
        weights = [real("weights", one, above=0) for one in listed("weights", self.weights, "a list of numbers")]
        if not beliefs or len(weights) != len(beliefs):
            raise InputError.because(
                f"must have one entry for each of the {len(beliefs)} beliefs, not {len(weights)}",
                "weights",
                code="length_mismatch",
            )
        for belief in beliefs:
            if not isinstance(belief, Belief) or (belief.certain and len(beliefs) > 1):
                raise InputError("beliefs", belief, "beliefs with 0 < s < n")
        total = math.fsum(weights)
        msgspec.structs.force_setattr(self, "beliefs", beliefs)
        msgspec.structs.force_setattr(self, "weights", tuple(one / total for one in weights))

    @classmethod
    def doubt(cls, belief: Belief, doubt: float, alternative: Belief = FLAT) -> MixtureBelief:
        """Return a belief that is wrong with some probability.

        Parameters
        ----------
        belief : Belief
            What one believes.
        doubt : float
            The probability that it is wrong, strictly between 0 and 1.
        alternative : Belief
            What is believed if it is wrong; flat by default.

        Returns
        -------
        MixtureBelief
            The two beliefs with their weights.

        Examples
        --------
        >>> MixtureBelief.doubt(Belief(4, 2.8), 0.25).weights
        (0.75, 0.25)
        """
        share = real("doubt", doubt, above=0, below=1)
        return cls((belief, alternative), (1.0 - share, share))

    @classmethod
    def stated(
        cls, rate: float, worth: float = WORTH, doubt: float = DOUBT, too_low_by: float = TOO_LOW_BY
    ) -> MixtureBelief:
        """Return a prior for a success rate that somebody states and that may be too low.

        Use it for a rate from a scorecard, a report or another portfolio. Only the direction in which errors last is
        allowed for. If the rate is stated too high, applicants are accepted and their outcomes correct it. If it is
        stated too low, they are rejected, and no outcome ever shows the error. The defaults were chosen in a
        benchmark with late labels (``research/delayed-benchmark.md``).

        Parameters
        ----------
        rate : float
            The stated success rate, strictly between 0 and 1.
        worth : float
            How many outcomes the rate is worth, if it is right.
        doubt : float
            The probability that it is too low, strictly between 0 and 1.
        too_low_by : float
            By how much it is then too low, in units of probability; 0.1 means 10 points. It is less where the rate is
            so high that this would be more than half of its distance from 1.

        Returns
        -------
        MixtureBelief
            The stated rate and the higher one with their weights.

        Examples
        --------
        >>> prior = MixtureBelief.stated(0.675)
        >>> prior.weights, [round(belief.mean, 3) for belief in prior.beliefs]
        ((0.6, 0.4), [0.675, 0.775])
        >>> round(prior.mean, 3), round(prior.observe([1, 1, 1, 1, 0]).mean, 3)
        (0.715, 0.723)
        """
        mean = real("rate", rate, above=0, below=1)
        size = real("worth", worth, above=0)
        share = real("doubt", doubt, above=0, below=1)
        higher = mean + min(real("too_low_by", too_low_by, above=0, below=1), 0.5 * (1.0 - mean))
        return cls((Belief(size, size * mean), Belief(size, size * higher)), (1.0 - share, share))

    @classmethod
    def of(cls, belief: Belief | MixtureBelief) -> MixtureBelief:
        """Return a belief as a mixture of one.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            A belief, or a mixture, which is returned as it is.

        Returns
        -------
        MixtureBelief
            The mixture.

        Examples
        --------
        >>> MixtureBelief.of(Belief(2, 1)).beliefs
        (Belief(n=2.0, s=1.0),)
        """
        return belief if isinstance(belief, MixtureBelief) else cls((belief,), (1.0,))

    @property
    def simplified(self) -> Belief | MixtureBelief:
        """The only belief, if there is one; otherwise the mixture."""
        return self.beliefs[0] if len(self.beliefs) == 1 else self

    @property
    def mean(self) -> float:
        """The expected success probability."""
        return math.fsum(weight * belief.mean for weight, belief in zip(self.weights, self.beliefs, strict=True))

    @property
    def variance(self) -> float:
        """The variance of p: within the beliefs and between them."""
        square = math.fsum(
            weight * (belief.variance + belief.mean**2)
            for weight, belief in zip(self.weights, self.beliefs, strict=True)
        )
        return max(square - self.mean**2, 0.0)

    @property
    def n(self) -> float:
        """The size of the single belief with the same mean and variance."""
        return self.mean * (1.0 - self.mean) / self.variance - 1.0

    @property
    def s(self) -> float:
        """The successes of the single belief with the same mean and variance."""
        return self.mean * self.n

    def exceeds(self, rate: float) -> float:
        """Return the probability that p is above a rate.

        Parameters
        ----------
        rate : float
            A success rate.

        Returns
        -------
        float
            A probability from 0 to 1.

        Examples
        --------
        >>> round(MixtureBelief.doubt(Belief(4, 2.8), 0.2).exceeds(0.5), 4)
        0.7544
        """
        return math.fsum(
            weight * belief.exceeds(rate) for weight, belief in zip(self.weights, self.beliefs, strict=True)
        )

    def interval(self, probability: float = 0.95) -> Bounds:
        """Return the central credible interval of the success probability.

        Parameters
        ----------
        probability : float, default 0.95
            Probability that the interval contains p, between 0 and 1.

        Returns
        -------
        Bounds
            The ends of the interval.

        Examples
        --------
        >>> interval = MixtureBelief.doubt(Belief(100, 80), 0.2).interval(0.9)
        >>> round(interval.lower, 2), round(interval.upper, 2)
        (0.25, 0.87)
        """
        inside = real("probability", probability, above=0, below=1)
        edges = []
        for tail in (1.0 - (1.0 - inside) / 2.0, (1.0 - inside) / 2.0):
            low, high = 0.0, 1.0
            for _ in range(60):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if self.exceeds(middle) > tail else (low, middle)
            edges.append(0.5 * (low + high))
        return Bounds(*edges)

    def observe(self, outcomes: bool | Iterable[bool]) -> MixtureBelief:
        """Return the mixture after one or more outcomes.

        Parameters
        ----------
        outcomes : bool or iterable of bool
            True (or 1) for a success, False (or 0) for a failure.

        Returns
        -------
        MixtureBelief
            Each belief with the outcomes added, weighted by how well it predicted them.

        Examples
        --------
        >>> MixtureBelief.doubt(Belief(4, 2.8), 0.2).observe(True).beliefs
        (Belief(n=5.0, s=3.8), Belief(n=3.0, s=2.0))
        """
        return self._moved_to(tuple(belief.observe(outcomes) for belief in self.beliefs))

    def after(self, n: float, s: float) -> MixtureBelief:
        """Return the mixture after a number of outcomes.

        Parameters
        ----------
        n : float
            The number of outcomes; it need not be whole where outcomes count only in part.
        s : float
            The number of successes among them.

        Returns
        -------
        MixtureBelief
            The same as :meth:`observe` with these outcomes, in any order.

        Examples
        --------
        >>> prior = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
        >>> prior.after(1, 1) == prior.observe(True)
        True
        """
        return self._moved_to(tuple(Belief(belief.n + n, belief.s + s) for belief in self.beliefs))

    def reweighted(self, beliefs: Iterable[Belief], log_likelihoods: Iterable[float]) -> MixtureBelief:
        """Return other beliefs in the place of these, weighted by how well each predicted what was seen.

        Parameters
        ----------
        beliefs : iterable of Belief
            What each belief has become.
        log_likelihoods : iterable of float
            The logarithm of the probability that each gave to what was seen.

        Returns
        -------
        MixtureBelief
            The beliefs with their new weights.

        Examples
        --------
        >>> prior = MixtureBelief.doubt(Belief(4, 2.8), 0.5)
        >>> after = prior.reweighted([Belief(5, 3.8), Belief(3, 2)], [math.log(0.7), math.log(0.5)])
        >>> [round(weight, 4) for weight in after.weights], [round(weight, 4) for weight in prior.observe(True).weights]
        ([0.5833, 0.4167], [0.5833, 0.4167])
        """
        after = tuple(beliefs)
        if len(after) == 1:
            return MixtureBelief(after, (1.0,))
        logs = [math.log(weight) + log for weight, log in zip(self.weights, log_likelihoods, strict=True)]
        largest = max(logs)
        # A weight that underflows stays a tiny positive number: later outcomes may bring it back.
        return MixtureBelief(after, tuple(max(math.exp(one - largest), 1e-300) for one in logs))

    def _moved_to(self, beliefs: tuple[Belief, ...]) -> MixtureBelief:
        """Weight the beliefs after outcomes by how well each predicted them."""
        if len(beliefs) == 1:
            return MixtureBelief(beliefs, (1.0,))
        return self.reweighted(
            beliefs,
            [_log_beta(after) - _log_beta(before) for before, after in zip(self.beliefs, beliefs, strict=True)],
        )


def _log_beta(belief: Belief) -> float:
    """Return the logarithm of the Beta function at a belief."""
    return math.lgamma(belief.alpha) + math.lgamma(belief.beta) - math.lgamma(belief.n)
