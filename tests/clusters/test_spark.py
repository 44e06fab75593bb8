"""A real local Spark counts histories and decides tables as the embedded engine does."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import lenience as ln
from lenience.models import FeatureColumn

pytest.importorskip("pyspark", reason="Spark comes with the extra spark")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    # Spark warns of pandas 3.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
]
ROWS = 3000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(ln.__file__).parents[1]), *sys.path])
    settings = {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]").appName("lenience tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loans with amounts, prices, dates and late outcomes, as Parquet, which both engines read."""
    rng = np.random.default_rng(5)
    grade = rng.choice(["A", "B", "C"], ROWS)
    accepted = rng.random(ROWS) < 0.7
    decided = np.datetime64("2023-01-01", "us") + rng.integers(0, 900, ROWS).astype("timedelta64[D]")
    known = decided + rng.integers(20, 500, ROWS).astype("timedelta64[D]")
    good = rng.random(ROWS) < np.select([grade == "A", grade == "B"], [0.93, 0.85], 0.7)
    mature = accepted & (known < np.datetime64("2025-06-20"))
    amount = rng.choice([500.0, 2000.0, 9000.0], ROWS)
    table = pa.table(
        {
            "grade": grade,
            "accepted": accepted,
            "repaid": pa.array(good.astype(int), mask=~mature),
            "decided": decided,
            "closed": pa.array(known, mask=~mature),
            "gain": amount * rng.choice([0.1, 0.2], ROWS),
            "loss": 0.6 * amount,
            "at_stake": amount,
            "break_even": rng.uniform(0.6, 0.95, ROWS),
            "income": pa.array(rng.normal(40, 10, ROWS).round(1), mask=rng.random(ROWS) < 0.05),
        }
    )
    path = tmp_path_factory.mktemp("spark") / "loans.parquet"
    parquet.write_table(table, path)
    return path


@pytest.fixture(scope="module")
def table(spark: Any, loans: Path) -> Any:
    spark.read.parquet(str(loans)).createOrReplaceTempView("loans")
    return ibis.pyspark.connect(spark).table("loans")


def test_a_history_with_late_outcomes_and_offers_is_counted_alike(table: Any, loans: Path) -> None:
    columns: dict[str, Any] = {
        "segment": "grade", "accepted": "accepted", "outcome": "repaid", "time": "decided", "outcome_time": "closed",
        "maturing": "learn", "gain": "gain", "loss": "loss", "currency": "$", "as_of": "2025-06-20",
    }  # fmt: skip
    there, here = ln.fit_history(table, **columns), ln.fit_history(str(loans), **columns)
    assert there.describe() == here.describe()
    for one, other in zip(there.segments, here.segments, strict=True):
        assert (one.segment, one.arrivals, one.accepted, one.labels, one.pending) == (
            other.segment, other.arrivals, other.accepted, other.labels, other.pending,
        )  # fmt: skip
        assert one.n == pytest.approx(other.n, rel=1e-9)
    assert there.offers().keys() == here.offers().keys()
    for name, offers in there.offers().items():
        assert offers.amount == pytest.approx(here.offers()[name].amount)
        assert offers.share == pytest.approx(here.offers()[name].share)


def test_a_table_of_beliefs_is_decided_alike(spark: Any) -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(2, 60, 500)
    frame = {"n": n.tolist(), "s": (1 + rng.integers(0, n - 1, 500)).tolist()}
    spark.createDataFrame(list(zip(*frame.values(), strict=True)), list(frame)).createOrReplaceTempView("beliefs")
    beliefs = ibis.pyspark.connect(spark).table("beliefs")
    policy = ln.Discounted(0.8, 0.99).solve(ln.Belief(2, 1))
    found = beliefs.mutate(accept=policy.expression(beliefs)).to_pyarrow().to_pylist()
    assert len(found) == 500
    assert all(row["accept"] == policy.accepts(ln.Belief(row["n"], row["s"])) for row in found)


def test_segments_with_offers_are_decided_and_written_back(spark: Any, table: Any, loans: Path) -> None:
    history = ln.fit_history(str(loans), "grade", "accepted", "repaid", gain="gain", loss="loss")
    cells = history.divide(ln.Discounted(offers=history.offers_of_all(), discount=0.99))
    policies = cells.solve(rows=1)
    decided = policies.decide_table(table, "grade", "at_stake", "break_even")
    table.get_backend().create_view("decided_loans", decided, overwrite=True)
    rows = spark.sql("SELECT grade, at_stake, break_even, decision, reason FROM decided_loans").collect()
    assert len(rows) == ROWS
    assert {row.decision for row in rows} == {"accept", "reject"}
    for row in rows[:300]:
        wanted = policies.decide(row.grade, offer=ln.Offer(row.at_stake, row.break_even))
        assert (row.decision == "accept") == wanted.accepted
        assert (row.reason == "above_break_even") == (wanted.expected_profit > 0)


def test_a_feature_policy_decides_batches_inside_spark(spark: Any, loans: Path) -> None:
    past = pd.read_parquet(loans)
    columns = [FeatureColumn("income"), FeatureColumn("grade", type="category", values=("A", "B", "C"))]
    policy = ln.FeaturePolicy(objective=ln.Discounted(0.8, discount=0.9), columns=columns, random_state=0)
    policy.fit(past[["income", "grade"]], past["repaid"].to_numpy(dtype=float, na_value=np.nan))
    data = spark.read.parquet(str(loans)).select("income", "grade").limit(400).repartition(3)
    kinds = "income double, grade string, decision string, reason string, success_rate double, evidence double"
    found = data.mapInArrow(lambda batches: map(policy.decide_batch, batches), kinds).toArrow()
    alone = policy.decide_batch(found.select(["income", "grade"]))
    assert found.num_rows == 400
    assert found["decision"].to_pylist() == alone["decision"].to_pylist()
    assert found["reason"].to_pylist() == alone["reason"].to_pylist()
    assert found["success_rate"].to_pylist() == alone["success_rate"].to_pylist()
    assert set(found["decision"].to_pylist()) == {"accept", "reject"}
