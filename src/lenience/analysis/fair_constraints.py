"""What a fair optimum must keep: parity of acceptance, equal opportunity, or floors that only raise.

Each constraint limits one rate of each group: *acceptance*, the discounted share of its members that are accepted, or
*opportunity*, the same share of those who would succeed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.formatting import percent
from lenience.core.validation import real

Measure = Literal["acceptance", "opportunity"]
MEASURES: tuple[Measure, ...] = ("acceptance", "opportunity")
WORDS: dict[Measure, str] = {"acceptance": "acceptance rates", "opportunity": "acceptance rates of those who succeed"}


class Parity(msgspec.Struct, frozen=True, tag="parity", tag_field="type", forbid_unknown_fields=True):
    """Groups have acceptance rates within ``within`` of each other.

    Parameters
    ----------
    within
        The largest difference between two groups, from 0 to 1.
    raise_only
        Whether no group's rate may be lower than without the constraint. By default the higher rates may fall.

    Examples
    --------
    >>> Parity(within=0.05).describe()
    'acceptance rates within 5 points'
    """

    within: float
    raise_only: bool = False

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "within", real("within", self.within, least=0, most=1))

    @property
    def measure(self) -> Measure:
        """The rate that is limited."""
        return "acceptance"

    def describe(self) -> str:
        """Return the constraint in words.

        Returns
        -------
        str
            The limit, without a subject.
        """
        return _describe_spread(self)


class EqualOpportunity(
    msgspec.Struct, frozen=True, tag="equal_opportunity", tag_field="type", forbid_unknown_fields=True
):
    """Those who would succeed have acceptance rates within ``within`` of each other in all groups.

    Parameters
    ----------
    within
        The largest difference between two groups, from 0 to 1.
    raise_only
        Whether no group's rate may be lower than without the constraint, as for :class:`Parity`.

    Examples
    --------
    >>> EqualOpportunity(within=0, raise_only=True).describe()
    'acceptance rates of those who succeed within 0 points and no rate lowered'
    """

    within: float
    raise_only: bool = False

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "within", real("within", self.within, least=0, most=1))

    @property
    def measure(self) -> Measure:
        """The rate that is limited."""
        return "opportunity"

    def describe(self) -> str:
        """Return the constraint in words.

        Returns
        -------
        str
            The limit, without a subject.
        """
        return _describe_spread(self)


class Floors(msgspec.Struct, frozen=True, tag="floors", tag_field="type", forbid_unknown_fields=True):
    """Groups have at least a given rate. Nobody's rate is lowered for it.

    Parameters
    ----------
    rates
        The lowest rate, from 0 to 1: one for all groups, or by group. Groups without one are free.
    measure
        "acceptance", or "opportunity" for the rate of those who would succeed.

    Examples
    --------
    >>> Floors({"south": 0.3}).describe()
    'acceptance rates of at least 30% (south)'
    """

    rates: float | dict[str, float]
    measure: Measure = "acceptance"

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InputError("measure", self.measure, " or ".join(map(repr, MEASURES)))
        set_ = msgspec.structs.force_setattr
        if not isinstance(self.rates, Mapping):
            set_(self, "rates", real("rates", self.rates, least=0, most=1))
            return
        rates = {
            group: real("rates", rate, least=0, most=1, label=f"floor of {group}") for group, rate in self.rates.items()
        }
        if not rates:
            raise InputError("rates", self.rates, "one rate for all groups, or a rate for at least one group")
        set_(self, "rates", rates)

    def describe(self) -> str:
        """Return the constraint in words.

        Returns
        -------
        str
            The limit, without a subject.
        """
        rates = self.rates
        shown = (
            ", ".join(f"{percent(rate)} ({group})" for group, rate in rates.items())
            if isinstance(rates, dict)
            else percent(rates)
        )
        return f"{WORDS[self.measure]} of at least {shown}"


Constraint = Parity | EqualOpportunity | Floors


class Limits(NamedTuple):
    """A constraint on the rates A of the groups: ``matrix`` A + ``level`` ℓ ≤ ``bound`` for some ℓ from 0 to 1."""

    matrix: NDArray[np.float64]
    level: NDArray[np.float64]
    bound: NDArray[np.float64]

    def violation(self, rates: Sequence[Bounds]) -> float:
        """Return by how much rates in these bounds may exceed the limits, at most; 0 if they provably keep them."""
        lower, upper = np.array([rate.lower for rate in rates]), np.array([rate.upper for rate in rates])
        level = min(lower) if self.level.any() else 0.0
        most = np.maximum(self.matrix, 0.0) @ upper + np.minimum(self.matrix, 0.0) @ lower + self.level * level
        return float(max(np.max(most - self.bound), 0.0))


def limits_of(constraint: Constraint, groups: Sequence[str], without: Sequence[Bounds]) -> Limits:
    """Return a constraint as inequalities, given the groups and their rates without it."""
    if not isinstance(constraint, Floors):
        return _spread(constraint, without)
    rates = constraint.rates
    if not isinstance(rates, dict):
        return _floors(np.full(len(groups), rates))
    for group in rates:
        if group not in groups:
            raise InputError.unknown_name("rates", group, groups, "the groups")
    return _floors(np.array([rates.get(group, 0.0) for group in groups]))


def _spread(constraint: Parity | EqualOpportunity, without: Sequence[Bounds]) -> Limits:
    """Return ℓ ≤ A_g ≤ ℓ + d for a level ℓ, and the rates without the constraint as floors if none may fall."""
    count = len(without)
    eye = np.eye(count)
    limits = Limits(
        np.vstack([eye, -eye]),
        np.concatenate([-np.ones(count), np.ones(count)]),
        np.concatenate([np.full(count, constraint.within), np.zeros(count)]),
    )
    if not constraint.raise_only:
        return limits
    floors = _floors(np.array([rate.lower for rate in without]))
    return Limits(*(np.concatenate(parts) for parts in zip(limits, floors, strict=True)))


def _floors(rates: NDArray[np.float64]) -> Limits:
    """Return A_g ≥ floor, for the groups that have one."""
    chosen = np.flatnonzero(rates > 0.0)
    matrix = np.zeros((chosen.size, rates.size))
    matrix[np.arange(chosen.size), chosen] = -1.0
    return Limits(matrix, np.zeros(chosen.size), -rates[chosen])


def _describe_spread(constraint: Parity | EqualOpportunity) -> str:
    points = f"{100 * constraint.within:.3g} points"
    also = " and no rate lowered" if constraint.raise_only else ""
    return f"{WORDS[constraint.measure]} within {points}{also}"
