"""Explain why a file cannot be read, in one sentence; the engines' own messages are about themselves."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lenience.core.errors import InputError, in_words

NOT_TABLES = {
    b"PK\x03\x04": "an archive, not a workbook (.xlsx)",
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls), or protected by a password",
    b"\x1f\x8b": "compressed",
    b"%PDF": "a PDF",
}
PARQUET = b"PAR1"
COMPRESSED = (".gz", ".zst")  # endings of CSV files that are decompressed while they are read
CHUNK = 1 << 20
UTF8, CP1252 = "utf-8-sig", "cp1252"
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def begins(source: Path) -> bytes:
    """Return the first bytes of a file, which identify its format."""
    with source.open("rb") as file:
        return file.read(4)


@contextmanager
def decompressed(source: Path) -> Iterator[Any]:
    """Open a file for reading bytes, decompressed if its ending says that it is compressed."""
    if source.suffix not in COMPRESSED:
        with source.open("rb") as file:
            yield file
        return
    try:
        with _decompress(source) as file:
            yield file
    except (EOFError, zlib.error, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the file itself could not be opened or read
            raise
        raise InputError.because(
            f"it is not compressed as its ending {source.suffix} says, or it is cut off", code="invalid_file"
        ) from None


def _decompress(source: Path) -> Any:
    """Open a compressed file."""
    if source.suffix == ".gz":
        return gzip.open(source)
    import pyarrow as pa

    return pa.input_stream(str(source), compression="zstd")


def check_text(source: Path, parquet: bool = True) -> str:
    """Return the encoding of a text file (UTF-8 or Windows); raise InputError if it is not text.

    ``parquet`` says whether the caller reads Parquet too; the message then recommends it.
    """
    other = " (or Parquet)" if parquet else ""
    with decompressed(source) as file:
        start = file.read(4)
    for magic, description in NOT_TABLES.items():
        if start.startswith(magic):
            raise InputError.because(
                f"the file is {description}", hint=f"Save it as CSV or .xlsx{other}.", code="invalid_file"
            )
    for encoding in (UTF8, CP1252):
        try:
            _check_letters(source, encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    other = ", or as Parquet" if parquet else ""
    raise InputError.because(
        "the file is not a CSV in UTF-8", hint=f"Save it as “CSV UTF-8”{other}.", code="invalid_file"
    )


def _check_letters(source: Path, encoding: str) -> None:
    """Raise UnicodeDecodeError if the file is not in this encoding, and InputError if it is empty or binary."""
    blank = True
    decoder = codecs.getincrementaldecoder(encoding)()
    with decompressed(source) as file:
        while chunk := file.read(CHUNK):
            text = decoder.decode(chunk)
            # In the Windows code page almost all bytes are letters. Control characters show that a file is not text.
            if encoding == CP1252 and CONTROLS.search(text):
                raise UnicodeDecodeError(encoding, chunk, 0, 1, "a control character")
            if "\x00" in text:
                raise InputError.because("the file is not a CSV: it contains binary data", code="invalid_file")
            blank = blank and not text.strip("\ufeff \t\r\n")
        decoder.decode(b"", final=True)
    if blank:
        raise InputError.because("the file is empty", code="invalid_file")


def describe_engine_error(error: Exception, parquet: bool) -> str:
    """Return a plain sentence for the engine's error about a file."""
    if parquet:
        return "the file starts like Parquet but cannot be read: it may be cut off"
    line = re.search(r"(?:CSV Error on Line|Line): ?(\d+)", str(error))
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", str(error))
    where = f" at line {int(line[1]):,}" if line else ""
    more = columns is not None and int(columns[2]) > int(columns[1])
    detail = f", which has {'more' if more else 'fewer'} values than the heading's {columns[1]}" if columns else ""
    return f"the file cannot be read as CSV{where}{detail}"


def unreadable(path: str, error: Exception) -> InputError:
    """Return the error for a source that the engine could not read.

    For several files, or a remote file, the sentence is the engine's own.
    """
    if isinstance(error, InputError):  # it has a sentence and a code already
        return InputError.unreadable("source", path, error)
    try:
        problem = _problem_of(Path(path), error) if Path(path).is_file() else str(error).partition("\n")[0]
    except OSError as os_error:
        problem = in_words(os_error)
    return InputError.unreadable("source", path, problem)


def _problem_of(file: Path, error: Exception) -> str:
    """Return what is wrong with a file that the engine could not read."""
    parquet = begins(file) == PARQUET
    if not parquet and ".parquet" in str(file):
        return "the file is not Parquet, as its name says"
    try:
        if not parquet:
            check_text(file)
    except InputError as problem:
        return str(problem)
    return describe_engine_error(error, parquet)
