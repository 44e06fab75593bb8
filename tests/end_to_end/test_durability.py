"""What was acknowledged survives kill -9 of the service and of PostgreSQL; a full disk is a 503, and it goes on."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from lenience import Client, ServiceError
from serving import BY_FEATURES, SPEC, Postgres, Served, audited, serving, sqlite_file

KILLS = int(os.environ.get("KILLS", "2"))
CLIENTS = 4


class Load:
    """Clients that decide and report without pause, and remember only what was acknowledged."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.acknowledged: dict[str, str] = {}
        self.refused: list[int] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _run(self, which: int) -> None:
        with Client(self.url, retries=0, timeout=10) as client:
            while not self._stop.is_set():
                try:
                    made = client.decide("cards", "young" if which % 2 else "old", reference=f"client {which}")
                    self.acknowledged[made["id"]] = "pending" if made["decision"] == "accept" else "rejected"
                    if made["decision"] == "accept":
                        # Successes, so that the segments stay open.
                        client.outcome(made["id"], "success")
                        self.acknowledged[made["id"]] = "success"
                    features: dict[str, float | str | None] = {"income": 10 + 20 * which, "region": "north"}
                    applicant = client.decide("applicants", features=features, reference=f"client {which}")
                    self.acknowledged[applicant["id"]] = "pending" if applicant["decision"] == "accept" else "rejected"
                    if applicant["decision"] == "accept":
                        client.outcome(applicant["id"], "success")
                        self.acknowledged[applicant["id"]] = "success"
                    many = client.decide_batch("cards", [{"segment": "young"}, {"segment": "old"}] * 5)
                    for one in many:
                        self.acknowledged[one["id"]] = "pending" if one["decision"] == "accept" else "rejected"
                except ServiceError as error:
                    self.refused.append(error.status)
                    time.sleep(0.02)

    def wait_for(self, acknowledged: int) -> None:
        """Wait until so much has been acknowledged, on however busy a machine."""
        until = time.monotonic() + 60
        while len(self.acknowledged) < acknowledged:
            assert time.monotonic() < until, f"{len(self.acknowledged)} acknowledged, of {acknowledged} hoped for"
            time.sleep(0.02)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def create_policies(client: Client) -> None:
    """Create a policy with segments and one that decides by features, and make them live."""
    for specification in (SPEC, BY_FEATURES):
        client.create_policy(specification)
        client.activate(specification["name"])


def check(database: str, url: str, load: Load) -> None:
    """Everything acknowledged is there, and the audit holds."""
    with Client(url, retries=8) as client:
        stored = {one["id"]: one["status"] for one in client.decisions()}
    for identity, status in load.acknowledged.items():
        # What was acknowledged as pending may have had an outcome whose answer was lost.
        assert stored[identity] == status or (status == "pending" and stored[identity] == "success")
    report = audited(database)
    assert report["findings"] == []
    assert report["decisions"] == len(stored)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield sqlite_file(tmp_path)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        yield server.database()


def test_the_service_is_killed_under_load(database: str) -> None:
    served = Served(database)
    with served.client() as client:
        create_policies(client)
    load = Load(served.url)
    before = 0
    try:
        for kill in range(KILLS):
            load.wait_for(before + 1)
            time.sleep(0.2 + 0.13 * kill)
            served.kill()
            before = len(load.acknowledged)
            served.stop()
            served = Served(database, port=served.port)
        time.sleep(0.5)
    finally:
        load.stop()
    assert 0 in load.refused, "no client noticed a kill"
    try:
        check(database, served.url, load)
    finally:
        served.stop()


def test_postgresql_is_killed_under_load() -> None:
    """Even if the database is set to acknowledge commits before they are on the disk."""
    postgres = Postgres(durable=True)
    try:
        database = postgres.database()
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET synchronous_commit = off")
        with serving(database) as served:
            with served.client() as client:
                create_policies(client)
            load = Load(served.url)
            try:
                for kill in range(KILLS):
                    time.sleep(0.4 + 0.11 * kill)
                    before = len(load.acknowledged)
                    postgres.kill()
                    time.sleep(0.2)
                    postgres.start()
                    load.wait_for(before + CLIENTS * 12 + 1)  # it recovers by itself
            finally:
                load.stop()
            assert set(load.refused) == {503}, "a lost database must be a 503 and nothing else"
            check(database, served.url, load)
    finally:
        postgres.remove()


def test_a_full_disk_is_a_503_and_then_it_goes_on(tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    with serving(database) as served, served.client() as client:
        create_policies(client)
        client.decide("cards", "young")
        size = max(
            Path(database + ending).stat().st_size for ending in ("", "-wal") if Path(database + ending).exists()
        )
        unlimited = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
        # No file of the service may grow further: as if the disk were full.
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (size + 8192, unlimited[1]))
        statuses = set()
        for _ in range(30):
            try:
                client.decide_batch("cards", [{"segment": "young", "reference": "x" * 100}] * 50)
                statuses.add(201)
            except ServiceError as error:
                statuses.add(error.status)
        assert 503 in statuses
        assert statuses <= {201, 503}
        assert not all(client.ready() for _ in range(5)), "a full disk is not ready"
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert client.ready()
        assert client.decide("cards", "young")["policy"] == "cards"
    assert audited(database)["findings"] == []
