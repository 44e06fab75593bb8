"""The charts and the style sheet of the reports."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from lenience.reports.charts import LETTER, SERIES_STYLES, IntervalRow, LineSeries, interval_chart, line_chart

STYLE = files("lenience.reports").joinpath("templates", "report.css").read_text(encoding="utf-8")


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]


def test_lines_span_the_plot() -> None:
    picture = line_chart([LineSeries("a", [1, 10, 100], [0.0, 0.5, 1.0])], "x", "y", log_x=True)
    [path] = re.findall(r'class="line series-0" d="([^"]+)"', picture)
    assert places(path) == [(56.0, 284.0), (257.0, 149.0), (458.0, 14.0)]


@pytest.mark.parametrize("values", [[0.0, 0.13, 0.97], [-0.31, 0.2, 1.03], [5.0, 5.0, 5.0]])
def test_no_line_leaves_the_labelled_range(values: list[float]) -> None:
    picture = line_chart([LineSeries("a", [0, 1, 2], values)], "x", "y")
    labels = [float(text.replace("−", "-")) for text in re.findall(r'text-anchor="end">(−?[\d.]+)</text>', picture)]
    assert min(labels) <= min(values)
    assert max(labels) >= max(values)


def test_series_differ_by_colour_and_by_dashes() -> None:
    picture = line_chart([LineSeries(f"{i}", [0, 1], [0, i]) for i in range(SERIES_STYLES)], "x", "y")
    assert len(set(re.findall(r'class="line (series-\d)" d=', picture))) == SERIES_STYLES
    looks = re.findall(r"svg \.series-(\d) \{ stroke: var\((--c\d)\); stroke-dasharray: ([\w ]+); \}", STYLE)
    assert [len({look[i] for look in looks}) for i in range(3)] == [SERIES_STYLES] * 3
    themes = re.findall(r":root \{.*?\}", STYLE, re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        assert len(set(re.findall(r"--c\d: (#\w+)", theme))) == SERIES_STYLES


def test_intervals_are_drawn_to_scale_and_names_are_escaped() -> None:
    row = IntervalRow("<b> a name that is too long for its column", 0.5, 0.25, 1.0, 0.75, "reject", "more & more")
    picture = interval_chart([row], [(0.0, "0"), (1.0, "1")], (0.0, 1.0), [(0.8, "break-even")], longest=12)
    assert "&lt;b&gt; a name …" in picture
    assert "more &amp; more" in picture
    left = float(re.findall(r'class="axis" x1="([\d.]+)"', picture)[0])
    inner = 720 - 22 - left
    [bar] = re.findall(r'class="line range reject" d="([^"]+)"', picture)
    assert [x for x, _ in places(bar)] == pytest.approx([left + 0.25 * inner, left + inner], abs=0.06)
    [tick] = re.findall(r'class="line minimum" d="([^"]+)"', picture)
    assert {x for x, _ in places(tick)} == {round(left + 0.75 * inner, 1)}


def test_long_labels_leave_room_for_the_title_of_the_axis() -> None:
    picture = line_chart([LineSeries("a", [0, 1], [-1e7, 3e7])], "x", "Value, $")
    (place,) = {float(x) for x in re.findall(r'<text class="ticks" x="([\d.]+)"[^>]*text-anchor="end"', picture)}
    longest = max(len(text) for text in re.findall(r'text-anchor="end">([^<]+)</text>', picture))
    assert place - LETTER * longest > 12  # the title stands at 12
