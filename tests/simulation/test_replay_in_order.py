"""Replays in order of time, the decisions in the results, and policies of the user's own."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Delayed, Discounted, FiniteHorizon, InputError, replay
from lenience.reports.replay_report import describe_best, describe_periods, write_replay_report
from lenience.simulation.replay_periods import periods_of
from lenience.simulation.replay_result import ReplayResult
from lenience.simulation.replay_table import period_table
from rejections import rejected

GOAL = Discounted(0.6, 0.97)


class Coin:
    """Accepts every second row, and keeps what it sees."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.times = 0

    def decide(self, X: NDArray[np.float64]) -> list[bool]:
        self.times += 1
        return [self.times % 2 == 1] * len(X)

    def observe(self, X: Any, accepted: Any, outcomes: Any) -> None:
        self.seen += list(outcomes)


class Learner(Coin):
    """Accepts while more than half of what it has seen succeeded; ``fit`` forgets."""

    def fit(self, X: NDArray[np.float64]) -> None:
        self.rows, self.seen = len(X), []

    def decide(self, X: NDArray[np.float64]) -> list[bool]:
        assert self.rows == 80
        return [not self.seen or sum(self.seen) > 0.5 * len(self.seen)] * len(X)


def drifting(rows: int = 80) -> tuple[NDArray[np.float64], NDArray[np.bool_], list[dt.date]]:
    rng = np.random.default_rng(3)
    days = [dt.date(2011, 1, 1) + dt.timedelta(days=9 * i) for i in range(rows)]
    y = rng.random(rows) < np.linspace(1.0, 0.0, rows)
    shuffled = rng.permutation(rows)
    return rng.normal(size=(rows, 2)), y[shuffled], [days[i] for i in shuffled]


@pytest.fixture(scope="module")
def result() -> ReplayResult:
    X, y, days = drifting()
    return replay(X, y, GOAL, {"coin": Coin(), "learner": Learner()}, seeds=4, times=days, groups=["a", "b"] * 40)


def test_rows_arrive_in_order_and_once(result: ReplayResult) -> None:
    _, y, days = drifting()
    assert result.rows.shape == (4, 40)
    for order in result.rows:
        assert len(set(order)) == 40
        assert [days[i] for i in order] == sorted(days[i] for i in order)
    assert len({tuple(order) for order in result.rows}) == 4
    assert result["coin"].decisions[0].tolist() == [True, False] * 20
    # The learner stops once half of what it saw has failed: late, because failures come late.
    for order, accepted in zip(result.rows, result["learner"].decisions, strict=True):
        seen: list[bool] = []
        for row, taken in zip(order, accepted, strict=True):
            assert taken == (not seen or sum(seen) > 0.5 * len(seen))
            if taken:
                seen.append(bool(y[row]))


def test_decisions_give_the_reported_numbers(result: ReplayResult) -> None:
    _, y, _ = drifting()
    gains = y[result.rows] - GOAL.cost
    for outcome in result.policies:
        earned = (gains * outcome.decisions) @ GOAL.discount ** np.arange(40)
        assert outcome.discounted == pytest.approx(earned)
        assert outcome.accepted == outcome.decisions.mean()
    frame = result.decisions_frame("pyarrow")
    assert frame.column_names == ["run", "arrival", "row", "coin", "learner"]
    assert frame.column("row").to_pylist() == result.rows.ravel().tolist()


def test_periods_show_the_drift(result: ReplayResult, tmp_path: Path) -> None:
    _, y, days = drifting()
    periods = result.periods
    assert [each.period for each in periods] == [f"{y} Q{q}" for y in (2011, 2012) for q in (1, 2, 3, 4)]
    assert sum(each.arrivals for each in periods) == pytest.approx(40)
    assert periods[0].success_rate > 0.7 > 0.4 > periods[-1].success_rate
    quarter = [np.array([days[i].year == 2011 and days[i].month <= 3 for i in order]) for order in result.rows]
    here = np.array(quarter)
    assert periods[0].success_rate == pytest.approx(y[result.rows][here].mean())
    assert periods[0].accepted["coin"] == pytest.approx(result["coin"].decisions[here].mean())
    assert periods[0].success_of_accepted["coin"] == pytest.approx(
        y[result.rows][here & result["coin"].decisions].mean()
    )
    earned = (y[result.rows] - GOAL.cost) * result["coin"].decisions
    assert periods[0].reward["coin"] == pytest.approx(earned[here].mean())
    headings, rows = period_table(result)
    assert (headings[0], len(rows)) == ("period", 8)
    page = write_replay_report(result, tmp_path / "replay.html", "Loans").read_text(encoding="utf-8")
    assert "Over time" in page
    assert "2011 Q1" in page
    assert "(2011 Q1) and" in describe_periods(result)
    assert "(2012 Q4)" in describe_periods(result)


def test_warm_labels_are_the_earliest_rows() -> None:
    X, y, days = drifting()
    result = replay(X, y, GOAL, {"coin": Coin()}, seeds=3, times=days, warm=10, arrivals=70)
    order = np.argsort(np.array(days, dtype="datetime64[D]"), kind="stable")
    assert result.seeds == 1  # all rows are used, so there is one order
    assert result.rows[0].tolist() == order[10:].tolist()
    assert "one run" in describe_best(result)
    with rejected("arrivals"):
        replay(X, y, GOAL, {"coin": Coin()}, seeds=1, times=days, warm=11, arrivals=70)
    with rejected("warm", "insufficient_data"):
        replay(X, y, GOAL, {"coin": Coin()}, seeds=1, times=days, warm=80)


def test_our_policy_and_late_labels_in_order() -> None:
    X, y, days = drifting()
    texts = [day.strftime("%m/%d/%Y") for day in days]
    for goal in (GOAL, FiniteHorizon(0.6, 500), Delayed(0.6, 1.0, 1 / 0.97 - 1, 5.0)):
        result = replay(X, y, goal, seeds=2, times=texts)
        assert result.rows.shape == (2, 40)
        assert len(result.periods) == 8


def test_times_are_checked() -> None:
    X, y, days = drifting()
    for times, field in (
        ([*days[1:], None], "times"), (days[1:], "times"), (["01/02/2011"] * 80, "dates"), (["soon"] * 80, "times")
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            replay(X, y, GOAL, {"coin": Coin()}, seeds=1, times=times)
        assert caught.value.field == field
    numbers = replay(X, y, GOAL, {"coin": Coin()}, seeds=1, times=np.arange(80.0))
    assert 2 <= len(numbers.periods) <= 16
    assert (np.diff(numbers.rows[0]) > 0).all()


def test_the_finest_unit_with_few_periods() -> None:
    def names(*days: str) -> list[str]:
        return periods_of(np.array(days, dtype="datetime64[s]"))[1]

    assert names("2011-01-01", "2011-01-03") == ["2011-01-01", "2011-01-02", "2011-01-03"]
    assert names("2011-01-05", "2011-03-01")[0].startswith("week of ")
    assert names("2011-01-05", "2011-09-01")[-1] == "2011-09"
    assert names("2000-01-05", "2011-09-01")[-1] == "2011"
    assert names("1980-01-05", "2011-09-01")[0] == "1980 to 1981"
    assert periods_of(np.array([3.0, 3.0]))[1] == ["3"]


def test_a_policy_of_ones_own_with_labels_that_come_at_once_or_late() -> None:
    X, y, _ = drifting()
    late = replay(X, y, Delayed(0.6, 1.0, 0.05, 1e9), {"learner": Learner()}, seeds=2, arrivals=30)
    assert late["learner"].accepted == 1.0  # no outcome arrives, so it never stops
    coin = Coin()
    replay(X, y, GOAL, {"coin": coin}, seeds=2, arrivals=5)
    assert coin.times == 0  # every run has its own copy
    with rejected("policies"):
        replay(X, y, GOAL, {"nobody": object()}, seeds=1, arrivals=5)
