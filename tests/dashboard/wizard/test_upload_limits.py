"""Uploads that would take too much memory or time are rejected, and the service goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apart import awaited
from lenience.core.errors import InputError
from lenience.dashboard.wizard import past_file, upload_process, upload_reader
from lenience.dashboard.wizard.upload_process import save_upload_apart
from lenience.dashboard.wizard.upload_reader import save_upload
from lenience.service.domain.problems import BadRequest
from lenience.service.http.disconnection import unless_disconnected
from new_policies import Browser, alert
from rejections import rejected

# Reads an upload with so little memory that a reader which builds the texts ends with an error of its own.
WITH_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
import duckdb
from lenience.core.errors import InputError
from lenience.dashboard.wizard.upload_reader import save_upload
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
try:
    save_upload(Path(sys.argv[1]), Path(sys.argv[2]))
except InputError as error:
    print(error.code, error)
"""


def repeated_text(path: Path, length: int, rows: int) -> Path:
    """Write a small Parquet file whose only text is repeated in every row."""
    index = pa.array([0] * rows, pa.int32())
    column = pa.DictionaryArray.from_arrays(index, pa.array(["x" * length]))
    table = pa.table({"region": column, "repaid": column})
    pq.write_table(table, path, compression="zstd", use_dictionary=True)
    assert path.stat().st_size < 50_000
    return path


@pytest.mark.parametrize(("length", "rows", "reason"), [(1_000_000, 300_000, "bytes"), (30_000, 300_000, "GB of text")])
def test_a_small_parquet_file_of_much_text_is_rejected_in_little_memory(
    tmp_path: Path, length: int, rows: int, reason: str
) -> None:
    bomb = repeated_text(tmp_path / "bomb.parquet", length, rows)
    command = [sys.executable, "-c", WITH_LITTLE_MEMORY, str(bomb), str(tmp_path / "saved.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("too_large "), done.stderr[-2_000:]
    assert reason in done.stdout
    assert not (tmp_path / "saved.parquet").exists()


def test_declared_values_are_checked_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"region": [[None] * 5_000], "repaid": [1]}), path)
    monkeypatch.setattr(upload_reader, "MOST_VALUES", 5_000)
    monkeypatch.setattr(upload_reader, "_check_text", lambda *_: pytest.fail("the values were read"))
    with rejected("file", "too_large") as caught:
        save_upload(path, tmp_path / "saved.parquet")
    assert "5,001 values" in str(caught.value)


def test_a_heading_that_is_too_long_is_rejected_before_the_engine_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(301)) + "\n" + ",".join(["1"] * 301) + "\n")
    monkeypatch.setattr(upload_reader, "csv_query", lambda *_: pytest.fail("the engine was asked"))
    with rejected("file", "too_large"):
        save_upload(path, tmp_path / "saved.parquet")


def test_examples_of_a_column_are_short(tmp_path: Path) -> None:
    source, target = tmp_path / "long.csv", tmp_path / "saved.parquet"
    source.write_text("region,repaid\n" + ("x" * 30_000 + ",1\n") * 3)
    save_upload(source, target)
    assert [len(column.examples[0]) for column in past_file.columns(target)] == [40, 1]


def test_a_process_that_reads_an_upload_has_limits(tmp_path: Path) -> None:
    code = (
        "import resource; from lenience.dashboard.wizard import upload_process as u; u._set_limits();"
        "print(*(resource.getrlimit(r)[0] for r in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    limits = (upload_process.MEMORY, upload_process.PROCESSOR_SECONDS, upload_process.OUTPUT)
    assert done.stdout.split() == [str(limit) for limit in limits]


def test_an_upload_is_read_in_another_process_with_the_same_answers(tmp_path: Path) -> None:
    good, bad, target = tmp_path / "good.csv", tmp_path / "bad.csv", tmp_path / "saved.parquet"
    good.write_text("region,repaid\nnorth,1\n")
    bad.write_text("region,repaid\n")
    awaited(save_upload_apart(good, target))
    assert past_file.count(target) == 1
    with rejected("file", "insufficient_data"):
        awaited(save_upload_apart(bad, target))
    assert not target.exists()


@pytest.mark.parametrize("end", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGXCPU)", "bytearray(1 << 60)"])
def test_a_reader_that_dies_is_an_error_about_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\nimport os, signal, sys\n{end}\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    with rejected("file", "too_large"):
        awaited(save_upload_apart(tmp_path / "any.csv", tmp_path / "saved.parquet"))


@pytest.fixture
def sleeping_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reader that never ends, and the file with the id of its process."""
    script, pid = tmp_path / "python", tmp_path / "pid"
    script.write_text(f"#!/bin/sh\necho $$ > {pid}.new && mv {pid}.new {pid}\nexec sleep 600\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    return pid


def assert_gone(pid: Path) -> None:
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_reader_that_takes_too_long_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeping_reader: Path
) -> None:
    monkeypatch.setattr(upload_process, "SECONDS", 1.0)
    with rejected("file", "too_large"):
        awaited(save_upload_apart(tmp_path / "any.csv", tmp_path / "saved.parquet"))
    assert_gone(sleeping_reader)


class Connection:
    """A request whose client disconnects when a file exists."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign

    async def receive(self) -> dict[str, str]:
        while not self.sign.exists():
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}


def test_a_reader_is_killed_when_the_client_disconnects(tmp_path: Path, sleeping_reader: Path) -> None:
    request: Any = Connection(sleeping_reader)
    work = save_upload_apart(tmp_path / "any.csv", tmp_path / "saved.parquet")
    with pytest.raises(BadRequest, match="disconnected"):
        awaited(unless_disconnected(request, work))
    assert_gone(sleeping_reader)


def test_work_that_ends_before_the_client_disconnects_has_its_result(tmp_path: Path) -> None:
    async def work(value: int) -> int:
        if value < 0:
            raise InputError("value", value, "positive")
        return value

    request: Any = Connection(tmp_path / "never")
    assert awaited(unless_disconnected(request, work(7))) == 7
    with rejected("value"):
        awaited(unless_disconnected(request, work(-7)))


def test_the_page_says_that_a_file_has_too_much_text(clerk: Browser, tmp_path: Path) -> None:
    answer = clerk.upload(repeated_text(tmp_path / "bomb.parquet", 1_000_000, 300_000).read_bytes(), "past.parquet")
    assert answer.status_code == 400
    assert "a value in the column 'region' has 1,000,000 bytes" in alert(answer)
    assert clerk.http.get("/health").status_code == 200
