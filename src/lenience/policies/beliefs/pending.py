"""Policies that look at what is pending, to compare the exposure limits with.

``Blind`` is a policy for labels that come at once, used as if they did: it does not look at what is pending. ``Capped``
accepts where such a policy does, but only while fewer than a fixed number are pending.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import refusal
from lenience.core.protocols import UNKNOWN, UNLIMITED, Policy
from lenience.core.validation import having, real, whole


class Around(msgspec.Struct, frozen=True):
    """A policy around another: ``cost`` tells where the one inside always accepts (p̂ ≥ c)."""

    policy: Policy
    cost: float

    def __post_init__(self) -> None:
        having("policy", self.policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
        msgspec.structs.force_setattr(self, "cost", real("cost", self.cost, above=0, below=1))

    def stop_floor(self, n: float) -> float:
        """A rate at or below which nobody is accepted at belief size n."""
        return self.policy.stop_floor(n)

    @property
    def stop_ceiling(self) -> float:
        """The rate above which the policy never stops for good: waiting for a label is no stop."""
        return self.policy.stop_ceiling

    def to_json(self) -> str:
        """The policy as JSON text, with the one inside it; :func:`lenience.policy_from_json` reads it."""
        fields: dict[str, object] = {"type": str(type(self).__struct_config__.tag)}
        fields |= {name: getattr(self, name) for name in type(self).__struct_fields__}
        fields["policy"] = msgspec.Raw(self.policy.to_json().encode())
        return msgspec.json.encode(fields).decode()


class Blind(Around, frozen=True, tag="blind", tag_field="type"):
    """Accept as ``policy`` says, whatever is pending; ``cost`` tells where it always accepts (p̂ ≥ c).

    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> Blind(Greedy(0.8), cost=0.8).acceptance(10, [8, 9], pending=[500, 500])
    array([0., 1.])
    """

    @property
    def steady_limit(self) -> int | None:
        """No limit above the cost, if the policy never stops there."""
        return None if self.policy.stop_ceiling <= self.cost else UNKNOWN

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """The probability of accepting the next individual, for arrays that broadcast."""
        probability = self.policy.acceptance(n, s)
        return np.broadcast_to(probability, np.broadcast_shapes(probability.shape, np.shape(pending)))

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """The limits at many beliefs at once: none where the policy accepts, 0 elsewhere."""
        return np.where(self.policy.acceptance(n, s) > 0.5, UNLIMITED, 0)


class Capped(Around, frozen=True, tag="capped", tag_field="type"):
    """Accept as ``policy`` says, but only while fewer than ``cap`` are pending.

    Where p̂ ≥ ``cost`` the cap does not hold, unless ``everywhere``. ``cap=1, everywhere=True`` waits for every label
    before it accepts again.

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
            raise refusal("everywhere", self.everywhere, "True or False")

    @property
    def steady_limit(self) -> int | None:
        """The cap if it holds everywhere; otherwise none, if the policy never stops above the cost."""
        if self.policy.stop_ceiling > self.cost:
            return UNKNOWN
        return self.cap if self.everywhere else None

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        """The probability of accepting the next individual, for arrays that broadcast."""
        room = np.asarray(pending) < self.cap
        if not self.everywhere:
            room = room | (np.asarray(s, dtype=np.float64) >= self.cost * np.asarray(n, dtype=np.float64) * (1 - 1e-12))
        return np.where(room, self.policy.acceptance(n, s), 0.0)

    def exposure(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.int64]:
        """The limits at many beliefs at once: where the policy accepts, the cap or (p̂ ≥ c) none; 0 elsewhere."""
        good = np.asarray(s, dtype=np.float64) >= self.cost * np.asarray(n, dtype=np.float64) * (1 - 1e-12)
        limit = np.where(good & (not self.everywhere), UNLIMITED, self.cap)
        return np.where(self.policy.acceptance(n, s) > 0.5, limit, 0)
