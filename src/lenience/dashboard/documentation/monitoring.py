"""Chapter 7, monitoring plan: what to watch, how often, at which threshold to act, and what it is now."""

from __future__ import annotations

from typing import NamedTuple

from lenience.analysis.monitored_groups import FOUR_FIFTHS
from lenience.core.formatting import counted, percent
from lenience.dashboard.documentation.facts import PackFacts
from lenience.reports.document import Block, CaptionedTable, Chapter, Paragraph
from lenience.reports.views import ReportTable, TableCell

SOME_DRIFT, MUCH_DRIFT = 0.1, 0.25  # population stability index
SHARE_POINTS = 0.05  # by which a segment's share may differ
ENOUGH = 200  # decisions before shares are compared
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
            "The thresholds are defaults. The owner of the model may set others. The dashboard, GET "
            "/v1/policies/{name}/report "
            "and the metrics of the service show the same numbers continuously."
        ),
        Paragraph(text),
        CaptionedTable("Monitoring plan", ReportTable(header, rows), prose=True),
    ]
    return Chapter("Monitoring plan", "What is watched after approval, and when must somebody act?", blocks)


def watch_list(facts: PackFacts) -> list[Watch]:
    """Return everything to watch, with its value now."""
    watches = [_calibration(facts), _shares(facts), _volume(facts), *_drift(facts), *_groups(facts)]
    watches += [_expired(facts), _overrides(facts), _stopped(facts), _audit(facts), _review(facts)]
    return watches


def _calibration(facts: PackFacts) -> Watch:
    known = [band for band in facts.report.bands if band.outcomes]
    wrong = sum(not band.agrees for band in known)
    now = f"{wrong} of {len(known)} bands differ" if known else "no outcome yet"
    action = "Find the cause, refit on newer data, and compare the new version in shadow."
    return Watch(
        "Calibration",
        now,
        "a band's interval excludes the expected rate",
        "monthly",
        action,
        wrong > 0 if known else None,
    )


def _shares(facts: PackFacts) -> Watch:
    """Compare the shares of the segments with those that the version assumes."""
    own = {segment.name: segment.counts.arrivals - segment.imported for segment in facts.status.segments}
    total = sum(own.values())
    threshold = f"a share differs by {100 * SHARE_POINTS:.0f} points"
    action = "Create a version with the new shares."
    if total < ENOUGH or len(own) < 2:
        return Watch("Shares of segments", f"fewer than {ENOUGH} decisions", threshold, "quarterly", action, None)
    moved = {segment.name: own[segment.name] / total - segment.rule.share for segment in facts.status.segments}
    name = max(moved, key=lambda each: abs(moved[each]))
    now = f"{name}: {percent(own[name] / total)}, assumed {percent(own[name] / total - moved[name])}"
    return Watch("Shares of segments", now, threshold, "quarterly", action, abs(moved[name]) > SHARE_POINTS)


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


def _drift(facts: PackFacts) -> list[Watch]:
    """Watch the features and the offers of applicants."""
    watches = [
        Watch(
            f"Drift of {one.feature}",
            f"index {one.index:.2f} ({one.change})",
            f"index above {SOME_DRIFT:g} (look) or {MUCH_DRIFT:g} (act)",
            "monthly",
            "Compare calibration for the new values, and refit.",
            one.change == "much",
        )
        for one in facts.report.drift[:8]
    ]
    if facts.specification.objective.offers is not None:
        drifting = [text for text in facts.view.warnings if "offers" in text]
        now = counted(len(drifting), "warning") if facts.decided else "no decision yet"
        action = "Create a version with the offers that arrive now."
        watches.append(
            Watch(
                "Amounts and prices",
                now,
                "a segment's offers changed",
                "monthly",
                action,
                bool(drifting) if facts.decided else None,
            )
        )
    return watches


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
    accepted = facts.decided - facts.statuses.get("rejected", 0) - facts.statuses.get("waiting", 0)
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
