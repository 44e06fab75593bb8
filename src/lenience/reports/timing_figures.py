"""Figures on pending outcomes: when outcomes become known, and how much a pending one counts at each age."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from lenience.core.formatting import percent
from lenience.models.maturing import TimingCurves, evidence_share, success_chance
from lenience.reports.canvas import Canvas, Point, linear_ticks, percent_ticks

SIZES = ((900.0, 300.0, 8, 2, "wide"), (420.0, 320.0, 4, 1, "narrow"))  # width, height, ticks, legend columns, class
Styles = tuple[str, str]
STYLES: Styles = ("series-0", "series-1")
Line = tuple[str, Callable[[float], float]]


def timing_figures(curves: TimingCurves, styles: Styles = STYLES) -> list[Markup]:
    """Draw the shares of failures and successes that are known at each age, wide and narrow.

    Parameters
    ----------
    curves : TimingCurves
        When outcomes arrive.
    styles : tuple of str
        The classes of the two lines in the style sheet.

    Returns
    -------
    list of Markup
        The SVG for wide and for narrow windows.

    Examples
    --------
    >>> len(timing_figures(TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0))))
    2
    """
    lines = [
        ("failures known", lambda age: 1.0 - curves.open_shares(age)[1]),
        ("successes known", lambda age: 1.0 - curves.open_shares(age)[0]),
    ]
    return _figures(curves, lines, "outcomes known", "When outcomes become known", styles)


def weight_figures(curves: TimingCurves, rate: float, styles: Styles = STYLES) -> list[Markup]:
    """Draw how likely a pending outcome is a success at each age, and how much it counts, wide and narrow.

    Parameters
    ----------
    curves : TimingCurves
        When outcomes arrive.
    rate : float
        The success rate of all, strictly between 0 and 1.
    styles : tuple of str
        The classes of the two lines in the style sheet.

    Returns
    -------
    list of Markup
        The SVG for wide and for narrow windows.

    Examples
    --------
    >>> len(weight_figures(TimingCurves((0, 90, 365), (1, 1, 0), (1, 0.5, 0)), 0.8))
    2
    """
    lines = [
        ("chance that a pending outcome is a success", lambda age: success_chance(rate, age, curves)),
        ("how much it counts, compared with a known outcome", lambda age: evidence_share(rate, age, curves)),
    ]
    return _figures(curves, lines, "pending outcome", "How much a pending outcome counts at each age", styles)


def _figures(curves: TimingCurves, lines: Sequence[Line], title: str, name: str, styles: Styles) -> list[Markup]:
    """Draw lines over the age in days. A share holds from one age to the next, so the lines are steps."""
    last = curves.ages[-1] or 1.0
    drawn = []
    for width, height, ticks, columns, kind in SIZES:
        canvas = Canvas(width, height, (0.0, last), (0.0, 1.0), margins=(14, 22, 46, 62))
        canvas.vertical_axis(percent_ticks(0.0, 1.0), title)
        canvas.horizontal_axis(
            [(tick, f"{tick:,.0f}") for tick in linear_ticks(0.0, last, ticks)], "days since the decision"
        )
        for (label, value), style in zip(lines, styles, strict=True):
            canvas.line(_steps(curves.ages, value), style, label)
        canvas.legend([(style, label) for (label, _), style in zip(lines, styles, strict=True)], columns)
        drawn.append(canvas.drawn(name, _described(curves.ages, lines), kind))
    return drawn


def _steps(ages: Sequence[float], value: Callable[[float], float]) -> list[Point]:
    """Return the corners of a line that changes only at the given ages."""
    points: list[Point] = []
    for age in ages:
        if points:
            points.append((age, points[-1][1]))
        points.append((age, value(age)))
    return points


def _described(ages: Sequence[float], lines: Sequence[Line]) -> str:
    """Describe the lines at a few ages, for readers who do not see the figure."""
    some = [ages[round(part * (len(ages) - 1))] for part in (0.25, 0.5, 0.75, 1.0)]
    return "; ".join(
        f"{label}: {', '.join(f'{percent(value(age), 0)} after {age:,.0f} days' for age in some)}"
        for label, value in lines
    )
