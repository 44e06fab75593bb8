"""Where data comes from: the file, its digest, the rows that were used, and how its values were read.

The same record describes the past decisions that a policy was fitted to (:class:`PolicyOrigin`) and a portfolio that
was imported into the service. It must not hold personal data, because the service stores it for good.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from glob import glob
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lenience.__about__ import __version__
from lenience.core.request_limits import PLAIN_TEXT

MOST_NAMED = 100  # columns, settings or reasons
LONGEST = 200  # characters of a text
IN_MEMORY = "(table in memory)"  # the file's name if rows did not come from a file
SOFTWARE = f"lenience {__version__}"

Text = Annotated[str, Meta(max_length=LONGEST, pattern=PLAIN_TEXT)]
Named = Annotated[dict[Text, Text], Meta(max_length=MOST_NAMED)]
FileName = Annotated[str, Meta(min_length=1, max_length=255, pattern=PLAIN_TEXT)]
Day = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", description="A date, such as 2024-12-31")]
Rows = Annotated[int, Meta(ge=0, le=10**12)]


class DataOrigin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where rows come from.

    Parameters
    ----------
    file : str
        The name of the file, without its folder, or that of a table.
    digest : str
        The SHA-256 digest of the file; empty if the rows did not come from a file.
    rows : int
        The number of rows that were used.
    left_out : int
        The number of rows that were not used.
    why_left_out : dict of str to int
        The number of rows that were not used, by reason.
    columns : dict of str to str
        The file's column for each field.
    settings : dict of str to str
        How values were read, e.g. which words mean success.
    first, last : str or None
        The dates of the first and the last decision.
    model : str
        The model that was fitted to the rows.
    software : str
        The software that read the rows, with its version.
    """

    file: FileName
    digest: Annotated[
        str, Meta(pattern=r"^([0-9a-f]{64})?\Z", description="The SHA-256 digest of the file; empty without a file")
    ]
    rows: Annotated[Rows, Meta(description="The number of rows that were used")]
    left_out: Annotated[Rows, Meta(description="The number of rows that were not used")] = 0
    why_left_out: Annotated[dict[Text, Rows], Meta(max_length=MOST_NAMED)] = {}
    columns: Annotated[Named, Meta(description="The file's column for each field")] = {}
    settings: Annotated[Named, Meta(description="How values were read, e.g. which words mean success")] = {}
    first: Day | None = None
    last: Day | None = None
    model: Annotated[Text, Meta(description="The model that was fitted to the rows")] = ""
    software: Text = ""


class PolicyOrigin(DataOrigin, frozen=True, forbid_unknown_fields=True):
    """The past decisions that a policy was fitted to, with what they contain and what they were worth.

    Parameters
    ----------
    accepted, labels, successes, pending : int
        How many of the rows were accepted, how many of these have a known outcome, how many of the outcomes are
        successes, and how many outcomes are pending.
    economics : dict of str to str
        The columns or values from which gain and loss were computed, the formula and the currency.
    """

    accepted: Rows = 0
    labels: Annotated[Rows, Meta(description="The number of known outcomes")] = 0
    successes: Rows = 0
    pending: Rows = 0
    economics: Annotated[Named, Meta(description="How gain and loss were computed")] = {}


def short(text: object) -> str:
    """Return a text without control characters, cut to the length that a record may have.

    >>> short("two\\nlines"), len(short("a" * 300))
    ('two lines', 200)
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def named_texts(texts: Mapping[str, Any]) -> dict[str, str]:
    """Return texts by name as a record takes them, without empty ones.

    >>> named_texts({"success": "Fully Paid", "sheet": None})
    {'success': 'Fully Paid'}
    """
    given = [(short(name), short(text)) for name, text in texts.items() if text not in (None, "", False)]
    return dict(given[:MOST_NAMED])


def file_identity(source: object, connection: object = None) -> tuple[str, str]:
    """Return the name of a source, and the SHA-256 digest of its file.

    Several files, as of a folder or a pattern, have the digest of the list of their names and digests. A table in a
    database, a frame and an address on the web have no digest.

    >>> file_identity({"region": ["north"]})
    ('(table in memory)', '')
    """
    if not isinstance(source, str | os.PathLike):
        return IN_MEMORY, ""
    text = os.fspath(source)
    name = short(text.rstrip("/\\").replace("\\", "/").rpartition("/")[2]) or IN_MEMORY
    if connection is not None:
        return short(text), ""
    path = Path(text)
    if path.is_file():
        return name, digest_of_file(path)
    pattern = str(path / "**/*.parquet") if path.is_dir() else text
    files = [Path(each) for each in sorted(glob(pattern, recursive=True)) if os.path.isfile(each)]
    if "://" in text or not files:
        return name, ""
    listed = "\n".join(f"{digest_of_file(each)}  {each.name}" for each in files)
    return name, sha256(listed.encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
