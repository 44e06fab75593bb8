"""Small charts for a row of a table: a success rate with its interval, next to another rate."""

from __future__ import annotations

from markupsafe import Markup

from lenience.analysis.rejection_results import RejectedSegment, of_hundred
from lenience.core.belief import Belief
from lenience.core.formatting import percent
from lenience.models.protocol import Shrinkage
from lenience.reports.canvas import Canvas
from lenience.service.domain.calibration_bands import CalibrationBand
from lenience.service.domain.expected_outcomes import ExpectedOutcomes


def shrinkage_bar(row: Shrinkage) -> Markup:
    """Draw the prior as a thin line, the segment's own rate as a tick, and the belief as a bar with its mean."""
    canvas = Canvas(200, 26, (0, 1), (0, 1), margins=(1, 6, 1, 6))
    canvas.add(f'<line class="axis faint" x1="6" x2="194" y1="{canvas.y(0.5)}" y2="{canvas.y(0.5)}"/>')
    low, high = within(row.prior)
    canvas.box(
        low, high, 0.4, 0.6, "prior", f"Prior: {percent(row.prior.mean)} ({percent(low, 0)} – {percent(high, 0)})"
    )
    low, high = within(row.belief)
    text = f"{percent(row.belief.mean)}, between {percent(low, 0)} and {percent(high, 0)} with probability 90%"
    canvas.box(low, high, 0.18, 0.82, "belief", f"Estimate: {text}")
    if row.own_rate is not None:
        canvas.line([(row.own_rate, 0.0), (row.own_rate, 1.0)], "own", f"Own outcomes: {percent(row.own_rate)}")
    canvas.dot((row.belief.mean, 0.5), "chosen", f"Estimate: {text}", 3.5)
    return canvas.drawn(f"Estimate for {row.cell}", text, "bar")


def calibration_bar(band: CalibrationBand) -> Markup | None:
    """Draw the actual success rate of a band with its interval, and the expected rate as a tick; None if not known."""
    if band.interval is None or band.actual is None or band.expected is None:
        return None
    canvas = Canvas(200, 26, (0, 1), (0, 1), margins=(1, 6, 1, 6))
    canvas.add(f'<line class="axis faint" x1="6" x2="194" y1="{canvas.y(0.5)}" y2="{canvas.y(0.5)}"/>')
    low, high = percent(band.interval.lower, 0), percent(band.interval.upper, 0)
    text = f"{percent(band.actual)} succeeded, between {low} and {high} in the long run"
    canvas.box(band.interval.lower, band.interval.upper, 0.18, 0.82, "belief", text)
    canvas.line([(band.expected, 0.0), (band.expected, 1.0)], "own", f"Expected: {percent(band.expected)}")
    canvas.dot((band.actual, 0.5), "chosen", text, 3.5)
    title = f"Applicants expected to succeed with {percent(band.low, 0)} to {percent(band.high, 0)}"
    return canvas.drawn(title, f"{text}; {percent(band.expected)} expected", "bar")


def expected_bar(group: ExpectedOutcomes) -> Markup | None:
    """Draw the range of rates that chance explains, the expected rate as a tick and the observed rate as a dot."""
    if group.range is None or group.observed is None or group.expected is None:
        return None
    canvas = Canvas(200, 26, (0, 1), (0, 1), margins=(1, 6, 1, 6))
    canvas.add(f'<line class="axis faint" x1="6" x2="194" y1="{canvas.y(0.5)}" y2="{canvas.y(0.5)}"/>')
    canvas.box(group.range.lower, group.range.upper, 0.3, 0.7, "prior", "Explained by chance")
    canvas.line([(group.expected, 0.0), (group.expected, 1.0)], "own", f"Expected: {percent(group.expected)}")
    canvas.dot((group.observed, 0.5), "chosen", f"Observed: {percent(group.observed)}", 3.5)
    return canvas.drawn(f"Outcomes of {group.name}", group.sentence, "bar")


def rejection_bar(segment: RejectedSegment) -> Markup | None:
    """Draw the success rate of the rejected with its interval, and the break-even as a tick; None if not known."""
    if segment.break_even is None or segment.verdict == "unknown":
        return None
    canvas = Canvas(200, 26, (0, 1), (0, 1), margins=(1, 6, 1, 6))
    canvas.add(f'<line class="axis faint" x1="6" x2="194" y1="{canvas.y(0.5)}" y2="{canvas.y(0.5)}"/>')
    text = f"{of_hundred(segment.interval)} of 100 would have succeeded"
    canvas.box(segment.interval.lower, segment.interval.upper, 0.18, 0.82, "belief", text)
    even = f"Break-even: {percent(segment.break_even)}"
    canvas.line([(segment.break_even, 0.0), (segment.break_even, 1.0)], "own", even)
    canvas.dot((segment.rate, 0.5), "chosen", text, 3.5)
    return canvas.drawn(f"Rejected applicants of {segment.segment}", f"{text}; {even}", "bar")


def within(belief: Belief) -> tuple[float, float]:
    """Return the 90% interval of the success rate."""
    interval = belief.interval(0.9)
    return interval.lower, interval.upper
