"""What every objective of the homogeneous problem can do."""

from __future__ import annotations

from typing import Protocol

from lenience.belief import Belief
from lenience.bounds import Bounds
from lenience.errors import real, refusal


class StoppingObjective(Protocol):
    """An objective whose optimum is to accept until, at some belief, one stops for good."""

    def __hash__(self) -> int:
        """Objectives are values: answers about them are kept for the next time they are asked."""

    @property
    def cost(self) -> float:
        """The break-even success rate."""

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """The value at a belief, and the value of accepting there and being optimal afterwards."""

    def after(self, acceptances: int) -> StoppingObjective | None:
        """The objective that is left after so many acceptances; nothing where the horizon is over."""


def check_cost(cost: object) -> float:
    """The cost as a float, or an error."""
    return real("cost", cost, above=0, below=1)


def check_tolerance(tolerance: object) -> float:
    """The tolerance as a float, or an error."""
    return real("tolerance", tolerance, above=0, most=1)


def check_prior(prior: object, field: str = "prior") -> Belief:
    """The prior, or an error that says what it must be."""
    if not isinstance(prior, Belief):
        raise refusal(field, prior, "a Belief, such as Belief(n=2, s=1)")
    return prior
