"""/v1/export/feed: what has changed since a cursor, for a data warehouse."""

from __future__ import annotations

from typing import Annotated

from litestar import get
from litestar.params import Parameter

from lenience.service.domain.feed_rows import FeedPage
from lenience.service.http.auth import admit
from lenience.service.http.common import Req
from lenience.service.http.errors import documented
from lenience.service.http.service import Service
from lenience.service.queries.feed import LARGEST, PAGE, read_feed


@get("/export/feed", opt={"role": "read"}, responses=documented(), tags=["decisions"])
async def show_feed(
    request: Req,
    after: Annotated[int, Parameter(ge=0, le=2**53, description="The cursor: next of the last answer, or 0")] = 0,
    limit: Annotated[int, Parameter(ge=1, le=LARGEST, description="How many events of the log to read")] = PAGE,
    personal: Annotated[bool, Parameter(description="With references and features; needs the role admin")] = False,
) -> FeedPage:
    """Return the changes after a cursor, in the order of the log: decisions, outcomes, versions and erasures.

    Each change is returned once to a reader that sends ``next`` of the last answer as ``after``. A row of the kind
    erasure says whose reference and features must be deleted.
    """
    service: Service = request.app.state.service
    if personal:
        admit(service.keyring, request.headers, "admin")
    await service.ask(lambda: service.seal_log(others=True))
    return await service.ask(lambda: read_feed(service.queries, after, limit, personal))


HANDLERS = [show_feed]
