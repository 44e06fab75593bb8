"""Write a document as a Word file (DOCX), with real headings, table headers, captions and descriptions of figures."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from lenience.core.errors import InputError
from lenience.reports.document import (
    Block,
    Bullets,
    CaptionedTable,
    Chapter,
    Document,
    Facts,
    Figure,
    Heading,
    Notice,
    Paragraph,
)
from lenience.reports.document_images import INCHES, chart_png
from lenience.reports.views import TableCell

SMALL = 8.5  # points, in tables
FACTS = (2.1, INCHES - 2.1)  # inches of the two columns of facts
NOTE_COLOUR = "EEF3FA"
HEAD_COLOUR = "E9ECEF"
LONG_TEXT, LONG_WORD = 60, 20  # characters after which a text or a word does not widen its column
PADDING, LETTER = 0.2, 0.075  # inches, in tables


def document_docx(document: Document) -> bytes:
    """Return a document as a Word file.

    Parameters
    ----------
    document : Document
        The document.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    InputError
        If python-docx or matplotlib is not installed.

    Examples
    --------
    >>> page = Document("Loans", "", [], [], [Chapter("Purpose", "Why?", [Paragraph("To lend.")])], "")
    >>> document_docx(page)[:2]
    b'PK'
    """
    try:
        import docx
    except ImportError as error:
        raise InputError.missing_package("Word files", "python-docx", "document") from error

    file = docx.Document()
    _set_up(file, document)
    file.add_heading(document.title, 0)
    if document.subtitle:
        file.add_paragraph(document.subtitle, style="Subtitle")
    for text in document.summary:
        file.add_paragraph(text)
    if document.cards:
        _facts(file, Facts("Key figures", [(label, number) for number, label in document.cards]))
    for number, chapter in enumerate(document.chapters, 1):
        _chapter(file, number, chapter)
    if document.written:
        _grey(file.add_paragraph(document.written))
    target = BytesIO()
    file.save(target)
    return target.getvalue()


def _set_up(file: Any, document: Document) -> None:
    """Set the paper, the fonts and the properties."""
    from docx.shared import Cm, Pt

    page = file.sections[0]
    page.page_width, page.page_height = Cm(21), Cm(29.7)
    page.left_margin = page.right_margin = Cm(2.5)
    page.top_margin = page.bottom_margin = Cm(2.2)
    file.styles["Normal"].font.name = "Calibri"
    file.styles["Normal"].font.size = Pt(10.5)
    file.styles["Normal"].paragraph_format.space_after = Pt(6)
    properties = file.core_properties
    properties.title, properties.author, properties.subject = document.title, document.author, document.subtitle
    properties.language = "en"
    properties.created = properties.modified = dt.datetime.now(dt.UTC).replace(tzinfo=None)


def _chapter(file: Any, number: int, chapter: Chapter) -> None:
    file.add_heading(f"{number}. {chapter.title}", 1)
    if chapter.question:
        _grey(file.add_paragraph(chapter.question))
    for block in chapter.blocks:
        WRITERS[type(block)](file, block)


def _paragraph(file: Any, block: Paragraph) -> None:
    file.add_paragraph(block.text)


def _heading(file: Any, block: Heading) -> None:
    file.add_heading(block.text, 2)


def _bullets(file: Any, block: Bullets) -> None:
    for lead, text in block.points:
        point = file.add_paragraph(style="List Bullet")
        point.add_run(f"{lead} ").bold = True
        point.add_run(text)


def _notice(file: Any, block: Notice) -> None:
    table = file.add_table(rows=1, cols=1)
    cell = table.rows[0].cells[0]
    _shade(cell, NOTE_COLOUR)
    text = cell.paragraphs[0]
    text.add_run(f"{block.lead} ").bold = True
    text.add_run(block.text)
    file.add_paragraph()


def _facts(file: Any, block: Facts) -> None:
    _caption(file, block.caption)
    table = file.add_table(rows=0, cols=2, style="Table Grid")
    for name, value in block.pairs:
        row = table.add_row()
        for cell, text in zip(row.cells, (name, value), strict=True):
            _write(cell, text, bold=text is name)
        _keep_together(row)
    _set_widths(table, FACTS)
    file.add_paragraph()


def _table(file: Any, block: CaptionedTable) -> None:
    _caption(file, block.caption)
    table = file.add_table(rows=1, cols=len(block.table.header), style="Table Grid")
    for cell, text in zip(table.rows[0].cells, block.table.header, strict=True):
        _shade(cell, HEAD_COLOUR)
        _write(cell, text, bold=True)
    _repeat_header(table.rows[0])
    for values in block.table.rows:
        row = table.add_row()
        for place, (cell, value) in enumerate(zip(row.cells, values, strict=True)):
            _write(cell, _text(value), right=place > 0 and not block.prose)
        _keep_together(row)
    _set_widths(table, column_widths(block))
    if block.table.note:
        _grey(file.add_paragraph(block.table.note))
    else:
        file.add_paragraph()


def column_widths(block: CaptionedTable) -> list[float]:
    """Return the widths of a table's columns in inches: wide where texts are long, and enough for the longest word.

    >>> from lenience.reports.views import ReportTable
    >>> table = CaptionedTable("", ReportTable(("a", "b"), [("x", "a long sentence that needs some room")]))
    >>> first, second = column_widths(table)
    >>> first < second, round(first + second, 6)
    (True, 6.3)
    """
    texts = [[heading, *(_text(row[i]) for row in block.table.rows)] for i, heading in enumerate(block.table.header)]
    words = [max(len(word) for text in column for word in (text.split() or [""])) for column in texts]
    least = [PADDING + LETTER * min(word, LONG_WORD) for word in words]
    lengths = [min(max(map(len, column)), LONG_TEXT) for column in texts]
    rest = max(INCHES - sum(least), 0.0)
    widths = [low + rest * length / sum(lengths) for low, length in zip(least, lengths, strict=True)]
    return [INCHES * width / sum(widths) for width in widths]


def _figure(file: Any, block: Figure) -> None:
    from docx.shared import Inches

    picture = file.add_picture(BytesIO(chart_png(block.chart)), width=Inches(INCHES))
    properties = picture._inline.docPr
    properties.set("descr", block.caption)  # what a screen reader reads out
    file.paragraphs[-1].paragraph_format.keep_with_next = True  # the caption stays on the same page
    _caption(file, block.caption)


WRITERS: dict[type[Block], Callable[[Any, Any], None]] = {
    Paragraph: _paragraph,
    Heading: _heading,
    Bullets: _bullets,
    Notice: _notice,
    Facts: _facts,
    CaptionedTable: _table,
    Figure: _figure,
}


def _text(value: str | TableCell) -> str:
    if isinstance(value, str):
        return value
    return f"{value.text} ({value.note})" if value.note else value.text


def _write(cell: Any, text: str, *, bold: bool = False, right: bool = False) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    paragraph = cell.paragraphs[0]
    paragraph.paragraph_format.space_after = Pt(1)
    if right:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    run = paragraph.add_run(text)
    run.font.size = Pt(SMALL)
    run.bold = bold


def _caption(file: Any, text: str) -> None:
    caption = file.add_paragraph(text, style="Caption")
    caption.paragraph_format.keep_with_next = True


def _grey(paragraph: Any) -> None:
    from docx.shared import RGBColor

    for run in paragraph.runs:
        run.font.color.rgb = RGBColor(0x5D, 0x66, 0x6F)


def _shade(cell: Any, colour: str) -> None:
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    shading = OxmlElement("w:shd")
    for name, value in (("val", "clear"), ("color", "auto"), ("fill", colour)):
        shading.set(qn(f"w:{name}"), value)
    cell._tc.get_or_add_tcPr().append(shading)


def _set_widths(table: Any, widths: Sequence[float]) -> None:
    """Set the widths of columns. Word reads those of the cells, and other programs those of the columns."""
    from docx.shared import Inches

    table.autofit = False
    for column, width in zip(table.columns, widths, strict=True):
        column.width = Inches(width)
    for row in table.rows:
        for cell, width in zip(row.cells, widths, strict=True):
            cell.width = Inches(width)


def _keep_together(row: Any) -> None:
    """Do not divide a row between two pages."""
    from docx.oxml import OxmlElement

    row._tr.get_or_add_trPr().append(OxmlElement("w:cantSplit"))


def _repeat_header(row: Any) -> None:
    """Mark a row as the header of its table: it is repeated on every page, and screen readers name it."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    header = OxmlElement("w:tblHeader")
    header.set(qn("w:val"), "true")
    row._tr.get_or_add_trPr().append(header)
