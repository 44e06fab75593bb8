"""Fixtures for tests of the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lenience.core.errors import InputError


@pytest.fixture
def rejection(monkeypatch: pytest.MonkeyPatch) -> Callable[..., InputError]:
    """Return a function that runs a command with invalid input and returns the error as data."""
    from lenience.cli import cli

    monkeypatch.setattr("lenience.cli.progress.SENTENCE_AFTER", 600.0)

    def call(*words: str) -> InputError:
        with pytest.raises(InputError) as error:
            cli.main(list(words), standalone_mode=False)
        return error.value

    return call
