"""The figures of replays: what each policy has earned after so many arrivals, and how they compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lenience.plot.style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SKY, canvas
from lenience.simulation.replay import ReplayResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, "#999933", "#882255", "#7a4b1e", "#888888")
# Beside its colour each curve has its own dashes, for curves that lie on one another and for those who see no colours.
DASHES: tuple[Any, ...] = (
    "-", "--", "-.", ":", (0, (8, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 3)), (0, (6, 2, 2, 2)), (0, (1, 3)),
)  # fmt: skip


def replay_figure(result: ReplayResult, title: str) -> Figure:
    """Total reward against arrivals, and the discounted reward of each policy with its 95 % interval."""
    figure, (left, right) = canvas(2, 5.4, 4.4)
    _along(left, result)
    _beside(right, result)
    figure.suptitle(title, fontsize=10)
    return figure


def replay_panels(result: ReplayResult) -> list[Figure]:
    """The same as two figures, small enough to be read one below the other on a telephone."""
    figures = []
    for draw in (_along, _beside):
        figure, (axes,) = canvas(1, 4.4, 4.4)
        draw(axes, result, small=8.5)
        figures.append(figure)
    return figures


def _along(left: Axes, result: ReplayResult, small: float = 7) -> None:
    for i, outcome in enumerate(result.policies):
        first = outcome is result.policies[0]
        left.plot(
            result.marks, outcome.curve, color=COLOURS[i % len(COLOURS)], linestyle=DASHES[i % len(DASHES)],
            linewidth=2.4 if first else 1.5, label=outcome.policy, zorder=3 if first else 2,
        )  # fmt: skip
    left.set_xscale("log")
    left.axhline(0, color=INK, linewidth=0.8)
    left.set_xlabel("arrivals")
    left.set_ylabel("total reward, not discounted, mean over runs")
    left.legend(frameon=False, fontsize=small, loc="best", handlelength=4)


def _beside(right: Axes, result: ReplayResult, small: float = 7) -> None:
    places = np.arange(len(result.policies))[::-1]
    for place, outcome, colour in zip(places, result.policies, COLOURS * len(result.policies), strict=False):
        width = outcome.half_width if np.isfinite(outcome.half_width) else 0.0
        right.errorbar(outcome.mean, place, xerr=width, fmt="o", color=colour, capsize=3, markersize=5)
    right.axvline(result.known, color=INK, linestyle="--", linewidth=1)
    right.annotate(
        "all outcomes known", (result.known, -0.6), (-5, 0), textcoords="offset points", fontsize=small, ha="right",
        va="center", color=INK,
    )  # fmt: skip
    right.set_yticks(places, [outcome.policy for outcome in result.policies])
    right.set_ylim(-0.9, len(result.policies) - 0.4)
    right.set_xlabel("discounted reward, 95 % interval")
