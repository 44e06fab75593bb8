"""The charts of the reports: lines over a range, and intervals row by row."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from lenience.reports.canvas import Canvas, linear_ticks, log_ticks

SERIES_STYLES = 10  # classes series-0 to series-9 of the style sheet
LETTER = 7.2  # the width of a letter


class LineSeries(msgspec.Struct, frozen=True):
    """A line of a chart.

    Parameters
    ----------
    label : str
        The name in the legend.
    x, y : sequence of float
        The places of its points.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]


class IntervalRow(msgspec.Struct, frozen=True):
    """A row of an interval chart.

    Parameters
    ----------
    name : str
        The label at the left.
    mean, lower, upper : float
        The dot, and the ends of the bar.
    mark : float, optional
        Where to draw a tick, e.g. the minimum rate.
    kind : str
        A class for the row, e.g. "reject".
    tooltip : str
        The text shown when the pointer rests on the row.
    """

    name: str
    mean: float
    lower: float
    upper: float
    mark: float | None = None
    kind: str = ""
    tooltip: str = ""


def tick_label(number: float) -> str:
    """Format a number on an axis.

    Parameters
    ----------
    number : float
        The number.

    Returns
    -------
    str
        The number, with a minus sign if it is negative.

    Examples
    --------
    >>> tick_label(-5000.0), tick_label(0.25)
    ('−5,000', '0.25')
    """
    return f"{number:,.10g}".replace("-", "−")


def line_chart(
    series: Sequence[LineSeries],
    x_label: str,
    y_label: str,
    log_x: bool = False,
    x_ticks: Sequence[tuple[float, str]] = (),
) -> Markup:
    """Draw lines with a legend below them.

    Parameters
    ----------
    series : sequence of LineSeries
        The lines. Each has its own colour and dashes, up to ten.
    x_label, y_label : str
        The names of the axes.
    log_x : bool, default False
        Whether the horizontal axis is logarithmic.
    x_ticks : sequence of (float, str), optional
        The ticks of the horizontal axis with their labels; by default round numbers.

    Returns
    -------
    Markup
        The SVG.

    Examples
    --------
    >>> str(line_chart([LineSeries("a", [0, 1], [0, 2])], "x", "y"))[:4]
    '<svg'
    """
    xs = [x for line in series for x in line.x]
    ys = [y for line in series for y in line.y]
    left, right = min(xs), max(xs)
    low, high = min(0.0, *ys), max(ys)
    ticks = linear_ticks(low, high)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    # The axis ends on a tick, so that no line leaves the labelled range.
    if low < ticks[0] - 1e-9 * step:
        ticks.insert(0, ticks[0] - step)
    if high > ticks[-1] + 1e-9 * step:
        ticks.append(ticks[-1] + step)
    right = right if right > left else left + 1.0
    span = (ticks[0], ticks[-1]) if ticks[-1] > ticks[0] else (ticks[0], ticks[0] + 1.0)
    labels = [(tick, tick_label(tick)) for tick in ticks]
    room = max(56.0, 28.0 + LETTER * max(len(label) for _, label in labels))  # the axis title is left of the labels
    canvas = Canvas(480, 330, (left, right), span, log_x=log_x, margins=(14, 22, 46, room))
    canvas.vertical_axis(labels, y_label)
    round_ticks = (
        log_ticks(left, right, 6) if log_x else [(tick, tick_label(tick)) for tick in linear_ticks(left, right)]
    )
    canvas.horizontal_axis(list(x_ticks) or round_ticks, x_label)
    for i, line in enumerate(series):
        canvas.line(zip(line.x, line.y, strict=True), f"series-{i % SERIES_STYLES}", line.label)
    canvas.legend([(f"series-{i % SERIES_STYLES}", line.label) for i, line in enumerate(series)])
    return canvas.drawn(f"{y_label} by {x_label}", ", ".join(line.label for line in series))


def interval_chart(
    rows: Sequence[IntervalRow],
    ticks: Sequence[tuple[float, str]],
    span: tuple[float, float],
    references: Sequence[tuple[float, str]] = (),
    *,
    x_label: str = "",
    reference_kind: str = "reference",
    longest: int = 24,
    width: float = 720.0,
    row_height: float = 21.0,
    name: str = "",
    kind: str = "",
) -> Markup:
    """Draw a dot with an interval in each row, and dashed reference lines across all rows.

    Parameters
    ----------
    rows : sequence of IntervalRow
        The rows, from top to bottom.
    ticks : sequence of (float, str)
        The ticks of the horizontal axis with their labels.
    span : tuple of float
        The ends of the horizontal axis.
    references : sequence of (float, str), optional
        The reference lines with their labels.
    x_label : str
        The name of the horizontal axis.
    reference_kind : str
        The class of the reference lines.
    longest : int, default 24
        The number of letters after which a row's name is cut.
    width : float, default 720
        The width in view-box units.
    row_height : float, default 21
        The height of a row in view-box units.
    name : str
        The name that a screen reader reads out.
    kind : str
        The class of the figure, e.g. "wide" or "narrow".

    Returns
    -------
    Markup
        The SVG.
    """
    shown = [row.name if len(row.name) <= longest else row.name[: longest - 1] + "…" for row in rows]
    left = 22 + LETTER * max(map(len, shown), default=0)
    bottom = 44.0 if x_label else 28.0
    margins = (26.0, 22.0, bottom, left)
    canvas = Canvas(width, 26 + row_height * len(rows) + bottom, span, (0.0, float(len(rows))), margins=margins)
    top = float(len(rows))
    for tick, _ in ticks:
        canvas.line([(tick, 0.0), (tick, top)], "grid")
    canvas.horizontal_axis(ticks, x_label)
    for value, label in references:
        canvas.line([(value, 0.0), (value, top)], reference_kind, label)
        half = LETTER * len(label) / 2
        x = min(max(canvas.x(value), half), width - half)
        canvas.text(x, canvas.top - 8, label, "note", "middle")
    for i, row in enumerate(rows):
        y = top - i - 0.5
        canvas.text(canvas.left - 10, canvas.y(y) + 4, shown[i], row.kind, "end")
        canvas.line([(row.lower, y), (row.upper, y)], f"range {row.kind}", row.tooltip)
        if row.mark is not None:
            canvas.line([(row.mark, y - 0.32), (row.mark, y + 0.32)], "minimum", row.tooltip)
        canvas.dot((row.mean, y), row.kind, row.tooltip, 4.5)
    return canvas.drawn(name, "; ".join(row.tooltip or row.name for row in rows), kind)
