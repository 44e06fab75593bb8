"""The runner: right by an oracle that is plain Python, the same on any number of workers, bounded in memory."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import lenience as ln
from lenience.analysis.sweep import parse_sweep
from lenience.core.counter_rng import ONE, arrival_bits, bits_of, replication_keys, uniform
from lenience.simulation.block import ReplicationBlock
from lenience.simulation.compare import default_checkpoints, prepare, run_task
from lenience.simulation.engine_generic import run_direct
from lenience.simulation.engine_lattice import run_lattice, window
from rejections import rejected

FLAT = ln.Belief(2, 1)
CHECKS = np.array([1, 7, 60, 200])
POLICIES: list[ln.Policy] = [
    ln.Discounted(0.8, 0.98).solve(FLAT),
    ln.FiniteHorizon(0.8, 200).solve(FLAT),
    ln.policies.Greedy(0.4),
    ln.policies.EpsilonGreedy(0.8, 0.2),
    ln.policies.Persistent(0.8),
    ln.policies.Thompson(0.8),
    ln.policies.Logistic(0.8),
    ln.policies.BayesUCB(0.8),
    ln.policies.KLUCB(0.8),
]


def bits(key: int, arrival: int) -> int:
    """The counter-based generator again, in Python's own integers."""
    mask = (1 << 64) - 1
    x = (key + (arrival + 1) * 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def oracle(policy: ln.Policy, key: int, p: float, cost: float, discount: float, horizon: int) -> dict[str, float]:
    """One replication, written as the definitions are."""
    n, s, account, lowest, red, stopped = FLAT.n, FLAT.s, 0.0, 0.0, 0, False
    accepted = successes = 0
    expected = 0.0
    for i in range(horizon):
        chance = float(policy.acceptance(n, s))
        stopped = chance == 0.0
        x = bits(key, i)
        if (x & (ONE - 1)) < np.ceil(chance * ONE):
            y = (x >> 32) < np.ceil(p * ONE)
            accepted, successes = accepted + 1, successes + y
            n, s = n + 1, s + y
            account += discount**i * (y - cost)
            expected += discount**i * (p - cost)
        lowest = min(lowest, account)
        if account < 0:
            red = i + 1
    return {
        "accepted": accepted,
        "reward": successes - cost * accepted,
        "discounted": account,
        "expected": expected,
        "clairvoyant": max(p - cost, 0.0) * sum(discount**i for i in range(horizon)),
        "learning_cost": -lowest,
        "red_until": red,
        "stopped": float(stopped),
        "shut_out": float(stopped and p > cost),
    }


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("road", ["lattice", "direct"])
def test_both_roads_do_what_the_definitions_say(policy: ln.Policy, road: str) -> None:
    keys = replication_keys(5, 0, 12)
    rates = np.linspace(0.3, 1.0, 12)
    found = _run(policy, keys, rates, road)
    for r in range(12):
        for name, value in oracle(policy, int(keys[r]), float(rates[r]), 0.8, 0.98, 200).items():
            assert getattr(found, name)[r] == pytest.approx(value, abs=1e-9), (name, r)


def _run(policy: ln.Policy, keys: NDArray[np.uint64], rates: NDArray[np.float64], road: str) -> ReplicationBlock:
    if road == "lattice":
        return run_lattice(policy, keys, rates, FLAT, 0.8, 0.98, 200, CHECKS)
    from lenience.simulation.stream import FixedStream

    return run_direct([policy], FixedStream(keys, rates), [FLAT], 0.8, 0.98, 200, CHECKS)


class Crooked:
    """A policy that says nothing of its shape, and is not monotone: it is asked state by state."""

    stop_ceiling = 0.0

    def stop_floor(self, n: float) -> float:
        return -1.0

    def acceptance(self, n: ArrayLike, s: ArrayLike) -> NDArray[np.float64]:
        return np.where(np.asarray(s) % 2 == 0, 0.9, 0.3) * np.ones(np.shape(n))

    def to_json(self) -> str:
        return "{}"


def test_a_policy_of_any_shape_runs() -> None:
    keys, rates = replication_keys(5, 0, 6), np.linspace(0.3, 1.0, 6)
    assert window(Crooked(), FLAT, 0, 10, 100) is None
    found = _run(Crooked(), keys, rates, "lattice")
    for r in range(6):
        wanted = oracle(Crooked(), int(keys[r]), float(rates[r]), 0.8, 0.98, 200)
        assert found.accepted[r] == wanted["accepted"]
        assert found.discounted[r] == pytest.approx(wanted["discounted"])


def test_the_sums_along_time_are_those_of_the_replications() -> None:
    found = ln.compare_policies(
        ln.policies.EpsilonGreedy(0.8, 0.2),
        ln.simulation.FromPrior(FLAT),
        cost=0.8,
        horizon=200,
        replications=50,
        checkpoints=[10, 50],
    )
    for name in found.policies:
        shares = [each.mean for each in found.acceptance_over_time(name)]
        widths = np.diff(found.checkpoints, prepend=0)
        assert float(shares @ widths) == pytest.approx(found.values(name, "accepted").mean())
        assert found.regret_over_time(name)[-1].mean == pytest.approx(found.values(name, "regret").mean())
    direct = ln.compare_policies(
        ln.policies.EpsilonGreedy(0.8, 0.2),
        ln.simulation.LateLabels(ln.simulation.FromPrior(FLAT), ln.simulation.LabelDelay("fixed", mean=0)),
        cost=0.8,
        horizon=200,
        replications=50,
        checkpoints=[10, 50],
    )
    for name in found.policies:
        assert np.allclose(found.runs[name].acceptance, direct.runs[name].acceptance)
        assert np.allclose(found.runs[name].regret_squares, direct.runs[name].regret_squares)


def test_windows_hold_what_the_policy_says() -> None:
    for policy in (
        ln.policies.Thompson(0.8),
        ln.policies.Logistic(0.8),
        ln.policies.BayesUCB(0.8),
        ln.policies.EpsilonGreedy(0.8),
    ):
        rows = window(policy, FLAT, 90, 110, 10**6)
        assert rows is not None
        for row in range(20):
            k = 90 + row
            for j in range(k + 1):
                if j >= rows.top[row]:
                    limit = rows.high[row]
                elif j >= rows.edge[row]:
                    limit = rows.values[rows.offset[row] + np.uint64(j) - rows.edge[row]]
                else:
                    limit = rows.low[row] if j >= rows.floor[row] else np.uint64(0)
                assert limit == np.ceil(float(policy.acceptance(2.0 + k, 1.0 + j)) * ONE)


def test_long_runs_change_windows_and_roads_without_a_trace() -> None:
    # Few replications of a smooth policy leave the tables soon; many do not. The first ones must not notice.
    settings = {"cost": 0.6, "horizon": 3000, "seed": 2, "optimum": False}
    few = ln.compare_policies(ln.policies.Thompson(0.6), ln.simulation.Bernoulli(0.62), replications=2, **settings)  # type: ignore[arg-type]
    many = ln.compare_policies(ln.policies.Thompson(0.6), ln.simulation.Bernoulli(0.62), replications=300, **settings)  # type: ignore[arg-type]
    for column in ("accepted", "reward", "learning_cost", "red_until"):
        assert np.array_equal(few.values("thompson", column), many.values("thompson", column)[:2])


def test_chance_is_the_same_compiled_and_not_and_uniform() -> None:
    keys = replication_keys(3, 0, 4)
    for i in (0, 1, 10**6):
        assert arrival_bits(keys, i).tolist() == [bits(int(key), i) for key in keys]
        assert [int(bits_of(key, np.uint64(i))) for key in keys] == [bits(int(key), i) for key in keys]
    many = replication_keys(3, 0, 200_000)
    assert np.unique(many).size == many.size
    for numbers in (
        uniform(many, 0, "rate"),
        uniform(many, 9, "delay"),
        (arrival_bits(many, 3) >> np.uint64(32)) / ONE,
    ):
        counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
        chi_square = float(((counts - 4000.0) ** 2 / 4000.0).sum())
        assert chi_square < 95  # 49 degrees of freedom: one in ten thousand exceeds it
    assert abs(np.corrcoef(uniform(many, 0, "rate"), uniform(many, 1, "rate"))[0, 1]) < 0.01
    assert abs(np.corrcoef(uniform(many, 0, "rate"), uniform(many, 0, "walk"))[0, 1]) < 0.01


def _same(one: ln.simulation.Simulation, other: ln.simulation.Simulation) -> bool:
    return all(
        np.array_equal(a, b) for name in one.policies for a, b in zip(one.runs[name], other.runs[name], strict=True)
    )


def test_workers_do_not_change_the_result() -> None:
    policies = [ln.policies.Thompson(0.7), ln.policies.Greedy(0.7)]
    settings = {"cost": 0.7, "horizon": 300, "discount": 0.99, "replications": 2500}
    one = ln.compare_policies(policies, ln.simulation.FromPrior(FLAT), seed=4, workers=1, **settings)  # type: ignore[arg-type]
    two = ln.compare_policies(policies, ln.simulation.FromPrior(FLAT), seed=4, workers=2, **settings)  # type: ignore[arg-type]
    other = ln.compare_policies(policies, ln.simulation.FromPrior(FLAT), seed=5, workers=1, **settings)  # type: ignore[arg-type]
    assert _same(one, two)
    assert not _same(one, other)


def test_a_dask_cluster_runs_it_unchanged() -> None:
    joblib = pytest.importorskip("joblib")
    distributed = pytest.importorskip("distributed")
    world, settings = ln.simulation.FromPrior(FLAT), {"cost": 0.7, "horizon": 100, "replications": 1500, "seed": 1}
    alone = ln.compare_policies(ln.policies.Thompson(0.7), world, **settings)  # type: ignore[arg-type]
    grid = parse_sweep('cost = [0.4, 0.6]\nhorizon = 50\n[[worlds]]\nname = "bernoulli"\np = [0.5, 0.7]')
    swept = ln.analysis.run_sweep(grid, backend="pyarrow")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        there = ln.compare_policies(ln.policies.Thompson(0.7), world, **settings)  # type: ignore[arg-type]
        swept_there = ln.analysis.run_sweep(grid, backend="pyarrow")
    assert _same(alone, there)
    assert swept_there.equals(swept)
    assert swept.num_rows == 2 * 2 * 9


def test_memory_does_not_grow_with_the_horizon() -> None:
    code = (
        "import sys, lenience as ln\n"
        "policies = [ln.policies.EpsilonGreedy(0.8, 0.5), ln.policies.Constant(1.0)]\n"
        "ln.compare_policies(policies, ln.simulation.FromPrior(ln.Belief(2, 1)), cost=0.8, "
        "horizon=int(sys.argv[1]), replications=200, optimum=False)\n"
        "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0].split()[1])"
    )
    peaks = [
        int(subprocess.run([sys.executable, "-c", code, horizon], check=True, capture_output=True, text=True).stdout)
        for horizon in ("10000", "300000")
    ]
    assert peaks[1] < 1.25 * peaks[0]


def test_tasks_travel() -> None:
    world = ln.simulation.LateLabels(
        ln.simulation.Mixture(shares=[1, 2], prior=FLAT), ln.simulation.LabelDelay("lognormal", mean=5)
    )
    policies = {repr(policy): policy for policy in POLICIES}
    tasks = prepare(policies, world, 0.8, 30, FLAT, 0.9, 20, 1).tasks
    for task in tasks:
        again = pickle.loads(pickle.dumps(task))
        for a, b in zip(run_task(task), run_task(again), strict=True):
            assert np.array_equal(a, b)


def test_without_joblib_one_worker_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"cost": 0.5, "horizon": 20, "replications": 30}
    with_it = ln.compare_policies(ln.policies.Greedy(0.5), ln.simulation.FromPrior(FLAT), **settings)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "joblib", None)
    without = ln.compare_policies(ln.policies.Greedy(0.5), ln.simulation.FromPrior(FLAT), **settings)  # type: ignore[arg-type]
    assert _same(with_it, without)
    with rejected(None, "missing_package"):
        ln.compare_policies(ln.policies.Greedy(0.5), ln.simulation.FromPrior(FLAT), workers=2, **settings)  # type: ignore[arg-type]


def test_no_discounting_and_nothing_but_the_present() -> None:
    for discount in (0.0, 1.0):
        found = ln.compare_policies(
            [], ln.simulation.Bernoulli(0.9), cost=0.4, horizon=30, discount=discount, replications=20
        )
        if discount == 0.0:
            first = found.values("optimum", "discounted")
            assert set(np.round(first, 9)) <= {0.6, -0.4}
            assert np.allclose(found.values("optimum", "clairvoyant"), 0.5)
        else:
            assert np.allclose(found.values("optimum", "discounted"), found.values("optimum", "reward"))


def test_progress_shows(capsys: pytest.CaptureFixture[str]) -> None:
    ln.compare_policies(
        ln.policies.Greedy(0.5), ln.simulation.Bernoulli(0.6), cost=0.5, horizon=10, replications=10, progress=True
    )
    assert "Simulating" in capsys.readouterr().err


def test_default_checkpoints_end_at_the_horizon() -> None:
    for horizon in (1, 2, 49, 50, 51, 1234, 10**6):
        checkpoints = default_checkpoints(horizon)
        assert checkpoints[-1] == horizon
        assert checkpoints.size < 200
        assert np.all(np.diff(checkpoints) > 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cost": 1.0}, ("cost", "invalid_value")),
        ({"horizon": 0}, ("horizon", "invalid_value")),
        ({"discount": 1.1}, ("discount", "invalid_value")),
        ({"replications": 0}, ("replications", "invalid_value")),
        ({"seed": -1}, ("seed", "invalid_value")),
        ({"prior": 3}, ("prior", "invalid_value")),
        (
            {"world": "bernoulli"},
            ("world", "invalid_value"),
        ),
        ({"policies": ["greedy"]}, ("policies[\"'greedy'\"]", "invalid_value")),
        ({"policies": [ln.policies.Greedy(0.5), ln.policies.Greedy(0.6)]}, ("policies", "duplicate")),
        ({"policies": [], "optimum": False}, ("policies", "missing")),
        (
            {"policies": {"pair": [ln.policies.Greedy(0.5), ln.policies.Greedy(0.6)]}},
            ("policies['pair']", "length_mismatch"),
        ),
        ({"checkpoints": [0]}, ("checkpoints", "invalid_value")),
        ({"horizon": 10**9, "replications": 10**6}, ("replications", "too_large")),
    ],
)
def test_bad_input(given: dict[str, object], message: tuple[str | None, str]) -> None:
    settings: dict[str, object] = {
        "policies": ln.policies.Greedy(0.5), "world": ln.simulation.Bernoulli(0.5), "cost": 0.5, "horizon": 10,
        "replications": 2,
    }  # fmt: skip
    with rejected(*message):
        ln.compare_policies(**{**settings, **given})  # type: ignore[arg-type]
