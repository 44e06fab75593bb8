"""The state of a chain and of a decision, and personal data, within one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lenience.service.domain.chain import commitment
from lenience.service.domain.identity import random_hex
from lenience.service.domain.open_loans import OpenLoans
from lenience.service.domain.rule import Counts
from lenience.service.domain.shadow_segments import ShadowSegments


@dataclass(slots=True)
class ChainState:
    """A locked chain: its head and the counts of its segment."""

    id: int
    policy_id: int | None
    segment: str | None
    revision: int
    length: int
    head: str
    counts: Counts
    imported: int = 0  # past decisions that were imported
    open_loans: OpenLoans | None = None  # as they were counted last, if they count according to their age
    changed: bool = False
    shadow_segments: ShadowSegments | None = None  # for versions by segments in shadow of one by features


@dataclass(slots=True)
class DecisionState:
    """A decision in the current transaction."""

    id: str
    chain: int
    seq: int
    version: int
    at: int
    accepted: bool
    status: str
    changed: bool = False
    amount: float | None = None  # at stake in the offer that was decided
    cost: float | None = None  # its break-even
    source: int | None = None  # the number of the import, if it was imported
    reported: str | None = None  # the interim status of a pending one
    outcome_at: int | None = None  # the outcome's own date

    @property
    def loss(self) -> float:
        """What a failure loses, in money. It is 0 where amounts do not matter."""
        return 0.0 if self.amount is None or self.cost is None else self.amount * self.cost

    @property
    def profit(self) -> float | None:
        """What the outcome has earned, in money, or None if it is not known."""
        return realised_profit(self.status, self.amount, self.cost)


def realised_profit(status: str, amount: float | None, cost: float | None) -> float | None:
    """Return what an outcome has earned: the gain of a success, minus the loss of a failure, None without either.

    >>> realised_profit("success", 1000.0, 0.75), realised_profit("failure", 1000.0, 0.75)
    (250.0, -750.0)
    """
    if amount is None or cost is None or status not in ("success", "failure"):
        return None
    return amount - amount * cost if status == "success" else -amount * cost


class Personal(NamedTuple):
    """Personal data with the salt of its commitment."""

    salt: str
    reference: str | None
    details: str | None

    @classmethod
    def of(cls, reference: str | None, details: str | None) -> Personal:
        """Return personal data with a new salt."""
        return cls(random_hex(32), reference, details)

    @property
    def commitment(self) -> str:
        """The commitment to the data, which the log holds."""
        return commitment(self.salt, self.reference, self.details)
