"""Estimates have the intervals they say, and results become frames, files and figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lenience as ln
from lenience.core.frames import to_frame
from lenience.simulation.result import METRICS, save_frame
from rejections import rejected

FLAT = ln.Belief(2, 1)


@pytest.fixture(scope="module")
def found() -> ln.simulation.Simulation:
    policies = {
        "thompson": ln.policies.Thompson(0.7),
        "greedy": ln.policies.Greedy(0.7),
        "bayes-ucb": ln.policies.BayesUCB(0.7),
    }
    return ln.compare_policies(
        policies, ln.simulation.FromPrior(FLAT), cost=0.7, discount=0.97, horizon=120, replications=300
    )


def test_intervals_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    means = [0.0 in ln.simulation.Estimate.of_mean(rng.normal(size=60)) for _ in range(2000)]
    shares = [0.05 in ln.simulation.Estimate.of_share(rng.binomial(200, 0.05) / 200, 200) for _ in range(2000)]
    assert 0.925 < np.mean(means) < 0.965
    assert 0.92 < np.mean(shares) < 0.985


def test_estimates_from_sums_are_those_from_values() -> None:
    values = np.random.default_rng(1).normal(3, 2, 50)
    a, b = (
        ln.simulation.Estimate.of_mean(values),
        ln.simulation.Estimate.of_sums(values.sum(), (values**2).sum(), 50, 0.95),
    )
    assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper))
    assert ln.simulation.Estimate.of_mean(np.ones(1)).upper == np.inf
    assert str(ln.simulation.Estimate(0.0, 0.0, 0.0)) == "0"


def test_differences_are_paired(found: ln.simulation.Simulation) -> None:
    gap = found.values("optimum", "expected") - found.values("greedy", "expected")
    behind = found.behind("greedy")
    assert behind.mean == pytest.approx(gap.mean())
    assert behind.upper - behind.mean == pytest.approx(1.959964 * gap.std(ddof=1) / np.sqrt(gap.size))
    assert found.behind("optimum") == ln.simulation.Estimate(0.0, 0.0, 0.0)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_are_tidy(found: ln.simulation.Simulation, backend: str) -> None:
    frame = found.frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    rows = len(METRICS) + 1
    assert len(frame) == 4 * rows
    import narwhals as nw

    tidy = nw.from_native(frame)
    assert tidy.columns == ["policy", "metric", "mean", "lower", "upper"]
    mean = tidy.filter((nw.col("policy") == "greedy") & (nw.col("metric") == "accepted"))["mean"][0]
    assert mean == pytest.approx(found.values("greedy", "accepted").mean())
    assert len(found.over_time_frame(backend)) == 4 * 2 * found.checkpoints.size


def test_results_are_saved_as_parquet(found: ln.simulation.Simulation, tmp_path: Path) -> None:
    import pyarrow.parquet

    paths = found.save(tmp_path / "out")
    assert [path.name for path in paths] == ["summary.parquet", "replications.parquet", "over_time.parquet"]
    table = pyarrow.parquet.read_table(paths[1])
    assert table.num_rows == 4 * 300
    assert table.column("regret").to_pylist()[:300] == found.values("optimum", "regret").tolist()


def test_frames_of_unknown_kind_are_refused(tmp_path: Path) -> None:
    with rejected("backend", "unknown_name"):
        to_frame([{"a": 1}], "spark")
    assert save_frame(to_frame({"a": [1, 2]}), tmp_path / "a.parquet").exists()


def test_the_table_reads_well(found: ln.simulation.Simulation) -> None:
    lines = str(found).splitlines()
    assert len(lines) == 5
    assert lines[0].split()[:2] == ["policy", "discounted"]
    assert "behind optimum" in lines[0]
    assert repr(found) == "Simulation(4 policies, 300 replications of 120 arrivals)"


def test_unknown_names_are_refused(found: ln.simulation.Simulation) -> None:
    with rejected("policy", "unknown_name"):
        found.estimate("x", "accepted")
    with rejected("metric", "unknown_name"):
        found.estimate("greedy", "luck")
    with rejected("confidence"):
        found.estimate("greedy", "accepted", 1.0)
    alone = ln.compare_policies(
        ln.policies.Greedy(0.7), ln.simulation.Bernoulli(0.5), cost=0.7, horizon=5, replications=2, optimum=False
    )
    with rejected("optimum", "missing"):
        alone.behind("greedy")


def test_figures(found: ln.simulation.Simulation, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("matplotlib.image")
    comparison = ln.plot.plot_comparison(found, path=tmp_path / "a.png")
    assert [axes.get_xlabel() for axes in comparison.axes] == [
        "discounted reward (95% interval)",
        "behind the optimum (95% interval)",
    ]
    ticks = [tick.get_text() for tick in comparison.axes[0].get_yticklabels()]
    assert ticks[-1] == "optimum"
    regret = ln.plot.plot_regret_over_time(found, tmp_path / "b.png")
    legend = regret.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == found.policies
    last = regret.axes[0].lines[0].get_ydata()
    assert np.asarray(last)[-1] == pytest.approx(found.regret_over_time("optimum")[-1].mean)
    curves = {"thompson": ln.acceptance_by_arrival(ln.policies.Thompson(0.7), 120, belief=FLAT)}
    arrival = ln.plot.plot_acceptance_by_arrival(curves, found, tmp_path / "c.png")
    assert arrival.axes[0].get_ylabel() == "chance that arrival i is accepted"
    rows = ln.analysis.drift_study(0.5, 0.9, FLAT, [0.0, 0.05], [0.9], horizon=30, replications=20)
    assert len(ln.plot.plot_drift(rows, tmp_path / "d.png").axes[0].containers) == 2
    for name in ("a.png", "b.png", "c.png", "d.png"):
        pixels = matplotlib.image.imread(tmp_path / name)
        assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 10  # lines, letters and their edges
    with rejected("metrics"):
        ln.plot.plot_comparison(found, metrics=["luck"])
