"""Values in CSV files that no spreadsheet runs as a formula."""

from __future__ import annotations

import re
from typing import Any

# Spreadsheets skip spaces and invisible characters before a formula, and some read the wide signs of East Asian
# keyboards as the plain ones.
FORMULA = re.compile(r"[\s\x00-\x20\xad\u180e\u200b-\u200f\u2060-\u2064\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]")


def harmless(value: Any) -> Any:
    """Prefix text that a spreadsheet would run as a formula with a quote. Write booleans as in JSON.

    >>> harmless("=1+1"), harmless(" \\u00a0=1+1"), harmless("north - south"), harmless(True)
    ("'=1+1", "' \\xa0=1+1", 'north - south', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value
