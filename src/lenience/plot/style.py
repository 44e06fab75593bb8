"""How figures look, and how they are written: one style for all, drawn with nothing on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lenience.core.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which remain distinct for the colour-blind.
INK, BLUE, ORANGE, GREEN = "#1f2933", "#0072b2", "#e69f00", "#009e73"
RED, PURPLE, SKY, GREY = "#d55e00", "#cc79a7", "#56b4e9", "#999999"


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure to a file whose ending says the format."""
    target = check_path(path)
    figure.savefig(target, dpi=160)
    return target


def check_path(path: str | Path, field: str = "output") -> Path:
    """The path of a figure, or an error before anything is drawn."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InputError(field, str(path), f"a file name ending in {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise InputError(field, str(target.parent), "in a folder that exists", code="missing_file")
    return target


def canvas(panels: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """An empty figure of so many panels side by side, each of this width and height in inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise InputError.missing_package("figures", "matplotlib", "plot") from error
    figure = Figure(figsize=(width * panels, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(1, panels, position + 1) for position in range(panels)]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(alpha=0.25, linewidth=0.6)
    return figure, axes
