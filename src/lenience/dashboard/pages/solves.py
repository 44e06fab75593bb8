"""/solves: the progress of a version that is solved in the background."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get, post
from litestar.params import FromPath

from lenience.dashboard.rendering import page, part, redirect
from lenience.dashboard.session import checked_form
from lenience.service.http.service import Service

Req = Request[Any, Any, Any]
ADMIN = {"role": "admin"}


@get("/solves/{identity:str}", include_in_schema=False, opt=ADMIN)
async def show(identity: FromPath[str], request: Req) -> Response[bytes]:
    """Show how far a solve has come, or the version if it is done."""
    service: Service = request.app.state.service
    solve = service.solves.find(identity).answer
    if solve.version is not None:
        return _finished(request, solve.version.name, solve.version.version, solve.version.warnings)
    return page(request, "solve.html", solve=solve)


@get("/solves/{identity:str}/live", include_in_schema=False, opt=ADMIN)
async def live(identity: FromPath[str], request: Req) -> Response[bytes]:
    """Show the progress alone; a browser that follows it goes to the version when it is done."""
    service: Service = request.app.state.service
    solve = service.solves.find(identity).answer
    if solve.version is not None:
        return Response(b"", status_code=200, headers={"HX-Redirect": f"/solves/{identity}"})
    return part(request, "solve.html", solve=solve)


@post("/solves/{identity:str}/cancel", include_in_schema=False, opt=ADMIN, status_code=303)
async def cancel(identity: FromPath[str], request: Req) -> Response[bytes]:
    """Cancel a solve."""
    await checked_form(request)
    service: Service = request.app.state.service
    service.solves.cancel(identity)
    return redirect(f"/solves/{identity}")


def _finished(request: Req, name: str, number: int, warnings: list[str]) -> Response[bytes]:
    return redirect(f"/policies/{name}?version={number}", f"Version {number} of {name} is solved.", *warnings)


HANDLERS = [show, live, cancel]
