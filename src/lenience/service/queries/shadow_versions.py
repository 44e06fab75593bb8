"""Compare the shadow versions of a policy with the active one, over the latest decisions."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select

from lenience.core.money import UNITS, Money
from lenience.core.offers import Offer
from lenience.service.domain.events import StateChanged, read
from lenience.service.domain.shadow_comparison import ComparedDecision, ShadowComparison, Side, compare_versions
from lenience.service.domain.state import realised_profit
from lenience.service.domain.version_estimates import VersionEstimate, estimate_under
from lenience.service.queries.model_report import LATEST, model_name
from lenience.service.storage import schema
from lenience.service.storage.latest_decisions import LatestDecision, latest_decisions
from lenience.service.storage.policy_cache import PolicyRecord, Version


class ShadowsAnswer(msgspec.Struct, frozen=True):
    """The shadow versions of a policy, each compared with the active one."""

    policy: str
    shadows: list[ShadowComparison]


def compare_shadows(connection: Connection, record: PolicyRecord) -> list[ShadowComparison]:
    """Return a comparison for each shadow version, none if no version is active."""
    active = record.active
    if active is None or not record.shadows:
        return []
    decisions = [
        one for one in latest_decisions(connection, record.segments, LATEST) if one.event.version == active.number
    ]
    since = _shadow_since(connection, record)
    return [_compare(active, shadow, decisions, since.get(shadow.number, 0)) for shadow in record.shadows]


def _shadow_since(connection: Connection, record: PolicyRecord) -> dict[int, int]:
    """Return since when each version runs in shadow."""
    events = schema.event
    states = (events.c.chain_id == record.chain) & events.c.body.startswith('{"kind":"state"')
    texts = connection.execute(select(events.c.body).where(states).order_by(events.c.seq)).scalars()
    changes = [event for event in map(read, texts) if isinstance(event, StateChanged)]
    return {event.number: event.at for event in changes if event.state == "shadow"}


def _compare(active: Version, shadow: Version, decisions: list[LatestDecision], since: int) -> ShadowComparison:
    compared, not_compared = [], 0
    for one in decisions:
        mine = estimate_under(active.number, active.rules, one.segment, one.event)
        theirs = estimate_under(shadow.number, shadow.rules, one.segment, one.event)
        if mine is None or theirs is None:
            not_compared += one.event.at > since
            continue
        cost = active.rules[one.segment].break_even
        first, second = mine.offer or theirs.offer, theirs.offer or mine.offer
        sides = _side(mine, first, cost, one.segment), _side(theirs, second, cost, theirs.segment or one.segment)
        accepted = sides[0]
        profit = realised_profit(one.status, accepted.amount, accepted.cost)
        compared.append(ComparedDecision(*sides, profit))
    numbers, models = (active.number, shadow.number), (model_name(active), model_name(shadow))
    return compare_versions(compared, numbers, models, money_of(active, shadow), not_compared)


def _side(estimate: VersionEstimate, offer: Offer | None, cost: float, group: str) -> Side:
    """Return one version's side. Without offers, one unit of gain + loss is at stake at the active break-even."""
    amount, even = (1.0, cost) if offer is None else (offer.amount, offer.cost)
    return Side(estimate.accepts, estimate.mean, estimate.n, amount, even, group)


def money_of(active: Version, other: Version) -> Money:
    """Return how to show profits: in the currency of whichever version has offers."""
    for version in (active, other):
        offers = version.specification.objective.offers
        if offers is not None:
            return offers.money
    return UNITS
