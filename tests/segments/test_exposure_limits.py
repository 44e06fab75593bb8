"""How many of each segment may be out at once where labels come late."""

from __future__ import annotations

from typing import Any

import pytest

from lenience import Belief, Delayed, Discounted, MixtureBelief, Offer, Offers, Segments, exposure_limits, starts
from lenience.core.errors import TooLargeError
from lenience.segments import exposure_limits as late
from rejections import rejected

WHOLE = Delayed(cost=0.8, arrivals=60, discount_rate=0.3, label_delay=0.5)
BELIEFS = {
    "good": Belief(30, 26),
    "new": Belief(2, 1),
    "twin": Belief(2, 1),
    "near": Belief(20, 15),
    "bad": Belief(9, 3),
}
SHARES = {"good": 0.2, "new": 0.25, "twin": 0.25, "near": 0.25, "bad": 0.05}


def test_limits_are_those_of_each_segments_own_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Segments.of(SHARES, WHOLE, BELIEFS)
    asked, solve = [], Delayed.solve

    def counting(objective: Delayed, belief: Belief, **options: Any) -> Any:
        asked.append(belief)
        return solve(objective, belief, **options)

    monkeypatch.setattr(Delayed, "solve", counting)
    pending = {"good": 7, "new": 1, "near": 3}
    found = {row.name: row for row in exposure_limits(cells, pending)}
    monkeypatch.undo()
    assert len(asked) == 2  # the twins are alike, and what is plain is not solved
    for cell in cells:
        row, own = found[cell.name], cell.own.solve(cell.prior, tolerance=1e-4)
        assert (row.limit, row.unlimited) == (own.limit(cell.prior), own.limit(cell.prior) is None)
        assert row.accept == own.accepts(cell.prior, row.pending)
        assert row.starts == own.accepts(cell.prior)
        assert row.room in (None, own.accept_now(cell.prior, row.pending, 1_000))
    limit = found["near"].limit
    assert limit is not None
    assert {name: row.now for name, row in found.items()} == {
        "good": "accept",
        "new": "wait",
        "twin": "accept up to 1 more",
        "near": f"accept up to {limit - 3} more" if limit > 3 else "wait",
        "bad": "reject",
    }
    assert found["bad"].limit == 0
    assert found["twin"].proved
    # What is pending teaches for nothing, and no worth is above the optimum with as many pending.
    assert found["new"].worth > found["twin"].worth
    for name, row in found.items():
        best = cells[name].own.enclose(row.belief, row.pending)[0]
        assert row.worth <= best.upper
        if row.policy is not None:
            assert row.worth == pytest.approx(best.midpoint, rel=2e-4)
    valued = {row.name: row for row in exposure_limits(cells, pending, values=True)}
    assert valued["good"].worth > found["good"].worth
    assert valued["bad"].policy is None


def test_limits_that_take_too_long_to_prove_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Segments.of(SHARES, WHOLE, BELIEFS)
    proved = {row.name: row for row in exposure_limits(cells, {"near": 1}, values=True)}
    monkeypatch.setattr(late, "SECONDS", 1e-9)
    estimated = {row.name: row for row in exposure_limits(cells, {"near": 1}, values=True)}
    for name, row in estimated.items():
        assert (row.limit, row.unlimited, row.now) == (proved[name].limit, proved[name].unlimited, proved[name].now)
        assert row.worth == pytest.approx(proved[name].worth, rel=1e-2)
        assert row.worth <= proved[name].worth * (1 + 1e-4)
    assert not estimated["near"].proved
    assert estimated["near"].most == f"~{estimated['near'].limit}"


def test_segments_that_the_time_does_not_suffice_for_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Segments.of(SHARES, WHOLE, BELIEFS)
    monkeypatch.setattr(late, "ALL_SECONDS", -1.0)
    rows = {row.name: row for row in exposure_limits(cells, values=True)}
    near = rows["near"]
    assert near.not_computed == late.NO_TIME
    assert (near.limit, near.unlimited, near.accept, near.starts, near.now, near.most) == (
        None, False, None, None, "not computed", "?",
    )  # fmt: skip
    good = rows["good"]  # is worth at least what accepting everyone is
    assert good.now == "accept"
    assert good.worth == pytest.approx(12 / 0.3 * (26 / 30 - 0.8))


def test_a_segment_that_cannot_be_solved_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = Delayed.solve

    def failing(objective: Delayed, belief: Belief, **options: Any) -> Any:
        if belief == BELIEFS["near"]:
            raise TooLargeError("Solving this problem", seconds=1e9, allowed_seconds=1.0)
        return solve(objective, belief, **options)

    monkeypatch.setattr(Delayed, "solve", failing)
    rows = {row.name: row for row in exposure_limits(Segments.of(SHARES, WHOLE, BELIEFS), values=True)}
    reason = rows["near"].not_computed
    assert reason is not None
    assert (reason.code, rows["near"].now) == ("not_solved", "not computed")
    assert all(row.not_computed is None for name, row in rows.items() if name != "near")
    assert rows["new"].limit == 1


def test_millions_of_arrivals_need_no_long_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first acceptance is judged by a short look-ahead, whose bounds agree with a long one."""
    many = Delayed(cost=0.8, arrivals=20_000, discount_rate=0.3, label_delay=0.5)
    beliefs = {"maybe": Belief(20, 14), "hopeless": Belief(400, 240)}
    cells = Segments.of({"maybe": 0.5, "hopeless": 0.5}, many, beliefs)
    long = {cell.name: late._without_solving(cell.own, beliefs[cell.name]) for cell in cells}
    monkeypatch.setattr(late, "START_SECONDS", 1e-4)
    assert {cell.name: late._without_solving(cell.own, beliefs[cell.name]) for cell in cells} == long
    assert long == {"maybe": None, "hopeless": 0}


def test_what_is_not_to_be_had_is_refused() -> None:
    cells = Segments.of(SHARES, WHOLE, BELIEFS)
    with rejected("pending"):
        exposure_limits(cells, {"old": 1})
    with rejected("pending"):
        exposure_limits(cells, {"new": -1})
    with rejected("segments"):
        exposure_limits(Segments.of(SHARES, Discounted(0.8, 0.9), BELIEFS))


def test_why_a_segment_does_not_start_where_labels_come_late() -> None:
    # A discounted volume of 20 is enough if labels come at once, but not if they come years later.
    cells = Segments.of({"new": 1.0}, Delayed(0.8, arrivals=4, discount_rate=0.1, label_delay=20), Belief(2, 1))
    [row] = starts(cells)
    assert row.needed < row.volume
    assert not row.starts
    assert row.reason == "never starts: its outcomes arrive too late for learning to pay"


def test_a_rate_at_the_cost_up_to_rounding_has_no_limit() -> None:
    # In doubles 3 times 0.1 is above 0.3, and 10 times 0.7 is 7.
    for cost, belief in ((0.1, Belief(3, 0.3)), (0.7, Belief(10, 7.0))):
        problem = Delayed(cost=cost, arrivals=5, discount_rate=0.5, label_delay=0.5)
        below = Belief(belief.n, belief.s * (1 - 1e-9))
        at, under = exposure_limits(Segments.of({"at": 0.5, "under": 0.5}, problem, {"at": belief, "under": below}))
        assert (at.limit, at.unlimited, at.proved) == (None, True, True)
        assert under.limit is not None


def test_every_offer_has_a_limit_of_its_own() -> None:
    loans = Offers(amount=[500, 5000], cost=[0.8, 0.75], currency="$")
    goal = Delayed(offers=loans, arrivals=40, discount_rate=0.5, label_delay=0.5)
    beliefs: dict[str, Belief | MixtureBelief] = {
        "good": Belief(30, 26),
        "between": Belief(400, 305),
        "new": Belief(2, 1),
        "bad": Belief(200, 60),
        "doubted": MixtureBelief.doubt(Belief(40, 20), 0.3),
    }
    cells = Segments.of(dict.fromkeys(beliefs, 0.2), goal, beliefs)
    rows = {row.name: row for row in exposure_limits(cells, {"new": 100})}
    for cell in cells:
        row, own = rows[cell.name], cell.own.solve(cell.prior, tolerance=1e-4)
        limits = [own.limit(cell.prior, Offer(amount, cost)) for amount, cost in ((500, 0.8), (5000, 0.75))]
        assert [one.limit for one in row.by_offer] == limits
        assert row.unlimited == (None in limits)
        assert row.limit == (None if None in limits else max(limits))
        assert row.proved == all(one.proved for one in row.by_offer)
        assert row.worth <= own.value(cell.prior, row.pending).upper
        if row.policy is not None:
            assert row.worth >= own.value(cell.prior, row.pending).lower - 1e-9
    assert {name: row.now for name, row in rows.items()} == {
        "good": "accept",
        "between": "accept 1 of 2 offers",
        "new": "wait",
        "bad": "reject",
        "doubted": rows["doubted"].now,
    }
    assert (rows["good"].policy, rows["bad"].policy) == (None, None)  # nothing needs solving
    assert [one.limit for one in rows["bad"].by_offer] == [0, 0]
    large = Segments.of(
        {"all": 1.0}, Delayed(offers=loans, arrivals=1e5, discount_rate=0.1, label_delay=1), Belief(2, 1)
    )
    [row] = exposure_limits(large)
    assert not row.proved
    assert row.limit == max(one.limit or 0 for one in row.by_offer) > 0
    assert row.most.startswith("~")


def test_a_doubtful_prior_has_a_limit() -> None:
    goal = Delayed(0.7, arrivals=20, discount_rate=0.2, label_delay=0.5)
    prior = MixtureBelief.doubt(Belief(8, 3), 0.3)
    [row] = exposure_limits(Segments.of({"all": 1.0}, goal, prior))
    assert row.limit == goal.solve(prior, tolerance=1e-4).limit(prior)
    assert row.by_offer == ()
