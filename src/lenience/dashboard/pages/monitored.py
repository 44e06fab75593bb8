"""Fairness by monitored attribute: what the decisions did to groups that they did not look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from markupsafe import Markup

from lenience.analysis.monitored_groups import JOINED, GroupMeasures, MonitoredGroups, measure_groups
from lenience.analysis.proxies import Decomposition, Proxy, decompose_difference, find_proxies, split_segments
from lenience.dashboard.figures.series import Series, dumbbells, lines
from lenience.dashboard.read_models.monitored_decisions import MonitoredDecisions
from lenience.dashboard.read_models.policy_status import PolicyStatus

DRAWN = 8  # groups that fit into a chart
FEWEST_DRAWN = 30  # decisions; with fewer a chart would show mostly chance
FEATURE_SEPARATOR = ", "  # between the features in the name of a segment
SEGMENTS = "segment"


class MonitoredView(msgspec.Struct, frozen=True):
    """The content of the page for the groups of one attribute, or of several together."""

    policy: PolicyStatus
    result: MonitoredGroups
    counted: MonitoredDecisions
    proxies: list[Proxy]
    decompositions: list[Decomposition]

    @property
    def by(self) -> str:
        """The name of the choice, e.g. "sex × race"."""
        return JOINED.join(self.result.attributes)

    @property
    def arrivals(self) -> int:
        """The number of decisions whose group is known."""
        return sum(group.counts.arrivals for group in self.result.groups)

    @property
    def most(self) -> GroupMeasures:
        """The group accepted most."""
        return max(self.result.groups, key=lambda group: group.acceptance.value)

    def explained(self, name: str) -> Decomposition | None:
        """Return how the difference of a group divides, or None for the group accepted most."""
        return next((row for row in self.decompositions if row.first == name), None)

    def wrongful(self, name: str, ahead: Mapping[str, float]) -> float:
        """Return the probability that an applicant from a segment worth accepting finds it closed for good."""
        weights = {
            segment.name: self.result.cells[name, segment.name].arrivals * segment.belief.exceeds(segment.cost)
            for segment in self.policy.segments
            if (name, segment.name) in self.result.cells
        }
        total = sum(weights.values())
        return sum(weight * ahead[segment] for segment, weight in weights.items()) / total if total > 0 else 0.0


def view_of(policy: PolicyStatus, counted: MonitoredDecisions) -> MonitoredView:
    """Compute the measures, what reveals the groups, and what explains the differences."""
    rates = {segment.name: (segment.belief.mean, segment.belief.variance) for segment in policy.segments}
    result = measure_groups(counted.cells, counted.attributes, counted.first_accepted, rates, counted.early)
    proxies: list[Proxy] = []
    decompositions: list[Decomposition] = []
    if len(result.groups) > 1:
        features = [feature.name for feature in policy.version.specification.features]
        columns = {SEGMENTS: counted.cells}
        if len(features) > 1:
            columns |= split_segments(counted.cells, features, FEATURE_SEPARATOR)
        proxies = find_proxies({name: dict(cells) for name, cells in columns.items() if cells})
        decompositions = [decompose_difference(counted.cells, row.name, row.most) for row in result.comparisons]
    return MonitoredView(policy, result, counted, proxies, decompositions)


def shown(view: MonitoredView | None) -> dict[str, Any]:
    """Return what the template needs."""
    if view is None:
        return {"view": None, "pictures": [], "dumbbells": [], "fewest": FEWEST_DRAWN}
    drawn = view.result.groups[:DRAWN]
    pictures: list[Markup] = []
    pairs: list[Markup] = []
    if view.arrivals >= FEWEST_DRAWN:
        pictures = lines([_series(group.name, view.counted) for group in drawn], view.counted.width)
        rows = [
            (group.name, (group.early.value, group.early.interval), (group.late.value, group.late.interval))
            for group in drawn
            if group.early is not None and group.late is not None
        ]
        pairs = dumbbells(rows) if rows else []
    return {"view": view, "pictures": pictures, "dumbbells": pairs, "fewest": FEWEST_DRAWN}


def _series(name: str, counted: MonitoredDecisions) -> Series:
    points = [
        (start + counted.width // 2, accepted, arrivals)
        for (group, start), (accepted, arrivals) in sorted(counted.buckets.items())
        if group == name
    ]
    return Series(name, points)
