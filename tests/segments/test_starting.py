"""The segment that never starts."""

from __future__ import annotations

import math

import pytest

from lenience import Belief, Bounds, Delayed, Discounted, Segments, gittins_index, starts
from lenience.segments import shut_out_at_outset, starting, starting_volume
from lenience.segments.starting import COARSE, MOST_FORECAST, Start, forecast_starts, known_to_lose
from oracles import continuation


@pytest.mark.parametrize(("cost", "volume"), [(0.7, 8.7), (0.8, 32), (0.9, 185)])
def test_flat_prior_volumes(cost: float, volume: float) -> None:
    found = starting_volume(Belief(2, 1), cost)
    assert found.midpoint == pytest.approx(volume, rel=0.01)
    assert found.width <= 2e-6 * found.midpoint


def test_at_the_starting_volume_the_gittins_index_is_the_cost() -> None:
    volume = starting_volume(Belief(3, 1.5), 0.75).midpoint
    index = gittins_index(Belief(3, 1.5), discount=volume / (1 + volume), tolerance=1e-7)
    assert index.midpoint == pytest.approx(0.75, abs=1e-5)


def test_extremes() -> None:
    assert starting_volume(Belief(2, 1.7), 0.8).upper == 0.0
    assert math.isinf(starting_volume(Belief(2, 0), 0.8).lower)
    assert math.isinf(starting_volume(Belief(200, 100), 0.9).lower)


def test_starts_agree_with_the_solved_policies() -> None:
    shares = {f"{i}": 0.3 / 1.5**i for i in range(8)}
    cells = Segments.of(shares, Discounted(0.8, 0.997), Belief(2, 1))
    policies = cells.solve()
    rows = starts(cells)
    assert [row.starts for row in rows] == [policies.accepts(row.name) for row in rows]
    assert {row.starts for row in rows} == {True, False}
    assert rows[0].volume == pytest.approx(0.3 * 0.997 / 0.003)


def test_shut_out_by_group() -> None:
    groups = {"big": "A", "mid": "A", "small": "B", "tiny": "B"}
    shares = {"big": 0.6, "mid": 0.3, "small": 0.08, "tiny": 0.02}
    cells = Segments.of(shares, Discounted(0.8, 0.99), Belief(2, 1), groups)
    truths = {"big": 0.9, "mid": 0.5, "small": 0.95, "tiny": 0.85}
    a, b = shut_out_at_outset(cells, truths, model="flat")
    assert (a.group, a.segments, a.shut, a.deserving, a.deserving_shut) == ("A", 2, 1, 1, 0)
    assert (b.group, b.segments, b.shut, b.deserving, b.deserving_shut) == ("B", 2, 2, 2, 2)
    assert b.deserving_share_shut == 1.0
    assert shut_out_at_outset(cells)[0].deserving is None


def plainly_starts(n: float, s: float, cost: float, volume: float) -> bool:
    """Whether a first acceptance pays at a discounted volume, by a plain recursion."""
    discount = volume / (1 + volume)
    lower, upper = continuation(n, s, cost, discount, math.ceil(30 * (1 + volume)) + 50)
    assert lower > 0 or upper <= 0
    return lower > 0


@pytest.mark.parametrize(("n", "s", "cost"), [(2.0, 1.0, 0.6), (1.0, 0.5, 0.75), (8.0, 5.5, 0.7), (6.0, 4.19, 0.7)])
@pytest.mark.parametrize("precision", [0.2, 0.01])
def test_the_starting_volume_is_where_a_plain_recursion_changes_its_mind(
    n: float, s: float, cost: float, precision: float
) -> None:
    bounds = starting_volume(Belief(n, s), cost, precision)
    assert bounds.width <= precision * bounds.upper
    assert bounds.width > 0.5 * precision * bounds.upper  # no more halvings than the precision needs
    assert not plainly_starts(n, s, cost, bounds.lower)
    assert plainly_starts(n, s, cost, bounds.upper * (1 + 1e-9))


def test_volumes_beyond_the_most_are_infinite() -> None:
    found = starting_volume(Belief(2, 1), 0.8).midpoint
    assert math.isinf(starting_volume(Belief(2, 1), 0.8, most=0.9 * found).lower)
    assert starting_volume(Belief(2, 1), 0.8, most=4 * found).midpoint == pytest.approx(found, rel=1e-5)
    # At the cost exactly, any volume above 0 starts.
    assert starting_volume(Belief(2, 1), 0.5).upper <= 1e-3


def row(prior: Belief, cost: float, volume: float, needed: float, begins: bool) -> Start:
    return Start("x", "", prior, cost, volume, needed, begins)


def test_reasons() -> None:
    above = row(Belief(10, 9), 0.8, 5, 0.0, True).reason
    assert above.startswith("starts: 90%")
    assert "80%" in above
    enough = row(Belief(2, 1), 0.8, 40, 32.14, True).reason
    assert enough.startswith("starts: 40")
    assert "32.1" in enough
    losing = row(Belief(1000, 700), 0.8, 40, math.inf, False)
    assert losing.loses
    assert losing.reason.startswith("never starts: 70%")
    assert "80%" in losing.reason
    late = row(Belief(2, 1), 0.8, 40, 32.14, False)
    assert not late.loses
    assert late.reason.startswith("never starts")
    assert "late" in late.reason
    few = row(Belief(2, 1), 0.8, 4, 32.14, False).reason
    assert few.startswith("never starts: 4 ")
    assert "32.1" in few
    hopeless = row(Belief(2, 1), 0.8, 4, math.inf, False).reason
    assert hopeless.startswith("never starts: 4 ")
    assert "far more" in hopeless
    # Whoever starts does not lose, whatever is believed.
    assert not row(Belief(1000, 700), 0.8, 1e9, 1e8, True).loses


def test_a_segment_is_known_to_lose_below_a_chance_of_five_percent() -> None:
    for n, s in ((40.0, 26.0), (40.0, 30.0), (100.0, 72.0), (100.0, 75.0)):
        chance = Belief(n, s).exceeds(0.8)
        assert known_to_lose(Belief(n, s), 0.8) == (chance < 0.05)
    assert {known_to_lose(Belief(100.0, s), 0.8) for s in (72.0, 75.0)} == {True, False}


def test_volumes_needed_are_looked_for_up_to_ten_times_the_segments_own() -> None:
    belief, cost = Belief(4, 2), 0.93
    needed = starting_volume(belief, cost, 1e-3).midpoint
    assert 1_000 < needed < 1e5
    # The search doubles the volume, so a volume that is needed may be missed above half of the most.
    for share, shown in ((0.21, True), (0.08, False)):
        volume = needed * share
        cells = Segments.of({"x": 1.0}, Discounted(cost, volume / (1 + volume)), belief)
        [found] = starts(cells)
        assert not found.starts
        assert math.isinf(found.needed) != shown
        assert found.volume == pytest.approx(volume)


def test_forecasts_are_coarse_and_in_time() -> None:
    shares = {"rare": 0.05, "sure": 0.25, "many": 0.6, "bad": 0.1}
    beliefs = {"rare": Belief(2, 1), "sure": Belief(10, 9), "many": Belief(2, 1), "bad": Belief(40, 4)}
    cells = Segments.of(shares, Discounted(0.8, 0.99), beliefs)
    found = forecast_starts(cells, seconds=60)
    assert [one.name for one in found] == ["many", "sure", "bad", "rare"]
    by_name = {one.name: one for one in found}
    assert {name: one.starts for name, one in by_name.items()} == {
        "many": True, "sure": True, "bad": False, "rare": False,
    }  # fmt: skip
    assert by_name["sure"].needed == 0.0
    assert by_name["many"].needed == pytest.approx(32.14, rel=0.01)
    assert by_name["many"].volume == pytest.approx(0.6 * 99)
    assert by_name["bad"].needed is not None
    assert math.isinf(by_name["bad"].needed)
    hurried = {one.name: one for one in forecast_starts(cells, seconds=0.0)}
    assert (hurried["sure"].needed, hurried["sure"].starts) == (0.0, True)
    assert (hurried["many"].needed, hurried["many"].starts) == (None, None)
    assert forecast_starts([], seconds=1.0) == []


def test_forecasts_near_the_edge_and_beyond_the_search_say_nothing() -> None:
    needed = starting_volume(Belief(2, 1), 0.8, COARSE, MOST_FORECAST)
    for volume, begins in ((0.98 * needed.lower, False), (needed.midpoint, None), (1.01 * needed.upper, True)):
        cell = Segments.of({"x": 1.0}, Discounted(0.8, volume / (1 + volume)), Belief(2, 1))
        [found] = forecast_starts(cell, seconds=60)
        assert found.starts is begins
        assert found.needed == needed.midpoint
    # Known to need more than is searched for: with more than that to come, nothing is known.
    for volume, begins in ((19_000.0, False), (21_000.0, None)):
        cell = Segments.of({"x": 1.0}, Discounted(0.8, volume / (1 + volume)), Belief(40, 4))
        assert forecast_starts(cell, seconds=60)[0].starts is begins


def test_forecasts_with_late_labels() -> None:
    # 40 discounted members are enough with immediate labels; 20 years late they are not, and 1,000,000 take too long.
    for arrivals, delay, begins in ((4.0, 20.0, False), (4.0, 0.01, True), (1e8, 1.0, None)):
        whole = Delayed(0.8, arrivals=arrivals, discount_rate=0.1, label_delay=delay)
        [found] = forecast_starts(Segments.of({"x": 1.0}, whole, Belief(2, 1)), seconds=60)
        assert found.starts is begins


def test_shares_of_the_deserving_count_by_volume() -> None:
    shares = {"big": 0.6, "small": 0.08, "tiny": 0.02}
    cells = Segments.of(shares, Discounted(0.8, 0.99), Belief(2, 1))
    [found] = shut_out_at_outset(cells, {"big": 0.9, "small": 0.85, "tiny": 0.8})
    assert (found.segments, found.shut, found.deserving, found.deserving_shut) == (3, 2, 2, 1)
    assert found.deserving_share_shut == pytest.approx(0.08 / 0.68)
    [none] = shut_out_at_outset(cells, dict.fromkeys(shares, 0.1))
    assert (none.deserving, none.deserving_share_shut) == (0, 0.0)
    [known] = shut_out_at_outset(cells, begin={"big": False, "small": True, "tiny": True})
    assert known.shut == 1


def test_a_volume_at_the_upper_bound_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Segments.of({"x": 1.0}, Discounted(0.8, 0.9), Belief(2, 1))
    volume = cells["x"].volume
    for bounds, begins in (
        (Bounds(volume - 1, volume), True),
        (Bounds(volume, volume + 1), False),
        (Bounds(volume - 1, volume + 1), None),
    ):
        monkeypatch.setattr(starting, "starting_volume", lambda *_, found=bounds: found)
        assert forecast_starts(cells, seconds=60)[0].starts is begins


def test_labels_that_come_late_keep_a_segment_shut() -> None:
    """At this volume the segment would start if labels came at once."""
    for delay, begins in ((0.001, True), (5.0, False)):
        cells = Segments.of({"x": 1.0}, Delayed(0.8, arrivals=20, discount_rate=0.5, label_delay=delay), Belief(2, 1))
        [found] = starts(cells)
        assert found.volume == pytest.approx(40)
        assert found.needed == pytest.approx(32.14, rel=0.01)
        assert found.starts == begins


def test_segments_beyond_the_search_are_solved_at_their_own_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Segments.of(
        {"open": 0.5, "shut": 0.5}, Discounted(0.8, 0.9998), {"open": Belief(40, 28), "shut": Belief(60, 30)}
    )
    monkeypatch.setattr(starting, "MOST_SHOWN", 5.0)
    monkeypatch.setattr(starting, "MOST_SEARCHED", 5.0)  # both would start only beyond it, and both have more
    assert {row.name: row.starts for row in starts(cells)} == {"open": True, "shut": False}
    assert all(math.isinf(row.needed) for row in starts(cells))


def test_volumes_inside_the_bounds_of_what_is_needed_are_solved() -> None:
    prior = Belief(2, 1)
    needed = starting_volume(prior, 0.8, starting.SHOWN, 1e3)
    assert 0.0 < needed.width < 0.1
    answers = set()
    for part in (0.02, 0.25, 0.5, 0.75, 0.98):
        volume = needed.lower + part * needed.width  # of the discounted applicants after the first
        own = Discounted(0.8, volume / (1.0 + volume))
        (row,) = starts(Segments.of({"a": 1.0}, own, prior))
        assert row.starts == own.starts(prior) == (own.enclose(prior, 1e-12)[1].lower > 0.0)
        answers.add(row.starts)
    assert answers == {True, False}


def test_a_rate_at_the_break_even_deserves_nothing() -> None:
    cells = Segments.of({"at": 0.5, "above": 0.5}, Discounted(0.8, 0.99), Belief(2, 1), {"at": "A", "above": "A"})
    (row,) = shut_out_at_outset(cells, {"at": 0.8, "above": 0.81})
    assert row.deserving == 1
