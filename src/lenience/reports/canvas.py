"""The SVG canvas of the reports and the dashboard: two axes, marks in data units, and text.

The canvas sets classes only. The page's style sheet gives them colours, so figures follow the page's dark style.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

Point = tuple[float, float]


class Canvas:
    """Draw a figure mark by mark; later marks lie on top.

    Parameters
    ----------
    width, height : float
        The size of the figure, in the units of the SVG's view box.
    x, y : tuple of float
        The lowest and highest value of each axis.
    log_x : bool, default False
        Whether the horizontal axis is logarithmic.
    margins : tuple of float
        The space around the plot: top, right, bottom, left.

    Examples
    --------
    >>> canvas = Canvas(100, 50, (0, 1), (0, 1), margins=(0, 0, 0, 0))
    >>> canvas.dot((0.5, 0.5), "mean")
    >>> 'cx="50.0" cy="25.0"' in canvas.drawn("A dot", "In the middle")
    True
    """

    def __init__(
        self,
        width: float,
        height: float,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        log_x: bool = False,
        margins: tuple[float, float, float, float] = (16, 16, 44, 62),
    ) -> None:
        self.width, self.height = width, height
        self.top, self.right, self.bottom, self.left = margins
        self.x_range, self.y_range, self.log_x = x, y, log_x
        self._parts: list[str] = []
        self._legend_height = 0.0
        low, high = (math.log(x[0]), math.log(x[1])) if log_x else x
        inner = width - self.left - self.right
        self._low, self._scale = low, inner / (high - low)

    def x(self, value: float) -> float:
        """Return the horizontal place of a value."""
        at = math.log(value) if self.log_x else value
        return round(self.left + (at - self._low) * self._scale, 1)

    def y(self, value: float) -> float:
        """Return the vertical place of a value. Values outside the axis are drawn at its edge."""
        low, high = self.y_range
        inner = self.height - self.top - self.bottom
        return round(self.height - self.bottom - (min(max(value, low), high) - low) / (high - low) * inner, 1)

    def add(self, markup: str) -> None:
        """Add SVG markup."""
        self._parts.append(markup)

    def line(self, points: Iterable[Point], kind: str, title: str = "", **attributes: str) -> None:
        """Draw a line through points."""
        self._shape(self._path(points), f"line {kind}", title, attributes)

    def area(self, upper: Sequence[Point], lower: Sequence[Point], kind: str, title: str = "") -> None:
        """Fill the area between two lines."""
        if upper and lower:
            around = self._path([*upper, *reversed(lower)])
            self._shape(f"{around}Z", f"area {kind}", title, {})

    def dot(self, at: Point, kind: str, title: str = "", radius: float = 4) -> None:
        """Draw a dot."""
        inside = f"<title>{escape(title)}</title>" if title else ""
        x, y = self.x(at[0]), self.y(at[1])
        self.add(f'<circle class="dot {kind}" cx="{x}" cy="{y}" r="{radius:g}">{inside}</circle>')

    def box(self, left: float, right: float, low: float, high: float, kind: str, title: str = "") -> None:
        """Draw a filled box."""
        x, y = self.x(left), self.y(high)
        w, h = max(self.x(right) - x, 0.5), max(self.y(low) - y, 0)
        inside = f"<title>{escape(title)}</title>" if title else ""
        self.add(f'<rect class="box {kind}" x="{x}" y="{y}" width="{w:.1f}" height="{h:.1f}">{inside}</rect>')

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Write text at a place of the canvas, in view-box units."""
        self.add(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>')

    def label(self, at: Point, words: str, kind: str = "", anchor: str = "start", dx: float = 0, dy: float = 0) -> None:
        """Write text at a place in data units."""
        self.text(self.x(at[0]) + dx, self.y(at[1]) + dy, words, kind, anchor)

    def rule(self, value: float, kind: str) -> None:
        """Draw a horizontal line across the figure."""
        y = self.y(value)
        self.add(f'<line class="rule {kind}" x1="{self.left}" x2="{self.width - self.right}" y1="{y}" y2="{y}"/>')

    def horizontal_axis(self, ticks: Iterable[tuple[float, str]], title: str) -> None:
        """Draw ticks with their labels below the figure."""
        foot = self.height - self.bottom
        for value, words in ticks:
            x = self.x(value)
            self.add(f'<line class="tick" x1="{x}" x2="{x}" y1="{foot}" y2="{foot + 4}"/>')
            self.text(x, foot + 17, words, "ticks", "middle")
        self.add(f'<line class="axis" x1="{self.left}" x2="{self.width - self.right}" y1="{foot}" y2="{foot}"/>')
        self.text((self.left + self.width - self.right) / 2, self.height - 6, title, "title", "middle")

    def vertical_axis(self, ticks: Iterable[tuple[float, str]], title: str) -> None:
        """Draw tick labels left of the figure, and faint lines across it."""
        for value, words in ticks:
            self.rule(value, "grid")
            self.text(self.left - 7, self.y(value) + 4, words, "ticks", "end")
        middle = (self.top + self.height - self.bottom) / 2
        self.add(
            f'<text class="title" transform="translate(12 {middle:.1f}) rotate(-90)" text-anchor="middle">'
            f"{escape(title)}</text>"
        )

    def legend(self, entries: Sequence[tuple[str, str]], columns: int = 3) -> None:
        """Add a legend below the figure, where it hides no mark: the class and the label of each line."""
        left = 12.0
        step = (self.width - left) / columns
        for i, (kind, label) in enumerate(entries):
            x, y = left + (i % columns) * step, self.height + 12 + 20 * (i // columns)
            self.add(f'<line class="line {kind}" x1="{x:.1f}" x2="{x + 30:.1f}" y1="{y:g}" y2="{y:g}"/>')
            self.text(x + 36, y + 4, label, "key")
        self._legend_height = 22.0 + 20 * ((len(entries) - 1) // columns)

    def drawn(self, name: str, description: str, kind: str = "") -> Markup:
        """Return the SVG, with the name and description that a screen reader reads out."""
        return Markup(
            f'<svg class="figure {kind}" viewBox="0 0 {self.width:g} {self.height + self._legend_height:g}" role="img" '
            f'aria-label="{escape(name)}. {escape(description)}" preserveAspectRatio="xMidYMid meet">'
            f"{''.join(self._parts)}</svg>"
        )

    def _path(self, points: Iterable[Point]) -> str:
        places = [f"{self.x(x)} {self.y(y)}" for x, y in points]
        return "M" + "L".join(places) if places else ""

    def _shape(self, path: str, kind: str, title: str, attributes: dict[str, str]) -> None:
        if not path or path == "Z":
            return
        inside = f"<title>{escape(title)}</title>" if title else ""
        more = "".join(f' {name.replace("_", "-")}="{escape(value)}"' for name, value in attributes.items())
        self.add(f'<path class="{kind}" d="{path}"{more}>{inside}</path>')


def log_ticks(low: float, high: float, most: int = 9) -> list[tuple[float, str]]:
    """Choose round numbers for a logarithmic axis, with their labels.

    >>> [words for _, words in log_ticks(2, 300)]
    ['2', '5', '10', '20', '50', '100', '200']
    """
    for steps in ((1, 2, 5), (1, 3), (1,)):
        values = [
            step * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for step in steps
            if low <= step * 10.0**power <= high
        ]
        if len(values) <= most:
            break
    return [(value, f"{value:,.10g}") for value in values]


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Choose round numbers for a linear axis.

    >>> linear_ticks(0, 1), linear_ticks(-3, 40)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 10.0, 20.0, 30.0, 40.0])
    """
    span = high - low
    if span <= 0:
        return [low]
    size = 10.0 ** math.floor(math.log10(span / most))
    step = next(size * factor for factor in (1, 2, 5, 10, 20) if span / (size * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def percent_ticks(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Choose round rates for an axis, labelled as percentages.

    >>> [words for _, words in percent_ticks(0.5, 1)]
    ['50%', '60%', '70%', '80%', '90%', '100%']
    """
    return [(value, f"{100 * value:g}%") for value in linear_ticks(low, high, most)]
