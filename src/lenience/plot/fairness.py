"""The price of fairness: what the optimum earns against the limit, and whose acceptance rate pays for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lenience.analysis.fair_optimum import PriceOfFairness
from lenience.core.errors import InputError
from lenience.core.money import UNITS, Money
from lenience.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, canvas, label_amounts, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY, INK)
CURVES = "a PriceOfFairness, the result of price_of_fairness, or a mapping of titles to them"
MEASURES = {"acceptance": "acceptance rate", "opportunity": "acceptance rate of those who succeed"}


def plot_price_of_fairness(
    curves: PriceOfFairness | Mapping[str, PriceOfFairness], path: str | Path | None = None, money: Money = UNITS
) -> Figure:
    """Plot the value of the fair optimum and the rates of the groups against the largest difference allowed.

    Solid lines are the optimum if rates may rise and fall, dashed lines the optimum if rates may only rise. A solid
    line that falls to the left is a group that is levelled down.

    Parameters
    ----------
    curves : PriceOfFairness or mapping
        A curve, as returned by :func:`~lenience.analysis.price_of_fairness`, or several by title, side by side.
    path : str or Path, optional
        Where to save the figure; its ending selects the format.
    money : Money, optional
        How to show values; by default in units of gain + loss.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: values above, rates by group below.

    Raises
    ------
    InputError
        If ``curves`` is anything else, or the path is invalid.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> from lenience.analysis import price_of_fairness
    >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.9), {"a": Belief(4, 3.2), "b": Belief(4, 2)})
    >>> curve = price_of_fairness(cells, {"a": "A", "b": "B"}, within=[0, 0.2, 0.4])
    >>> figure = plot_price_of_fairness({"two groups": curve})
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['value, units of gain + loss', 'acceptance rate']
    """
    named = {"": curves} if isinstance(curves, PriceOfFairness) else curves
    if not isinstance(named, Mapping) or not named or not all(isinstance(c, PriceOfFairness) for c in named.values()):
        raise InputError("curves", curves, CURVES)
    figure, panels = canvas(len(named), 4.9 if len(named) == 1 else 3.9, 3.0, rows=2)
    for column, (title, curve) in enumerate(named.items()):
        above, below = panels[column], panels[len(named) + column]
        _draw_values(above, curve, money, column == 0)
        _draw_rates(below, curve)
        above.set_title(title, loc="left", fontsize=11)
        if column == 0:
            label_amounts(above.yaxis, "value", money)
            below.set_ylabel(MEASURES[curve.measure])
    handles, labels = panels[len(named)].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), frameon=False, fontsize=9)
    if path is not None:
        save(figure, path)
    return figure


def _draw_values(axes: Axes, curve: PriceOfFairness, money: Money, legend: bool) -> None:
    limits = curve.within
    for points, style, label in (
        (curve.points, "-", "rates may rise and fall"),
        (curve.raising, "--", "rates only rise"),
    ):
        values = [money.amount(point.value.midpoint) for point in points]
        axes.plot(limits, values, style, color=INK, linewidth=1.8, marker="o", markersize=3, label=label)
    free = money.amount(curve.points[0].unconstrained.midpoint)
    axes.axhline(free, color=GREY, linewidth=1, linestyle=":", label="no constraint")
    _percent(axes.xaxis)
    if legend:
        axes.legend(frameon=False, fontsize=8.5, loc="lower right")


def _draw_rates(axes: Axes, curve: PriceOfFairness) -> None:
    limits, groups = curve.within, curve.points[0].groups
    for position, group in enumerate(groups):
        colour = COLOURS[position % len(COLOURS)]
        # Groups at the limit have equal rates. Later lines are thinner, so that all of them are seen.
        width = 1.4 + 3.2 * (len(groups) - 1 - position) / max(len(groups) - 1, 1)
        for points, style, label, size in (
            (curve.points, "-", group.group, width),
            (curve.raising, "--", None, 0.4 * width + 0.6),
        ):
            rates = [getattr(point.groups[position], curve.measure).midpoint for point in points]
            axes.plot(limits, rates, style, color=colour, linewidth=size, label=label, solid_capstyle="butt")
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("largest difference between groups, points")
    _percent(axes.xaxis)
    axes.yaxis.set_major_formatter(lambda rate, _: f"{100 * rate:.0f}%")


def _percent(axis: object) -> None:
    """Label differences of rates in percentage points."""
    axis.set_major_formatter(lambda limit, _: f"{100 * limit:.0f}")  # type: ignore[attr-defined]
