"""The chart of realised profit by month: a bar above the line for a profit, below it for a loss."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from lenience.core.money import Money
from lenience.reports.canvas import Canvas, linear_ticks

MONTHS = 24  # the latest months that are drawn
FEWEST = 6  # months for which there is room, so that one bar does not fill the chart


def pictures(months: Mapping[str, float], money: Money) -> list[Markup]:
    """Draw the latest months, wide and narrow. Months without a known outcome have no bar."""
    latest = _without_gaps(months)[-MONTHS:]
    return [_drawn(latest, money, narrow) for narrow in (False, True)]


def _drawn(months: list[tuple[str, float]], money: Money, narrow: bool) -> Markup:
    amounts = [profit for _, profit in months]
    low, high = min([0.0, *amounts]), max([0.0, *amounts])
    if low == high:
        high = 1.0
    room = 0.06 * (high - low)
    ends = (low - room if low < 0 else 0.0, high + room if high > 0 else 0.0)
    canvas = Canvas(440 if narrow else 960, 230, (0.0, float(max(len(months), FEWEST))), ends, margins=(10, 16, 28, 92))
    canvas.vertical_axis([(value, money.format(value)) for value in linear_ticks(*ends, 5)], "")
    every = max(round(len(months) / (4 if narrow else 12)), 1)
    names = [(place + 0.5, month) for place, (month, _) in enumerate(months) if place % every == 0]
    canvas.horizontal_axis(names, "")
    for place, (month, profit) in enumerate(months):
        kind = "accepted" if profit >= 0 else "rejected"
        bottom, top = min(profit, 0.0), max(profit, 0.0)
        canvas.box(place + 0.2, place + 0.8, bottom, top, kind, _words(month, profit, money))
    canvas.rule(0.0, "zero")
    words = "; ".join(_words(month, profit, money) for month, profit in months)
    return canvas.drawn("Realised profit by month of the decision", words, "narrow" if narrow else "wide")


def _words(month: str, profit: float, money: Money) -> str:
    return f"{month}: {money.format_change(profit)}"


def _without_gaps(months: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return all months from the first to the last; those without an outcome earned nothing.

    >>> _without_gaps({"2025-12": 5.0, "2026-02": -1.0})
    [('2025-12', 5.0), ('2026-01', 0.0), ('2026-02', -1.0)]
    """
    if not months:
        return []
    first, last = (_number(edge(months)) for edge in (min, max))
    names = (f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(first, last + 1))
    return [(name, months.get(name, 0.0)) for name in names]


def _number(month: str) -> int:
    return 12 * int(month[:4]) + int(month[5:]) - 1
