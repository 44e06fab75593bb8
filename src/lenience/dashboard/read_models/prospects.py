"""What lies ahead of a segment: the value still to come, and the probability of being shut out although deserving.

These take a solve, so a page asks for them after it is there, and they are kept: the same table at the same counts has
the same prospects.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TypeVar

import msgspec

from lenience.core.bounds import Bounds
from lenience.dashboard.read_models.policy_status import SegmentStatus
from lenience.service.domain.rule import BELOW
from lenience.service.domain.solved_tables import ExposureTable
from lenience.solvers.stopping.boundary_walk import fate

ROWS = 2_000  # acceptances over which a shut-out is followed; later ones are rare
KEPT = 20_000
Key = tuple[str, float, int, int, int]
Value = TypeVar("Value")
SECONDS = 2.0  # spent on one policy's segments


class Prospect(msgspec.Struct, frozen=True):
    """What lies ahead.

    ``deserving`` is the probability that its success rate is above the cost; ``shut_out`` the probability that it is
    shut out for good, given that it is: an upper bound where labels come late, for outcomes still pending may open a
    segment again.
    """

    value: Bounds | None
    deserving: float
    shut_out: float
    at_most: bool


class Prospects:
    """Prospects that were asked for, kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, Prospect] = OrderedDict()
        self._shut: OrderedDict[Key, float] = OrderedDict()
        self._lock = Lock()

    def of(self, segments: Sequence[SegmentStatus], seconds: float = SECONDS) -> dict[str, Prospect]:
        """The prospects of segments; those that the time is not enough for are missing, and come when asked again."""
        until = time.monotonic() + seconds
        prospects = {}
        for one in segments:
            key = _key(one)
            with self._lock:
                known = self._kept.get(key)
            if known is None:
                if time.monotonic() > until:
                    continue
                known = self._prospect(one)
                self._keep(self._kept, key, known)
            prospects[one.name] = known
        return prospects

    def shut_outs(self, segments: Sequence[SegmentStatus]) -> dict[str, float]:
        """Of each segment the probability alone of being shut out although deserving: much quicker than a value."""
        return {one.name: self._shut_out(one) for one in segments}

    def _prospect(self, segment: SegmentStatus) -> Prospect:
        table, counts = segment.rule.table, segment.counts
        value = table.value(counts.successes, counts.failures, counts.pending)[0]
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
            while len(cache) > KEPT:
                cache.popitem(last=False)


def _key(segment: SegmentStatus) -> Key:
    """What a prospect follows from."""
    rule, counts = segment.rule, segment.counts
    return rule.digest, rule.exploration_floor, counts.successes, counts.failures, counts.pending


def shut_out(segment: SegmentStatus) -> float:
    """The probability of a stop for good from here on, given p > c."""
    counts, belief, table = segment.counts, segment.belief, segment.rule.table
    if segment.rule.exploration_floor > 0:
        return 0.0
    known = counts.successes + counts.failures
    if segment.verdict.rule == BELOW and (counts.pending == 0 or not isinstance(table, ExposureTable)):
        return 1.0
    ahead = table.boundary[known : known + ROWS]
    if belief.certain or not len(ahead):
        return 0.0
    future = fate(belief.n, belief.s, segment.cost, [least - counts.successes for least in ahead])
    return future.shut_out / future.deserving if future.deserving > 0 else 0.0
