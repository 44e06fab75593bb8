"""The prospects of a segment: its expected value, and the probability that it is wrongly rejected for good.

These need a solver, so a page loads them after it is shown. They are cached, because the same table with the same
counts has the same prospects.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TypeVar

import msgspec

from lenience.core.bounds import Bounds
from lenience.dashboard.read_models.policy_status import SegmentStatus
from lenience.service.domain.exposure_tables import ExposureTable
from lenience.service.domain.rule import BELOW
from lenience.solvers.stopping.boundary_walk import fate

ROWS = 2_000  # acceptances over which shut-outs are computed; later ones are rare
CACHE_SIZE = 20_000
Key = tuple[str, float, float, float, int, int]
Value = TypeVar("Value")
SECONDS = 2.0  # spent on one policy's segments


class Prospect(msgspec.Struct, frozen=True):
    """The prospects of a segment.

    ``deserving`` is the probability that its success rate is above the cost. ``shut_out`` is the probability that it is
    stopped for good, given that. It is an upper bound with late outcomes, because pending ones may reopen a segment.
    """

    value: Bounds | None
    deserving: float
    shut_out: float
    at_most: bool


class Prospects:
    """A cache of prospects."""

    def __init__(self) -> None:
        self._prospects: OrderedDict[Key, Prospect] = OrderedDict()
        self._shut: OrderedDict[Key, float] = OrderedDict()
        self._lock = Lock()

    def of(self, segments: Sequence[SegmentStatus], seconds: float = SECONDS) -> dict[str, Prospect]:
        """Return the prospects of segments. Those that need more time are missing, and come with a later call."""
        until = time.monotonic() + seconds
        prospects = {}
        for segment in segments:
            key = _key(segment)
            with self._lock:
                known = self._prospects.get(key)
            if known is None:
                if time.monotonic() > until:
                    continue
                known = self._prospect(segment)
                self._keep(self._prospects, key, known)
            prospects[segment.name] = known
        return prospects

    def shut_outs(self, segments: Sequence[SegmentStatus]) -> dict[str, float]:
        """Return only the probability of wrongful rejection per segment, which is much faster."""
        return {segment.name: self._shut_out(segment) for segment in segments}

    def _prospect(self, segment: SegmentStatus) -> Prospect:
        counts = segment.counts
        table = segment.rule.table_after(counts)
        value = table.value(counts.good, counts.bad, counts.pending)[0]
        deserving = segment.belief.exceeds(segment.cost)
        return Prospect(value, deserving, self._shut_out(segment), isinstance(table, ExposureTable))

    def _shut_out(self, segment: SegmentStatus) -> float:
        key = _key(segment)
        with self._lock:
            known = self._shut.get(key)
        if known is None:
            known = shut_out(segment)
            self._keep(self._shut, key, known)
        return known

    def _keep(self, cache: OrderedDict[Key, Value], key: Key, value: Value) -> None:
        with self._lock:
            cache[key] = value
            while len(cache) > CACHE_SIZE:
                cache.popitem(last=False)


def _key(segment: SegmentStatus) -> Key:
    """Return everything that a prospect depends on."""
    rule, counts = segment.rule, segment.counts
    arrivals = 0 if rule.table.horizon is None else counts.arrivals
    return rule.digest, rule.exploration_floor, counts.good, counts.bad, counts.pending, arrivals


def shut_out(segment: SegmentStatus) -> float:
    """Return the probability of a stop for good from here on, given p > c."""
    counts, belief, table = segment.counts, segment.belief, segment.rule.table
    if segment.rule.exploration_floor > 0:
        return 0.0
    known = int(counts.good + counts.bad)
    if segment.verdict.rule == BELOW and (counts.pending == 0 or not isinstance(table, ExposureTable)):
        return 1.0
    ahead = table.boundary[known : known + ROWS]
    if belief.certain or not len(ahead):
        return 0.0
    future = fate(belief.n, belief.s, segment.cost, [math.ceil(least - counts.good) for least in ahead])
    return future.shut_out / future.deserving if future.deserving > 0 else 0.0
