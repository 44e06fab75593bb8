"""Whether success inside segments depends on prices, against a slow computation; bands of break-evens."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lenience import fit_history
from lenience.dashboard.wizard.views import _prices
from lenience.history.price_dependence import STANDARD_ERRORS, PriceDependence, _test
from rejections import rejected

Past = dict[str, list[Any]]
OFFERS = {"gain": "won", "loss": "lost", "currency": "$"}


def past(slope: float, rows: int = 3000, seed: int = 3) -> Past:
    """Draw loans of three grades whose success rate rises with the break-even by ``slope``."""
    rng = np.random.default_rng(seed)
    grade, cost = rng.choice(["A", "B", "C"], rows), np.round(rng.uniform(0.7, 0.9, rows), 3)
    amount = rng.choice([500.0, 1000.0, 5000.0], rows)
    rate = np.array([{"A": 0.92, "B": 0.85, "C": 0.8}[one] for one in grade]) + slope * (cost - 0.8)
    accepted, pending = rng.random(rows) < 0.8, rng.random(rows) < 0.1
    good = rng.random(rows) < rate
    return {
        "grade": grade.tolist(),
        "in": accepted.astype(int).tolist(),
        "good": [int(y) if a and not p else None for y, a, p in zip(good, accepted, pending, strict=True)],
        "won": (amount * (1 - cost)).tolist(),
        "lost": (amount * cost).tolist(),
    }


def slowly(rows: Past, by: str) -> PriceDependence:
    """Compute the same with plain loops."""
    known = [i for i, (a, y) in enumerate(zip(rows["in"], rows["good"], strict=True)) if a and y is not None]
    stake = [rows["won"][i] + rows["lost"][i] for i in range(len(rows["in"]))]
    value = [rows["lost"][i] / stake[i] if by == "break_even" else math.log(stake[i]) for i in range(len(stake))]
    weight = low = high = variance = 0.0
    for grade in sorted(set(rows["grade"])):
        own = [i for i in known if rows["grade"][i] == grade]
        mean = sum(value[i] for i in own) / len(own)
        parts = [[rows["good"][i] for i in own if (value[i] > mean) == side] for side in (False, True)]
        (below, above), (p, q) = [len(part) for part in parts], [sum(part) / len(part) for part in parts]
        w = below * above / (below + above)
        weight, low, high = weight + w, low + w * p, high + w * q
        variance += w**2 * (p * (1 - p) / (below - 1) + q * (1 - q) / (above - 1))
    half = STANDARD_ERRORS * math.sqrt(variance) / weight
    middle = (high - low) / weight
    return PriceDependence(by, low / weight, high / weight, middle - half, middle + half)  # type: ignore[arg-type]


def test_the_engine_computes_what_a_plain_loop_does() -> None:
    rows = past(0.5)
    found = fit_history(rows, "grade", "in", "good", **OFFERS).price_dependence  # type: ignore[arg-type]
    assert [one.by for one in found] == ["break_even", "amount"]
    for one in found:
        exact = slowly(rows, one.by)
        for field in ("low", "high", "lower", "upper"):
            assert getattr(one, field) == pytest.approx(getattr(exact, field), abs=1e-9)
    assert [one.notable for one in found] == [True, False]


def test_the_intervals_hold() -> None:
    """Without dependence an interval misses zero in about 2.5% of the files."""
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(2000):
        cells = []
        for grade, rate, rows in (("A", 0.95, (60, 90)), ("B", 0.8, (200, 40)), ("C", 0.6, (1, 50))):
            for dear in (False, True):
                good = int(rng.binomial(rows[dear], rate))
                cells.append({"g0": grade, "dear": dear, "rows": rows[dear], "good": good})
        found = _test("break_even", "dear", cells, ["g0"])
        assert found is not None
        wrong += found.lower > 0 or found.upper < 0
    assert 20 <= wrong <= 80
    assert _test("break_even", "dear", [{"g0": "A", "dear": True, "rows": 9, "good": 5}], ["g0"]) is None


def test_a_warning_says_what_to_do() -> None:
    history = fit_history(past(0.5), "grade", "in", "good", **OFFERS)  # type: ignore[arg-type]
    assert "lower break-even succeed less often" in history.price_warning()
    assert f"Warning: {history.price_warning()}" in history.describe().split("\n")
    assert "interest rate" in _prices(history)
    even = fit_history(past(0.0), "grade", "in", "good", **OFFERS)  # type: ignore[arg-type]
    assert even.price_warning() == ""
    assert _prices(even) == ""
    assert fit_history(past(0.5), "grade", "in", "good").price_dependence == ()


def test_small_differences_are_not_worth_a_warning() -> None:
    assert not PriceDependence("amount", 0.9, 0.903, 0.001, 0.005).notable
    assert PriceDependence("amount", 0.9, 0.89, -0.015, -0.005).notable
    assert not PriceDependence("amount", 0.9, 0.89, -0.03, 0.01).notable


def test_bands_of_break_evens_remove_the_dependence() -> None:
    rows = past(0.5)
    rows["lost"][0] = -1.0  # not valid
    whole = fit_history(rows, "grade", "in", "good", **OFFERS)  # type: ignore[arg-type]
    banded = fit_history(rows, "grade", "in", "good", **OFFERS, price_bands=4)  # type: ignore[arg-type]
    assert len(banded.segments) == 12
    assert banded.columns == ("grade", "break-even")
    assert banded.bad == whole.bad
    assert banded.bad["economics"] == 1
    assert sum(row.arrivals for row in banded.segments) == sum(row.arrivals for row in whole.segments)
    assert banded.price_warning() == ""
    for grade in "ABC":  # each grade has its own bands, in the order of the break-evens, and of about the same size
        own = [row for row in banded.segments if row.values[0] == grade]
        costs = [row.economics.offers.mean_cost for row in own if row.economics]
        assert costs == sorted(costs)
        assert [row.values[1] for row in own] == [f"break-even {i} of 4" for i in (1, 2, 3, 4)]
        sizes = [row.arrivals for row in own]
        assert max(sizes) < 1.1 * min(sizes)
    same = {**rows, "won": [200.0] * 3000, "lost": [800.0] * 3000}
    one = fit_history(same, "grade", "in", "good", **OFFERS, price_bands=4)  # type: ignore[arg-type]
    assert len(one.segments) == 3  # one price: nothing to divide
    with rejected("price_bands", "missing"):
        fit_history(rows, "grade", "in", "good", price_bands=4)
    with rejected("price_bands"):
        fit_history(rows, "grade", "in", "good", **OFFERS, price_bands=1)  # type: ignore[arg-type]


def test_the_commands_warn_and_divide(run: Any, tmp_path: Path) -> None:
    rows = past(0.5)
    file, page = tmp_path / "loans.csv", tmp_path / "report.html"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    columns = (
        str(file),
        "--segment",
        "grade",
        "--accepted",
        "in",
        "--outcome",
        "good",
        "--gain",
        "won",
        "--loss",
        "lost",
    )
    words = (*columns, "--currency", "$", "--discount", "0.99")
    code, out_, _ = run("fit", *words)
    assert code == 0
    assert "--price-bands 4" in " ".join(out_.split())
    code, out_, _ = run("fit", *words, "--price-bands", "4", "--json")
    answer = json.loads(out_)
    assert len(answer["segments"]) == 12
    assert {one["by"] for one in answer["price_dependence"]} == {"break_even", "amount"}
    code, _, _ = run("report", *words, "--output", str(page))
    assert code == 0
    assert "Prices follow the risk." in page.read_text(encoding="utf-8")
    code, _, error = run("fit", *columns[:7], "--cost", "0.8", "--discount", "0.9", "--price-bands", "3")
    assert code == 2
    assert "price" in error


def test_young_loans_do_not_look_like_a_dependence_on_prices() -> None:
    """Every loan succeeds with the same chance. Long loans, which are cheaper, are known later if they succeed."""
    rng = np.random.default_rng(12)
    rows = 4000
    day, months, good = rng.integers(0, 1500, rows), rng.choice([12, 36], rows), rng.random(rows) < 0.85
    ends = day + 30 * months * np.where(good, 1.0, rng.uniform(0.1, 0.6, rows))
    known = ends < 1500
    first = np.datetime64("2021-01-01")
    table: Past = {
        "grade": ["A"] * rows,
        "in": [1] * rows,
        "good": [int(y) if k else None for y, k in zip(good, known, strict=True)],
        "won": np.where(months == 36, 300.0, 100.0).tolist(),
        "lost": [700.0] * rows,
        "day": [str(first + int(one)) for one in day],
    }
    mature = fit_history(table, "grade", "in", "good", "day", as_of="2025-02-09", **OFFERS)  # type: ignore[arg-type]
    assert not any(one.notable for one in mature.price_dependence)
    assert mature.price_dependence, "the loans of the first year are all known"
    blind = fit_history({k: v for k, v in table.items() if k != "day"}, "grade", "in", "good", **OFFERS)  # type: ignore[arg-type]
    assert any(one.notable for one in blind.price_dependence)
