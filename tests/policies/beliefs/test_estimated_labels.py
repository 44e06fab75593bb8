"""The stored table of estimated labels: look-ups in a made-up table, against plain interpolation."""

from __future__ import annotations

import math
from base64 import b64encode

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Belief, MixtureBelief, Offers
from lenience.policies.beliefs.estimated_labels import EstimatedLabels
from lenience.solvers.offers.delayed_blocks import OfferBlocks

Array = NDArray[np.float64]
AFTER, PENDING = np.array([0.0, 3.0, 10.0]), np.array([0.0, 1.0, 2.0, 5.0, 9.0])
NODES = np.array([[0.1, 0.3, 0.5, 0.9], [0.25, 0.4, 0.6, 0.8], [0.35, 0.45, 0.5, 0.7]])
# Labels fall with the number pending; as stored, they are in single precision.
LABELS = np.sort(np.random.default_rng(3).uniform(1.0, 9.0, (3, 4, 5)), axis=2)[:, :, ::-1].astype("<f4").astype(float)
LABELS[:, :, -1] = 0.0
PRIOR = MixtureBelief((Belief(5, 3), Belief(4, 1.5)), (0.5, 0.5))  # at least 1.5 successes and 2 failures
PACE, NEGLIGIBLE = 2.5, 0.01


def table(
    after: Array = AFTER, nodes: Array = NODES, labels: Array = LABELS, prior: MixtureBelief = PRIOR
) -> EstimatedLabels:
    def text(numbers: Array, kind: str = "<f8") -> str:
        return b64encode(numbers.astype(kind).tobytes()).decode()

    return EstimatedLabels(prior, PACE, text(after), text(PENDING), text(nodes), text(labels, "<f4"), NEGLIGIBLE)


def corners(good: float, bad: float) -> list[tuple[float, int, int]]:
    """The weights of the stored labels around a state: linear in the logarithm of the size, and in y."""
    k, y = good + bad, (1.5 + good) / (3.5 + good + bad)
    result = []
    for row in range(3):
        sizes = np.log(PACE + AFTER)
        weight = float(np.interp(math.log(PACE + k), sizes, np.eye(3)[row]))
        if weight > 1e-9 and NODES[row, 0] <= y <= NODES[row, -1]:
            for node in range(4):
                part = float(np.interp(y, NODES[row], np.eye(4)[node]))
                if part > 1e-9:
                    result.append((weight * part, row, node))
    return result


STATES = [(0, 0), (1, 0), (0, 2), (2, 1), (3, 3), (6, 1), (0, 9), (4, 6), (9, 9), (0.5, 2.25), (30, 30), (5, 5), (3, 7)]


@pytest.mark.parametrize(("good", "bad"), STATES)
def test_a_look_up_interpolates(good: float, bad: float) -> None:
    labels, around = table(), corners(good, bad)
    worths = sum((weight * LABELS[row, node] for weight, row, node in around), np.zeros(5))
    np.testing.assert_allclose(labels.worths(good, bad), worths, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(labels.counts, PENDING)
    for pending in (0, 0.5, 1, 1.5, 2, 3, 5, 6, 9, 10):
        worth = float(np.interp(pending, PENDING, worths)) if pending <= 9 else 0.0
        assert labels.worth(good, bad, pending) == pytest.approx(worth, rel=1e-6)
        stored = [t for t in range(5) if PENDING[t] == pending]
        if not stored:
            right = min(int(np.searchsorted(PENDING, pending)), 4)
            stored = [right - 1, right]
        near = [LABELS[row, node, t] for _, row, node in around for t in stored] or [0.0]
        lowest, highest = min(*near, worth), max(*near, worth)
        bounds = labels.bounds(good, bad, pending)
        assert bounds.lower == pytest.approx(max(lowest * 0.9 - NEGLIGIBLE, 0.0), rel=1e-6)
        assert bounds.upper == pytest.approx(highest * 1.1 + NEGLIGIBLE, rel=1e-6)


@pytest.mark.parametrize(("good", "bad"), [(0, 0), (2, 1), (3, 3)])
def test_the_first_number_pending_at_which_a_loss_is_not_worth_taking(good: float, bad: float) -> None:
    labels = table()
    worths = labels.worths(good, bad)
    for loss in (0.01, 0.5, 1.7, 3.0, 4.4, 6.0, 8.0, 20.0, *worths[:-1].tolist()):
        expected = next(m for m in range(20) if m > 9 or labels.worth(good, bad, m) <= loss)
        assert labels.first_rejection(good, bad, -loss) == expected
    assert labels.first_rejection(good, bad, 0.5) == 10  # a profit is worth taking beyond the table, too


def test_places_outside_of_the_table() -> None:
    assert table().worths(40, 0).tolist() == [0.0] * 5  # above the last node of its row
    one = table(AFTER[:1], NODES[:1], LABELS[:1])  # a single row counts for all sizes
    place = (1.5 + 6) / 12.5
    expected = [np.interp(place, NODES[0], LABELS[0, :, t]) for t in range(5)]
    np.testing.assert_allclose(one.worths(6, 3), expected, rtol=1e-6)


def test_places_at_the_ends_of_the_table() -> None:
    nodes = NODES[:1].copy()
    nodes[0, -1] = 1.5 / 3.5  # the place of the prior is the last node
    nodes[0, :3] = 0.1, 0.2, 0.3
    np.testing.assert_allclose(table(AFTER[:1], nodes, LABELS[:1]).worths(0, 0), LABELS[0, -1], rtol=1e-6)
    two = table(AFTER[:2], NODES[:2], LABELS[:2])
    np.testing.assert_allclose(two.worths(1, 0), table().worths(1, 0), rtol=1e-6)
    np.testing.assert_allclose(two.worths(4, 4), [np.interp(5.5 / 11.5, NODES[1], LABELS[1, :, t]) for t in range(5)])
    small = MixtureBelief.of(Belief(0.8, 0.4))
    place = 1.4 / 2.8  # after one success and one failure
    expected = [np.interp(place, NODES[0], LABELS[0, :, t]) for t in range(5)]
    np.testing.assert_allclose(table(AFTER[:1], NODES[:1], LABELS[:1], small).worths(1, 1), expected, rtol=1e-6)
    positive = LABELS[:1] + 1.0
    last = table(AFTER[:1], NODES[:1], positive)
    assert last.first_rejection(0, 0, -last.worth(0, 0, 9)) == 9
    assert last.first_rejection(0, 0, -0.9) == 10


def test_what_is_stored_is_what_was_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = OfferBlocks(7.0, 0.1, PACE, AFTER, NODES, LABELS, PENDING, np.zeros(5))
    asked = []

    def solve(*given: object) -> OfferBlocks:
        asked.append(given)
        return blocks

    monkeypatch.setattr("lenience.solvers.offers.delayed_blocks.solve_offer_blocks", solve)
    offers = Offers([100, 300], [0.5, 0.5])
    labels, solved = EstimatedLabels.solve(PRIOR, offers, 5.0, 0.5, 0.1, (1.0, 2.0), 4.0)
    assert asked == [(PRIOR, offers, 5.0, 0.5, 0.1, (1.0, 2.0), 4.0)]
    assert solved is blocks
    np.testing.assert_array_equal(labels.worths(2, 1), table().worths(2, 1))
    assert labels.negligible == pytest.approx(0.2)  # a thousandth of the mean amount
