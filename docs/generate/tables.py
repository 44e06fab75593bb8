"""Tables in Markdown."""

from __future__ import annotations


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; bars inside its cells are escaped.

    >>> print(table(["a", "b"], [["1|2", "3"]]))
    | a | b |
    | --- | --- |
    | 1\\|2 | 3 |
    """
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
    )
