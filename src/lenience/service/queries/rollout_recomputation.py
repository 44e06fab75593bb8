"""Recompute which version each applicant of a rollout was assigned to.

The policy's chain says from which decisions of each segment on a version was rolled out, and to which share. The draw
of an applicant is computed again from its reference. Where the reference was erased it cannot be, and such decisions
are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lenience.service.domain.events import Decided, StateChanged
from lenience.service.domain.rollout import Stage, is_rolled_out
from lenience.service.storage.policy_cache import Version

Report = Callable[[str, str], None]


class Assigned(NamedTuple):
    """A decision of a rollout whose draw depends on a reference that is stored beside the log."""

    where: str
    stage: Stage
    otherwise: str  # the key of the draw without a reference
    rolled_out: bool


@dataclass(slots=True)
class RolloutRecomputation:
    """The recomputation of the rollouts of a policy. First its own events are added, then the segments' decisions."""

    policy: str
    report: Report
    not_recomputed: int = 0  # decisions whose reference was erased
    _stages: list[Stage] = field(default_factory=list)
    _activated: set[int] = field(default_factory=set)  # versions that were active at some time
    _waiting: dict[tuple[int, int], Assigned] = field(default_factory=dict)  # by chain and event

    @classmethod
    def of(cls, policy: str, report: Report, stages: Sequence[Stage], activated: Sequence[int]) -> RolloutRecomputation:
        """Return a recomputation that knows the policy's own events."""
        return cls(policy, report, _stages=list(stages), _activated=set(activated))

    @property
    def known(self) -> tuple[tuple[Stage, ...], tuple[int, ...]]:
        """What the policy's own events say: the rollouts, and the versions that were active at some time."""
        return tuple(self._stages), tuple(sorted(self._activated))

    def add(self, where: str, event: StateChanged) -> None:
        """Add a change of a version's state."""
        if event.state == "active":
            self._activated.add(event.number)
        if (event.state == "rollout") != (event.percent is not None):
            self.report(where, "a rollout needs a share of applicants, and nothing else has one")
        last = self._stages[-1] if self._stages else None
        running = last is not None and last.until is None
        if running and last is not None and event.number == last.number:
            last.until = event.lengths
        elif running and event.state in ("rollout", "active"):
            self.report(where, "another version was rolled out at that time")
        if event.state == "rollout":
            self._stages.append(Stage(event.number, event.percent or 0.0, event.lengths))

    def check(self, where: str, segment: str, place: tuple[int, int], event: Decided, versions: Versions) -> None:
        """Check the version of a decision, as far as it does not depend on a reference.

        Parameters
        ----------
        where : str
            The place of the event, for findings.
        segment : str
            The segment of the chain.
        place : tuple of int
            The chain and the number of the event.
        event : Decided
            The decision.
        versions : callable
            Returns a version by its number, or None.
        """
        stage = next((one for one in self._stages if one.covers(segment, place[1])), None)
        if stage is None:
            if event.unfit is not None:
                self.report(where, f"it says that version {event.unfit} could not decide it, which was not rolled out")
            elif event.version not in self._activated:
                self.report(where, f"its version {event.version} was neither active nor rolled out at that time")
            return
        rolled_out = event.version == stage.number
        if event.unfit is not None or event.rank is not None:  # the active version decides them
            if rolled_out or event.unfit not in (None, stage.number):
                self.report(where, f"it says that version {event.unfit} could not decide it, or is of a ranked batch")
            elif event.rank is None and _fits(segment, event, versions(event.version), versions(stage.number)):
                self.report(where, f"it says that version {stage.number} could not decide it, which it could")
            return
        assigned = Assigned(where, stage, event.again or event.id, rolled_out)
        if event.personal is None:
            self._compare(assigned, None)
        else:
            self._waiting[place] = assigned

    def check_reference(self, place: tuple[int, int], reference: str | None) -> None:
        """Check the version of a decision whose personal data is stored."""
        assigned = self._waiting.pop(place, None)
        if assigned is not None:
            self._compare(assigned, reference)

    def finish_segment(self) -> None:
        """Count the decisions of a segment whose reference was erased."""
        self.not_recomputed += len(self._waiting)
        self._waiting.clear()

    def _compare(self, assigned: Assigned, reference: str | None) -> None:
        stage = assigned.stage
        key = assigned.otherwise if reference is None else reference
        expected = is_rolled_out(self.policy, stage.number, key, stage.percent)
        if expected != assigned.rolled_out:
            right = f"version {stage.number}" if expected else "the active version"
            self.report(
                assigned.where,
                f"{right} should have decided it, because version {stage.number} was rolled out to "
                f"{stage.percent:g}% of applicants",
            )


Versions = Callable[[int], Version | None]


def _fits(segment: str, event: Decided, decided: Version | None, rollout: Version | None) -> bool:
    """Return whether a version in rollout could decide any request of a segment."""
    if decided is None or rollout is None:
        return False
    by_features = any(version.feature_model or version.specification.features for version in (decided, rollout))
    if by_features or segment not in rollout.rules:
        return False
    return bool(event.offers) or not rollout.rules[segment].needs_offer
