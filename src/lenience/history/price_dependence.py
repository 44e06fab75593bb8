"""Whether the success rate inside a segment depends on the amount or on the price, and bands of prices.

The model for offers has one success rate a segment: it must not depend on the amount at stake or on the break-even.
Real prices often follow the risk. Then the offers that look best are those of the applicants who fail most.

The test. In every segment, the labels are divided at the segment's own mean: break-evens above it and below it, and the
same for the logarithm of the amount. The difference d of the two success rates is averaged over the segments with the
weights of Mantel and Haenszel, w = n₁n₂/(n₁ + n₂), which are those of the precision where the rates are alike:

    D = Σ w d / Σ w,     Var D = Σ w² (p₁(1 − p₁)/(n₁ − 1) + p₂(1 − p₂)/(n₂ − 1)) / (Σ w)².

The engine that holds the rows counts; four numbers of each segment are returned. There are two tests, so each interval
has 97.5%: both hold together with 95%.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lenience.core.formatting import even_percent
from lenience.core.validation import whole
from lenience.files.economics import GAIN, LOSS

if TYPE_CHECKING:
    import ibis.expr.types as ir

BAND = "break-even"  # a derived column: the band of a row's break-even
STANDARD_ERRORS = 2.2414  # in half an interval of 97.5%
NOTABLE = 0.005  # a smaller difference of rates is not worth a warning
MOST_BANDS = 20
MOST_PENDING = 0.05  # of the acceptances that are compared
HALVES = {"break_even": "break-even", "amount": "amount at stake"}


class PriceDependence(msgspec.Struct, frozen=True):
    """How much success inside segments depends on the break-even or on the amount at stake.

    Parameters
    ----------
    by
        ``break_even`` or ``amount``.
    low
        The success rate of those below their segment's mean, averaged over the segments.
    high
        The success rate of those above it.
    lower, upper
        The interval of the difference, ``high`` less ``low``. Both tests together hold with 95%.

    Examples
    --------
    >>> print(PriceDependence("break_even", 0.937, 0.956, 0.012, 0.026).describe())
    Inside segments, applicants with a lower break-even succeed less often: 93.7% against 95.6% of those with a higher
    one (a difference of 1.2 to 2.6 points).
    """

    by: Literal["break_even", "amount"]
    low: float
    high: float
    lower: float
    upper: float

    @property
    def difference(self) -> float:
        """How much more often those above their segment's mean succeed."""
        return self.high - self.low

    @property
    def notable(self) -> bool:
        """Whether there is a difference, and a policy would notice it."""
        return (self.lower > 0.0 or self.upper < 0.0) and abs(self.difference) >= NOTABLE

    def describe(self) -> str:
        """Describe the difference.

        Returns
        -------
        str
            One sentence.
        """
        ends = sorted(100 * abs(end) for end in (self.lower, self.upper))
        side = "less" if self.difference > 0 else "more"
        name = HALVES[self.by]
        return (
            f"Inside segments, applicants with a lower {name} succeed {side} often: {even_percent(self.low)} against "
            f"{even_percent(self.high)} of those with a higher one (a difference of {ends[0]:.1f} to {ends[1]:.1f} "
            "points)."
        )


def price_dependence(backend: Any, used: ir.Table, names: Sequence[str]) -> tuple[PriceDependence, ...]:
    """Return how success depends on break-even and amount. ``used`` has gain, loss, known (label) and good.

    Failures become known earlier than successes, and those of long loans later than those of short ones. So if there
    are dates, only the months whose outcomes are nearly all known are compared.
    """
    labels = used.filter(used.known)
    if "month" in used.columns:
        last = _last_mature_month(backend, used)
        if last is None:
            return ()
        labels = labels.filter(labels.month <= last)
    stake = labels.gain + labels.loss
    valued = labels.mutate(break_even=labels.loss / stake, amount=stake.ln())
    means = valued.group_by(list(names)).agg(mean_break_even=valued.break_even.mean(), mean_amount=valued.amount.mean())
    joined = valued.join(means, list(names))
    halves = joined.mutate(
        dear=joined.break_even > joined.mean_break_even + 1e-12, large=joined.amount > joined.mean_amount + 1e-12
    )
    counts = halves.group_by([*names, "dear", "large"]).agg(rows=halves.count(), good=halves.count(where=halves.good))
    cells = backend.to_pyarrow(counts).to_pylist()
    tests = (_test("break_even", "dear", cells, names), _test("amount", "large", cells, names))
    return tuple(test for test in tests if test is not None)


def _last_mature_month(backend: Any, used: ir.Table) -> Any:
    """Return the last month up to which nearly all accepted rows have a label; None if there is none."""
    taken = used.filter(used.accepted)
    months = taken.group_by("month").agg(rows=taken.count(), known=taken.count(where=taken.known)).order_by("month")
    last, rows, pending = None, 0, 0
    for month in backend.to_pyarrow(months).to_pylist():
        rows, pending = rows + month["rows"], pending + month["rows"] - month["known"]
        if pending <= MOST_PENDING * rows:
            last = month["month"]
    return last


def _test(
    by: Literal["break_even", "amount"], half: str, cells: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> PriceDependence | None:
    """Average the differences of all segments; None if no segment has both halves."""
    counts: dict[tuple[str, ...], list[list[float]]] = {}
    for cell in cells:
        own = counts.setdefault(tuple(str(cell[name]) for name in names), [[0.0, 0.0], [0.0, 0.0]])
        own[bool(cell[half])][0] += int(cell["rows"])
        own[bool(cell[half])][1] += int(cell["good"])
    weight = low = high = variance = 0.0
    for (below, good_below), (above, good_above) in counts.values():
        if below < 2 or above < 2:
            continue
        w, p, q = below * above / (below + above), good_below / below, good_above / above
        weight, low, high = weight + w, low + w * p, high + w * q
        variance += w**2 * (p * (1 - p) / (below - 1) + q * (1 - q) / (above - 1))
    if not weight:
        return None
    difference, half_width = (high - low) / weight, STANDARD_ERRORS * math.sqrt(variance) / weight
    return PriceDependence(by, low / weight, high / weight, difference - half_width, difference + half_width)


def with_price_bands(table: ir.Table, segments: Sequence[str], bands: int) -> ir.Table:
    """Add the column :data:`BAND`: bands of each segment's own break-evens, with about as many rows each.

    Band 1 has the lowest break-evens. Equal ones are in the same band, so there may be fewer bands. Rows without valid
    gains and losses get the band "?".
    """
    import ibis

    count = whole("price_bands", bands, least=2, most=MOST_BANDS)
    cost = table[LOSS] / (table[GAIN] + table[LOSS])
    valued = table.mutate(__break_even__=cost, __valued__=cost.notnull())
    place = valued.__break_even__.percent_rank().over(
        group_by=[*segments, "__valued__"], order_by=valued.__break_even__
    )
    band = ibis.least((place * count).floor().cast("int64"), count - 1)
    names = [(band == i, f"break-even {i + 1} of {count}") for i in range(count)]
    banded = valued.mutate(**{BAND: ibis.ifelse(valued.__valued__, ibis.cases(*names, else_="?"), "?")})
    return banded.drop("__break_even__", "__valued__")
