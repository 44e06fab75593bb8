"""LabelDelay: how long it takes until the outcome of an acceptance is known.

All simulations use the same delay laws. Worlds count a delay in arrivals (:meth:`LabelDelay.lags`); the event
simulation counts it in years (:func:`delay_of`). The unit is that of ``mean``.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.errors import InputError
from lenience.core.validation import real

KINDS = ("none", "exponential", "fixed", "lognormal", "never")
_EXPONENTIAL, _LOGNORMAL, _NEVER = KINDS.index("exponential"), KINDS.index("lognormal"), KINDS.index("never")


class LabelDelay(msgspec.Struct, frozen=True):
    """The distribution of the time from an acceptance to its label.

    In a world that counts in arrivals, the policy learns a label of delay d at the first arrival at least d, and at
    least one, later.

    Parameters
    ----------
    kind
        One of none, exponential, fixed, lognormal and never.
    mean
        The mean delay, in arrivals or in years. Ignored if the kind is "none" or "never".
    sigma
        The standard deviation of the logarithm of a lognormal delay.
    missing
        The share of labels that never come, whatever the kind.

    Examples
    --------
    >>> LabelDelay("fixed", mean=20).lags(np.array([0.5]), np.array([0.5]), horizon=100)
    array([20])
    >>> print(LabelDelay("lognormal", mean=1, sigma=0.5, missing=0.1))
    lognormal, σ = 0.5, 10% never
    """

    kind: str = "none"
    mean: float = 0.0
    sigma: float = 1.0
    missing: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError.unknown_name("kind", self.kind, KINDS)
        msgspec.structs.force_setattr(self, "mean", real("mean", self.mean, least=0))
        msgspec.structs.force_setattr(self, "sigma", real("sigma", self.sigma, least=0))
        msgspec.structs.force_setattr(self, "missing", real("missing", self.missing, least=0, most=1))

    def __str__(self) -> str:
        name = f"{self.kind}, σ = {self.sigma:g}" if self.kind == "lognormal" else self.kind
        return f"{name}, {100 * self.missing:g}% never" if self.missing else name

    @property
    def prompt(self) -> bool:
        """Whether every label is known before the next arrival."""
        soon = self.kind == "none" or (self.kind != "never" and self.mean <= (1.0 if self.kind == "fixed" else 0.0))
        return soon and self.missing == 0

    @property
    def all_come(self) -> bool:
        """Whether every label comes in the end."""
        return self.kind != "never" and self.missing == 0

    @property
    def for_kernels(self) -> tuple[int, float, float, float]:
        """The first four arguments of :func:`delay_of`."""
        return KINDS.index(self.kind), 0.0 if self.kind == "none" else self.mean, self.sigma, self.missing

    def lags(self, chance: NDArray[np.float64], missing: NDArray[np.float64], horizon: int) -> NDArray[np.int64]:
        """Draw delays in whole numbers of arrivals, by inversion.

        Parameters
        ----------
        chance
            One number from 0 to below 1 a label, which decides its delay.
        missing
            One number from 0 to below 1 a label, which decides whether it never comes.
        horizon
            The number of arrivals. All delays beyond it are given as ``horizon`` + 1.

        Returns
        -------
        NDArray[np.int64]
            The delays, from 1 to ``horizon`` + 1.

        Examples
        --------
        >>> chance, missing = np.array([0.1, 0.5, 0.9]), np.array([0.5, 0.5, 0.5])
        >>> LabelDelay("exponential", mean=20).lags(chance, missing, horizon=100)
        array([ 3, 14, 47])
        """
        from scipy.special import ndtri

        if self.kind == "exponential":
            delay = -self.mean * np.log1p(-chance)
        elif self.kind == "lognormal" and self.mean > 0:
            centre = math.log(self.mean) - 0.5 * self.sigma**2
            delay = np.exp(centre + self.sigma * ndtri(np.clip(chance, 2.0**-60, 1 - 2.0**-53)))
        elif self.kind == "never":
            delay = np.full(chance.size, float(horizon + 1))
        else:
            delay = np.full(chance.size, self.mean if self.kind == "fixed" else 0.0)
        delay = np.where(missing < self.missing, float(horizon + 1), delay)
        return np.clip(np.ceil(delay), 1, horizon + 1).astype(np.int64)


@compiled
def delay_of(kind: int, mean: float, sigma: float, missing: float, chance: float, second: float, lost: float) -> float:
    """Draw one delay from three numbers strictly between 0 and 1; infinite for a label that never comes.

    A lognormal delay takes two of the numbers (Box and Muller 1958), because kernels have no inverse of the normal
    distribution.
    """
    if kind == _NEVER or lost < missing:
        return math.inf
    if kind == _EXPONENTIAL:
        return -mean * math.log(chance)
    if kind == _LOGNORMAL:
        normal = math.sqrt(-2.0 * math.log(chance)) * math.cos(2.0 * math.pi * second)
        return mean * math.exp(sigma * normal - 0.5 * sigma * sigma)
    return mean
