"""The chart of a policy: success rates of segments over time, and the boundary at which a segment stops.

The horizontal axis is the number of observations n, the vertical axis the success rate. The dashed line is the
break-even c. In the shaded zone below it the policy accepts although the rate is below c, because it learns. Below the
zone it rejects for good. Each line is the history of one segment's belief.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from lenience.core.formatting import amount, percent
from lenience.dashboard.read_models.belief_history import Step
from lenience.dashboard.read_models.policy_status import SegmentStatus
from lenience.reports.canvas import Canvas, Point, log_ticks, percent_ticks
from lenience.service.domain.exposure_tables import ExposureTable
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.solved_tables import SolvedTable
from lenience.service.domain.stopping_tables import StoppingTable

LIMITS = (1, 3, 10, 30, 100, 300, 1000)  # exposure limits whose borders are drawn
PLACES = 90


class Boundary:
    """The border between accepting and stopping of one table, over a range of n."""

    def __init__(self, table: SolvedTable, most: float) -> None:
        self.cost = table.lowest_cost
        start = table.prior.n
        rows = table.rows if table.horizon is None else min(table.rows, table.horizon)
        reach = max(int(min(most - start, rows - 1)), 1)
        spread = np.rint(np.geomspace(1, reach + 1, PLACES)).astype(int) - 1
        self.outcomes = np.unique([*range(min(PLACES, reach)), *spread]).tolist()
        self.sizes = [start + k for k in self.outcomes]
        if isinstance(table, StoppingTable) and table.horizon is None and not table.body.curve:
            rates = self._smooth(table)
        elif isinstance(table, OfferTable):
            rates = self._some_offer(table)
        else:
            rates = [table.threshold(0, k) for k in self.outcomes]
        self.stop: list[Point] = list(zip(self.sizes, rates, strict=True))
        self.even: list[Point] = [(size, self.cost) for size in self.sizes]
        self.limits: list[tuple[int, list[Point]]] = []
        if isinstance(table, ExposureTable):
            self.limits = [(limit, self._border(table, limit)) for limit in LIMITS]
            self.stop = self.limits[0][1]

    def _smooth(self, table: StoppingTable) -> list[float]:
        """Return the thresholds as a smooth line that is consistent with every decision, from the decisions alone.

        Each row gives the threshold to within one success. log((c − c_n)/c_n) is nearly straight in log n at both ends,
        so a polynomial of low degree through the midpoints, weighted towards narrow intervals, is close enough.
        """
        size = np.array(self.sizes)
        least = np.array([table.boundary[k] for k in self.outcomes])
        even, discount = self.cost, table.body.objective.discount
        # No threshold is lower than if one outcome revealed the success rate.
        floor = even * (1 - discount) / (1 - discount * even)
        low = np.maximum.accumulate(np.clip(_below(table, least, size), floor, even))
        high = np.minimum.accumulate(np.clip((table.prior.s + least) / size, low, even)[::-1])[::-1]
        room = even - low  # even where the cell reaches the break-even, some leniency remains
        above = np.minimum(high, even - 0.02 * np.maximum(room, 1e-9))
        if size.size < 8:
            return [float(rate) for rate in (low + high) / 2]
        upper, lower = np.log((even - low + 1e-9) / low), np.log((even - above + 1e-9) / above)
        place = np.log(size)
        place = 2 * (place - place[0]) / (place[-1] - place[0]) - 1
        weight = 1 / (upper - lower + 0.05)
        series = np.polynomial.chebyshev.chebfit(place, (upper + lower) / 2, 4, w=weight)
        line = even / (1 + np.exp(np.polynomial.chebyshev.chebval(place, series)))
        return [float(rate) for rate in np.clip(line, low, high)]

    def _some_offer(self, table: OfferTable) -> list[float]:
        """Return the rate above which some offer is accepted.

        The lattice gives it to within one success, as a sawtooth. The line lies between the ends of each step, and it
        rises where the steps allow that.
        """
        least = [table.boundary[k] for k in self.outcomes]
        pairs = list(zip(least, self.outcomes, strict=True))
        # Where every reachable rate is accepted, nothing is known but that the line is lower: extend it.
        first = next((table.rate(s - 1, k - s + 1) for s, k in pairs if s > 0), 0.0)
        below = np.array([table.rate(s - 1, k - s + 1) if s > 0 else first for s, k in pairs])
        above = np.array([table.rate(s, k - s) if s <= k else self.cost for s, k in pairs])
        low = np.maximum.accumulate(np.minimum(below, self.cost))
        high = np.minimum.accumulate(np.clip(above, below, self.cost)[::-1])[::-1]
        middle = np.where(low <= high, (low + high) / 2, (below + above) / 2)
        return [min(float(rate), self.cost) for rate in middle]

    def _border(self, table: ExposureTable, limit: int) -> list[Point]:
        """Return the lowest rate at which ``limit`` outcomes may be pending, at most the break-even.

        The lattice gives it to within one success, as a sawtooth. The border rises with n, so it lies above all earlier
        lower ends and below all later upper ends. The midline of that range is consistent with every decision.
        """
        size = np.array(self.sizes)
        least = np.array([self._least(table, limit, k) for k in self.outcomes])
        # Where every reachable rate allows as many, the border is above the one without delay.
        reached = np.where(least > 0, 0.0, [table.at_once(n) for n in self.sizes])
        low = np.maximum.accumulate(np.maximum(_below(table, least, size), reached))
        high = np.minimum.accumulate(((table.prior.s + least) / size)[::-1])[::-1]
        middle = np.where(low <= high, (low + high) / 2, (table.prior.s + least - 0.5) / size)
        return [(n, min(float(rate), self.cost)) for n, rate in zip(self.sizes, middle, strict=True)]

    def _least(self, table: ExposureTable, limit: int, k: int) -> int:
        """Return the fewest successes in k outcomes at which ``limit`` outcomes may be pending."""
        low, high = 0, k + 1  # limits rise with the successes
        while low < high:
            middle = (low + high) // 2
            allowed = table.limit(middle, k - middle)
            low, high = (low, middle) if allowed is None or allowed >= limit else (middle + 1, high)
        return low


def _below(table: SolvedTable, least: NDArray[np.int64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the highest rate of each row that stops, or 0 if none does."""
    return np.where(least > 0, np.maximum((table.prior.s + least - 1) / size, 0.0), 0.0)


def picture(
    shown: SegmentStatus,
    paths: Mapping[str, Sequence[Step]],
    others: Sequence[SegmentStatus],
    *,
    narrow: bool = False,
) -> Markup:
    """Draw one segment, with the history of the others behind it."""
    everyone = [shown, *others]
    start = shown.rule.table.prior.n
    most = max(1.4 * max(segment.belief.n for segment in everyone), 30 * start, 60)
    boundary = Boundary(shown.rule.table, most)
    ways = {segment.name: _way(segment, paths.get(segment.name, ())) for segment in everyone}
    rates = [rate for way in ways.values() for _, rate in way] + [rate for _, rate in boundary.stop]
    low = max(0.0, np.floor(10 * min([*rates, shown.cost - 0.1]) - 0.3) / 10)
    left = min(segment.rule.table.prior.n for segment in everyone)
    canvas = Canvas(440 if narrow else 960, 380 if narrow else 430, (left, most), (float(low), 1.0), log_x=True)
    last = boundary.sizes[-1]
    foot = [(boundary.sizes[0], float(low)), (last, float(low))]
    canvas.area(boundary.stop, foot, "stop", "Reject for good")
    leniency(canvas, boundary)
    canvas.vertical_axis(percent_ticks(float(low), 1.0), "success rate")
    canvas.horizontal_axis(log_ticks(left, most, 6 if narrow else 9), "evidence: outcomes, including the prior")
    band = _band(shown, paths.get(shown.name, ()))
    canvas.area([(n, high) for n, _, high in band], [(n, below) for n, below, _ in band], "uncertain")
    canvas.line(boundary.stop, "boundary", "Minimum rate: the policy stops at or below it")
    canvas.line([(left, shown.cost), (most, shown.cost)], "even", f"Break-even {percent(shown.cost)}")
    for one in others:
        canvas.line(ways[one.name], "way other", f"{one.name}: {_where(one)}", data_segment=one.name)
        canvas.dot(ways[one.name][-1], f"other {one.mark}", f"{one.name}: {_where(one)}", 3)
    canvas.line(ways[shown.name], "way chosen", f"{shown.name}: {_where(shown)}")
    canvas.dot(ways[shown.name][-1], f"chosen {shown.mark}", f"{shown.name}: {_where(shown)}", 6)
    _words(canvas, boundary, shown, narrow)
    kind = "narrow" if narrow else "wide"
    return canvas.drawn(f"Success rate of {shown.name}", f"{_where(shown)}. {shown.why}", kind)


def sparkline(segment: SegmentStatus, path: Sequence[Step]) -> Markup:
    """Draw the history and the boundary of a segment in the size of a word."""
    start = segment.rule.table.prior.n
    most = max(1.2 * segment.belief.n, 20 * start)
    boundary = Boundary(segment.rule.table, most)
    way = _way(segment, path)
    rates = [rate for _, rate in way] + [rate for _, rate in boundary.stop]
    low = max(0.0, min(rates) - 0.02)
    high = min(1.0, max([*rates, segment.cost]) + 0.02)
    canvas = Canvas(110, 30, (start, most), (low, max(high, low + 0.01)), log_x=True, margins=(2, 4, 2, 2))
    canvas.area(boundary.even, boundary.stop, "lenient")
    canvas.line(boundary.even, "even")
    canvas.line(way, "way chosen")
    canvas.dot(way[-1], f"chosen {segment.mark}", radius=2.5)
    return canvas.drawn(f"History of {segment.name}", _where(segment), "spark")


def leniency(canvas: Canvas, boundary: Boundary) -> None:
    """Draw the zone between boundary and break-even, in steps of the exposure limit if outcomes are late."""
    if not boundary.limits:
        canvas.area(boundary.even, boundary.stop, "lenient", "Benefit of the doubt: accepted to learn")
        return
    borders = [line for _, line in boundary.limits] + [boundary.even]
    for (limit, line), above in zip(boundary.limits, borders[1:], strict=True):
        step = LIMITS.index(limit) + 1
        canvas.area(above, line, f"lenient limit-{step}", f"{limit:,} or more outcomes may be pending, rising upwards")


def _words(canvas: Canvas, boundary: Boundary, shown: SegmentStatus, narrow: bool) -> None:
    right = canvas.width - canvas.right - 4
    lowest = "lowest " if shown.offers is not None and len(set(shown.offers.offers.cost)) > 1 else ""
    canvas.text(right, canvas.y(shown.cost) - 6, f"{lowest}break-even {percent(shown.cost)}", "note even", "end")
    if not narrow:
        corner = canvas.x(boundary.sizes[0]) + 10
        canvas.text(corner, canvas.height - canvas.bottom - 10, "reject for good", "note stop")
        at = min(range(len(boundary.sizes)), key=lambda i: abs(boundary.sizes[i] - 3 * boundary.sizes[0]))
        n, low = boundary.stop[at]
        if canvas.y(low) - canvas.y(shown.cost) > 26 and not boundary.limits:
            middle = (low + shown.cost) / 2
            canvas.label((n, middle), "benefit of the doubt", "note lenient", "middle", dy=4)
    limit_labels(canvas, boundary)


def limit_labels(canvas: Canvas, boundary: Boundary) -> None:
    """Label each step of the zone with the number of outcomes that may be pending there."""
    right = canvas.width - canvas.right - 4
    borders = [line for _, line in boundary.limits[1:]] + [boundary.even]
    placed: list[Point] = []
    for (limit, line), above in zip(boundary.limits, borders, strict=False):
        # Put the label in the middle of the step, where the step is highest.
        high = max(range(len(line)), key=lambda i: canvas.y(line[i][1]) - canvas.y(above[i][1]))
        bottom, top = canvas.y(line[high][1]), canvas.y(above[high][1])
        x, y = canvas.x(line[high][0]) + 3, (bottom + top) / 2 + 4
        free = all(abs(x - at) > 44 or abs(y - height) > 13 for at, height in placed)
        if bottom - top > 12 and x < right - 17 and free:
            canvas.text(x, y, f"{limit:,}+", "note lenient")
            placed.append((x, y))


def _way(segment: SegmentStatus, path: Sequence[Step]) -> list[Point]:
    """Return the belief along the path, up to now."""
    table, counts = segment.rule.table, segment.counts
    start = table.prior.n
    way: list[Point] = [(start, table.prior.mean)]
    for step in path:
        known = step.successes + step.failures
        point = (start + known, table.belief(step.successes, step.failures).mean)
        if point != way[-1]:
            way.append(point)
    now = (start + counts.good + counts.bad, segment.belief.mean)
    return way if way[-1] == now else [*way, now]


def _band(segment: SegmentStatus, path: Sequence[Step]) -> list[tuple[float, float, float]]:
    """Return the 90% interval of the success rate along the path."""
    from scipy.special import betaincinv

    way = _way(segment, path)
    n = np.array([point[0] for point in way])
    s = np.array([point[0] * point[1] for point in way])
    inner = np.clip(s, 1e-9, n - 1e-9)
    low, high = betaincinv(inner, n - inner, 0.05), betaincinv(inner, n - inner, 0.95)
    return [(float(size), float(a), float(b)) for size, a, b in zip(n, low, high, strict=True)]


def _where(segment: SegmentStatus) -> str:
    """Describe where a segment stands."""
    belief = segment.belief
    seen = f"{percent(belief.mean)} after {amount(round(belief.n, 1))} outcomes"
    if segment.offers is not None:
        return f"{seen}, {segment.next}"
    return f"{seen}, minimum rate {percent(segment.verdict.threshold)}: {segment.next}"
