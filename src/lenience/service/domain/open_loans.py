"""What the open loans of a segment say at their age, counted once a day and recorded in the log.

The first decision of a segment on a day (UTC) needs it. The ages of the segment's open loans are then counted in whole
days, and :func:`lenience.models.maturing.mature_belief` gives each version's belief with them. The event holds what the
open loans add to the counts, as numbers of outcomes and successes that need not be whole. A loan whose outcome arrives
later that day takes its share of that with it, so that it does not count twice.

If old outcomes count less (:mod:`lenience.service.domain.forgetting`), what is forgotten of them is counted at the same
time, and the same event holds it. An outcome counts in full until the next day.

A loan that is reported as late counts like any open loan of its age. The timing curves are those of all open loans,
late ones included, so that this is right on average.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256

import msgspec
from msgspec import UNSET, UnsetType

from lenience.models.maturing import TimingCurves, mature_belief
from lenience.service.domain.clock import DAY
from lenience.service.domain.rule import Counts, SegmentRule

TOLERANCE = 1e-9  # relative: another machine may round the last digits otherwise


class OpenEvidence(msgspec.Struct, frozen=True, array_like=True):
    """What the open loans add to the counts, under one version."""

    version: int
    outcomes: float
    successes: float


class OpenLoans(msgspec.Struct):
    """The open loans of a segment when they were counted last, and how many of them have an outcome since."""

    at: int
    seq: int  # the place of the event in the segment's chain
    number: int
    evidence: tuple[OpenEvidence, ...]
    settled: int = 0
    forgotten: tuple[OpenEvidence, ...] | UnsetType = UNSET  # of known outcomes, under versions that forget

    def settle(self, seq: int) -> None:
        """Note that a decision at this place of the chain is no longer pending. Later ones were not counted."""
        self.settled += seq < self.seq

    def is_current(self, now: int, timed: Iterable[int], forgetting: Iterable[int] = ()) -> bool:
        """Return whether they were counted today, for these versions with timing curves, and for those that forget."""
        if self.at // DAY != now // DAY or not {one.version for one in self.evidence} >= set(timed):
            return False
        return {one.version for one in self.forgotten or ()} >= set(forgetting)

    def add_to(self, counts: Counts, version: int) -> Counts:
        """Return counts with what the open loans add under a version."""
        lost = next((one for one in self.forgotten or () if one.version == version), None)
        counts = with_forgotten(counts, lost)
        own = next((one for one in self.evidence if one.version == version), None)
        left = max(self.number - self.settled, 0)
        if own is None or left == 0 or not (own.outcomes or own.successes):
            return counts
        share = left / self.number
        return replace(counts, open=left, open_outcomes=share * own.outcomes, open_successes=share * own.successes)


_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(OpenLoans)


def encode_open_loans(loans: OpenLoans | None) -> str | None:
    """Encode open loans as the text that is stored with their segment."""
    return None if loans is None else _encoder.encode(loans).decode()


def decode_open_loans(text: str | None) -> OpenLoans | None:
    """Decode the stored text."""
    return None if text is None else _decoder.decode(text)


def with_open_loans(counts: Counts, loans: OpenLoans | None, version: int) -> Counts:
    """Return counts with what open loans add under a version, if they were counted."""
    return counts if loans is None else loans.add_to(counts, version)


def with_forgotten(counts: Counts, lost: OpenEvidence | None) -> Counts:
    """Return counts without what a version has forgotten."""
    if lost is None or not lost.outcomes:
        return counts
    return replace(counts, forgotten_outcomes=lost.outcomes, forgotten_successes=lost.successes)


def ages_of(decided: Iterable[int], now: int) -> Counter[int]:
    """Return the number of open loans of each age in whole days, from the times of their decisions.

    >>> sorted(ages_of([0, 0, 5 * DAY], 6 * DAY + 1).items())
    [(1, 1), (6, 2)]
    """
    return Counter(max(now - at, 0) // DAY for at in decided)


def ages_digest(ages: Mapping[int, int]) -> str:
    """Return a digest of the number of open loans of each age."""
    return sha256(";".join(f"{age}:{number}" for age, number in sorted(ages.items())).encode()).hexdigest()


def weigh(rule: SegmentRule, curves: TimingCurves, counts: Counts, ages: Mapping[int, int]) -> tuple[float, float]:
    """Return what open loans add to a segment's outcomes and successes."""
    if not ages:
        return 0.0, 0.0
    known = rule.table.belief(counts.good, counts.bad)
    days = sorted(ages)
    after = mature_belief(known, days, curves, [ages[day] for day in days])
    return after.n - known.n, after.s - known.s


def same(stated: OpenEvidence, computed: tuple[float, float], number: int) -> bool:
    """Return whether an event states what the audit computes, up to rounding on another machine."""
    room = TOLERANCE * max(number, 1)
    return abs(stated.outcomes - computed[0]) <= room and abs(stated.successes - computed[1]) <= room
