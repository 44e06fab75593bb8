"""How good are our rejections? What is known of those whom a policy rejected, in money."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get

from lenience.analysis.rejection_results import days_in_words, of_hundred
from lenience.dashboard.figures.intervals import rejection_bar
from lenience.dashboard.rendering import natural, page
from lenience.service.http.common import PolicyName
from lenience.service.http.service import Service
from lenience.service.queries.rejections import money_of

Req = Request[Any, Any, Any]


@get("/policies/{name:str}/rejections", include_in_schema=False)
async def rejections(name: PolicyName, request: Req) -> Response[bytes]:
    """Show how many of the rejected would have succeeded, by segment, and whether rejecting them was right."""
    service: Service = request.app.state.service
    answer = await service.ask(lambda: service.queries.rejections(name))
    shown = [one for one in answer.segments if one.break_even is not None]
    if any(one.basis == "model" for one in shown):
        shown.sort(key=lambda one: natural(one.segment))  # bands of the expected rate
    return page(
        request,
        "rejections.html",
        answer=answer,
        money=money_of(answer),
        segments=shown,
        bars={one.segment: rejection_bar(one) for one in shown},
        of_hundred=of_hundred,
        days=days_in_words,
    )


HANDLERS = [rejections]
