"""Recompute what all segments of a policy have used and have open, and compare it with the segments' own chains."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from lenience.service.domain.events import StateChanged, UseChanged
from lenience.service.domain.overall import OverallUse, UseChange, month_of
from lenience.service.domain.rule import Counts

CLOSE = 1e-9  # relative: sums of the same losses in another order
NOT_CHARGED = "it gives capacity back to a month that was not charged"


@dataclass(slots=True)
class Opening:
    """The activation of a version with limits, and what the segments had open by their own chains."""

    where: str
    event: StateChanged
    before: OverallUse  # what was used according to the events before it
    counted: dict[str, int]  # the numbers of the segments' events at the opening before it
    pending: dict[str, int] = field(default_factory=dict)
    at_risk: dict[str, float] = field(default_factory=dict)
    earlier: list[tuple[int, float]] = field(default_factory=list)  # acceptances that no limit had counted


@dataclass(slots=True)
class OverallRecomputation:
    """The recomputation of the counters in a policy's chain. First its own events are added, then the segments'."""

    label: str
    report: Callable[[str, str], None]
    now: OverallUse = field(default_factory=OverallUse)
    _places: list[int] = field(default_factory=list)  # events that changed the use, and the use after each
    _uses: list[OverallUse] = field(default_factory=list)
    _changes: dict[str, list[tuple[int, UseChange]]] = field(default_factory=dict)  # by decision
    _seen: dict[str, list[tuple[int, int, float]]] = field(default_factory=dict)  # in the segments' chains
    _openings: list[Opening] = field(default_factory=list)
    _charged: dict[str, int] = field(default_factory=dict)  # the month of each acceptance that was charged
    _counted: dict[str, int] = field(default_factory=dict)  # the month of those counted when limits became active
    _returned: list[tuple[str, str, int]] = field(default_factory=list)  # of these: given back, and to which month

    @property
    def in_use(self) -> bool:
        """Whether an event of the policy's chain counts what all segments use."""
        return bool(self._places)

    def add(self, seq: int, event: UseChanged | StateChanged) -> None:
        """Add an event of the policy's chain."""
        where = f"event {seq} of {self.label}"
        if isinstance(event, UseChanged):
            change, after = event.change, event.after
            if self.now.after(event.at, change) != after:
                self.report(where, "what all segments have used does not follow from the event before it")
            if change.accepted < 0:
                charged = self._charged.pop(event.decision, None)
                if charged is None:  # it may have been counted when limits became active
                    self._returned.append((where, event.decision, change.month))
                elif charged != change.month:
                    self.report(where, NOT_CHARGED)
            if change.accepted > 0:
                self._charged[event.decision] = after.month
            self._changes.setdefault(event.decision, []).append((seq, change))
        else:
            if event.overall is None:
                return
            after = event.overall
            last = self._openings[-1].event.lengths if self._openings else {}
            self._openings.append(Opening(where, event, self.now.at(event.at), last))
        self.now = after
        self._places.append(seq)
        self._uses.append(after)

    def use_after(self, seq: int, time: int) -> OverallUse:
        """Return the use after an event of the policy's chain, as of a time."""
        at = bisect_right(self._places, seq) - 1
        return (self._uses[at] if at >= 0 else OverallUse()).at(time)

    def charged(self, decision: str, seq: int) -> bool:
        """Return whether an event of the policy's chain counts the acceptance of a decision."""
        return any(place == seq and change.accepted == 1 for place, change in self._changes.get(decision, ()))

    def add_segment_event(
        self, segment: str, seq: int, decision: str | None, before: Counts, after: Counts, loss: float
    ) -> None:
        """Add an event of a segment's chain: what it changed, and what the segment had open after it."""
        changed = (after.accepted - before.accepted, after.pending - before.pending)
        if decision is not None and changed != (0, 0) and decision in self._changes:
            self._seen.setdefault(decision, []).append((*changed, loss))
        for opening in self._openings:
            if opening.event.lengths.get(segment) == seq:
                opening.pending[segment], opening.at_risk[segment] = after.pending, after.at_risk

    def openings_at(self, segment: str, seq: int) -> list[Opening]:
        """Return the activations that count the acceptances of a segment up to an event."""
        return [one for one in self._openings if one.event.counted and one.event.lengths.get(segment) == seq]

    def count_earlier(self, opening: Opening, decision: str, at: int, loss: float) -> None:
        """Count an acceptance that stands when a version with limits becomes active, and that no limit had counted."""
        opening.earlier.append((at, loss))
        self._counted[decision] = month_of(at)

    def finish(self, limited: bool, pending: int, at_risk: float) -> None:
        """Compare with what the segments' chains say. ``limited`` is whether the active version has such limits."""
        for opening in self._openings:
            stated = opening.event.overall
            assert stated is not None
            expected = opening.before.with_earlier(opening.earlier)
            if msgspec.structs.replace(expected, pending=stated.pending, at_risk=stated.at_risk) != stated:
                self.report(opening.where, "what all segments have used does not follow from the events before it")
            risks = math.fsum(opening.at_risk[name] for name in sorted(opening.at_risk))
            if (stated.pending, stated.at_risk) != (sum(opening.pending.values()), risks):
                self.report(opening.where, "what was open in all segments differs from their logs")
        for where, decision, month in self._returned:
            if self._counted.get(decision) != month:
                self.report(where, NOT_CHARGED)
        for decision, changes in self._changes.items():
            seen = iter(self._seen.get(decision, ()))
            if not all(any(_matches(change, one) for one in seen) for _, change in changes):
                self.report(f"decision {decision}", f"{self.label} counts it in a way that its own log does not")
        close = math.isclose(self.now.at_risk, at_risk, rel_tol=CLOSE, abs_tol=CLOSE)
        if limited and (self.now.pending != pending or not close):
            self.report(self.label, f"it counts {self.now.pending:,} open in all segments, and they have {pending:,}")


def _matches(change: UseChange, seen: tuple[int, int, float]) -> bool:
    """Return whether a change is one of a segment's chain. What was never charged is not given back."""
    accepted, pending, loss = seen
    return (
        change.pending == pending
        and change.loss == loss
        and (change.accepted == accepted or (change.accepted == 0 and accepted < 0))
    )
