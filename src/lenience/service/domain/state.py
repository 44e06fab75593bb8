"""The state of a chain and of a decision, and personal data, within one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lenience.service.domain.chain import commitment
from lenience.service.domain.identity import random_hex
from lenience.service.domain.rule import Counts


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
    changed: bool = False


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
