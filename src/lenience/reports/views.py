"""What a report shows, as plain data for the templates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from markupsafe import Markup


class TableCell(msgspec.Struct, frozen=True):
    """A table cell that is more than text.

    Parameters
    ----------
    text : str
        The text of the cell.
    kind : {"", "accept", "reject", "strong"}
        How to colour or weight the text.
    bar : float, optional
        A share from 0 to 1 to draw as a bar behind the text.
    note : str
        A second line in small type.
    note_kind : {"soft", "reject"}
        How to colour the second line.
    """

    text: str
    kind: str = ""
    bar: float | None = None
    note: str = ""
    note_kind: str = "soft"


class ReportTable(msgspec.Struct, frozen=True):
    """A table: one heading per column, then the rows.

    Parameters
    ----------
    header : sequence of str
        The column headings.
    rows : sequence of sequences of str or TableCell
        The cells, row by row.
    note : str
        A line below the table, e.g. how many rows are left out.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | TableCell]]
    note: str = ""


class Section(msgspec.Struct, frozen=True):
    """A part of a report: a heading, paragraphs, figures and a table.

    Parameters
    ----------
    title : str
        The heading.
    paragraphs : sequence of str
        The text.
    figures : sequence of Markup
        SVG drawings, e.g. a wide and a narrow one.
    table : ReportTable, optional
        The table below them.
    side_by_side : bool
        Whether the figures are different ones, side by side where there is room.
    """

    title: str
    paragraphs: Sequence[str] = ()
    figures: Sequence[Markup] = ()
    table: ReportTable | None = None
    side_by_side: bool = False


def decision_cell(text: str, accept: bool | None) -> TableCell:
    """Make a cell for a decision, in the colour of acceptance or rejection.

    >>> decision_cell("wait", False).kind
    'reject'
    """
    return TableCell(text, "accept" if accept else "reject")
