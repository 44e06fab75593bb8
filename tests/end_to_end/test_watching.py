"""Monitoring over HTTP and from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

from lenience import Client
from serving import SPEC, Served

Run = Callable[..., tuple[int, str, str]]


def test_monitoring_is_the_same_over_http_and_on_the_command_line(served: Served, client: Client, run: Run) -> None:
    policy = "watched"
    client.create_policy({**SPEC, "name": policy, "prior": {"n": 40, "s": 38}, "segments": [
        {"name": "young", "share": 0.9}, {"name": "old", "share": 0.1},
    ]})  # fmt: skip
    client.activate(policy)
    assert client.monitoring(policy)["state"] == "no_data"
    made = client.decide_batch(policy, [{"segment": "old"}] * 60)
    client.outcomes({one["id"]: "failure" for one in made[:50]})
    report = client.monitoring(policy, 1)
    assert (report["state"], report["population"][0]["state"], report["outcomes"]["state"]) == ("act", "act", "act")
    code, out, _ = run("monitor", policy, "--url", served.url, "--json")
    shown = json.loads(out)
    assert (code, {**shown, "at": ""}) == (0, {**report, "at": ""})
    code, out, _ = run("monitor", policy, "--url", served.url, "--strict")
    assert (code, "old" in out) == (1, True)
    code, _, err = run("monitor", "nobody", "--url", served.url)
    assert (code, "nobody" in err) == (2, True)
