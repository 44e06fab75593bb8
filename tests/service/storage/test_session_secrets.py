"""The secrets of sessions: outside the database, private, and replaced without ending every session."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lenience.dashboard.session import new_session, read_session, sign_in
from lenience.dashboard.signed_cookie import sign
from lenience.service.commands.keys import Keyring, create_key
from lenience.service.storage.address import database_url
from lenience.service.storage.private_file import PrivateFile
from lenience.service.storage.session_secrets import SessionSecrets, rotate_secret, secret_file
from lenience.service.storage.store import Store
from rejections import rejected
from serving import sqlite_file

Run = Callable[..., tuple[int, str, str]]
HOURS = 3600.0


@pytest.fixture(autouse=True)
def no_secret_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LENIENCE_SESSION_SECRET", raising=False)


def service_with_a_key(database: str) -> tuple[Keyring, str, str]:
    """Return the keys of a service with one administrator, the id of their key, and the key."""
    store = Store(database)
    store.upgrade()
    identity, key = create_key(store, "owner", ("admin",), None, "test")
    keyring = Keyring(store)
    keyring.refresh()
    return keyring, identity, key


def test_a_copy_of_the_database_signs_no_session(database: str, tmp_path: Path) -> None:
    keyring, identity, _ = service_with_a_key(database)
    with keyring._store.read() as connection:
        (stored,) = connection.exec_driver_sql("SELECT secret_hash FROM api_key").scalars()
        everything = str([connection.exec_driver_sql("SELECT * FROM event").all(), stored])
    assert not any(secret.decode() in everything for secret in keyring.secrets.verifying)
    if not database.startswith("postgresql"):
        copy = tmp_path / "stolen" / "copy.db"
        copy.parent.mkdir()
        with sqlite3.connect(database) as source, sqlite3.connect(copy) as target:
            source.backup(target)
        source.close()
        target.close()
        thief = Keyring(Store(str(copy)))
    else:
        thief = Keyring(keyring._store)
    thief.refresh()
    forged = new_session(thief, identity)
    assert read_session(thief, forged.cookie) is not None  # it is a session of the thief's own service
    assert read_session(keyring, forged.cookie) is None
    payload = (forged.cookie or "").rpartition(".")[0]
    for guess in (stored, stored.encode().hex(), identity, sha256(stored.encode()).hexdigest(), ""):
        signature = sign(guess.encode(), "session", payload)
        assert read_session(keyring, f"{payload}.{signature}") is None
    thief._store.close()
    keyring._store.close()


def test_a_backup_has_no_secret_and_signs_no_session(run: Run, database: str, tmp_path: Path) -> None:
    keyring, identity, _ = service_with_a_key(database)
    backup = tmp_path / "backup" / "copy.db"
    backup.parent.mkdir()
    code, _, err = run("backup", "--database", database, "--output", str(backup))
    assert code == 0, err
    assert {path.suffix for path in backup.parent.iterdir()} == {".db"}
    assert keyring.secrets.signing not in backup.read_bytes()
    thief = Keyring(Store(str(backup)))
    thief.refresh()
    assert read_session(keyring, new_session(thief, identity).cookie) is None
    thief._store.close()
    keyring._store.close()


def test_the_file_is_its_owners_alone_and_stays(tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    mask = os.umask(0)
    try:
        keyring, _, key = service_with_a_key(database)
    finally:
        os.umask(mask)
    visitor = sign_in(keyring, key)
    keyring._store.close()
    path = secret_file(database_url(database))
    assert path == Path(f"{database}.secret")
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(path.parent.glob("*.secret*")) == [path]
    assert keyring.secrets.signing not in Path(database).read_bytes()
    again = Keyring(Store(database))  # the service was started again
    again.refresh()
    restored = read_session(again, visitor.cookie)
    assert restored is not None
    assert restored.token == visitor.token
    again._store.close()


def test_a_file_that_others_can_read_is_rejected_until_it_is_replaced(run: Run, tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    url = database_url(database)
    service_with_a_key(database)[0]._store.close()
    path = Path(f"{database}.secret")
    path.chmod(0o640)
    with rejected("database", "unreadable_file") as caught:
        SessionSecrets(url)
    assert "rotate-secret --end-sessions" in str(caught.value)
    code, _, err = run("serve", "--port", "0", "--database", database)
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert "must be readable by its owner alone" in err
    assert run("keys", "rotate-secret", "--database", database)[0] == 2
    assert run("keys", "rotate-secret", "--database", database, "--end-sessions")[0] == 0
    assert path.stat().st_mode & 0o777 == 0o600
    SessionSecrets(url)


@pytest.mark.parametrize("content", ["", "[]", "{", '[{"secret": "short"}]'])
def test_a_damaged_file_is_rejected(tmp_path: Path, content: str) -> None:
    database = sqlite_file(tmp_path)
    path = Path(f"{database}.secret")
    path.touch(0o600)
    path.write_text(content)
    with rejected("database", "unreadable_file") as caught:
        SessionSecrets(database_url(database))
    assert "is damaged" in str(caught.value)


def test_an_old_secret_verifies_until_its_sessions_have_expired(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = sqlite_file(tmp_path)
    keyring, _, key = service_with_a_key(database)
    before = sign_in(keyring, key)
    code, out, _ = run("keys", "rotate-secret", "--database", database, "--json")
    assert (code, json.loads(out)) == (0, {"rotated": True, "sessions_ended": False})
    old = keyring.secrets.signing
    keyring.refresh()
    assert keyring.secrets.signing != old
    assert list(keyring.secrets.verifying) == [keyring.secrets.signing, old]
    after = sign_in(keyring, key)
    for visitor in (before, after):
        again = read_session(keyring, visitor.cookie)
        assert again is not None
        assert again.token == visitor.token
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start + 11.9 * HOURS)
    assert read_session(keyring, before.cookie) is not None
    monkeypatch.setattr(time, "time", lambda: start + 12.1 * HOURS)
    assert read_session(keyring, before.cookie) is None
    assert list(keyring.secrets.verifying) == [keyring.secrets.signing]
    rotate_secret(database_url(database))
    assert old.decode() not in Path(f"{database}.secret").read_text()  # it has no use any more
    keyring._store.close()


def test_all_sessions_can_be_ended_at_once(run: Run, tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    keyring, _, key = service_with_a_key(database)
    before = sign_in(keyring, key)
    code, out, _ = run("keys", "rotate-secret", "--database", database, "--end-sessions")
    assert (code, out) == (0, "The secret is replaced. All sessions of the dashboard have ended.\n")
    keyring.refresh()
    assert read_session(keyring, before.cookie) is None
    assert read_session(keyring, sign_in(keyring, key).cookie) is not None
    keyring._store.close()


def test_a_file_that_becomes_unusable_is_logged_once_and_sessions_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = sqlite_file(tmp_path)
    keyring, _, key = service_with_a_key(database)
    visitor = sign_in(keyring, key)
    path = Path(f"{database}.secret")
    path.write_text("broken")
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            keyring.refresh()
    assert caplog.messages == ["the session secrets cannot be read"]
    path.unlink()
    keyring.refresh()
    assert read_session(keyring, visitor.cookie) is not None
    keyring._store.close()


def test_the_environment_comes_first_and_can_hold_old_secrets(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = "a" * 32, "b" * 40
    monkeypatch.setenv("LENIENCE_SESSION_SECRET", old)
    keyring, _, key = service_with_a_key(database)
    before = sign_in(keyring, key)
    assert not list(Path(database).parent.glob("*.secret"))
    code, _, err = run("keys", "rotate-secret", "--database", database)
    assert code == 2
    assert "LENIENCE_SESSION_SECRET" in err
    monkeypatch.setenv("LENIENCE_SESSION_SECRET", f"{new}, {old}")
    restarted = Keyring(keyring._store)
    restarted.refresh()
    assert restarted.secrets.signing == new.encode()
    assert read_session(restarted, before.cookie) is not None
    monkeypatch.setenv("LENIENCE_SESSION_SECRET", new)
    later = Keyring(keyring._store)
    later.refresh()
    assert read_session(later, before.cookie) is None
    monkeypatch.setenv("LENIENCE_SESSION_SECRET", f"{new},short")
    with rejected("LENIENCE_SESSION_SECRET"):
        Keyring(keyring._store)
    keyring._store.close()


def test_processes_that_start_together_share_one_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = database_url(sqlite_file(tmp_path))
    first: list[Any] = []
    create = PrivateFile.create

    def slower(file: PrivateFile, content: bytes) -> None:
        if not first:
            first.append(None)
            first[0] = SessionSecrets(url)  # another process comes first
        create(file, content)

    monkeypatch.setattr(PrivateFile, "create", slower)
    assert SessionSecrets(url).signing == first[0].signing
