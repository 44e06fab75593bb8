"""The cases that wait for a person, with what the policy thinks of each, and who was right about earlier ones."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get
from litestar.params import FromQuery, Parameter
from sqlalchemy import select

from lenience.core.money import UNITS, Money
from lenience.dashboard.rendering import page
from lenience.service.domain.review_report import ReviewReport
from lenience.service.http.service import Service
from lenience.service.queries.reviews import QueueOrder, ReferredEntry
from lenience.service.storage import schema

Req = Request[Any, Any, Any]
PolicyChoice = Annotated[str, Parameter(max_length=64)]
MOST = 20  # cases on the page


class ReviewCase(msgspec.Struct, frozen=True):
    """A case of the queue, and how to show its money."""

    case: ReferredEntry
    money: Money


@get("/reviews", include_in_schema=False)
async def show(request: Req, policy: PolicyChoice = "", order: FromQuery[QueueOrder] = "worth") -> Response[bytes]:
    """Show the queue, the most valuable reviews or the oldest cases first, and the report of each policy."""
    service: Service = request.app.state.service

    def ask() -> dict[str, Any]:
        queue = service.queries.referrals(policy or None, None, MOST, order)
        names = policies_with_referrals(service)
        reports = [service.queries.reviews(name) for name in names if policy in ("", name)]
        return {
            "queue": queue,
            "cases": [ReviewCase(case, money_in(case.currency)) for case in queue.referrals],
            "reports": [(report, money_in(report.currency)) for report in reports],
            "policies": names,
            "policy": policy,
            "order": order,
            "groups": GROUPS,
        }

    return page(request, "reviews.html", **await service.ask(ask))


def money_in(currency: str | None) -> Money:
    """Return how to show money in a currency, or units of gain + loss without one."""
    return UNITS if currency is None else Money(1.0, currency)


def policies_with_referrals(service: Service) -> list[str]:
    """Return the policies that have referred a case, by name."""
    table, policies = schema.referral, schema.policy
    query = select(policies.c.name).where(policies.c.id.in_(select(table.c.policy_id))).order_by(policies.c.name)
    with service.store.read() as connection:
        return list(connection.scalars(query))


GROUPS: list[tuple[str, str]] = [  # fields of a report, in the order of its table
    ("people_accept", "people accepted, policy would reject"),
    ("people_reject", "people rejected, policy would accept"),
    ("both_accept", "both accept"),
    ("both_reject", "both reject"),
]
assert all(field in ReviewReport.__struct_fields__ for field, _ in GROUPS)
HANDLERS = [show]
