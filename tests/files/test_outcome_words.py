"""Open is not failed: words for outcomes, in every function that reads a column of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lenience import Discounted, InputError, fit_history, off_policy, replay
from lenience.files.outcome_words import OutcomeWords, read_outcomes
from lenience.files.table import from_columns
from rejections import rejected

STATUS = ["Fully Paid", "Charged Off", "Current", "Late", "", None]
NAN = float("nan")


def test_an_open_loan_is_no_failure() -> None:
    words = OutcomeWords.of(pending=["current ", "Late"])
    np.testing.assert_equal(read_outcomes("status", STATUS, words), [1, 0, NAN, NAN, NAN, NAN])
    words = OutcomeWords.of("Current", "late")
    np.testing.assert_equal(read_outcomes("status", STATUS, words), [1, 0, 1, 0, NAN, NAN])


@pytest.mark.parametrize("given", [{}, {"success": "Fully Paid"}, {"pending": "Current"}, {"failure": ["Charged Off"]}])
def test_a_value_without_a_meaning_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        read_outcomes("status", [*STATUS, "Late"], OutcomeWords.of(**given))
    assert (caught.value.field, caught.value.value) == ("outcome", "Late")
    assert "'Late' (2 rows)" in str(caught.value)
    with rejected("outcome"):
        from_columns({"status": STATUS, "x": [1.0] * 6}, "status", **given)


def test_numbers_and_reversed_words() -> None:
    assert read_outcomes("y", [1, 0.0, "1.0", True, False]).tolist() == [1, 0, 1, 1, 0]
    assert read_outcomes("bad", [1, 0], OutcomeWords.of(success=0, failure=1)).tolist() == [0, 1]
    assert read_outcomes("class", [1, 2], OutcomeWords.of(failure="2")).tolist() == [1, 0]
    with rejected("success", "missing"):
        read_outcomes("bad", [1, 0], OutcomeWords.of(success="0"))
    with rejected("failure", "unknown_name"):
        read_outcomes("status", STATUS, OutcomeWords.of(failure="defaultd", pending=["Current", "Late"]))
    with rejected("success", "conflicting_fields"):
        read_outcomes("status", STATUS, OutcomeWords.of("Late", "late"))


def test_the_same_words_in_a_history() -> None:
    past = {"g": ["a"] * 6, "in": [1] * 6, "status": STATUS}
    [row] = fit_history(past, "g", "in", "status", pending=["Current", "Late"]).segments
    assert (row.labels, row.successes, row.pending) == (2, 1, 4)
    assert fit_history(past, "g", "in", "status").bad["outcome"] == 2


def test_a_replay_leaves_open_rows_out() -> None:
    rng = np.random.default_rng(0)
    X, status = rng.normal(size=(60, 2)), rng.choice(["Fully Paid", "Charged Off", "Current"], 60)
    goal = Discounted(0.5, 0.9)
    with rejected("outcomes"):
        replay(X, status, goal, seeds=1, arrivals=5)
    result = replay(X, status, goal, seeds=2, arrivals=20, pending="Current", groups=list(status))
    closed = status != "Current"
    assert result.left_out == 60 - closed.sum()
    assert set(result.rows.ravel()) <= set(np.flatnonzero(closed))
    assert list(result["always"].by_group) == ["Charged Off", "Fully Paid"]
    as_numbers = replay(
        X[closed], status[closed] == "Fully Paid", goal, seeds=2, arrivals=20, groups=list(status[closed])
    )
    assert result["lenience"].mean == as_numbers["lenience"].mean
    missing = np.where(closed, status == "Fully Paid", NAN)
    assert replay(X, missing, goal, seeds=2, arrivals=20)["lenience"].mean == as_numbers["lenience"].mean
    with rejected("outcomes", "insufficient_data"):
        replay(X, np.full(60, NAN), goal, seeds=1, arrivals=5)


def test_off_policy_counts_the_closed_for_the_open() -> None:
    """If outcomes are missing at random, the estimate is about that with all outcomes; a failure is not made up."""
    rng = np.random.default_rng(1)
    e = np.full(20_000, 0.5)
    accepted = rng.random(20_000) < e
    good = rng.random(20_000) < 0.8
    proposed = np.ones(20_000)
    full = off_policy(proposed, accepted, e, good.astype(float), cost=0.5)
    status = np.where(good, "repaid", "default").astype(object)
    status[rng.random(20_000) < 0.4] = "Current"
    status[~accepted] = "rejected by hand"  # outcomes of the rejected are ignored
    result = off_policy(proposed, accepted, e, status, cost=0.5, pending=["current"], X=rng.normal(size=(20_000, 1)))
    assert result.pending == (accepted & (status == "Current")).sum()
    assert "have no outcome yet" in result.caution
    assert result.doubly_robust is not None
    for a, b in (
        (result.logged, full.logged), (result.inverse_propensity, full.inverse_propensity), (result.gain, full.gain),
        (result.doubly_robust, full.inverse_propensity),
    ):  # fmt: skip
        assert a.value == pytest.approx(b.value, abs=0.02)
    with rejected("outcomes"):
        off_policy(proposed, accepted, e, status, cost=0.5)
    with rejected("outcomes", "insufficient_data"):
        off_policy(proposed, accepted, e, np.full(20_000, NAN), cost=0.5)
