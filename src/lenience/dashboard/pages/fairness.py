"""Fairness: who is accepted, by group: over time, early against late, beside one another, and who is shut out.

A group is what the segments of a policy say it is; without groups each segment is one of its own. The intervals say
how far chance alone could have moved a rate, as if every decision had been drawn by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get
from litestar.params import Parameter
from sqlalchemy import Connection, func, select

from lenience.core.bounds import Bounds
from lenience.dashboard.figures.series import Series, dumbbells, lines
from lenience.dashboard.read_models.policy_status import (
    PolicyStatus,
    SegmentStatus,
    policy_names,
    ranked_policies,
    read_policy_status,
)
from lenience.dashboard.read_models.proportions import difference_interval, rate_interval, ratio_interval
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import (
    TimeBucket,
    TimeBucketCache,
    first_id,
    overrides,
    span,
    width_for,
)
from lenience.dashboard.rendering import page, part
from lenience.service.http.service import Service
from lenience.service.storage import schema

Req = Request[Any, Any, Any]
Chosen = Annotated[str, Parameter(max_length=64)]
DRAWN = 8  # groups that a picture can hold
FEWEST_DRAWN = 30  # decisions below which a picture would show chance alone
FIFTHS = 0.8


class AcceptanceCount(msgspec.Struct, frozen=True):
    """So many accepted of so many."""

    accepted: int = 0
    arrivals: int = 0

    @property
    def rate(self) -> float:
        """The share accepted."""
        return self.accepted / self.arrivals if self.arrivals else 0.0

    @property
    def interval(self) -> Bounds:
        """Where it may lie, by chance alone."""
        return rate_interval(self.accepted, self.arrivals)


class Disparity(msgspec.Struct, frozen=True):
    """A group's acceptance beside that of the group accepted most."""

    ratio: float
    ratio_interval: Bounds
    difference: float
    difference_interval: Bounds

    @property
    def kind(self) -> str:
        """How it compares with four fifths: surely below, below but perhaps by chance, or not below."""
        if self.ratio >= FIFTHS:
            return "not below"
        return "below" if self.ratio_interval.upper < FIFTHS else "unsure"


class Group(msgspec.Struct, frozen=True):
    """A group: its decisions, early and late, and what is believed of its segments."""

    name: str
    segments: list[SegmentStatus]
    all: AcceptanceCount
    early: AcceptanceCount
    late: AcceptanceCount
    overridden: tuple[int, int] = (0, 0)  # accepted, and rejected, by a person and not by the policy
    disparity: Disparity | None = None  # nothing for the group accepted most

    @property
    def change(self) -> Bounds:
        """The interval of late less early."""
        return difference_interval(self.late.accepted, self.late.arrivals, self.early.accepted, self.early.arrivals)

    @property
    def share(self) -> float:
        """Its share of the applicants, as the policy has it."""
        return sum(one.rule.share for one in self.segments)

    @property
    def believed(self) -> float:
        """The success rate believed, over its applicants."""
        return sum(one.rule.share * one.belief.mean for one in self.segments) / self.share

    @property
    def stopped(self) -> list[str]:
        """Its segments that are stopped."""
        return [one.name for one in self.segments if one.stopped]

    def shut_out(self, ahead: Mapping[str, float]) -> float:
        """The probability that someone of a segment that deserves acceptance is shut out for good."""
        weights = [one.rule.share * one.belief.exceeds(one.cost) for one in self.segments]
        expected = sum(w * ahead[one.name] for w, one in zip(weights, self.segments, strict=True))
        return expected / sum(weights) if sum(weights) > 0 else 0.0


class Fairness(msgspec.Struct, frozen=True):
    """What the page shows of a policy."""

    policy: PolicyStatus
    groups: list[Group]
    series: list[Series]
    width: int  # microseconds of a stretch of time

    @property
    def named(self) -> bool:
        """Whether the segments have groups."""
        return any(one.group is not None for one in self.policy.segments)

    @property
    def arrivals(self) -> int:
        """How many came in all."""
        return sum(group.all.arrivals for group in self.groups)

    @property
    def compared(self) -> list[Group]:
        """The groups that can be compared: those of whom anyone came."""
        return [group for group in self.groups if group.all.arrivals]


@get("/fairness", include_in_schema=False)
async def show(request: Req, policy: Chosen = "") -> Response[bytes]:
    """The page."""
    service: Service = request.app.state.service
    tallies: TimeBucketCache = request.app.state.tallies

    def ask() -> dict[str, Any]:
        names = policy_names(service)
        fairness = fairness_of_policy(service, tallies, policy or first_choice(service)) if names or policy else None
        return {"policies": names, **_shown(fairness), "ahead": None}

    return page(request, "fairness.html", **await service.ask(ask))


@get("/fairness/live", include_in_schema=False)
async def live(request: Req, policy: Chosen) -> Response[bytes]:
    """The same again, with what takes a solve."""
    service: Service = request.app.state.service
    prospects: Prospects = request.app.state.prospects
    tallies: TimeBucketCache = request.app.state.tallies

    def ask() -> dict[str, Any]:
        fairness = fairness_of_policy(service, tallies, policy)
        return {**_shown(fairness), "ahead": prospects.shut_outs(fairness.policy.segments)}

    return part(request, "fairness.html", **await service.ask(ask))


def first_choice(service: Service) -> str:
    """The busiest policy that rules, or any."""
    return ranked_policies(service)[0].name


def fairness_of_policy(service: Service, tallies: TimeBucketCache, name: str) -> Fairness:
    """Everything of a policy, in one state of the database."""
    with service.store.read() as connection:
        status = read_policy_status(service, connection, name)
        return read_fairness(connection, status, tallies)


def read_fairness(connection: Connection, status: PolicyStatus, tallies: TimeBucketCache) -> Fairness:
    """The groups of a policy with their decisions."""
    chains = [one.chain for one in status.segments]
    between = span(connection, chains)
    width = width_for(*between) if between else 0
    buckets = tallies.buckets(connection, chains, between[0], width) if between else []
    members: dict[str, list[SegmentStatus]] = {}
    for one in status.segments:
        members.setdefault(one.group or one.name, []).append(one)
    otherwise = overrides(connection, chains)
    groups = [_group(connection, name, mine, buckets, width, otherwise) for name, mine in members.items()]
    most = sorted(groups, key=lambda group: group.all.arrivals, reverse=True)[:DRAWN]
    series = [_series(group, buckets, width) for group in groups if group in most and group.all.arrivals]
    return Fairness(status, disparities(groups), series, width)


def disparities(groups: list[Group]) -> list[Group]:
    """Each group beside the one accepted most, which has none."""
    came = [group for group in groups if group.all.arrivals]
    if len(came) < 2:
        return groups
    best = max(came, key=lambda group: group.all.rate)
    if best.all.accepted == 0:
        return groups
    return [group if group is best or group not in came else _beside(group, best) for group in groups]


def _beside(group: Group, best: Group) -> Group:
    numbers = (group.all.accepted, group.all.arrivals, best.all.accepted, best.all.arrivals)
    disparity = Disparity(
        group.all.rate / best.all.rate,
        ratio_interval(*numbers),
        group.all.rate - best.all.rate,
        difference_interval(*numbers),
    )
    return msgspec.structs.replace(group, disparity=disparity)


def _group(
    connection: Connection,
    name: str,
    segments: list[SegmentStatus],
    buckets: list[TimeBucket],
    width: int,
    otherwise: Mapping[int, tuple[int, int]],
) -> Group:
    chains = {one.chain for one in segments}
    changed = [otherwise[chain] for chain in chains if chain in otherwise]
    mine = [one for one in buckets if one.chain in chains]
    everyone = AcceptanceCount(sum(one.accepted for one in mine), sum(one.arrivals for one in mine))
    early = _first(connection, mine, everyone.arrivals // 2, width)
    late = AcceptanceCount(everyone.accepted - early.accepted, everyone.arrivals - early.arrivals)
    return Group(
        name, segments, everyone, early, late, (sum(up for up, _ in changed), sum(down for _, down in changed))
    )


def _first(connection: Connection, mine: list[TimeBucket], count: int, width: int) -> AcceptanceCount:
    """The first so many decisions, or nearly: whole stretches of time, and of the next as many as are missing."""
    seen = accepted = 0
    for start in sorted({one.start for one in mine}):
        here = [one for one in mine if one.start == start]
        came = sum(one.arrivals for one in here)
        if seen + came > count:
            table = schema.decision
            within = (
                table.c.id.between(first_id(start), first_id(start + width))  # what is found by an index, and of these
                & table.c.at.between(start, start + width - 1)  # those of the stretch: an id may be later than its time
                & table.c.chain_id.in_([one.chain for one in here])
            )
            some = select(table.c.accepted).where(within).order_by(table.c.id).limit(count - seen).subquery()
            came, taken = connection.execute(select(func.count(), func.sum(some.c.accepted)).select_from(some)).one()
            return AcceptanceCount(accepted + int(taken or 0), seen + came)
        seen += came
        accepted += sum(one.accepted for one in here)
    return AcceptanceCount(accepted, seen)


def _series(group: Group, buckets: list[TimeBucket], width: int) -> Series:
    chains = {one.chain for one in group.segments}
    tallies: dict[int, list[int]] = {}
    for one in buckets:
        if one.chain in chains:
            row = tallies.setdefault(one.start, [0, 0])
            row[0] += one.accepted
            row[1] += one.arrivals
    points = [(start + width // 2, accepted, arrivals) for start, (accepted, arrivals) in sorted(tallies.items())]
    return Series(group.name, points)


def _shown(fairness: Fairness | None) -> dict[str, Any]:
    if fairness is None or fairness.arrivals < FEWEST_DRAWN:
        return {"found": fairness, "pictures": [], "dumbbells": [], "fewest": FEWEST_DRAWN}
    drawn = [group for group in fairness.groups if any(group.name == one.name for one in fairness.series)]
    rows = [
        (group.name, (group.early.rate, group.early.interval), (group.late.rate, group.late.interval))
        for group in drawn
        if group.early.arrivals
    ]
    return {
        "found": fairness,
        "pictures": lines(fairness.series, fairness.width),
        "dumbbells": dumbbells(rows) if rows else [],
    }


HANDLERS = [show, live]
