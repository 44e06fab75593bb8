"""How many came, and how many of them were accepted: a bar for each stretch of time."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from lenience.dashboard.figures.series import time_ticks
from lenience.reports.canvas import Canvas, linear_ticks

Bar = tuple[int, int, int]  # the beginning of the stretch (microseconds), arrivals, accepted


def bars(stretches: Sequence[Bar], width: int) -> list[Markup]:
    """The bars, wide and narrow; the accepted below, the rejected on top of them."""
    return [_bars(stretches, width, narrow) for narrow in (False, True)]


def _bars(stretches: Sequence[Bar], width: int, narrow: bool) -> Markup:
    first, last = stretches[0][0], stretches[-1][0] + width
    most = max(arrivals for _, arrivals, _ in stretches)
    size = (440 if narrow else 960, 220)
    canvas = Canvas(*size, (first, last), (0.0, 1.05 * most), margins=(10, 26, 28, 62))
    canvas.vertical_axis([(value, f"{value:,.10g}") for value in linear_ticks(0, most, 4)], "decisions")
    canvas.horizontal_axis(time_ticks(first, last, width, 4 if narrow else 8), "")
    gap = 0.12 * width
    for start, arrivals, accepted in stretches:
        words = f"{arrivals:,} came, {accepted:,} were accepted"
        canvas.box(start + gap, start + width - gap, 0, accepted, "accepted", words)
        canvas.box(start + gap, start + width - gap, accepted, arrivals, "rejected", words)
    came, taken = sum(bar[1] for bar in stretches), sum(bar[2] for bar in stretches)
    description = f"{came:,} came in all, {taken:,} were accepted"
    return canvas.drawn("Decisions over time", description, "narrow" if narrow else "wide")
