"""Charts of rates by group: lines over time with their names at the ends, and early compared with late in rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from markupsafe import Markup

from lenience.core.bounds import Bounds
from lenience.core.formatting import percent
from lenience.dashboard.short_names import shortened
from lenience.reports.canvas import Canvas, Point, percent_ticks

DAY = 86_400 * 1_000_000
APART = 14.0  # between two names at line ends
LONGEST, LETTER = 16, 8.3  # letters of a name, and the width of one in bold
Row = tuple[str, tuple[float, Bounds], tuple[float, Bounds]]


class Series(msgspec.Struct, frozen=True):
    """The acceptances of a group over time: the middle of each time bucket (microseconds), accepted, arrivals."""

    name: str
    points: list[tuple[int, int, int]]


def lines(series: Sequence[Series], width: int) -> list[Markup]:
    """Draw a line for each group, wide and narrow. Time buckets without arrivals are skipped."""
    times = [at for one in series for at, _, _ in one.points]
    first, last = min(times), max(times)
    if first == last:
        first, last = first - width // 2, last + width // 2
    return [_lines(series, (first, last), width, narrow) for narrow in (False, True)]


def _lines(series: Sequence[Series], ends: tuple[int, int], width: int, narrow: bool) -> Markup:
    short = shortened([one.name for one in series], LONGEST)
    room = 18 + LETTER * max(map(len, short.values()))
    canvas = Canvas(440 if narrow else 960, 310 if narrow else 330, ends, (0.0, 1.0), margins=(14, room, 28, 62))
    canvas.vertical_axis(percent_ticks(0.0, 1.0), "accepted")
    canvas.horizontal_axis(time_ticks(*ends, width, 4 if narrow else 8), "")
    descriptions = []
    tips: list[tuple[float, int, str]] = []
    for number, one in enumerate(series, 1):
        way: list[Point] = [(at, accepted / arrivals) for at, accepted, arrivals in one.points]
        accepted, arrivals = sum(point[1] for point in one.points), sum(point[2] for point in one.points)
        words = f"{one.name}: {percent(accepted / arrivals)} of {arrivals:,} accepted"
        descriptions.append(words)
        canvas.line(way, f"group-{number}", words)
        canvas.dot(way[-1], f"group-{number}", words, 4)
        tips.append((canvas.y(way[-1][1]), number, one.name))
    for (place, number, name), height in zip(sorted(tips), spread([tip[0] for tip in sorted(tips)]), strict=True):
        right = canvas.width - canvas.right
        if abs(height - place) > 3:
            canvas.add(f'<line class="leader" x1="{right + 5}" x2="{right + 10}" y1="{place}" y2="{height:.1f}"/>')
        canvas.text(right + 12, height + 4, short[name], f"name group-{number}")
    return canvas.drawn("Acceptance by group over time", "; ".join(descriptions), "narrow" if narrow else "wide")


def spread(places: Sequence[float], apart: float = APART, low: float = 14.0, high: float = 300.0) -> list[float]:
    """Move sorted places apart so that neighbours keep a minimum distance.

    >>> spread([100.0, 101.0, 200.0])
    [93.5, 107.5, 200.0]
    """
    blocks: list[list[float]] = []  # the middle of each block, and how many it holds
    for place in places:
        blocks.append([place, 1])
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < apart * (blocks[-1][1] + blocks[-2][1]) / 2:
            (b, m), (a, k) = blocks.pop(), blocks.pop()
            blocks.append([(a * k + b * m) / (k + m), k + m])
        half = apart * (blocks[-1][1] - 1) / 2
        blocks[-1][0] = min(max(blocks[-1][0], low + half), high - half)
    return [middle + apart * (i - (size - 1) / 2) for middle, size in blocks for i in range(int(size))]


def time_ticks(first: int, last: int, width: int, most: int) -> list[tuple[float, str]]:
    """Return round times between two times, labelled with hours, with days, or over more than a year with months.

    >>> day = 86_400_000_000
    >>> [words for _, words in time_ticks(0, 28 * day, 7 * day, 4)]
    ['1 Jan', '8 Jan', '15 Jan', '22 Jan', '29 Jan']
    >>> [words for _, words in time_ticks(0, 900 * day, 28 * day, 4)]
    ['Jan 1970', 'Jan 1971', 'Jan 1972']
    """
    if last - first > 400 * DAY:
        return _month_ticks(first, last, most)
    hours = last - first <= 2 * DAY
    steps = (
        (60, 300, 900, 3600, 10_800, 21_600, 43_200) if hours else (86_400, 604_800, 1_209_600, 2_419_200, 7_257_600)
    )
    step = next((s for s in steps if (last - first) / (s * 1e6) <= most), steps[-1] * 4) * 1_000_000
    start = -(-first // step) * step
    form = "%H:%M" if hours else "%-d %b"
    return [(at, datetime.fromtimestamp(at / 1e6, UTC).strftime(form)) for at in range(start, last + 1, step)]


def _month_ticks(first: int, last: int, most: int) -> list[tuple[float, str]]:
    """Return the starts of months between two times, at most ``most`` of them if possible."""
    begin = datetime.fromtimestamp(first / 1e6, UTC)
    months = (last - first) / (30.44 * DAY)
    step = next((size for size in (3, 6, 12, 24, 60, 120) if months / size <= most), 240)
    ticks = []
    for month in range(0, 12 * 300, step):
        at = datetime(begin.year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        stamp = at.timestamp() * 1e6
        if stamp > last:
            break
        if stamp >= first:
            ticks.append((stamp, at.strftime("%b %Y")))
    return ticks


def dumbbells(rows: Sequence[Row]) -> list[Markup]:
    """Draw early and late acceptance, one row per group, wide and narrow."""
    return [_dumbbells(rows, narrow) for narrow in (False, True)]


def _dumbbells(rows: Sequence[Row], narrow: bool) -> Markup:
    short = shortened([name for name, _, _ in rows], LONGEST)
    longest = max(map(len, short.values()))
    height = 34.0 * len(rows) + 34
    margins = (6, 20, 28, 18 + LETTER * longest)
    canvas = Canvas(440 if narrow else 960, height, (0.0, 1.0), (0.0, float(len(rows))), margins=margins)
    canvas.horizontal_axis(percent_ticks(0.0, 1.0), "")
    descriptions = []
    for number, (name, (early, before), (late, after)) in enumerate(rows, 1):
        y = len(rows) - number + 0.5
        words = f"{name}: {percent(early)} early, {percent(late)} late"
        descriptions.append(words)
        canvas.text(canvas.left - 10, canvas.y(y) + 4, short[name], f"name group-{number}", "end")
        for part, rate, interval, shift in (("early", early, before, 0.16), ("late", late, after, -0.16)):
            ends = [(interval.lower, y + shift), (interval.upper, y + shift)]
            canvas.line(ends, f"interval {part} group-{number}", words)
            canvas.dot((rate, y + shift), f"{part} group-{number}", words, 5)
    return canvas.drawn("Acceptance early and late", "; ".join(descriptions), "narrow" if narrow else "wide")
