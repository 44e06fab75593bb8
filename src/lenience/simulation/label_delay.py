"""LabelDelay: how many arrivals go by before the outcome of an acceptance is known."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.validation import real

KINDS = ("none", "exponential", "fixed", "lognormal", "never")


class LabelDelay(msgspec.Struct, frozen=True):
    """A delay in arrivals: none, exponential, fixed or lognormal of a mean, or never; ``missing`` is the share of
    labels that never come whatever the kind, and ``sigma`` the standard deviation of a lognormal delay's logarithm.

    A label that takes a delay d is known to the policy at the first arrival at least d, and at least one, later.

    >>> LabelDelay("fixed", mean=20).lags(np.array([0.5]), np.array([0.5]), horizon=100)
    array([20])
    """

    kind: str = "none"
    mean: float = 0.0
    sigma: float = 1.0
    missing: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError.unknown_name("kind", self.kind, KINDS)
        msgspec.structs.force_setattr(self, "mean", real("mean", self.mean, least=0))
        msgspec.structs.force_setattr(self, "sigma", real("sigma", self.sigma, above=0))
        msgspec.structs.force_setattr(self, "missing", real("missing", self.missing, least=0, most=1))

    @property
    def prompt(self) -> bool:
        """Whether every label is known before the next arrival."""
        soon = self.kind == "none" or (self.kind != "never" and self.mean <= (1.0 if self.kind == "fixed" else 0.0))
        return soon and self.missing == 0

    def lags(self, chance: NDArray[np.float64], missing: NDArray[np.float64], horizon: int) -> NDArray[np.int64]:
        """Whole numbers of arrivals, by inversion; beyond the horizon all are alike."""
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
