"""A policy with features goes from the library to the service and back, over HTTP."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from lenience import Client, Discounted, FeaturePolicy, InputError, ServiceError
from lenience.models import FeatureColumn
from serving import SPEC, Served

COLUMNS = [FeatureColumn("income", minimum=0, maximum=100), FeatureColumn("region", "category", values=("n", "s"))]


def test_a_fitted_policy_is_served_and_downloaded(served: Served, client: Client, http: httpx.Client) -> None:
    rng = random.Random(4)
    past: list[dict[str, Any]] = [
        {"income": round(rng.uniform(0, 100), 1), "region": rng.choice("ns")} for _ in range(60)
    ]
    repaid = [float(rng.random() < 0.4 + 0.005 * one["income"]) for one in past]
    policy = FeaturePolicy(
        objective=Discounted(cost=0.7, discount=0.99), columns=COLUMNS, refresh=False, random_state=1
    )
    policy.fit(past, repaid)
    with pytest.raises(InputError):
        client.create_policy(policy)
    with pytest.raises(InputError) as wrong:
        client.create_policy({**SPEC, "name": "plain"}, reasons={"income": "Too low."})
    assert wrong.value.field == "reasons"
    client.create_policy(policy, name="fitted", reasons={"income": "Your income is too low."})
    client.activate("fitted")
    assert client.download("fitted").to_rule().state_hash() == policy.to_rule().state_hash()
    for one in past[:12]:
        same = bool(policy.decide([one])[0])
        decision = client.decide("fitted", features=one, reference="someone")
        assert (decision["decision"] == "accept") == same
        assert decision["belief"]["n"] == policy.log_[-1].n
        if same:
            client.outcome(decision["id"], "success")
            policy.observe([one], [True], [1], arrivals=policy.latest_)
    assert client.download("fitted").to_rule().state_hash() == policy.to_rule().state_hash()
    page = http.get("/policies/fitted").text
    assert "Expected and actual success rates" in page
    assert 'name="feature:income"' in page
    page = http.get(f"/decisions/{decision['id']}").text
    assert "What the features say" in page
    assert "knew when it decided" in page
    explained = client.decision(decision["id"])
    assert explained["contributions_at"] == "decision"
    assert {one["feature"] for one in explained["contributions"]} == {"income", "region"}
    rejection = client.decide("fitted", features={"income": 0, "region": "n"})
    assert {"code": "feature:income", "text": "Your income is too low."} in rejection["principal_reasons"]
    rejected = http.get(f"/decisions/{rejection['id']}").text
    assert "Your income is too low." in rejected
    assert "applicants above the break-even" in rejected
    client.erase(decision["id"])
    assert "What the features say" not in http.get(f"/decisions/{decision['id']}").text
    client.create_policy({**SPEC, "name": "plain"})
    with pytest.raises(ServiceError) as error:
        client.download("plain")
    assert (error.value.status, error.value.code) == (409, "no_feature_model")
