"""What a policy has left to people: how many today, what a review must be worth today, and the rows of referrals."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from lenience.service.domain.clock import DAY
from lenience.service.domain.events import Decided, read
from lenience.service.domain.identity import first_id
from lenience.service.domain.referral import MOST, price_of_day, window_of
from lenience.service.domain.referral_decision import WORTH
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import LIVE, PolicyRecord

AT_A_TIME = 500


def referred_today(ledger: Ledger, record: PolicyRecord) -> int:
    """Return how many applicants were referred within the daily capacity today. The policy's chain is locked."""
    known = ledger.referred_today.get(record.id)
    if known is None:
        table = schema.referral
        today = (table.c.policy_id == record.id) & (table.c.rule == WORTH) & (table.c.at >= ledger.now // DAY * DAY)
        known = ledger.connection.execute(select(func.count()).select_from(table).where(today)).scalar_one()
        ledger.referred_today[record.id] = known
    return known


def any_refers(connection: Connection) -> bool:
    """Return whether a live version leaves cases to people, or a policy has done so."""
    if connection.execute(select(schema.referral.c.decision).limit(1)).first() is not None:
        return True
    version = schema.version
    refers = version.c.state.in_(LIVE) & version.c.specification.like('%"referral":{%')
    return connection.execute(select(version.c.number).where(refers).limit(1)).first() is not None


def has_referrals(connection: Connection, record: PolicyRecord) -> bool:
    """Return whether cases of a policy wait for a person."""
    table = schema.decision
    where = (table.c.status == schema.REFERRED) & table.c.chain_id.in_(list(record.segments.values()))
    return connection.execute(select(table.c.id).where(where).limit(1)).scalar_one_or_none() is not None


def review_price(ledger: Ledger, record: PolicyRecord, capacity: int) -> float:
    """Return what a review must be worth today. It is computed once a day and then cached."""
    key = (record.id, ledger.now // DAY, capacity)
    prices = ledger.registry.review_prices
    if key not in prices:
        earlier = earlier_worths(ledger.connection, record, ledger.now)
        for old in [each for each in prices if each[0] == record.id and each[1] != key[1]]:
            del prices[old]
        prices[key] = price_of_day(earlier, ledger.now, capacity)
    return prices[key]


def earlier_worths(connection: Connection, record: PolicyRecord, at: int) -> list[tuple[str, int, float]]:
    """Return the latest decisions before the day of a time that state what a review is worth, the newest first."""
    since, until = window_of(at)
    table, events = schema.decision, schema.event
    place = (events.c.chain_id == table.c.chain_id) & (events.c.seq == table.c.seq)
    # An id is never earlier than the time of its decision. It may be later, if the clock was set back.
    narrow = table.c.id >= first_id(since)
    window = table.c.chain_id.in_(list(record.segments.values())) & (table.c.at >= since) & (table.c.at < until)
    window &= narrow
    query = select(table.c.id, events.c.body).join(events, place).where(window & (table.c.version > 0))
    worths: list[tuple[str, int, float]] = []
    with connection.execute(query.order_by(table.c.id.desc()).execution_options(yield_per=AT_A_TIME)) as rows:
        for identity, body in rows:
            event = read(body)
            if isinstance(event, Decided) and event.review is not None:
                worths.append((identity, event.at, event.review.worth))
                if len(worths) == MOST:
                    break
    return worths
