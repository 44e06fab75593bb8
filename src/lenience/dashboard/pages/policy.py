"""A policy: the chart of its segments, its versions, and shadow versions compared with the active one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get, post
from litestar.params import Parameter
from sqlalchemy import Connection, select, text

from lenience.core.errors import InputError
from lenience.core.money import UNITS, Money
from lenience.core.validation import real
from lenience.dashboard.figures import offers as offer_figure
from lenience.dashboard.figures.boundary import picture, sparkline
from lenience.dashboard.figures.intervals import calibration_bar
from lenience.dashboard.read_models.accepted_offers import recent_offers
from lenience.dashboard.read_models.belief_history import Step, belief_path
from lenience.dashboard.read_models.model_reports import ReportView, report_view
from lenience.dashboard.read_models.policy_description import describe_limits, describe_objective, example_request
from lenience.dashboard.read_models.policy_status import PolicyStatus, SegmentStatus, read_policy_status
from lenience.dashboard.read_models.profits import policy_profit
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.rendering import natural, page, part, redirect
from lenience.dashboard.session import checked_form, visitor_of
from lenience.dashboard.short_names import without_features
from lenience.service.commands.four_eyes import four_eyes_required, version_authors
from lenience.service.commands.lifecycle import NEXT, ChangeState
from lenience.service.domain.answers import DecisionEntry, VersionAnswer
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import ImportStarted, State, StateChanged, VersionCreated, read
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.rollout_comparison import RolloutComparison
from lenience.service.domain.shadow_comparison import ShadowComparison
from lenience.service.http.common import PolicyName
from lenience.service.http.service import Service
from lenience.service.queries.shadow_versions import compare_shadows
from lenience.service.storage import schema
from lenience.service.storage.import_records import read_imports
from lenience.service.storage.people import actor_names
from lenience.service.storage.version_records import read_version_records

Req = Request[Any, Any, Any]
VersionNumber = Annotated[int | None, Parameter(ge=1, le=10**6)]
Segment = Annotated[str | None, Parameter(max_length=200)]
MOST_PATHS = 40  # busiest segments whose paths are drawn behind the chosen one
LONGEST_REASON = 500
FEATURE = "feature:"  # prefix of the form fields that hold features


class PolicyEvent(msgspec.Struct, frozen=True):
    """An event in the history of a policy."""

    at: str
    actor: str
    what: str


class SubmittedDecision(msgspec.Struct, frozen=True):
    """The decision form as typed, its error and field, and an earlier decision under the same reference."""

    values: dict[str, str] = {}
    error: str = ""
    field: str = ""
    before: DecisionEntry | None = None


@get("/policies/{name:str}", include_in_schema=False)
async def show(
    name: PolicyName, request: Req, version: VersionNumber = None, segment: Segment = None
) -> Response[bytes]:
    """Show a policy."""
    service: Service = request.app.state.service
    values = await service.ask(lambda: filled_in(service, name, version, segment))
    return page(request, "policy.html", **values)


def filled_in(
    service: Service,
    name: str,
    version: int | None = None,
    segment: str | None = None,
    hand: SubmittedDecision | None = None,
) -> dict[str, Any]:
    """Return the values of the page."""
    report = report_view(service, name, version)
    rollout = None if version else service.queries.rollout(name).rollout
    with service.store.read() as connection:
        status = read_policy_status(service, connection, name, version)
        if hand is not None and segment not in status.version.rules:
            segment = None  # it was typed into the form, not chosen in the address
        compared = [] if version else compare_shadows(connection, status.record)
        authors = version_authors(connection, status.record.chain)
        events = policy_events(connection, status)
        versions = read_version_records(connection, status.record)
        actors = [*authors.values(), *(event.actor for event in events), *(one.activated_by or "" for one in versions)]
        return {
            "policy": status,
            "events": events,
            "authors": authors,
            "names": actor_names(connection, actors),
            "four_eyes": four_eyes_required(),
            "versions": versions,
            "imports": [one.view() for one in read_imports(connection, status.record.chain).values()],
            "compared": compared,
            "shadow_money": _money_of(compared),
            "rollout": rollout,
            "rollout_money": _money_of([rollout] if rollout else []),
            "objective": describe_objective(status.version.specification.objective),
            "limits": describe_limits(status),
            "sent": example_request(status.version.specification),
            "steps": steps_of(status),
            "hand": hand or SubmittedDecision(),
            "profit": policy_profit(connection, status),
            "report": report,
            "bars": calibration_bars(report),
            **draw(connection, status, segment),
        }


@get("/policies/{name:str}/live", include_in_schema=False)
async def live(
    name: PolicyName, request: Req, version: VersionNumber = None, segment: Segment = None
) -> Response[bytes]:
    """Refresh the chart and the segments, including values that need a solver."""
    service: Service = request.app.state.service
    prospects: Prospects = request.app.state.prospects

    def ask() -> dict[str, Any]:
        report = report_view(service, name, version)
        with service.store.read() as connection:
            status = read_policy_status(service, connection, name, version)
            profit = policy_profit(connection, status)
            drawn = draw(connection, status, segment)
        ahead = prospects.of(status.segments)
        return {
            "policy": status,
            "profit": profit,
            "report": report,
            "bars": calibration_bars(report),
            **drawn,
            "prospects": ahead,
        }

    return part(request, "segments.html", **await service.ask(ask))


@post("/policies/{name:str}/state", include_in_schema=False, opt={"role": "admin"}, status_code=303)
async def change_state(name: PolicyName, request: Req) -> Response[bytes]:
    """Activate, shadow or retire a version."""
    form = await checked_form(request)
    state, number = str(form.get("state", "")), str(form.get("version", ""))
    if state not in NEXT or state == "rollout" or not number.isdigit():
        raise BadRequest(f"state must be one of {', '.join(set(NEXT) - {'rollout'})}, and version must be a number")
    service: Service = request.app.state.service
    visitor = visitor_of(request)
    assert visitor is not None
    sent_by = make_sender(visitor.actor, None, "", None)
    reason = _reason(form)
    await service.perform(ChangeState(sent_by, name, state, int(number), reason=reason))
    return redirect(f"/policies/{name}", f"Version {number} of {name} is now {state}.")


@post("/policies/{name:str}/rollout", include_in_schema=False, opt={"role": "admin"}, status_code=303)
async def change_rollout(name: PolicyName, request: Req) -> Response[bytes]:
    """Roll a version out to a share of applicants, ramp it up, roll it back, or activate it for everybody."""
    form = await checked_form(request)
    number, given = str(form.get("version", "")), str(form.get("percent_now") or form.get("percent") or "")
    if not number.isdigit():
        raise BadRequest("version must be a number")
    service: Service = request.app.state.service
    visitor = visitor_of(request)
    assert visitor is not None
    sent_by = make_sender(visitor.actor, None, "", None)
    reason = _reason(form)
    if given == "active":
        await service.perform(ChangeState(sent_by, name, "active", int(number), reason=reason))
        return redirect(f"/policies/{name}", f"Version {number} of {name} is now active for everybody.")
    percent = _percent(given)
    answer = await service.perform(ChangeState(sent_by, name, "rollout", int(number), reason=reason, percent=percent))
    warnings = msgspec.json.decode(answer.body, type=VersionAnswer).warnings
    did = f"is rolled out to {percent:g}% of applicants" if percent else "is rolled back"
    return redirect(f"/policies/{name}", f"Version {number} of {name} {did}.", *warnings)


def _reason(form: Mapping[str, object]) -> str:
    """Return the reason of a change as typed, or raise BadRequest."""
    reason = str(form.get("reason", "")).strip()
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        raise BadRequest(f"reason must have at most {LONGEST_REASON} characters without line breaks")
    return reason


def _percent(text: str) -> float:
    """Read a percentage as typed, or raise InputError.

    >>> _percent("12.5 %")
    12.5
    """
    try:
        return real("percent", float("".join(text.split()).removesuffix("%")), least=0, most=100)
    except ValueError:
        raise InputError("percent", text, "a number from 0 to 100, such as 25") from None


def draw(connection: Connection, policy: PolicyStatus, chosen: str | None) -> dict[str, Any]:
    """Draw the chosen segment with the busiest others, and the small charts of the table."""
    shown = policy.segment(chosen)
    busiest = sorted(policy.segments, key=lambda segment: segment.counts.arrivals, reverse=True)
    others = [segment for segment in busiest if segment is not shown][:MOST_PATHS]
    paths: dict[str, Sequence[Step]] = {
        segment.name: belief_path(connection, segment.chain, segment.length, 150 if segment is shown else 60)
        for segment in [shown, *others]
    }
    recent = [] if shown.offers is None else recent_offers(connection, shown.chain)
    features, plain = without_features([segment.name for segment in policy.segments])
    return {
        "shown": shown,
        "features": features,
        "plain": plain,
        "recent": recent,
        "offer_pictures": [] if shown.offers is None else offer_figure.pictures(shown.name, shown.offers, recent),
        "pictures": [picture(shown, paths, others), picture(shown, paths, others, narrow=True)],
        "sparks": {segment.name: sparkline(segment, paths[segment.name]) for segment in [shown, *others]},
        "prospects": None,
        "groups": _by_group(policy.segments),
    }


def calibration_bars(report: ReportView | None) -> list[Any]:
    """Draw the bands of a report, None for a band without outcomes."""
    return [] if report is None else [calibration_bar(band) for band in report.report.bands]


def _money_of(compared: Sequence[ShadowComparison | RolloutComparison]) -> Money:
    """Return how to show the profits of comparisons: in their currency, or in units of gain + loss."""
    currency = next((one.currency for one in compared), None)
    return UNITS if currency is None else Money(1.0, currency)


def _by_group(segments: list[SegmentStatus]) -> list[tuple[str | None, list[SegmentStatus]]]:
    groups: dict[str | None, list[SegmentStatus]] = {}
    for segment in sorted(segments, key=lambda segment: natural(segment.name)):
        groups.setdefault(segment.group, []).append(segment)
    return list(groups.items())


def steps_of(policy: PolicyStatus) -> dict[int, list[State]]:
    """Return the states that each version can change to."""
    return {
        number: [to for to, sources in NEXT.items() if state in sources]
        for number, state in policy.record.states.items()
    }


def policy_events(connection: Connection, policy: PolicyStatus) -> list[PolicyEvent]:
    """Return the history of the policy, newest first."""
    events = schema.event
    query = select(events.c.body).where(events.c.chain_id == policy.record.chain, events.c.about.is_(None))
    events_shown = []
    no_batch = text("""substr(body, 1, 21) <> '{"kind":"import_rows"'""")
    for body in connection.execute(query.where(no_batch).order_by(events.c.seq.desc()).limit(30)).scalars():
        event = read(body)
        if isinstance(event, VersionCreated):
            what = f"version {event.number} created with {len(event.names):,} segments"
        elif isinstance(event, StateChanged):
            what = f"version {event.number} became {event.state}"
            if event.percent is not None:
                what = f"version {event.number} was rolled out to {event.percent:g}% of applicants"
            what += f": {event.reason}" if event.reason else ""
        elif isinstance(event, ImportStarted):
            what = f"import {event.number}: {event.rows:,} past decisions from {event.file}"
        else:
            continue
        events_shown.append(PolicyEvent(iso_time(event.at), event.actor, what))
    return events_shown


HANDLERS = [show, live, change_state, change_rollout]
