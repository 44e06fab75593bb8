"""A document of chapters that is written as an HTML page or as a Word file from the same content.

A chapter is a list of blocks: paragraphs, lists, facts, tables and charts. The blocks are plain data, so both formats
show the same numbers. :mod:`lenience.reports.document_html` and :mod:`lenience.reports.document_docx` write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from markupsafe import Markup

from lenience.reports.charts import IntervalRow, LineSeries, interval_chart, line_chart
from lenience.reports.views import ReportTable

WIDE, NARROW = 720.0, 400.0  # widths of a chart, for a page and for a phone


class Paragraph(msgspec.Struct, frozen=True):
    """A paragraph."""

    text: str


class Heading(msgspec.Struct, frozen=True):
    """A heading inside a chapter."""

    text: str


class Bullets(msgspec.Struct, frozen=True):
    """A list of points. Each is a short bold lead and a text."""

    points: Sequence[tuple[str, str]]


class Facts(msgspec.Struct, frozen=True):
    """Pairs of a name and a value, with a caption."""

    caption: str
    pairs: Sequence[tuple[str, str]]


class CaptionedTable(msgspec.Struct, frozen=True):
    """A table with a caption. Cells of ``prose`` are sentences: they are aligned to the left and may wrap."""

    caption: str
    table: ReportTable
    prose: bool = False


class Notice(msgspec.Struct, frozen=True):
    """What is missing or needs attention: a short bold lead and a text."""

    lead: str
    text: str


class IntervalChart(msgspec.Struct, frozen=True):
    """A dot with an interval in each row.

    Parameters
    ----------
    rows : sequence of IntervalRow
        The rows, from top to bottom.
    ticks : sequence of (float, str)
        The ticks of the horizontal axis.
    span : tuple of float
        The ends of the horizontal axis.
    x_label : str
        The name of the horizontal axis.
    references : sequence of (float, str)
        Dashed lines across all rows, with their labels.
    mark_label : str
        What the tick of a row means, if rows have one.
    """

    rows: Sequence[IntervalRow]
    ticks: Sequence[tuple[float, str]]
    span: tuple[float, float]
    x_label: str
    references: Sequence[tuple[float, str]] = ()
    mark_label: str = ""

    def svg(self, name: str) -> list[Markup]:
        """Draw it for a page and for a phone."""
        return [
            interval_chart(
                self.rows,
                self.ticks if width == WIDE else self.ticks[:: max(1, len(self.ticks) // 3)],
                self.span,
                self.references,
                x_label=self.x_label,
                longest=24 if width == WIDE else 14,
                width=width,
                name=name,
                kind=kind,
            )
            for width, kind in ((WIDE, "wide"), (NARROW, "narrow"))
        ]


class LineChart(msgspec.Struct, frozen=True):
    """Lines with a legend.

    Parameters
    ----------
    series : sequence of LineSeries
        The lines.
    x_label, y_label : str
        The names of the axes.
    log_x : bool, default False
        Whether the horizontal axis is logarithmic.
    x_ticks : sequence of (float, str)
        The ticks of the horizontal axis; by default round numbers.
    """

    series: Sequence[LineSeries]
    x_label: str
    y_label: str
    log_x: bool = False
    x_ticks: Sequence[tuple[float, str]] = ()

    def svg(self, name: str) -> list[Markup]:
        """Draw it. One drawing fits a page and a phone."""
        return [line_chart(self.series, self.x_label, self.y_label, self.log_x, self.x_ticks)]


Chart: TypeAlias = IntervalChart | LineChart


class Figure(msgspec.Struct, frozen=True):
    """A chart with its caption, which also says in words what the chart shows."""

    caption: str
    chart: Chart


Block: TypeAlias = Paragraph | Heading | Bullets | Facts | CaptionedTable | Notice | Figure


class Chapter(msgspec.Struct, frozen=True):
    """A chapter: its title, the question that it answers, and its blocks."""

    title: str
    question: str
    blocks: Sequence[Block]


class Document(msgspec.Struct, frozen=True):
    """A document.

    Parameters
    ----------
    title, subtitle : str
        The heading, and the line below it.
    summary : sequence of str
        The paragraphs before the first chapter.
    cards : sequence of (str, str)
        Key figures: a number and its label.
    chapters : sequence of Chapter
        The chapters.
    written : str
        When the document was generated, and from what.
    author : str
        Who or what wrote it, for the properties of a Word file.
    """

    title: str
    subtitle: str
    summary: Sequence[str]
    cards: Sequence[tuple[str, str]]
    chapters: Sequence[Chapter]
    written: str
    author: str = "lenience"
