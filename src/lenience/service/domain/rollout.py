"""The rollout of a version: a share of the applicants, chosen by a stable hash, is decided by it instead of the active.

The draw of an applicant is a hash of the policy, the version and the applicant's reference, in [0, 1). The version
decides if the draw is below the share. So the same applicant always gets the same answer to "which version?", a larger
share only adds applicants to those of a smaller one, and another version draws anew. Without a reference the decision's
id takes its place; an applicant that is decided again keeps the id of the waiting decision.

The log holds which version decided, but never the draw: with it, anybody could test guesses of an erased reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from lenience.service.domain.events import StateChanged


def rollout_draw(policy: str, version: int, key: str) -> float:
    """Return the draw of an applicant in [0, 1), the same whenever and wherever it is computed.

    Parameters
    ----------
    policy : str
        The name of the policy.
    version : int
        The version that is rolled out.
    key : str
        The applicant's reference, or the id of the decision if there is none.

    Examples
    --------
    >>> rollout_draw("cards", 3, "applicant 7") == rollout_draw("cards", 3, "applicant 7")
    True
    >>> sum(rollout_draw("cards", 3, f"applicant {i}") < 0.1 for i in range(10_000))
    973
    """
    return int(sha256(f"rollout\0{policy}\0{version}\0{key}".encode()).hexdigest()[:13], 16) / 16**13


def is_rolled_out(policy: str, version: int, key: str, percent: float) -> bool:
    """Return whether an applicant is among the share to which a version is rolled out."""
    return rollout_draw(policy, version, key) < percent / 100.0


@dataclass(slots=True)
class Stage:
    """A version that was rolled out to a share of applicants, between two numbers of events of each segment."""

    number: int
    percent: float
    since: Mapping[str, int]
    until: Mapping[str, int] | None = None  # None while it lasts

    def covers(self, segment: str, seq: int) -> bool:
        """Return whether an event of a segment's chain belongs to this stage."""
        return seq > self.since.get(segment, 0) and (self.until is None or seq <= self.until.get(segment, 0))


def stages_of(changes: Iterable[StateChanged]) -> list[Stage]:
    """Return the stages of the rollouts of one version, from all changes of its state in order."""
    stages: list[Stage] = []
    for event in changes:
        if stages and stages[-1].until is None:
            stages[-1].until = event.lengths
        if event.state == "rollout":
            stages.append(Stage(event.number, event.percent or 0.0, event.lengths))
    return stages
