"""schemathesis against the description: no 5xx, no answer that is not described; the documents name every path."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from serving import BY_FEATURES, LATE, OFFERS, SPEC, Postgres, Served, audited, serving, sqlite_file

if TYPE_CHECKING:
    import schemathesis

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))  # for each operation
RUNS = [("sqlite", "positive"), ("sqlite", "negative"), ("postgresql", "positive")]
if EXAMPLES > 5:  # invalid requests are rejected before they reach a database, so one database is enough otherwise
    RUNS.append(("postgresql", "negative"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if request.param == "sqlite":
        database = sqlite_file(tmp_path_factory.mktemp("openapi"))
    else:
        server: Postgres = request.getfixturevalue("postgres")
        database = server.database()
    with serving(database) as made:
        with made.client() as client:
            offers: dict[str, Any] = {"name": "offers", "objective": OFFERS}
            for specification in (SPEC, LATE, offers, BY_FEATURES):
                client.create_policy(specification)
                client.activate(specification["name"])
            cases: dict[str, Any] = {**SPEC, "name": "cases", "referral": {"near_minimum": 0.4, "daily_capacity": 2}}
            for activate in (True, False):
                client.create_policy(cases)
                client.activate("cases") if activate else client.roll_out("cases", 50)
            client.decide("cases", "young")
            client.decide("cards", "young")
            decision = client.decide("applicants", features={"income": 60, "region": "north"})
            client.outcome(decision["id"], "success")
        yield made
        assert audited(database)["findings"] == []


@pytest.mark.parametrize(("served", "mode"), RUNS, indirect=["served"])
def test_nothing_unforeseen_and_nothing_undescribed(served: Served, mode: str) -> None:
    """Send generated requests that the description allows (positive), or that it does not allow (negative)."""
    import schemathesis  # it takes seconds, and only one worker needs it
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.result import Err
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

    asked = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    if mode == "negative":
        asked.append(checks.negative_data_rejection)
    description = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    known: list[str] = []
    if mode == "positive":
        with served.client() as client:
            known = [one["id"] for one in client.decide_batch("cards", [{"segment": "young"}] * 5)]
    statuses: Counter[int] = Counter()
    operations = 0
    for result in description.get_all_operations():
        assert not isinstance(result, Err), result
        operation = result.ok()
        operations += 1

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def check(case: schemathesis.Case[Any]) -> None:
            if mode == "positive":
                lead_further(case, known)
            # A policy may take a minute to be solved.
            answer = case.call_and_validate(base_url=served.url, checks=asked, timeout=120)
            statuses[answer.status_code] += 1

        with suppress(Unsatisfiable):  # an endpoint without parameters has no invalid requests
            given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))(check)()
    print(f"{statuses.total():,} requests to {operations} operations; by status: {dict(sorted(statuses.items()))}")
    assert operations >= 22
    # 201 is not asked for: a generated request may retire the policy before others are decided by it.
    assert {400, 404} | ({200} if mode == "positive" else set()) <= statuses.keys()
    assert served.process.poll() is None
    assert "unforeseen" not in served.logged()


def lead_further(case: schemathesis.Case[Any], known: list[str]) -> None:
    """Name something that exists in half of the requests, so that they are not all rejected at once."""
    if case.path_parameters and len(str(case.path_parameters)) % 2:
        for name in case.path_parameters:
            case.path_parameters[name] = "cards" if name == "name" else known[len(str(case.body)) % 5]
    if isinstance(case.body, dict) and case.path.endswith("/decisions") and len(str(case.body)) % 2:
        by_features = len(str(case.body)) % 4 == 1
        case.path_parameters["name"] = "applicants" if by_features else "cards"
        case.body = {"features": {"income": 40}} if by_features else {"segment": "young"}
    if isinstance(case.body, dict) and case.path == "/v1/policies":
        case.body.pop("features", None)
        case.body.pop("history", None)


def test_every_endpoint_is_documented(served: Served) -> None:
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    for path in httpx.get(f"{served.url}/openapi.json").json()["paths"]:
        assert path in text, f"docs/service.md does not tell of {path}"
