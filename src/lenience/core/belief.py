"""Belief(n, s): what is known of the success probability p of a population.

The belief about p is Beta(s, n − s): n observations, of which s are successes, including the virtual ones of the prior.
Neither needs to be a whole number. An outcome changes (n, s) to (n + 1, s + 1) or (n + 1, s).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import real


class Belief(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describe what is known of a success probability: n observations, s of them successes.

    The probability follows Beta(s, n − s). ``s = 0`` and ``s = n`` are certainties: the population never, or always,
    succeeds.

    Parameters
    ----------
    n : float
        Number of observations, above 0. It includes the prior's virtual observations and need not be whole.
    s : float
        Number of successes among them, from 0 to n.

    Raises
    ------
    InputError
        If n is not above 0, or s is not from 0 to n.

    Examples
    --------
    >>> belief = Belief(n=10, s=7)
    >>> belief.mean, belief.alpha, belief.beta
    (0.7, 7.0, 3.0)
    >>> belief.observe([True, False, 1])
    Belief(n=13.0, s=9.0)
    """

    n: float
    s: float

    def __post_init__(self) -> None:
        n = real("n", self.n, above=0)
        s = real("s", self.s, least=0)
        if s > n:
            raise InputError("s", self.s, f"a number from 0 to n = {n:g}, both included")
        msgspec.structs.force_setattr(self, "n", n)
        msgspec.structs.force_setattr(self, "s", s)

    @classmethod
    def from_counts(cls, successes: float, failures: float, prior: Belief | None = None) -> Belief:
        """Return the belief after a number of successes and failures.

        Parameters
        ----------
        successes : float
            Number of successes, at least 0.
        failures : float
            Number of failures, at least 0.
        prior : Belief, optional
            The belief before these outcomes. Without it, the outcomes are all that is known.

        Returns
        -------
        Belief
            The prior with the outcomes added.

        Raises
        ------
        InputError
            If a number is negative, or there is neither a prior nor an outcome.

        Examples
        --------
        >>> Belief.from_counts(successes=7, failures=3, prior=Belief(2, 1))
        Belief(n=12.0, s=8.0)
        """
        good = real("successes", successes, least=0)
        bad = real("failures", failures, least=0)
        if prior is None:
            return cls(n=good + bad, s=good)
        if not isinstance(prior, Belief):
            raise InputError("prior", prior, "a Belief")
        return cls(n=prior.n + good + bad, s=prior.s + good)

    @classmethod
    def from_beta(cls, alpha: float, beta: float) -> Belief:
        """Return the belief Beta(alpha, beta).

        Parameters
        ----------
        alpha : float
            First parameter of the Beta distribution: successes.
        beta : float
            Second parameter of the Beta distribution: failures.

        Returns
        -------
        Belief
            The belief with n = alpha + beta and s = alpha.

        Raises
        ------
        InputError
            If a parameter is negative, or both are 0.

        Examples
        --------
        >>> Belief.from_beta(0.5, 0.5)
        Belief(n=1.0, s=0.5)
        """
        a = real("alpha", alpha, least=0)
        b = real("beta", beta, least=0)
        if a + b == 0:
            raise InputError(("alpha", "beta"), a + b, "a number above 0", label="alpha + beta")
        return cls(n=a + b, s=a)

    @property
    def mean(self) -> float:
        """p̂ = s/n, the expected success probability."""
        return self.s / self.n

    @property
    def failures(self) -> float:
        """n − s, the failures seen."""
        return self.n - self.s

    @property
    def alpha(self) -> float:
        """The first Beta parameter, s."""
        return self.s

    @property
    def beta(self) -> float:
        """The second Beta parameter, n − s."""
        return self.n - self.s

    @property
    def variance(self) -> float:
        """The variance of p under the belief."""
        return self.mean * (1 - self.mean) / (self.n + 1)

    @property
    def certain(self) -> bool:
        """Whether the belief is a certainty (p̂ = 0 or p̂ = 1)."""
        return self.s == 0 or self.s == self.n

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
        >>> print(Belief(10, 7).interval(0.9))
        0.68 ± 0.23
        """
        from scipy.special import betaincinv

        tail = (1 - real("probability", probability, above=0, below=1)) / 2
        if self.certain:
            return Bounds(self.mean, self.mean)
        return Bounds(
            float(betaincinv(self.alpha, self.beta, tail)), float(betaincinv(self.alpha, self.beta, 1 - tail))
        )

    def exceeds(self, rate: float) -> float:
        """Return the probability that p is above a rate.

        Parameters
        ----------
        rate : float
            A success rate, e.g. the break-even rate.

        Returns
        -------
        float
            A probability from 0 to 1.

        Examples
        --------
        >>> round(Belief(10, 7).exceeds(0.8), 4)
        0.2618
        """
        from scipy.special import betaincc

        if self.certain:
            return float(self.mean > rate)
        return float(betaincc(self.alpha, self.beta, min(max(rate, 0.0), 1.0)))

    def observe(self, outcomes: bool | Iterable[bool]) -> Belief:
        """Return the belief after one or more outcomes.

        Parameters
        ----------
        outcomes : bool or iterable of bool
            True (or 1) for a success, False (or 0) for a failure.

        Returns
        -------
        Belief
            The belief with these outcomes added.

        Raises
        ------
        InputError
            If an outcome is neither true nor false.

        Examples
        --------
        >>> Belief(2, 1).observe(True)
        Belief(n=3.0, s=2.0)
        """
        several = outcomes if isinstance(outcomes, Iterable) else (outcomes,)
        total = good = 0
        for outcome in several:
            if outcome not in (0, 1):
                raise InputError("outcome", outcome, "true (a success) or false (a failure)")
            total += 1
            good += bool(outcome)
        return Belief(n=self.n + total, s=self.s + good) if total else self


def check_prior(prior: object, field: str = "prior") -> Belief:
    """Return the prior, or raise InputError if it is not a Belief."""
    if not isinstance(prior, Belief):
        raise InputError(field, prior, "a Belief, such as Belief(n=2, s=1)")
    return prior
