"""Policies for late labels that serve as baselines for the exposure limits.

``Blind`` uses a policy that was made for immediate labels and ignores how many are pending. ``Capped`` accepts where
such a policy does, but only while fewer than a fixed number are pending.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.lattice import AT_COST
from lenience.core.protocols import UNKNOWN, UNLIMITED, Policy
from lenience.core.validation import having, real, whole


class Around(msgspec.Struct, frozen=True):
    """Base of the policies that contain another policy.

    Parameters
    ----------
    policy
        The policy inside.
    cost
        The break-even success rate: the policy inside accepts everyone where p̂ ≥ cost.
    """

    policy: Policy
    cost: float

    def __post_init__(self) -> None:
        having("policy", self.policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
        msgspec.structs.force_setattr(self, "cost", real("cost", self.cost, above=0, below=1))

    def stop_floor(self, n: float) -> float:
        """Return a success rate at or below which nobody is accepted.

        Parameters
        ----------
        n : float
            Number of observations.

        Returns
        -------
        float
            The rate of the policy inside; −1 if none is known.
        """
        return self.policy.stop_floor(n)

    @property
    def stop_ceiling(self) -> float:
        """The rate above which the policy never stops for good. Waiting for a label does not count as stopping."""
        return self.policy.stop_ceiling

    def to_json(self) -> str:
        """Return the policy as JSON text, including the policy inside; :func:`lenience.policy_from_json` reads it.

        Returns
        -------
        str
            JSON text.
        """
        fields: dict[str, object] = {"type": str(type(self).__struct_config__.tag)}
        fields |= {name: getattr(self, name) for name in type(self).__struct_fields__}
        fields["policy"] = msgspec.Raw(self.policy.to_json().encode())
        return msgspec.json.encode(fields).decode()


class Blind(Around, frozen=True, tag="blind", tag_field="type"):
    """Accept as another policy does and ignore how many outcomes are pending.

    Parameters
    ----------
    policy
        The policy to follow, which looks at the belief only.
    cost
        The break-even success rate. The policy inside accepts everyone where p̂ ≥ cost.

    Examples
    --------
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> Blind(Greedy(0.8), cost=0.8).acceptance(10, [8, 9], pending=[500, 500])
    array([0., 1.])
    """

    @property
    def steady_limit(self) -> int | None:
        """``None``, no limit where p̂ ≥ cost; −1 (unknown) if the policy inside may stop there."""
        return None if self.policy.stop_ceiling <= self.cost else UNKNOWN

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """Return the probability of accepting the next individual, for arrays that broadcast.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.
        pending : array_like
            Numbers of outcomes pending, which make no difference.

        Returns
        -------
        ndarray of float
            One probability for each state.

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> Blind(Greedy(0.8), cost=0.8).acceptance(10, [7, 9], pending=100)
        array([0., 1.])
        """
        probability = self.policy.acceptance(n, s)
        return np.broadcast_to(probability, np.broadcast_shapes(probability.shape, np.shape(pending)))

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """Return the exposure limits at many beliefs at once.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.

        Returns
        -------
        ndarray of int
            The largest 64-bit integer (no limit) where the policy inside accepts, 0 elsewhere.

        Examples
        --------
        >>> from lenience.policies import Greedy
        >>> Blind(Greedy(0.8), cost=0.8).exposure(10, [7, 9])
        array([                  0, 9223372036854775807])
        """
        return np.where(self.policy.acceptance(n, s) > 0.5, UNLIMITED, 0)


class Capped(Around, frozen=True, tag="capped", tag_field="type"):
    """Accept as another policy does, but only while fewer than a fixed number of outcomes are pending.

    ``cap=1, everywhere=True`` waits for every label before it accepts again.

    Parameters
    ----------
    policy
        The policy to follow, which looks at the belief only.
    cost
        The break-even success rate. The policy inside accepts everyone where p̂ ≥ cost.
    cap
        The number of outcomes pending at which to stop accepting, at least 1.
    everywhere
        Whether the cap also applies where p̂ ≥ cost.

    Examples
    --------
    >>> from lenience.policies.beliefs.constant import Constant
    >>> Capped(Constant(1.0), cost=0.8, cap=3).acceptance(10, 7, pending=[0, 2, 3])
    array([1., 1., 0.])
    """

    cap: int
    everywhere: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(self, "cap", whole("cap", self.cap, least=1))
        if not isinstance(self.everywhere, bool):
            raise InputError("everywhere", self.everywhere, "True or False")

    @property
    def steady_limit(self) -> int | None:
        """The limit where p̂ ≥ cost: the cap, ``None`` (no limit) or −1 (unknown).

        The cap applies there if ``everywhere``. The limit is unknown if the policy inside may stop above the cost.
        """
        if self.policy.stop_ceiling > self.cost:
            return UNKNOWN
        return self.cap if self.everywhere else None

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """Return the probability of accepting the next individual, for arrays that broadcast.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.
        pending : array_like
            Numbers of outcomes pending.

        Returns
        -------
        ndarray of float
            One probability for each state.

        Examples
        --------
        >>> from lenience import Belief, Discounted
        >>> prompt = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> Capped(prompt, cost=0.8, cap=3).acceptance(10, 7, pending=[2, 3])
        array([1., 0.])
        """
        room = np.asarray(pending) < self.cap
        if not self.everywhere:
            room = room | self._reaches_cost(n, s)
        return np.where(room, self.policy.acceptance(n, s), 0.0)

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """Return the exposure limits at many beliefs at once.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.

        Returns
        -------
        ndarray of int
            Where the policy inside accepts, the cap or the largest 64-bit integer (no limit); 0 elsewhere.

        Examples
        --------
        >>> from lenience import Belief, Discounted
        >>> prompt = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
        >>> Capped(prompt, cost=0.8, cap=3).exposure(10, [6, 7])
        array([0, 3])
        """
        limit = np.where(self._reaches_cost(n, s) & (not self.everywhere), UNLIMITED, self.cap)
        return np.where(self.policy.acceptance(n, s) > 0.5, limit, 0)

    def _reaches_cost(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.bool_]:
        """Return whether p̂ ≥ cost, except for rounding."""
        return np.asarray(s, dtype=np.float64) >= self.cost * np.asarray(n, dtype=np.float64) * (1 - AT_COST)
