"""Batches of a table are decided as rows alone, with reasons, and nothing is logged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lenience import Discounted, FeaturePolicy, Offers
from lenience.models import FeatureColumn
from rejections import rejected

COLUMNS = [FeatureColumn("income"), FeatureColumn("kind", type="category", values=("a", "b"))]
OFFERS = Offers([500, 5000], [0.7, 0.7])


def fitted(offers: bool, declared: bool = True) -> FeaturePolicy:
    rng = np.random.default_rng(0)
    income, kind = rng.normal(40, 10, 80), rng.choice(["a", "b"], 80)
    good = np.where(rng.random(80) < 1 / (1 + np.exp(-(income - 34) / 5)), 1.0, 0.0)
    known = np.where(np.arange(80) < 4, good, np.nan)
    objective = Discounted(offers=OFFERS, discount=0.99) if offers else Discounted(0.7, discount=0.99)
    if declared:
        people = [{"income": float(one), "kind": str(word)} for one, word in zip(income, kind, strict=True)]
        return FeaturePolicy(objective=objective, columns=COLUMNS, random_state=0).fit(people, known)
    import pandas as pd

    return FeaturePolicy(objective=objective, random_state=0).fit(pd.DataFrame({"income": income}), known)


def people(rows: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(4)
    incomes = np.linspace(5, 70, rows).tolist()
    kinds = rng.choice(["a", "b", "other"], rows).tolist()
    incomes[1], kinds[2] = None, None
    return {
        "id": list(range(rows)), "income": incomes, "kind": kinds,
        "amount": np.exp(rng.uniform(4, 10, rows)).tolist(), "even": rng.uniform(0.5, 0.9, rows).tolist(),
    }  # fmt: skip


@pytest.mark.parametrize("offers", [False, True])
def test_every_row_is_decided_as_if_alone(offers: bool) -> None:
    policy, rows = fitted(offers), people(30)
    columns = {"amount": "amount", "cost": "even"} if offers else {}
    found = policy.decide_batch(pa.table(rows), **columns)
    assert found.column_names[:5] == list(rows)
    assert found.column_names[5:] == [
        "decision", "reason", "success_rate", "evidence", *(["expected_profit", "label_value"] if offers else []),
    ]  # fmt: skip
    assert not policy.log_
    for row in found.to_pylist():
        one = [{"income": row["income"], "kind": row["kind"]}]
        given = ([row["amount"]], [row["even"]]) if offers else None
        n, mean = policy.beliefs(one)
        accepted = bool(policy.accepts(one, given)[0])
        assert row["decision"] == ("accept" if accepted else "reject")
        assert row["success_rate"] == pytest.approx(mean[0], rel=1e-12)
        assert row["evidence"] == pytest.approx(n[0], rel=1e-9)
        worth = row["amount"] * (row["success_rate"] - row["even"]) if offers else row["success_rate"] - 0.7
        reason = "below_threshold" if not accepted else "above_break_even" if worth > 0 else "worth_learning"
        assert row["reason"] == reason
        if offers:
            assert row["expected_profit"] == worth
            assert row["label_value"] == pytest.approx(policy.label_value(one)[0], rel=1e-9)
    assert len(set(found["reason"].to_pylist())) == 3, "every reason occurs"


def test_a_cut_changes_nothing() -> None:
    policy, table = fitted(False), pa.table(people(50))
    whole = policy.decide_batch(table)
    parts = [policy.decide_batch(batch) for batch in table.to_batches(max_chunksize=7)]
    assert pa.Table.from_batches(parts).to_pydict() == whole.to_pydict()
    assert isinstance(parts[0], pa.RecordBatch)
    empty = policy.decide_batch(table.slice(0, 0))
    assert empty.num_rows == 0
    assert empty.schema.names == whole.schema.names
    assert fitted(True).decide_batch(table.slice(0, 0), "amount", "even").num_rows == 0


def test_a_policy_without_declared_columns_takes_them_by_name() -> None:
    policy, table = fitted(False, declared=False), pa.table({"other": ["x", "y"], "income": [20.0, 60.0]})
    found = policy.decide_batch(table)
    assert found["decision"].to_pylist() == [
        "accept" if one else "reject" for one in policy.accepts(table.select(["income"]).to_pandas())
    ]


def test_bad_columns_are_named() -> None:
    table = pa.table(people(5))
    with rejected("column", "unknown_name"):
        fitted(False).decide_batch(table.drop_columns(["kind"]))
    with rejected("column", "unknown_name"):
        fitted(True).decide_batch(table, "amount", "cost")
    with rejected("amount", "missing"):
        fitted(True).decide_batch(table)
    with rejected("amount", "missing"):
        fitted(True).decide_batch(table, "amount")
    with rejected("amount", "conflicting_fields"):
        fitted(False).decide_batch(table, "amount", "even")
    with rejected("amount", "conflicting_fields"):
        fitted(False).decide_batch(table, cost="even")
