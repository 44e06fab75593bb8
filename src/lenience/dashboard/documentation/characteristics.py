"""Operating characteristics of a version: how likely each segment is stopped for good, by its true success rate.

The walk of a segment's counts under its stored table is followed exactly, as if outcomes came at once. With late
outcomes or with offers it shows when nothing more is accepted at all, so the probability is an upper bound with late
outcomes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lenience.dashboard.read_models.policy_status import PolicyStatus, SegmentStatus
from lenience.service.domain.exposure_tables import ExposureTable
from lenience.solvers.stopping.boundary_walk import follow

ROWS = 2_000  # acceptances that are followed
POINTS = 25  # true success rates
MOST = 3  # segments that are drawn, the largest ones


class StopCurve(NamedTuple):
    """The probability that a segment is stopped for good, and the expected acceptances, by its true success rate."""

    segment: str
    cost: float
    rates: list[float]
    stops: list[float]
    accepted: list[float]
    late: bool  # whether outcomes are late, so that the probabilities are upper bounds


def stop_curves(status: PolicyStatus, most: int = MOST) -> list[StopCurve]:
    """Return the curves of the largest segments that start, from the beginning of the version."""
    if status.version.feature_model is not None:
        return []
    started = [segment for segment in status.segments if not segment.rule.table.closed]
    largest = sorted(started, key=lambda segment: -segment.rule.share)[:most]
    return [stop_curve(segment) for segment in largest]


def stop_curve(segment: SegmentStatus) -> StopCurve:
    """Return the curve of a segment, from its prior."""
    table = segment.rule.table
    least = np.asarray(table.boundary[:ROWS], dtype=np.int64)
    cost = table.lowest_cost
    low, high = max(0.02, cost - 0.35), min(0.99, cost + 0.3)
    rates = np.unique(np.append(np.linspace(low, high, POINTS), cost)).tolist()
    stops, accepted = [], []
    for rate in rates:
        walk = follow(table.prior.n, table.prior.s, cost, 1.0, least, rate)
        stops.append(float(walk.lost.sum()))
        accepted.append(float(walk.moving.sum()))
    return StopCurve(segment.name, cost, rates, stops, accepted, isinstance(table, ExposureTable))
