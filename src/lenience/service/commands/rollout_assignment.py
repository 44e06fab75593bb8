"""Assign the requests of a command to the active version or to the one that is rolled out.

A request must be valid under the active version, whoever decides it. Where it lacks what the version in rollout needs,
or names a segment that this version does not have, the active version decides it, and the event says so. Such
applicants are no part of the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lenience.core.offers import Offer
from lenience.service.domain.limits import FeatureValue
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.rollout import is_rolled_out
from lenience.service.storage.policy_cache import PolicyRecord, Version


class Individual(Protocol):
    """What an assignment looks at."""

    @property
    def segment(self) -> str | None:
        """The segment, if it was given."""

    @property
    def reference(self) -> str | None:
        """The applicant's reference, if it was given."""

    @property
    def features(self) -> Mapping[str, FeatureValue | None] | None:
        """The features, if they were given."""


@dataclass(slots=True)
class Assignment:
    """Who is decided by which version, by the position of the request."""

    policy: str
    number: int  # the version in rollout
    percent: float
    segments: list[str]  # of each request, under the version that decides it
    rolled_out: set[int] = field(default_factory=set)
    lacking: set[int] = field(default_factory=set)  # requests that the version in rollout cannot decide
    choices: dict[int, tuple[Offer, ...]] = field(default_factory=dict)  # the offers of those it decides

    def place(
        self, record: PolicyRecord, position: int, request: Individual, offers: tuple[Offer, ...], identity: str
    ) -> None:
        """Assign one request."""
        rollout = record.rollout
        assert rollout is not None
        key = identity if request.reference is None else request.reference
        try:
            segment = record.segment_under(rollout, request.segment, request.features)
            choices = record.choices(segment, offers, rollout)
        except BadRequest:
            self.lacking.add(position)
            return
        if not _takes(rollout, request):
            self.lacking.add(position)
        elif is_rolled_out(self.policy, self.number, key, self.percent):
            self.rolled_out.add(position)
            self.segments[position], self.choices[position] = segment, choices

    def place_again(self, record: PolicyRecord, request: Individual, offers: tuple[Offer, ...], waiting: str) -> None:
        """Assign an applicant that waited. It keeps its segment, and its draw even without a reference."""
        rollout = record.rollout
        assert rollout is not None
        rule = rollout.rules.get(self.segments[0])
        if rule is None or not _takes(rollout, request) or (rule.needs_offer and not offers):
            self.lacking.add(0)
        elif is_rolled_out(self.policy, self.number, request.reference or waiting, self.percent):
            self.rolled_out.add(0)

    def version(self, record: PolicyRecord, position: int) -> Version:
        """Return the version that decides a request."""
        if position in self.rolled_out:
            assert record.rollout is not None
            return record.rollout
        return record.ruling()

    def in_shadow(self, record: PolicyRecord, position: int) -> list[Version]:
        """Return the versions whose answers are logged beside the decision: the shadows, and the other of both."""
        if position in self.lacking:
            return record.shadows
        other = record.active if position in self.rolled_out else record.rollout
        assert other is not None
        return [*record.shadows, other]

    def unfit(self, position: int) -> int | None:
        """Return the number of the version in rollout if it cannot decide a request."""
        return self.number if position in self.lacking else None


def _takes(version: Version, request: Individual) -> bool:
    """Return whether a request has the features that a version decides by."""
    model = version.feature_model
    return model is None or (request.features is not None and model.takes(request.features))


def assign(
    record: PolicyRecord,
    requests: Sequence[Individual],
    offers: Sequence[tuple[Offer, ...]],
    segments: Sequence[str],
    identities: Sequence[str],
) -> Assignment:
    """Assign the requests of a command.

    Parameters
    ----------
    record : PolicyRecord
        The policy, with a version in rollout.
    requests : sequence of Individual
        The requests.
    offers : sequence of tuple of Offer
        The offers of each request.
    segments : sequence of str
        The segment of each request under the active version.
    identities : sequence of str
        The id of each decision, which is drawn with where there is no reference.
    """
    assert record.rollout is not None
    result = Assignment(record.name, record.rollout.number, record.percent, list(segments))
    for position, request in enumerate(requests):
        result.place(record, position, request, offers[position], identities[position])
    return result
