"""The part of the segments' report on delayed outcomes: each segment's limit, and what ignoring the delay costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lenience.analysis.ignored_delay import Ignored
from lenience.core.formatting import counted, plural
from lenience.core.money import Money
from lenience.reports.exposure_text import describe_limits, is_limited, limits_text
from lenience.reports.views import ReportTable, Section, TableCell, decision_cell
from lenience.segments.exposure_limits import Exposure

MOST_LISTED = 60  # segments whose limit is a number

DELAY_SCOPE = (
    "The amounts on this page allow for the delay: they are what the best policy {earns} at least, including "
    "applicants who are pending now. Three parts do not allow for it: outcomes by group, the comparison of models and "
    "the cost of constraints."
)
PROVED = "is proved to earn"
ESTIMATED = "earns, proved or, where the limit is estimated, by the estimate less its error,"


def exposure_section(rows: Sequence[Exposure], ignored: Sequence[Ignored], money: Money, dated: bool) -> Section:
    """Show the limit of each segment that has one, and what ignoring the delay would cost."""
    limited = [row for row in rows if is_limited(row)]
    free = len(rows) - len(limited)
    listed = sorted(limited, key=lambda row: -row.objective.volume)[:MOST_LISTED]
    blind = {row.segment: row for row in ignored if row.blind is not None}
    header = ["segment", "decision now", "pending", "limit"]
    header += ["value with the limit", "value if the delay is ignored"] if blind else []
    body: list[list[str | TableCell]] = []
    for row in listed:
        body.append([row.name, decision_cell(row.now, row.accept), f"{row.pending:,}", limits_text(row)])
        if blind:
            own = blind.get(row.name)
            values = (None, None) if own is None else (own.limited, own.blind)
            body[-1] += ["" if value is None else money.format(value) for value in values]
    paragraphs = [
        describe_limits(rows[0].objective, rows, dated),
        f"{counted(free, 'segment')} {plural(free, 'has', 'have')} no limit." if free else "",
        describe_ignored(ignored, money),
        DELAY_SCOPE.format(earns=PROVED if all(row.proved for row in rows) else ESTIMATED),
    ]
    note = f"The {MOST_LISTED} largest of {len(limited):,} segments with a limit." if len(limited) > MOST_LISTED else ""
    table = ReportTable(header, body, note) if body else None
    return Section("Delayed outcomes", [text for text in paragraphs if text], table=table)


def describe_ignored(ignored: Sequence[Ignored], money: Money) -> str:
    """Say what ignoring the delay would cost; return an empty text if that is unknown.

    Parameters
    ----------
    ignored : sequence of Ignored
        What each segment earns with its limit, and with the delay ignored.
    money : Money
        How to show amounts.

    Returns
    -------
    str
        One to three sentences.

    Examples
    --------
    >>> print(describe_ignored([Ignored("a", 1.87, -0.6), Ignored("b", 9.0, None)], Money()))
    With the limits, 1 segment would earn 1.87. If you ignored the delay and accepted as if outcomes arrived at once, it
    would earn −0.6. Both amounts start with nobody pending and are in units of gain + loss, in total from now on. For
    1 more segment the comparison would take too long.
    """
    known = [(row.limited, row.blind) for row in ignored if row.blind is not None]
    if not known:
        return ""
    best, blind = (money.format(math.fsum(values)) for values in zip(*known, strict=True))
    text = (
        f"With the limits, {counted(len(known), 'segment')} would earn {best}. If you ignored the delay and accepted "
        f"as if outcomes arrived at once, {plural(len(known), 'it', 'they')} would earn {blind}. Both amounts start "
        f"with nobody pending and are {money.words}."
    )
    left = len(ignored) - len(known)
    return f"{text} For {left:,} more {plural(left, 'segment')} the comparison would take too long." if left else text
