"""The chart of earnings over the past applicants, actual and with the new policy."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from lenience.core.formatting import amount
from lenience.reports.canvas import Canvas, linear_ticks

Course = Sequence[tuple[int, float, float]]


def course_picture(course: Course, scale: float = 1.0, *, narrow: bool = False) -> Markup:
    """Draw two lines over the applicants in order: actual earnings, and those of the new policy."""
    last = max(course[-1][0], 1)
    heights = [scale * value for _, actual, new in course for value in (actual, new)]
    low, high = min(*heights, 0.0), max(*heights, 0.0)
    room = 0.08 * ((high - low) or 1.0)
    canvas = Canvas(
        *((440, 300) if narrow else (960, 320)), (0, last), (low - room, high + room), margins=(16, 24, 44, 74)
    )
    canvas.vertical_axis([(tick, amount(tick)) for tick in linear_ticks(low - room, high + room)], "earned")
    ticks = linear_ticks(0, last, 5 if narrow else 9)
    canvas.horizontal_axis([(tick, amount(tick)) for tick in ticks], "applicants with a known outcome, in order")
    canvas.rule(0, "even")
    _, actual, new = course[-1]
    canvas.line([(at, scale * value) for at, value, _ in course], "past", "Actual")
    canvas.line([(at, scale * value) for at, _, value in course], "way chosen", "New policy")
    canvas.dot((last, scale * actual), "other", "Actual")
    canvas.dot((last, scale * new), "chosen accept", "New policy", 5)
    words = f"Actual {scale * actual:,.1f}, with the new policy {scale * new:,.1f}"
    return canvas.drawn("Earned over time", words, "narrow" if narrow else "wide")
