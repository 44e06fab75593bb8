"""Decisions by 20 features next to decisions by segments, on one server in one run.

Applicants are decided by a model that has learnt from a thousand outcomes before. Singles and batches of both policies
alternate, so that the machine's other load counts for both. On a busy machine the processor time of a decision says
more than the rate. Then rounds of decisions and their outcomes show the memory. ``benchmarks.many_labels`` measures a
start after many labels.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.load import Load, run
from benchmarks.load import post as as_bytes
from benchmarks.measure import compare
from benchmarks.service import CONNECTIONS, ROUNDS, SECONDS, Server, requests, serving
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.feature_columns import FeatureColumn, RowEncoding
from lenience.models.live_logistic import LiveLogistic

FEATURES = 20
MEMORY_ROUNDS = int(os.environ.get("LENIENCE_BENCH_MEMORY_ROUNDS", "20"))
CACHED = 100e6  # bytes of the file with which SQLite's page cache is full
COLUMNS = [FeatureColumn(f"x{i}", minimum=0.0, maximum=1.0) for i in range(FEATURES)]


def people(number: int, seed: int = 0) -> list[dict[str, float]]:
    """Applicants with random features."""
    rng = random.Random(seed)
    return [{column.name: round(rng.random(), 3) for column in COLUMNS} for _ in range(number)]


def repaid(person: dict[str, float], rng: random.Random) -> bool:
    """Whether an applicant repays, which depends on two features."""
    return rng.random() < 0.6 + 0.35 * (person["x0"] + person["x1"]) / 2


def specification(name: str = "features") -> dict[str, Any]:
    """A policy with 20 features that has learnt from a thousand outcomes."""
    rng, past = random.Random(1), people(1000, seed=1)
    rows = RowEncoding(COLUMNS).rows(past)
    model = BayesianLogistic().centre_on(0.75).prepare(rows).learn(rows, [float(repaid(one, rng)) for one in past])
    state = b64encode(LiveLogistic(COLUMNS, model.belief_).state()).decode()
    return {
        "name": name,
        "objective": {"type": "discounted", "cost": 0.75, "discount": 0.999},
        "model": {
            "type": "logistic",
            "columns": msgspec.to_builtins(COLUMNS),
            "state": state,
            "reference": past[:100],
        },
    }


def applicants(path: str, size: int | None = None) -> Any:
    """A source of requests with features."""
    some = people(64, seed=2)
    made = []
    for i in range(64):
        one = {"features": some[i], "reference": f"application {i}"}
        several = [{"features": some[(i + j) % 64], "reference": f"application {j}"} for j in range(size or 1)]
        made.append(as_bytes(path, json.dumps(one if size is None else {"decisions": several}).encode()))
    state = {"next": 0}

    def source() -> bytes:
        state["next"] = (state["next"] + 1) % 64
        return made[state["next"]]

    return source


def side_by_side(server: Server) -> dict[str, float]:
    """Singles and batches by segments and by features, in turn; the median of the rounds."""

    def load(source: Any, connections: int = CONNECTIONS) -> Load:
        measured = run([server.port], connections, SECONDS, source)
        assert set(measured.statuses) == {201}, measured.statuses
        return measured

    rounds = []
    for _ in range(ROUNDS):
        segments = load(requests("/v1/policies/bench/decisions"))
        features = load(applicants("/v1/policies/features/decisions"))
        used = server.processor_seconds
        batch = load(applicants("/v1/policies/features/decisions/batch", 100), 8)
        used = server.processor_seconds - used
        rounds.append(
            {
                "durable decisions a second by segments": segments.rate,
                "durable decisions a second by features": features.rate,
                "features as a share of segments": features.rate / segments.rate,
                "by features in batches of 100, a second": 100 * batch.rate,
                "processor µs of a decision in batches": 1e6 * used / (100 * len(batch.times)),
                "memory MB": server.memory,
            }
        )
    result = {name: sorted(one[name] for one in rounds)[ROUNDS // 2] for name in rounds[0]}
    result["memory MB after the first round"] = rounds[0]["memory MB"]
    result["memory MB after the last round"] = rounds[-1]["memory MB"]
    return result


def batch(number: int) -> dict[str, Any]:
    """A request for a hundred new applicants."""
    return {"decisions": [{"features": one} for one in people(100, seed=1000 + number)]}


def memory_over_rounds(server: Server, database: Path) -> dict[str, float]:
    """The memory of a server that decides and learns all outcomes, when SQLite's page cache is full.

    The cache holds the latest pages of the file, up to 64 MB for each connection. While the file is smaller, the memory
    grows with it, so decisions by segments fill it first. The applicants are those of a policy of their own, of which
    nobody stays pending.
    """
    made = 0
    server.call("/v1/policies", specification("learning"))
    server.call("/v1/policies/learning/activate", {})
    while sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*")) < CACHED:
        run([server.port], 4, SECONDS, requests("/v1/policies/bench/decisions/batch", 500))
    memory, learnt, rng = [server.memory], 0, random.Random(9)
    for _ in range(MEMORY_ROUNDS):
        for _ in range(10):
            request = batch(made)
            made += 1
            answer = server.call("/v1/policies/learning/decisions/batch", request)["decisions"]
            people_in = [one["features"] for one in request["decisions"]]
            outcomes = [
                {"id": one["id"], "outcome": "success" if repaid(person, rng) else "failure"}
                for one, person in zip(answer, people_in, strict=True)
                if one["decision"] == "accept"
            ]
            server.call("/v1/outcomes/batch", {"outcomes": outcomes})
            learnt += len(outcomes)
        memory.append(server.memory)
    half = len(memory) // 2
    return {
        "rounds": MEMORY_ROUNDS,
        "decisions": 100 * made,
        "outcomes learnt": learnt,
        "memory MB before": memory[0],
        "memory MB after the first round": memory[1],
        "memory MB after half of the rounds": memory[half],
        "memory MB after all rounds": memory[-1],
        "growth MB over the second half": memory[-1] - memory[half],
    }


def main() -> dict[str, dict[str, float]]:
    """Measure, print, and return the figures."""
    folder = tempfile.mkdtemp(prefix="lenience-bench-")
    results: dict[str, dict[str, float]] = {}
    try:
        with serving(f"{folder}/features.db") as servers:
            servers[0].call("/v1/policies", specification())
            servers[0].call("/v1/policies/features/activate", {})
            results["SQLite, 20 features"] = side_by_side(servers[0])
            results["memory, 20 features"] = memory_over_rounds(servers[0], Path(folder) / "features.db")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    served = results["SQLite, 20 features"]
    by_features, by_segments = (served[f"durable decisions a second by {kind}"] for kind in ("features", "segments"))
    compare("decisions a second, 20 features", f"{by_features:,.0f}", f"segments: {by_segments:,.0f}",
            by_features / by_segments, "at least 0.7")  # fmt: skip
    batches = served["by features in batches of 100, a second"]
    compare(
        "in batches of 100, 20 features", f"{batches:,.0f}", "the goal of 5,000 a second", batches / 5000, "at least 1"
    )
    kept = results["memory, 20 features"]
    half, end = (kept[f"memory MB after {part} rounds"] for part in ("half of the", "all"))
    compare(
        "memory after all rounds", f"{end:,.0f} MB", f"after half of them: {half:,.0f} MB", end / half, "at most 1.02"
    )
    for title, figures in results.items():
        print(f"\n{title}")
        for name, value in figures.items():
            print(f"  {name:<42} {value:>12,.3g}" if value < 100 else f"  {name:<42} {value:>12,.0f}")
    return results


if __name__ == "__main__":
    main()
