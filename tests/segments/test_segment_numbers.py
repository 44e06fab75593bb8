"""Which numbers the functions of segments take: the smallest and largest ones, and the first ones beyond."""

from __future__ import annotations

import pytest

from lenience import Belief, Discounted, Offer, Segments
from lenience.segments import (
    Applicant,
    ArrivalCounts,
    capacity_bound,
    capacity_price,
    rank,
    starter_groups,
    starter_offers,
    starting_volume,
)
from number_ranges import Range, names_of

PRIOR = Belief(9, 7)
CELLS = Segments.of({"a": 0.6, "b": 0.4}, Discounted(0.7, 0.8), PRIOR, groups={"a": "x", "b": "y"})
ONE = Applicant("a", PRIOR, Offer(2, 0.7))
RANGES = [
    Range("allowed_loss", lambda x: CELLS.solve(rows=2, allowed_loss=x), [0, 0.99], [-0.1, 1]),
    Range("allowed_loss", lambda x: CELLS.solve(rows=2).refresh(CELLS, allowed_loss=x), [0, 0.99], [-0.1, 1]),
    Range("rows", lambda x: CELLS.solve(rows=x), [1], [0]),
    Range("workers", lambda x: CELLS.solve(rows=2, workers=x), [1], [0]),
    Range("capacity", lambda x: rank([ONE], capacity=x), [1], [0]),
    Range("money", lambda x: rank([ONE], money=x), [0.5], [0]),
    Range("money", lambda x: Applicant("a", PRIOR, Offer(2, 0.7), 0, x), [0.5], [0]),
    Range("label_value", lambda x: Applicant("a", PRIOR, Offer(2, 0.7), x), [0, 0.5], [-0.1]),
    Range("label_values", lambda x: rank([Applicant("a", PRIOR, Offer(2, 0.7), 0, None, "x")], label_values={"x": [x]}),
     [0, 0.5], [-0.1]),
    Range("pseudo", lambda x: ArrivalCounts({"a": 0}, x), [0.1], [0]),
    Range("counts", lambda x: ArrivalCounts({"a": x}), [0, 1], [-1]),
    Range("price", lambda x: capacity_bound(CELLS, x, acceptances=0.3), [0, 0.5], [-0.1]),
    Range("more", lambda x: capacity_bound(CELLS, 0.1, acceptances=0.3, more=x), [0, 0.5], [-0.1]),
    Range("acceptances", lambda x: capacity_price(CELLS, acceptances=x), [0.1, 1], [0, 1.1]),
    Range("arrivals", lambda x: capacity_price(CELLS, acceptances=0.1, arrivals=x), [0.5], [0]),
    Range("fraction", lambda x: starter_offers(CELLS, fraction=x), [0.1, 0.9], [0, 1]),
    Range("smallest", lambda x: starter_offers(CELLS, smallest=x), [0.1, 0.9], [0, 1]),
    Range("fraction", lambda x: starter_groups(CELLS, fraction=x), [0.1, 0.9], [0, 1]),
    Range("precision", lambda x: starting_volume(PRIOR, 0.7, precision=x), [0.1, 0.9], [0, 1]),
    Range("most", lambda x: starting_volume(PRIOR, 0.7, most=x), [0.5], [0]),
    Range("arrivals", lambda x: Segments.from_rates({"a": x}, cost=0.7, discount_rate=0.5, prior=PRIOR), [0.5], [0]),
    Range("discount_rate", lambda x: Segments.from_rates({"a": 1}, cost=0.7, discount_rate=x, prior=PRIOR), [0.5], [0]),
    Range("share", lambda x: Segments.of({"a": x}, Discounted(0.7, 0.8), PRIOR), [0.5, 1], [0, 1.1]),
]  # fmt: skip


@pytest.mark.parametrize("one", RANGES, ids=names_of(RANGES))
def test_which_numbers_are_allowed(one: Range) -> None:
    one.check()
