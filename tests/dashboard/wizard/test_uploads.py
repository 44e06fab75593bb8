"""Files that are uploaded: private, gone after an hour, and only with the extra that reads them."""

from __future__ import annotations

import builtins
import html
import os
import tempfile
import time
from pathlib import Path

import pytest
from litestar.testing import TestClient

from lenience.dashboard.app import create_app
from lenience.dashboard.wizard import past_file, uploads
from lenience.service.domain.problems import NotFound
from rejections import rejected
from serving import sqlite_file


@pytest.mark.filterwarnings("ignore::litestar.exceptions.LitestarDeprecationWarning")
def test_without_the_extra_the_page_says_which_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_file, "ready", lambda: False)
    with TestClient(create_app(sqlite_file(tmp_path)), base_url="http://127.0.0.1") as client:
        shown = client.get("/new").text
    assert "lenience[history]" in html.unescape(shown)
    assert "/new/segments" in shown
    assert "/new/file" not in shown


def test_whether_the_extra_is_there_is_told_without_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(builtins, "__import__", lambda name, *_: loaded.append(name))
    able = past_file.ready()
    monkeypatch.undo()
    assert (able, loaded) == (True, [])


def test_uploads_are_private_and_go_after_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    token, path = uploads.new_place("json")
    path.write_text("{}")
    assert uploads.find(token) == path
    assert path.parent.stat().st_mode & 0o777 == 0o700
    old = time.time() - 3700
    os.utime(path, (old, old))
    with pytest.raises(NotFound, match="after an hour"):
        uploads.find(token)
    uploads.new_place("json")
    assert not path.exists()
    path.parent.chmod(0o755)
    with rejected("uploads", "unreadable_file"):
        uploads.folder()
