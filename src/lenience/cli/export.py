"""lenience export: what has changed in a running service since the last export, as a file."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lenience.cli.options import json_option, print_json, service_options
from lenience.core.errors import InputError, in_words
from lenience.core.formatting import counted
from lenience.core.spreadsheets import harmless

if TYPE_CHECKING:
    from lenience.client.client import Client

AT_A_TIME = 5_000  # rows of a part of a Parquet file
FORMATS = ("csv", "jsonl", "parquet")


@click.command(short_help="Write what has changed in a running service to a file for a data warehouse.")
@click.argument("output", type=click.Path(dir_okay=False))
@click.option("--since", type=click.IntRange(0), help="The cursor that the last export printed; by default the start.")
@click.option("--state", type=click.Path(dir_okay=False), help="A file that keeps the cursor; instead of --since.")
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), help="The format; by default the one of the file name's ending."
)
@click.option("--personal", is_flag=True, help="Also references and features. The key needs the role admin.")
@service_options("read")
@json_option
def export(
    output: str,
    since: int | None,
    state: str | None,
    kind: str | None,
    personal: bool,
    url: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Write decisions, outcomes, overrides, versions and erasures since a cursor to OUTPUT, one row for each change.

    Rows have the order of the log, and each comes once. All increments together are one full export. The next cursor is
    printed, and stored in --state after the file is complete.

    \b
    Example:
      lenience export all.parquet --url http://127.0.0.1:8000 --key lk_…
      lenience export monday.csv --since 120394
      lenience export today.jsonl --state cursor.txt --personal
    """
    from lenience.client.client import Client, ServiceError
    from lenience.service.domain.feed_rows import column_types

    if since is not None and state is not None:
        raise InputError.because("Give --since or --state, not both", ("--since", "--state"), label="",
                                 code="conflicting_fields")  # fmt: skip
    chosen = kind or Path(output).suffix.lstrip(".")
    if chosen not in FORMATS:
        raise InputError("format", chosen, f"one of {', '.join(FORMATS)}", code="unknown_name")
    after = _cursor(state) if state is not None else since or 0
    cursor = _Cursor(after)
    try:
        with Client(url, key) as client:
            rows = _write(output, chosen, cursor.rows(client, personal), column_types())
    except ServiceError as error:
        raise click.ClickException(f"{error}.") from error
    if state is not None:
        _replace(state, f"{cursor.at}\n".encode())
    if as_json:
        print_json({"rows": rows, "since": after, "next": cursor.at, "file": output})
    else:
        click.echo(f"Wrote {counted(rows, 'row')} to {output}. The next export starts at --since {cursor.at}.")


class _Cursor:
    """The place in the feed up to which rows were read."""

    def __init__(self, at: int) -> None:
        self.at = at

    def rows(self, client: Client, personal: bool) -> Iterator[dict[str, Any]]:
        """Yield all rows that there are now."""
        more = True
        while more:
            page = client.feed(self.at, personal=personal)
            yield from page["rows"]
            self.at, more = page["next"], page["more"]


def _cursor(state: str) -> int:
    """Return the stored cursor, 0 if there is none."""
    try:
        text = Path(state).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise InputError.unreadable("state", state, in_words(error), "unreadable_file") from None
    if not text.isdigit():
        raise InputError("state", text[:40], "a file with the cursor of the last export, a whole number")
    return int(text)


def _write(output: str, kind: str, rows: Iterable[dict[str, Any]], columns: dict[str, str]) -> int:
    """Write rows to a file, which appears when it is complete, and return their number."""
    folder = Path(output).absolute().parent
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{Path(output).name}.")
    except OSError as error:
        raise InputError.unreadable("output", output, in_words(error), "unreadable_file") from None
    try:
        os.close(handle)
        written = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[kind](name, rows, columns)
        os.replace(name, output)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    return written


def _csv(name: str, rows: Iterable[dict[str, Any]], columns: dict[str, str]) -> int:
    number = 0
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        for row in rows:
            writer.writerow({column: harmless(value) for column, value in row.items()})
            number += 1
    return number


def _jsonl(name: str, rows: Iterable[dict[str, Any]], columns: dict[str, str]) -> int:
    number = 0
    with open(name, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            number += 1
    return number


def _parquet(name: str, rows: Iterable[dict[str, Any]], columns: dict[str, str]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    schema = pa.schema([(column, types[kind]) for column, kind in columns.items()])
    number = 0
    with pq.ParquetWriter(name, schema, compression="zstd") as writer:
        waiting = iter(rows)
        while part := list(islice(waiting, AT_A_TIME)):
            writer.write_table(pa.Table.from_pylist(part, schema=schema))
            number += len(part)
    return number


def _replace(path: str, content: bytes) -> None:
    """Replace a file at once."""
    new = f"{path}.new"
    try:
        Path(new).write_bytes(content)
        os.replace(new, path)
    except OSError as error:
        raise InputError.unreadable("state", path, in_words(error), "unreadable_file") from None
