"""Figures of simulations: acceptance by arrival, policies compared, regret over time.

Each function returns a matplotlib figure and, given a path, saves it (the ending chooses the format). Colours are
those of Okabe and Ito (2008), which colour-blind readers can tell apart; lines differ in style as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.validation import having, listed, mapped
from lenience.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, canvas, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lenience.analysis.acceptance_by_arrival import ByArrival
    from lenience.analysis.drift import Drift
    from lenience.simulation.result import Simulation

COLOURS = (BLUE, RED, GREEN, PURPLE, SKY, ORANGE, INK, GREY)
STYLES = ("-", "--", "-.", ":")
TITLES = {
    "discounted": "discounted reward",
    "expected": "discounted expected reward",
    "reward": "total reward",
    "regret": "regret against knowing p",
    "behind": "behind the",  # and the name of what runs along
    "accepted": "number accepted",
    "shut_out": "probability of shutting out p > c",
    "learning_cost": "cost of learning (lowest point of the account)",
}

SIMULATION = "a Simulation, as of compare_policies"


def plot_acceptance_by_arrival(
    curves: Mapping[str, ByArrival], simulation: Simulation | None = None, path: str | Path | None = None
) -> Figure:
    """The exact chance of acceptance of the i-th arrival, early against late, one line a curve.

    A simulation whose policies bear the same names is drawn over them, as points with 95% intervals.
    """
    mapped("curves", curves, "a mapping of names to what acceptance_by_arrival returned")
    for curve in curves.values():
        having("curves", curve, "acceptance", "what acceptance_by_arrival returned")
    figure, axes = _canvas("arrival i", "chance that arrival i is accepted")
    for i, (label, curve) in enumerate(curves.items()):
        arrivals = np.arange(1, curve.acceptance.size + 1)
        axes.plot(arrivals, curve.acceptance, label=label, **_line(i))
        if simulation is not None and label in simulation.policies:
            _points(axes, simulation, label, i)
    _log_arrivals(axes)
    axes.set_ylim(-0.02, 1.02)
    _legend(axes)
    return _done(figure, path)


def plot_comparison(
    simulation: Simulation, metrics: Sequence[str] = ("discounted", "behind"), path: str | Path | None = None
) -> Figure:
    """The policies side by side, one panel a metric, with 95% intervals; the best on top by the first metric."""
    having("simulation", simulation, "checkpoints", SIMULATION)
    wanted = listed("metrics", metrics, f"a list of names among {', '.join(TITLES)}")
    chosen = [metric for metric in wanted if metric != "behind" or simulation.baseline is not None]
    for metric in chosen:
        if metric not in TITLES:
            raise InputError("metrics", metric, f"names among {', '.join(TITLES)}")
    names = sorted(simulation.policies, key=lambda name: simulation.estimate(name, "expected").mean)
    figure, panels = _panels(len(chosen), 0.9 + 0.36 * len(names))
    for axes, metric in zip(panels, chosen, strict=True):
        for row, name in enumerate(names):
            estimate = simulation.behind(name) if metric == "behind" else simulation.estimate(name, metric)
            spread = [[estimate.mean - estimate.lower], [estimate.upper - estimate.mean]]
            colour = COLOURS[1] if name == simulation.baseline else COLOURS[0]
            axes.errorbar(estimate.mean, row, xerr=spread, fmt="o", color=colour, capsize=3, markersize=5)
        title = f"{TITLES[metric]} {simulation.baseline}" if metric == "behind" else TITLES[metric]
        axes.set_xlabel(f"{title} (95% interval)")
        axes.set_yticks(range(len(names)), names if axes is panels[0] else [""] * len(names))
        axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
        axes.grid(visible=False, axis="y")
        axes.margins(y=0.08)
    return _done(figure, path)


def plot_regret_over_time(simulation: Simulation, path: str | Path | None = None) -> Figure:
    """The undiscounted regret against one who knows p, from the first arrival on, with 95% bands."""
    having("simulation", simulation, "checkpoints", SIMULATION)
    figure, axes = _canvas("arrivals", "regret against knowing p, undiscounted")
    at = simulation.checkpoints
    for i, name in enumerate(simulation.policies):
        mean, lower, upper = _along(simulation.regret_over_time(name))
        axes.plot(at, mean, label=name, **_line(i))
        axes.fill_between(at, lower, upper, color=COLOURS[i % len(COLOURS)], alpha=0.15, linewidth=0)
    _log_arrivals(axes)
    axes.set_ylim(bottom=0.0)
    _legend(axes)
    return _done(figure, path)


def plot_drift(rows: Sequence[Drift], path: str | Path | None = None) -> Figure:
    """What a policy that forgets earns beyond the optimum without drift, by memory, one line a hazard."""
    for row in listed("rows", rows, "what drift_study returned"):
        having("rows", row, "hazard", "what drift_study returned")
    figure, axes = _canvas(
        "memory: arrivals after which a past observation counts e times less", "gain over not forgetting"
    )
    for i, hazard in enumerate(dict.fromkeys(row.hazard for row in rows)):
        mine = [row for row in rows if row.hazard == hazard and row.memory < 1]
        length = [-1.0 / np.log(row.memory) for row in mine]
        spread = [
            [row.gained.mean - row.gained.lower for row in mine],
            [row.gained.upper - row.gained.mean for row in mine],
        ]
        often = "p never changes" if hazard == 0 else f"p changes every {1 / hazard:,.0f} arrivals"
        axes.errorbar(length, [row.gained.mean for row in mine], yerr=spread, label=often, capsize=3, **_line(i))
    axes.axhline(0.0, color=INK, linewidth=0.8)
    _log_arrivals(axes)
    _legend(axes)
    return _done(figure, path)


def _points(axes: Axes, simulation: Simulation, label: str, i: int) -> None:
    ends = simulation.checkpoints
    middle = (np.concatenate([[1], ends[:-1] + 1]) + ends) / 2
    mean, lower, upper = _along(simulation.acceptance_over_time(label))
    keep = np.unique(np.searchsorted(middle, np.geomspace(1, middle[-1], 16)).clip(max=middle.size - 1))
    axes.errorbar(
        middle[keep],
        mean[keep],
        yerr=[(mean - lower)[keep], (upper - mean)[keep]],
        fmt="o",
        color=COLOURS[i % len(COLOURS)],
        markersize=3.5,
        capsize=2,
    )


def _along(estimates: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    return (
        np.array([each.mean for each in estimates]),
        np.array([each.lower for each in estimates]),
        np.array([each.upper for each in estimates]),
    )


def _line(i: int) -> dict[str, Any]:
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": STYLES[i % len(STYLES)], "linewidth": 1.8}


def _panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    return canvas(count, 7.6 if count == 1 else 5.5, height + 0.6)


def _canvas(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure, panels = _panels(1, 4.0)
    panels[0].set_xlabel(x_label)
    panels[0].set_ylabel(y_label)
    return figure, panels[0]


def _log_arrivals(axes: Axes) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _legend(axes: Axes) -> None:
    axes.legend(frameon=False, loc="best", fontsize=9)


def _done(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        save(figure, path)
    return figure
