"""How well a model with features predicts: expected and actual success rates by band, over the latest decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, select

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.service.domain.events import Decided, read
from lenience.service.storage import schema

BANDS = 10
LATEST = 3_000  # decisions that are read


class BandDecision(NamedTuple):
    """A decision: the expected success rate, whether it was accepted and why, and the outcome if it is known."""

    mean: float
    accepted: bool
    to_learn: bool  # although not above the break-even
    success: bool | None


class CalibrationBand(msgspec.Struct, frozen=True):
    """Applicants whose expected success rate lies in one band."""

    low: float
    high: float
    applicants: int
    accepted: int
    to_learn: int
    outcomes: int
    successes: int
    expected: float | None  # the mean expected success rate of those with an outcome
    interval: Bounds | None  # of their actual success rate, with probability 90%

    @property
    def actual(self) -> float | None:
        """The actual success rate."""
        return self.successes / self.outcomes if self.outcomes else None

    @property
    def agrees(self) -> bool | None:
        """Whether the expected rate lies in the interval of the actual one."""
        if self.interval is None or self.expected is None:
            return None
        return self.interval.lower <= self.expected <= self.interval.upper

    @property
    def remark(self) -> str:
        """What the band says, in a few words."""
        if not self.applicants:
            return ""
        if not self.outcomes:
            if self.to_learn:
                return "no outcome yet; some are accepted to learn"
            return "no outcome yet" if self.accepted else "nobody is accepted"
        return {True: "as expected", False: "not as expected", None: ""}[self.agrees]


def bands_of(decisions: Iterable[BandDecision]) -> list[CalibrationBand]:
    """Return the bands of decisions, from the lowest expected rate to the highest, without empty ends.

    >>> two = [BandDecision(0.82, True, False, True), BandDecision(0.87, True, False, False)]
    >>> [(band.low, band.outcomes, band.actual, round(band.expected, 3)) for band in bands_of(two)]
    [(0.8, 2, 0.5, 0.845)]
    """
    groups: list[list[BandDecision]] = [[] for _ in range(BANDS)]
    for one in decisions:
        groups[min(int(one.mean * BANDS), BANDS - 1)].append(one)
    bands = []
    for i, group in enumerate(groups):
        known = [one for one in group if one.success is not None]
        good = sum(one.success is True for one in known)
        interval = Belief(1 + len(known), 0.5 + good).interval(0.9) if known else None
        bands.append(
            CalibrationBand(
                low=i / BANDS,
                high=(i + 1) / BANDS,
                applicants=len(group),
                accepted=sum(one.accepted for one in group),
                to_learn=sum(one.to_learn for one in group),
                outcomes=len(known),
                successes=good,
                expected=sum(one.mean for one in known) / len(known) if known else None,
                interval=interval,
            )
        )
    while bands and not bands[-1].applicants:
        bands.pop()
    while bands and not bands[0].applicants:
        bands.pop(0)
    return bands


def read_calibration(connection: Connection, chain: int) -> list[CalibrationBand]:
    """Return the bands of the latest decisions of a chain that were made by features."""
    table, events = schema.decision, schema.event
    place = (events.c.chain_id == table.c.chain_id) & (events.c.seq == table.c.seq)
    query = select(table.c.status, events.c.body).join(events, place).where(table.c.chain_id == chain)
    decisions = []
    for row in connection.execute(query.order_by(table.c.id.desc()).limit(LATEST)).all():
        event = read(row.body)
        if isinstance(event, Decided) and event.applicant is not None:
            outcome = {schema.SUCCESS: True, schema.FAILURE: False}.get(row.status)
            accepted = event.decision == "accept"
            to_learn = accepted and event.rule != "above_break_even"
            decisions.append(BandDecision(event.applicant.mean, accepted, to_learn, outcome))
    return bands_of(decisions)
