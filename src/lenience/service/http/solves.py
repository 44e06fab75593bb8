"""/v1/solves: follow and cancel versions that are solved in the background."""

from __future__ import annotations

from typing import Annotated

from litestar import delete, get
from litestar.params import Parameter

from lenience.service.domain.answers import SolveAnswer, SolvesAnswer
from lenience.service.http.common import Req
from lenience.service.http.errors import documented

SolveId = Annotated[str, Parameter(min_length=32, max_length=32, pattern=r"^[0-9a-f]{32}\Z")]


@get("/solves", opt={"role": "admin"}, responses=documented(), tags=["policies"])
async def list_solves(request: Req) -> SolvesAnswer:
    """List the versions that are being solved in the background, and the last that were."""
    return SolvesAnswer(request.app.state.service.solves.list())


@get("/solves/{identity:str}", opt={"role": "admin"}, responses=documented(404), tags=["policies"])
async def show_solve(identity: SolveId, request: Req) -> SolveAnswer:
    """Show how far a solve has come, and the version when it is done."""
    answer: SolveAnswer = request.app.state.service.solves.find(identity).answer
    return answer


@delete("/solves/{identity:str}", opt={"role": "admin"}, status_code=200, responses=documented(404), tags=["policies"])
async def cancel_solve(identity: SolveId, request: Req) -> SolveAnswer:
    """Cancel a solve. It stops within a few seconds, and nothing is stored."""
    answer: SolveAnswer = request.app.state.service.solves.cancel(identity).answer
    return answer


HANDLERS = [list_solves, show_solve, cancel_solve]
