"""Counts of segments under versions in shadow: against plain sums, and the segment of an applicant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lenience.service.domain.feature_cells import Feature
from lenience.service.domain.pooled_models import Borrowed
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


def test_events_change_the_counts_of_their_segments_alone() -> None:
    shadows = ShadowSegments()
    accepted = Change(arrivals=1, accepted=1, pending=1, loss=400.0)
    shadows.change({2: "young", 3: "north"}, accepted)
    shadows.change({2: "young"}, accepted._replace(loss=250.0))
    shadows.change({2: "old"}, Change(arrivals=1))
    shadows.change({2: "young", 3: "north"}, Change(pending=-1, successes=1, loss=400.0))
    assert shadows.counts(2, "young") == SegmentCounts(2, 2, 1, 1, 0, 250.0)
    assert shadows.counts(2, "old") == SegmentCounts(1, 0, 0, 0, 0, 0.0)
    assert shadows.counts(3, "north") == SegmentCounts(1, 1, 0, 1, 0, 0.0)
    assert shadows.counts(3, "young") == shadows.counts(9, "young") == SegmentCounts()
    shadows.change({2: "young"}, Change(pending=-1, failures=1, loss=250.0))
    shadows.change({2: "young"}, Change(successes=-1, failures=1))  # a correction
    assert shadows.counts(2, "young") == SegmentCounts(2, 2, 0, 0, 2, 0.0)


class Pooled:
    """A model that borrows the same amount whatever the outcomes, and remembers them."""

    names = ("young", "old")

    def start(self, outcomes: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        return outcomes

    def borrowed(self, state: dict[str, tuple[int, int]], segment: str) -> Borrowed:
        return Borrowed(state[segment][0], state[segment][1])


def test_the_own_chain_of_a_segment_counts_beside_them() -> None:
    shadows = ShadowSegments()
    own = OwnChain(7, SegmentCounts(10, 8, 2, 4, 2, 90.0))
    assert shadows.read_chains([("young", own), ("old", OwnChain(0, SegmentCounts()))]) == [("young", own)]
    assert shadows.read_chains([("young", own)]) == []
    shadows.change({2: "young"}, Change(arrivals=1, accepted=1, pending=1, loss=10.0))
    assert shadows.counts(2, "young") == SegmentCounts(11, 9, 3, 4, 2, 100.0)
    assert shadows.counts(3, "young") == own.counts
    longer = OwnChain(8, own.counts)
    assert shadows.read_chains([("young", longer)]) == [("young", longer)]
    seen = shadows.seen(2, "young", None)
    assert (seen.arrivals, seen.pending, seen.at_risk, seen.borrowed) == (11, 3, 100.0, None)
    assert counts_of(seen) == shadows.counts(2, "young")
    pooled: Any = Pooled()
    assert shadows.seen(2, "young", pooled).borrowed == Borrowed(4, 2)
    assert shadows.seen(2, "old", pooled).borrowed == Borrowed(0, 0)


def test_the_text_of_a_row() -> None:
    assert ShadowSegments.decode(None) is None
    assert ShadowSegments().encode() is None
    one, two = ShadowSegments(), ShadowSegments()
    own = OwnChain(7, SegmentCounts(1))
    one.read_chains([("young", own)])
    assert one.encode() is not None
    assert ShadowSegments.decode(one.encode()) == one
    two.change({2: "b"}, Change(arrivals=1))
    assert two.encode() is not None
    assert ShadowSegments.decode(two.encode()) == two
    again = ShadowSegments()
    for place in ({3: "a"}, {2: "b"}, {2: "a"}):
        one.change(place, Change(arrivals=1))
    for place in ({2: "a"}, {3: "a"}, {2: "b"}):
        again.change(place, Change(arrivals=1))
    again.read_chains([("young", own)])
    assert again.encode() == one.encode()  # whatever came first


def test_the_segment_of_an_applicant() -> None:
    score = [Feature("score", edges=[600.0])]
    names = ["score<600", "score>=600"]
    assert segment_in_shadow(score, names, "score<600", {"score": 600.0}) == "score>=600"
    lacking: list[Any] = [None, {}, {"income": 3.0}, {"score": "high"}]
    for given in lacking:
        assert segment_in_shadow(score, names, "score<600", given) is None
    assert segment_in_shadow([], ["a"], None, None) is None
    shadows = [SimpleNamespace(version=2, segment="a"), SimpleNamespace(version=3, segment=None)]
    assert segments_of(shadows) == {2: "a"}
    counts = Counts(arrivals=5, accepted=4, pending=1, successes=2, failures=1, at_risk=3.0)
    assert counts_of(counts) == SegmentCounts(5, 4, 1, 2, 1, 3.0)
