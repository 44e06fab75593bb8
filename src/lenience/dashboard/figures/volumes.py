"""The chart of decisions over time: a bar per time bucket, divided into accepted and rejected."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from lenience.dashboard.figures.series import time_ticks
from lenience.reports.canvas import Canvas, linear_ticks

Bar = tuple[int, int, int]  # start of the time bucket (microseconds), arrivals, accepted


def bars(buckets: Sequence[Bar], width: int) -> list[Markup]:
    """Draw the bars, wide and narrow: the accepted at the bottom, the rejected on top."""
    return [_bars(buckets, width, narrow) for narrow in (False, True)]


def _bars(buckets: Sequence[Bar], width: int, narrow: bool) -> Markup:
    first, last = buckets[0][0], buckets[-1][0] + width
    most = max(arrivals for _, arrivals, _ in buckets)
    size = (440 if narrow else 960, 220)
    canvas = Canvas(*size, (first, last), (0.0, 1.05 * most), margins=(10, 26, 28, 62))
    canvas.vertical_axis([(value, f"{value:,.10g}") for value in linear_ticks(0, most, 4)], "decisions")
    canvas.horizontal_axis(time_ticks(first, last, width, 4 if narrow else 8), "")
    gap = 0.12 * width
    for start, arrivals, accepted in buckets:
        tooltip = f"{arrivals:,} applicants, {accepted:,} accepted"
        canvas.box(start + gap, start + width - gap, 0, accepted, "accepted", tooltip)
        canvas.box(start + gap, start + width - gap, accepted, arrivals, "rejected", tooltip)
    arrivals, accepted = sum(bar[1] for bar in buckets), sum(bar[2] for bar in buckets)
    description = f"{arrivals:,} applicants in total, {accepted:,} accepted"
    return canvas.drawn("Decisions over time", description, "narrow" if narrow else "wide")
