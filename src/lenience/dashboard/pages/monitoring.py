"""Monitoring: whether applicants, outcomes and acceptance of a running version are as it expected."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.params import Parameter

from lenience.dashboard.figures.intervals import expected_bar
from lenience.dashboard.pages.fairness import first_choice
from lenience.dashboard.read_models.policy_status import policy_names
from lenience.dashboard.rendering import natural, page, part
from lenience.service.domain.expected_outcomes import Health, worst
from lenience.service.http.service import Service
from lenience.service.storage.alert_states import read_alerts

Req = Request[Any, Any, Any]
Chosen = Annotated[str, Parameter(max_length=64)]
# A word and the kind of its mark. The words say it all: colours only repeat them.
WORDS: dict[Health, tuple[str, str]] = {
    "ok": ("accept", "as expected"),
    "watch": ("wait", "watch"),
    "act": ("reject", "act"),
    "no_data": ("plain", "not enough data"),
}


@get("/monitoring", include_in_schema=False)
async def show(request: Req, policy: Chosen = "") -> Response[bytes]:
    """Show the page."""
    service: Service = request.app.state.service

    def ask() -> dict[str, Any]:
        names = policy_names(service)
        if not names and not policy:
            return {"policies": names, "policy": "", "report": None}
        return {"policies": names, **_content(service, policy or first_choice(service))}

    return page(request, "monitoring.html", **await service.ask(ask))


@get("/monitoring/live", include_in_schema=False)
async def live(request: Req, policy: Chosen) -> Response[bytes]:
    """Refresh the page."""
    service: Service = request.app.state.service
    return part(request, "monitoring.html", **await service.ask(lambda: _content(service, policy)))


def _content(service: Service, name: str) -> dict[str, Any]:
    report = service.queries.monitoring(name)
    groups = sorted(report.by_segment, key=lambda group: natural(group.name))
    outcomes = [*groups, *report.by_month, *([report.outcomes] if report.outcomes else [])]
    with service.store.read() as connection:
        segments = service.registry.load(connection, name).segments
        alerts = [alert for alert in read_alerts(connection) if alert.policy in ("", name)]
    return {
        "policy": name,
        "report": report,
        "alerts": alerts,
        "groups": groups,
        "months": report.by_month[::-1],
        "by_bands": any(group.name not in segments for group in groups),
        "words": WORDS,
        "population_state": worst(one.state for one in report.population),
        "outcomes_state": worst(one.state for one in outcomes),
        "bars": {group.name: expected_bar(group) for group in (*groups, *report.by_month)},
    }


HANDLERS = [show, live]
