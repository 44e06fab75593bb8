"""Decide batches of a table with a feature policy: Arrow in, Arrow with decisions and reasons out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lenience.core.decision_reasons import ABOVE, ACCEPT, BELOW, LEARNING, REJECT
from lenience.core.errors import InputError

if TYPE_CHECKING:
    from lenience.policies.features.policy import FeaturePolicy


def decide_batch(policy: FeaturePolicy, batch: Any, amount: str | None, cost: str | None) -> Any:
    """Return the batch with its decisions, as :meth:`FeaturePolicy.decide_batch` describes."""
    import pyarrow as pa

    with_offers = policy.objective.offers is not None
    if with_offers != (amount is not None) or (amount is None) != (cost is None):
        raise InputError.because(
            "must both be given if the objective has offers, and only then", ("amount", "cost"),
            label="amount and cost", code="missing" if with_offers else "conflicting_fields",
        )  # fmt: skip
    names = policy._names()
    for name in (*names, amount, cost):
        if name is not None and name not in batch.schema.names:
            raise InputError.unknown_name("column", name, batch.schema.names, "the columns")
    features = batch.select(names)
    X: Any = features if policy.columns is not None else features.to_pandas()
    if not len(batch):
        X = None
    given = None if not with_offers else (_numbers(batch, amount), _numbers(batch, cost))
    empty = np.empty(0)
    accepted = np.empty(0, dtype=np.bool_) if X is None else policy.accepts(X, given)
    n, mean = (empty, empty) if X is None else policy.beliefs(X)
    columns: dict[str, Any] = {"success_rate": mean, "evidence": n}
    if given is None:
        above = mean > policy.objective.cost
    else:
        profit = given[0] * (mean - given[1])
        above = profit > 0.0
        columns |= {"expected_profit": profit, "label_value": empty if X is None else policy.label_value(X)}
    reasons = np.where(~accepted, BELOW, np.where(above, ABOVE, LEARNING)).astype(object)
    decisions = np.where(accepted, ACCEPT, REJECT).astype(object)
    columns = {"decision": pa.array(decisions, pa.string()), "reason": pa.array(reasons, pa.string()), **columns}
    for name, values in columns.items():
        batch = batch.append_column(name, values if isinstance(values, pa.Array) else pa.array(values, pa.float64()))
    return batch


def _numbers(batch: Any, name: str | None) -> Any:
    """Return a column as numbers."""
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
