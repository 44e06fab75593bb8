"""Draw the charts of a document as PNG images, for formats that cannot show SVG."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from lenience.core.errors import InputError
from lenience.reports.document import Chart, IntervalChart, LineChart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES = 6.3  # the width of the text on a page of A4
DPI = 150
DASHES = ("solid", (0, (6, 2)), (0, (1.5, 2)), (0, (7, 2, 1.5, 2)), (0, (11, 3)))
NAME = 26  # letters of a row's name


def chart_png(chart: Chart) -> bytes:
    """Return a chart as a PNG image.

    Parameters
    ----------
    chart : IntervalChart or LineChart
        The chart.

    Returns
    -------
    bytes
        The image.

    Raises
    ------
    InputError
        If matplotlib is not installed.

    Examples
    --------
    >>> from lenience.reports.charts import LineSeries
    >>> chart_png(LineChart([LineSeries("a", [0, 1], [0, 2])], "x", "y"))[1:4]
    b'PNG'
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise InputError.missing_package("figures in Word files", "matplotlib", "document") from error

    figure = _intervals(chart) if isinstance(chart, IntervalChart) else _lines(chart)
    FigureCanvasAgg(figure)
    target = BytesIO()
    figure.savefig(target, format="png", dpi=DPI)
    return target.getvalue()


def _intervals(chart: IntervalChart) -> Figure:
    from matplotlib.figure import Figure

    from lenience.plot.style import BLUE, GREY, INK, RED

    rows = list(chart.rows)
    figure = Figure(figsize=(INCHES, 1.0 + 0.24 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        colour = RED if row.kind == "reject" else BLUE
        axes.plot([row.lower, row.upper], [place, place], color=colour, alpha=0.35, linewidth=5, solid_capstyle="round")
        axes.plot([row.mean], [place], "o", color=colour, markersize=5)
        if row.mark is not None:
            axes.plot([row.mark, row.mark], [place - 0.32, place + 0.32], color=INK, linewidth=1.6)
    for value, label in chart.references:
        axes.axvline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1)
        axes.annotate(
            label,
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
            color=INK,
        )
    names = [row.name if len(row.name) <= NAME else f"{row.name[: NAME - 1]}…" for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(*chart.span)
    axes.set_xticks([value for value, _ in chart.ticks], [words for _, words in chart.ticks], fontsize=8)
    axes.set_xlabel(chart.x_label, fontsize=9)
    axes.grid(axis="x", color=GREY, alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def _lines(chart: LineChart) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    from lenience.plot.style import BLUE, GREEN, GREY, INK, PURPLE, RED

    colours = (BLUE, RED, GREEN, PURPLE, INK)
    figure = Figure(figsize=(INCHES, 3.2), layout="constrained")
    axes = figure.subplots()
    for i, line in enumerate(chart.series):
        style = DASHES[i % len(DASHES)]
        axes.plot(line.x, line.y, color=colours[i % len(colours)], linestyle=style, linewidth=1.7, label=line.label)
    if chart.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if chart.x_ticks:
        axes.set_xticks([value for value, _ in chart.x_ticks], [words for _, words in chart.x_ticks])
    axes.tick_params(labelsize=8)
    axes.set_xlabel(chart.x_label, fontsize=9)
    axes.set_ylabel(chart.y_label, fontsize=9)
    axes.grid(color=GREY, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=min(3, len(chart.series)), fontsize=8, frameon=False)
    return figure
