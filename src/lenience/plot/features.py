"""Figures of replays: the reward of each policy over time, and how the policies compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lenience.core.money import Money
from lenience.plot.style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SKY, canvas, label_amounts
from lenience.simulation.replay_result import ReplayResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, "#999933", "#882255", "#7a4b1e", "#888888")
# Each curve has its own dashes as well as its colour, so that curves that overlap can be told apart without colour.
DASHES: tuple[Any, ...] = (
    "-", "--", "-.", ":", (0, (8, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 3)), (0, (6, 2, 2, 2)), (0, (1, 3)),
)  # fmt: skip


def replay_figure(result: ReplayResult, title: str, money: Money | None = None) -> Figure:
    """Plot total reward against arrivals, and the discounted reward of each policy with its 95% interval.

    A replay in order of time also gets the success rate, and what the first policy accepted, over time.

    Rewards are shown in the given money, by default in that of the objective.
    """
    figure, (left, right, *others) = canvas(3 if result.periods else 2, 5.4, 4.4)
    shown = money or result.objective.money
    _along(left, result, shown)
    _beside(right, result, shown)
    for axes in others:
        _over_time(axes, result)
    figure.suptitle(title, fontsize=10)
    return figure


def _along(left: Axes, result: ReplayResult, money: Money) -> None:
    unit = money.amount(1.0)
    for i, outcome in enumerate(result.policies):
        first = outcome is result.policies[0]
        left.plot(
            result.marks, unit * outcome.curve, color=COLOURS[i % len(COLOURS)], linestyle=DASHES[i % len(DASHES)],
            linewidth=2.4 if first else 1.5, label=outcome.policy, zorder=3 if first else 2,
        )  # fmt: skip
    left.set_xscale("log")
    left.axhline(0, color=INK, linewidth=0.8)
    left.set_xlabel("arrivals")
    label_amounts(left.yaxis, "total reward (not discounted)", money)
    left.legend(frameon=False, fontsize=7, loc="best", handlelength=4)


def _over_time(axes: Axes, result: ReplayResult) -> None:
    """Plot the success rate of all arrivals, and what the first policy accepted, by period."""
    places, ours = np.arange(len(result.periods)), result.policies[0].policy
    accepted = [each.success_of_accepted[ours] for each in result.periods]
    for label, values, colour, dash in (
        ("success rate of all arrivals", [each.success_rate for each in result.periods], INK, "-"),
        (f"success rate of those {ours} accepted", [np.nan if a is None else a for a in accepted], BLUE, "--"),
        (f"share accepted by {ours}", [each.accepted[ours] for each in result.periods], ORANGE, ":"),
    ):
        axes.plot(places, 100 * np.array(values), color=colour, linestyle=dash, marker="o", markersize=3, label=label)
    axes.set_xticks(places, [each.period for each in result.periods], rotation=60, ha="right", fontsize=7)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("%")
    axes.legend(frameon=False, fontsize=7, loc="best", handlelength=4)


def _beside(right: Axes, result: ReplayResult, money: Money) -> None:
    unit = money.amount(1.0)
    known = unit * result.known
    places = np.arange(len(result.policies))[::-1]
    for place, outcome, colour in zip(places, result.policies, COLOURS * len(result.policies), strict=False):
        width = outcome.half_width if np.isfinite(outcome.half_width) else 0.0
        right.errorbar(unit * outcome.mean, place, xerr=unit * width, fmt="o", color=colour, capsize=3, markersize=5)
    right.axvline(known, color=INK, linestyle="--", linewidth=1)
    right.annotate(
        "all outcomes known", (known, -0.6), (-5, 0), textcoords="offset points", fontsize=7, ha="right",
        va="center", color=INK,
    )  # fmt: skip
    right.set_yticks(places, [outcome.policy for outcome in result.policies])
    right.set_ylim(-0.9, len(result.policies) - 0.4)
    label_amounts(right.xaxis, "discounted reward with 95% interval", money)
