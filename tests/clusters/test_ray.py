"""A real local Ray, and a real local Dask, run simulations, sweeps and replays with the same results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
import pytest

import lenience as ln
from lenience.analysis.sweep import parse_sweep
from lenience.models import FeatureColumn

# Ray and Dask leave sockets and processes to the end of the interpreter.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
SWEEP = 'cost = [0.4, 0.6]\nhorizon = 50\nreplications = 200\n[[worlds]]\nname = "bernoulli"\np = [0.5, 0.7]'


def everything() -> tuple[Any, Any, Any]:
    """A simulation, a sweep and a replay."""
    world = ln.simulation.FromPrior(ln.Belief(2, 1))
    compared = ln.compare_policies(
        ln.policies.Thompson(0.7), world, cost=0.7, horizon=60, replications=1500, seed=1
    ).frame("pyarrow")
    swept = ln.analysis.run_sweep(parse_sweep(SWEEP), backend="pyarrow")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = rng.random(120) < 1 / (1 + np.exp(-2 * X[:, 0]))
    replayed = ln.replay(X, y, ln.Discounted(0.6, discount=0.95), seeds=5, arrivals=40)
    return compared, swept, [(one.policy, one.decisions.tolist()) for one in replayed.policies]


def same_there(cluster: Callable[[], Any]) -> None:
    here = everything()
    with cluster():
        there = everything()
    assert there[0].equals(here[0])
    assert there[1].equals(here[1])
    assert there[2] == here[2]


def test_dask() -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as local,
        distributed.Client(local),
    ):
        same_there(lambda: joblib.parallel_config(backend="dask"))


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray", reason="Ray comes with the extra ray")
    path = os.pathsep.join([str(Path(ln.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    found.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )  # fmt: skip
    yield found
    found.shutdown()


def test_ray(ray: Any) -> None:
    from ray.util.joblib import register_ray

    register_ray()
    same_there(lambda: joblib.parallel_config(backend="ray", n_jobs=2))


def test_a_feature_policy_decides_batches_inside_ray(ray: Any) -> None:
    rng = np.random.default_rng(2)
    income = rng.normal(40, 10, 300)
    policy = ln.FeaturePolicy(
        objective=ln.Discounted(0.6, discount=0.9), columns=[FeatureColumn("income")], random_state=0
    ).fit([{"income": value} for value in income], (income > 40).astype(float))
    batches = [pa.table({"income": part}) for part in np.array_split(income, 4)]
    shared = ray.put(policy)  # sent once to each process
    decide = ray.remote(lambda policy, batch: policy.decide_batch(batch))
    found = pa.concat_tables(ray.get([decide.remote(shared, batch) for batch in batches]))
    assert found.to_pydict() == policy.decide_batch(pa.table({"income": income})).to_pydict()
    assert set(found["decision"].to_pylist()) == {"accept", "reject"}
