"""Past decisions for the tests of history, and their counts by hand."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from lenience import History

DAY = dt.date(2024, 1, 1)


def past(rows: int = 600, seed: int = 0) -> dict[str, list[Any]]:
    """Decisions of three segments over a year; a tenth of the accepted are pending."""
    generator = np.random.default_rng(seed)
    region = generator.choice(["north", "south", "west"], rows).tolist()
    product = generator.choice(["car", "home"], rows).tolist()
    accepted = (generator.random(rows) < 0.6).tolist()
    good = (generator.random(rows) < 0.8).tolist()
    known = (generator.random(rows) < 0.9).tolist()
    outcome = [int(y) if a and k else None for a, y, k in zip(accepted, good, known, strict=True)]
    day = [DAY + dt.timedelta(days=int(d)) for d in generator.integers(0, 365, rows)]
    return {"region": region, "product": product, "accepted": accepted, "outcome": outcome, "day": day}


def by_hand(
    data: dict[str, list[Any]], maturity: int | None = None, half_life: float | None = None
) -> dict[str, list[float]]:
    """Arrivals, accepted, labels, successes, pending, n, s by region, one row at a time."""
    last = max(data["day"])
    result: dict[str, list[float]] = {}
    for region, accepted, outcome, day in zip(
        data["region"], data["accepted"], data["outcome"], data["day"], strict=True
    ):
        row = result.setdefault(region, [0, 0, 0, 0, 0, 0.0, 0.0])
        row[0] += 1
        if not accepted:
            continue
        row[1] += 1
        age = (last - day).days
        if outcome is None or (maturity is not None and age < maturity):
            row[4] += 1
            continue
        weight = 1.0 if half_life is None else 0.5 ** (age / half_life)
        row[2] += 1
        row[3] += outcome
        row[5] += weight
        row[6] += weight * outcome
    return result


def agree(history: History, expected: dict[str, list[float]]) -> None:
    assert [row.segment for row in history.segments] == sorted(expected)
    for row in history.segments:
        found = [row.arrivals, row.accepted, row.labels, row.successes, row.pending]
        assert found == expected[row.segment][:5]
        assert [row.n, row.s] == pytest.approx(expected[row.segment][5:])
