"""Engines for the tests of the service, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from engines import Engine


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """An engine on an empty database; whatever a test does, the audit must hold in the end."""
    made = Engine(database)
    yield made
    report = made.audit()
    made.close()
    assert report.findings == []


@pytest.fixture
def free_engine(database: str) -> Iterator[Engine]:
    """An engine whose test breaks what the audit checks."""
    made = Engine(database)
    yield made
    made.close()
