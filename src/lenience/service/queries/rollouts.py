"""Compare the version that is rolled out with the active one, over the latest decisions of the rollout."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select

from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import Decided, StateChanged, read
from lenience.service.domain.rollout import Stage, stages_of
from lenience.service.domain.rollout_comparison import (
    Estimated,
    RolloutApplicant,
    RolloutComparison,
    compare_rollout_applicants,
)
from lenience.service.domain.state import realised_profit
from lenience.service.domain.version_estimates import VersionEstimate, estimate_under
from lenience.service.queries.shadow_versions import money_of
from lenience.service.storage import schema
from lenience.service.storage.latest_decisions import LatestDecision, latest_decisions
from lenience.service.storage.policy_cache import PolicyRecord, Version

MOST = 10_000  # latest decisions of the policy that are read
NOT_ACCEPTED = (schema.REJECTED, schema.WAITING, schema.REPLACED, schema.LAPSED)


class RolloutAnswer(msgspec.Struct, frozen=True):
    """The version of a policy that is rolled out, compared with the active one. Null if none is."""

    policy: str
    rollout: RolloutComparison | None


def compare_rollout(connection: Connection, record: PolicyRecord) -> RolloutComparison | None:
    """Return the comparison of the version in rollout with the active one, or None if there are not both."""
    active, rollout = record.active, record.rollout
    if active is None or rollout is None:
        return None
    stages, started = _stages(connection, record, rollout.number)
    applicants, left_out = [], 0
    for one in latest_decisions(connection, record.segments, MOST):
        stage = next((stage for stage in stages if stage.covers(one.segment, one.seq)), None)
        if stage is None or one.event.rank is not None:
            continue
        if one.event.unfit is not None:
            left_out += 1
            continue
        applicant = _applicant(active, rollout, one, stage.percent / 100.0)
        if applicant is not None:
            applicants.append(applicant)
    return compare_rollout_applicants(
        applicants,
        (active.number, rollout.number),
        record.percent,
        iso_time(started),
        money_of(active, rollout),
        left_out,
    )


def _stages(connection: Connection, record: PolicyRecord, number: int) -> tuple[list[Stage], int]:
    """Return the stages of the rollout that runs now, and when it started."""
    events = schema.event
    states = (events.c.chain_id == record.chain) & events.c.body.startswith('{"kind":"state"')
    texts = connection.execute(select(events.c.body).where(states).order_by(events.c.seq)).scalars()
    changes = [event for event in map(read, texts) if isinstance(event, StateChanged) and event.number == number]
    last = max((i for i, event in enumerate(changes) if event.state != "rollout"), default=-1)
    running = changes[last + 1 :]
    return stages_of(running), running[0].at


def _applicant(active: Version, rollout: Version, one: LatestDecision, share: float) -> RolloutApplicant | None:
    """Return an applicant of the comparison, or None if another version or nobody yet decided it."""
    event = one.event
    if event.version not in (active.number, rollout.number) or one.status == schema.REFERRED:
        return None
    mine = estimate_under(active.number, active.rules, one.segment, event)
    theirs = estimate_under(rollout.number, rollout.rules, one.segment, event)
    own = theirs if event.version == rollout.number else mine
    if own is None:
        return None
    cost = (rollout if event.version == rollout.number else active).rules[one.segment].break_even
    amount, even = (1.0, cost) if event.offer is None else (event.offer.amount, event.offer.cost)
    accepted = one.status not in NOT_ACCEPTED
    return RolloutApplicant(
        segment=one.segment,
        share=share,
        rolled_out=event.version == rollout.number,
        differs=_differs(mine, theirs, event),
        accepted=accepted,
        profit=realised_profit(one.status, amount, even) if accepted else None,
        amount=amount,
        cost=even,
        active=_estimated(mine or own),
        rollout=_estimated(theirs or own),
    )


def _estimated(estimate: VersionEstimate) -> Estimated:
    return Estimated(estimate.mean, estimate.n)


def _differs(mine: VersionEstimate | None, theirs: VersionEstimate | None, event: Decided) -> bool:
    """Return whether the versions treat an applicant differently, or may do so."""
    if mine is None or theirs is None or mine.accepts != theirs.accepts or event.referral is not None:
        return True
    return mine.accepts and mine.offer != theirs.offer
