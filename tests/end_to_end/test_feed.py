"""The feed for a warehouse: increments add up to a full export, and erasures are tombstones."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq

from apart import awaited
from engines import Engine
from lenience import Client
from lenience.dashboard.app import create_app
from lenience.service.commands.keys import create_key
from serving import SPEC, Served, sqlite_file

Run = Callable[..., tuple[int, str, str]]
Row = dict[str, Any]


def increments(client: Client, limit: int, after: int = 0, personal: bool = True) -> tuple[list[Row], int]:
    """Read the feed in parts, and return its rows and the next cursor."""
    rows: list[Row] = []
    more = True
    while more:
        page = client.feed(after, limit=limit, personal=personal)
        rows += page["rows"]
        assert page["next"] > after or not page["more"]
        after, more = page["next"], page["more"]
    return rows, after


def without_erased(rows: list[Row]) -> list[Row]:
    """What a warehouse has that follows the tombstones."""
    erased = {row["id"] for row in rows if row["kind"] == "erasure"}
    return [{**row, "reference": None, "features": None} if row["id"] in erased else row for row in rows]


def test_increments_are_a_full_export(served: Served, client: Client, run: Run, tmp_path: Path) -> None:
    policy = "fed"
    _, start = increments(client, 5_000)
    client.create_policy({**SPEC, "name": policy, "segments": ["young", "old"]})
    client.activate(policy)
    state = tmp_path / "cursor.txt"
    state.write_text(str(start))
    words = ("export", "--url", served.url, "--state", str(state), "--personal")
    files = [tmp_path / f"{i}.jsonl" for i in range(3)]
    made = [client.decide(policy, "young", reference=f"R-{i}")["id"] for i in range(4)]
    assert run(*words, str(files[0]))[0] == 0
    client.outcome(made[0], "success")
    client.outcome(made[1], "failure")
    client.correct(made[1], "success")
    client.override(made[2], "reject", by="head of credit", reason="known")
    assert run(*words, str(files[1]))[0] == 0
    client.erase(made[3])
    client.decide(policy, "old")
    assert run(*words, str(files[2]))[0] == 0
    parts = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    full, end = increments(client, 7, start)
    assert without_erased(parts) == full
    assert state.read_text() == f"{end}\n"
    own = [row for row in full if row["policy"] == policy]
    assert [row["kind"] for row in own if row["kind"] not in ("policy", "version", "state")] == [
        *["decision"] * 4, "outcome", "outcome", "correction", "override", "erasure", "decision",
    ]  # fmt: skip
    decisions = [row for row in own if row["kind"] == "decision"]
    assert [row["reference"] for row in decisions] == ["R-0", "R-1", "R-2", None, None]
    assert [row["reference"] for row in parts if row["kind"] == "decision"][3] == "R-3"  # before it was erased
    assert decisions[0]["expected_rate"] == 0.5
    assert json.loads(next(row for row in own if row["kind"] == "version")["specification"])["name"] == policy
    assert [row["position"] for row in full] == sorted(row["position"] for row in full)
    assert increments(client, 7, end) == ([], end)


def test_formats_have_the_same_rows(served: Served, client: Client, run: Run, tmp_path: Path) -> None:
    client.decide("cards", "young", reference="=1+1")
    start = max(increments(client, 5_000)[1] - 20, 0)
    rows = {}
    for kind in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"rows.{kind}"
        code, out, _ = run("export", str(path), "--since", str(start), "--url", served.url, "--personal", "--json")
        assert (code, json.loads(out)["since"]) == (0, start)
        rows[kind] = path
    by_json = [json.loads(line) for line in rows["jsonl"].read_text().splitlines()]
    assert pq.read_table(rows["parquet"]).to_pylist() == by_json
    with rows["csv"].open(newline="") as file:
        by_csv = list(csv.DictReader(file))
    assert list(by_csv[0]) == list(by_json[0])
    assert [row["position"] for row in by_csv] == [str(row["position"]) for row in by_json]
    assert by_csv[-1]["reference"] == "'=1+1"  # no spreadsheet runs it
    for wrong in (("rows.xlsx",), ("rows.csv", "--since", "1", "--state", "x"), ("rows.csv", "--since", "99999999")):
        code, _, err = run("export", str(tmp_path / wrong[0]), *wrong[1:], "--url", served.url)
        assert (code, err.count("\n")) == (2, 1)


def test_references_need_the_role_admin(tmp_path: Path) -> None:
    engine = Engine(sqlite_file(tmp_path))
    engine.create()
    engine.decide(reference="R-1")
    keys = {role: create_key(engine.store, role, (role,), None, "tester")[1] for role in ("read", "admin")}
    engine.close()
    app: Any = create_app(engine.database)

    async def read(role: str, query: str) -> tuple[int, Row]:
        headers = {"Authorization": f"Bearer {keys[role]}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
            answer = await http.get(f"/v1/export/feed{query}", headers=headers)
            return answer.status_code, answer.json()

    seen = [awaited(read(*which)) for which in (("admin", "?personal=true"), ("read", ""), ("read", "?personal=true"))]
    awaited(app.app.state.service.stop())
    assert [status for status, _ in seen] == [200, 200, 403]
    found = [row for _, page in seen[:2] for row in page["rows"] if row["kind"] == "decision"]
    assert [(row["reference"], row["features"]) for row in found] == [("R-1", None), (None, None)]
