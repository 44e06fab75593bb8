"""Read whether the conditions of alerts hold, for all policies with a live version."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from lenience.core.formatting import counted, percent
from lenience.service.domain.alerts import Kind, Level, Reading, limit_level
from lenience.service.domain.clock import DAY, process_clock
from lenience.service.domain.expected_outcomes import Health, worst
from lenience.service.domain.monitoring import MonitoringReport
from lenience.service.domain.open_loans import decode_open_loans, with_open_loans
from lenience.service.domain.overall import OVERALL_CAP, OVERALL_LOSS_CAP, PERIOD_CAPACITY, OverallUse
from lenience.service.domain.rule import BELOW, CAP, LIMIT, LOSS_CAP, OVER, Counts, SegmentRule, with_borrowed
from lenience.service.queries.reading import Queries
from lenience.service.storage import schema
from lenience.service.storage.ledger import read_overall_use
from lenience.service.storage.policy_cache import PolicyRecord, Version

OVERDUE_AFTER = 2 / 3  # of the time until an outcome expires
LEVELS: dict[Health, Level] = {"act": "on", "watch": "between", "ok": "off", "no_data": "off"}


def read_alert_readings(queries: Queries, at: int) -> list[Reading]:
    """Return the readings of all conditions.

    Parameters
    ----------
    queries : Queries
        The queries of the service.
    at : int
        The time, in microseconds.
    """
    readings: list[Reading] = []
    names = [entry.name for entry in queries.policies().policies if entry.active is not None]
    for name in names:
        with queries.store.read() as connection:
            record = queries.registry.load(connection, name)
            if record.active is None:
                continue
            readings += _limits_and_stops(connection, record, record.active, at)
            readings += _overdue(connection, record, record.active, at)
        readings += _monitored(queries.monitoring(name, recent=True))
    with queries.store.read() as connection:
        found = connection.execute(select(schema.audited.c.found)).scalar_one_or_none()
    readings += [_audit(found), _clock()]
    return readings


def _limits_and_stops(connection: Connection, record: PolicyRecord, version: Version, at: int) -> list[Reading]:
    """Return the readings of limits that are reached and of segments that are stopped."""
    chains = connection.execute(select(schema.chain).where(schema.chain.c.policy_id == record.id)).all()
    use = None if version.overall is None else read_overall_use(connection, record.chain).at(at)
    counts = {
        row.segment: with_open_loans(Counts(*row[6:12]), decode_open_loans(row.open_loans), version.number)
        for row in chains
        if row.segment is not None
    }
    counts = with_borrowed(version.model, counts)
    readings = [] if use is None else _overall(record.name, version, use)
    for name, rule in version.rules.items():
        own = counts[name]
        readings.append(_segment_limit(record.name, name, rule, own))
        if version.feature_model is None:  # otherwise it depends on the applicant
            verdict = rule.decide(own, 1.0)
            stopped = verdict.rule == OVER or (verdict.rule == BELOW and verdict.probability == 0)
            why = "its horizon is over" if verdict.rule == OVER else "its expected success rate is below the minimum"
            readings.append(
                Reading(
                    "segment_stopped",
                    record.name,
                    name,
                    "on" if stopped else "off",
                    float(stopped),
                    f"{record.name}: the segment “{name}” is no longer accepted, because {why}.",
                )
            )
    return readings


def _segment_limit(policy: str, name: str, rule: SegmentRule, counts: Counts) -> Reading:
    """Return whether a segment has reached its exposure limit, its cap or its cap in money."""
    limit, cap = rule.limit(counts), rule.exposure_cap_amount
    levels: list[tuple[Level, str]] = [("off", "")]
    if limit is not None and limit > 0:
        words = f"{counted(counts.pending, 'open case')} of at most {limit:,}"
        levels.append((limit_level(counts.pending, limit), words))
    if cap is not None:
        words = f"{percent(counts.at_risk / cap, 0)} of the most that it may lose"
        levels.append((limit_level(counts.at_risk, cap), words))
        if rule.decide(counts, 1.0).rule in (LIMIT, CAP, LOSS_CAP):  # less room is left than any offer needs
            levels.append(("on", words))
    order = {"off": 0, "between": 1, "on": 2}
    level, words = max(levels, key=lambda one: order[one[0]])
    sentence = f"{policy}: the segment “{name}” has reached its limit: {words}. New applicants wait for outcomes."
    return Reading("limit_reached", policy, name, level, float(level == "on"), sentence)


def _overall(policy: str, version: Version, use: OverallUse) -> list[Reading]:
    """Return whether limits over all segments are reached."""
    limits = version.overall
    assert limits is not None
    capacity = limits.capacity
    given: dict[str, tuple[float, float | None, str]] = {
        PERIOD_CAPACITY: (
            0.0 if capacity is None else use.used(capacity),
            None if capacity is None else capacity.limit,
            "" if capacity is None else f"this {capacity.per}'s capacity is used",
        ),
        OVERALL_CAP: (use.pending, limits.cap, "the cap on open cases of all segments is reached"),
        OVERALL_LOSS_CAP: (use.at_risk, limits.cap_amount, "the cap on losses of all segments is reached"),
    }
    full = limits.full(use)
    readings = []
    for subject, (used, limit, words) in given.items():
        if limit is not None:
            level: Level = "on" if full == subject else limit_level(used, limit)
            sentence = f"{policy}: {words}."
            readings.append(Reading("limit_reached", policy, subject, level, float(level == "on"), sentence))
    return readings


def _overdue(connection: Connection, record: PolicyRecord, version: Version, at: int) -> list[Reading]:
    """Return how many outcomes have been pending for two thirds of the time until they expire."""
    days = version.specification.expiry_days
    if days is None:
        return []
    table = schema.decision
    before = at - int(days * OVERDUE_AFTER * DAY)
    where = table.c.chain_id.in_(list(record.segments.values())) & (table.c.status == schema.PENDING)
    query = select(func.count()).select_from(table).where(where & (table.c.at < before))
    number = int(connection.execute(query).scalar_one())
    sentence = (
        f"{record.name}: {counted(number, 'outcome')} pending for more than {days * OVERDUE_AFTER:,.0f} days. They "
        f"expire after {days:,.0f} days."
    )
    return [Reading("outcomes_overdue", record.name, "", "on" if number else "off", float(number), sentence)]


def _monitored(report: MonitoringReport) -> list[Reading]:
    """Return whether applicants have changed, and whether outcomes are as expected."""
    readings = []
    for kind in ("segments", "feature", "offers"):
        own = [one for one in report.population if one.kind == kind]
        if own:
            largest = max(own, key=lambda one: (one.state == "act", one.index))
            sentence = f"{report.policy}: {largest.name}: {largest.sentence}"
            level = LEVELS[worst(one.state for one in own)]
            readings.append(Reading("drift", report.policy, kind, level, largest.index, sentence))
    if report.outcomes is not None:
        groups = [report.outcomes, *report.by_segment, *report.by_month]
        wrong = sum(one.state == "act" for one in groups)
        level = LEVELS[worst(one.state for one in groups)]
        sentence = f"{report.policy}: {report.outcomes_sentence}"
        readings.append(Reading("calibration", report.policy, "", level, float(wrong), sentence))
    return readings


def _audit(found: str | None) -> Reading:
    """Return whether the last audit that was started from the dashboard found something, or failed."""
    result: dict[str, Any] = {} if found is None else msgspec.json.decode(found)
    findings = len((result.get("report") or {}).get("findings") or [])
    failed = bool(findings or result.get("error"))
    what = counted(findings, "finding") if findings else "it could not finish"
    sentence = f"The audit of {result.get('at', '')} failed: {what}. Run lenience audit."
    return _of_service("audit_failed", failed, float(findings or failed), sentence)


def _clock() -> Reading:
    """Return whether this process refuses to follow the machine's clock."""
    refusing = process_clock().refusing
    sentence = (
        "The machine's clock was set forward, and the service keeps its own time. If the machine's time is right, "
        "restart the service."
    )
    return _of_service("clock_refused", refusing, float(refusing), sentence)


def _of_service(kind: Kind, holds: bool, value: float, sentence: str) -> Reading:
    return Reading(kind, "", "", "on" if holds else "off", value, sentence)
