"""/v1/policies/{name}/monitoring: how a running version does."""

from __future__ import annotations

from litestar import get

from lenience.service.domain.monitoring import MonitoringReport
from lenience.service.http.common import PolicyName, Req
from lenience.service.http.errors import documented
from lenience.service.http.policies import VersionNumber
from lenience.service.http.service import Service


@get("/policies/{name:str}/monitoring", opt={"role": "read"}, responses=documented(404), tags=["monitoring"])
async def show_monitoring(name: PolicyName, request: Req, version: VersionNumber = None) -> MonitoringReport:
    """Show whether the applicants, outcomes and acceptance of a running version are as it expected.

    The report compares the latest applicants with the version's own data (segments, features and offers), successes
    with those that the version expected when it decided, and acceptance with what it expects of its own population.
    Each comparison has an interval, a state (ok, watch, act or no_data) and a sentence.
    """
    service: Service = request.app.state.service
    return await service.ask(lambda: service.queries.monitoring(name, version))


HANDLERS = [show_monitoring]
