"""Figures of the stopping problem: values, thresholds, operating characteristics, regret."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lenience.analysis.characteristics import characteristics
from lenience.analysis.regret import Regret
from lenience.core.belief import Belief
from lenience.core.money import UNITS, Money
from lenience.objectives.discounted import Discounted
from lenience.plot.style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SKY, canvas, label_amounts
from lenience.policies.beliefs.greedy import Greedy
from lenience.solvers.stopping.threshold import threshold_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def value_functions(
    cost: float = 0.8,
    discounts: Sequence[float] = (0.99, 0.95),
    rows: Sequence[int] = (1, 2, 5, 10, 20, 50, 100),
    N: int = 1000,
    money: Money = UNITS,
) -> Figure:
    """Plot V^N(n, p̂) against p̂ for several n, as in Figure 1 of the paper.

    Parameters
    ----------
    cost : float, optional
        The break-even success rate.
    discounts : sequence of float, optional
        The discount factors, one panel each.
    rows : sequence of int, optional
        The belief sizes n to draw.
    N : int, optional
        The row at which the approximation starts.
    money : Money, optional
        How to show values; by default in units of gain + loss.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> figure = value_functions(discounts=[0.9], rows=[1, 5], N=100)
    >>> len(figure.axes), figure.axes[0].get_title()
    (1, 'γ = 0.9')
    """
    from lenience.solvers.stopping.paper_values import paper_values

    figure, panels = canvas(len(discounts), 4.6, 4.2)
    unit = money.amount(1.0)
    for axes, discount in zip(panels, discounts, strict=True):
        table = paper_values(cost, discount, [*rows, N + 1], N)
        colours = _shades(len(rows))
        for n, colour in zip(rows, colours, strict=True):
            axes.plot(table.rates(n), unit * table.values[n], color=colour, linewidth=1.4, label=f"n = {n}")
        last = unit * table.values[N + 1]
        axes.plot(table.rates(N + 1), last, color=INK, linewidth=1.4, linestyle="--", label=f"n = {N + 1} (∞)")
        axes.axvline(cost, color=RED, linewidth=1, linestyle=":", label=f"break-even c = {cost:g}")
        axes.set_title(f"γ = {discount:g}")
        axes.set_xlabel("success rate p̂ of the belief")
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
    label = f"value Vᴺ(n, p̂), N = {N:,}"
    panels[0].set_ylabel(label)
    if money.known:
        label_amounts(panels[0].yaxis, label, money)
    panels[0].legend(frameon=False, loc="upper left", fontsize=8)
    return figure


def thresholds(problems: Iterable[Discounted], most: float = 1000.0) -> Figure:
    """Plot the acceptance thresholds c_n against n. Shading marks the leniency below the break-even rate.

    Parameters
    ----------
    problems : iterable of Discounted
        The problems, one curve each.
    most : float, optional
        The largest n to show; the axis is logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> figure = thresholds([Discounted(0.8, 0.99), Discounted(0.8, 0.9)], most=100)
    >>> len(figure.axes[0].lines)
    3
    """
    curves = list(problems)
    figure, (axes,) = canvas(1, 7.2, 4.4)
    n = np.geomspace(1.0, most, 300)
    for problem, colour in zip(curves, (BLUE, ORANGE, GREEN, PURPLE, SKY, RED) * len(curves), strict=False):
        curve = threshold_curve(problem, n)
        alone = len(curves) == 1
        axes.fill_between(n, curve, problem.cost, color=colour, alpha=0.18, linewidth=0)
        label = "threshold cₙ" if alone else f"threshold cₙ, c = {problem.cost:g}, γ = {problem.discount:g}"
        axes.plot(n, curve, color=colour, linewidth=1.8, label=label)
        if alone:
            axes.annotate(
                "leniency:\nthe benefit of the doubt",
                (1.0, 0.5 * (curve[0] + problem.cost)),
                xytext=(6, 30),
                textcoords="offset points",
                color=INK,
                ha="left",
                va="center",
                fontsize=9,
            )
            axes.set_title(f"Accept above the curve, stop below (c = {problem.cost:g}, γ = {problem.discount:g})")
    for cost in sorted({problem.cost for problem in curves}):
        axes.axhline(cost, color=INK, linewidth=1, linestyle="--", label=f"break-even c = {cost:g}")
    axes.set_xscale("log")
    axes.set_xlim(1, most)
    axes.set_ylim(0, 1)
    axes.set_xlabel("observations n (the prior's included)")
    axes.set_ylabel("success rate p̂")
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    return figure


def operating_characteristics(
    problem: Discounted,
    prior: Belief,
    rows: int = 3000,
    rates: Sequence[float] | None = None,
    money: Money = UNITS,
) -> Figure:
    """Plot what the optimal and the greedy policy do at each true success probability.

    The left panel shows the probability of stopping for good, the right panel the expected discounted reward.

    Parameters
    ----------
    problem : Discounted
        The problem.
    prior : Belief
        The belief at the start.
    rows : int, optional
        The number of acceptances that the exact walk follows.
    rates : sequence of float, optional
        The true success probabilities; by default 33 of them from 0.02 to 0.98.
    money : Money, optional
        How to show rewards; by default in units of gain + loss.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> figure = operating_characteristics(Discounted(0.5, 0.9), Belief(2, 1), rows=200, rates=[0.3, 0.6])
    >>> [axes.get_title() for axes in figure.axes]
    ['Probability of stopping for good', 'Expected discounted reward']
    """
    grid = np.linspace(0.02, 0.98, 33) if rates is None else np.asarray(rates, dtype=np.float64)
    optimal = problem.solve(prior, rows=rows)
    figure, panels = canvas(2, 4.8, 4.2)
    unit = money.amount(1.0)
    known = unit * np.maximum(grid - problem.cost, 0.0) / (1.0 - problem.discount)
    panels[1].plot(grid, known, color=INK, linestyle="--", linewidth=1.2, label="if p were known")
    for name, policy, colour in (("optimal", optimal, BLUE), ("greedy (p̂ > c)", Greedy(problem.cost), ORANGE)):
        curve = [characteristics(policy, float(p), problem, prior, rows) for p in grid]
        panels[0].fill_between(
            grid, [x.stops.lower for x in curve], [x.stops.upper for x in curve], color=colour, alpha=0.25, linewidth=0
        )
        panels[0].plot(grid, [x.stops.midpoint for x in curve], color=colour, linewidth=1.8, label=name)
        panels[1].plot(grid, [unit * x.reward.midpoint for x in curve], color=colour, linewidth=1.8, label=name)
    for axes in panels:
        axes.axvline(problem.cost, color=RED, linewidth=1, linestyle=":")
        axes.set_xlabel("true success probability p")
        axes.set_xlim(0, 1)
        axes.legend(frameon=False, loc="lower left" if axes is panels[0] else "upper left", fontsize=9)
    panels[0].axvspan(problem.cost, 1, color=RED, alpha=0.06, linewidth=0)
    panels[0].set_ylim(0, 1.02)
    panels[0].set_title("Probability of stopping for good", fontsize=10)
    panels[0].annotate(
        "wrongly\nrejected", (0.5 * (1 + problem.cost), 0.97), ha="center", va="top", color=RED, fontsize=8
    )
    panels[1].set_title("Expected discounted reward", fontsize=10)
    label_amounts(panels[1].yaxis, "reward", money)
    figure.suptitle(
        f"c = {problem.cost:g}, γ = {problem.discount:g}, prior n = {prior.n:g}, s = {prior.s:g}", fontsize=10
    )
    return figure


def regret_against_horizon(rows: Sequence[Regret], cost: float, money: Money = UNITS) -> Figure:
    """Plot the regret of each policy against the number of individuals.

    Parameters
    ----------
    rows : sequence of Regret
        The regrets, as returned by :func:`~lenience.analysis.regret.regret_table`.
    cost : float
        The break-even success rate, for the title.
    money : Money, optional
        How to show regrets; by default in units of gain + loss.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. Both axes are logarithmic.

    Examples
    --------
    >>> from lenience.analysis.regret import regret_table
    >>> rows = regret_table(0.5, Belief(2, 1), horizons=[10, 100], schedules=["√H"])
    >>> len(regret_against_horizon(rows, cost=0.5).axes[0].lines)
    4
    """
    figure, (axes,) = canvas(1, 7.2, 4.8)
    names = list(dict.fromkeys(row.policy for row in rows))
    colours = dict(zip(names, (INK, RED, PURPLE, SKY, BLUE, GREEN, ORANGE, "#999933") * 2, strict=False))
    for name in names:
        of_policy = [row for row in rows if row.policy == name]
        axes.plot(
            [row.horizon for row in of_policy],
            [money.amount(row.regret) for row in of_policy],
            color=colours[name],
            linewidth=2.4 if name == "optimal" else 1.5,
            marker="o",
            markersize=3.5,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("number of individuals H")
    label_amounts(axes.yaxis, "regret against knowing p", money)
    axes.set_title(f"What not knowing p costs over H individuals (c = {cost:g})")
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _shades(count: int) -> list[tuple[float, float, float, float]]:
    from matplotlib import colormaps

    return [colormaps["viridis"](0.92 * position / max(count - 1, 1)) for position in range(count)]
