"""Write a document as one self-contained HTML page: headings, captions, print style and dark mode, without scripts."""

from __future__ import annotations

from lenience.reports.document import Document
from lenience.reports.rendering import render


def document_html(document: Document) -> str:
    """Return a document as the text of an HTML page.

    Parameters
    ----------
    document : Document
        The document.

    Returns
    -------
    str
        The page. Style and figures are inside it, and nothing is loaded.

    Examples
    --------
    >>> from lenience.reports.document import Chapter, Paragraph
    >>> page = document_html(Document("Loans", "", [], [], [Chapter("Purpose", "Why?", [Paragraph("To lend.")])], ""))
    >>> "<h2 id=\\"chapter-1\\">1. Purpose</h2>" in page
    True
    """
    return render("document.html", title=document.title, document=document)
