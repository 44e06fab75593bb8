"""How good the rejections of a policy are: what is known of those it rejected, from its latest decisions.

The rejected are counted over the latest decisions. What is known of them comes from all outcomes of their segment,
because applicants of a segment are treated alike. Acceptances by the exploration floor, whose probability is logged,
check that. With a model that decides by features, applicants are grouped by the success rate that it expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from sqlalchemy import Connection, func, select

from lenience.analysis.rejection_results import PeopleSample, RejectedSegment, RejectedTotal
from lenience.core.intervals import exact_interval
from lenience.core.money import UNITS, Money
from lenience.core.offers import Offer
from lenience.service.domain.clock import DAY, iso_time, now
from lenience.service.domain.feature_models import Applicant
from lenience.service.domain.identity import first_id
from lenience.service.domain.open_loans import decode_open_loans, with_open_loans
from lenience.service.domain.rule import BELOW, FULL, OVER, Counts, with_borrowed
from lenience.service.domain.state import realised_profit
from lenience.service.domain.version_estimates import TO_LEARN
from lenience.service.storage import schema
from lenience.service.storage.ledger import NO_VERSION
from lenience.service.storage.policy_cache import PolicyRecord, Version

if TYPE_CHECKING:
    from lenience.analysis.rejected_segment import RejectionEvidence

LATEST = 20_000  # decisions that are read
BANDS = 10  # of the expected success rate, with a model that decides by features
AT_A_LIMIT = FULL | {OVER}


class RejectionsAnswer(msgspec.Struct, frozen=True):
    """How many of the rejected would have succeeded, by segment, and whether rejecting them was right.

    Amounts are in ``currency``; in units of gain + loss if it is null. The rejected are those of the latest
    ``decisions`` of the policy, made since ``since``. ``rejected_by_people`` were accepted by the policy and rejected
    by a person.
    """

    policy: str
    version: int
    currency: str | None
    decisions: int
    since: str | None
    confidence: float
    statement: str
    comparison: str
    segments: list[RejectedSegment]
    total: RejectedTotal | None
    by_people: PeopleSample | None
    rejected_by_people: int
    cautions: list[str]


class _Stated(msgspec.Struct):
    """The fields of a decision's event that matter here."""

    version: int
    decision: str
    rule: str
    probability: float
    offer: Offer | None = None
    applicant: Applicant | None = None


_decoder = msgspec.json.Decoder(_Stated)


class _Row(NamedTuple):
    """A decision: what the policy said, what happened, and what was at stake."""

    segment: str
    stated: _Stated
    accepted: bool
    status: str
    amount: float
    cost: float

    @property
    def outcome(self) -> float:
        """1 for a success, 0 for a failure, NaN if it is not known."""
        return {schema.SUCCESS: 1.0, schema.FAILURE: 0.0}.get(self.status, float("nan"))

    @property
    def said_yes(self) -> bool:
        """Whether the policy accepted."""
        return self.stated.decision == "accept"


def read_rejections(connection: Connection, record: PolicyRecord, version: Version) -> RejectionsAnswer:
    """Return how good the rejections of a policy are.

    Parameters
    ----------
    connection : Connection
        A transaction.
    record : PolicyRecord
        The policy as it is now.
    version : Version
        The version whose rules and priors count.
    """
    from lenience.analysis.rejected_segment import assess_segment
    from lenience.analysis.rejection_totals import compare_with_random, summarise

    rows, since = _latest(connection, record, version)
    days = None if since is None else max((now() - since) / DAY, 1.0 / 24)
    offers = version.specification.objective.offers
    money = UNITS if offers is None else offers.money
    by_features = version.feature_model is not None
    collected = (
        _by_band(connection, record, version, rows, days)
        if by_features
        else _by_segment(connection, record, version, rows, days)
    )
    taken = [row for row in rows if row.accepted and not row.said_yes]
    result = summarise(
        [assess_segment(one) for one in collected],
        by_people=_people(taken),
        correlated=by_features or version.model is not None,
        alike=not by_features,
    )
    return RejectionsAnswer(
        policy=record.name,
        version=version.number,
        currency=money.currency if money.known else None,
        decisions=len(rows),
        since=None if since is None else iso_time(since),
        confidence=result.confidence,
        statement=result.summary(money),
        comparison=compare_with_random(result, money),
        segments=result.segments,
        total=result.total,
        by_people=result.by_people,
        rejected_by_people=sum(row.said_yes and not row.accepted for row in rows),
        cautions=result.cautions,
    )


def money_of(answer: RejectionsAnswer) -> Money:
    """Return how to show the amounts of an answer."""
    return UNITS if answer.currency is None else Money(1.0, answer.currency)


def _latest(connection: Connection, record: PolicyRecord, version: Version) -> tuple[list[_Row], int | None]:
    """Return the latest decisions of a policy and the time of the first of them."""
    names = {chain: segment for segment, chain in record.segments.items()}
    table, events = schema.decision, schema.event
    place = (events.c.chain_id == table.c.chain_id) & (events.c.seq == table.c.seq)
    where = table.c.chain_id.in_(list(names)) & table.c.source.is_(None) & (table.c.status != schema.REPLACED)
    where &= table.c.id >= first_id(_first_day(connection, list(names)) * DAY)
    columns = (table.c.chain_id, table.c.accepted, table.c.status, table.c.amount, table.c.cost, table.c.at)
    query = select(*columns, events.c.body).join_from(table, events, place).where(where)
    rows, since = [], None
    for row in connection.execute(query.order_by(table.c.id.desc()).limit(LATEST)):
        segment = names[row.chain_id]
        rule = version.rules.get(segment)
        amount, cost = row.amount, row.cost
        if amount is None or cost is None:
            amount, cost = 1.0, rule.break_even if rule is not None else next(iter(version.rules.values())).break_even
        rows.append(_Row(segment, _decoder.decode(row.body), bool(row.accepted), row.status, amount, cost))
        since = row.at
    return rows, since


def _first_day(connection: Connection, chains: list[int]) -> int:
    """Return the day from which on there are enough decisions, so that older ones need not be read."""
    table = schema.daily_total
    own = table.c.chain_id.in_(chains) & (table.c.version != NO_VERSION) & (table.c.status != schema.REPLACED)
    by_day = select(table.c.day, func.sum(table.c.number)).where(own).group_by(table.c.day).order_by(table.c.day.desc())
    first = number = 0
    for day, some in connection.execute(by_day):
        if number >= LATEST:
            break
        first, number = day, number + int(some)
    return first


def _by_segment(
    connection: Connection, record: PolicyRecord, version: Version, rows: Sequence[_Row], days: float | None
) -> list[RejectionEvidence]:
    """Collect what bears on the rejected of each segment. All outcomes of the segment are evidence."""
    grouped: dict[str, list[_Row]] = {}
    for row in rows:
        grouped.setdefault(row.segment, []).append(row)
    counts = _counts(connection, record, version)
    collected = []
    for segment, own in grouped.items():
        known, rule = counts[segment], version.rules.get(segment)
        earlier = 0.0 if rule is None else rule.past_outcomes + known.open_outcomes
        if known.borrowed is not None:
            earlier += known.borrowed.outcomes
        evidence = _evidence(segment, own, days)
        collected.append(
            evidence._replace(
                belief=None if rule is None else rule.belief(known),
                outcomes=known.successes + known.failures,
                successes=known.successes,
                pending=known.pending,
                earlier=earlier,
            )
        )
    return collected


def _by_band(
    connection: Connection, record: PolicyRecord, version: Version, rows: Sequence[_Row], days: float | None
) -> list[RejectionEvidence]:
    """Collect what bears on the rejected in each band of the success rate that a model expected."""
    import numpy as np

    model = version.feature_model
    labels = sum(one.successes + one.failures for one in _counts(connection, record, version).values())
    labels += 0 if model is None else model.labels_before
    grouped: dict[int, list[_Row]] = {}
    for row in rows:
        if row.stated.applicant is not None:
            grouped.setdefault(min(int(row.stated.applicant.mean * BANDS), BANDS - 1), []).append(row)
    collected = []
    for band, own in sorted(grouped.items()):
        evidence = _evidence(f"expected {100 * band // BANDS}–{100 * (band + 1) // BANDS}%", own, days)
        below = [row for row in own if _is_rejected(row)]
        if below:
            estimates = [(row.stated.applicant.mean, row.stated.applicant.n) for row in below if row.stated.applicant]
            expected, size = np.array(estimates).T
            amounts = np.array([row.amount for row in below])
            evidence = evidence._replace(expected=expected, evidence=size, amounts=amounts)
        collected.append(evidence._replace(earlier=float(labels)))
    return collected


def _evidence(name: str, rows: Sequence[_Row], days: float | None) -> RejectionEvidence:
    """Count the rejected, those at a limit, those accepted at random and those accepted to learn."""
    import numpy as np

    from lenience.analysis.rejected_segment import RandomSample, RejectionEvidence

    rejected = [row for row in rows if _is_rejected(row)]
    taken = [row for row in rows if row.accepted and row.said_yes]
    drawn = [row for row in taken if row.stated.probability < 1.0]
    to_learn = [row for row in taken if row.stated.rule in TO_LEARN]
    profits = [profit for row in to_learn if (profit := realised_profit(row.status, row.amount, row.cost)) is not None]
    known = [row.outcome for row in taken]
    sample = None
    if drawn:
        chances = np.array([row.stated.probability for row in drawn])
        amounts, outcomes = (np.array(column) for column in zip(*((r.amount, r.outcome) for r in drawn), strict=True))
        sample = RandomSample((1.0 - chances) / chances, amounts, outcomes)
    return RejectionEvidence(
        segment=name,
        rejected=len(rejected),
        amount=sum(row.amount for row in rejected),
        loss=sum(row.amount * row.cost for row in rejected),
        outcomes=sum(outcome == outcome for outcome in known),
        successes=sum(outcome == 1.0 for outcome in known),
        pending=sum(row.status == schema.PENDING for row in taken),
        sample=sample,
        at_a_limit=sum(not row.accepted and not row.said_yes and row.stated.rule in AT_A_LIMIT for row in rows),
        to_learn=len(to_learn),
        to_learn_outcomes=len(profits),
        to_learn_profit=float(sum(profits)),
        days=days,
    )


def _is_rejected(row: _Row) -> bool:
    """Return whether the policy rejected an applicant for too low a success rate, and nobody accepted it since."""
    return not row.accepted and not row.said_yes and row.stated.rule == BELOW


def _counts(connection: Connection, record: PolicyRecord, version: Version) -> dict[str, Counts]:
    """Return the counts of each segment, with what open loans count and what segments borrow."""
    table = schema.chain
    columns = (table.c.segment, table.c.arrivals, table.c.accepted, table.c.pending, table.c.successes)
    more = (table.c.failures, table.c.at_risk, table.c.open_loans)
    query = select(*columns, *more).where(table.c.policy_id == record.id, table.c.segment.is_not(None))
    own = {
        row.segment: with_open_loans(Counts(*row[1:7]), decode_open_loans(row.open_loans), version.number)
        for row in connection.execute(query)
    }
    return with_borrowed(version.model, own)


def _people(taken: Sequence[_Row]) -> PeopleSample | None:
    if not taken:
        return None
    known = [row.outcome for row in taken if row.outcome == row.outcome]
    good = int(sum(known))
    return PeopleSample(len(taken), len(known), good, exact_interval(good, len(known), 0.9))
