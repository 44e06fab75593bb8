"""Labels and decisions with 20 features, beside river's logistic regression, and the table of thresholds."""

from __future__ import annotations

import time
from itertools import count

import numpy as np

import lenience as ln
from benchmarks.measure import best, report, seconds
from lenience.models.hypotheses import learn_rows, predict_rows
from lenience.policies.features.outcome_matching import PendingOutcomes
from lenience.solvers.stopping import threshold_table as tables
from research.features import run_cell

FEATURES = 20
ROWS = 1000


def main() -> None:
    """Print the measurements."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES))
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    rows = [*_kernels(X, y), *_policies(X, y), *_river(X, y)]
    report(f"One label, one decision: {FEATURES} features", ["", "time", "labels seen before"], rows)
    _table()
    start = time.perf_counter()
    cell = run_cell("german credit", 0.8, 0, 0.99, 700, 10, tuned=False)
    took = time.perf_counter() - start
    steps = 700 * 10 * (1 + len(cell["baselines"]))
    report(
        "Replay, compiled: German credit (59 features), 10 policies × 10 runs × 700 arrivals",
        ["", "time"],
        [["all", seconds(took)], ["an arrival", seconds(took / steps)]],
    )


def _kernels(X: np.ndarray, y: np.ndarray) -> list[list[str]]:
    model = ln.models.BayesianLogistic().prepare(X)
    z, ones = model.design(X), np.ones(ROWS)
    found = []
    for labels in (0, 100_000):
        for _ in range(labels // ROWS):
            model.learn(X, y)
        each = count()

        def kernel(each: count[int] = each) -> None:
            i = next(each) % ROWS
            learn_rows(z[i : i + 1], y[i : i + 1], ones[:1], model.weights_, model.means_, model.covariances_)

        def through(each: count[int] = each) -> None:
            i = next(each) % ROWS
            model.learn(X[i : i + 1], y[i : i + 1])

        found.append(["a label (kernel called from Python)", seconds(best(kernel, 7, 2000)), f"{labels:,}"])
        found.append(["BayesianLogistic.learn, one row", seconds(best(through, 7, 1000)), f"{labels:,}"])
    belief = model.weights_, model.means_, model.covariances_
    together = best(lambda: learn_rows(z, y, ones, *(part.copy() for part in belief)), 7) / ROWS
    found.append(["a label, in a batch of 1,000", seconds(together), "100,000"])
    mean, n = np.empty((2, ROWS))
    each_belief = best(lambda: predict_rows(z, *belief, mean, n), 7) / ROWS
    found.append(["a belief (n, p̂), in a batch of 1,000", seconds(each_belief), "100,000"])
    return found


def _policies(X: np.ndarray, y: np.ndarray) -> list[list[str]]:
    found = []
    for labels in (0, 100_000):
        policy = ln.FeaturePolicy(objective=ln.Discounted(0.8, 0.99)).fit(X)
        for _ in range(labels // ROWS):
            policy.model_.learn(X, y)
        each = count()

        def decide(policy: ln.FeaturePolicy = policy, each: count[int] = each) -> None:
            i = next(each) % ROWS
            policy.decide(X[i : i + 1])
            policy._pending_outcomes = PendingOutcomes()

        def observe(policy: ln.FeaturePolicy = policy, each: count[int] = each) -> None:
            i = next(each) % ROWS
            policy.observe(X[i : i + 1], [True], y[i : i + 1])

        found.append(
            ["FeaturePolicy.decide, one row, reference set of 100", seconds(best(decide, 5, 300)), f"{labels:,}"]
        )
        found.append(["FeaturePolicy.observe, one row", seconds(best(observe, 5, 300)), f"{labels:,}"])
    policy = ln.FeaturePolicy(objective=ln.Discounted(0.8, 0.99)).fit(X, y)

    def batch() -> None:
        policy.decide(X)
        policy._pending_outcomes = PendingOutcomes()

    found.append(["FeaturePolicy.decide, in a batch of 1,000", seconds(best(batch, 3) / ROWS), "1,000"])
    return found


def _river(X: np.ndarray, y: np.ndarray) -> list[list[str]]:
    try:
        from river import linear_model
    except ModuleNotFoundError:
        return [["river (not installed)", "", ""]]
    model = linear_model.LogisticRegression()
    dicts = [{f"x{j}": float(value) for j, value in enumerate(row)} for row in X]
    outcomes = [bool(value) for value in y]
    each = count()

    def learn() -> None:
        i = next(each) % ROWS
        model.learn_one(dicts[i], outcomes[i])

    def predict() -> None:
        model.predict_proba_one(dicts[next(each) % ROWS])

    return [
        ["river LogisticRegression.learn_one (no uncertainty)", seconds(best(learn, 5, 2000)), "any"],
        ["river LogisticRegression.predict_proba_one", seconds(best(predict, 5, 2000)), "any"],
    ]


def _table() -> None:
    rows = []
    for cost in (0.5, 0.8, 0.95):
        for discount in (0.99, 0.999):
            tables._build.cache_clear()
            tables._column.cache_clear()
            tables._reached.clear()
            start = time.perf_counter()
            tables.threshold_table(cost, discount)
            built = time.perf_counter() - start
            error = tables.measured_error(cost, discount, points=150)
            rows.append([f"c = {cost:g}, γ up to {discount:g}", seconds(built), f"{error:.2%}"])
    report("The table of thresholds", ["", "to build", "largest error, of c − cₙ or cₙ"], rows)
