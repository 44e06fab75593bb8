"""Fairness: acceptance by group over time, early and late, compared with each other, and wrongful rejections.

The groups are those of monitored attributes, which decisions do not look at. Without such attributes the page falls
back to the old way: the segments of a policy name their groups, and a segment without a group is its own group. The
intervals show how much chance alone could change a rate, as if decisions were independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get
from litestar.params import Parameter
from sqlalchemy import Connection, func, select

from lenience.analysis.monitored_groups import JOINED
from lenience.analysis.proportions import difference_interval, rate_interval, ratio_interval
from lenience.core.bounds import Bounds
from lenience.dashboard.figures.series import Series, dumbbells, lines
from lenience.dashboard.pages import monitored
from lenience.dashboard.read_models.monitored_decisions import MonitoredCache, attribute_choices
from lenience.dashboard.read_models.policy_status import (
    PolicyStatus,
    SegmentStatus,
    policy_names,
    ranked_policies,
    read_policy_status,
)
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import (
    TimeBucket,
    TimeBucketCache,
    overrides,
    span,
    width_for,
)
from lenience.dashboard.rendering import page, part
from lenience.service.domain.identity import first_id
from lenience.service.http.service import Service
from lenience.service.storage import schema

Req = Request[Any, Any, Any]
Chosen = Annotated[str, Parameter(max_length=64)]
Attributes = Annotated[str, Parameter(max_length=400)]
DRAWN = 8  # groups that fit into a chart
FEWEST_DRAWN = 30  # decisions; with fewer a chart would show mostly chance
FIFTHS = 0.8


class AcceptanceCount(msgspec.Struct, frozen=True):
    """A number of acceptances among a number of arrivals."""

    accepted: int = 0
    arrivals: int = 0

    @property
    def rate(self) -> float:
        """The share accepted."""
        return self.accepted / self.arrivals if self.arrivals else 0.0

    @property
    def interval(self) -> Bounds:
        """The 95% interval of the share accepted."""
        return rate_interval(self.accepted, self.arrivals)


class Disparity(msgspec.Struct, frozen=True):
    """The acceptance of a group compared with the group accepted most."""

    ratio: float
    ratio_interval: Bounds
    difference: float
    difference_interval: Bounds

    @property
    def kind(self) -> str:
        """The result of the four-fifths rule: below, below but possibly by chance (unsure), or not below."""
        if self.ratio >= FIFTHS:
            return "not below"
        return "below" if self.ratio_interval.upper < FIFTHS else "unsure"


class Group(msgspec.Struct, frozen=True):
    """A group: its decisions, early and late, and its segments."""

    name: str
    segments: list[SegmentStatus]
    all: AcceptanceCount
    early: AcceptanceCount
    late: AcceptanceCount
    overridden: tuple[int, int] = (0, 0)  # accepted and rejected by override
    disparity: Disparity | None = None  # None for the group accepted most

    @property
    def change(self) -> Bounds:
        """The interval of late minus early."""
        return difference_interval(self.late.accepted, self.late.arrivals, self.early.accepted, self.early.arrivals)

    @property
    def share(self) -> float:
        """The group's share of the applicants, according to the policy."""
        return sum(segment.rule.share for segment in self.segments)

    @property
    def believed(self) -> float:
        """The expected success rate of the group's applicants."""
        return sum(segment.rule.share * segment.belief.mean for segment in self.segments) / self.share

    @property
    def stopped(self) -> list[str]:
        """The names of stopped segments."""
        return [segment.name for segment in self.segments if segment.stopped]

    def shut_out(self, ahead: Mapping[str, float]) -> float:
        """Return the probability that a segment worth accepting is rejected for good."""
        weights = [segment.rule.share * segment.belief.exceeds(segment.cost) for segment in self.segments]
        expected = sum(w * ahead[segment.name] for w, segment in zip(weights, self.segments, strict=True))
        return expected / sum(weights) if sum(weights) > 0 else 0.0


class Fairness(msgspec.Struct, frozen=True):
    """The content of the page for one policy."""

    policy: PolicyStatus
    groups: list[Group]
    series: list[Series]
    width: int  # of a time bucket, in microseconds

    @property
    def named(self) -> bool:
        """Whether the segments have groups."""
        return any(segment.group is not None for segment in self.policy.segments)

    @property
    def arrivals(self) -> int:
        """The total number of arrivals."""
        return sum(group.all.arrivals for group in self.groups)

    @property
    def compared(self) -> list[Group]:
        """The groups with arrivals, which can be compared."""
        return [group for group in self.groups if group.all.arrivals]


@get("/fairness", include_in_schema=False)
async def show(request: Req, policy: Chosen = "", by: Attributes = "") -> Response[bytes]:
    """Show the page."""
    service: Service = request.app.state.service

    def ask() -> dict[str, Any]:
        names = policy_names(service)
        if not names and not policy:
            return {"policies": names, "policy": "", "choices": [], **monitored.shown(None), **_shown(None)}
        return {"policies": names, **_content(request, policy or first_choice(service), by), "ahead": None}

    return page(request, "fairness.html", **await service.ask(ask))


@get("/fairness/live", include_in_schema=False)
async def live(request: Req, policy: Chosen, by: Attributes = "") -> Response[bytes]:
    """Refresh the page, including values that need a solver."""
    service: Service = request.app.state.service
    prospects: Prospects = request.app.state.prospects

    def ask() -> dict[str, Any]:
        content = _content(request, policy, by)
        shown = content["view"] or content["fairness"]
        return {**content, "ahead": prospects.shut_outs(shown.policy.segments)}

    content = await service.ask(ask)
    return part(request, "fairness.html" if content["view"] is None else "monitored.html", **content)


def _content(request: Req, name: str, by: str) -> dict[str, Any]:
    """Read a policy in one transaction: its groups by monitored attributes, or else by its segments."""
    service: Service = request.app.state.service
    counts: MonitoredCache = request.app.state.monitored
    with service.store.read() as connection:
        status = read_policy_status(service, connection, name)
        chains = [segment.chain for segment in status.segments]
        choices = {JOINED.join(each): each for each in attribute_choices(connection, chains)}
        if not choices:
            fairness = read_fairness(connection, status, request.app.state.tallies)
            return {"policy": name, "choices": [], **monitored.shown(None), **_shown(fairness)}
        chosen = by if by in choices else next(iter(choices))
        counted = counts.read(connection, status, choices[chosen])
    view = monitored.view_of(status, counted)
    return {"policy": name, "choices": list(choices), **_shown(None), **monitored.shown(view)}


def first_choice(service: Service) -> str:
    """Return the busiest active policy, or any policy if none is active."""
    return ranked_policies(service)[0].name


def read_fairness(connection: Connection, status: PolicyStatus, tallies: TimeBucketCache) -> Fairness:
    """Read the groups of a policy with their decisions."""
    chains = [segment.chain for segment in status.segments]
    between = span(connection, chains)
    width = width_for(*between) if between else 0
    buckets = tallies.buckets(connection, chains, between[0], width) if between else []
    members: dict[str, list[SegmentStatus]] = {}
    for segment in status.segments:
        members.setdefault(segment.group or segment.name, []).append(segment)
    overridden = overrides(connection, chains)
    groups = [_group(connection, name, mine, buckets, width, overridden) for name, mine in members.items()]
    most = sorted(groups, key=lambda group: group.all.arrivals, reverse=True)[:DRAWN]
    series = [_series(group, buckets, width) for group in groups if group in most and group.all.arrivals]
    return Fairness(status, disparities(groups), series, width)


def disparities(groups: list[Group]) -> list[Group]:
    """Compare each group with the one accepted most, which has no disparity."""
    with_arrivals = [group for group in groups if group.all.arrivals]
    if len(with_arrivals) < 2:
        return groups
    best = max(with_arrivals, key=lambda group: group.all.rate)
    if best.all.accepted == 0:
        return groups
    return [group if group is best or group not in with_arrivals else _beside(group, best) for group in groups]


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
    overridden: Mapping[int, tuple[int, int]],
) -> Group:
    chains = {segment.chain for segment in segments}
    changed = [overridden[chain] for chain in chains if chain in overridden]
    mine = [bucket for bucket in buckets if bucket.chain in chains]
    everyone = AcceptanceCount(sum(bucket.accepted for bucket in mine), sum(bucket.arrivals for bucket in mine))
    early = _first(connection, mine, everyone.arrivals // 2, width)
    late = AcceptanceCount(everyone.accepted - early.accepted, everyone.arrivals - early.arrivals)
    return Group(
        name, segments, everyone, early, late, (sum(up for up, _ in changed), sum(down for _, down in changed))
    )


def _first(connection: Connection, mine: list[TimeBucket], count: int, width: int) -> AcceptanceCount:
    """Return about the first ``count`` decisions: whole time buckets, then part of the next one."""
    seen = accepted = 0
    for start in sorted({bucket.start for bucket in mine}):
        here = [bucket for bucket in mine if bucket.start == start]
        arrivals = sum(bucket.arrivals for bucket in here)
        if seen + arrivals > count:
            table = schema.decision
            within = (
                table.c.id.between(first_id(start), first_id(start + width))  # this range uses the index
                & table.c.at.between(start, start + width - 1)  # an id may be later than its time
                & table.c.chain_id.in_([bucket.chain for bucket in here])
            )
            some = select(table.c.accepted).where(within).order_by(table.c.id).limit(count - seen).subquery()
            arrivals, taken = connection.execute(
                select(func.count(), func.sum(some.c.accepted)).select_from(some)
            ).one()
            return AcceptanceCount(accepted + int(taken or 0), seen + arrivals)
        seen += arrivals
        accepted += sum(bucket.accepted for bucket in here)
    return AcceptanceCount(accepted, seen)


def _series(group: Group, buckets: list[TimeBucket], width: int) -> Series:
    chains = {segment.chain for segment in group.segments}
    tallies: dict[int, list[int]] = {}
    for bucket in buckets:
        if bucket.chain in chains:
            row = tallies.setdefault(bucket.start, [0, 0])
            row[0] += bucket.accepted
            row[1] += bucket.arrivals
    points = [(start + width // 2, accepted, arrivals) for start, (accepted, arrivals) in sorted(tallies.items())]
    return Series(group.name, points)


def _shown(fairness: Fairness | None) -> dict[str, Any]:
    if fairness is None or fairness.arrivals < FEWEST_DRAWN:
        return {"fairness": fairness, "pictures": [], "dumbbells": [], "fewest": FEWEST_DRAWN}
    drawn = [group for group in fairness.groups if any(group.name == line.name for line in fairness.series)]
    rows = [
        (group.name, (group.early.rate, group.early.interval), (group.late.rate, group.late.interval))
        for group in drawn
        if group.early.arrivals
    ]
    return {
        "fairness": fairness,
        "pictures": lines(fairness.series, fairness.width),
        "dumbbells": dumbbells(rows) if rows else [],
    }


HANDLERS = [show, live]
