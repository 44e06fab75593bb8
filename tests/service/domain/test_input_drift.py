"""Drift of features: the index and its noise level, against a slow count and by simulation."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from lenience.models import FeatureColumn, RowEncoding
from lenience.service.domain.feature_parts import parts_by_quantiles
from lenience.service.domain.input_drift import input_drift
from lenience.service.domain.population_stability import LEVEL, stability_index

PURPOSES = ("car", "home", "school")
COLUMNS = [
    FeatureColumn("income", minimum=0, unit="USD"),
    FeatureColumn("children"),
    FeatureColumn("purpose", "category", values=PURPOSES),
]
ENCODING = RowEncoding(COLUMNS)


def people(rng: np.random.Generator, size: int, **changes: Any) -> list[dict[str, Any]]:
    factor, missing, unknown = (changes.get(name, 0.0) for name in ("factor", "missing", "unknown"))
    return [
        {
            "income": None if rng.random() < missing else float(rng.lognormal(10, 0.5)) * (1.0 + factor),
            "children": float(rng.integers(0, 4)),
            "purpose": "boat" if rng.random() < unknown else str(rng.choice(PURPOSES, p=[0.6, 0.3, 0.1])),
        }
        for _ in range(size)
    ]  # fmt: skip


def slow_index(old: list[Any], new: list[Any]) -> float:
    """The index, from a count of each part."""
    parts = sorted({*old, *new})
    before, after = Counter(old), Counter(new)
    total = 0.0
    for part in parts:
        r = (before[part] + 0.5) / (len(old) + 0.5 * len(parts))
        a = (after[part] + 0.5) / (len(new) + 0.5 * len(parts))
        total += (a - r) * math.log(a / r)
    return total


def test_the_index_is_that_of_the_counts_by_part() -> None:
    rng = np.random.default_rng(1)
    old, new = rng.integers(0, 5, 200).tolist(), rng.integers(1, 6, 150).tolist()
    before, after = (np.bincount(each, minlength=8) for each in (old, new))
    assert stability_index(before, after, LEVEL).index == pytest.approx(slow_index(old, new))


def test_ranges_hold_equal_shares_of_the_earlier_rows() -> None:
    rows = ENCODING.rows(people(np.random.default_rng(2), 200))
    income, children, purpose = parts_by_quantiles(ENCODING, rows, 5)
    assert np.bincount(income.of(rows)).tolist() == pytest.approx([40] * 5, abs=6)  # the edges are round
    assert all(edge % 100 == 0 for edge in income.edges)
    assert children.edges == (1.0, 2.0, 3.0)
    assert [purpose.words(i) for i in range(purpose.size)] == [
        "purpose car", "purpose home", "purpose school", "purpose missing", "purpose not declared",
    ]  # fmt: skip
    gone = ENCODING.rows([{"income": None, "children": 2, "purpose": "boat"}])
    assert [each.of(gone)[0] for each in (income, children, purpose)] == [income.missing, 2, purpose.unknown]


@pytest.mark.parametrize("size", [50, 300])
def test_chance_alone_gives_hardly_any_alarm(size: int) -> None:
    rng = np.random.default_rng(3)
    above = changed = 0
    for _ in range(150):
        before, latest = (ENCODING.rows(people(rng, count)) for count in (100, size))
        drifts = input_drift(ENCODING, before, latest)
        above += any(one.index > one.noise for one in drifts)
        changed += any(one.change != "none" for one in drifts)
    assert above <= 3  # 0.15 are expected, if the samples were large
    assert changed <= above


def test_a_change_is_found_and_named() -> None:
    rng = np.random.default_rng(4)
    before = ENCODING.rows(people(rng, 200))
    latest = ENCODING.rows(people(rng, 300, factor=-0.5))
    income, children, purpose = input_drift(ENCODING, before, latest)
    assert (income.change, children.change, purpose.change) == ("much", "none", "none")
    assert "income below" in income.sentence
    assert income.index > max(income.noise, 0.25)
    latest = ENCODING.rows(people(rng, 300, missing=0.3, unknown=0.2))
    income, _, purpose = input_drift(ENCODING, before, latest)
    assert (income.change, purpose.change) == ("much", "much")
    assert income.missing == pytest.approx(0.3, abs=0.06)
    assert (income.missing_before, purpose.unknown_before) == (0.0, 0.0)
    assert purpose.unknown == pytest.approx(0.2, abs=0.06)
    assert "no value" in income.sentence
    assert "not declared" in purpose.sentence


def test_few_applicants_are_not_compared() -> None:
    rng = np.random.default_rng(5)
    before = ENCODING.rows(people(rng, 200))
    assert input_drift(ENCODING, before, before[:49]) == []
    assert input_drift(ENCODING, before[:49], before) == []


def test_a_feature_that_never_varies_has_not_changed() -> None:
    encoding = RowEncoding([FeatureColumn("flag")])
    rows = encoding.rows([{"flag": 1.0}] * 60)
    (flag,) = input_drift(encoding, rows, rows)
    assert (flag.change, flag.index) == ("none", 0.0)
    (flag,) = input_drift(encoding, rows, encoding.rows([{"flag": None}] * 60))
    assert flag.change == "much"
