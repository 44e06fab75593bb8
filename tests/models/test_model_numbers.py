"""Which numbers models take."""

from __future__ import annotations

import numpy as np
import pytest

from lenience.models import (
    BayesianLogistic,
    Cells,
    Curve,
    FromHistory,
    Neighbours,
    OwnCounts,
    Shared,
    TimingCurves,
    bin_by_quantiles,
    evidence_share,
    learn_timing,
    skeptical,
    success_chance,
)
from number_ranges import Range, names_of

X = np.array([[0.0], [1.0], [2.0]])
CURVES = TimingCurves((0, 10), (1, 0.5), (1, 0.2))
RANGES = [
    Range("limit", lambda x: BayesianLogistic(limit=x).prepare(X), [0.5], [0]),
    Range("feature_variance", lambda x: BayesianLogistic(feature_variance=x).prepare(X), [0.5], [0]),
    Range("bands", lambda x: bin_by_quantiles([1.0, 2.0, 3.0], x), [1, 2], [0]),
    Range("cap", lambda x: Curve([1.0, 2.0], cap=x), [0.5], [0]),
    Range("slope", lambda x: Curve([1.0, 2.0], slope=x), [0, 0.5], [-0.1]),
    Range("group_variance", lambda x: Curve([1.0, 2.0], ["a", "b"], group_variance=x), [0.5], [0]),
    Range("weight", lambda x: FromHistory([10], [5], weight=x), [0, 0.5, 1], [-0.1, 1.1]),
    Range("ages", lambda x: TimingCurves((0, x), (1, 1), (1, 1)), [0.5, 3], [-1]),
    Range("unresolved", lambda x: TimingCurves((0, 1), (1, 1), (1, 1), unresolved=x), [0, 1], [-0.1, 1.1]),
    Range("success_open", lambda x: TimingCurves((0, 1), (1, x), (1, 1)), [0, 1], [-0.1]),
    Range("age", lambda x: CURVES.open_shares(x), [0, 0.5], [-0.1]),
    Range("rate", lambda x: success_chance(x, 5, CURVES), [0, 0.5, 1], [-0.1, 1.1]),
    Range("rate", lambda x: evidence_share(x, 5, CURVES), [0.1, 0.9], [0, 1]),
    Range("bandwidth", lambda x: Neighbours(bandwidth=x).prepare(X), [0.5], [0]),
    Range("most", lambda x: Neighbours(most=x).prepare(X), [1], [0]),
    Range("n", lambda x: skeptical(0.8, n=x), [0.5], [0]),
    Range("chance", lambda x: skeptical(0.8, chance=x), [0.1, 0.9], [0, 1]),
    Range("cells", lambda x: OwnCounts(x), [1], [0]),
    Range("cells", lambda x: Shared(x), [1], [0]),
    Range("strongest", lambda x: Shared(2, strongest=x), [0.5], [0]),
    Range("alternatives", lambda x: learn_timing([1, 2], [1, 0], [0, 1], [0, 0], alternatives=x), [0, 1], [-1]),
]


@pytest.mark.parametrize("one", RANGES, ids=names_of(RANGES))
def test_which_numbers_are_allowed(one: Range) -> None:
    one.check()


def test_labels_are_failures_and_successes() -> None:
    assert Cells().prepare(X).classes_.tolist() == [0, 1]
