"""Recompute the counts of segments for versions that run in shadow of one that decides by features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from sqlalchemy import Connection, select

from lenience.service.domain.chain import draw
from lenience.service.domain.events import Decided, SegmentsSeen, Shadow, readable_event
from lenience.service.domain.rule import Counts
from lenience.service.domain.segment_counts import SegmentCounts
from lenience.service.domain.shadow_segments import (
    Change,
    OwnChain,
    ShadowSegments,
    counts_of,
    segment_in_shadow,
    segments_of,
)
from lenience.service.domain.statements import stated_verdict
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import Version

KIND = '{"kind":"segments_seen"'
Report = Callable[[str, str], None]
Versions = Callable[[int], Version | None]


@dataclass(slots=True)
class OwnChains:
    """What decisions by features say about the segments' own chains, compared with these chains.

    First the events that say it are read, then each chain is walked.
    """

    report: Report
    _stated: dict[tuple[str, int], list[tuple[str, SegmentCounts]]] = field(default_factory=dict)

    def read(self, connection: Connection, chain: int, label: str) -> None:
        """Read the events of the chain of decisions by features."""
        events = schema.event
        said = (events.c.chain_id == chain) & events.c.body.startswith(KIND)
        for row in connection.execute(select(events.c.seq, events.c.body).where(said).order_by(events.c.seq)):
            event = readable_event(row.body)
            if isinstance(event, SegmentsSeen):
                for segment, length, counts in event.chains:
                    where = f"event {row.seq} of {label}"
                    self._stated.setdefault((segment, length), []).append((where, counts))

    def check(self, segment: str, seq: int, counts: Counts) -> None:
        """Compare the counts of a segment after an event of its own chain."""
        for where, stated in self._stated.pop((segment, seq), ()):
            if stated != counts_of(counts):
                self.report(where, f"its counts of the segment {segment!r} differ from the log of that segment")

    def finish(self) -> None:
        """Report what was said about events that do not exist."""
        for (segment, length), stated in self._stated.items():
            for where, _ in stated:
                self.report(where, f"the log of the segment {segment!r} has no event {length}")


@dataclass(slots=True)
class ShadowSegmentsRecomputation:
    """The recomputation of these counts in one chain."""

    report: Report
    versions: Versions
    counts: ShadowSegments | None = None
    _places: dict[str, dict[int, str]] = field(default_factory=dict)  # segments by version, of each decision
    _by_features: dict[int, dict[int, str]] = field(default_factory=dict)  # the same by the decision's event

    def see(self, event: SegmentsSeen) -> None:
        """Take in what an event says about the segments' own chains."""
        if self.counts is None:
            self.counts = ShadowSegments()
        for segment, length, counts in event.chains:
            self.counts.own[segment] = OwnChain(length, counts)

    def decide(self, where: str, event: Decided, shadow: Shadow, version: Version, previous: str) -> None:
        """Recompute what a version by segments would have decided."""
        segment = shadow.segment or ""
        if shadow.counts is None or segment not in version.rules:
            self.report(where, f"version {version.number} has no segment {segment!r}, or its counts are missing")
            return
        if self.counts is None:
            self.counts = ShadowSegments()
        expected = self.counts.seen(version.number, segment, version.model)
        if shadow.counts != counts_of(expected):
            self.report(where, f"its counts of the segment {segment!r} do not follow from the events before it")
        borrowed = expected.borrowed
        if borrowed is not None and (shadow.borrowed is None or not shadow.borrowed.close_to(borrowed)):
            self.report(where, f"what the segment {segment!r} borrows does not follow from the events before it")
        counts = Counts(*shadow.counts)
        counts.borrowed = shadow.borrowed
        if version.rules[segment].decide(counts, draw(previous, event.id), event.offers) != stated_verdict(shadow):
            self.report(where, f"its shadow is not what version {version.number} decides in the segment {segment!r}")

    def add(self, seq: int, event: Decided) -> None:
        """Note the segments of a decision."""
        places = segments_of(event.shadows)
        if places:
            self._places[event.id] = self._by_features[seq] = places

    def change(self, decision: str | None, before: Counts, after: Counts, loss: float) -> None:
        """Count an event about a decision."""
        places = self._places.get(decision or "")
        if places is None:
            return
        if self.counts is None:
            self.counts = ShadowSegments()
        change = Change(
            after.arrivals - before.arrivals,
            after.accepted - before.accepted,
            after.pending - before.pending,
            after.successes - before.successes,
            after.failures - before.failures,
            loss,
        )
        self.counts.change(places, change)

    def check_features(self, where: str, seq: int, details: str | None) -> None:
        """Compare the segments of a decision with its features, if they still exist."""
        for number, segment in self._by_features.get(seq, {}).items():
            version = self.versions(number)
            if version is None or details is None or not version.specification.features:
                continue
            given = msgspec.json.decode(details)
            if segment_in_shadow(version.specification.features, version.rules, None, given) != segment:
                self.report(where, f"the features are not those of the segment {segment!r} of version {number}")

    def encode(self) -> str | None:
        """Return the text that the chain's row must have."""
        return None if self.counts is None else self.counts.encode()
