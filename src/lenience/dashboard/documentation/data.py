"""Chapter 2, data and its selection: the file, rows used and left out, what values mean, and evidence by segment."""

from __future__ import annotations

from lenience.core.data_origin import DataOrigin, PolicyOrigin
from lenience.core.formatting import count, counted, even_percent, percent
from lenience.dashboard.documentation.facts import PackFacts
from lenience.dashboard.read_models.policy_status import SegmentStatus
from lenience.reports.canvas import percent_ticks
from lenience.reports.charts import IntervalRow
from lenience.reports.document import (
    Block,
    CaptionedTable,
    Chapter,
    Facts,
    Figure,
    Heading,
    IntervalChart,
    Notice,
    Paragraph,
)
from lenience.reports.views import ReportTable, TableCell
from lenience.service.domain.answers import ImportView

MOST = 40  # segments in a table or figure, the largest ones
NO_ORIGIN = (
    "Nothing is recorded about the data of this version. It was written by hand, or an earlier release made it. Policy "
    "files of lenience fit and of the guided form record their file, its digest, the rows and the value mapping."
)


def data_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    origin = facts.specification.origin or None
    blocks: list[Block] = []
    if origin is None:
        blocks.append(Notice("No origin is recorded.", NO_ORIGIN))
    else:
        blocks += origin_blocks(origin)
    if facts.view.imports:
        blocks += _imports(facts)
    blocks += _evidence(facts)
    question = "Which data was used, which was left out and why, and does it represent the applicants to come?"
    return Chapter("Data and its selection", question, blocks)


def origin_blocks(origin: PolicyOrigin) -> list[Block]:
    """Describe the file that a version was fitted to."""
    total = origin.rows + origin.left_out
    span = f" Decisions are from {origin.first} to {origin.last}." if origin.first else " The decisions have no dates."
    known = percent(origin.labels / origin.accepted) if origin.accepted else "0%"
    blocks: list[Block] = [
        Paragraph(
            f"The version was fitted to {origin.file}: {origin.rows:,} of {counted(total, 'row')} were used, and "
            f"{origin.left_out:,} left out.{span}"
        ),
        Facts(
            "Origin of the data",
            [
                ("File", origin.file),
                ("SHA-256 of the file", origin.digest or "none: the rows did not come from a file"),
                ("Rows used", f"{origin.rows:,}"),
                ("Rows left out", _left_out(origin)),
                ("First and last decision", f"{origin.first} to {origin.last}" if origin.first else "no dates"),
                ("Model", origin.model or "none"),
                ("Read with", origin.software),
            ],
        ),
        Facts("Columns and value mapping", mapping_pairs(origin)),
        Heading("Selection"),
        Paragraph(
            f"{origin.accepted:,} of the {origin.rows:,} rows ({_share(origin.accepted, origin.rows)}) are past "
            f"acceptances. Of these, {origin.labels:,} ({known}) have a known outcome, {origin.successes:,} of them a "
            f"success, and {origin.pending:,} are pending. Nobody knows the outcomes of those who were rejected."
        ),
    ]
    if origin.accepted < origin.rows:
        blocks.append(
            Notice(
                "Selective labels.",
                "Outcomes are known only for applicants whom an earlier rule accepted. Within a segment they "
                "represent all "
                "applicants only if that rule looked at nothing else that matters for success. The policy corrects "
                "this "
                "over time, because it also accepts applicants in order to learn.",
            )
        )
    return blocks


def mapping_pairs(origin: DataOrigin) -> list[tuple[str, str]]:
    """Return the columns, words and settings of an origin, with readable names."""
    columns = [(f"Column: {COLUMNS.get(name, _readable(name))}", column) for name, column in origin.columns.items()]
    words = [(f"Values that mean {name}", origin.settings[name]) for name in WORDS if name in origin.settings]
    others = [
        (SETTINGS.get(name, _readable(name)), value) for name, value in origin.settings.items() if name not in WORDS
    ]
    return columns + words + others


WORDS = ("success", "failure", "pending", "accepted", "rejected", "late", "current", "expired")
COLUMNS = {
    "segment": "segment",
    "accepted": "decision",
    "outcome": "outcome",
    "time": "date of the decision",
    "outcome_time": "date of the outcome",
}
SETTINGS = {
    "as_of": "Counted as of",
    "pending_count_by_age": "Open cases count by their age",
    "maturity_days": "Days until an outcome is final",
    "half_life_days": "Days after which an outcome counts half",
}


def _readable(name: str) -> str:
    text = name.replace("_", " ")
    return f"{text[:1].upper()}{text[1:]}"


def _left_out(origin: DataOrigin) -> str:
    if not origin.left_out:
        return "none"
    reasons = "; ".join(f"{rows:,}: {why}" for why, rows in origin.why_left_out.items())
    return f"{origin.left_out:,} ({reasons})" if reasons else f"{origin.left_out:,}"


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "0%"


def _imports(facts: PackFacts) -> list[Block]:
    """Describe the portfolios that were imported into the policy."""
    rows = [_import_row(facts, one) for one in facts.view.imports]
    header = ("File", "Imported by", "Decisions", "Successes", "Failures", "Open", "Rows left out")
    return [
        Heading("Imported portfolios"),
        Paragraph("Past decisions that no version of the policy made. Their outcomes count as evidence."),
        CaptionedTable("Imported portfolios", ReportTable(header, rows)),
    ]


def _import_row(facts: PackFacts, one: ImportView) -> list[str | TableCell]:
    counts = (one.recorded, one.successes, one.failures, one.pending, one.left_out)
    digest = TableCell(one.file, note=f"SHA-256 {one.digest[:16]}…, {one.first} to {one.last}")
    return [
        digest,
        TableCell(facts.name(one.imported_by), note=one.imported_at[:10]),
        *(f"{each:,}" for each in counts),
    ]


def _evidence(facts: PackFacts) -> list[Block]:
    """Describe what is known of each segment now."""
    segments = largest(facts)
    if facts.status.version.feature_model is not None:
        return _features(facts)
    past = facts.specification.past_outcomes_by_segment(segment.name for segment in segments)
    rows: list[list[str | TableCell]] = []
    for segment in segments:
        counts, low, high = segment.counts, segment.interval.lower, segment.interval.upper
        rows.append(
            [
                segment.name,
                even_percent(segment.rule.share),
                count(past[segment.name]),
                f"{counts.successes + counts.failures:,}",
                even_percent(segment.belief.mean),
                f"{percent(low, 0)} to {percent(high, 0)}",
                even_percent(segment.cost),
            ]
        )
    offers = facts.specification.objective.offers
    even = "Break-even" if offers is None or offers.single else "Lowest break-even"
    header = ("Segment", "Share", "Past outcomes", "New outcomes", "Expected success", "90% interval", even)
    more = len(facts.status.segments) - len(segments)
    note = f"The {MOST} largest of {len(facts.status.segments):,} segments." if more else ""
    return [
        Heading("Evidence by segment"),
        Paragraph(
            "Each segment has a share of the applicants, an expected success rate and an interval that holds the true "
            "rate with a probability of 90%. Past outcomes came with the version; new ones arrived since."
        ),
        Figure(
            "Expected success rate of each segment with its 90% interval. The tick is the break-even: below it an "
            "acceptance costs more than it earns.",
            rates_chart(segments),
        ),
        CaptionedTable("Evidence by segment", ReportTable(header, rows, note)),
    ]


def _features(facts: PackFacts) -> list[Block]:
    """Describe the features of a version that decides by them."""
    model = facts.status.version.feature_model
    assert model is not None
    effects = {effect.feature: effect for effect in facts.report.effects}
    rows: list[list[str | TableCell]] = []
    for block in model.encoding.blocks:
        column, effect = block.column, effects.get(block.column.name)
        span = ", ".join(column.values[:6]) if column.values else f"{_end(column.minimum)} to {_end(column.maximum)}"
        moved = "no decision yet" if effect is None else f"{100 * effect.points:.1f} points"
        rows.append([column.name, column.type, column.unit or "–", span, moved])
    header = ("Feature", "Type", "Unit", "Allowed", "Moves the expected rate by")
    return [
        Heading("Features"),
        Paragraph(f"The version decides each applicant by these features. It started from {_start(facts)}."),
        CaptionedTable("Features", ReportTable(header, rows)),
    ]


def _start(facts: PackFacts) -> str:
    origin = facts.specification.origin or None
    return "no recorded file" if origin is None else f"the {counted(origin.labels, 'known outcome')} of {origin.file}"


def _end(value: float | None) -> str:
    return "any" if value is None else f"{value:g}"


def largest(facts: PackFacts, most: int = MOST) -> list[SegmentStatus]:
    """Return the segments with the largest shares."""
    return sorted(facts.status.segments, key=lambda segment: -segment.rule.share)[:most]


def rates_chart(segments: list[SegmentStatus]) -> IntervalChart:
    """Draw the expected success rate of each segment with its interval, and its break-even as a tick."""
    rows = [
        IntervalRow(
            segment.name,
            segment.belief.mean,
            segment.interval.lower,
            segment.interval.upper,
            segment.cost,
            "reject" if segment.stopped else "",
            f"{segment.name}: {percent(segment.belief.mean)}, break-even {percent(segment.cost)}",
        )
        for segment in segments
    ]
    low = min(min(row.lower for row in rows), min(segment.cost for segment in segments))
    span = (max(0.0, int(low * 10) / 10), 1.0)
    return IntervalChart(rows, percent_ticks(*span), span, "Success rate", mark_label="break-even")
