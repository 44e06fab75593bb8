"""Worlds draw what they say, and show an outcome only to whoever accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import lenience as ln
from lenience.core.counter_rng import replication_keys
from lenience.simulation.stream import World
from rejections import rejected

FLAT = ln.Belief(2, 1)
KEYS = replication_keys(1, 0, 4000)


class Watched:
    """Accepts all, or no one, and keeps what it was shown."""

    stop_ceiling = 0.0

    def __init__(self, accept: float = 1.0, most_pending: int = 10**9) -> None:
        self.accept, self.most, self.seen = accept, most_pending, []  # type: ignore[var-annotated]

    def stop_floor(self, n: float) -> float:
        return -1.0

    def acceptance(self, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
        self.seen.append((np.array(n), np.array(s), np.array(pending)))
        return np.where(np.asarray(pending) < self.most, self.accept, 0.0) * np.ones(np.shape(n))

    def to_json(self) -> str:
        return "{}"


def run(policy: Any, world: World, horizon: int, replications: int = 200, **more: Any) -> ln.simulation.Simulation:
    return ln.compare_policies(
        {"it": policy}, world, cost=0.5, horizon=horizon, replications=replications, prior=FLAT, optimum=False, **more
    )


def test_outcomes_succeed_at_the_rate_and_do_not_depend_on_the_policy() -> None:
    stream = ln.simulation.Bernoulli(0.3).open(KEYS, 5)
    first = stream.outcomes(0, stream.rates(0))
    assert abs(first.mean() - 0.3) < 0.03
    assert np.array_equal(first, ln.simulation.Bernoulli(0.3).open(KEYS, 50).outcomes(0, stream.rates(0)))
    sure = ln.simulation.Bernoulli(1.0).open(KEYS, 5)
    assert sure.outcomes(2, sure.rates(2)).all()
    never = ln.simulation.Bernoulli(0.0).open(KEYS, 5)
    assert not never.outcomes(2, never.rates(2)).any()


def test_rates_are_drawn_from_the_prior() -> None:
    rates = ln.simulation.FromPrior(ln.Belief(10, 7)).fixed_rates(KEYS)
    assert abs(rates.mean() - 0.7) < 0.01
    assert abs(rates.var() - 0.7 * 0.3 / 11) < 0.002
    assert np.all(ln.simulation.FromPrior(ln.Belief(3, 3)).fixed_rates(KEYS) == 1.0)


def test_segments_come_by_their_shares_with_beliefs_of_their_own() -> None:
    world = ln.simulation.Mixture(shares=[3, 1], rates=[1.0, 0.0])
    stream = world.open(KEYS, 10)
    assert abs(stream.segment(4).mean() - 0.25) < 0.03
    assert set(stream.rates(4)[stream.segment(4) == 1]) == {0.0}
    found = run(ln.policies.Greedy(0.4), world, 400)
    # The good segment is accepted throughout; the bad one until its belief has fallen to the cost: 0.5, then 1/3.
    assert abs(found.values("it", "accepted").mean() - 300 - 1) < 4
    drawn = ln.simulation.Mixture(shares=[1, 1], prior=FLAT).open(KEYS, 1).by_segment()[0]
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.06


def test_one_policy_a_segment() -> None:
    world = ln.simulation.Mixture(shares=[1, 1], rates=[0.9, 0.9])
    found = run([ln.policies.Constant(1.0), ln.policies.Constant(0.0)], world, 200)
    assert abs(found.values("it", "accepted").mean() - 100) < 3
    assert found.estimate("it", "shut_out").mean == pytest.approx(0.5)
    assert found.estimate("it", "stopped").mean == 0.0


def test_change_points_and_walks_move_the_rate() -> None:
    jump = ln.simulation.ChangePoints(rates=[0.2, 0.9], at=[3]).open(KEYS, 10)
    assert [float(jump.rates(i)[0]) for i in range(5)] == [0.2, 0.2, 0.2, 0.9, 0.9]
    walk = ln.simulation.RandomWalk(start=0.5, step=0.1, lowest=0.4, highest=0.7).open(KEYS, 50)
    path = np.array([walk.rates(i) for i in range(50)])
    assert path.min() == pytest.approx(0.4)
    assert path.max() == pytest.approx(0.7)
    assert np.abs(np.diff(path, axis=0)).max() == pytest.approx(0.1)
    assert np.unique(path[-1]).size > 2


def test_redrawn_rates_change_as_often_as_the_hazard_says() -> None:
    stream = ln.simulation.Redrawn(FLAT, 0.05).open(KEYS, 100)
    path = np.array([stream.rates(i) for i in range(100)])
    assert abs((np.diff(path, axis=0) != 0).mean() - 0.05) < 0.003
    still = ln.compare_policies(
        ln.policies.Greedy(0.4), ln.simulation.Redrawn(FLAT, 0.0), cost=0.4, horizon=50, replications=100
    )
    prior = ln.compare_policies(
        ln.policies.Greedy(0.4), ln.simulation.FromPrior(FLAT), cost=0.4, horizon=50, replications=100
    )
    assert np.array_equal(still.values("greedy", "discounted"), prior.values("greedy", "discounted"))


def test_forgetting_is_what_its_formula_says_when_run() -> None:
    # Everyone fails, so the belief after each failure and each fading is known.
    policy = ln.policies.Forgetting(0.5, 0.9, 0.9, ln.Belief(4, 2))
    found = ln.compare_policies(
        {"it": policy},
        ln.simulation.Bernoulli(0.0),
        cost=0.5,
        horizon=60,
        replications=1,
        prior=ln.Belief(4, 2),
        optimum=False,
    )
    n, s, accepted = 4.0, 2.0, 0
    for i in range(60):
        if i:
            n, s = policy.fade(n, s)
        if policy.acceptance(n, s) == 1.0:
            accepted, n = accepted + 1, n + 1
    assert 1 < accepted < 60  # it stops, and looks again
    assert found.values("it", "accepted")[0] == accepted


@pytest.mark.parametrize("kind", ["exponential", "lognormal", "fixed"])
def test_delays_have_their_mean(kind: str) -> None:
    chance = (np.arange(100_000) + 0.5) / 100_000
    lags = ln.simulation.LabelDelay(kind, mean=30, sigma=0.5).lags(chance, np.full(100_000, 0.5), 10_000)
    assert lags.mean() == pytest.approx(30.0 if kind == "fixed" else 30.5, abs=0.2)  # rounded up to whole arrivals
    some = ln.simulation.LabelDelay(kind, mean=30, missing=0.25).lags(chance, chance, 100)
    assert (some == 101).mean() >= 0.25


def test_late_labels_reach_the_belief_when_they_are_due() -> None:
    policy = Watched()
    run(
        policy,
        ln.simulation.LateLabels(ln.simulation.Bernoulli(1.0), ln.simulation.LabelDelay("fixed", mean=3)),
        10,
        replications=1,
    )
    sizes = [float(n[0]) for n, _, _ in policy.seen[:10]]
    out = [int(pending[0]) for _, _, pending in policy.seen[:10]]
    assert sizes == [2, 2, 2, 3, 4, 5, 6, 7, 8, 9]
    assert out == [0, 1, 2, 2, 2, 2, 2, 2, 2, 2]


def test_a_limit_on_pending_labels_is_kept() -> None:
    policy = Watched(most_pending=2)
    found = run(
        policy,
        ln.simulation.LateLabels(ln.simulation.Bernoulli(0.9), ln.simulation.LabelDelay("exponential", mean=20)),
        300,
    )
    assert max(int(pending.max()) for _, _, pending in policy.seen) == 2
    assert 0 < found.values("it", "accepted").mean() < 100
    never = run(
        Watched(most_pending=2),
        ln.simulation.LateLabels(ln.simulation.Bernoulli(0.9), ln.simulation.LabelDelay("never")),
        300,
    )
    assert np.all(never.values("it", "accepted") == 2)


def test_labels_without_delay_are_prompt() -> None:
    policies = [ln.policies.Thompson(0.5), ln.policies.EpsilonGreedy(0.5)]
    settings: dict[str, Any] = {"cost": 0.5, "horizon": 80, "replications": 60, "prior": FLAT}
    prompt = ln.compare_policies(policies, ln.simulation.Bernoulli(0.6), **settings)
    for delay in (ln.simulation.LabelDelay("none"), ln.simulation.LabelDelay("fixed", mean=0)):
        late = ln.compare_policies(policies, ln.simulation.LateLabels(ln.simulation.Bernoulli(0.6), delay), **settings)
        for name in prompt.policies:
            assert np.allclose(prompt.values(name, "discounted"), late.values(name, "discounted"))


def test_late_labels_hurt_a_policy_that_is_blind_to_them() -> None:
    policy = ln.Discounted(0.8, 0.98).solve(FLAT)
    earned = []
    for mean in (0, 50):
        world = ln.simulation.LateLabels(
            ln.simulation.FromPrior(FLAT), ln.simulation.LabelDelay("exponential", mean=mean)
        )
        found = ln.compare_policies(
            policy, world, cost=0.8, discount=0.98, horizon=400, replications=1500, optimum=False
        )
        earned.append(found.estimate(found.policies[0], "expected", 0.999))
    assert earned[1].upper < earned[0].lower


def test_exposure_limits_are_ahead_of_the_blind_optimum_where_labels_are_late() -> None:
    # 50 arrivals a year, money at 50% a year, labels after a quarter: the mean delay is 12.5 arrivals.
    limits = ln.Delayed(0.8, arrivals=50, discount_rate=0.5, label_delay=0.25).solve(FLAT)
    world = ln.simulation.LateLabels(ln.simulation.FromPrior(FLAT), ln.simulation.LabelDelay("exponential", mean=12.5))
    found = ln.compare_policies(
        {"limits": limits}, world, cost=0.8, discount=50 / 50.5, horizon=600, replications=1000, seed=5
    )
    assert found.policies == ["optimum for prompt labels", "exposure limits", "limits"]
    assert found.compare("limits", "optimum for prompt labels", confidence=0.999).lower > 0.0
    assert found.baseline == "exposure limits"
    assert abs(found.behind("limits").mean) < 0.02  # the same limits, solved a little more exactly
    assert found.note
    assert found.note in str(found)


@pytest.mark.parametrize(
    ("world", "name"),
    [
        (ln.simulation.RandomWalk(start=0.5, step=0.01), "optimum without drift"),
        (ln.simulation.RandomWalk(start=0.5, step=0), "optimum"),
        (
            ln.simulation.LateLabels(ln.simulation.Bernoulli(0.5), ln.simulation.LabelDelay("never")),
            "optimum for prompt labels",
        ),
        (
            ln.simulation.LateLabels(ln.simulation.Redrawn(FLAT, 0.1), ln.simulation.LabelDelay("fixed", 3)),
            "optimum for prompt labels, without drift",
        ),
        (ln.simulation.LateLabels(ln.simulation.Redrawn(FLAT, 0.0), ln.simulation.LabelDelay("fixed", 1)), "optimum"),
        (
            ln.simulation.LateLabels(ln.simulation.Bernoulli(0.5), ln.simulation.LabelDelay("none", missing=0.1)),
            "optimum for prompt labels",
        ),
    ],
)
def test_the_optimum_is_named_for_what_it_assumes(world: Any, name: str) -> None:
    found = ln.compare_policies([], world, cost=0.5, horizon=5, replications=2)
    assert found.policies == [name]
    assert found.baseline == name
    assert (found.note == "") == (name == "optimum")
    assert f"behind {name}" in found.table()[0]


def test_segments_start_from_beliefs_of_their_own() -> None:
    world = ln.simulation.Mixture({"new": 1, "known": 1}, prior={"known": ln.Belief(200, 20), "new": ln.Belief(4, 3)})
    greedy = ln.compare_policies(ln.policies.Greedy(0.5), world, cost=0.5, horizon=40, replications=50, discount=0.9)
    assert greedy.prior == (ln.Belief(4, 3), ln.Belief(200, 20))
    # The known are rejected for good from the first on: no more than the new can be accepted.
    assert greedy.estimate("greedy", "accepted").mean < 25
    assert greedy.estimate("greedy", "accepted").mean > 10
    with rejected("prior", "length_mismatch"):
        ln.simulation.Mixture([1, 1], prior=[FLAT])
    with rejected("rates"):
        ln.simulation.Mixture({"a": 1, "b": 1}, rates={"a": 0.5})


def test_past_rows_show_each_row_once_and_only_to_whoever_accepts() -> None:
    outcomes = np.array([1] * 30 + [0] * 10)
    world = ln.simulation.PastRows(outcomes, segments=["a"] * 20 + ["b"] * 20)
    assert world.rates.tolist() == [1.0, 0.5]
    found = run(ln.policies.Constant(1.0), world, 40, replications=20)
    assert np.all(found.values("it", "reward") == 30 - 20)
    assert np.all(found.values("it", "regret") == 0)
    along = ln.compare_policies([], world, cost=0.5, horizon=40, replications=10, prior=FLAT)
    assert along.values("optimum", "accepted").min() > 0
    blind = Watched(accept=0.0)
    run(blind, world, 40, replications=5)
    assert all(np.all(s == 1.0) and np.all(n == 2.0) for n, s, _ in blind.seen)
    assert not np.array_equal(world.order(KEYS[0]), world.order(KEYS[1]))
    seen: list[bool] = []
    rows = ln.simulation.PastRows(outcomes, features=np.arange(40).reshape(-1, 1))
    played = list(rows.play(lambda x: x[0] >= 30, lambda x, y: seen.append(y), seed=3))
    assert sorted(row for row, _ in played) == list(range(40))
    assert seen == [False] * 10


def test_past_rows_from_files(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "rows.csv"
    file.write_text("repaid,band\n1,low\n0,low\n1,high\n")
    world = ln.simulation.world_named("past-rows", file=str(file), outcome="repaid", segment="band")
    assert isinstance(world, ln.simulation.PastRows)
    assert len(world) == 3
    assert list(world.names) == ["high", "low"]
    with rejected("column"):
        ln.simulation.world_named("past-rows", file=str(file), outcome="paid")
    # As spreadsheets save them, and Parquet.
    file.write_bytes("Höhe;Status\n1.603,7;Repaid\n603,7;default\n".encode("cp1252"))
    world = ln.simulation.PastRows.from_file(str(file), "Status", "Höhe")
    assert (list(world.names), world.rates.tolist()) == (["1603.7", "603.7"], [1.0, 0.0])
    file.write_text("\ufeffrepaid\tband\n1\tlow\n\tlow\n")
    with rejected("outcome"):
        ln.simulation.PastRows.from_file(str(file), "repaid")
    assert len(ln.simulation.PastRows.from_file(str(file), "repaid", "band", pending="")) == 1
    file.write_text("status,band\nFully Paid,low\nCurrent,low\nCharged Off,high\n")
    with rejected("outcome"):  # an open loan has not failed
        ln.simulation.PastRows.from_file(str(file), "status", "band", success="fully paid")
    world = ln.simulation.PastRows.from_file(str(file), "status", "band", pending="Current")
    assert (list(world.names), world.rates.tolist()) == (["high", "low"], [0.0, 1.0])
    pq.write_table(pa.table({"outcome": [True, False], "band": [1, 2]}), tmp_path / "rows.parquet")
    assert ln.simulation.PastRows.from_file(str(tmp_path / "rows.parquet"), segment="band").rates.tolist() == [1.0, 0.0]
    for missing in ("none.csv", "none.parquet"):
        with rejected("data", "missing_file"):
            ln.simulation.world_named("past-rows", file=str(tmp_path / missing))


def test_names() -> None:
    late = ln.simulation.world_named(
        "late-labels", world={"name": "prior", "prior": {"n": 2, "s": 1}}, delay={"kind": "fixed", "mean": 4}
    )
    assert late == ln.simulation.LateLabels(ln.simulation.FromPrior(FLAT), ln.simulation.LabelDelay("fixed", mean=4))
    assert ln.simulation.world_named("change_points", rates=[0.1, 0.2], at=[5]) == ln.simulation.ChangePoints(
        rates=[0.1, 0.2], at=[5]
    )
    assert "past-rows" in ln.simulation.world_names()


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("utopia", {}, ("world", "unknown_name")),
        ("bernoulli", {}, ("p", "missing")),
        ("bernoulli", {"q": 1}, ("q", "unknown_name")),
        ("bernoulli", {"p": 2}, ("p", "invalid_value")),
        ("segments", {"shares": []}, ("shares", "invalid_value")),
        ("segments", {"shares": [1]}, ("rates", "conflicting_fields")),
        ("segments", {"shares": [1], "rates": [0.5, 0.6]}, ("rates", "length_mismatch")),
        ("change-points", {"rates": [0.1], "at": [5]}, ("rates", "length_mismatch")),
        ("change-points", {"rates": [0.1, 0.2, 0.3], "at": [5, 5]}, ("at", "invalid_value")),
        ("random-walk", {"start": 0.9, "step": 0.1, "highest": 0.8}, ("start", "invalid_value")),
        (
            "late-labels",
            {"world": {"name": "bernoulli", "p": 0.5}, "delay": {"kind": "slow"}},
            ("kind", "unknown_name"),
        ),
        (
            "late-labels",
            {"world": {"name": "bernoulli", "p": 0.5}, "delay": {"pace": 1}},
            ("pace", "unknown_name"),
        ),
    ],
)
def test_bad_worlds(name: str, given: dict[str, Any], message: tuple[str | None, str]) -> None:
    with rejected(*message):
        ln.simulation.world_named(name, **given)


def test_bad_replays() -> None:
    with rejected("outcomes"):
        ln.simulation.PastRows([0.5])
    with rejected("segments", "length_mismatch"):
        ln.simulation.PastRows([0, 1], segments=["a"])
    with rejected("features", "length_mismatch"):
        ln.simulation.PastRows([0, 1], features=[[1]])
    with rejected("features", "missing"):
        next(ln.simulation.PastRows([0, 1]).play(lambda x: True, lambda x, y: None))
    with rejected("horizon"):
        run(ln.policies.Constant(1.0), ln.simulation.PastRows([0, 1]), 3)
