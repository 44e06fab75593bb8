"""The part of the segments' report on labels that come late: how many may be out at once, and what it costs not to
look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from lenience.analysis.ignored_delay import Ignored
from lenience.analysis.status_quo import Money
from lenience.core.formatting import counted, plural
from lenience.reports.exposure_text import describe_late
from lenience.reports.segment_report_groups import html_table, marked
from lenience.segments.exposure_limits import Exposure

MOST_LISTED = 60  # segments whose limit is a number

AT_ONCE = (
    "What is earned on this page allows for the delay: it is the least that the optimum is proved to earn, what is "
    "pending now included. How groups fare, whom each model shuts out and what constraints cost are as if labels came "
    "at once."
)


def late_section(rows: Sequence[Exposure], ignored: Sequence[Ignored], money: Money, dated: bool) -> str:
    """How many may be out at once in each segment that has a limit, in words and as a table."""
    said = describe_late(rows[0].objective, rows, dated)
    free = sum(row.unlimited for row in rows)
    limited = [row for row in rows if not row.unlimited]
    listed = sorted(limited, key=lambda row: -row.objective.volume)[:MOST_LISTED]
    blind = {row.segment: row for row in ignored if row.blind is not None}
    header = ["segment", "now", "pending", "at most out"]
    header += ["earned with the limit", "earned blind to what is pending"] if blind else []
    body = []
    for row in listed:
        body.append([escape(row.name), marked(row.now, row.accept), f"{row.pending:,}", row.most])
        if blind:
            own = blind.get(row.name)
            earned = (None, None) if own is None else (own.limited, own.blind)
            body[-1] += ["" if value is None else money.show(value) for value in earned]
    more = f"<p class='soft'>The {MOST_LISTED} largest of {len(limited):,}.</p>" if len(limited) > MOST_LISTED else ""
    texts = [said, describe_ignored(ignored, money), AT_ONCE]
    if free:
        texts.insert(1, f"{counted(free, 'segment')} {plural(free, 'has', 'have')} no limit.")
    words = "".join(f"<p>{escape(text)}</p>" for text in texts if text)
    return f"<h2>Labels come late</h2>{words}{html_table(header, body) if body else ''}{more}"


def describe_ignored(ignored: Sequence[Ignored], money: Money) -> str:
    """What ignoring the delay costs, in a sentence or two; empty where it is not known.

    >>> print(describe_ignored([Ignored("a", 1.87, -0.6), Ignored("b", 9.0, None)], Money()))
    To decide as if labels came at once, blind to what is pending, is expected to earn -0.60 in 1 segment from nothing
    pending, the limits 1.87, in units of a gain and a loss together, in all from now on. For 1 segment more that was
    not computed: it would take too long.
    """
    known = [(row.limited, row.blind) for row in ignored if row.blind is not None]
    if not known:
        return ""
    best, blind = (money.show(math.fsum(values)) for values in zip(*known, strict=True))
    said = (
        f"To decide as if labels came at once, blind to what is pending, is expected to earn {blind} in "
        f"{counted(len(known), 'segment')} from nothing pending, the limits {best}, {money.words}."
    )
    left = len(ignored) - len(known)
    return (
        f"{said} For {counted(left, 'segment')} more that was not computed: it would take too long." if left else said
    )
