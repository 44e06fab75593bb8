"""/v1/policies/{name}/decisions and /v1/decisions: decide, record outcomes, look up and export decisions."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, get, post
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.params import FromQuery, JSONBody, Parameter, RawBody
from litestar.response import Stream

from lenience.core.errors import InputError
from lenience.service.commands.again import DecideAgain
from lenience.service.commands.decide import BatchRequest, Decide, DecisionRequest
from lenience.service.commands.monitor import Monitor, MonitorMany
from lenience.service.commands.outcomes import (
    Change,
    CorrectionRequest,
    Kind,
    OutcomeItem,
    OutcomeRequest,
    OutcomesRequest,
    OverrideRequest,
    RecordOutcomes,
    ReviewRequest,
)
from lenience.service.commands.ranking import DecideRanked, RankRequest
from lenience.service.domain import limits
from lenience.service.domain.answers import (
    DecisionAnswer,
    DecisionsAnswer,
    DecisionsPage,
    DecisionView,
    MonitoredAnswer,
    OutcomeAnswer,
    OutcomesAnswer,
    RankAnswer,
    Status,
    WaitingPage,
)
from lenience.service.domain.clock import read_time
from lenience.service.domain.monitored import MonitoredBatch, MonitoredRequest
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.review_report import ReviewReport
from lenience.service.http.bodies import explain, join_sentences, require_empty_body
from lenience.service.http.common import NAME, DecisionId, IdempotencyKey, PolicyName, Req, answered, changing
from lenience.service.http.errors import documented
from lenience.service.http.large_bodies import process_body, stop_if_disconnected
from lenience.service.queries import export
from lenience.service.queries.reading import PAGE, Filters
from lenience.service.queries.reviews import QueueOrder, ReferralsPage

PARQUET = "application/vnd.apache.parquet"
Plain = Parameter(max_length=200, pattern=limits.PLAIN, min_length=1)
Segment = Annotated[str | None, Plain]
PolicyFilter = Annotated[str | None, NAME]
ChoiceFilter = FromQuery[Literal["accept", "reject", "refer"] | None]
StatusFilter = FromQuery[Status | None]
Time = Annotated[
    str | None,
    Parameter(description="A date (midnight UTC) or a time (UTC unless it has an offset), ISO 8601"),
]


@post(
    "/policies/{name:str}/decisions", opt={"role": "decide"}, responses=documented(404, 409, 413, 415), tags=["decide"]
)
async def decide(
    name: PolicyName, data: JSONBody[DecisionRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[DecisionAnswer]:
    """Accept or reject one individual. The decision is on the disk before the response is sent."""
    path = f"POST /v1/policies/{name}/decisions"
    sent_by = make_sender(request.auth, idempotency_key, path, data, secret=bool(data.monitored))
    return answered(await request.app.state.service.perform(Decide(sent_by, name, [data], True)))


@post(
    "/policies/{name:str}/decisions/batch",
    opt={"role": "decide"},
    responses=documented(404, 409, 413, 415),
    tags=["decide"],
)
async def decide_batch(
    name: PolicyName, data: JSONBody[BatchRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[DecisionsAnswer]:
    """Decide several individuals in order. Each acceptance counts as pending for those after it."""
    path = f"POST /v1/policies/{name}/decisions/batch"
    sent_by = make_sender(request.auth, idempotency_key, path, data, secret=_monitors(data.decisions))
    return answered(await request.app.state.service.perform(Decide(sent_by, name, data.decisions, False)))


@post(
    "/policies/{name:str}/rank",
    opt={"role": "decide"},
    responses=documented(404, 409, 413, 415),
    tags=["decide"],
)
async def decide_ranked(
    name: PolicyName, data: JSONBody[RankRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[RankAnswer]:
    """Decide several individuals of whom only some can be accepted: those with the largest indices are chosen.

    The index is the expected profit of an offer plus the value of its outcome. All decisions are recorded.
    """
    path = f"POST /v1/policies/{name}/rank"
    sent_by = make_sender(request.auth, idempotency_key, path, data, secret=_monitors(data.decisions))
    command = DecideRanked(sent_by, name, data.decisions, False, capacity=data.capacity, budget=data.budget)
    return answered(await request.app.state.service.perform(command))


@post(
    "/decisions/{identity:str}/again", opt={"role": "decide"}, responses=documented(404, 409, 413, 415), tags=["decide"]
)
async def decide_again(
    identity: DecisionId, request: Req, idempotency_key: IdempotencyKey = None
) -> Response[DecisionAnswer]:
    """Decide a waiting individual again, with the segment and the offers of the first request.

    The answer is a new decision. The waiting one is ``replaced``, and the individual is not counted as a new arrival.
    """
    await require_empty_body(request)
    sent_by = make_sender(request.auth, idempotency_key, f"POST /v1/decisions/{identity}/again", None)
    return answered(await request.app.state.service.perform(DecideAgain.of(sent_by, identity)))


@get("/policies/{name:str}/waiting", opt={"role": "read"}, responses=documented(404), tags=["decisions"])
async def list_waiting(
    name: PolicyName,
    request: Req,
    after: Annotated[
        str | None, Parameter(max_length=36, pattern=r"^[0-9a-f-]*\Z", description="next of a page")
    ] = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = PAGE,
) -> WaitingPage:
    """List the individuals that wait for a place, longest first, and whether each would be accepted now."""
    service = request.app.state.service
    waiting: WaitingPage = await service.ask(lambda: service.queries.waiting(name, after, limit))
    return waiting


@changing("/decisions/{identity:str}/outcome", "outcome", "outcomes")
async def record_outcome(
    identity: DecisionId, data: JSONBody[OutcomeRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomeAnswer]:
    """Record the outcome of an accepted individual. It counts once, however often it is sent.

    ``late`` and ``current`` are interim statuses of a pending one, which change no count.
    """
    own = data.outcome_at or None
    return await _change(request, idempotency_key, identity, "outcome", data, outcome=data.outcome, outcome_at=own)


@changing("/decisions/{identity:str}/correction", "outcome", "outcomes")
async def correct(
    identity: DecisionId, data: JSONBody[CorrectionRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomeAnswer]:
    """Replace a wrong outcome. Both outcomes stay in the log."""
    own = data.outcome_at or None
    return await _change(request, idempotency_key, identity, "correction", data, outcome=data.outcome, outcome_at=own)


@changing("/decisions/{identity:str}/expiry", "outcome", "outcomes")
async def give_up(
    identity: DecisionId, request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomeAnswer]:
    """Let a missing outcome expire."""
    await require_empty_body(request)
    return await _change(request, idempotency_key, identity, "expiry")


@changing("/decisions/{identity:str}/override", "admin", "outcomes")
async def override(
    identity: DecisionId, data: JSONBody[OverrideRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomeAnswer]:
    """Override a decision as a person with a role and a reason. Its outcome still counts as evidence."""
    return await _change(request, idempotency_key, identity, "override", data, override=data)


@changing("/decisions/{identity:str}/review", "review", "reviews")
async def review(
    identity: DecisionId, data: JSONBody[ReviewRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomeAnswer]:
    """Decide a referred case as a person, with a reason. If it is accepted, its outcome teaches like others."""
    return await _change(request, idempotency_key, identity, "review", data, review=data)


@get("/policies/{name:str}/referrals", opt={"role": "read"}, responses=documented(404), tags=["reviews"])
async def list_referrals(
    name: PolicyName,
    request: Req,
    order: FromQuery[QueueOrder] = "oldest",
    after: Annotated[
        str | None, Parameter(max_length=36, pattern=r"^[0-9a-f-]*\Z", description="next of a page")
    ] = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = PAGE,
) -> ReferralsPage:
    """List the cases that wait for a person, with what the policy thinks of each.

    The oldest come first, in pages, or with ``order=worth`` those where a review is worth most.
    """
    service = request.app.state.service
    referrals: ReferralsPage = await service.ask(lambda: service.queries.referrals(name, after, limit, order))
    return referrals


@get("/policies/{name:str}/reviews", opt={"role": "read"}, responses=documented(404), tags=["reviews"])
async def show_reviews(name: PolicyName, request: Req) -> ReviewReport:
    """Show how often people and policy disagree on referred cases, and who was right, in money."""
    service = request.app.state.service
    reviews: ReviewReport = await service.ask(lambda: service.queries.reviews(name))
    return reviews


@changing("/decisions/{identity:str}/monitored", "outcome", "outcomes")
async def monitor(
    identity: DecisionId, data: JSONBody[MonitoredRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[MonitoredAnswer]:
    """Add or correct attributes that fairness is measured by, e.g. sex. No decision looks at them.

    Attributes that are not named stay as they are; null removes one. They are personal data and can be erased.
    """
    path = f"POST /v1/decisions/{identity}/monitored"
    sent_by = make_sender(request.auth, idempotency_key, path, data, secret=True)
    return answered(await request.app.state.service.perform(Monitor(sent_by, identity, dict(data.monitored))))


@changing("/monitored/batch", "outcome", "outcomes")
async def monitor_batch(
    data: JSONBody[MonitoredBatch], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomesAnswer]:
    """Add or correct the monitored attributes of several decisions, which may arrive later than the decisions.

    Entries that cannot be recorded are reported and do not affect the others. If an entry cannot be read, nothing is
    recorded and the response names every such entry.
    """
    sent_by = make_sender(request.auth, idempotency_key, "POST /v1/monitored/batch", data, secret=True)
    return answered(await request.app.state.service.perform(MonitorMany(sent_by, data.decisions)))


@changing("/decisions/{identity:str}/erasure", "admin", "outcomes")
async def erase(identity: DecisionId, request: Req, idempotency_key: IdempotencyKey = None) -> Response[OutcomeAnswer]:
    """Erase the personal data of a decision: reference, features, monitored attributes, reasons of overrides.

    The log stays complete.
    """
    await require_empty_body(request)
    return await _change(request, idempotency_key, identity, "erasure")


@changing("/outcomes/batch", "outcome", "outcomes")
async def record_outcomes(
    data: JSONBody[OutcomesRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomesAnswer]:
    """Record several outcomes. Outcomes that cannot be recorded are reported and do not affect the others.

    If an entry cannot be read, nothing is recorded and the response names every such entry.
    """
    sent_by = make_sender(request.auth, idempotency_key, "POST /v1/outcomes/batch", data)
    return answered(await request.app.state.service.perform(RecordOutcomes(sent_by, data.outcomes)))


class CsvOperation(Operation):
    """An operation whose body is CSV."""

    def __post_init__(self) -> None:
        """Add the CSV body to the description."""
        text = OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING, example="id,outcome\n0190…,success\n"))
        self.request_body = RequestBody(content={"text/csv": text}, required=True)


@post(
    "/outcomes/import",
    opt={"role": "outcome", "body": "text/csv"},
    status_code=200,
    responses=documented(404, 409, 413, 415),
    tags=["outcomes"],
    operation_class=CsvOperation,
)
async def import_outcomes(
    body: RawBody, request: Req, idempotency_key: IdempotencyKey = None
) -> Response[OutcomesAnswer]:
    """Record outcomes from CSV with the columns id (or reference) and outcome, at most 1,000 rows.

    An outcome is success, failure, late or current. A column ``outcome_at`` may hold its own date.
    As in a batch, if a line cannot be read, nothing is recorded and the response names every such line.
    """
    items = await process_body(request, body, read_csv)
    sent_by = make_sender(request.auth, idempotency_key, "POST /v1/outcomes/import", items)
    return answered(await request.app.state.service.perform(RecordOutcomes(sent_by, items)))


@get("/decisions", opt={"role": "read"}, responses=documented(404), tags=["decisions"])
async def list_decisions(
    request: Req,
    policy: PolicyFilter = None,
    segment: Segment = None,
    decision: ChoiceFilter = None,
    status: StatusFilter = None,
    reference: Segment = None,
    since: Time = None,
    until: Time = None,
    after: Annotated[
        str | None, Parameter(max_length=36, pattern=r"^[0-9a-f-]*\Z", description="next of a page")
    ] = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = PAGE,
) -> DecisionsPage:
    """List decisions, oldest first, in pages: pass the ``next`` of a page as ``after``."""
    filters = Filters(policy, segment, decision, status, reference, _micro("since", since), _micro("until", until))
    service = request.app.state.service
    decisions: DecisionsPage = await service.ask(lambda: service.queries.page(filters, after, limit))
    return decisions


@get("/decisions/{identity:str}", opt={"role": "read"}, responses=documented(404), tags=["decisions"])
async def show_decision(identity: DecisionId, request: Req) -> DecisionView:
    """Explain a decision: belief, threshold, value of continuing, what would have changed it, and history."""
    service = request.app.state.service
    decision: DecisionView = await service.ask(lambda: service.queries.decision(identity))
    return decision


@get("/decisions.csv", opt={"role": "read"}, responses=documented(404), tags=["decisions"], media_type="text/csv")
async def export_csv(
    request: Req,
    policy: PolicyFilter = None,
    segment: Segment = None,
    decision: ChoiceFilter = None,
    status: StatusFilter = None,
    since: Time = None,
    until: Time = None,
) -> Stream:
    """Export all decisions as CSV, with their grounds, overrides by role and outcomes (no personal data)."""
    filters = Filters(policy, segment, decision, status, None, _micro("since", since), _micro("until", until))
    service = request.app.state.service
    lines = export.csv_parts(service.queries, filters)
    first = await service.ask(lambda: next(lines))
    second = await service.ask(lambda: next(lines, b""))  # so that an unknown policy gives a 404, not a broken stream

    async def parts() -> Any:
        yield first + second
        while True:
            part = await service.ask(lambda: next(lines, None))
            if part is None:
                return
            yield part

    return Stream(parts(), media_type="text/csv")


@get("/decisions.parquet", opt={"role": "read"}, responses=documented(404), tags=["decisions"], media_type=PARQUET)
async def export_parquet(
    request: Req,
    policy: PolicyFilter = None,
    segment: Segment = None,
    decision: ChoiceFilter = None,
    status: StatusFilter = None,
    since: Time = None,
    until: Time = None,
) -> Response[bytes]:
    """Export all decisions as a Parquet file with the columns of the CSV (no personal data)."""
    filters = Filters(policy, segment, decision, status, None, _micro("since", since), _micro("until", until))
    service = request.app.state.service
    file = await service.ask(lambda: export.parquet(service.queries, filters))
    return Response(file, media_type=PARQUET)


def _monitors(requests: list[DecisionRequest]) -> bool:
    """Return whether a request of a batch has monitored attributes."""
    return any(request.monitored for request in requests)


async def _change(
    request: Req, key: str | None, identity: str, kind: Kind, body: object = None, **what: Any
) -> Response[OutcomeAnswer]:
    sent_by = make_sender(request.auth, key, f"POST /v1/decisions/{identity}/{kind}", body)
    return answered(await request.app.state.service.perform(Change(sent_by, identity, kind, **what)))


def read_csv(body: bytes) -> list[OutcomeItem]:
    """Read outcomes from CSV, or raise BadRequest that names every line that cannot be read.

    >>> read_csv(b"id,outcome\\na,success\\n\\nb,good\\nc\\n")
    Traceback (most recent call last):
        ...
    lenience.service.domain.problems.BadRequest: nothing was recorded: 2 of 3 rows cannot be read: line ...
    """
    try:
        named, rows = _csv_rows(csv.reader(io.StringIO(body.decode("utf-8-sig")), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadRequest(f"the body must be CSV in UTF-8 ({error})", code="invalid_csv", field="body") from None
    which = "id" if "id" in named else "reference"
    if not rows or not {which, "outcome"} <= named.keys():
        allowed = "the columns id (or reference) and outcome, and at least one row"
        detail = f"the CSV must have a heading with {allowed}"
        raise BadRequest(detail, code="invalid_csv", field="body", allowed=allowed)
    items, wrong = [], []
    for line, row in rows:
        cells = {name: row[named[name]] if named[name] < len(row) else "" for name in (which, "outcome")}
        if "outcome_at" in named and named["outcome_at"] < len(row) and row[named["outcome_at"]]:
            cells["outcome_at"] = row[named["outcome_at"]]
        try:
            items.append(msgspec.convert(cells, OutcomeItem))
        except msgspec.ValidationError as error:
            wrong.append(explain("", cells, OutcomeItem, error).at(f"line {line}"))
    if wrong:
        detail = f"nothing was recorded: {len(wrong):,} of {len(rows):,} rows cannot be read: {join_sentences(wrong)}"
        raise BadRequest(detail, code=wrong[0].code, field=wrong[0].field, allowed=wrong[0].allowed)
    return items


def _csv_rows(reader: Any) -> tuple[dict[str, int], list[tuple[int, list[str]]]]:
    """Return the position of each column, and the rows with their line numbers.

    The limits are checked while the rows are read: at most one row more than allowed is ever stored. A line number is
    not a row number, because a field may span several lines and lines may be empty.
    """
    heading: list[str] = next(reader, [])
    _check_most("columns", len(heading), limits.CSV_COLUMNS)
    rows: list[tuple[int, list[str]]] = []
    for row in reader:
        stop_if_disconnected()
        if row:
            rows.append((reader.line_num, row[: len(heading)]))
            _check_most("rows", len(rows), limits.BATCH)
    return {name: i for i, name in enumerate(heading)}, rows


def _check_most(what: str, count: int, most: int) -> None:
    if count > most:
        detail = f"the CSV must have at most {most:,} {what}"
        raise BadRequest(detail, code="too_large", field="body", allowed=f"at most {most:,} {what}")


def _micro(field: str, text: str | None) -> int | None:
    """Return a date or a time in microseconds, or raise BadRequest."""
    if text is None:
        return None
    try:
        return read_time(field, text)
    except InputError as error:
        raise BadRequest.of(error) from None


HANDLERS = [
    decide,
    decide_batch,
    decide_ranked,
    decide_again,
    list_waiting,
    record_outcome,
    correct,
    give_up,
    override,
    review,
    list_referrals,
    show_reviews,
    monitor,
    monitor_batch,
    erase,
    record_outcomes,
    import_outcomes,
    list_decisions,
    show_decision,
    export_csv,
    export_parquet,
]
