"""Counts for a version by segments that runs in shadow where applicants are decided by their features.

Decisions by features are in one chain, whatever the segment. So the counts of a segment, which a version by segments
needs, are kept beside the counts of that chain: of the applicants who were decided there, by version and segment.
Outcomes of the segment's own chain, from a time when a version by segments was active, count too. Events say how far
that chain was read, so the audit can count it again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from lenience.core.errors import InputError
from lenience.service.domain.feature_cells import Feature, segment_of, strip_values
from lenience.service.domain.limits import FeatureValue
from lenience.service.domain.pooled_models import Borrowed, PooledModel
from lenience.service.domain.rule import Counts, at_risk_after
from lenience.service.domain.segment_counts import SegmentCounts

NONE = SegmentCounts()


class OwnChain(NamedTuple):
    """The chain of a segment as it was read: its length and its counts."""

    length: int
    counts: SegmentCounts


class Change(NamedTuple):
    """How an event about a decision changes the counts. ``loss`` is what its failure would lose, in money."""

    arrivals: int = 0
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0
    loss: float = 0.0


class _Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """The text in the chain's row."""

    decided: dict[int, dict[str, SegmentCounts]] = {}
    own: dict[str, OwnChain] = {}


@dataclass(slots=True)
class ShadowSegments:
    """The counts of segments under versions in shadow.

    Parameters
    ----------
    decided : dict
        Of the applicants who were decided by features, by version and segment.
    own : dict
        The segments' own chains, as they were read last.
    """

    decided: dict[int, dict[str, SegmentCounts]] = field(default_factory=dict)
    own: dict[str, OwnChain] = field(default_factory=dict)

    @classmethod
    def decode(cls, text: str | None) -> ShadowSegments | None:
        """Return what a chain's row holds."""
        if text is None:
            return None
        stored = msgspec.json.decode(text, type=_Stored)
        return cls(dict(stored.decided), dict(stored.own))

    def encode(self) -> str | None:
        """Return the text for the chain's row, None if there are no counts."""
        if not self.decided and not self.own:
            return None
        decided = {version: dict(sorted(counts.items())) for version, counts in sorted(self.decided.items())}
        return msgspec.json.encode(_Stored(decided, dict(sorted(self.own.items())))).decode()

    def counts(self, version: int, segment: str) -> SegmentCounts:
        """Return all counts of a segment under a version."""
        known = self.decided.get(version, {}).get(segment, NONE)
        own = self.own.get(segment)
        return known if own is None else known.and_those(own.counts)

    def seen(self, version: int, segment: str, model: PooledModel | None) -> Counts:
        """Return the counts that a version sees, with what its segment borrows from others if its model pools them."""
        counts = Counts(*self.counts(version, segment))
        if model is not None:
            counts.borrowed = self._borrowed(version, segment, model)
        return counts

    def _borrowed(self, version: int, segment: str, model: PooledModel) -> Borrowed:
        outcomes = {name: self.counts(version, name) for name in model.names}
        state = model.start({name: (one.successes, one.failures) for name, one in outcomes.items()})
        return model.borrowed(state, segment)

    def change(self, places: Mapping[int, str], change: Change) -> None:
        """Count an event about a decision, which has these segments by version."""
        for version, segment in places.items():
            by_segment = self.decided.setdefault(version, {})
            now = by_segment.get(segment, NONE)
            pending = now.pending + change.pending
            by_segment[segment] = SegmentCounts(
                now.arrivals + change.arrivals,
                now.accepted + change.accepted,
                pending,
                now.successes + change.successes,
                now.failures + change.failures,
                at_risk_after(now.at_risk, change.pending * change.loss, pending),
            )

    def read_chains(self, chains: Iterable[tuple[str, OwnChain]]) -> list[tuple[str, OwnChain]]:
        """Take in the segments' own chains as they are now, and return those that have changed."""
        changed = [(name, chain) for name, chain in chains if chain.length and self.own.get(name) != chain]
        self.own.update(changed)
        return changed


def counts_of(counts: Counts) -> SegmentCounts:
    """Return the counts of a chain as a value."""
    own = (counts.arrivals, counts.accepted, counts.pending, counts.successes, counts.failures)
    return SegmentCounts(*own, counts.at_risk)


def segments_of(shadows: Iterable[Any]) -> dict[int, str]:
    """Return the segment of an applicant under each version in shadow that decides by segments, by version."""
    return {one.version: one.segment for one in shadows if one.segment is not None}


def segment_in_shadow(
    features: list[Feature],
    names: Container[str],
    segment: str | None,
    given: Mapping[str, FeatureValue | None] | None,
) -> str | None:
    """Return the segment of an applicant under a version in shadow, or None if the request does not say it.

    Parameters
    ----------
    features : list of Feature
        The features by which the version divides the population. If there are any, they alone say the segment.
    names : container of str
        The segments of the version.
    segment : str or None
        The segment in the request.
    given : mapping or None
        The features in the request, also those of other versions.

    Examples
    --------
    >>> score = [Feature("score", edges=[600.0])]
    >>> segment_in_shadow(score, ["score<600", "score>=600"], None, {"score": 640, "income": 30.0})
    'score>=600'
    >>> segment_in_shadow([], ["old", "young"], "young", None), segment_in_shadow([], ["old"], "young", None)
    ('young', None)
    """
    if not features:
        return segment if segment is not None and segment in names else None
    own = {feature.name: given[feature.name] for feature in features if given and feature.name in given}
    try:
        return segment_of(features, strip_values(features, own))
    except InputError:  # missing, or not a value of the feature
        return None
