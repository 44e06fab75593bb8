"""Read how a running version does: its population, expected and observed outcomes, and acceptance.

The population and acceptance are those of the latest applicants, outcomes those of the latest acceptances whose outcome
is known. All are bounded, so that the time to read them does not grow with the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, product
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from lenience.analysis.proportions import rate_interval
from lenience.core.formatting import counted, percent
from lenience.core.offers import Offer, Offers
from lenience.service.domain.clock import DAY, iso_time
from lenience.service.domain.expected_outcomes import (
    ExpectedOutcomes,
    KnownOutcome,
    compare_outcomes,
    known_by_age,
    worst,
)
from lenience.service.domain.feature_cells import Feature
from lenience.service.domain.monitoring import (
    Acceptance,
    MonitoringReport,
    MonthlyAcceptance,
    PopulationDrift,
    compare_acceptance,
    drift_of_feature,
    drift_of_shares,
    summarise_outcomes,
    summarise_population,
)
from lenience.service.domain.offer_drift import offer_stability
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.open_loans import decode_open_loans, with_open_loans
from lenience.service.domain.population_stability import LEAST, LEVEL, stability_index
from lenience.service.domain.rule import FULL, Counts, SegmentRule, with_borrowed
from lenience.service.domain.specification import SegmentSpec
from lenience.service.domain.version_estimates import VersionEstimate, estimate_under
from lenience.service.queries.applicant_explanation import state_now
from lenience.service.queries.model_report import read_feature_drift
from lenience.service.storage import schema
from lenience.service.storage.arriving_offers import arriving_offers
from lenience.service.storage.latest_decisions import LatestDecision, latest_decisions
from lenience.service.storage.policy_cache import ModelStates, PolicyRecord, Version

RECENT = 1_000  # latest applicants
FIRST = 200  # applicants to compare with, if the version has no data of its own
KNOWN = 5_000  # latest acceptances whose outcome is known
BY_MONTH = 50_000  # latest decisions that are counted by month
MOST_MONTHS = 24
MOST_OFFER_SEGMENTS = 20  # busiest segments whose offers are compared
GOLDEN = 0.6180339887498949  # multiples of it, without whole parts, are spread evenly
BANDS = 10  # of the expected success rate
OVERALL_STATE = {
    "act": "Something needs your attention.",
    "watch": "Something is worth watching.",
    "ok": "Everything is as expected.",
    "no_data": "There is not enough data yet.",
}


class _Reference(NamedTuple):
    """The version's own population: counts or exact shares of the segments, and words for it."""

    parts: dict[str, float]
    exact: bool
    words: str
    first: frozenset[str] = frozenset()  # the decisions that it consists of

    @property
    def shares(self) -> dict[str, float]:
        total = sum(self.parts.values())
        return {name: value / total for name, value in self.parts.items()}


def read_monitoring(
    connection: Connection, record: PolicyRecord, version: Version, known: ModelStates | None, at: int
) -> MonitoringReport:
    """Return how a version does.

    Parameters
    ----------
    connection : Connection
        A transaction.
    record : PolicyRecord
        The policy as it is now.
    version : Version
        The version.
    known : ModelStates or None
        States of models that are known already.
    at : int
        The time of the report, in microseconds.
    """
    decided = [
        (one, estimate)
        for one in latest_decisions(connection, record.segments, RECENT)
        if (estimate := estimate_under(version.number, version.rules, one.segment, one.event)) is not None
    ]
    chains = connection.execute(select(schema.chain).where(schema.chain.c.policy_id == record.id)).all()
    reference = _reference(connection, record, version, chains)
    later = [pair for pair in decided if reference is None or pair[0].id not in reference.first]
    population, words = _population(connection, record, version, reference, later)
    if version.feature_model is not None:
        features, words = read_feature_drift(connection, record, version.feature_model, [one for one, _ in decided])
        population = [drift_of_feature(one) for one in features] + population
    overall, by_group, by_month = _outcomes(connection, record, version, at)
    acceptance = _acceptance(connection, record, version, known, reference, later, chains)
    states = [one.state for one in population] + [one.state for one in (*by_group, *by_month)]
    state = worst([*states, acceptance.state, *([overall.state] if overall else [])])
    return MonitoringReport(
        policy=record.name,
        version=version.number,
        at=iso_time(at),
        state=state,
        sentence=OVERALL_STATE[state],
        compared_with=words,
        applicants=len(decided),
        population=population,
        population_sentence=summarise_population(population, len(later), words),
        outcomes=overall,
        by_segment=by_group,
        by_month=by_month,
        outcomes_sentence=summarise_outcomes(overall, by_group, by_month),
        acceptance=acceptance,
    )


def _reference(
    connection: Connection, record: PolicyRecord, version: Version, chains: Sequence[Any]
) -> _Reference | None:
    """Return the version's own population by segment: its shares, imported decisions, or its first applicants."""
    own = [spec.share for spec in version.specification.segments if isinstance(spec, SegmentSpec)]
    if len(own) == len(version.rules) > 1 and all(share is not None for share in own):
        shares = {name: rule.share for name, rule in version.rules.items()}
        return _Reference(shares, True, "the shares of the segments that the version was solved for")
    imported = {row.segment: row.imported for row in chains if row.segment in version.rules}
    if sum(imported.values()) >= LEAST:
        return _Reference(
            {name: float(imported.get(name, 0)) for name in version.rules},
            False,
            f"{counted(sum(imported.values()), 'imported decision')}",
        )
    first = [
        one for one in latest_decisions(connection, record.segments, FIRST, oldest=True) if one.segment in version.rules
    ]
    if len(first) < LEAST:
        return None
    counts = Counter(one.segment for one in first)
    words = f"the first {counted(len(first), 'applicant')}"
    return _Reference(
        {name: float(counts[name]) for name in version.rules}, False, words, frozenset(one.id for one in first)
    )


def _population(
    connection: Connection,
    record: PolicyRecord,
    version: Version,
    reference: _Reference | None,
    later: Sequence[tuple[LatestDecision, VersionEstimate]],
) -> tuple[list[PopulationDrift], str]:
    """Compare segments, features that define them, and offers with the version's own data."""
    drifts: list[PopulationDrift] = []
    words = "" if reference is None else reference.words
    now = Counter(one.segment for one, _ in later)
    if reference is not None and len(later) >= LEAST and len(version.rules) > 1:
        names = list(version.rules)
        before, latest = [reference.parts[name] for name in names], [float(now[name]) for name in names]
        found = stability_index(before, latest, exact=reference.exact)
        drifts.append(drift_of_shares("segments", "segments", names, before, latest, found))
        drifts += _cell_features(version.specification.features, reference, now)
    offered = [
        name for name, rule in version.rules.items() if rule.table.offers is not None and name in record.segments
    ]
    busiest = sorted(offered, key=lambda name: -now[name])[:MOST_OFFER_SEGMENTS]
    for name in busiest:
        drift = _offers(connection, name, version.rules[name], record.segments[name], LEVEL / len(busiest))
        if drift is not None:
            drifts.append(drift)
            words = words or "the offers that the version was solved for"
    return drifts, words


def _cell_features(features: Sequence[Feature], reference: _Reference, now: Mapping[str, int]) -> list[PopulationDrift]:
    """Compare each feature that defines segments, over the other features."""
    if len(features) < 2:  # one feature is the same as its segments
        return []
    labels = [feature.labels for feature in features]
    cells = list(product(*labels))
    drifts = []
    for place, feature in enumerate(features):
        before, latest = dict.fromkeys(labels[place], 0.0), dict.fromkeys(labels[place], 0.0)
        for cell in cells:
            name = ", ".join(cell)
            before[cell[place]] += reference.parts.get(name, 0.0)
            latest[cell[place]] += now.get(name, 0)
        old, new = list(before.values()), list(latest.values())
        found = stability_index(old, new, LEVEL / len(features), exact=reference.exact)
        drifts.append(drift_of_shares("feature", feature.name, labels[place], old, new, found))
    return drifts


def _offers(connection: Connection, name: str, rule: SegmentRule, chain: int, level: float) -> PopulationDrift | None:
    """Compare the amounts that arrive in a segment with earlier ones."""
    offers = rule.table.offers
    if offers is None or offers.menus:
        return None
    latest: Sequence[Offer] = arriving_offers(connection, chain)
    before: Sequence[Offer] = arriving_offers(connection, chain, imported=True)
    if len(before) < LEAST:
        before, latest = _split(arriving_offers(connection, chain, oldest=True), latest)
    compared = offer_stability(offers, before, latest, level)
    return None if compared is None else drift_of_shares("offers", name, *compared)


def _split(first: Sequence[Offer], latest: Sequence[Offer]) -> tuple[Sequence[Offer], Sequence[Offer]]:
    """Return the first offers of a segment, and the latest ones that are not among them."""
    before = first[:FIRST]
    overlap = max(len(before) + len(latest) - len(first), 0) if len(first) < RECENT else 0
    return before, latest[: len(latest) - overlap] if overlap else latest


def _outcomes(
    connection: Connection, record: PolicyRecord, version: Version, at: int
) -> tuple[ExpectedOutcomes | None, list[ExpectedOutcomes], list[ExpectedOutcomes]]:
    """Compare expected with observed outcomes: together, by segment or band, and by month."""
    curves = version.specification.timing or None
    by_bands = version.feature_model is not None
    resolved = [schema.SUCCESS, schema.FAILURE]
    latest = latest_decisions(connection, record.segments, KNOWN, statuses=resolved)
    known: list[tuple[KnownOutcome, str]] = []
    for one in reversed(latest):
        estimate = estimate_under(version.number, version.rules, one.segment, one.event)
        if estimate is None or one.success is None:
            continue
        mean = known_by_age(estimate.mean, curves, (at - one.event.at) / DAY)
        group = _band(estimate.mean) if by_bands else one.segment
        outcome = KnownOutcome(one.segment, group, mean, estimate.n, one.event.pending, one.success)
        known.append((outcome, month_name(one.event.at)))
    if not known:
        return None, [], []
    unknown = _unknown(connection, record, min(one.id for one in latest))
    by_segment: Counter[str] = Counter()
    by_month: Counter[str] = Counter()
    for (segment, month), number in unknown.items():
        by_segment[segment] += number
        by_month[month] += number
    timed = curves is not None
    together = compare_outcomes(
        (one._replace(group="all") for one, _ in known), {"all": sum(unknown.values())}, timed=timed
    )
    recent = sorted({month for _, month in known})[-MOST_MONTHS:]
    return (
        together[0],
        compare_outcomes((one for one, _ in known), None if by_bands else by_segment, timed=timed),
        compare_outcomes(
            (one._replace(group=month) for one, month in known if month in recent),
            {month: number for month, number in by_month.items() if month >= recent[0]},
            timed=timed,
        ),
    )


def _band(mean: float) -> str:
    low = min(int(mean * BANDS), BANDS - 1)
    return f"{percent(low / BANDS, 0)} to {percent((low + 1) / BANDS, 0)} expected"


def _unknown(connection: Connection, record: PolicyRecord, since: str) -> dict[tuple[str, str], int]:
    """Count the acceptances without an outcome since a decision, by segment and month."""
    names = {chain: segment for segment, chain in record.segments.items()}
    table = schema.decision
    day = table.c.at // DAY
    where = table.c.chain_id.in_(list(names)) & table.c.source.is_(None) & (table.c.id >= since)
    waiting = table.c.status.in_([schema.PENDING, schema.EXPIRED])
    query = select(table.c.chain_id, day.label("day"), func.count()).where(where & waiting)
    counts: Counter[tuple[str, str]] = Counter()
    for chain, number, count in connection.execute(query.group_by(table.c.chain_id, "day")):
        counts[names[chain], month_name(int(number) * DAY)] += count
    return counts


def _acceptance(
    connection: Connection,
    record: PolicyRecord,
    version: Version,
    known: ModelStates | None,
    reference: _Reference | None,
    later: Sequence[tuple[LatestDecision, VersionEstimate]],
    chains: Sequence[Any],
) -> Acceptance:
    """Compare the acceptance of the latest applicants with what the version expects of its own population."""
    active = [(one, estimate) for one, estimate in later if one.event.version == version.number]
    mine = active or list(later)  # a version in shadow has decided nothing itself
    arrivals = Counter(one.segment for one, _ in mine)
    would: Counter[str] = Counter()
    for one, estimate in mine:
        would[one.segment] += estimate.accepts or estimate.limited
    accepted = sum(one.accepted if active else estimate.accepts for one, estimate in mine)
    by_version = sum(estimate.accepts for _, estimate in mine)
    limited = sum(estimate.limited for _, estimate in mine)
    rates = {name: would[name] / number for name, number in arrivals.items()}
    shares = None if reference is None else reference.shares
    if version.feature_model is not None:
        expected = _expected_by_features(connection, record, version, known, arrivals.total())
        shares, rates = (None, rates) if expected is None else ({"all": 1.0}, {"all": expected})
    elif shares is not None:
        rates |= _would_accept_now(version, chains, [name for name in shares if name not in rates])
    interval = rate_interval(accepted, arrivals.total()) if arrivals else None
    months = _months(connection, record, version)
    return compare_acceptance(shares, rates, arrivals, accepted, limited, accepted - by_version, interval, months)


def _would_accept_now(version: Version, chains: Sequence[Any], names: Sequence[str]) -> dict[str, float]:
    """Return the share that the version would accept in segments without recent applicants, limits aside."""
    counts = {
        row.segment: with_open_loans(Counts(*row[6:12]), decode_open_loans(row.open_loans), version.number)
        for row in chains
        if row.segment is not None
    }
    counts = with_borrowed(version.model, counts)
    rates = {}
    for name in names:
        rule, own = version.rules[name], counts[name]
        verdict = rule.decide(own, 1.0)
        table = rule.table_after(own)
        if isinstance(table, OfferTable) and table.offers is not None:
            rates[name] = table.share_accepted(own.good, own.bad, 0)
        else:
            rates[name] = 1.0 if verdict.decision == "accept" or verdict.rule in FULL else verdict.probability
    return rates


def _expected_by_features(
    connection: Connection, record: PolicyRecord, version: Version, known: ModelStates | None, arrivals: int
) -> float | None:
    """Return the share of the version's own data that it would accept now, or None if it has no data."""
    model = version.feature_model
    if model is None or not model.reference_is_data:
        return None
    _, state = state_now(connection, record, version.number, model, known)
    rows = list(model.reference)
    decided = model.decide_each(state, rows, [arrivals] * len(rows), _typical_offers(model.objective.offers, len(rows)))
    return sum(one.propensity for one in decided) / len(decided)


def _typical_offers(offers: Offers | None, number: int) -> list[tuple[Offer, ...]]:
    """Return what each of a number of applicants asks for, each offer as often as its share, in a mixed order."""
    if offers is None or offers.menus:
        return [()] * number  # everybody has the same choice
    ends = list(accumulate(offers.share))
    places = [bisect_right(ends, (i + 0.5) * GOLDEN % 1.0 * ends[-1]) for i in range(number)]
    return [(Offer(offers.amount[place], offers.cost[place]),) for place in places]


def _months(connection: Connection, record: PolicyRecord, version: Version) -> list[MonthlyAcceptance]:
    """Return the acceptance rate of the version by month, over the latest decisions."""
    table = schema.decision
    where = table.c.chain_id.in_(list(record.segments.values())) & (table.c.version == version.number)
    where &= table.c.status != schema.REPLACED
    latest = select(table.c.at, table.c.accepted).where(where).order_by(table.c.id.desc()).limit(BY_MONTH).subquery()
    day = latest.c.at // DAY
    query = select(day.label("day"), func.count(), func.sum(latest.c.accepted)).group_by("day")
    totals: dict[str, tuple[int, int]] = {}
    for number, size, accepted in connection.execute(query):
        month = month_name(int(number) * DAY)
        before = totals.get(month, (0, 0))
        totals[month] = (before[0] + int(size), before[1] + int(accepted))
    return [
        MonthlyAcceptance(month, size, accepted, accepted / size, rate_interval(accepted, size))
        for month, (size, accepted) in sorted(totals.items())[-MOST_MONTHS:]
    ]


def month_name(at: int) -> str:
    """Return the month of a time in microseconds (UTC).

    >>> month_name(1_700_000_000_000_000)
    '2023-11'
    """
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m")
