"""Settings for every test."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # the oracles are imported by name

if TYPE_CHECKING:
    import httpx
    from playwright.sync_api import Browser

    from engines import Engine
    from lenience import Client, InputError
    from new_policies import Browser as FormBrowser
    from serving import Postgres, Served

# Compilation makes a first example slow; the machines are noisy; the same examples every time.
settings.register_profile(
    "lenience",
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("lenience")

# Tables are shared between the workers, and none is left in the user's own folder.
os.environ["LENIENCE_CACHE"] = str(Path(tempfile.gettempdir()) / f"lenience-tables-of-tests-{os.getuid()}")


def pytest_sessionstart() -> None:
    """Where several workers run, what takes longest to compile is compiled once, before anything needs it."""
    if run := os.environ.get("PYTEST_XDIST_TESTRUNUID"):
        from kernels import compile_together

        compile_together(run)


def pytest_sessionfinish() -> None:
    """Forget who compiled what."""
    if run := os.environ.get("PYTEST_XDIST_TESTRUNUID"):
        from kernels import forget

        forget(run)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, started when the first test needs it."""
    from serving import Postgres

    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes a database with all tables and no rows: tests that use it run on SQLite and on PostgreSQL."""
    from serving import prepared_sqlite_file

    if request.param == "sqlite":
        yield lambda: prepared_sqlite_file(tmp_path)
        return
    server: Postgres = request.getfixturevalue("postgres")
    yield server.prepared
    server.drop_prepared()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    from serving import sqlite_file

    if request.param == "sqlite":
        return sqlite_file(tmp_path)
    server: Postgres = request.getfixturevalue("postgres")
    return server.emptied()


@pytest.fixture
def database(new_database: Callable[[], str]) -> str:
    """A database with all tables and no rows."""
    return new_database()


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """An engine on an empty database; whatever a test does, the audit must hold in the end."""
    from engines import Engine

    made = Engine(database)
    yield made
    report = made.audit()
    made.close()
    assert report.findings == []


@pytest.fixture
def free_engine(database: str) -> Iterator[Engine]:
    """An engine whose test breaks what the audit checks."""
    from engines import Engine

    made = Engine(database)
    yield made
    made.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    from browsing import CHROMIUM, chromium

    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def portfolio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a month of a lender's past; the tests that use it only add to it."""
    from lenience.cli.demo_portfolio import Portfolio, simulate_past
    from serving import Served, sqlite_file

    database = sqlite_file(tmp_path_factory.mktemp("portfolio"))
    simulate_past(database, Portfolio(), days=30)
    served = Served(database)
    yield served
    served.stop()


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with one policy, on each database: the tests of HTTP add policies of their own."""
    from serving import SPEC, audited, serving, sqlite_file

    if request.param == "sqlite":
        database = sqlite_file(tmp_path_factory.mktemp("http"))
    else:
        server: Postgres = request.getfixturevalue("postgres")
        database = server.database()
    with serving(database, "--log-requests") as made:
        with made.client() as client:
            client.create_policy(SPEC)
            client.activate("cards")
        yield made
        report = audited(database)
        assert report["findings"] == []


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    """A client of that service."""
    with served.client() as made:
        yield made


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    """The same service, without our client."""
    import httpx

    with httpx.Client(base_url=served.url) as made:
        yield made


@pytest.fixture(scope="session")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on which policies are made by the guided form, with a folder of its own for uploads."""
    from serving import Served, sqlite_file

    folder = tmp_path_factory.mktemp("forms")
    with pytest.MonkeyPatch.context() as patch:  # it keeps the environment that it was started with
        patch.setenv("TMPDIR", str(folder))
        running = Served(sqlite_file(folder))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def clerk(forms: Served) -> Iterator[FormBrowser]:
    """Who fills the guided form in."""
    from new_policies import Browser as FormBrowser

    made = FormBrowser(forms.url)
    yield made
    made.http.close()


@pytest.fixture(scope="session")
def uploaded(clerk: FormBrowser) -> dict[str, Any]:
    """The answers after a good file was uploaded."""
    from new_policies import CSV

    return clerk.uploaded(CSV.encode())


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Served]:
    """A service with nothing in it."""
    from serving import Served, sqlite_file

    served = Served(sqlite_file(tmp_path))
    yield served
    served.stop()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Calls a command: its exit code, what it printed, and what it said on stderr."""
    from lenience.cli import main

    # What is said of work that takes a moment depends on the machine.
    monkeypatch.setattr("lenience.cli.progress.SENTENCE_AFTER", 600.0)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lenience", *words])
        monkeypatch.setenv("COLUMNS", "160")
        with pytest.raises(SystemExit) as exit_:
            main()
        output = capsys.readouterr()
        return int(exit_.value.code or 0), output.out, output.err

    return call


@pytest.fixture
def rejection(monkeypatch: pytest.MonkeyPatch) -> Callable[..., InputError]:
    """Return a function that runs a command with invalid input and returns the error as data."""
    from lenience.cli import cli
    from lenience.core.errors import InputError

    monkeypatch.setattr("lenience.cli.progress.SENTENCE_AFTER", 600.0)

    def call(*words: str) -> InputError:
        with pytest.raises(InputError) as error:
            cli.main(list(words), standalone_mode=False)
        return error.value

    return call
