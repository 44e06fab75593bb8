"""Segment and Segments: the population divided into cells, each a separate homogeneous problem.

The model. Individuals arrive one by one; each belongs to segment x with probability q_x (its share), independently.
Accepting a member of x teaches only about x, and decisions in other segments change nothing for x. So the expectation
in the paper's objective splits into one problem per segment. Within x the next member comes after a geometric wait W
with P(W = w) = q(1 − q)^(w−1), and

    γ_x = E γ^W = γq/(1 − γ + γq),

so the problem of x has the discount factor γ_x: rarer segments have a stronger discount. Before anyone arrives, the
first member of x comes after W − 1 others, which gives a factor of E γ^(W−1) = q/(1 − γ + γq). So the value of the
whole population is

    Σ_x q_x/(1 − γ + γq_x) · V_{γ_x}(n_x, s_x).

Guarantee: running each segment's optimal policy at γ_x is optimal for the whole population, and bounds of its value are
proved. Using γ itself in every segment would be a mistake: it explores rare segments as if they were the whole
population.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ABSENT, Objective, one_break_even
from lenience.core.offers import Offers
from lenience.core.validation import listed, mapped, real
from lenience.objectives.discounted import Discounted

if TYPE_CHECKING:
    from lenience.segments.policies import SegmentPolicies

Entry = TypeVar("Entry")
RATES = "a mapping of names to arrivals"


class Segment(msgspec.Struct, frozen=True):
    """A cell of the population: its share of the arrivals, its belief and its objective.

    Parameters
    ----------
    name
        The name of the segment.
    share
        Its share of the arrivals, above 0 and at most 1.
    objective
        The objective of the whole population, with this segment's cost (e.g. larger loans may have a higher one) or
        with the offers that its members bring.
    prior
        What is known of its success probability: a Belief, or a MixtureBelief for a prior that may be wrong.
    group
        The group it belongs to, for comparisons between groups; empty for no group.

    Examples
    --------
    >>> segment = Segment("low score", share=0.1, objective=Discounted(cost=0.8, discount=0.999), prior=Belief(2, 1))
    >>> round(segment.own.discount, 6), round(segment.volume, 1)
    (0.990089, 99.9)
    >>> loans = Offers(amount=[500, 5000], cost=[0.8, 0.75], currency="$")
    >>> Segment("low score", 0.1, Discounted(offers=loans, discount=0.999), Belief(2, 1)).currency
    '$'
    """

    name: str
    share: float
    objective: Objective
    prior: Belief | MixtureBelief
    group: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("name", self.name, "text that is not empty")
        share = real("share", self.share, above=0, most=1, label=f"share of {self.name}")
        msgspec.structs.force_setattr(self, "share", share)
        if not isinstance(self.objective, Objective) or not self.objective.divisible:
            raise InputError("objective", self.objective, "an objective that segments can share, such as Discounted")
        if not isinstance(self.prior, MixtureBelief):
            check_prior(self.prior)
        if not isinstance(self.group, str):
            raise InputError("group", self.group, "a text")

    @property
    def own(self) -> Any:
        """The segment's own objective, at its effective discount factor γ_x."""
        return self.objective.for_share(self.share)

    @property
    def weight(self) -> float:
        """The weight of the segment's own value in the value of the whole population."""
        return self.objective.weight_of_share(self.share)

    @property
    def volume(self) -> float:
        """γq/(1 − γ): the discounted number of the segment's members to come."""
        return self.share * self.objective.volume

    @property
    def break_even(self) -> float:
        """The break-even success rate of accepting everyone: the cost, or that of all offers together."""
        return self.objective.offers.mean_cost if self.objective.offers else self.objective.cost

    @property
    def currency(self) -> str:
        """The currency of the segment's values; empty if they have none."""
        return self.objective.offers.currency if self.objective.offers else ""


class Segments:
    """The cells of a population, by name.

    Parameters
    ----------
    cells
        The segments. Names must be different, and the shares add up to at most 1.

    Raises
    ------
    InputError
        If there is no segment, a name occurs twice, the shares add up to more than 1, or the currencies differ.

    Examples
    --------
    >>> segments = Segments.of({"north": 0.7, "south": 0.3}, Discounted(cost=0.8, discount=0.999), Belief(2, 1))
    >>> policies = segments.solve()
    >>> print(policies.value())
    16.4053048... ± ...
    >>> policies["south"].accepts(Belief(10, 7))
    True

    Each segment may have offers of its own. Values are then in money:

    >>> from lenience import Offer
    >>> offers = {"north": Offers([500, 5000], [0.8, 0.8], currency="$"), "south": Offers([300], [0.7], currency="$")}
    >>> objectives = {name: Discounted(offers=own, discount=0.99) for name, own in offers.items()}
    >>> policies = Segments.of({"north": 0.7, "south": 0.3}, objectives, Belief(2, 1)).solve()
    >>> policies.accepts("north", offer=Offer(500, 0.8)), policies.accepts("north", offer=Offer(5000, 0.8))
    (True, False)
    >>> round(policies.value().midpoint)
    2685
    """

    def __init__(self, cells: Iterable[Segment]) -> None:
        self.cells: tuple[Segment, ...] = tuple(listed("cells", cells, "a list of Segment"))
        for cell in self.cells:
            if not isinstance(cell, Segment):
                raise InputError("cells", cell, "a list of Segment")
        if not self.cells:
            raise InputError.because("must contain at least one segment", "segments", code="missing")
        self._index = {cell.name: i for i, cell in enumerate(self.cells)}
        if len(self._index) < len(self.cells):
            names = [cell.name for cell in self.cells]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError.because(
                f"must have different names; {twice!r} occurs twice", "segments", value=twice, code="duplicate"
            )
        total = sum(cell.share for cell in self.cells)
        if total > 1.0 + 1e-9:
            raise InputError.because(
                f"must add up to at most 1, not {total!r}", "shares", value=total, allowed="at most 1 together"
            )
        currencies = {cell.currency: cell.name for cell in self.cells}
        if len(currencies) > 1:
            shown = " and ".join(f"{sign!r} in {name!r}" for sign, name in list(currencies.items())[:2])
            raise InputError.because(
                f"must have the same currency, because their values add up; found {shown}",
                "segments",
                value=list(currencies),
                code="conflicting_fields",
            )

    @classmethod
    def of(
        cls,
        shares: Mapping[str, float],
        objective: Objective | Mapping[str, Objective],
        prior: Belief | MixtureBelief | Mapping[str, Belief | MixtureBelief],
        groups: Mapping[str, str] | None = None,
    ) -> Segments:
        """Create segments from their shares.

        Parameters
        ----------
        shares : mapping
            The share of the arrivals by segment.
        objective : Objective or mapping
            The objective of the whole population; by segment if costs or offers differ.
        prior : Belief, MixtureBelief or mapping
            The belief about every segment, or the belief by segment.
        groups : mapping, optional
            The group of every segment.

        Returns
        -------
        Segments
            The segments.

        Raises
        ------
        InputError
            If a segment lacks an objective, a prior or a group, or if a group belongs to an unknown segment.

        Examples
        --------
        >>> Segments.of({"north": 0.7, "south": 0.3}, Discounted(cost=0.8, discount=0.999), Belief(2, 1))
        Segments(2 cells: north, south)
        """
        of_group: str | Mapping[str, str] = groups or ""
        known = mapped("shares", shares, "a mapping of names to shares")
        for name in mapped("groups", groups or {}, "a mapping of segments to groups"):
            if name not in known:
                raise InputError.because(
                    f"must belong to segments with a share; {name!r} has no share",
                    "groups",
                    value=name,
                    code="unknown_name",
                )
        cells = []
        for name, share in known.items():
            own_prior: Any = _own(prior, name, "prior")
            cells.append(
                Segment(name, share, _own(objective, name, "objective"), own_prior, _own(of_group, name, "groups"))
            )
        return cls(cells)

    @classmethod
    def from_rates(
        cls,
        arrivals: Mapping[str, float],
        cost: float | Mapping[str, float] | None = None,
        discount_rate: float = ABSENT,
        prior: Belief | MixtureBelief | Mapping[str, Belief | MixtureBelief] = ABSENT,
        groups: Mapping[str, str] | None = None,
        offers: Offers | Mapping[str, Offers] | None = None,
    ) -> Segments:
        """Create segments from arrivals per unit of time and a discount rate: γ = λ/(λ + r), q_x = λ_x/λ.

        Parameters
        ----------
        arrivals : mapping
            The arrivals per unit of time by segment.
        cost : float or mapping, optional
            The break-even success rate, for all segments or by segment.
        discount_rate : float
            The discount rate per unit of time.
        prior : Belief, MixtureBelief or mapping
            The belief about every segment, or the belief by segment.
        groups : mapping, optional
            The group of every segment.
        offers : Offers or mapping, optional
            The offers that arrivals bring, instead of the cost: for all segments or by segment.

        Returns
        -------
        Segments
            The segments, with Discounted objectives.

        Raises
        ------
        InputError
            If a rate is invalid, if a segment lacks a cost, offers, a prior or a group, or if both a cost and offers
            are given.

        Examples
        --------
        >>> cells = Segments.from_rates({"a": 40, "b": 10}, cost=0.8, discount_rate=0.1, prior=Belief(2, 1))
        >>> own = Discounted.from_rates(0.8, arrivals=10, discount_rate=0.1)
        >>> abs(cells["b"].own.discount - own.discount) < 1e-15
        True
        """
        rates = {
            name: real("arrivals", rate, above=0, label=f"arrivals of {name}")
            for name, rate in mapped("arrivals", arrivals, RATES).items()
        }
        total = sum(rates.values())
        money = real("discount_rate", discount_rate, above=0)
        objectives = {
            name: Discounted(
                ABSENT if cost is None else _own(cost, name, "cost"),
                discount=total / (total + money),
                offers=_own(offers, name, "offers"),
            )
            for name in rates
        }
        return cls.of({name: rate / total for name, rate in rates.items()}, objectives, prior, groups)

    def solve(
        self,
        rows: int | None = None,
        tolerance: float = 1e-9,
        allowed_loss: float = 0.0,
        workers: int | None = None,
        seconds: float | None = None,
    ) -> SegmentPolicies:
        """Solve for the optimal policy of every segment, on all cores.

        Segments whose own objective and prior are equal share one table. With offers, a segment with many members to
        come has the table of a smaller volume, because a solve would take too long. The bounds of its value are proved
        for its own volume, and wider where little is known.

        Parameters
        ----------
        rows : int, optional
            The number of rows of each table; by default as many as matter, at most 1,000. Tables grow on demand.
        tolerance : float
            The precision of the values, in units of reward.
        allowed_loss : float
            If above 0, e.g. 0.001, segments with similar discounted volumes share a table too. Each then earns at most
            this share of its clairvoyant value less than its optimum (:mod:`lenience.segments.staleness`).
        workers : int, optional
            The number of threads; by default one for each core.
        seconds : float, optional
            The longest time to allow for one segment, in seconds and by estimate. A segment that needs more gets wider
            bounds. By default there is no such limit.

        Returns
        -------
        SegmentPolicies
            The policies by segment.

        Examples
        --------
        >>> cells = Segments.of({"a": 0.5, "b": 0.25, "c": 0.25}, Discounted(0.8, 0.99), Belief(2, 1))
        >>> cells.solve()
        SegmentPolicies(3 segments, 2 tables)
        """
        from lenience.segments.policies import solve_segments

        return solve_segments(self, rows, tolerance, allowed_loss, workers, seconds)

    def with_shares(self, shares: Mapping[str, float]) -> Segments:
        """Return the same segments with other shares.

        Parameters
        ----------
        shares : mapping
            The new shares by segment; the others stay as they are.

        Returns
        -------
        Segments
            The segments.

        Raises
        ------
        InputError
            If a segment is unknown, or if the shares add up to more than 1.

        Examples
        --------
        >>> cells = Segments.of({"a": 0.5, "b": 0.25}, Discounted(0.8, 0.99), Belief(2, 1))
        >>> cells.with_shares({"b": 0.3})["b"].share
        0.3
        """
        return Segments(
            msgspec.structs.replace(cell, share=shares.get(cell.name, cell.share)) for cell in self._known(shares)
        )

    def with_priors(self, priors: Mapping[str, Belief | MixtureBelief]) -> Segments:
        """Return the same segments with other priors.

        Parameters
        ----------
        priors : mapping
            The new priors by segment; the others stay as they are.

        Returns
        -------
        Segments
            The segments.

        Raises
        ------
        InputError
            If a segment is unknown.

        Examples
        --------
        >>> cells = Segments.of({"a": 0.5, "b": 0.25}, Discounted(0.8, 0.99), Belief(2, 1))
        >>> cells.with_priors({"b": Belief(10, 7)})["b"].prior
        Belief(n=10.0, s=7.0)
        """
        return Segments(
            msgspec.structs.replace(cell, prior=priors.get(cell.name, cell.prior)) for cell in self._known(priors)
        )

    @property
    def names(self) -> list[str]:
        """The names of the segments, in order."""
        return list(self._index)

    @property
    def currency(self) -> str:
        """The currency of the values; empty if they have none."""
        return self.cells[0].currency

    @property
    def groups(self) -> list[str]:
        """The groups, in order of appearance."""
        return list(dict.fromkeys(cell.group for cell in self.cells))

    def __getitem__(self, name: str) -> Segment:
        if name not in self._index:
            raise InputError(
                "segment", name, f"one of the {len(self.cells):,} segments, such as {self.cells[0].name!r}"
            )
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
        """Return the cells, after checking that all names are known."""
        for name in changes:
            self[name]
        return self.cells


def plain_belief(cell: Segment, feature: str) -> Belief:
    """Return the prior of a segment with one break-even and one belief.

    Parameters
    ----------
    cell : Segment
        The segment.
    feature : str
        What needs it, as the subject of a sentence.

    Returns
    -------
    Belief
        The prior.

    Raises
    ------
    InputError
        If the segment has offers, or if its prior is a mixture.

    Examples
    --------
    >>> plain_belief(Segment("a", 0.5, Discounted(0.8, 0.99), Belief(2, 1)), "fairness")
    Belief(n=2.0, s=1.0)
    """
    one_break_even(cell.objective, feature)
    return check_prior(cell.prior)


def _own(given: Entry | Mapping[str, Entry], name: str, field: str) -> Entry:
    """Return the entry of a segment from one value for all or a mapping by name."""
    if not isinstance(given, Mapping):
        return given
    if name not in given:
        raise InputError.because(
            f"must be given for every segment; it is missing for {name!r}", field, value=name, code="missing"
        )
    entry: Entry = given[name]
    return entry
