"""A policy: the picture of its beliefs, its segments, its versions, and shadow against active."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get, post
from litestar.params import Parameter
from sqlalchemy import Connection, select

from lenience.dashboard.figures.boundary import picture, sparkline
from lenience.dashboard.read_models.belief_history import Step, belief_path
from lenience.dashboard.read_models.policy_status import PolicyStanding, SegmentStanding, read_standing
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.rendering import moved, natural, page, part
from lenience.dashboard.session import checked_form, visitor_of
from lenience.dashboard.short_names import without_features
from lenience.dashboard.wizard.bands import example
from lenience.service.commands.command import sender
from lenience.service.commands.lifecycle import NEXT, ChangeState
from lenience.service.domain.answers import DecisionEntry
from lenience.service.domain.clock import when
from lenience.service.domain.events import Decided, State, StateChanged, VersionCreated, read
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.specification import (
    Objective,
    PolicySpecification,
)
from lenience.service.http.common import PolicyName
from lenience.service.http.service import Service
from lenience.service.storage import schema

Req = Request[Any, Any, Any]
VersionNumber = Annotated[int | None, Parameter(ge=1, le=10**6)]
Segment = Annotated[str | None, Parameter(max_length=200)]
MOST_WAYS = 40  # segments whose ways are drawn behind the chosen one, the busiest
FEATURE = "feature:"  # and its name: the field of a form that holds it
COMPARED = 400  # decisions over which a shadow is compared with the active version


class Life(msgspec.Struct, frozen=True):
    """An event in the life of a policy."""

    at: str
    actor: str
    what: str


class Typed(msgspec.Struct, frozen=True):
    """The form to decide one by hand as it was typed, what is wrong in it and where, and what was decided before."""

    values: dict[str, str] = {}
    error: str = ""
    field: str = ""
    before: DecisionEntry | None = None


class Compared(msgspec.Struct, frozen=True):
    """A shadow version beside the active one, over the last decisions of every segment."""

    version: int
    decisions: int
    same: int
    stricter: int  # the shadow would have rejected
    laxer: int  # the shadow would have accepted


@get("/policies/{name:str}", include_in_schema=False)
async def show(
    name: PolicyName, request: Req, version: VersionNumber = None, segment: Segment = None
) -> Response[bytes]:
    """A policy."""
    service: Service = request.app.state.service
    return page(request, "policy.html", **await service.ask(lambda: filled_in(service, name, version, segment)))


def filled_in(
    service: Service, name: str, version: int | None = None, segment: str | None = None, hand: Typed | None = None
) -> dict[str, Any]:
    """What the page is filled in with."""
    with service.store.read() as connection:
        standing = read_standing(service, connection, name, version)
        if hand is not None and segment not in standing.version.rules:
            segment = None  # it was typed, not asked for
        return {
            "policy": standing,
            "life": life(connection, standing),
            "compared": [] if version else compare(connection, standing),
            "objective": objective_words(standing.version.specification.objective),
            "sent": request_words(standing.version.specification),
            "steps": steps_of(standing),
            "hand": hand or Typed(),
            **draw(connection, standing, segment),
        }


@get("/policies/{name:str}/live", include_in_schema=False)
async def live(
    name: PolicyName, request: Req, version: VersionNumber = None, segment: Segment = None
) -> Response[bytes]:
    """The picture and the segments again, for a page that is open, with what takes a solve."""
    service: Service = request.app.state.service
    prospects: Prospects = request.app.state.prospects

    def ask() -> dict[str, Any]:
        with service.store.read() as connection:
            standing = read_standing(service, connection, name, version)
            drawn = draw(connection, standing, segment)
        return {"policy": standing, **drawn, "prospects": prospects.of(standing.segments)}

    return part(request, "segments.html", **await service.ask(ask))


@post("/policies/{name:str}/state", include_in_schema=False, opt={"role": "admin"}, status_code=303)
async def change_state(name: PolicyName, request: Req) -> Response[bytes]:
    """Activate, shadow or retire a version."""
    form = await checked_form(request)
    state, number = str(form.get("state", "")), str(form.get("version", ""))
    if state not in NEXT or not number.isdigit():
        raise BadRequest(f"state must be one of {', '.join(NEXT)} and version a number")
    service: Service = request.app.state.service
    visitor = visitor_of(request)
    assert visitor is not None
    who = sender(visitor.actor, None, "", None)
    await service.perform(ChangeState(who, name, state, int(number)))
    return moved(f"/policies/{name}", f"Version {number} of {name} is now {state}.")


def draw(connection: Connection, policy: PolicyStanding, chosen: str | None) -> dict[str, Any]:
    """The picture of the chosen segment with the busiest others, and the small pictures of all."""
    shown = policy.segment(chosen)
    busy = sorted(policy.segments, key=lambda one: one.counts.arrivals, reverse=True)
    others = [one for one in busy if one is not shown][:MOST_WAYS]
    paths: dict[str, Sequence[Step]] = {
        one.name: belief_path(connection, one.chain, one.length, 150 if one is shown else 60)
        for one in [shown, *others]
    }
    features, plain = without_features([one.name for one in policy.segments])
    return {
        "shown": shown,
        "features": features,
        "plain": plain,
        "pictures": [picture(shown, paths, others), picture(shown, paths, others, narrow=True)],
        "sparks": {one.name: sparkline(one, paths[one.name]) for one in [shown, *others]},
        "prospects": None,
        "groups": _by_group(policy.segments),
    }


def _by_group(segments: list[SegmentStanding]) -> list[tuple[str | None, list[SegmentStanding]]]:
    found: dict[str | None, list[SegmentStanding]] = {}
    for one in sorted(segments, key=lambda one: natural(one.name)):
        found.setdefault(one.group, []).append(one)
    return list(found.items())


def steps_of(policy: PolicyStanding) -> dict[int, list[State]]:
    """Which states each version can go to."""
    return {
        number: [to for to, sources in NEXT.items() if state in sources]
        for number, state in policy.record.states.items()
    }


def life(connection: Connection, policy: PolicyStanding) -> list[Life]:
    """What has happened to the policy, the newest first."""
    events = schema.event
    query = select(events.c.body).where(events.c.chain_id == policy.record.chain)
    found = []
    for body in connection.execute(query.order_by(events.c.seq.desc()).limit(30)).scalars():
        event = read(body)
        if isinstance(event, VersionCreated):
            what = f"version {event.number} made, with {len(event.names):,} segments"
        elif isinstance(event, StateChanged):
            what = f"version {event.number} became {event.state}"
        else:
            continue
        found.append(Life(when(event.at), event.actor, what))
    return found


def compare(connection: Connection, policy: PolicyStanding) -> list[Compared]:
    """Each shadow version beside what was decided, over the last decisions."""
    shadows = [version.number for version in policy.record.shadows]
    if not shadows:
        return []
    tally = {number: [0, 0, 0, 0] for number in shadows}
    events = schema.event
    each = max(COMPARED // max(len(policy.segments), 1), 20)
    for one in policy.segments:
        query = select(events.c.body).where(events.c.chain_id == one.chain, events.c.about.is_(None))
        for body in connection.execute(query.order_by(events.c.seq.desc()).limit(each)).scalars():
            event = read(body)
            if not isinstance(event, Decided):
                continue
            for shadow in event.shadows:
                if shadow.version in tally:
                    row = tally[shadow.version]
                    row[0] += 1
                    row[1] += shadow.decision == event.decision
                    row[2] += shadow.decision == "reject" != event.decision
                    row[3] += shadow.decision == "accept" != event.decision
    return [Compared(number, *row) for number, row in tally.items()]


def objective_words(objective: Objective) -> list[tuple[str, str]]:
    """The objective as someone in risk would put it."""
    from lenience.core.formatting import amount, count, duration, percent

    rows = [("Break-even success rate", percent(objective.cost))]
    if objective.horizon is not None:
        return [*rows, ("Individuals in all", amount(objective.horizon))]
    if objective.arrivals is None:
        return [*rows, ("Applicants that count", f"{count(objective.volume)} (γ = {objective.discount:.6g})")]
    rows += [
        ("Applicants a year", amount(objective.arrivals or 0)),
        ("Discount rate a year", percent(objective.discount_rate or 0)),
    ]
    if objective.label_delay:
        rows.append(("Outcomes come after", f"{duration(objective.label_delay)} on average"))
    return rows


def request_words(specification: PolicySpecification) -> str:
    """What a program sends to ask for a decision, by example.

    >>> from lenience import Discounted
    >>> from lenience.service.domain.feature_cells import Feature
    >>> cut = PolicySpecification("cards", Discounted(0.8, 0.99), features=[Feature("score", edges=[600.0])])
    >>> print(request_words(cut))
    {"features": {"score": 600}, "reference": "application 17"}
    """
    told: dict[str, Any] = {}
    if specification.features:
        told["features"] = example(specification.features)
    elif specification.segments:
        first = specification.segments[0]
        told["segment"] = first if isinstance(first, str) else first.name
    return msgspec.json.format(msgspec.json.encode(told | {"reference": "application 17"}), indent=0).decode()


HANDLERS = [show, live, change_state]
