"""Chapter 7, monitoring plan: what to watch, how often, at which threshold to act, and what it is now."""

from __future__ import annotations

from typing import NamedTuple

from lenience.analysis.monitored_groups import FOUR_FIFTHS
from lenience.core.formatting import counted, percent
from lenience.dashboard.documentation.facts import PackFacts
from lenience.reports.document import Block, Bullets, CaptionedTable, Chapter, Heading, Paragraph
from lenience.reports.views import ReportTable, TableCell
from lenience.service.domain.alerts import KINDS
from lenience.service.domain.monitoring import LARGE, SMALL
from lenience.service.domain.population_stability import MUCH, SOME

KINDS_OF_DRIFT = {"segments": "Mix of segments", "feature": "Features", "offers": "Amounts and prices"}
VOLUME = 1.25  # ratio of the yearly volume to the assumed one
OVERRIDES = 0.1  # of all decisions
EXPIRED = 0.05  # of all acceptances
YEAR = 365.25
FEWEST_DAYS = 30.0  # before a yearly volume is estimated


class Watch(NamedTuple):
    """One thing to watch. ``alarm`` is whether the threshold is exceeded now, None if it is not known."""

    what: str
    now: str
    threshold: str
    often: str
    action: str
    alarm: bool | None


def monitoring_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    watches = watch_list(facts)
    rows: list[list[str | TableCell]] = [
        [one.what, TableCell(one.now, "reject" if one.alarm else ""), one.threshold, one.often, one.action]
        for one in watches
    ]
    alarms = [one.what for one in watches if one.alarm]
    text = (
        f"Above its threshold now: {', '.join(alarms)}."
        if alarms
        else "Nothing that can be measured is above its threshold now."
    )
    header = ("What to watch", "Now", "Act if", "How often", "Action")
    blocks: list[Block] = [
        Paragraph(
            "The thresholds are defaults; the owner of the model may set others. The monitoring page of the dashboard "
            "and "
            "GET /v1/policies/{name}/monitoring show the same numbers continuously."
        ),
        Paragraph(text),
        CaptionedTable("Monitoring plan", ReportTable(header, rows), prose=True),
    ]
    blocks += [Heading("Alerts"), *_alerts(facts)]
    return Chapter("Monitoring plan", "What is watched after approval, and when must somebody act?", blocks)


def _alerts(facts: PackFacts) -> list[Block]:
    """Say what the service reports by itself, and which alerts hold now."""
    blocks: list[Block] = [
        Paragraph(
            f"The service sends a signed message to its webhooks when one of these begins or ends: "
            f"{'; '.join(KINDS.values())}."
        )
    ]
    if facts.alerts:
        blocks.append(Bullets([(f"Since {alert.began_at[:10]}:", alert.sentence) for alert in facts.alerts]))
    else:
        blocks.append(Paragraph("No alert holds now."))
    return blocks


def watch_list(facts: PackFacts) -> list[Watch]:
    """Return everything to watch, with its value now."""
    watches = [_outcomes(facts), *_population(facts), _acceptance(facts), _volume(facts), *_groups(facts)]
    watches += [_expired(facts), _overrides(facts), *_reviews(facts), _stopped(facts), _audit(facts), _review(facts)]
    return watches


def _outcomes(facts: PackFacts) -> Watch:
    overall = facts.monitoring.outcomes
    states = [one.state for one in (*facts.monitoring.by_segment, *facts.monitoring.by_month)]
    states += [] if overall is None else [overall.state]
    alarm = any(state in ("watch", "act") for state in states) if overall is not None and overall.outcomes else None
    action = "Find the cause, refit on newer data, and compare the new version in shadow."
    threshold = "outside the range of chance: 5% to watch, 0.1% to act"
    return Watch(
        "Outcomes against expectation", facts.monitoring.outcomes_sentence, threshold, "monthly", action, alarm
    )


def _population(facts: PackFacts) -> list[Watch]:
    """Watch segments, features and offers of the applicants."""
    action = "Create a version with the new shares, or refit on newer data."
    threshold = f"stability index above {SOME:g} (watch) or {MUCH:g} (act), beyond chance"
    if not facts.monitoring.population:
        sentence = facts.monitoring.population_sentence
        return [Watch("Population", sentence, threshold, "monthly", action, None)]
    watches = []
    for kind, what in KINDS_OF_DRIFT.items():
        drifts = [one for one in facts.monitoring.population if one.kind == kind]
        if not drifts:
            continue
        most = max(drifts, key=lambda one: (one.state != "ok", one.index))
        where = f"{most.name}: " if len(drifts) > 1 else ""
        now = f"{where}index {most.index:.2f}. {most.sentence}"
        watches.append(Watch(what, now, threshold, "monthly", action, any(one.state != "ok" for one in drifts)))
    return watches


def _acceptance(facts: PackFacts) -> Watch:
    found = facts.monitoring.acceptance
    threshold = (
        f"{100 * SMALL:.0f} points (watch) or {100 * LARGE:.0f} points (act) from the expected rate, beyond chance"
    )
    action = "See on the monitoring page whether the mix, limits or people cause it."
    alarm = None if found.state == "no_data" else found.state != "ok"
    return Watch("Acceptance rate", found.sentence, threshold, "monthly", action, alarm)


def _volume(facts: PackFacts) -> Watch:
    """Compare the yearly number of applicants with the assumed one."""
    assumed = facts.specification.objective.arrivals
    action = "Create a version with the new volume."
    threshold = f"{VOLUME:g} times the assumed number, or less than {1 / VOLUME:g} times"
    if assumed is None:
        return Watch("Applicants per year", "not part of the objective", threshold, "quarterly", action, None)
    if facts.days < FEWEST_DAYS:
        return Watch("Applicants per year", "too early to say", threshold, "quarterly", action, None)
    yearly = facts.decided / facts.days * YEAR
    now = f"about {yearly:,.0f}, assumed {assumed:,.10g}"
    return Watch("Applicants per year", now, threshold, "quarterly", action, not 1 / VOLUME < yearly / assumed < VOLUME)


def _groups(facts: PackFacts) -> list[Watch]:
    watches = []
    for result in facts.monitored:
        if not result.comparisons:
            continue
        lowest = min(result.comparisons, key=lambda one: one.ratio.value)
        watches.append(
            Watch(
                f"Acceptance by {' and '.join(result.attributes)}",
                f"{lowest.name}: {percent(lowest.ratio.value)} of {lowest.most}",
                f"ratio below {percent(FOUR_FIFTHS, 0)} beyond chance",
                "quarterly",
                "Look for proxies on the fairness page; consider a fairness limit.",
                lowest.four_fifths == "below",
            )
        )
    if not facts.monitored:
        action = "Send monitored attributes with decisions."
        watches.append(
            Watch("Acceptance by group", "not measured", "a group cannot be measured", "quarterly", action, None)
        )
    return watches


def _expired(facts: PackFacts) -> Watch:
    expired = facts.statuses.get("expired", 0)
    accepted = facts.accepted
    now = f"{expired:,} of {accepted:,} acceptances" if accepted else "no acceptance yet"
    threshold = f"more than {percent(EXPIRED, 0)} of acceptances"
    action = "Find out why outcomes are not reported."
    return Watch(
        "Outcomes that never came",
        now,
        threshold,
        "monthly",
        action,
        expired > EXPIRED * accepted if accepted else None,
    )


def _overrides(facts: PackFacts) -> Watch:
    now = f"{facts.overrides:,} of {facts.decided:,} decisions" if facts.decided else "no decision yet"
    threshold = f"more than {percent(OVERRIDES, 0)} of decisions"
    action = "Read the reasons; add what people know to the segments."
    return Watch(
        "Overrides by people",
        now,
        threshold,
        "monthly",
        action,
        facts.overrides > OVERRIDES * facts.decided if facts.decided else None,
    )


def _reviews(facts: PackFacts) -> list[Watch]:
    """Watch how often people decide referred cases differently."""
    found = facts.reviews
    if not found.referred:
        return []
    now = found.sentence if found.decided else f"{found.waiting:,} waiting, none decided yet"
    action = "Add what people know to the policy, or refer fewer cases."
    alarm = found.verdict == "policy" if found.decided else None
    return [Watch("Cases that people decide", now, "outcomes show that the policy was right", "monthly", action, alarm)]


def _stopped(facts: PackFacts) -> Watch:
    stopped = [segment.name for segment in facts.status.segments if segment.stopped]
    now = f"{len(stopped):,} of {len(facts.status.segments):,} segments"
    action = "Check that the evidence supports it; consider an exploration floor."
    return Watch("Stopped segments", now, "a segment that must be served stops", "weekly", action, None)


def _audit(facts: PackFacts) -> Watch:
    report = None if facts.audit is None else facts.audit.report
    now = (
        "no audit included"
        if report is None
        else "everything holds"
        if report.whole
        else counted(len(report.findings), "finding")
    )
    action = "Stop relying on the log until the finding is explained."
    return Watch(
        "Audit of the log",
        now,
        "any finding",
        "weekly, and after a restore",
        action,
        None if report is None else not report.whole,
    )


def _review(facts: PackFacts) -> Watch:
    record = next(one for one in facts.view.versions if one.version == facts.number)
    now = "not approved yet" if record.activated_at is None else f"approved {record.activated_at[:10]}"
    return Watch(
        "Full review", now, "12 months since the approval", "yearly", "Validate again and write a new pack.", None
    )
