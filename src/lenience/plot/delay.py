"""Figures about late labels: the value against the mean delay, and the map of exposure limits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lenience.analysis.delay import BLIND, OPTIMAL, DelayValue
from lenience.core.belief import Belief
from lenience.core.formatting import duration
from lenience.core.money import UNITS, Money
from lenience.core.protocols import UNLIMITED
from lenience.core.validation import whole
from lenience.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, canvas, label_amounts
from lenience.policies.beliefs.estimated_exposure import EstimatedExposurePolicy
from lenience.policies.beliefs.exposure import ExposurePolicy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (BLUE, RED, GREY, GREEN, ORANGE, SKY, PURPLE, INK)
MARKERS = ("o", "s", "x", "^", "v", "D", "P", "*")


def value_against_delay(
    rows: Sequence[DelayValue],
    without_delay: float | None = None,
    title: str | None = None,
    money: Money = UNITS,
) -> Figure:
    """Plot the value of each policy against the mean label delay.

    Parameters
    ----------
    rows : sequence of DelayValue
        The values, as returned by :func:`~lenience.analysis.delay.value_by_delay`.
    without_delay : float, optional
        The optimal value if labels came at once. It is drawn as a horizontal line.
    title : str, optional
        The title of the figure.
    money : Money, optional
        How to show values; by default in units of gain + loss.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. The delay axis is logarithmic, in years.

    Examples
    --------
    >>> from lenience.analysis.delay import value_by_delay
    >>> rows = value_by_delay(0.8, 20, 0.5, Belief(3, 2), delays=[0.25, 0.5], caps=[2])
    >>> figure = value_against_delay(rows, title="Small example")
    >>> figure.axes[0].get_xlabel()
    'mean delay of a label'
    """
    figure, (axes,) = canvas(1, 7.6, 4.6)
    names = list(dict.fromkeys(row.policy for row in rows))
    delays = sorted({row.label_delay for row in rows})
    for position, name in enumerate(names):
        of_policy = sorted((row for row in rows if row.policy == name), key=lambda row: row.label_delay)
        heavy = name in (OPTIMAL, BLIND)
        axes.plot(
            [row.label_delay for row in of_policy],
            [money.amount(row.value.midpoint) for row in of_policy],
            color=COLOURS[position % len(COLOURS)],
            marker=MARKERS[position % len(MARKERS)],
            markersize=5.5 if heavy else 4.5,
            linewidth=2.2 if heavy else 1.3,
            label=name,
            zorder=3 if heavy else 2,
        )
    if without_delay is not None:
        at_once = money.amount(without_delay)
        axes.axhline(at_once, color=INK, linewidth=1, linestyle=":", label="optimum, labels at once")
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks(delays, [duration(delay).replace(" ", "\n") for delay in delays])
    axes.minorticks_off()
    axes.set_xlabel("mean delay of a label")
    label_amounts(axes.yaxis, "value before the first arrival", money)
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)
    return figure


def limit_map(
    policy: ExposurePolicy | EstimatedExposurePolicy, most: int = 1000, lattices: int = 12, title: str | None = None
) -> Figure:
    """Plot the exposure limits over belief size and success rate.

    On one lattice the states at small n lie so far apart that the picture is a sawtooth. Therefore the problem is
    solved on several lattices, each shifted by a fraction of an observation, with the same look-ahead as the policy.

    Parameters
    ----------
    policy : ExposurePolicy or EstimatedExposurePolicy
        A solved policy for late labels.
    most : int, optional
        The largest belief size n to show; the axis is logarithmic.
    lattices : int, optional
        The number of lattices to solve.
    title : str, optional
        The title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. Colours show how many labels may be pending.

    Examples
    --------
    >>> from lenience.objectives.delayed import Delayed
    >>> policy = Delayed(cost=0.8, arrivals=20, discount_rate=0.5, label_delay=0.25).solve(Belief(2, 1), rows=20)
    >>> limit_map(policy, most=10, lattices=1).axes[0].get_ylabel()
    'success rate p̂ of the belief'
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap

    figure, (axes,) = canvas(1, 8.0, 4.8)
    cost = policy.objective.cost
    rows, count = whole("most", most, least=2), whole("lattices", lattices, least=1)
    if isinstance(policy, ExposurePolicy):
        rows = min(rows, policy.certificate.look_ahead // 2)
    sizes = np.unique(np.round(np.geomspace(1, rows, 240)).astype(int))
    rates = np.linspace(max(0.0, cost - 0.45), min(1.0, cost + 0.08), 600)
    steps = (0, 1, 2, 3, 5, 10, 20, 50)
    if isinstance(policy, ExposurePolicy):
        grid = _proved_limits(policy, rows, count, sizes, rates)
    else:
        # Estimates are interpolated, so one solve from a belief of one observation has them all.
        solved = EstimatedExposurePolicy.solve(policy.objective, Belief(n=1, s=cost))
        limits = solved.exposure(sizes.astype(float), rates[:, np.newaxis] * sizes)
        grid = np.where(limits == UNLIMITED, 1e9, limits)
    grid[rates >= cost] = 1e9
    colours = ("#d9d9d9", "#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fff7d1")
    norm = BoundaryNorm([*steps, 1e6, 2e9], len(colours))
    edges = np.concatenate((sizes - 0.5, [sizes[-1] + 0.5]))
    edges[0] = 0.8
    height = (rates[1] - rates[0]) / 2
    heights = np.concatenate((rates - height, [rates[-1] + height]))
    picture = axes.pcolormesh(edges, heights, grid, cmap=ListedColormap(colours), norm=norm, rasterized=True)
    axes.axhline(cost, color=RED, linewidth=1.2, linestyle="--")
    axes.annotate(
        f"break-even c = {cost:g}",
        (edges[-1], cost),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9,
        color="#b34700",
    )
    axes.set_xscale("log")
    axes.set_ylim(rates[0], rates[-1])
    axes.set_xlabel("belief size n (labels seen, the prior's included)")
    axes.set_ylabel("success rate p̂ of the belief")
    axes.grid(visible=False)
    bar = figure.colorbar(picture, ax=axes, spacing="uniform", pad=0.02)
    places = [*steps, 1e6, 2e9]
    bar.set_ticks([(low + high) / 2 for low, high in pairwise(places)])
    bar.set_ticklabels(["0", "1", "2", "3–4", "5–9", "10–19", "20–49", "50 or more", "no limit"])
    bar.ax.tick_params(length=0)
    bar.set_label("accept while fewer than this many are pending")
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    return figure


def _proved_limits(
    policy: ExposurePolicy, rows: int, lattices: int, sizes: NDArray[np.int64], rates: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the limit at each rate and size: that of the nearest belief on any of several lattices."""
    grid = np.zeros((rates.size, sizes.size))
    nearest = np.full(grid.shape, np.inf)
    for shift in range(lattices):
        start = Belief(n=1, s=(shift + 0.5) / lattices)
        solved = policy.objective.solve_proved(
            start,
            rows=rows,
            tolerance=1e-4,
            pending_cap=policy.certificate.pending_cap,
            look_ahead=policy.certificate.look_ahead,
            seconds=600,
        )
        for column, n in enumerate(sizes):
            good = start.s + np.clip(np.rint(rates * n - start.s), 0, n - 1)
            limits = solved.exposure(float(n), good)
            apart = np.abs(good - rates * n)
            closer = apart < nearest[:, column]
            nearest[closer, column] = apart[closer]
            grid[closer, column] = np.where(limits == UNLIMITED, 1e9, limits)[closer]
    return grid
