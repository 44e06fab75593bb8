"""/v1/log and the proof of a decision: what anybody can check about the log without trusting the service."""

from __future__ import annotations

from typing import Annotated

from litestar import get
from litestar.params import Parameter

from lenience.service.domain.answers import CheckpointAnswer, ConsistencyAnswer
from lenience.service.domain.decision_proof import DecisionProof
from lenience.service.http.common import DecisionId, Req
from lenience.service.http.errors import documented
from lenience.service.http.service import Service

Size = Annotated[int, Parameter(ge=1, le=2**53, description="A number of events")]


@get("/log/checkpoint", opt={"role": "read"}, responses=documented(409), tags=["log"])
async def show_checkpoint(request: Req) -> CheckpointAnswer:
    """Return the newest signed checkpoint of the log."""
    service: Service = request.app.state.service
    return await service.ask(service.proofs.checkpoint)


@get("/log/consistency", opt={"role": "read"}, responses=documented(), tags=["log"])
async def prove_consistency(request: Req, first: Size, second: Size) -> ConsistencyAnswer:
    """Prove that the log of ``second`` events begins with the log of ``first`` events, unchanged."""
    service: Service = request.app.state.service
    return await service.ask(lambda: service.proofs.consistency(first, second))


@get("/decisions/{identity:str}/proof", opt={"role": "read"}, responses=documented(404, 409), tags=["log"])
async def prove_decision(
    identity: DecisionId,
    request: Req,
    size: Annotated[
        int | None,
        Parameter(ge=1, le=2**53, description="Prove it for a checkpoint of this size; by default the newest"),
    ] = None,
) -> DecisionProof:
    """Prove that a decision is in the log. ``lenience verify`` checks the answer with the public key alone.

    A decision of the last second is added to the log first. The answer holds the personal data of the decision, if it
    was not erased.
    """
    service: Service = request.app.state.service
    await service.ask(lambda: service.seal_log(others=True))
    return await service.ask(lambda: service.proofs.decision(identity, size))


HANDLERS = [show_checkpoint, prove_consistency, prove_decision]
