"""/v1/policies: create versions, change their states, and show their status."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import HeaderParameter, JSONBody, Parameter

from lenience.service.commands.imports import ImportDecisions
from lenience.service.commands.lifecycle import ActivationRequest, ChangeState, CreateVersion, VersionRequest
from lenience.service.commands.outcomes import Expire, ExpiryRequest
from lenience.service.commands.rollout import RolloutRequest
from lenience.service.domain.answers import (
    ExpiryAnswer,
    ImportAnswer,
    ModelAnswer,
    PoliciesAnswer,
    PolicyView,
    SolveAnswer,
    VersionAnswer,
)
from lenience.service.domain.clock import now
from lenience.service.domain.events import State
from lenience.service.domain.imported_rows import ImportRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.common import IdempotencyKey, PolicyName, Req, answered, changing
from lenience.service.http.disconnection import unless_disconnected
from lenience.service.http.errors import documented
from lenience.service.queries.model_report import ModelReport
from lenience.service.queries.rejections import RejectionsAnswer
from lenience.service.queries.rollouts import RolloutAnswer
from lenience.service.queries.shadow_versions import ShadowsAnswer

Preference = Annotated[
    str | None,
    HeaderParameter(name="Prefer", max_length=200, description="respond-async: solve in the background and answer 202"),
]
VersionNumber = Annotated[int | None, Parameter(ge=1, le=10**6, description="Which version")]


@post(
    "/policies",
    opt={"role": "admin"},
    responses={**documented(409, 413, 415), 202: ResponseSpec(SolveAnswer, description="Solving in the background")},
    tags=["policies"],
)
async def create_policy(
    data: JSONBody[PolicySpecification],
    request: Req,
    idempotency_key: IdempotencyKey = None,
    prefer: Preference = None,
) -> Response[VersionAnswer] | Response[SolveAnswer]:
    """Create a version of a policy as a draft. It is solved, stored and never changed.

    With "Prefer: respond-async" the answer is 202 at once, and /v1/solves/{id} shows the progress. Otherwise the answer
    waits for the solve, which stops if the client disconnects.
    """
    service = request.app.state.service
    sent_by = make_sender(request.auth, idempotency_key, "POST /v1/policies", data)
    if prefer is not None and "respond-async" in [part.strip() for part in prefer.lower().split(",")]:
        started: SolveAnswer = service.solve_in_background(data, sent_by).answer
        headers = {"Location": f"/v1/solves/{started.id}", "Preference-Applied": "respond-async"}
        return Response(started, status_code=202, headers=headers)
    solved = await unless_disconnected(request, service.solve_version(data))
    return answered(await service.perform(CreateVersion(sent_by, solved)))


@get("/policies", opt={"role": "read"}, responses=documented(), tags=["policies"])
async def list_policies(request: Req) -> PoliciesAnswer:
    """List all policies with their versions."""
    service = request.app.state.service
    policies: PoliciesAnswer = await service.ask(service.queries.policies)
    return policies


@get("/policies/{name:str}", opt={"role": "read"}, responses=documented(404), tags=["policies"])
async def show_policy(name: PolicyName, request: Req, version: VersionNumber = None) -> PolicyView:
    """Show the status of a policy: belief, pending outcomes, threshold, limit and value of each segment."""
    service = request.app.state.service
    policy: PolicyView = await service.ask(lambda: service.queries.policy(name, version))
    return policy


@get("/policies/{name:str}/model", opt={"role": "read"}, responses=documented(404, 409), tags=["policies"])
async def show_model(name: PolicyName, request: Req, version: VersionNumber = None) -> ModelAnswer:
    """Return what a model that decides by features knows now, so that the library can go on with it."""
    service = request.app.state.service
    model: ModelAnswer = await service.ask(lambda: service.queries.model(name, version))
    return model


@get("/policies/{name:str}/report", opt={"role": "read"}, responses=documented(404), tags=["policies"])
async def show_report(name: PolicyName, request: Req, version: VersionNumber = None) -> ModelReport:
    """Show how a version does, over its latest decisions.

    The report has expected and actual success rates by band, and regions without outcomes. For a model that decides by
    features it also has the effect of each feature, and whether the features of the latest applicants have changed.
    """
    service = request.app.state.service
    report: ModelReport = await service.ask(lambda: service.queries.report(name, version))
    return report


@get("/policies/{name:str}/shadows", opt={"role": "read"}, responses=documented(404), tags=["policies"])
async def show_shadows(name: PolicyName, request: Req) -> ShadowsAnswer:
    """Compare the shadow versions of a policy with the active one, in money, over the latest decisions."""
    service = request.app.state.service
    shadows: ShadowsAnswer = await service.ask(lambda: service.queries.shadows(name))
    return shadows


@get("/policies/{name:str}/rejections", opt={"role": "read"}, responses=documented(404), tags=["policies"])
async def show_rejections(name: PolicyName, request: Req) -> RejectionsAnswer:
    """Estimate how many of the rejected would have succeeded, by segment, and whether rejecting them was right."""
    service = request.app.state.service
    answer: RejectionsAnswer = await service.ask(lambda: service.queries.rejections(name))
    return answer


@changing("/policies/{name:str}/activate", "admin", "policies")
async def activate(
    name: PolicyName,
    request: Req,
    data: JSONBody[ActivationRequest | None] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response[VersionAnswer]:
    """Activate a version (by default the newest) and retire the active one, which ``replaces`` must name if given."""
    return await _change(name, "active", data or ActivationRequest(), request, idempotency_key)


@changing("/policies/{name:str}/shadow", "admin", "policies")
async def shadow(
    name: PolicyName, request: Req, data: JSONBody[VersionRequest | None] = None, idempotency_key: IdempotencyKey = None
) -> Response[VersionAnswer]:
    """Run a version in shadow: its decisions are logged beside those of the active version, without effect."""
    return await _change(name, "shadow", data, request, idempotency_key)


@changing("/policies/{name:str}/rollout", "admin", "policies")
async def roll_out(
    name: PolicyName, data: JSONBody[RolloutRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[VersionAnswer]:
    """Roll a version out to a percentage of applicants, next to the active version. 0 rolls it back.

    A stable hash of an applicant's reference decides who is among them, so a larger percentage only adds applicants.
    To finish the rollout, activate the version.
    """
    sent_by = make_sender(request.auth, idempotency_key, f"POST /v1/policies/{name}/rollout", data)
    command = ChangeState(sent_by, name, "rollout", data.version, reason=data.reason or "", percent=data.percent)
    return answered(await request.app.state.service.perform(command))


@get("/policies/{name:str}/rollout", opt={"role": "read"}, responses=documented(404), tags=["policies"])
async def show_rollout(name: PolicyName, request: Req) -> RolloutAnswer:
    """Compare the version in rollout with the active one, in profit per applicant, with an interval and a verdict."""
    service = request.app.state.service
    rollout: RolloutAnswer = await service.ask(lambda: service.queries.rollout(name))
    return rollout


@changing("/policies/{name:str}/retire", "admin", "policies")
async def retire(
    name: PolicyName, request: Req, data: JSONBody[VersionRequest | None] = None, idempotency_key: IdempotencyKey = None
) -> Response[VersionAnswer]:
    """Retire a version (by default the active one)."""
    return await _change(name, "retired", data, request, idempotency_key)


@changing("/policies/{name:str}/expire", "outcome", "outcomes")
async def expire(
    name: PolicyName, data: JSONBody[ExpiryRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[ExpiryAnswer]:
    """Let missing outcomes expire, at most 1,000 at a time. They are no longer pending and count as no evidence."""
    sent_by = make_sender(request.auth, idempotency_key, f"POST /v1/policies/{name}/expire", data)
    before = now() - int(data.older_than_days * 86_400 * 1_000_000)
    return answered(await request.app.state.service.perform(Expire(sent_by, name, before)))


@changing("/policies/{name:str}/import", "admin", "policies")
async def import_decisions(
    name: PolicyName, data: JSONBody[ImportRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[ImportAnswer]:
    """Import a batch of past decisions with their own dates, at most 1,000 at a time.

    They become events of the policy: open ones are pending, and known outcomes count as evidence. The digest of the
    file identifies the import, so that a batch that is sent again changes nothing. If a row is invalid, nothing is
    recorded and the response names every such row.
    """
    monitors = any(row.monitored for row in data.rows)
    path = f"POST /v1/policies/{name}/import"
    sent_by = make_sender(request.auth, idempotency_key, path, data, secret=monitors)
    return answered(await request.app.state.service.perform(ImportDecisions(sent_by, name, data)))


async def _change(
    name: str, state: State, data: VersionRequest | None, request: Req, key: str | None
) -> Response[VersionAnswer]:
    body = data or VersionRequest()
    sent_by = make_sender(request.auth, key, f"POST /v1/policies/{name}/{state}", body)
    replaces = body.replaces if isinstance(body, ActivationRequest) else None
    command = ChangeState(sent_by, name, state, body.version, replaces, body.reason or "")
    return answered(await request.app.state.service.perform(command))


HANDLERS = [
    *(create_policy, list_policies, show_policy, show_model, show_report, show_shadows, show_rejections),
    *(show_rollout, activate, shadow, roll_out, retire, expire, import_decisions),
]
