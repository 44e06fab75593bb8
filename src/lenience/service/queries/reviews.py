"""Read the cases that wait for a person, and how people decided earlier ones."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from sqlalchemy import Connection, func, select

from lenience.core.money import UNITS, Money
from lenience.service.domain.answers import OfferAnswer, offer_answer
from lenience.service.domain.clock import DAY, iso_time
from lenience.service.domain.events import Choice, Decided, Overridden, read
from lenience.service.domain.referral_decision import estimate
from lenience.service.domain.review_report import ReviewedCase, ReviewReport, report_reviews
from lenience.service.domain.state import realised_profit
from lenience.service.domain.statements import stated_counts
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyCache, PolicyRecord, Version

QueueOrder: TypeAlias = Literal["oldest", "worth"]
AT_A_TIME = 500
MOST = 10_000  # latest referred cases of the report


class ReferredEntry(msgspec.Struct, frozen=True):
    """A case that waits for a person, and what the policy thinks of it.

    ``would`` is what the policy would have answered, ``rate`` the expected success rate, ``minimum`` the rate above
    which the policy accepts, and ``evidence`` on how many outcomes the estimate rests. ``expected_profit`` is what an
    acceptance is expected to earn, and ``worth`` what a review is worth: in money, or in units of gain + loss without
    an offer. The case lapses at ``lapses_at`` if nobody decides it.
    """

    id: str
    policy: str
    policy_version: int
    segment: str
    rule: str
    would: Choice
    reason: str
    rate: float
    minimum: float
    evidence: float
    expected_profit: float
    worth: float
    referred_at: str
    lapses_at: str
    offer: OfferAnswer | None
    currency: str | None
    reference: str | None
    features: dict[str, float | str | None] | None


class ReferralsPage(msgspec.Struct, frozen=True):
    """The cases that wait for a person, how many there are in all, and the id after which the next page starts."""

    referrals: list[ReferredEntry]
    waiting: int
    next: str | None


def read_referrals(
    connection: Connection,
    registry: PolicyCache,
    records: list[PolicyRecord],
    after: str | None,
    size: int,
    order: QueueOrder = "oldest",
) -> ReferralsPage:
    """Return cases that wait for a person, the oldest first or those first where a review is worth most.

    Parameters
    ----------
    connection : Connection
        A transaction.
    registry : PolicyCache
        The versions.
    records : list of PolicyRecord
        The policies.
    after : str or None
        The last id of the page before. Pages exist only in the order of age.
    size : int
        Cases on a page.
    order : {"oldest", "worth"}, default "oldest"
        Which come first.
    """
    names = {chain: (record, segment) for record in records for segment, chain in record.segments.items()}
    table, events, personal, referrals = schema.decision, schema.event, schema.personal, schema.referral
    waiting = (table.c.status == schema.REFERRED) & table.c.chain_id.in_(list(names))
    total = connection.execute(select(func.count()).select_from(table).where(waiting)).scalar_one()
    place = (events.c.chain_id == table.c.chain_id) & (events.c.seq == table.c.seq)
    beside = (personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq)
    columns = (table.c.id, table.c.chain_id, events.c.body, personal.c.reference, personal.c.details)
    query = select(*columns).join_from(table, events, place).outerjoin(personal, beside)
    query = query.join(referrals, referrals.c.decision == table.c.id).where(waiting)
    if after is not None and order == "oldest":
        query = query.where(table.c.id > after)
    first = (referrals.c.worth.desc(), table.c.id) if order == "worth" else (table.c.id,)
    rows = connection.execute(query.order_by(*first).limit(size + 1)).all()
    entries = [_entry(connection, registry, names, row) for row in rows[:size]]
    more = len(rows) > size and order == "oldest"
    return ReferralsPage(entries, total, entries[-1].id if more else None)


def _entry(
    connection: Connection, registry: PolicyCache, names: dict[int, tuple[PolicyRecord, str]], row: Any
) -> ReferredEntry:
    record, segment = names[row.chain_id]
    event = read(row.body)
    assert isinstance(event, Decided)
    assert event.referral is not None
    version = registry.version(connection, record.id, event.version)
    assert version.referral is not None
    rate, evidence = estimate(version.rules[segment], stated_counts(event), event.applicant)
    money = money_of(version)
    return ReferredEntry(
        id=row.id,
        policy=record.name,
        policy_version=event.version,
        segment=segment,
        rule=event.rule,
        would=event.referral.would,
        reason=event.reason,
        rate=rate,
        minimum=event.threshold,
        evidence=evidence,
        expected_profit=_expected_profit(version, segment, event, rate),
        worth=event.referral.worth,
        referred_at=iso_time(event.at),
        lapses_at=iso_time(event.at + int(version.referral.expire_after_days * DAY)),
        offer=offer_answer(event.offer),
        currency=money.currency if money.known else None,
        reference=row.reference,
        features=None if row.details is None else msgspec.json.decode(row.details),
    )


def read_review_report(connection: Connection, registry: PolicyCache, record: PolicyRecord) -> ReviewReport:
    """Return how people decided the latest referred cases of a policy, and who was right."""
    table, events, referrals = schema.decision, schema.event, schema.referral
    place = (events.c.chain_id == table.c.chain_id) & (events.c.seq == table.c.seq)
    segments = {chain: segment for segment, chain in record.segments.items()}
    query = (
        select(table.c.id, table.c.chain_id, table.c.status, table.c.amount, table.c.cost, events.c.body)
        .join_from(referrals, table, table.c.id == referrals.c.decision)
        .join(events, place)
        .where(referrals.c.policy_id == record.id)
        .order_by(referrals.c.at.desc(), referrals.c.decision.desc())
        .limit(MOST)
    )
    rows = connection.execute(query).all()
    choices = _choices(connection, [row.id for row in rows])
    cases, money = [], UNITS
    for row in rows:
        event = read(row.body)
        assert isinstance(event, Decided)
        assert event.referral is not None
        version = registry.version(connection, record.id, event.version)
        rule = version.rules[segments[row.chain_id]]
        money = money_of(version) if not money.known else money
        rate, _ = estimate(rule, stated_counts(event), event.applicant)
        amount, cost = (1.0, rule.break_even) if event.offer is None else (event.offer.amount, event.offer.cost)
        choice = choices.get(row.id)
        cases.append(
            ReviewedCase(
                would=event.referral.would,
                choice=choice,
                lapsed=row.status == schema.LAPSED,
                profit=realised_profit(row.status, amount, cost) if choice == "accept" else None,
                expected=_expected_profit(version, rule.name, event, rate),
            )
        )
    return report_reviews(record.name, cases, money)


def _choices(connection: Connection, decisions: list[str]) -> dict[str, Choice]:
    """Return what a person decided on each referred case."""
    events = schema.event
    choices: dict[str, Choice] = {}
    for start in range(0, len(decisions), AT_A_TIME):
        query = select(events.c.body).where(events.c.about.in_(decisions[start : start + AT_A_TIME]), schema.OVERRIDE)
        for body in connection.scalars(query):
            event = read(body)
            if isinstance(event, Overridden) and event.review:
                choices[event.decision] = event.choice
    return choices


def _expected_profit(version: Version, segment: str, event: Decided, rate: float) -> float:
    """Return what an acceptance is expected to earn, in money or in units of gain + loss."""
    if event.expected_profit is not None:
        return event.expected_profit
    return rate - version.rules[segment].break_even


def money_of(version: Version) -> Money:
    """Return how to show the profits of a version."""
    offers = version.specification.objective.offers
    return UNITS if offers is None else offers.money
