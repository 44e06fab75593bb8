"""Objective: what to maximise, and the interface of every objective.

An objective is a frozen msgspec struct that extends one of the classes here. Code elsewhere asks it about behaviour
("does it end?", "do labels come late?") and never for its type, so that a new objective needs no change there.

The concrete objectives are in :mod:`lenience.objectives`, above the policies and the solvers.
:meth:`Objective.from_builtins` reads an objective from JSON by its tag.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.formatting import counted, percent
from lenience.core.money import Money
from lenience.core.offers import Offers, describe_offers
from lenience.core.validation import check_cost

if TYPE_CHECKING:
    from lenience.core.protocols import Policy

# Limits of what is read from JSON. Smaller numbers have no digits left to compute with.
if TYPE_CHECKING:
    from typing import TypeAlias

    Cost: TypeAlias = float
else:  # JSON may have null and offers instead; where there are offers, arithmetic with the cost must fail
    Cost = (
        Annotated[float, Meta(ge=1e-9, lt=1, description="The break-even success rate, strictly between 0 and 1")]
        | None
    )
ABSENT: Any = None
Rate = Annotated[float, Meta(gt=0, le=1e12)]
EXPIRE_DELAYS = 3  # an outcome that has not arrived expires after this many mean delays


class Objective:
    """What to maximise: the base class of every objective.

    The defaults describe an objective without an end whose labels come at once. A subclass is a frozen msgspec struct
    with a tag and a field ``cost``.
    """

    __slots__ = ()

    @property
    def cost(self) -> float:
        """Return the break-even success rate."""
        raise NotImplementedError

    @property
    def offers(self) -> Offers | None:
        """Return the amounts and break-evens that arrivals bring; None if all have the same ``cost``."""
        return None

    @property
    def money(self) -> Money:
        """Return how to show values: in money if there are offers, and otherwise in units of gain + loss."""
        return Money() if self.offers is None else self.offers.money

    @property
    def discount(self) -> float:
        """Return the discount factor from one individual to the next; 1 if nothing is discounted."""
        return 1.0

    @property
    def horizon(self) -> int | None:
        """Return the number of individuals in all; None if there is no end."""
        return None

    @property
    def arrivals(self) -> float | None:
        """Return the arrivals per unit of time; None if the objective counts individuals and not time."""
        return None

    @property
    def discount_rate(self) -> float | None:
        """Return the discount rate per unit of time; None if the objective counts individuals and not time."""
        return None

    @property
    def label_delay(self) -> float:
        """Return the mean delay of a label; 0 if labels come at once."""
        return 0.0

    @property
    def expire_after(self) -> float | None:
        """Return the age at which a label that has not come expires: three mean delays; None if labels come at once.

        Under an exponential delay every label comes. In life some never do, and they would block acceptance for good.
        """
        return EXPIRE_DELAYS * self.label_delay if self.label_delay else None

    @property
    def volume(self) -> float:
        """Return the number of individuals still to come, each counted at its discount."""
        return math.inf

    @property
    def stationary(self) -> bool:
        """Return whether the optimum depends on the belief alone: no end, and no label pending."""
        return False

    @property
    def divisible(self) -> bool:
        """Return whether the value of a population is exactly the sum of its segments' own values."""
        return False

    def discount_at(self, arrival: int) -> float:
        """Return the discount factor from an arrival to the next.

        Parameters
        ----------
        arrival : int
            Number of individuals that came before.

        Returns
        -------
        float
            The factor: 1 if nothing is discounted, 0 after the last arrival.

        Examples
        --------
        >>> from lenience import AverageReward, Discounted
        >>> AverageReward(cost=0.8).discount_at(0), Discounted(cost=0.8, discount=0.99).discount_at(0)
        (1.0, 0.99)
        """
        return self.discount

    def clock(self, arrivals: float) -> float:
        """Return the time by which a number of individuals have come, on average.

        Parameters
        ----------
        arrivals : float
            Number of individuals.

        Returns
        -------
        float
            The time; the number itself if the objective has no rate of arrivals.

        Examples
        --------
        >>> from lenience import Delayed
        >>> Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).clock(100)
        2.0
        """
        return arrivals / self.arrivals if self.arrivals else float(arrivals)

    def with_cost(self, cost: float) -> Self:
        """Return the same objective with another break-even success rate.

        Parameters
        ----------
        cost : float
            The break-even success rate, strictly between 0 and 1.

        Returns
        -------
        Objective
            An objective of the same type.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).with_cost(0.7)
        Discounted(cost=0.7, discount=0.99)
        """
        return msgspec.structs.replace(self, cost=cost)  # type: ignore[type-var]

    def with_offers(self, offers: Offers) -> Self:
        """Return the same objective with other offers, instead of its cost or its own offers.

        Parameters
        ----------
        offers : Offers
            The amounts and break-evens that arrivals bring.

        Returns
        -------
        Objective
            An objective of the same type.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).with_offers(Offers([5.0], [0.7])).offers.amount
        (5.0,)
        """
        return msgspec.structs.replace(self, cost=None, offers=offers)  # type: ignore[type-var]

    def for_share(self, share: float) -> Any:
        """Return the objective of a segment that is a share of the arrivals.

        Parameters
        ----------
        share : float
            Share of the arrivals, above 0 and at most 1.

        Returns
        -------
        Objective
            An objective of the same type.

        Raises
        ------
        InputError
            If the objective cannot be divided into segments.

        Examples
        --------
        >>> from lenience import Delayed
        >>> Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1).for_share(0.2).arrivals
        10.0
        """
        raise InputError("objective", self, "an objective that segments can share, such as Discounted")

    def weight_of_share(self, share: float) -> float:
        """Return the weight of a segment's own value in the value of the whole.

        Parameters
        ----------
        share : float
            Share of the arrivals, above 0 and at most 1.

        Returns
        -------
        float
            The factor by which to multiply the segment's value.

        Examples
        --------
        >>> from lenience import Discounted
        >>> round(Discounted(cost=0.8, discount=0.99).weight_of_share(0.1), 3)
        0.917
        """
        return 1.0

    def remaining(self, acceptances: int) -> Self | None:
        """Return what is left of the objective after a number of acceptances.

        Parameters
        ----------
        acceptances : int
            Number of individuals accepted so far.

        Returns
        -------
        Objective or None
            An objective of the same type; None if the horizon is over.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> objective = FiniteHorizon(cost=0.8, horizon=100)
        >>> objective.remaining(40).horizon, objective.remaining(100)
        (60, None)
        """
        return self

    def solve(self, prior: Belief) -> Any:
        """Return the optimal policy.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.

        Returns
        -------
        object
            A policy; its type depends on the objective.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1), rows=10)
        OptimalPolicy(Discounted(cost=0.8, discount=0.99), prior=Belief(n=2.0, s=1.0), rows=10)
        """
        raise NotImplementedError

    def solve_seconds(self, prior: Belief, rows: int = 1000, tolerance: float = 1e-9) -> float:
        """Estimate how many seconds :meth:`solve` takes on one core.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        float
            Seconds; 0 if no estimate is known.

        Examples
        --------
        >>> from lenience import Discounted
        >>> Discounted(cost=0.8, discount=0.99).solve_seconds(Belief(2, 1)) < 0.1
        True
        """
        return 0.0

    def evaluate(self, policy: Policy, belief: Belief, tolerance: float) -> Bounds:
        """Return bounds of what a policy earns from a belief on.

        Parameters
        ----------
        policy : Policy
            The policy to evaluate.
        belief : Belief
            What is known of the success probability.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        Bounds
            The value of the policy, in units of reward.

        Raises
        ------
        InputError
            If the value depends on more than the belief.

        Examples
        --------
        >>> from lenience import Discounted
        >>> from lenience.policies import Greedy
        >>> print(Discounted(cost=0.8, discount=0.9).evaluate(Greedy(0.8), Belief(10, 9), tolerance=1e-6))
        1.01991... ± ...
        """
        raise InputError("objective", self, "a Discounted or a FiniteHorizon objective")

    def starts(self, belief: Belief) -> bool:
        """Return whether a first acceptance pays at a belief.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True if it does.

        Examples
        --------
        >>> from lenience import Discounted
        >>> [Discounted(cost=0.8, discount=discount).starts(Belief(2, 1)) for discount in (0.9, 0.99)]
        [False, True]
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Return the objective in plain words.

        Returns
        -------
        str
            One sentence.

        Examples
        --------
        >>> from lenience import Discounted, FiniteHorizon
        >>> Discounted(0.8, 0.99).describe()
        'break-even success rate 80%, discount factor 0.99 per arrival'
        >>> FiniteHorizon(0.8, 1000).describe()
        'break-even success rate 80%, end after 1,000 arrivals'
        """
        words = describe_offers(self.offers) if self.offers else f"break-even success rate {percent(self.cost, 2)}"
        if self.discount < 1.0:
            words += f", discount factor {self.discount:.6g} per arrival"
        if self.horizon is not None:
            words += f", end after {counted(self.horizon, 'arrival')}"
        if self.label_delay:
            words += f", outcomes {self.label_delay * (self.arrivals or 1.0):.6g} arrivals late on average"
        return words

    def options(self) -> dict[str, Any]:
        """Return the objective as the options that create it, in JSON and on the command line.

        Returns
        -------
        dict
            The ``type`` and the fields.

        Examples
        --------
        >>> from lenience import Delayed
        >>> Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1).options()
        {'type': 'delayed', 'cost': 0.8, 'arrivals': 50.0, 'discount_rate': 0.1, 'label_delay': 1.0}
        """
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_builtins(cls, fields: Any) -> Self:
        """Return the objective that :meth:`options` describes.

        Parameters
        ----------
        fields : dict
            The ``type`` (the tag) and the fields of the objective.

        Returns
        -------
        Objective
            An objective of the type that the fields name.

        Raises
        ------
        InputError
            If the type is unknown or is not a kind of this class.

        Examples
        --------
        >>> Objective.from_builtins({"type": "discounted", "cost": 0.8, "discount": 0.99})
        Discounted(cost=0.8, discount=0.99)
        """
        # Objectives are in a package above this one, so it cannot be imported as usual.
        import_module("lenience.objectives")
        kinds = {kind.__struct_config__.tag: kind for kind in _concrete(cls)}
        tag = fields.get("type") if isinstance(fields, dict) else None
        if tag not in kinds:
            raise InputError.unknown_name("type", tag, [str(kind) for kind in kinds], label="type of the objective")
        objective: Self = msgspec.convert(fields, type=kinds[tag])
        return objective


class StoppingObjective(Objective):
    """An objective whose optimum is to accept until, at some belief, one stops for good."""

    __slots__ = ()

    def solve(self, prior: Belief, rows: Any = None, tolerance: float = 1e-9) -> Any:
        """Return the optimal policy, with its certificate.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        OptimalPolicy
            The policy.
        """
        raise NotImplementedError

    def enclose(self, belief: Belief, tolerance: float) -> tuple[Bounds, Bounds]:
        """Return bounds of the optimal value at a belief.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        tolerance : float
            How accurately values are computed, in units of reward.

        Returns
        -------
        tuple of Bounds
            The value at the belief, and the value of accepting there and being optimal afterwards.
        """
        raise NotImplementedError

    @property
    def discounted_count(self) -> float:
        """Return the number of individuals from the next one on, each counted at its discount."""
        raise NotImplementedError

    def starts(self, belief: Belief) -> bool:
        """Return whether a first acceptance pays at a belief.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True if it does.

        Examples
        --------
        >>> from lenience import Discounted
        >>> [Discounted(cost=0.8, discount=discount).starts(Belief(2, 1)) for discount in (0.9, 0.99)]
        [False, True]
        """
        return belief.mean > self.cost or self.enclose(belief, 1e-12)[1].lower > 0.0


class ExposureObjective(Objective):
    """An objective whose optimum is to accept while fewer than a limit are pending."""

    __slots__ = ()

    def solve(
        self,
        prior: Belief,
        rows: int | None = None,
        tolerance: float = 1e-6,
        pending_cap: int | None = None,
        look_ahead: int | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Return the exposure limits: proved if that fits the time, and otherwise estimated.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on.
        tolerance : float
            How accurately values are computed, in units of reward.
        pending_cap : int, optional
            Largest number of pending labels to follow. By default it follows from the tolerance.
        look_ahead : int, optional
            Number of rows to compute beyond them. By default it follows from the tolerance.
        seconds : float, optional
            Longest time to allow for a proof, in seconds.

        Returns
        -------
        ExposurePolicy or EstimatedExposurePolicy
            The policy.
        """
        raise NotImplementedError

    def solve_proved(
        self,
        prior: Belief,
        rows: int | None = None,
        tolerance: float = 1e-6,
        pending_cap: int | None = None,
        look_ahead: int | None = None,
        seconds: float = 60.0,
    ) -> Any:
        """Return the exposure limits with their proof, or raise an error if it would take too long.

        Parameters
        ----------
        prior : Belief
            What is known of the success probability at the start.
        rows : int, optional
            Number of belief sizes n to decide, from the prior on.
        tolerance : float
            How accurately the value at the prior is computed, relative to itself.
        pending_cap : int, optional
            Largest number of pending labels to follow. By default it follows from the tolerance.
        look_ahead : int, optional
            Number of rows to compute beyond them. By default it follows from the tolerance.
        seconds : float
            Longest time to allow, in seconds. A problem that is estimated to take longer raises an error.

        Returns
        -------
        ExposurePolicy
            The policy.
        """
        raise NotImplementedError

    def enclose(
        self, belief: Belief, pending: int = 0, tolerance: float = 1e-6, seconds: float = 60.0
    ) -> tuple[Bounds, int | None]:
        """Return bounds of the optimal value at a belief, and the exposure limit there.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.
        pending : int
            Number of accepted individuals whose label is not known yet.
        tolerance : float
            How accurately values are computed, in units of reward.
        seconds : float
            Longest time to allow, in seconds. A problem that is estimated to take longer raises an error.

        Returns
        -------
        tuple of Bounds and int or None
            The value, and the largest number that may be pending; None if there is no limit.
        """
        raise NotImplementedError

    def starts(self, belief: Belief) -> bool:
        """Return whether a first acceptance pays at a belief.

        Parameters
        ----------
        belief : Belief
            What is known of the success probability.

        Returns
        -------
        bool
            True if it does.

        Examples
        --------
        >>> from lenience import Delayed
        >>> [Delayed(0.8, arrivals, discount_rate=0.1, label_delay=1).starts(Belief(2, 1)) for arrivals in (1, 10)]
        [False, True]
        """
        return self.enclose(belief)[1] != 0


def one_break_even(objective: Objective, feature: str) -> None:
    """Raise InputError if an objective has offers, where a feature needs one break-even for all.

    Parameters
    ----------
    objective : Objective
        The objective to check.
    feature : str
        What needs it, as the subject of a sentence.

    Raises
    ------
    InputError
        If the objective has offers.

    Examples
    --------
    >>> from lenience import Discounted
    >>> one_break_even(Discounted(0.8, 0.99), "replay")
    """
    if objective.offers is not None:
        raise InputError.because(
            f"{feature} takes one break-even for all, not offers",
            "objective",
            value=objective,
            label="",
            hint="Give cost= instead of offers=.",
            code="unsupported_offers",
        )


def check_offers(objective: Any) -> None:
    """Raise InputError unless an objective has either a cost or offers; check the cost."""
    if (objective.cost is None) == (objective.offers is None):
        raise InputError.because(
            "objective must have either cost or offers",
            ("cost", "offers"),
            label="",
            code="missing" if objective.cost is None else "conflicting_fields",
        )
    if objective.offers is None:
        msgspec.structs.force_setattr(objective, "cost", check_cost(objective.cost))
    elif not isinstance(objective.offers, Offers):
        raise InputError("offers", objective.offers, "an Offers object, such as Offers(amount=[1, 5], cost=[0.8, 0.8])")


def _concrete(kind: type[Objective]) -> list[Any]:
    """Return the structs among the subclasses of an objective class."""
    below = [each for child in kind.__subclasses__() for each in _concrete(child)]
    return [kind, *below] if issubclass(kind, msgspec.Struct) else below
