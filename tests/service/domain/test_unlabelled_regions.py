"""Regions without outcomes: found where they are, without overlap, and never where an outcome is known."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from lenience.models import FeatureColumn, RowEncoding
from lenience.service.domain.feature_parts import parts_by_quantiles
from lenience.service.domain.unlabelled_regions import (
    LEAST,
    RANGES,
    RegionDecision,
    _conditions,
    segments_without_outcomes,
    unlabelled_regions,
)

COLUMNS = [
    FeatureColumn("income", minimum=0, unit="USD"),
    FeatureColumn("job", "category", values=("employed", "self-employed")),
]
ENCODING = RowEncoding(COLUMNS)


def applicants(seed: int = 1, size: int = 400) -> tuple[np.ndarray, list[dict[str, object]]]:
    rng = np.random.default_rng(seed)
    people: list[dict[str, object]] = [
        {"income": float(rng.uniform(0, 80_000)), "job": str(rng.choice(["employed", "self-employed"]))}
        for _ in range(size)
    ]
    return ENCODING.rows(people), people


def decided(known: bool, accepted: bool = False, to_learn: bool = False, n: float = 3.0) -> RegionDecision:
    return RegionDecision(accepted or known, to_learn, known, 0.5, n)


def test_one_condition_is_found_with_what_is_tried_there() -> None:
    rows, people = applicants()
    low = [float(one["income"]) < 20_000 for one in people]  # type: ignore[arg-type]
    decisions = [decided(not poor, to_learn=poor and i % 10 == 0, accepted=i % 10 == 0) for i, poor in enumerate(low)]
    (region,) = unlabelled_regions(ENCODING, rows, decisions)
    assert region.features == ["income"]
    assert region.where.startswith("Income below")
    assert 0.7 * sum(low) <= region.applicants <= sum(low)  # the edge is one of eight quantiles
    assert region.to_learn == region.accepted > 0
    assert f"{region.accepted} accepted to learn" in region.sentence


def test_two_conditions_are_found_where_one_is_not_enough() -> None:
    rows, people = applicants()
    unknown = [float(one["income"]) < 30_000 and one["job"] == "self-employed" for one in people]  # type: ignore[arg-type]
    regions = unlabelled_regions(ENCODING, rows, [decided(not each) for each in unknown])
    assert regions[0].features == ["income", "job"]
    assert "and job self-employed" in regions[0].where
    assert "Nobody was accepted" in regions[0].sentence


def test_regions_are_the_largest_and_hold_no_outcome() -> None:
    """Compare the first region with a search through all conditions and pairs."""
    for seed in range(5):
        rows, people = applicants(seed, 200)
        rng = np.random.default_rng(seed)
        known = np.array([rng.random() < float(one["income"]) / 80_000 for one in people])  # type: ignore[arg-type]
        conditions = _conditions(parts_by_quantiles(ENCODING, rows, RANGES), rows)
        sizes = [int(one.holds.sum()) for one in conditions if not (one.holds & known).any()]
        single = max([size for size in sizes if size >= LEAST], default=0)
        pairs = [
            int((one.holds & two.holds).sum())
            for one, two in combinations(conditions, 2)
            if one.feature != two.feature and not (one.holds & two.holds & known).any()
        ]
        pair = max([size for size in pairs if size >= LEAST and size >= 1.5 * single], default=0)
        regions = unlabelled_regions(ENCODING, rows, [decided(bool(each)) for each in known])
        assert max([region.applicants for region in regions], default=0) == max(single, pair)


def test_nothing_is_said_without_outcomes_or_with_enough_evidence() -> None:
    rows, people = applicants()
    assert unlabelled_regions(ENCODING, rows, [decided(False) for _ in people]) == []
    low = [float(one["income"]) < 20_000 for one in people]  # type: ignore[arg-type]
    decisions = [decided(not poor, n=50.0) for poor in low]
    assert unlabelled_regions(ENCODING, rows, decisions) != []
    assert unlabelled_regions(ENCODING, rows, decisions, enough=30.0) == []


def test_many_features_are_searched_by_single_conditions() -> None:
    encoding = RowEncoding([FeatureColumn(f"feature {i}") for i in range(50)])
    rows = np.random.default_rng(1).normal(size=(500, 50))
    known = rows[:, 7] > -0.8
    regions = unlabelled_regions(encoding, rows, [decided(bool(each)) for each in known])
    assert regions[0].features == ["feature 7"]


def test_segments_without_outcomes() -> None:
    by_segment = {"a": [decided(False)] * 12 + [decided(True)], "b": [decided(False, True)] * 20, "c": [decided(False)]}
    (region,) = segments_without_outcomes(by_segment)
    assert (region.where, region.applicants, region.accepted) == ("B", 20, 20)
