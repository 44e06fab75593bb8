"""Pending outcomes that count according to their age, and warnings about outcomes that are not mature."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from lenience import Belief, Discounted, History, MixtureBelief, fit_history
from lenience.history.beliefs import beliefs_of_history
from lenience.history.maturing import Maturing, OpenLoans
from lenience.history.past import believe, read_past
from lenience.history.past_columns import PastColumns
from lenience.models import TimingCurves, mature_belief
from lenience.simulation import LoanBook
from rejections import rejected

pytest.importorskip("ibis")

RATES = {"A": 0.93, "B": 0.8, "C": 0.65}
COLUMNS = ("grade", "granted", "status")
DATES: dict[str, Any] = {"time": "decided", "outcome_time": "closed"}
CURVES = TimingCurves((0, 30, 100), (1, 0.9, 0.5), (1, 0.4, 0.1))
DAY = dt.date(2024, 12, 31)


@pytest.fixture(scope="module")
def past() -> dict[str, list[Any]]:
    return LoanBook(RATES, loans=700, last_day=DAY).draw(seed=3)


@pytest.fixture(scope="module")
def matured(past: dict[str, list[Any]]) -> History:
    return fit_history(past, *COLUMNS, **DATES, maturing="learn")


def small(**columns: list[Any]) -> dict[str, list[Any]]:
    """Four loans of one segment: repaid after 40 days, failed after 10, open for 50 and for 5 days."""
    days = [100, 90, 50, 5]
    loans: dict[str, list[Any]] = {
        "grade": ["A"] * 4,
        "granted": [1] * 4,
        "status": ["repaid", "default", None, None],
        "decided": [DAY - dt.timedelta(days=day) for day in days],
        "closed": [DAY - dt.timedelta(days=60), DAY - dt.timedelta(days=80), None, None],
    }
    return loans | columns


def test_open_loans_correct_the_rates(past: dict[str, list[Any]], matured: History) -> None:
    plain = fit_history(past, *COLUMNS, **DATES)
    for name, rate in RATES.items():
        assert plain.beliefs()[name].mean < rate - 0.03
        assert matured.beliefs()[name].mean == pytest.approx(rate, abs=0.035)
        assert matured.beliefs()[name].n > plain.beliefs()[name].n
        assert matured.rates()[name] == matured.beliefs()[name].mean
    assert [row.rate for row in matured.segments] == [row.rate for row in plain.segments]
    assert "count according to their age" in matured.describe()


def test_beliefs_are_those_of_the_ages() -> None:
    history = fit_history(small(), *COLUMNS, time="decided", maturing=CURVES, as_of=DAY)
    expected = mature_belief(Belief(4, 2), [50, 5], CURVES)
    assert history.beliefs() == {"A": expected}
    assert history.divide(Discounted(0.5, 0.9))["A"].prior == expected
    prior = MixtureBelief.doubt(Belief(4, 3), 0.2)
    assert history.divide(Discounted(0.5, 0.9), prior)["A"].prior == mature_belief(prior.after(2, 1), [50, 5], CURVES)


def test_half_life_weighs_the_open_too() -> None:
    history = fit_history(small(), *COLUMNS, time="decided", maturing=CURVES, as_of=DAY, half_life=50)
    known = Belief(2 + history["A"].n, 1 + history["A"].s)
    assert history.beliefs()["A"] == mature_belief(known, [50, 5], CURVES, [0.5, 0.5**0.1])


def test_a_past_date_hides_later_outcomes() -> None:
    """60 days before the end the first loan was open, and the second had failed 20 days earlier."""
    as_of = DAY - dt.timedelta(days=61)
    history = fit_history(small(), *COLUMNS, **DATES, as_of=as_of, maturing=CURVES)
    assert (history["A"].labels, history["A"].successes, history["A"].pending, history.later) == (1, 0, 1, 2)
    assert history.beliefs()["A"] == mature_belief(Belief(3, 1), [39], CURVES)


def test_count_is_not_before_the_last_outcome() -> None:
    later = small(closed=[DAY, DAY + dt.timedelta(days=30), None, None])
    assert fit_history(later, *COLUMNS, **DATES).as_of == dt.datetime.combine(DAY + dt.timedelta(days=30), dt.time())
    # The date of an open loan is not that of an outcome.
    planned = small(closed=[DAY, DAY, DAY + dt.timedelta(days=30), None])
    assert fit_history(planned, *COLUMNS, **DATES).as_of == dt.datetime.combine(DAY, dt.time())


@pytest.mark.parametrize(
    ("closed", "kind"),
    [
        (None, "outcome_time"),
        (DAY - dt.timedelta(days=101), "outcome_early"),
        (dt.date(2999, 1, 1), "outcome_future"),
    ],
)
def test_invalid_dates_of_outcomes_are_bad_rows(closed: dt.date | None, kind: str) -> None:
    source = small(closed=[closed, DAY - dt.timedelta(days=80), None, None], won=[9, 1, 1, 1])
    choices: list[dict[str, Any]] = [{"maturing": "learn"}, {"gain": "won", "loss": 5}]
    for more in choices:
        history = fit_history(source, *COLUMNS, **(DATES | more))
        assert {name for name, count in history.bad.items() if count} == {kind}
        assert (history["A"].labels, history["A"].arrivals) == (1, 3)
        assert history.rows == 4
        assert history.maturing is not None
        assert (history.maturing.curves.successes, history.maturing.curves.failures) == (0, 1)
        if "gain" in more:
            assert history.offers()["A"].amount == (6.0,)
    with rejected(field="source"):
        fit_history(source, *COLUMNS, **DATES, strict=True)


def test_an_outcome_on_the_day_of_the_decision_is_valid() -> None:
    decided = [dt.datetime(2024, 12, 1, 15)] * 4
    source = small(decided=decided, closed=[dt.date(2024, 12, 1), dt.date(2024, 12, 2), None, None])
    assert fit_history(source, *COLUMNS, **DATES).bad_rows == 0


def test_files_and_texts_are_read_alike(past: dict[str, list[Any]], matured: History, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv

    path = tmp_path / "loans.csv"
    pyarrow.csv.write_csv(pa.table(past), path)
    assert fit_history(path, *COLUMNS, **DATES, maturing="learn").beliefs() == matured.beliefs()


def test_models_learn_from_open_loans(matured: History) -> None:
    own = beliefs_of_history(matured).beliefs
    assert own == matured.beliefs()
    for model in ("shared", "jeffreys", "history"):
        for name, belief in beliefs_of_history(matured, model).beliefs.items():
            assert belief.mean == pytest.approx(own[name].mean, abs=0.01)
            assert belief.n == pytest.approx(own[name].n, rel=0.05)
    scored = believe_by_curve(matured)
    assert all(scored[name].mean == pytest.approx(own[name].mean, abs=0.02) for name in RATES)


def believe_by_curve(history: History) -> dict[str, Belief]:
    from lenience.history.beliefs import fit_model

    scores = [(float(i),) for i in range(len(history.segments))]
    return fit_model(history.segments, "curve", scores=scores, maturing=history.applied).beliefs


def test_past_columns_have_the_dates(past: dict[str, list[Any]], matured: History) -> None:
    columns = PastColumns(("grade",), "status", "granted", time="decided", outcome_time="closed", maturing=True)
    counted = read_past(past, columns)
    assert believe(counted).beliefs == matured.beliefs()
    # Other counts, as in a backtest, are taken as they are.
    assert believe(counted, counts={"A": (10, 5)}).beliefs["A"] == Belief(12, 6)


def test_immature_outcomes_are_a_warning(past: dict[str, list[Any]]) -> None:
    immaturity = fit_history(past, *COLUMNS, **DATES).immaturity
    assert immaturity is not None
    assert immaturity.dated
    assert immaturity.expected_rate is not None
    assert immaturity.expected_rate == pytest.approx(sum(RATES.values()) / 3, abs=0.02)
    assert immaturity.known_rate < immaturity.expected_rate - 0.05
    assert immaturity.maturity == pytest.approx(1095, abs=30)
    assert immaturity.segment == "C"
    assert immaturity.failures_after is not None
    assert immaturity.successes_after is not None
    assert immaturity.failures_after < immaturity.successes_after


def test_old_decisions_show_immaturity_without_dates_of_outcomes(past: dict[str, list[Any]]) -> None:
    immaturity = fit_history(past, *COLUMNS, time="decided").immaturity
    assert immaturity is not None
    assert not immaturity.dated
    assert immaturity.expected_rate is not None
    assert immaturity.known_rate + 0.03 < immaturity.expected_rate
    assert immaturity.expected_rate == pytest.approx(sum(RATES.values()) / 3, abs=0.06)
    young = {name: [value for value, day in zip(values, past["decided"], strict=True) if day.year == 2024]
             for name, values in past.items()}  # fmt: skip
    unknown = fit_history(young, *COLUMNS, time="decided").immaturity
    assert unknown is not None
    assert unknown.expected_rate is None


def test_no_warning_without_a_reason(past: dict[str, list[Any]], matured: History) -> None:
    assert matured.immaturity is None
    assert fit_history(past, *COLUMNS, **DATES, maturity=1095).immaturity is None
    closed = {name: [value for value, status in zip(values, past["status"], strict=True) if status is not None]
              for name, values in past.items()}  # fmt: skip
    assert fit_history(closed, *COLUMNS, **DATES).immaturity is None
    assert fit_history(closed, *COLUMNS, time="decided").immaturity is None
    # Open loans of which nothing is known, because outcomes arrive at one age whatever they are.
    even = small(status=["repaid", "default", None, None], closed=[DAY - dt.timedelta(50)] * 2 + [None] * 2)
    assert fit_history(even, *COLUMNS, **DATES).immaturity is None


def test_arrivals_of_the_last_year(past: dict[str, list[Any]]) -> None:
    before = max(past["decided"]) - dt.timedelta(days=366)
    assert fit_history(past, *COLUMNS, "decided").last_year == sum(day > before for day in past["decided"])
    assert fit_history(past, *COLUMNS).last_year is None
    assert fit_history(small(), *COLUMNS, "decided").last_year is None  # a hundred days only


def test_mean_delay_includes_the_pending(matured: History) -> None:
    """Repaid loans take 60 to 1,095 days or 1,095, failures 460: known outcomes alone would make it shorter."""
    rate = sum(RATES.values()) / 3
    truth = rate * (0.5 * (60 + 1095) / 2 + 0.5 * 1095) + (1 - rate) * 460
    assert matured.mean_delay == pytest.approx(truth, rel=0.05)
    assert fit_history(small(), *COLUMNS).mean_delay is None


def test_invalid_arguments() -> None:
    with rejected(field="maturing", code="missing"):
        fit_history(small(), *COLUMNS, maturing="learn")
    with rejected(field="maturing", code="missing"):
        fit_history(small(), *COLUMNS, "decided", maturing="learn")
    with rejected(field="outcome_time", code="missing"):
        fit_history(small(), *COLUMNS, outcome_time="closed")
    with rejected(field="maturing", code="conflicting_fields"):
        fit_history(small(), *COLUMNS, **DATES, maturing="learn", maturity=30)
    with rejected(field="maturing"):
        fit_history(small(), *COLUMNS, **DATES, maturing="yes")  # type: ignore[arg-type]
    with rejected(field="maturing", code="insufficient_data"):
        fit_history(small(status=["pending"] * 4), *COLUMNS, **DATES, pending=["pending"], maturing="learn")
    with rejected(field="outcome_time", code="unknown_name"):
        fit_history(small(), *COLUMNS, "decided", outcome_time="cosed")


def test_one_segment_without_old_loans_says_how_uncertain_its_rate_is() -> None:
    def described(segments: int) -> str:
        curves = TimingCurves((0, 90, 365), (1, 1, 0.9), (1, 0.5, 0.4), unresolved=0.6)
        loans = {f"s{i}": OpenLoans((100.0,), (3.0,)) for i in range(segments)}
        return Maturing(curves, loans, True).describe()[-1]

    assert "30 points higher or lower" in described(1)
    assert "differences between segments" in described(2)
