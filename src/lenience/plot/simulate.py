"""Figures of simulations: acceptance by arrival, policies compared, regret over time.

Each function returns a matplotlib figure and saves it if given a path. Colours are those of Okabe and Ito (2008), which
colour-blind readers can tell apart; lines differ in style as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.money import UNITS, Money
from lenience.core.validation import having, listed, mapped
from lenience.plot.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, canvas, label_amounts, save
from lenience.simulation.result import REWARDS

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
    "behind": "behind the",  # the name of the baseline follows
    "accepted": "number accepted",
    "shut_out": "probability of rejecting p > c for good",
    "learning_cost": "cost of learning (lowest point of the account)",
}

SIMULATION = "a Simulation, the result of compare_policies"


def plot_acceptance_by_arrival(
    curves: Mapping[str, ByArrival], simulation: Simulation | None = None, path: str | Path | None = None
) -> Figure:
    """Plot the exact probability that the i-th arrival is accepted.

    Parameters
    ----------
    curves : mapping of str to ByArrival
        The curves by name, as returned by :func:`~lenience.analysis.acceptance_by_arrival.acceptance_by_arrival`.
    simulation : Simulation, optional
        A simulation of policies with the same names. It is drawn as points with 95% intervals.
    path : str or Path, optional
        Where to save the figure; its ending selects the format.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. The arrival axis is logarithmic.

    Raises
    ------
    InputError
        If ``curves`` is not such a mapping, or the path is invalid.

    Examples
    --------
    >>> from lenience import Belief, Discounted, acceptance_by_arrival
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> figure = plot_acceptance_by_arrival({"optimum": acceptance_by_arrival(policy, 100, p=0.9)})
    >>> figure.axes[0].get_xlabel()
    'arrival i'
    """
    mapped("curves", curves, "a mapping of names to results of acceptance_by_arrival")
    for curve in curves.values():
        having("curves", curve, "acceptance", "a result of acceptance_by_arrival")
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
    simulation: Simulation,
    metrics: Sequence[str] = ("discounted", "behind"),
    path: str | Path | None = None,
    money: Money = UNITS,
) -> Figure:
    """Plot policies side by side with 95% intervals, one panel per metric.

    Parameters
    ----------
    simulation : Simulation
        The comparison, as returned by :func:`~lenience.simulation.compare.compare_policies`.
    metrics : sequence of str, optional
        The metrics to show, e.g. "discounted", "behind", "regret", "accepted" or "shut_out".
    path : str or Path, optional
        Where to save the figure; its ending selects the format.
    money : Money, optional
        How to show rewards; by default in units of gain + loss.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. The policy with the largest expected reward is on top.

    Raises
    ------
    InputError
        If a metric is unknown, or the path is invalid.

    Examples
    --------
    >>> from lenience import compare_policies
    >>> from lenience.policies import Greedy
    >>> from lenience.simulation import Bernoulli
    >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
    >>> len(plot_comparison(simulation).axes)
    2
    """
    having("simulation", simulation, "checkpoints", SIMULATION)
    requested = listed("metrics", metrics, f"a list of names among {', '.join(TITLES)}")
    chosen = [metric for metric in requested if metric != "behind" or simulation.baseline is not None]
    for metric in chosen:
        if metric not in TITLES:
            raise InputError("metrics", metric, f"names among {', '.join(TITLES)}")
    names = sorted(simulation.policies, key=lambda name: simulation.estimate(name, "expected").mean)
    figure, panels = _panels(len(chosen), 0.9 + 0.36 * len(names))
    for axes, metric in zip(panels, chosen, strict=True):
        scale = money.amount(1.0) if metric in REWARDS else 1.0
        for row, name in enumerate(names):
            estimate = simulation.behind(name) if metric == "behind" else simulation.estimate(name, metric)
            spread = [[scale * (estimate.mean - estimate.lower)], [scale * (estimate.upper - estimate.mean)]]
            colour = COLOURS[1] if name == simulation.baseline else COLOURS[0]
            axes.errorbar(scale * estimate.mean, row, xerr=spread, fmt="o", color=colour, capsize=3, markersize=5)
        title = f"{TITLES[metric]} {simulation.baseline}" if metric == "behind" else TITLES[metric]
        axes.set_xlabel(f"{title} (95% interval)")
        if money.known and metric in REWARDS:
            label_amounts(axes.xaxis, f"{title} (95% interval)", money)
        axes.set_yticks(range(len(names)), names if axes is panels[0] else [""] * len(names))
        axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
        axes.grid(visible=False, axis="y")
        axes.margins(y=0.08)
    return _done(figure, path)


def plot_regret_over_time(simulation: Simulation, path: str | Path | None = None) -> Figure:
    """Plot the undiscounted regret from the first arrival on, with 95% bands.

    Parameters
    ----------
    simulation : Simulation
        The comparison, as returned by :func:`~lenience.simulation.compare.compare_policies`.
    path : str or Path, optional
        Where to save the figure; its ending selects the format.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. Regret is measured against a policy that knows p.

    Raises
    ------
    InputError
        If ``simulation`` is not a Simulation, or the path is invalid.

    Examples
    --------
    >>> from lenience import compare_policies
    >>> from lenience.policies import Greedy
    >>> from lenience.simulation import Bernoulli
    >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
    >>> len(plot_regret_over_time(simulation).axes[0].lines)
    2
    """
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
    """Plot what a policy that forgets earns beyond the optimum without drift.

    Parameters
    ----------
    rows : sequence of Drift
        The results, as returned by :func:`~lenience.analysis.drift.drift_study`.
    path : str or Path, optional
        Where to save the figure; its ending selects the format.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: the gain against the length of the memory, one line per hazard.

    Raises
    ------
    InputError
        If ``rows`` does not come from a drift study, or the path is invalid.

    Examples
    --------
    >>> from lenience import Belief
    >>> from lenience.analysis import drift_study
    >>> rows = drift_study(0.5, 0.99, Belief(2, 1), [0.0, 0.02], [0.97], horizon=50, replications=20)
    >>> plot_drift(rows).axes[0].get_ylabel()
    'gain over not forgetting'
    """
    for row in listed("rows", rows, "the result of drift_study"):
        having("rows", row, "hazard", "the result of drift_study")
    figure, axes = _canvas(
        "memory: arrivals after which a past observation counts e times less", "gain over not forgetting"
    )
    for i, hazard in enumerate(dict.fromkeys(row.hazard for row in rows)):
        at_hazard = [row for row in rows if row.hazard == hazard and row.memory < 1]
        length = [-1.0 / np.log(row.memory) for row in at_hazard]
        spread = [
            [row.gained.mean - row.gained.lower for row in at_hazard],
            [row.gained.upper - row.gained.mean for row in at_hazard],
        ]
        often = "p never changes" if hazard == 0 else f"p changes every {1 / hazard:,.0f} arrivals"
        axes.errorbar(length, [row.gained.mean for row in at_hazard], yerr=spread, label=often, capsize=3, **_line(i))
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
