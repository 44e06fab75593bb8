"""Bounds(lower, upper): a number that is proved to lie in an interval."""

from __future__ import annotations

import math

import msgspec


class Bounds(msgspec.Struct, frozen=True):
    """Hold proved bounds of a number: its exact value lies between them.

    Parameters
    ----------
    lower : float
        The exact number is at least this.
    upper : float
        The exact number is at most this.

    Examples
    --------
    >>> value = Bounds(1.02916652, 1.02916655)
    >>> value.width < 1e-7, 1.02916653 in value
    (True, True)
    >>> print(value)
    1.029166535 ± 1.5e-08
    >>> print(Bounds(math.inf, math.inf))
    ∞
    """

    lower: float
    upper: float

    @property
    def midpoint(self) -> float:
        """The best single estimate."""
        return self.lower if self.lower == self.upper else self.lower + (self.upper - self.lower) / 2

    @property
    def width(self) -> float:
        """How far apart the bounds are."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __contains__(self, number: float) -> bool:
        return self.lower <= number <= self.upper

    def scaled(self, factor: float) -> Bounds:
        """Return the bounds of this number times a factor, rounded outwards.

        Parameters
        ----------
        factor : float
            A number that is at least 0.

        Returns
        -------
        Bounds
            The scaled bounds.

        Examples
        --------
        >>> Bounds(1.0, 2.0).scaled(0.0)
        Bounds(lower=0.0, upper=0.0)
        """
        if factor == 0:
            return Bounds(0.0, 0.0)
        return Bounds(math.nextafter(self.lower * factor, -math.inf), math.nextafter(self.upper * factor, math.inf))

    def __str__(self) -> str:
        half = self.width / 2
        if self.lower == math.inf:
            return "∞"
        if half == 0:
            return f"{self.lower:.10g}"
        if not math.isfinite(half):
            return f"[{self.lower}, {self.upper}]"
        decimals = min(max(0, 1 - math.floor(math.log10(half))), 15)
        return f"{self.midpoint:.{decimals}f} ± {half:.2g}"
