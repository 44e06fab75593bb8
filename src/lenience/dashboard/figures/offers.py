"""The chart of offers: which amounts and break-evens a segment accepts today.

The horizontal axis is the amount at stake, the vertical axis the break-even. Below the expected success rate every
amount pays by itself. Between it and the curve, small amounts are accepted to learn. Dots are the offers that the
policy expects, larger where they are more frequent. Small marks are the offers of recent applicants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from lenience.core.formatting import percent
from lenience.core.money import Money
from lenience.dashboard.read_models.accepted_offers import AcceptedOffers, RecentOffer
from lenience.reports.canvas import Canvas, Point, log_ticks, percent_ticks

PLACES = 120
LARGEST_DOT, SMALLEST_DOT = 13.0, 3.5
MOST_DOTS = 400  # offers of a version that are drawn, the most frequent first


def pictures(name: str, accepted: AcceptedOffers, recent: Sequence[RecentOffer]) -> list[Markup]:
    """Draw the chart of a segment, wide and narrow."""
    return [_drawn(name, accepted, recent, narrow) for narrow in (False, True)]


def _drawn(name: str, accepted: AcceptedOffers, recent: Sequence[RecentOffer], narrow: bool) -> Markup:
    money, rate = accepted.money, accepted.rate
    dots = _dots(accepted)
    amounts = [amount for amount, _, _ in dots] + [offer.amount for offer in recent]
    costs = [cost for _, cost, _ in dots] + [offer.cost for offer in recent]
    ends = (min(amounts) / 2.5, max(amounts) * 2.5)
    low = max(math.floor(10 * min([*costs, rate]) - 0.4) / 10, 0.0)
    high = min(math.ceil(10 * max([*costs, rate]) + 0.4) / 10, 1.0)
    canvas = Canvas(440 if narrow else 960, 360 if narrow else 380, ends, (low, high), log_x=True)
    across = [float(amount) for amount in np.geomspace(*ends, PLACES)]
    edge = [(amount, accepted.highest(amount)) for amount in across]
    pays = [(amount, min(accepted.paying(amount), top)) for amount, top in edge]
    foot = [(ends[0], low), (ends[1], low)]
    canvas.area(edge, pays, "lenient", "Accepted to learn: the outcome is worth more than the expected loss")
    canvas.area(pays, foot, "paying", "Accepted: the expected profit is above 0")
    canvas.vertical_axis(percent_ticks(low, high), "break-even success rate")
    ticks = [(value, _short(money, value)) for value, _ in log_ticks(*ends, 5 if narrow else 9)]
    canvas.horizontal_axis(ticks, "gain plus loss of the offer" + (f", {money.currency}" if money.currency else ""))
    canvas.line([(ends[0], rate), (ends[1], rate)], "even", f"Expected success rate {percent(rate)}")
    canvas.line([(amount, top) for amount, top in edge if low < top < high], "boundary", "Accepted below this line")
    for amount, cost, share in dots:
        radius = max(LARGEST_DOT * math.sqrt(share / max(one[2] for one in dots)), SMALLEST_DOT)
        words = f"{money.format(amount)} at a break-even of {percent(cost)}: {percent(share)} of applicants expected"
        canvas.dot((amount, cost), "expected", words, radius)
    for offer in recent:
        _mark(canvas, offer, money)
    right = canvas.width - canvas.right - 4
    above = canvas.y(rate) > canvas.top + 24
    canvas.text(
        right,
        canvas.y(rate) + (-6 if above else 15),
        f"expected success rate {percent(rate)}",
        "note even",
        "end",
    )
    if not narrow and canvas.height - canvas.bottom - canvas.y(min(top for _, top in pays)) > 40:
        canvas.text(canvas.left + 10, canvas.height - canvas.bottom - 10, "any amount", "note paying")
    kind = "narrow" if narrow else "wide"
    return canvas.drawn(f"Offers that {name} accepts", accepted.sentence, kind)


def _dots(accepted: AcceptedOffers) -> list[tuple[float, float, float]]:
    """Return the amount, the break-even and the share of each offer that is expected, the most frequent first."""
    offers = accepted.offers
    rows = zip(offers.amount, offers.cost, offers.menu_of, strict=True)
    dots = [(amount, cost, offers.share[menu]) for amount, cost, menu in rows if offers.share[menu] > 0.0]
    return sorted(dots, key=lambda dot: -dot[2])[:MOST_DOTS]


def _mark(canvas: Canvas, offer: RecentOffer, money: Money) -> None:
    """Draw a recent offer: an upward triangle if it was accepted, a cross if not."""
    x, y = canvas.x(offer.amount), canvas.y(offer.cost)
    word = "accepted" if offer.accepted else "rejected"
    shape = (
        _path([(x, y - 4.5), (x + 4.2, y + 3), (x - 4.2, y + 3)]) + "Z"
        if offer.accepted
        else _path([(x - 3.5, y - 3.5), (x + 3.5, y + 3.5)]) + _path([(x - 3.5, y + 3.5), (x + 3.5, y - 3.5)])
    )
    title = f"{money.format(offer.amount)} at a break-even of {percent(offer.cost)}: {word}"
    canvas.add(f'<path class="recent {word}" d="{shape}"><title>{escape(title)}</title></path>')


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _short(money: Money, value: float) -> str:
    """Return a round amount for an axis.

    >>> _short(Money(1.0, "$"), 2000.0), _short(Money(1.0, "EUR"), 5e6), _short(Money(1.0, ""), 0.5)
    ('$2,000', '5 m', '0.5')
    """
    sign = money.currency if money.currency and not money.currency[-1].isalpha() else ""
    for size, unit in ((1e9, " bn"), (1e6, " m")):
        if value >= size:
            return f"{sign}{value / size:g}{unit}"
    return f"{sign}{value:,.10g}"
