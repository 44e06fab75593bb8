"""Attempts to sign in: they expire, and only the service can make one."""

from __future__ import annotations

import pytest

from lenience.dashboard.openid import attempt as module
from lenience.dashboard.openid.attempt import ATTEMPT_SECONDS, new_attempt, read_attempt

NOW = 1_800_000_000


def test_an_attempt_lasts_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_seconds", lambda: NOW)
    made = new_attempt(b"secret", "/decisions")
    for later, valid in ((0, True), (ATTEMPT_SECONDS - 1, True), (ATTEMPT_SECONDS, False), (-1, False)):
        monkeypatch.setattr(module, "_seconds", lambda at=NOW + later: at)
        assert (read_attempt((b"secret",), made.text) is not None) is valid, later


def test_an_attempt_is_read_as_it_was_made_and_no_other_is() -> None:
    made, other = new_attempt(b"secret", "/decisions"), new_attempt(b"secret", "/decisions")
    read = read_attempt((b"newer", b"secret"), made.text)  # after the secret was replaced
    assert read is not None
    assert (read.back, read.state, read.nonce, read.verifier) == (made.back, made.state, made.nonce, made.verifier)
    assert len({made.state, made.nonce, made.verifier, other.state, other.nonce, other.verifier}) == 6
    assert 43 <= len(made.verifier) <= 128  # RFC 7636
    assert read.answers(made.state)
    assert not read.answers(other.state)
    for text in (new_attempt(b"foreign", "/").text, f"{made.text}0", made.text.partition(".")[0], "", None):
        assert read_attempt((b"newer", b"secret"), text) is None
