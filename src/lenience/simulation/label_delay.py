"""LabelDelay: how long it takes until the outcome of an acceptance is known.

All simulations use the same delay laws. Worlds count a delay in arrivals (:meth:`LabelDelay.lags`); the event
simulation counts it in years (:func:`delay_of`). The unit is that of ``mean``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.errors import InputError
from lenience.core.validation import listed, real

KINDS = ("none", "exponential", "fixed", "lognormal", "never", "measured")
_EXPONENTIAL, _LOGNORMAL, _NEVER = KINDS.index("exponential"), KINDS.index("lognormal"), KINDS.index("never")
_MEASURED = KINDS.index("measured")
MOST_DELAYS = 2_000  # quantiles that stand for more measured delays


class LabelDelay(msgspec.Struct, frozen=True):
    """The distribution of the time from an acceptance to its label.

    In a world that counts in arrivals, the policy learns a label of delay d at the first arrival at least d, and at
    least one, later.

    Parameters
    ----------
    kind
        One of none, exponential, fixed, lognormal, never and measured.
    mean
        The mean delay, in arrivals or in years. Ignored if the kind is "none" or "never", and computed if it is
        "measured".
    sigma
        The standard deviation of the logarithm of a lognormal delay.
    missing
        The share of labels that never come, whatever the kind.
    delays
        The measured delays, if the kind is "measured"; each is as likely as the others. See :meth:`measured`.

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
    delays: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError.unknown_name("kind", self.kind, KINDS)
        if (self.kind == "measured") != bool(self.delays):
            raise InputError.because(
                'must be given for the kind "measured", and only then', "delays", code="conflicting_fields"
            )
        if self.delays:
            own = sorted(real("delays", delay, least=0) for delay in self.delays)
            if len(own) > MOST_DELAYS:
                own = np.quantile(own, (np.arange(MOST_DELAYS) + 0.5) / MOST_DELAYS).tolist()
            msgspec.structs.force_setattr(self, "delays", tuple(own))
            msgspec.structs.force_setattr(self, "mean", math.fsum(own) / len(own))
        msgspec.structs.force_setattr(self, "mean", real("mean", self.mean, least=0))
        msgspec.structs.force_setattr(self, "sigma", real("sigma", self.sigma, least=0))
        msgspec.structs.force_setattr(self, "missing", real("missing", self.missing, least=0, most=1))

    def __str__(self) -> str:
        name = f"{self.kind}, σ = {self.sigma:g}" if self.kind == "lognormal" else self.kind
        if self.delays:
            name = f"{len(self.delays):,} measured delays"
        return f"{name}, {100 * self.missing:g}% never" if self.missing else name

    @classmethod
    def measured(cls, delays: Sequence[float], missing: float = 0.0) -> LabelDelay:
        """Return the law of delays that were measured, such as those of past loans.

        Parameters
        ----------
        delays : sequence of float
            The delays of labels that came, in arrivals or in years. More than 2,000 are replaced by their quantiles.
        missing : float
            The share of labels that never come.

        Returns
        -------
        LabelDelay
            The law.

        Examples
        --------
        >>> law = LabelDelay.measured([0.1, 0.1, 0.4, 3.4])
        >>> round(law.mean, 6), round(law.effective_delay(0.1), 3)
        (1.0, 0.951)
        """
        return cls("measured", missing=missing, delays=tuple(listed("delays", delays, "a list of delays")))

    def effective_delay(self, discount_rate: float) -> float:
        """Return the mean of the exponential law whose labels are worth as much.

        A label that comes after d years is worth e^(−rd) of one that comes at once, and one that never comes is worth
        nothing. ``Delayed(…, label_delay=law.effective_delay(discount_rate))`` gives limits for this law.

        Parameters
        ----------
        discount_rate : float
            The discount rate r per unit of time, above 0.

        Returns
        -------
        float
            The mean delay (1/L − 1)/r with L the mean of e^(−rd); infinite if no label ever comes.

        Examples
        --------
        >>> round(LabelDelay("exponential", mean=2).effective_delay(0.1), 6)
        2.0
        >>> round(LabelDelay("fixed", mean=2).effective_delay(0.1), 3)
        2.214
        >>> round(LabelDelay("exponential", mean=1, missing=0.1).effective_delay(0.1), 3)
        2.222
        """
        rate = real("discount_rate", discount_rate, above=0)
        if self.kind == "never" or self.missing == 1.0:
            return math.inf
        if self.kind == "exponential":
            worth = 1.0 / (1.0 + rate * self.mean)
        elif self.kind == "lognormal" and self.mean > 0.0:
            from scipy.special import ndtri

            normal = ndtri((np.arange(20_000) + 0.5) / 20_000)
            centre = math.log(self.mean) - 0.5 * self.sigma**2
            worth = float(np.mean(np.exp(-rate * np.exp(centre + self.sigma * normal))))
        else:
            each = self.delays or (0.0 if self.kind == "none" else self.mean,)
            worth = math.fsum(math.exp(-rate * delay) for delay in each) / len(each)
        return (1.0 / ((1.0 - self.missing) * worth) - 1.0) / rate

    @property
    def prompt(self) -> bool:
        """Whether every label is known before the next arrival."""
        if self.delays:
            return self.delays[-1] <= 1.0 and self.missing == 0
        soon = self.kind == "none" or (self.kind != "never" and self.mean <= (1.0 if self.kind == "fixed" else 0.0))
        return soon and self.missing == 0

    @property
    def all_come(self) -> bool:
        """Whether every label comes in the end."""
        return self.kind != "never" and self.missing == 0

    @property
    def for_kernels(self) -> tuple[int, float, float, float, NDArray[np.float64]]:
        """The first five arguments of :func:`delay_of`."""
        mean = 0.0 if self.kind == "none" else self.mean
        return KINDS.index(self.kind), mean, self.sigma, self.missing, np.array(self.delays, dtype=np.float64)

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
        elif self.delays:
            delay = np.array(self.delays)[(chance * len(self.delays)).astype(np.int64)]
        else:
            delay = np.full(chance.size, self.mean if self.kind == "fixed" else 0.0)
        delay = np.where(missing < self.missing, float(horizon + 1), delay)
        return np.clip(np.ceil(delay), 1, horizon + 1).astype(np.int64)


@compiled
def delay_of(
    kind: int,
    mean: float,
    sigma: float,
    missing: float,
    measured: NDArray[np.float64],
    chance: float,
    second: float,
    lost: float,
) -> float:
    """Draw one delay from three numbers strictly between 0 and 1; infinite for a label that never comes.

    A lognormal delay takes two of the numbers (Box and Muller 1958), because kernels have no inverse of the normal
    distribution.
    """
    if kind == _NEVER or lost < missing:
        return math.inf
    if kind == _MEASURED:
        return float(measured[int(chance * measured.size)])
    if kind == _EXPONENTIAL:
        return -mean * math.log(chance)
    if kind == _LOGNORMAL:
        normal = math.sqrt(-2.0 * math.log(chance)) * math.cos(2.0 * math.pi * second)
        return mean * math.exp(sigma * normal - 0.5 * sigma * sigma)
    return mean
