"""What is wrong with a file that cannot be read, in a sentence: the engines that read it speak of themselves."""

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

NOT_TABLES = {b"PK\x03\x04": "an Excel workbook or archive", b"\x1f\x8b": "compressed", b"%PDF": "a PDF"}
PARQUET = b"PAR1"
PACKED = (".gz", ".zst")  # endings of CSV files that are decompressed as they are read
CHUNK = 1 << 20
UTF8, CP1252 = "utf-8-sig", "cp1252"
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def begins(source: Path) -> bytes:
    """The first bytes of a file, by which its kind is known."""
    with source.open("rb") as file:
        return file.read(4)


@contextmanager
def decompressed(source: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed if its ending says that it is packed."""
    if source.suffix not in PACKED:
        with source.open("rb") as file:
            yield file
        return
    try:
        with _packed(source) as file:
            yield file
    except (EOFError, zlib.error, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the file itself
            raise
        raise InputError.because(
            f"it is not packed as its ending {source.suffix} says, or it is cut off", code="invalid_file"
        ) from None


def _packed(source: Path) -> Any:
    if source.suffix == ".gz":
        return gzip.open(source)
    import pyarrow as pa

    return pa.input_stream(str(source), compression="zstd")


def check_text(source: Path, parquet: bool = True) -> str:
    """How the letters of a text are written (UTF-8, or as Windows does), or a sentence that says what it is instead.

    ``parquet`` says that such a file would do too.
    """
    other = " (or Parquet)" if parquet else ""
    with decompressed(source) as file:
        start = file.read(4)
    for magic, what in NOT_TABLES.items():
        if start.startswith(magic):
            raise InputError.because(f"the file is {what}", hint=f"Save it as CSV{other}.", code="invalid_file")
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
    blank = True
    decoder = codecs.getincrementaldecoder(encoding)()
    with decompressed(source) as file:
        while chunk := file.read(CHUNK):
            text = decoder.decode(chunk)
            # In Windows' code page almost all bytes are letters: controls give away what is no text.
            if encoding == CP1252 and CONTROLS.search(text):
                raise UnicodeDecodeError(encoding, chunk, 0, 1, "a control character")
            if "\x00" in text:
                raise InputError.because("the file is not a CSV: it holds bytes that no text has", code="invalid_file")
            blank = blank and not text.strip("\ufeff \t\r\n")
        decoder.decode(b"", final=True)
    if blank:
        raise InputError.because("the file is empty", code="invalid_file")


def describe_engine_error(error: Exception, parquet: bool) -> str:
    """What the engine says of a file it cannot read, in a sentence of ours."""
    if parquet:
        return "the file begins as Parquet and cannot be read as such: it may be cut off"
    line = re.search(r"(?:CSV Error on Line|Line): ?(\d+)", str(error))
    amount = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", str(error))
    where = f" at line {int(line[1]):,}" if line else ""
    more = amount is not None and int(amount[2]) > int(amount[1])
    what = f", which has {'more' if more else 'fewer'} values than the heading's {amount[1]}" if amount else ""
    return f"the file cannot be read as CSV{where}{what}"


def unreadable(path: str, error: Exception) -> InputError:
    """The refusal of past decisions that the engine could not read; of several files, or one far away, in its words."""
    try:
        problem = _wrong_with(Path(path), error) if Path(path).is_file() else str(error).partition("\n")[0]
    except OSError as refused:
        problem = in_words(refused)
    return InputError.unreadable("source", path, problem)


def _wrong_with(file: Path, error: Exception) -> InputError | str:
    if isinstance(error, InputError):
        return error
    parquet = begins(file) == PARQUET
    if not parquet and ".parquet" in str(file):
        return "the file is not Parquet, as its name says"
    try:
        if not parquet:
            check_text(file)
    except InputError as problem:
        return str(problem)
    return describe_engine_error(error, parquet)
