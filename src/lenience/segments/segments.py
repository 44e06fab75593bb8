"""Segment and Segments: the population divided into cells, each of which is a homogeneous problem of its own.

The model. Individuals arrive one by one; each belongs to segment x with probability q_x (its share), independently.
Accepting one of x teaches about x alone, and decisions in other segments change nothing for x, so the expectation in
the paper's objective divides into one problem a segment. Within x the next member comes after a geometric wait W with
P(W = w) = q(1 − q)^(w−1), and

    γ_x = E γ^W = γq/(1 − γ + γq),

so x's own problem has the discount factor γ_x: rarer segments discount harder. As seen before anyone arrives, x's first
member comes after W − 1 others, which counts E γ^(W−1) = q/(1 − γ + γq). Hence the value of the whole is

    Σ_x q_x/(1 − γ + γq_x) · V_{γ_x}(n_x, s_x).

What is promised: running each segment's optimal policy at γ_x is optimal for the whole, and its value is enclosed.
Using γ itself in every segment is a mistake: it explores rare segments as if they were the whole population.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError, refusal
from lenience.core.objective import Objective
from lenience.core.validation import listed, mapped, real
from lenience.objectives.discounted import Discounted

if TYPE_CHECKING:
    from lenience.segments.policies import SegmentPolicies

Entry = TypeVar("Entry")
RATES = "a mapping of names to arrivals"


class Segment(msgspec.Struct, frozen=True):
    """A cell of the population: its share of the arrivals, what is known of it, and what is to be maximised.

    ``objective`` is that of the whole population, with this segment's cost (a larger loan may have a higher one).

    >>> segment = Segment("young", share=0.1, objective=Discounted(cost=0.8, discount=0.999), prior=Belief(2, 1))
    >>> round(segment.own.discount, 6), round(segment.volume, 1)
    (0.990089, 99.9)
    """

    name: str
    share: float
    objective: Objective
    prior: Belief
    group: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise refusal("name", self.name, "a text that is not empty")
        msgspec.structs.force_setattr(self, "share", real(f"share of {self.name}", self.share, above=0, most=1))
        if not isinstance(self.objective, Objective) or not self.objective.divisible:
            raise refusal("objective", self.objective, "an objective that segments can share, such as Discounted")
        check_prior(self.prior)
        if not isinstance(self.group, str):
            raise refusal("group", self.group, "a text")

    @property
    def own(self) -> Any:
        """The segment's own objective, at its effective discount factor γ_x."""
        return self.objective.for_share(self.share)

    @property
    def weight(self) -> float:
        """What the value of the segment's own problem counts in the value of the whole."""
        return self.objective.weight_of_share(self.share)

    @property
    def volume(self) -> float:
        """γq/(1 − γ): the discounted number of the segment's members to come."""
        return self.share * self.objective.volume


class Segments:
    """The cells of a population, by name.

    >>> segments = Segments.of({"north": 0.7, "south": 0.3}, Discounted(cost=0.8, discount=0.999), Belief(2, 1))
    >>> policies = segments.solve()
    >>> print(policies.value())
    16.4053048... ± ...
    >>> policies["south"].accepts(Belief(10, 7))
    True
    """

    def __init__(self, cells: Iterable[Segment]) -> None:
        self.cells: tuple[Segment, ...] = tuple(listed("cells", cells, "a list of Segment"))
        for cell in self.cells:
            if not isinstance(cell, Segment):
                raise refusal("cells", cell, "a list of Segment")
        if not self.cells:
            raise InputError("segments must be at least one, not none")
        self._index = {cell.name: i for i, cell in enumerate(self.cells)}
        if len(self._index) < len(self.cells):
            names = [cell.name for cell in self.cells]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"the names of segments must differ, and {twice!r} is there twice")
        total = sum(cell.share for cell in self.cells)
        if total > 1.0 + 1e-9:
            raise InputError(f"shares must add up to at most 1, not {total!r}")

    @classmethod
    def of(
        cls,
        shares: Mapping[str, float],
        objective: Objective | Mapping[str, Objective],
        prior: Belief | Mapping[str, Belief],
        groups: Mapping[str, str] | None = None,
    ) -> Segments:
        """From shares by name; the objective and the prior are the same for all, or given by name.

        Groups, if any, are given for every segment.
        """
        of_group: str | Mapping[str, str] = groups or ""
        known = mapped("shares", shares, "a mapping of names to shares")
        for name in mapped("groups", groups or {}, "a mapping of segments to groups"):
            if name not in known:
                raise InputError(f"groups must be of segments that have a share, and {name!r} has none")
        return cls(
            Segment(
                name,
                share,
                _own(objective, name, "objective"),
                _own(prior, name, "prior"),
                _own(of_group, name, "groups"),
            )
            for name, share in known.items()
        )

    @classmethod
    def from_rates(
        cls,
        arrivals: Mapping[str, float],
        cost: float | Mapping[str, float],
        discount_rate: float,
        prior: Belief | Mapping[str, Belief],
        groups: Mapping[str, str] | None = None,
    ) -> Segments:
        """From each segment's arrivals per unit of time and a discount rate: γ = λ/(λ + r), q_x = λ_x/λ.

        >>> cells = Segments.from_rates({"a": 40, "b": 10}, cost=0.8, discount_rate=0.1, prior=Belief(2, 1))
        >>> own = Discounted.from_rates(0.8, arrivals=10, discount_rate=0.1)
        >>> abs(cells["b"].own.discount - own.discount) < 1e-15
        True
        """
        rates = {
            name: real(f"arrivals of {name}", rate, above=0)
            for name, rate in mapped("arrivals", arrivals, RATES).items()
        }
        total = sum(rates.values())
        money = real("discount_rate", discount_rate, above=0)
        objectives = {name: Discounted(_own(cost, name, "cost"), discount=total / (total + money)) for name in rates}
        return cls.of({name: rate / total for name, rate in rates.items()}, objectives, prior, groups)

    def solve(
        self, rows: int | None = None, tolerance: float = 1e-9, allowed_loss: float = 0.0, workers: int | None = None
    ) -> SegmentPolicies:
        """The optimal policy of every segment.

        Segments whose own objective and prior agree share one table, and the tables are computed on all cores. With an
        ``allowed_loss`` of, say, 0.001, segments whose discounted volumes nearly agree share a table too: each then
        earns at most that share of its clairvoyant's value less than its optimum (the bound of
        :mod:`lenience.segments.staleness`).
        """
        from lenience.segments.policies import solve_segments

        return solve_segments(self, rows, tolerance, allowed_loss, workers)

    def with_shares(self, shares: Mapping[str, float]) -> Segments:
        """The same segments with other shares; those not named keep theirs."""
        return Segments(
            msgspec.structs.replace(cell, share=shares.get(cell.name, cell.share)) for cell in self._known(shares)
        )

    def with_priors(self, priors: Mapping[str, Belief]) -> Segments:
        """The same segments with other priors; those not named keep theirs."""
        return Segments(
            msgspec.structs.replace(cell, prior=priors.get(cell.name, cell.prior)) for cell in self._known(priors)
        )

    @property
    def names(self) -> list[str]:
        """The names of the segments, in order."""
        return list(self._index)

    @property
    def groups(self) -> list[str]:
        """The groups there are, in order of appearance."""
        return list(dict.fromkeys(cell.group for cell in self.cells))

    def __getitem__(self, name: str) -> Segment:
        if name not in self._index:
            raise refusal("segment", name, f"one of the {len(self.cells):,} segments, such as {self.cells[0].name!r}")
        return self.cells[self._index[name]]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __repr__(self) -> str:
        return f"Segments({len(self.cells):,} cells: {', '.join(self.names[:3])}{', …' if len(self) > 3 else ''})"

    def _known(self, changes: Mapping[str, object]) -> tuple[Segment, ...]:
        for name in changes:
            self[name]
        return self.cells


def _own(given: Entry | Mapping[str, Entry], name: str, field: str) -> Entry:
    if not isinstance(given, Mapping):
        return given
    if name not in given:
        raise InputError(f"{field} must be given for every segment, and {name!r} has none")
    entry: Entry = given[name]
    return entry
