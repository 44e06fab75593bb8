"""The offers of past applicants: the engine against a plain loop over rows, units, and rows without valid economics."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lenience import Belief, Discounted, InputError, MixtureBelief, Offer, Offers
from lenience.history import economics
from lenience.history.fit import fit_history
from lenience.history.history import History
from rejections import rejected

pa = pytest.importorskip("pyarrow")
ibis = pytest.importorskip("ibis")

LOANS: dict[str, Any] = {
    "grade": ["A", "A", "A", "B", "B", "B"],
    "in": [1, 1, 0, 1, 0, 1],
    "good": [1, None, None, 0, None, 1],
    "amount": [1000.0, 5000.0, 2000.0, 9000.0, 500.0, 9000.0],
    "rate": [0.08, 0.12, 0.25, 0.09, 0.3, 0.09],
    "term": [3.0, 5.0, 3.0, 3.0, 1.0, 3.0],
}

ROW = st.tuples(
    st.sampled_from(["A", " A", "B", None]),
    st.sampled_from([1, 0, None]),
    st.sampled_from([1, 0, None, 7]),
    st.sampled_from([None, math.nan, math.inf, -5.0, 0.0, 20.0, 35.5, 1e-3]),
    st.sampled_from([None, 0.0, 80.0, 12.25, 1e6, 1e20]),
    st.sampled_from([None, dt.date(2024, 1, 1), dt.date(2025, 1, 1), dt.date(2026, 1, 1)]),
)


def by_loop(rows: list[Any]) -> tuple[dict[str, Counter[tuple[float, float]]], dict[str, int], dict[str, list[float]]]:
    """Offers by segment, bad rows by kind, and gain and loss of the accepted, by a plain loop as of 2025-06-01."""
    offers: dict[str, Counter[tuple[float, float]]] = {}
    bad: Counter[str] = Counter()
    accepted_sums: dict[str, list[float]] = {}
    for segment, accepted, outcome, gain, loss, day in rows:
        valid = (
            gain is not None and loss is not None and math.isfinite(gain) and gain > 0 and 0 < loss < 1e15
            and 1e-9 < gain / loss < 1e9
        )  # fmt: skip
        if segment is None:
            bad["segment"] += 1
        elif accepted is None:
            bad["accepted"] += 1
        elif outcome == 7:
            bad["outcome"] += 1
        elif not accepted and outcome is not None:
            bad["rejected"] += 1
        elif not valid:
            bad["economics"] += 1
        elif day is None:
            bad["time"] += 1
        elif day > dt.date(2025, 6, 1):
            bad["later"] += 1
        else:
            name = segment.strip()
            offers.setdefault(name, Counter())[gain, loss] += 1
            sums = accepted_sums.setdefault(name, [0.0, 0.0, 0.0])
            if accepted:
                for i, number in enumerate((1.0, gain, loss)):
                    sums[i] += number
    return offers, bad, accepted_sums


@settings(max_examples=20, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=40), st.booleans())
def test_the_engine_counts_as_a_loop_does(rows: list[Any], exact: bool) -> None:
    columns = ("segment", "in", "good", "gain", "loss", "day")
    kinds = (pa.string(), pa.int64(), pa.int64(), pa.float64(), pa.float64(), pa.date32())
    table = pa.table({name: pa.array([row[i] for row in rows], kinds[i]) for i, name in enumerate(columns)})
    before = economics.MOST_EXACT_ROWS
    economics.MOST_EXACT_ROWS = before if exact else 0
    try:
        history = fit_history(
            table, "segment", "in", "good", "day", as_of="2025-06-01", gain="gain", loss="loss", currency="$"
        )
    finally:
        economics.MOST_EXACT_ROWS = before
    offers, bad, accepted_sums = by_loop(rows)
    assert {kind: count for kind, count in history.bad.items() if count} == {
        kind: count for kind, count in bad.items() if kind != "later"
    }
    assert history.later == bad["later"]
    assert [row.segment for row in history.segments] == sorted(offers)
    for row in history.segments:
        counts, economy = offers[row.segment], row.economics
        assert economy is not None
        assert row.arrivals == sum(counts.values())
        # The sampled offers lie in different cells, so the cells are exact too.
        result = {
            (round(a * (1 - c), 6), round(a * c, 6)): share
            for a, c, share in zip(economy.offers.amount, economy.offers.cost, economy.offers.share, strict=True)
        }
        expected = {(round(g, 6), round(x, 6)): n / row.arrivals for (g, x), n in counts.items()}
        assert result == pytest.approx(expected)
        assert economy.error == pytest.approx(0.0, abs=1e-6)
        number, gain, loss = accepted_sums[row.segment]
        assert economy.accepted_gain == pytest.approx(gain / max(number, 1.0))
        assert economy.accepted_loss == pytest.approx(loss / max(number, 1.0))


def loans(history: History, segment: str) -> list[tuple[float, float, float]]:
    offers = history.offers()[segment]
    return sorted(
        (round(a, 6), round(c, 9), round(share, 9))
        for a, c, share in zip(offers.amount, offers.cost, offers.share, strict=True)
    )


def expected_loans(rows: list[int], lgd: float = 0.6, funding: float = 0.03) -> list[tuple[float, float, float]]:
    made = Counter(Offer.from_loan(LOANS["amount"][i], LOANS["rate"][i], LOANS["term"][i], lgd, funding) for i in rows)
    return sorted((round(o.amount, 6), round(o.cost, 9), round(n / len(rows), 9)) for o, n in made.items())


def written(**changes: list[Any]) -> dict[str, Any]:
    return {**LOANS, **changes}


MONTHS = [36, 60, 36, 36, 12, 36]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (LOANS, {"term": "term"}),
        (written(rate=["8%", "12 %", " 25%", "9%", "30%", "9%"]), {}),
        (written(rate=[8, 12, 25, 9, 30, 9]), {"rate_unit": "percent"}),
        (written(rate=["8", "12", "25", "9", "30", "9"]), {"rate_unit": "percent"}),
        (written(rate=["8", "12", "25%", "9", "30", "9"]), {"rate_unit": "percent"}),
        (written(rate=["0.08", "12%", "0.25", "0.09", "0.3", "0.09"]), {}),
        (written(term=MONTHS), {"term_unit": "months"}),
        (written(term=[f" {months} months" for months in MONTHS]), {}),
        (written(term=["3", "60 mo", "36m", "3 years", "1 yr", "3y"]), {}),
        (written(term=["36", "5 years", "36", "36", "12", "36"]), {"term_unit": "months"}),
        (written(amount=["$1000", "5000", "$ 2000.00", " 9000", "500", "$9000"]), {}),
        (LOANS, {"loss_given_default": "60%", "funding_rate": "3%"}),
        (written(lost=[0.6] * 6, funding=["3%"] * 6), {"loss_given_default": "lost", "funding_rate": "funding"}),
        (
            written(lost=[60] * 6, rate=[8, 12, 25, 9, 30, 9], funding=[3] * 6),
            {"loss_given_default": "lost", "funding_rate": "funding", "rate_unit": "percent"},
        ),
        (written(lost=[0.6] * 6, rate=[8, 12, 25, 9, 30, 9]), {"loss_given_default": "lost", "rate_unit": "percent"}),
    ],
)
def test_loans_in_every_writing(source: dict[str, Any], options: dict[str, Any]) -> None:
    given_options: dict[str, Any] = {"term": "term", "loss_given_default": 0.6, "funding_rate": 0.03} | options
    history = fit_history(source, "grade", "in", "good", amount="amount", rate="rate", **given_options)
    assert history.bad["economics"] == 0
    assert loans(history, "A") == expected_loans([0, 1, 2])
    assert loans(history, "B") == expected_loans([3, 4, 5])


def test_a_csv_file_and_notes_on_how_it_was_read(tmp_path: Path) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.table(written(rate=[8, 12, 25, 9, 30, 9])), tmp_path / "loans.csv")
    history = fit_history(
        tmp_path / "loans.csv",
        "grade",
        "in",
        "good",
        amount="amount",
        rate="rate",
        term=" 36 months",
        currency="$",
        rate_unit="percent",
    )
    made = [Offer.from_loan(LOANS["amount"][i], LOANS["rate"][i], 3) for i in range(3)]
    assert history.offers()["A"].amount == pytest.approx(sorted(one.amount for one in made), rel=1e-9)
    assert "Numbers in rate are read as percents: 30 is 30%." in history.describe()
    assert "The mean amount at stake (gain + loss) is $" in history.describe()


def test_numbers_instead_of_columns() -> None:
    history = fit_history(LOANS, "grade", "in", "good", gain=20, loss="80", currency="€")
    assert history.offers() == {name: Offers([100.0], [0.8], currency="€") for name in "AB"}
    assert history.offers_of_all() == Offers([100.0], [0.8], currency="€")
    assert history.offers_error() == 0.0


def test_small_rates() -> None:
    """The series and the formula agree with what is computed in full precision."""
    rates = [1e-9, 5e-5, 9.9e-5, 1.1e-4, 1e-3]
    past = {"g": list("abcde"), "in": [1] * 5, "good": [1] * 5, "rate": rates}
    history = fit_history(past, "g", "in", "good", amount=1e6, rate="rate", term=30, term_unit="years")
    for name, rate in zip("abcde", rates, strict=True):
        offer = Offer.from_loan(1e6, rate, 30)
        row = history[name].economics
        assert row is not None
        assert row.accepted_gain == pytest.approx(offer.gain, rel=1e-5)


@pytest.mark.parametrize(
    ("source", "options", "error"),
    [
        ({}, {"gain": "gain"}, ("loss", "missing")),
        ({}, {"amount": "amount", "rate": "rate"}, ("term", "missing")),
        ({}, {"loss_given_default": 0.5}, ("amount", "missing")),
        ({}, {"gain": 1, "loss": 2, "rate": "rate"}, ("gain", "conflicting_fields")),
        ({}, {"currency": "$"}, ("currency", "missing")),
        ({}, {"gain": "won", "loss": 3}, ("gain", "unknown_name")),
        ({}, {"gain": 0, "loss": 3}, ("gain", "invalid_value")),
        ({}, {"gain": "grade2", "loss": 3}, ("gain", "unknown_name")),
        ({}, {"gain": "day", "loss": 3}, ("gain", "invalid_value")),
        ({}, {"amount": "amount", "rate": 12, "term": 3}, ("rate", "invalid_value")),
        ({}, {"amount": "amount", "rate": "12", "term": 3}, ("rate", "invalid_value")),
        ({}, {"amount": "amount", "rate": "rate", "term": 3, "funding_rate": -0.1}, ("funding_rate", "invalid_value")),
        (
            {},
            {"amount": "amount", "rate": "rate", "term": 3, "loss_given_default": 60},
            ("loss_given_default", "invalid_value"),
        ),
        ({}, {"amount": "amount", "rate": "rate", "term": 36}, ("term_unit", "missing")),
        ({"term": MONTHS}, {"amount": "amount", "rate": "rate", "term": "term"}, ("term_unit", "missing")),
        ({"term": [12] * 6}, {"amount": "amount", "rate": "rate", "term": "term"}, ("term_unit", "missing")),
        ({"rate": [0.5, 12, 25, 9, 30, 9]}, {"amount": 1, "rate": "rate", "term": 3}, ("rate_unit", "missing")),
        (
            {"lost": [0.5, 60, 25, 9, 30, 9]},
            {"amount": 1, "rate": "rate", "term": 3, "loss_given_default": "lost"},
            ("rate_unit", "missing"),
        ),
        ({}, {"gain": 1, "loss": 2, "term_unit": "weeks"}, ("term_unit", "unknown_name")),
        ({}, {"gain": 1, "loss": 2, "most_offers": 0}, ("most_offers", "invalid_value")),
    ],
)
def test_what_is_missing_or_ambiguous(source: dict[str, Any], options: dict[str, Any], error: tuple[str, str]) -> None:
    table = {**LOANS, "day": [dt.date(2025, 1, 1)] * 6, **source}
    with rejected(*error):
        fit_history(table, "grade", "in", "good", **options)


def test_a_given_unit_settles_it() -> None:
    source = written(rate=[0.5, 12, 25, 9, 30, 9])
    history = fit_history(source, "grade", "in", "good", amount=1000, rate="rate", term=3, rate_unit="percent")
    assert history.bad["economics"] == 0
    least = max(history.offers()["A"].cost)
    assert least == pytest.approx(Offer.from_loan(1000, 0.005, 3).cost)


def test_rows_without_valid_economics_are_bad_rows() -> None:
    source = written(rate=["8%", "12%", "high", "9%", None, "2%"])
    history = fit_history(source, "grade", "in", "good", amount="amount", rate="rate", term=3, funding_rate=0.03)
    assert history.bad["economics"] == 3  # "high", a missing rate, and a rate below the funding rate
    assert history.rows == 6
    assert (history["A"].arrivals, history["B"].arrivals) == (2, 1)
    # The rate below the funding rate is a number, so it is not named.
    assert "3 rows not used: no valid gain and loss, e.g. rate 'high' (1), rate missing (1)." in history.describe()
    with rejected("source"):
        fit_history(source, "grade", "in", "good", amount="amount", rate="rate", term=3, funding_rate=0.03, strict=True)
    plain = fit_history(LOANS, "grade", "in", "good")
    assert "economics" not in plain.bad


def test_many_offers_are_grouped_and_the_error_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    count = 4000
    gain = generator.lognormal(5, 0.7, count)
    loss = gain * generator.uniform(2, 8, count)
    table = pa.table({
        "g": generator.choice(["a", "b"], count), "in": generator.integers(0, 2, count),
        "good": pa.array([None] * count, pa.int64()), "gain": gain, "loss": loss,
    })  # fmt: skip
    exact = Offers.from_gains_and_losses(gain, loss)
    for most_exact in (economics.MOST_EXACT, 100):
        monkeypatch.setattr(economics, "MOST_EXACT", most_exact)
        history = fit_history(table, "g", "in", "good", gain="gain", loss="loss")
        for name, offers in history.offers().items():
            mine = np.array(table["g"].to_pylist()) == name
            assert len(offers.amount) <= 25
            own = Offers.from_gains_and_losses(gain[mine], loss[mine])
            row = history[name].economics
            assert row is not None
            # The mean gain and the mean loss are those of the rows, and the error bounds the measured one.
            assert offers.mean_amount == pytest.approx(own.mean_amount)
            assert offers.mean_cost == pytest.approx(own.mean_cost)
            assert 0 < own.compression_error(offers) <= row.error
            assert row.error < 0.2 * own.mean_amount
            taken = mine & (table["in"].to_numpy() == 1)
            assert row.accepted_gain == pytest.approx(gain[taken].mean())
            assert row.accepted_loss == pytest.approx(loss[taken].mean())
        assert history.offers_of_all().mean_amount == pytest.approx(exact.mean_amount)
        assert "on average" in history.describe()


def test_segments_get_their_own_offers() -> None:
    history = fit_history(LOANS, "grade", "in", "good", gain="rate", loss="amount", currency="$")
    objective = Discounted(offers=history.offers_of_all(), discount=0.9)
    cells = history.divide(objective)
    assert {cell.name: cell.objective.offers for cell in cells} == history.offers()
    assert cells.currency == "$"
    same = history.divide(objective, own_offers=False)
    assert {cell.objective.offers for cell in same} == {history.offers_of_all()}
    # One cost for all stays one cost for all.
    assert history.divide(Discounted(0.8, 0.9))["A"].objective == Discounted(0.8, 0.9)
    with rejected("offers", "missing"):
        fit_history(LOANS, "grade", "in", "good").offers()


def test_a_prior_that_may_be_wrong() -> None:
    history = fit_history(LOANS, "grade", "in", "good")
    prior = MixtureBelief.doubt(Belief(20, 15), 0.2)
    cells = history.divide(Discounted(0.6, 0.9), prior=prior)
    assert cells["B"].prior == prior.after(2, 1)
    assert cells.solve().value().lower > 0


def test_errors_name_the_columns() -> None:
    with pytest.raises(InputError, match="column term has 12 to 60, which may be months or years"):
        fit_history(written(term=MONTHS), "grade", "in", "good", amount=1.0, rate=0.1, term="term")
