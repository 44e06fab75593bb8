"""Send any number of outcomes from a file or rows to a running service, in batches.

A line that cannot be read, or that the service rejects, is reported and does not stop the others; lines with the same
problem are reported together. If the lines of a decision contradict each other, none of them is sent. To find
contradictions, the source is read once before anything is sent. It is safe to import a file again, even after lines
were added: each outcome counts once, and outcomes that are already recorded are only counted.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.core.request_limits import BATCH_SIZE, DECISION_ID_LENGTH, PLAIN_TEXT
from lenience.files.columns import read_rows
from lenience.files.date_formats import Order, read_dates
from lenience.files.outcome_words import merge_words, suggest_value
from lenience.files.vocabulary import FAILURE, MISSING, SUCCESS

INTERIM = ("late", "current")  # statuses of an accepted one whose outcome is pending
ISO = re.compile(r"\d{4}-\d{2}-\d{2}")  # the start of a date that the service reads
MOST_NAMED = 20  # problems that are named
MOST_COMPARED = 1_000  # words of a file among which to look for a given word
ALLOWED = "success or failure, or a word for one such as repaid, default, 1 or 0"

Batch = list[dict[str, str]]
Send = Callable[[Batch], Mapping[str, Any]]  # send a batch, and return the service's answer


class OutcomesImport(msgspec.Struct, frozen=True):
    """The counts of an import of outcomes, and its problems.

    Parameters
    ----------
    lines
        The number of lines read.
    recorded
        The number of outcomes recorded now.
    repeated
        The number of outcomes that were recorded before.
    pending
        The number of lines without an outcome yet.
    refused
        The number of lines that were not recorded because of a problem.
    problems
        The first problems, each with its place and reason.
    more_problems
        The number of lines with other problems.
    """

    lines: int = 0
    recorded: int = 0
    repeated: int = 0
    pending: int = 0
    refused: int = 0
    problems: tuple[str, ...] = ()
    more_problems: int = 0

    def describe(self) -> str:
        """Describe the import: one line of counts, then one line for each problem.

        Examples
        --------
        >>> print(OutcomesImport(5, 2, 1, 1, 1, ("line 3: outcome must be success or failure, not 'hm'",)).describe())
        5 lines read: 2 outcomes recorded, 1 recorded before, 1 without an outcome yet, 1 rejected.
        line 3: outcome must be success or failure, not 'hm'
        """
        summary = f"{counted(self.lines, 'line')} read: {counted(self.recorded, 'outcome')} recorded"
        for number, kind in ((self.repeated, "recorded before"), (self.pending, "without an outcome yet")):
            summary += f", {number:,} {kind}" if number else ""
        summary += f", {self.refused:,} rejected." if self.refused else "."
        more = [f"and {self.more_problems:,} more"] if self.more_problems else []
        return "\n".join([summary, *self.problems, *more])


class OutcomeLine(NamedTuple):
    """One outcome and its place in the source; ``problem`` says what is wrong with it, if anything is."""

    where: str
    decision: str
    outcome: str
    problem: str = ""
    date: str = ""


class OutcomeColumns(NamedTuple):
    """How to read lines: the columns, and the meaning of each word ("" if the outcome is not known yet)."""

    decision: str
    outcome: str
    meaning: Mapping[str, str]
    references: bool = False  # whether the column of decisions holds references instead of ids
    date: str | None = None  # the column of the outcome's own date
    sheet: str | None = None  # of an Excel file


def import_outcomes(
    source: object,
    send: Send,
    decision: str = "id",
    outcome: str = "outcome",
    progress: Callable[[OutcomesImport], None] | None = None,
    words: tuple[Iterable[str], Iterable[str], Iterable[str]] = ((), (), ()),
    references: bool = False,
    date: str | None = None,
    sheet: str | None = None,
    dates: Order | None = None,
) -> OutcomesImport:
    """Read outcomes from a path or rows, send them in order, and return the counts.

    Parameters
    ----------
    source
        A CSV or Excel file, a mapping of decisions to outcomes, or rows.
    send
        A function that sends a batch and returns the service's answer.
    decision
        The column of the decisions' ids or references.
    outcome
        The column of outcomes.
    progress
        Called with the counts so far after each batch.
    words
        Words that mean success, failure and "not known yet", in addition to the usual ones.
    references
        Whether the column ``decision`` holds references instead of ids.
    date
        The column of the outcome's own date, if there is one.
    sheet
        The sheet of an Excel file; by default the first that is not empty.
    dates
        The order of the parts in dates such as 06/01/2011; by default the column decides.
    """
    if sheet is not None and not isinstance(source, str | Path):
        raise InputError.because("needs an Excel file", "sheet", value=sheet, code="conflicting_fields")
    given = [[str(word).strip().lower() for word in words_of_kind] for words_of_kind in words]
    failures, successes = merge_words(("success", "failure"), FAILURE, SUCCESS, given[1], given[0], given[2])
    meaning = (
        {word: word for word in INTERIM}
        | {str(word): "success" for word in successes}
        | {str(word): "failure" for word in failures}
    )
    pending = dict.fromkeys([*MISSING, *given[2]], "")
    columns = OutcomeColumns(decision, outcome, meaning | pending, references, date, sheet)
    if not isinstance(source, str | Path | Mapping) and isinstance(source, Iterable):
        source = list(source)
    contradictions = _contradictions(source, columns, [word for words_of_kind in given for word in words_of_kind])
    places: dict[str, list[str]] = {}  # each problem with the places of its lines
    done = OutcomesImport()
    days = {} if date is None else _days(source, columns, dates)
    settled = (_settled(line, contradictions) for line, _ in _lines(source, columns))
    lines = (line._replace(date=days.get(line.date, line.date)) for line in settled)
    identifier = "reference" if references else "id"
    while batch := list(islice(lines, BATCH_SIZE)):
        valid = [line for line in batch if not line.problem and line.outcome]
        refused = {line: line.problem for line in batch if line.problem}
        answer = send([_item(identifier, line) for line in valid]) if valid else {}
        refused |= {valid[problem["position"]]: problem["detail"] for problem in answer.get("problems", ())}
        for line in batch:
            if line in refused:
                places.setdefault(refused[line], []).append(line.where)
        named = list(places.items())[:MOST_NAMED]
        total = done.refused + sum(line in refused for line in batch)
        done = OutcomesImport(
            done.lines + len(batch),
            done.recorded + answer.get("recorded", 0),
            done.repeated + answer.get("repeated", 0),
            done.pending + sum(not line.problem and not line.outcome for line in batch),
            total,
            tuple(_together(problem, where) for problem, where in named),
            total - sum(len(where) for _, where in named),
        )
        if progress is not None:
            progress(done)
    return done


def _item(identifier: str, line: OutcomeLine) -> dict[str, str]:
    """Return a line as the service takes it."""
    dated = {"outcome_at": line.date} if line.date and line.outcome not in INTERIM else {}
    return {identifier: line.decision, "outcome": line.outcome, **dated}


def _together(problem: str, where: Sequence[str]) -> str:
    """Return a problem with its lines.

    Examples
    --------
    >>> _together("outcome must be success", ["line 2", "line 7"]), _together("hm", ["line 2"])
    ('2 lines, the first line 2: outcome must be success', 'line 2: hm')
    """
    if len(where) == 1:
        return f"{where[0]}: {problem}"
    return f"{counted(len(where), where[0].partition(' ')[0])}, the first {where[0]}: {problem}"


def _contradictions(source: object, columns: OutcomeColumns, given: Sequence[str]) -> dict[str, str]:
    """Return the decisions whose lines contradict each other, each with its problem.

    Raise InputError if a given word does not occur and another word is not understood, because one of them is probably
    a typing error. A file without failures is no error: a nightly import gives the same words every time.
    """
    first: dict[str, OutcomeLine] = {}
    contradictions: dict[str, str] = {}
    occurring: set[str] = set()
    for line, word in _lines(source, columns):
        if given and len(occurring) < MOST_COMPARED:
            occurring.add(word)
        if line.problem or not line.outcome or line.outcome in INTERIM:
            continue
        before = first.setdefault(line.decision, line)
        if before.outcome != line.outcome and line.decision not in contradictions:
            contradictions[line.decision] = (
                f"{before.where} says {before.outcome} of {_short(line.decision)!r} and {line.where} says "
                f"{line.outcome}: neither was recorded"
            )
    texts = {text.lower() for text in occurring}
    if all(text in columns.meaning for text in texts):
        return contradictions
    for word in given:
        if word not in texts and len(occurring) < MOST_COMPARED:
            raise InputError.because(
                f"{word!r} does not occur in {columns.outcome}",
                "outcome_column",
                label="",
                value=word,
                hint=suggest_value(word, sorted(occurring - {""})),
                code="unknown_name",
            )
    return contradictions


def _days(source: object, columns: OutcomeColumns, order: Order | None) -> dict[str, str]:
    """Return the dates that are not in ISO format, as such. The service reports those that cannot be read."""
    texts = list(dict.fromkeys(line.date for line, _ in _lines(source, columns) if not ISO.match(line.date)))
    try:
        moments = read_dates(str(columns.date), texts, order, "date_column").moments
    except InputError as error:
        if "dates" in error.fields:
            raise
        return {}
    return {
        text: f"{moment:%Y-%m-%d}" if moment.time() == dt.time() else f"{moment:%Y-%m-%dT%H:%M:%S}"
        for text, moment in zip(texts, moments, strict=True)
        if moment is not None
    }


def _settled(line: OutcomeLine, contradictions: Mapping[str, str]) -> OutcomeLine:
    """Return a line with its problem if other lines contradict it."""
    if line.problem or not line.outcome or line.decision not in contradictions:
        return line
    return line._replace(problem=contradictions[line.decision])


def _lines(source: object, columns: OutcomeColumns) -> Iterator[tuple[OutcomeLine, str]]:
    """Yield the lines, each with its outcome as it is written."""
    return _file(source, columns) if isinstance(source, str | Path) else _rows(source, columns)


def _file(path: str | Path, columns: OutcomeColumns) -> Iterator[tuple[OutcomeLine, str]]:
    """Yield the lines of a CSV or Excel file."""
    rows = read_rows(path, sheet=columns.sheet)
    _, heading = next(rows)
    decisions = "reference_column" if columns.references else "id_column"
    named = {decisions: columns.decision, "outcome_column": columns.outcome, "date_column": columns.date}
    for field, name in named.items():
        if name is not None and name not in heading:
            raise InputError.unknown_name(field, name, heading, "the columns")
    decision, outcome = heading.index(columns.decision), heading.index(columns.outcome)
    for number, row in rows:
        where = f"line {number:,}"
        if len(row) != len(heading):
            yield OutcomeLine(where, "", "", f"there must be {counted(len(heading), 'value')}, not {len(row):,}"), ""
        else:
            date = "" if columns.date is None else row[heading.index(columns.date)]
            yield _read(where, row[decision], row[outcome], columns, date)


def _rows(rows: object, columns: OutcomeColumns) -> Iterator[tuple[OutcomeLine, str]]:
    """Yield the entries of a mapping, or rows that are mappings or pairs."""
    decision, outcome = columns.decision, columns.outcome
    allowed = f"a path, a mapping of decisions to outcomes, or rows with {decision} and {outcome}"
    if isinstance(rows, Mapping):
        rows = ({decision: identity, outcome: word} for identity, word in rows.items())
    if not isinstance(rows, Iterable) or isinstance(rows, bytes):
        raise InputError("outcomes", rows, allowed)
    for number, row in enumerate(rows, start=1):
        where = f"row {number:,}"
        pair = row if isinstance(row, tuple | list) and len(row) == 2 else None
        if isinstance(row, Mapping) and decision in row and outcome in row:
            pair = (row[decision], row[outcome])
        if pair is None:
            raise InputError.because(f"must be {allowed}; {where} is {row!r}", "outcomes", value=row, allowed=allowed)
        date = row.get(columns.date, "") if isinstance(row, Mapping) and columns.date is not None else ""
        yield _read(where, pair[0], pair[1], columns, date)


def _read(
    where: str, decision: object, outcome: object, columns: OutcomeColumns, date: object = ""
) -> tuple[OutcomeLine, str]:
    """Return one line, with its problem if it is invalid, and its outcome as it is written."""
    identity, word, day = ("" if value is None else str(value).strip() for value in (decision, outcome, date))
    if not identity or len(identity) > DECISION_ID_LENGTH or not re.match(PLAIN_TEXT, identity):
        kind = "reference" if columns.references else "id"
        allowed = f"the {kind} of a decision, of at most {DECISION_ID_LENGTH} letters without control characters"
        return OutcomeLine(where, "", "", f"{columns.decision} must be {allowed}, not {_short(identity)!r}"), word
    meaning = columns.meaning.get(word.lower())
    if meaning is None:
        return OutcomeLine(where, identity, "", f"{columns.outcome} must be {ALLOWED}, not {_short(word)!r}"), word
    if day.lower() in MISSING:
        day = ""
    return OutcomeLine(where, identity, meaning, date=day), word


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
