"""Labels and decisions with 20 and 50 features, beside river's logistic regression, and the table of thresholds.

Labels and decisions are measured in processor time, so that a busy machine disturbs them less.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import count

import numpy as np

import lenience as ln
from benchmarks.measure import best, compare, cpu, report, seconds
from lenience.models.hypotheses import learn_rows, predict_rows
from lenience.policies.features.outcome_matching import PendingOutcomes
from lenience.solvers.stopping import threshold_table as tables
from research.features import run_cell

FEATURES = (20, 50)
ROWS = 1000
BATCHES = (1000, 10_000)
LABELS = 20_000  # seen before, to show that their number makes no difference


def main() -> None:
    """Print the measurements."""
    for features in FEATURES:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(ROWS, features))
        y = (rng.random(ROWS) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
        rows = [*_kernels(X, y), *_policies(X, y), *_selected(X, y), *_river(X, y)]
        report(f"One label, one decision: {features} features", ["", "processor time", "labels seen before"], rows)
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
    for labels in (0, LABELS):
        _teach(model, X, y, labels)
        each = count()

        def kernel(each: count[int] = each) -> None:
            i = next(each) % ROWS
            learn_rows(z[i : i + 1], y[i : i + 1], ones[:1], model.weights_, model.means_, model.covariances_)

        def through(each: count[int] = each) -> None:
            i = next(each) % ROWS
            model.learn(X[i : i + 1], y[i : i + 1])

        found.append(["a label (kernel called from Python)", seconds(cpu(kernel, 7, 2000)), f"{labels:,}"])
        found.append(["BayesianLogistic.learn, one row", seconds(cpu(through, 7, 1000)), f"{labels:,}"])
    belief = model.weights_, model.means_, model.covariances_
    together = cpu(lambda: learn_rows(z, y, ones, *(part.copy() for part in belief)), 7) / ROWS
    found.append(["a label, in a batch of 1,000", seconds(together), f"{LABELS:,}"])
    mean, n = np.empty((2, ROWS))
    each_belief = cpu(lambda: predict_rows(z, *belief, mean, n), 7) / ROWS
    found.append(["a belief (n, p̂), in a batch of 1,000", seconds(each_belief), f"{LABELS:,}"])
    return found


def _teach(model: ln.models.BayesianLogistic, X: np.ndarray, y: np.ndarray, labels: int) -> None:
    """Let a model learn labels one after the other."""
    z = model.design(X)
    for _ in range(labels // ROWS):
        learn_rows(z, y, np.ones(ROWS), model.weights_, model.means_, model.covariances_)


def _policies(X: np.ndarray, y: np.ndarray) -> list[list[str]]:
    found = []
    for labels in (0, LABELS):
        policy = ln.FeaturePolicy(objective=ln.Discounted(0.8, 0.99)).fit(X)
        _teach(policy.model_, X, y, labels)
        found += _one_row(policy, X, y, f"{labels:,}")
    policy = ln.FeaturePolicy(objective=ln.Discounted(0.8, 0.99)).fit(X, y)
    for size in BATCHES:
        rows = np.random.default_rng(1).normal(size=(size, X.shape[1]))

        def batch(rows: np.ndarray = rows) -> None:
            policy.decide(rows)
            policy._pending_outcomes = PendingOutcomes()
            policy.log_.clear()

        times = (cpu(batch, 5), best(batch, 5))
        took = [seconds(each / size) for each in times]
        rate = size / times[1]
        goal = "at least 1" if X.shape[1] == 20 and size == max(BATCHES) else ""
        compare(f"rows decided a second, {X.shape[1]} features, batches of {size:,}", f"{rate:,.0f}",
                "100,000 a second", rate / 100_000, goal)  # fmt: skip
        found.append([f"FeaturePolicy.decide, a row in a batch of {size:,}", " (wall ".join(took) + ")", f"{ROWS:,}"])
    return found


def _selected(X: np.ndarray, y: np.ndarray) -> list[list[str]]:
    """A history that an earlier rule selected: columns for bends and for the earlier choices."""
    policy = ln.FeaturePolicy(objective=ln.Discounted(0.8, 0.99)).fit(X, np.where(X[:, 1] > 0, y, np.nan))
    columns = policy.model_.means_.shape[1]
    return _one_row(policy, X, y, f"{policy.labels_:,} selected; {columns} columns")


def _one_row(policy: ln.FeaturePolicy, X: np.ndarray, y: np.ndarray, labels: str) -> list[list[str]]:
    each = count()

    def decide() -> None:
        i = next(each) % ROWS
        policy.decide(X[i : i + 1])
        policy._pending_outcomes = PendingOutcomes()

    def observe() -> None:
        i = next(each) % ROWS
        policy.observe(X[i : i + 1], [True], y[i : i + 1])

    return [
        ["FeaturePolicy.decide, one row, reference set of 100", seconds(cpu(decide, 7, 300)), labels],
        ["FeaturePolicy.observe, one row", seconds(cpu(observe, 7, 300)), labels],
    ]


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
        ["river LogisticRegression.learn_one (no uncertainty)", seconds(cpu(learn, 5, 2000)), "any"],
        ["river LogisticRegression.predict_proba_one", seconds(cpu(predict, 5, 2000)), "any"],
    ]


def _table() -> None:
    rows = []
    for cost in (0.5, 0.8, 0.95):
        for discount in (0.99, 0.999, 0.99999):
            columns = (tables.threshold_table(cost, discount).f.shape[1] - 1) // tables.FINE + 1
            built = cpu(partial(tables._build, cost, columns), 3)
            error = f"{tables.measured_error(cost, discount, points=150):.2%}" if discount < 0.9999 else ""
            rows.append([f"c = {cost:g}, γ up to {discount:g}", seconds(built), error])
    report("The table of thresholds", ["", "to build", "largest error, of c − cₙ or cₙ"], rows)
