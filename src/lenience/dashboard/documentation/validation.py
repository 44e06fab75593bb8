"""Chapter 4, validation: what is proved, operating characteristics, back-test, calibration, and the audit."""

from __future__ import annotations

from collections.abc import Sequence

from lenience.core.formatting import counted, even_percent, percent, plural
from lenience.dashboard.documentation.backtests import BacktestFacts
from lenience.dashboard.documentation.data import MOST, largest
from lenience.dashboard.documentation.facts import PackFacts
from lenience.reports.canvas import percent_ticks
from lenience.reports.charts import IntervalRow, LineSeries
from lenience.reports.document import (
    Block,
    Bullets,
    CaptionedTable,
    Chapter,
    Facts,
    Figure,
    Heading,
    IntervalChart,
    LineChart,
    Notice,
    Paragraph,
)
from lenience.reports.views import ReportTable, TableCell
from lenience.service.domain.answers import SegmentView
from lenience.service.domain.expected_outcomes import ExpectedOutcomes
from lenience.service.domain.late_offer_tables import LateOfferTable
from lenience.service.domain.offer_tables import PromptOfferTable
from lenience.service.domain.stopping_tables import StoppingTable

MOST_GROUPS = 24  # months or segments in a figure and its table
WORDS = {"ok": "as expected", "watch": "watch", "act": "act", "no_data": "too few"}
VERDICTS = {"right": "right", "wrong": "wrong", "open": "not clear", "unknown": "no evidence"}
STATEMENTS = 6  # different statements of the solver that are quoted


def validation_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    blocks = [
        *_certificate(facts),
        *_characteristics(facts),
        *_backtest(facts),
        *_calibration(facts),
        *_rejections(facts),
    ]
    blocks += [*_shadows(facts), *_rollout(facts), *_reviews(facts), *_log(facts)]
    return Chapter("Validation and back-test", "Is the model sound, and did it do what it promised?", blocks)


def _certificate(facts: PackFacts) -> list[Block]:
    segments = facts.view.segments
    if facts.specification.feature_spec is not None:
        return [
            Heading("What is proved"),
            Paragraph(
                "Decisions by features are computed for each applicant from the model's estimate and are not proved "
                "optimal. "
                "The audit recomputes every one of them."
            ),
        ]
    text = (
        f"{proof_sentence(facts)} The proofs hold under the assumptions of chapter 3 and include floating-point error."
    )
    statements: dict[str, list[str]] = {}
    for segment in segments:
        statements.setdefault(_statement(facts, segment), []).append(segment.name)
    quoted = list(statements.items())[:STATEMENTS]
    points = [(f"{_named(names)}.", statement) for statement, names in quoted]
    return [Heading("What is proved"), Paragraph(text), Bullets(points)]


def proof_sentence(facts: PackFacts) -> str:
    """Say in how many segments every decision is proved, and what the others are."""
    rules, segments = facts.status.version.rules, facts.view.segments
    proved = [segment.name for segment in segments if segment.proved]
    ties = [
        segment.name
        for segment in segments
        if not segment.proved and isinstance(rules[segment.name].table, StoppingTable | PromptOfferTable)
    ]
    estimated = len(segments) - len(proved) - len(ties)
    if len(proved) == len(segments):
        return f"Every decision is proved optimal, in {counted(len(segments), 'segment')}."
    parts = [f"Every decision is proved optimal in {len(proved):,} of {counted(len(segments), 'segment')}."]
    if ties:
        parts.append(f"In {len(ties):,} it is all but a few, where both choices are nearly as good.")
    if estimated:
        parts.append(f"In {estimated:,} the value is known to within bounds, and limits are estimates.")
    return " ".join(parts)


def _statement(facts: PackFacts, segment: SegmentView) -> str:
    """Return what is proved about a segment, in money if amounts are known."""
    table = facts.status.version.rules[segment.name].table
    if isinstance(table, PromptOfferTable):
        return table.body.certificate.describe(table.money)
    if isinstance(table, LateOfferTable):
        return f"The value at the start is {table.money.format_bounds(table.body.value)}. Limits are estimates."
    return segment.certificate


def _characteristics(facts: PackFacts) -> list[Block]:
    blocks: list[Block] = [Heading("Operating characteristics")]
    if facts.curves:
        evens = ", ".join(f"{curve.segment} {percent(curve.cost)}" for curve in facts.curves)
        blocks += [
            Paragraph(
                "How often would bad luck stop a good segment for good, and how soon is a bad one stopped? The figure "
                "shows "
                "the exact probability that a segment is stopped for good, by its true success rate, from the start "
                "of the "
                "version and over its first 2,000 acceptances."
            ),
            Figure(
                f"Probability that a segment is stopped for good, by its true success rate. Right of its break-even "
                f"({evens}) "
                "a stop is a mistake; left of it a stop is right.",
                LineChart(
                    [
                        LineSeries(
                            curve.segment,
                            [100 * rate for rate in curve.rates],
                            [100 * stop for stop in curve.stops],
                        )
                        for curve in facts.curves
                    ],
                    "True success rate (%)",
                    "Stopped for good (%)",
                ),
            ),
        ]
        if any(curve.late for curve in facts.curves):
            blocks.append(Paragraph("Outcomes arrive late here, so these probabilities are upper bounds."))
    known = [segment for segment in largest(facts) if segment.name in facts.prospects]
    if known and facts.specification.feature_spec is None:
        rows: list[list[str | TableCell]] = []
        for segment in known:
            ahead = facts.prospects[segment.name]
            money = facts.status.money
            worth = "not computed" if ahead.value is None else money.format(ahead.value.midpoint)
            mistake = percent(ahead.deserving * ahead.shut_out)
            rows.append([segment.name, percent(ahead.deserving), mistake, worth, segment.next])
        header = ("Segment", "Above break-even", "Mistaken stop", "Expected value ahead", "Next applicant")
        note = (
            "Above break-even: the probability that the segment's true rate is above it. Mistaken stop: the "
            "probability "
            "that it is, and that the policy has stopped the segment for good or will do so."
        )
        blocks.append(
            CaptionedTable("Prospects of each segment, from what is known now", ReportTable(header, rows, note))
        )
    return blocks if len(blocks) > 1 else []


def _backtest(facts: PackFacts) -> list[Block]:
    tested = facts.backtest
    heading = Heading("Back-test")
    if tested is None:
        text = (
            "To include one, write the pack with the command lenience document and its option --data. Use the file "
            "that the version was fitted to, or a newer one."
        )
        return [heading, Notice("No back-test is included.", text)]
    if tested.result is None:
        return [heading, Notice(f"The back-test on {tested.file} was not possible.", tested.trouble)]
    return [heading, *_tested(facts, tested)]


def _tested(facts: PackFacts, tested: BacktestFacts) -> list[Block]:
    result, money = tested.result, facts.status.money
    assert result is not None
    change = result.new_value - result.past_value
    verb = "more" if change >= 0 else "less"
    rows: list[list[str | TableCell]] = [
        [
            row.name,
            f"{row.past.accepted:,}",
            f"{row.new.accepted:,}",
            f"{row.past.failures:,}",
            f"{row.new.failures:,}",
            money.format(row.past.earned),
            money.format(row.new.earned),
        ]
        for row in sorted(result.segments, key=lambda row: -row.past.accepted)[:MOST]
    ]
    total_past, total_new = result.past, result.new
    rows.append(
        [
            TableCell("All", "strong"),
            f"{total_past.accepted:,}",
            f"{total_new.accepted:,}",
            f"{total_past.failures:,}",
            f"{total_new.failures:,}",
            money.format(result.past_value),
            money.format(result.new_value),
        ]
    )
    header = (
        "Segment",
        "Accepted then",
        "Accepted by policy",
        "Failures then",
        "Failures by policy",
        "Earned then",
        "Earned by policy",
    )
    missed = (total_past.successes - total_new.successes, total_past.failures - total_new.failures)
    blocks: list[Block] = [
        Paragraph(_how_tested(tested)),
        Paragraph(
            f"The policy would have accepted {total_new.accepted:,} of the {total_past.accepted:,} applicants, and "
            f"earned "
            f"{money.format(abs(change))} {verb} than the past decisions. It would have avoided {missed[1]:,} "
            f"failures and "
            f"missed {missed[0]:,} successes."
        ),
        Notice(
            "What this cannot show.",
            f"{counted(tested.rejected, 'applicant')} of that time {plural(tested.rejected, 'was', 'were')} rejected "
            f"in the "
            "past. Their outcomes are unknown, so the back-test cannot say whom else the policy would have accepted.",
        ),
        Figure(
            "What the applicants earned in total as the back-test proceeds: as decided in the past, and by the policy.",
            LineChart(
                [
                    LineSeries("past decisions", [p[0] for p in result.course], [p[1] for p in result.course]),
                    LineSeries("the policy", [p[0] for p in result.course], [p[2] for p in result.course]),
                ],
                "Applicants",
                f"Earned ({money.currency})" if money.currency else "Earned",
            ),
        ),
        CaptionedTable(f"Back-test on {tested.file} (SHA-256 {tested.digest[:16]}…)", ReportTable(header, rows)),
    ]
    if result.left_out:
        blocks.append(Paragraph(f"{counted(result.left_out, 'segment')} took too long to solve and are left out."))
    return blocks


def _how_tested(tested: BacktestFacts) -> str:
    """Say which applicants were decided again, and from what."""
    assert tested.result is not None
    same = "the file that the version was fitted to" if tested.same_file else "another file than the version's own"
    number = f"{tested.result.past.accepted:,} past applicants since {tested.since} with a known outcome"
    text = f"{number} were decided again, from {tested.file}, {same}."
    if tested.maturity:
        text += f" Younger applicants are left out, because outcomes are final only after {tested.maturity:,.0f} days."
    if tested.cold:
        return f"{text} No outcome was final when the later half began, so the policy starts without evidence."
    return f"{text} The policy starts from the {tested.known_before:,} outcomes that were known by then."


def _calibration(facts: PackFacts) -> list[Block]:
    heading = Heading("Calibration: expected and observed success")
    bands = [band for band in facts.report.bands if band.interval is not None]
    if not bands:
        text = (
            "Expected and observed success rates are compared here once outcomes of the version's own decisions arrive."
        )
        return [heading, Notice("No outcome of its own decisions is known yet.", text)]
    rows: list[list[str | TableCell]] = [
        [
            f"{percent(band.low, 0)} to {percent(band.high, 0)}",
            f"{band.applicants:,}",
            f"{band.outcomes:,}",
            "–" if band.expected is None else even_percent(band.expected),
            "–" if band.actual is None else even_percent(band.actual),
            "–" if band.interval is None else f"{percent(band.interval.lower, 0)} to {percent(band.interval.upper, 0)}",
            band.remark,
        ]
        for band in facts.report.bands
    ]
    header = ("Expected success", "Applicants", "Outcomes", "Mean expected", "Observed", "Interval", "Result")
    chart_rows = [
        IntervalRow(
            f"{percent(band.low, 0)} to {percent(band.high, 0)}",
            band.actual or 0.0,
            band.interval.lower if band.interval else 0.0,
            band.interval.upper if band.interval else 1.0,
            band.expected,
            "" if band.agrees else "reject",
        )
        for band in bands
    ]
    blocks: list[Block] = [
        heading,
        Paragraph(f"{facts.report.calibration} The latest {counted(facts.report.decisions, 'decision')} are compared."),
        Figure(
            "Observed success rate by band of expected success, with intervals that hold together with a probability "
            "of 90%. "
            "The tick is the mean expected rate.",
            IntervalChart(chart_rows, percent_ticks(0, 1), (0.0, 1.0), "Success rate", mark_label="expected"),
        ),
        CaptionedTable("Calibration by band of expected success", ReportTable(header, rows)),
    ]
    return blocks + _by_period(facts)


def _by_period(facts: PackFacts) -> list[Block]:
    """Compare expected with observed outcomes by the month of the decision, and by segment."""
    blocks: list[Block] = [Paragraph(facts.monitoring.outcomes_sentence)]
    part = "segment" if facts.specification.feature_spec is None else "expected rate"
    for name, groups in (("month of the decision", facts.monitoring.by_month), (part, facts.monitoring.by_segment)):
        known = [one for one in groups if one.observed is not None and one.range is not None][-MOST_GROUPS:]
        if len(known) < 2:
            continue
        rows: list[list[str | TableCell]] = [
            [
                one.name,
                f"{one.outcomes:,}",
                f"{one.unknown:,}",
                even_percent(one.expected or 0.0),
                even_percent(one.observed or 0.0),
                "–" if one.range is None else f"{percent(one.range.lower, 0)} to {percent(one.range.upper, 0)}",
                WORDS[one.state],
            ]
            for one in known
        ]
        header = (name.capitalize(), "Outcomes", "Not known yet", "Expected", "Observed", "Range of chance", "Result")
        blocks += [
            Figure(
                f"Observed success rate of acceptances by {name} (dot). The bar is where chance alone leaves it if the "
                "version's expectation is right; the tick is the expected rate.",
                _outcome_chart(known),
            ),
            CaptionedTable(f"Expected and observed success by {name}", ReportTable(header, rows)),
        ]
    return blocks


def _outcome_chart(groups: Sequence[ExpectedOutcomes]) -> IntervalChart:
    rows = [
        IntervalRow(
            one.name,
            one.observed or 0.0,
            one.range.lower if one.range else 0.0,
            one.range.upper if one.range else 1.0,
            one.expected,
            "" if one.state == "ok" else "reject",
        )
        for one in groups
    ]
    low = min(min(row.lower, row.mean) for row in rows)
    span = (max(0.0, int(low * 10) / 10), 1.0)
    return IntervalChart(rows, percent_ticks(*span), span, "Success rate", mark_label="expected")


def _rejections(facts: PackFacts) -> list[Block]:
    """Say how many of the rejected would have succeeded, as far as that can be known."""
    found = facts.rejections
    if found is None or not found.segments:
        return []
    money = facts.status.money
    rows: list[list[str | TableCell]] = [
        [
            one.segment,
            f"{one.rejected:,}",
            "–"
            if one.verdict == "unknown"
            else f"{percent(one.interval.lower, 0)} to {percent(one.interval.upper, 0)}",
            "–" if one.break_even is None else percent(one.break_even),
            VERDICTS[one.verdict],
            "–" if one.verdict == "unknown" else money.format(-one.profit),
        ]
        for one in found.segments
        if one.rejected
    ]
    header = ("Segment", "Rejected", "Would have succeeded", "Break-even", "Rejecting was", "Saved by rejecting")
    return [
        Heading("How good are the rejections?"),
        Paragraph(found.statement),
        CaptionedTable("Rejected applicants of the latest decisions", ReportTable(header, rows)),
        Bullets([("Caution.", caution) for caution in found.cautions]),
    ]


def _shadows(facts: PackFacts) -> list[Block]:
    if not facts.shadows:
        return []
    rows: list[list[str | TableCell]] = [
        [
            f"Version {one.version}",
            f"{one.decisions:,}",
            f"{one.only_active:,}",
            f"{one.only_shadow:,}",
            one.verdict.replace("_", " "),
        ]
        for one in facts.shadows
    ]
    header = ("Shadow version", "Decisions of both", "Only active accepts", "Only shadow accepts", "Verdict")
    return [
        Heading("Challengers"),
        CaptionedTable("Shadow versions compared with the active one", ReportTable(header, rows)),
    ]


def _rollout(facts: PackFacts) -> list[Block]:
    one = facts.rollout
    if one is None:
        return []
    text = f"Version {one.version} decides {one.percent:g}% of applicants since {one.since[:10]}. {one.sentence}"
    return [Heading("Rollout"), Paragraph(text)]


def _reviews(facts: PackFacts) -> list[Block]:
    """Say how people decided the cases that the policy referred to them."""
    found = facts.reviews
    if not found.referred:
        return []
    cases = f"{counted(found.referred, 'case')} referred to people, {found.decided:,} decided by them"
    text = f"{cases}, {found.waiting:,} waiting. {found.sentence} {found.unknown}"
    return [Heading("Cases that people decide"), Paragraph(text.strip())]


def _log(facts: PackFacts) -> list[Block]:
    heading = Heading("Integrity of the log")
    if not facts.served:
        return [heading, Notice("There is no log yet.", "It starts when a service uses the policy.")]
    pairs: list[tuple[str, str]] = []
    if facts.audit is None or facts.audit.report is None:
        pairs.append(("Audit", "no result is included; run lenience audit"))
    else:
        report = facts.audit.report
        found = "everything holds" if report.whole else counted(len(report.findings), "finding")
        pairs += [
            ("Audit", f"{found} ({facts.audit.at[:16].replace('T', ' ')} UTC)"),
            ("Recomputed", f"{counted(report.decisions, 'decision')}, {counted(report.events, 'event')}"),
            ("Digest of all chains", report.digest),
        ]
        pairs += [("Finding", f"{finding.where}: {finding.what}") for finding in report.findings[:10]]
    if facts.checkpoint is None:
        pairs.append(("Signed checkpoint", "none"))
    else:
        pairs += [
            (
                "Signed checkpoint",
                f"{facts.checkpoint.size:,} events, {facts.checkpoint.at[:16].replace('T', ' ')} UTC",
            ),
            ("Text of the checkpoint", " ".join(facts.checkpoint.note.split())),
        ]
    return [
        heading,
        Paragraph(
            "The audit recomputes every estimate, decision and count from the log, and checks the hash chains. A "
            "signed checkpoint that is kept elsewhere proves later that the log was not rewritten."
        ),
        Facts("Audit and checkpoint", pairs),
    ]


def _named(names: list[str], most: int = 5) -> str:
    """Name a few of many, and say how many others there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} others"
