"""What late labels are worth at any belief and rate, against certified solves and the limits of one break-even."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lenience import Belief, Delayed, Offer, Offers
from lenience.policies.beliefs.offer_exposure import OfferExposurePolicy
from lenience.solvers.delayed.limit_table import exposure_limit
from lenience.solvers.offers import late_label_table
from lenience.solvers.offers.delayed_blocks import label_rows
from lenience.solvers.offers.late_label_table import LateLabelNode, late_label_value, look_up_rise

LOANS = Offers([0.2, 1, 3], [0.7, 0.8, 0.85])
MENU = Offers.menu([0.1, 1], [0.8, 0.75])


def limit_of(offers: Offers, n: float, mean: float, offer: Offer, arrivals: float, rate: float) -> int:
    """The first number pending at which a label is not worth an offer's expected loss."""
    pending = 0
    while offer.expected_profit(mean) + late_label_value(offers, n, mean, pending, arrivals, rate) > 0.0:
        pending += 1
    return pending


@pytest.mark.parametrize("offers", [LOANS, MENU], ids=["loans", "menu"])
def test_against_certified_solves(offers: Offers) -> None:
    rng = np.random.default_rng(5)
    off = []
    for _ in range(3):
        n, mean = float(rng.uniform(0.7, 9.0)), float(rng.uniform(0.45, 0.72))
        arrivals, rate = 2.0 ** rng.uniform(1, 2.5), 2.0 ** rng.uniform(-2, -1)
        late = Delayed(offers=offers, arrivals=arrivals, discount_rate=rate, label_delay=1)
        solved = late.solve(Belief(n, n * mean), tolerance=1e-3)
        assert isinstance(solved, OfferExposurePolicy)
        for pending in (0, 1, 4):
            label = late_label_value(offers, n, mean, pending, arrivals, rate)
            proved = solved.label_value(solved.prior, pending)
            off.append(abs(label - proved.midpoint) / (0.02 + proved.midpoint))
        for amount in (0.05, 0.2, 1.0):
            offer = Offer(amount, 0.8)
            limit = solved.limit(solved.prior, offer)
            assert limit is not None
            most = len(solved.labels_at(solved.prior).lower) - 1  # the solver follows no more
            assert abs(min(limit_of(offers, n, mean, offer, arrivals, rate), most) - limit) <= 1 + 0.1 * limit
    assert max(off) < 0.1
    assert float(np.median(off)) < 0.02


def test_one_offer_has_the_limits_of_one_break_even() -> None:
    one = Offers([1], [0.8])
    rng = np.random.default_rng(3)
    for _ in range(20):
        n, arrivals = 2.0 ** rng.uniform(-1, 6), 2.0 ** rng.uniform(2, 4)
        mean = 0.8 - rng.uniform(0.1, 1.2) * 0.4 / math.sqrt(n + 1)
        known = exposure_limit(n, mean, 0.8, arrivals, 0.25)
        assert abs(limit_of(one, n, mean, Offer(1, 0.8), arrivals, 0.25) - known) <= 1 + 0.1 * known


SIZES, COUNTS = np.array([0.5, 2.0, 7.0]), np.array([0.0, 1.0, 3.0, 9.0])
RATES = np.array([[0.1, 0.4, 0.9], [0.3, 0.4, 0.8], [0.5, 0.6, 0.7]])


def plane(n: float, mean: float, pending: float, arrivals: float, rate: float) -> float:
    """Linear in log n, p̂, the number pending and log2 of both rates, so that interpolation is exact."""
    return 8.0 - 0.4 * math.log(n) + 2.0 * mean - 0.3 * pending + 0.2 * arrivals - 0.1 * rate


def made_up(offers: Offers, arrivals: int, rate: float) -> LateLabelNode:
    rises = [
        [[plane(n, mean, count, arrivals, math.log2(rate)) for count in COUNTS.tolist()] for mean in line]
        for n, line in zip(SIZES.tolist(), RATES.tolist(), strict=True)
    ]
    return LateLabelNode(SIZES, RATES, COUNTS, np.array(rises, dtype=np.float32))


def worth(label: float, mean: float, pending: float, arrivals: float, rate: float) -> float:
    """The rise that a label means: D (r + m)/λ + Σ w [(g + D)⁺ − g⁺], with amounts in units of their mean."""
    mean_amount = LOANS.mean_amount
    rise = label * (rate + pending) / arrivals
    for amount, cost in zip(LOANS.amount, LOANS.cost, strict=True):
        gain = amount * (mean - cost)
        rise += (max(gain + label, 0.0) - max(gain, 0.0)) / 3.0
    return rise / mean_amount


def test_labels_between_the_nodes_of_a_made_up_table(monkeypatch: pytest.MonkeyPatch) -> None:
    node = made_up(LOANS, 0, 1.0)
    for n in (0.5, 0.9, 2.0, 3.5, 7.0):
        for mean in (0.5, 0.55, 0.6, 0.69):
            for pending in (0.0, 0.3, 2.0, 8.9):
                expected = plane(n, mean, pending, 0, 0)
                assert look_up_rise(*node, n, mean, pending) == pytest.approx(expected, rel=1e-6)
    # Beyond both ends the nearest size counts.
    for n, nearest in ((0.2, 0.5), (30.0, 7.0)):
        assert look_up_rise(*node, n, 0.6, 1.0) == pytest.approx(plane(nearest, 0.6, 1.0, 0, 0), rel=1e-6)
    # Beside the rates of a row, and beyond the largest number pending, labels are worth nothing.
    assert look_up_rise(*node, 7.0, 0.75, 0.0) == 0.0
    assert look_up_rise(*node, 2.0, 0.6, 9.1) == 0.0
    assert look_up_rise(*node, 2.0, 0.8, 9.0) > 0.0
    monkeypatch.setattr(late_label_table, "_node", made_up)
    for arrivals, rate in ((8.0, 0.25), (11.0, 0.25), (8.0, 0.3), (13.0, 0.2), (1e-9, 1e-9), (1e9, 1e9)):
        label = late_label_value(LOANS, 3.0, 0.6, 2.5, arrivals, rate)
        solved = min(max(arrivals, 2.0**-10), 2.0**16)
        expected = plane(3.0, 0.6, 2.5, math.log2(solved), math.log2(rate))
        assert worth(label, 0.6, 2.5, solved, rate) == pytest.approx(expected, rel=1e-6)


def test_a_solve_is_stored_as_the_rise_of_its_labels() -> None:
    node = late_label_table._node(LOANS, 3, 0.25)
    sizes, rates, counts, labels = label_rows(LOANS, 8.0, 0.25, 0.05, 3e4, 0.02, 301)
    assert (np.diff(node.sizes) > 0).all()
    for row in (0, 3, 30):
        own = int(np.flatnonzero(node.sizes == sizes[row])[0])
        for place, count in ((10, 0), (40, 2), (60, 5)):
            mean, label = float(rates[row, place]), float(labels[row, place, count])
            rise = worth(label, mean, float(counts[count]), 8.0, 0.25)
            assert node.rises[own, place, count] == pytest.approx(rise, rel=1e-5, abs=1e-12)


def test_labels_at_the_edges() -> None:
    label = late_label_value(LOANS, 8, 0.65, 2, 10, 0.25)
    assert late_label_value(LOANS, 8, 0.65, 5, 10, 0.25) < label < late_label_value(LOANS, 8, 0.65, 0, 10, 0.25)
    assert label < late_label_value(LOANS, 8, 0.65, 2, 40, 0.25)
    assert late_label_value(LOANS, 8, 0.65, 1e9, 10, 0.25) < 1e-20
    assert late_label_value(LOANS, 3e4, 0.2, 0, 10, 0.25) < 1e-6
    assert late_label_value(LOANS, 0.05, 0.5, 0, 10, 0.25) > 0.0
    assert late_label_value(Offers([1], [1 - 1e-12]), 2, 0.5, 0, 10, 0.25) >= 0.0
