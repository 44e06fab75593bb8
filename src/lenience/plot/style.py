"""The common style of all figures, and how to save one. Figures are drawn without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lenience.core.errors import InputError
from lenience.core.money import Money

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
# The colours of Okabe and Ito (2008), which colour-blind readers can tell apart.
INK, BLUE, ORANGE, GREEN = "#1f2933", "#0072b2", "#e69f00", "#009e73"
RED, PURPLE, SKY, GREY = "#d55e00", "#cc79a7", "#56b4e9", "#999999"


def save(figure: Figure, path: str | Path) -> Path:
    """Save a figure to a file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or Path
        The file name. Its ending selects the format: .png, .svg or .pdf.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InputError
        If the ending is another one, or the folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> figure, panels = canvas(1, 4, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(save(figure, f"{folder}/empty.svg").name)
    empty.svg
    """
    target = check_path(path)
    figure.savefig(target, dpi=160)
    return target


def check_path(path: str | Path, field: str = "output") -> Path:
    """Check the path of a figure before anything is drawn.

    Parameters
    ----------
    path : str or Path
        The file name that the figure is to have.
    field : str, optional
        The name of the option or parameter, for the error.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    InputError
        If the ending is not .png, .svg or .pdf, or the folder does not exist.

    Examples
    --------
    >>> check_path("figure.bmp")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: output must be a file name ending in .png, .svg, .pdf, not 'figure.bmp'
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InputError(field, str(path), f"a file name ending in {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise InputError(field, str(target.parent), "in a folder that exists", code="missing_file")
    return target


def label_amounts(axis: Axis, name: str, money: Money) -> None:
    """Label an axis of amounts with their unit; amounts of money have thousands separators.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        The axis.
    name : str
        What the amounts are.
    money : Money
        How to show them.

    Examples
    --------
    >>> figure, (axes,) = canvas(1, 4, 3)
    >>> label_amounts(axes.yaxis, "value", Money(6400, "$"))
    >>> axes.get_ylabel(), axes.yaxis.get_major_formatter()(-12500.0, 0)
    ('value, $', '−12,500')
    """
    axis.set_label_text(money.axis_label(name))
    if money.known:
        axis.set_major_formatter(lambda amount, _: f"{amount:,.10g}".replace("-", "−"))
        if axis is axis.axes.xaxis:  # long labels side by side need room
            axis.axes.locator_params(axis="x", nbins=4)


def canvas(panels: int, width: float, height: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Create an empty figure with rows of panels side by side, each of the given width and height in inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise InputError.missing_package("figures", "matplotlib", "plot") from error
    figure = Figure(figsize=(width * panels, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, panels, position + 1) for position in range(rows * panels)]
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.6)
    return figure, axes
