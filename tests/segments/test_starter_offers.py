"""Starter offers: which segments a smaller first offer opens."""

from __future__ import annotations

import pytest

from lenience import Belief, Delayed, Discounted, Offers, Segment, Segments
from lenience.data import load_fico
from lenience.segments import starter_offers
from rejections import rejected

SHARES = {"many": 0.6, "some": 0.25, "few": 0.1, "rare": 0.002}


def test_each_fraction_is_judged_by_its_own_problem() -> None:
    """The largest fraction starts and a slightly larger one does not, by the objective of the segment with a menu."""
    cells = Segments.of(SHARES, Discounted(0.8, 0.99), Belief(2, 1))
    rows = {row.name: row for row in starter_offers(cells, fraction=0.3)}
    for cell in cells.cells:
        row = rows[cell.name]
        assert row.starts == cell.own.starts(cell.prior)

        def starts(fraction: float, discount: float = cell.own.discount) -> bool:
            menu = Offers.menu([fraction, 1.0], [0.8, 0.8])
            return Discounted(offers=menu, discount=discount).starts(Belief(2, 1))

        assert row.starts_small == (row.starts or starts(0.3))
        if 0 < row.largest < 1:
            assert starts(row.largest)
            assert not starts(1.02 * row.largest)
    assert [rows[name].largest for name in SHARES] == sorted((row.largest for row in rows.values()), reverse=True)
    assert rows["many"].starts
    assert not rows["some"].starts
    assert rows["rare"].largest == 0.0


def test_a_starter_offer_opens_segments_of_every_group() -> None:
    """FICO at a break-even of 80%, γ = 0.9999: deserving segments that start, before and after, by group."""
    cells = load_fico().cells(bands=10)
    good = [cell for cell in cells if cell.p > 0.8 and cell.group in ("white", "black")]
    rows = starter_offers(
        [Segment(cell.name, cell.share, Discounted(0.8, 0.9999), Belief(2, 1), cell.group) for cell in good]
    )
    count = {group: [row for row in rows if row.group == group] for group in ("white", "black")}
    assert {group: sum(row.starts for row in own) for group, own in count.items()} == {"white": 6, "black": 2}
    assert {group: sum(row.starts_small for row in own) for group, own in count.items()} == {"white": 6, "black": 5}


def test_late_labels_are_rejected() -> None:
    late = Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    with rejected("objective"):
        starter_offers(Segments.of({"all": 1.0}, late, Belief(2, 1)))


@pytest.mark.parametrize("fraction", [0, 1, -1, "small"])
def test_bad_fractions(fraction: object) -> None:
    cells = Segments.of({"all": 1.0}, Discounted(0.8, 0.9), Belief(2, 1))
    with rejected("fraction"):
        starter_offers(cells, fraction=fraction)  # type: ignore[arg-type]
