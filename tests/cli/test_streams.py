"""Standard output that is closed, that cannot write every letter, or whose reader has gone."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import msgspec
import pytest

from lenience.cli import main

WORDS = ("threshold", "--cost", "0.8", "--discount", "0.9", "-n", "10")


def called(monkeypatch: pytest.MonkeyPatch, stdout: Any, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lenience", *(words or WORDS)])
    monkeypatch.setattr(sys, "stdout", stdout)
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_closed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(monkeypatch, None) == 0
    assert not sys.stdout.isatty()
    sys.stdout.close()
    assert called(monkeypatch, None, *WORDS, "--tolerance", "7") == 2
    sys.stdout.close()
    assert "lenience: --tolerance must be" in capsys.readouterr().err


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_ascii(monkeypatch: pytest.MonkeyPatch, errors: str) -> None:
    written = io.BytesIO()
    assert called(monkeypatch, io.TextIOWrapper(written, encoding="ascii", errors=errors)) == 0
    text = written.getvalue().decode("ascii")
    assert "c = 0.8, ? = 0.9" in text
    assert "It decreases like" in text  # the last line


@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_a_reader_who_has_gone(monkeypatch: pytest.MonkeyPatch, extra: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        assert called(monkeypatch, gone, *WORDS, *extra) == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--help"], 0), (["--version"], 0), (["solve", "--help"], 0), (["keys", "list", "--help"], 0), (["keys"], 2)],
)
def test_help_for_a_reader_who_has_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], code: int
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        assert called(monkeypatch, gone, *words) == code
    assert capsys.readouterr().err == ""


def test_a_reader_who_has_gone_does_not_make_an_audit_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from lenience.service.queries.audit import AuditReport, Head
    from lenience.service.storage.store import Store

    database, earlier = str(tmp_path / "a.db"), tmp_path / "audit.json"
    store = Store(database)
    store.upgrade()
    store.close()
    lost = AuditReport(database, True, 1, 1, 0, [], [Head("gone", None, 1, "0" * 64)], "")
    earlier.write_bytes(msgspec.json.encode(lost))
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        assert called(monkeypatch, gone, "audit", "--database", database, "--expect", str(earlier)) == 1


def test_in_a_narrow_window_no_column_of_fit_is_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text("region,approved,repaid\nnorth,1,yes\nsouth,1,\n")
    written = io.BytesIO()
    monkeypatch.setenv("COLUMNS", "40")
    columns = ("--segment", "region", "--accepted", "approved", "--outcome", "repaid")
    assert called(monkeypatch, io.TextIOWrapper(written, encoding="utf-8"), "fit", str(loans), *columns) == 0
    heading = written.getvalue().decode().partition("─")[0].splitlines()[-3]
    assert heading.split() == ["segm", "arriv", "outc", "own", "esti", "pendi"]
