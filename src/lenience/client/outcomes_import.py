"""Outcomes from a file, or rows, of any number to a running service: read as they come, sent in batches that it takes.

A line that cannot be read, or that the service refuses, is named and does not hinder the others; lines that share a
problem are told together. Lines of one decision that contradict each other are all refused, so the whole is read once
before anything is sent. It is safe to import a file again, whole or longer than before: an outcome counts once, and
those that are recorded already are only counted.
"""

from __future__ import annotations

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
from lenience.files.vocabulary import FAILURE, MISSING, SUCCESS
from lenience.history.statuses import merge_words, suggest_value

MOST_TOLD = 20  # problems of lines that were refused, of those that are named
MOST_COMPARED = 1_000  # words of a file that one given is compared with
ALLOWED = "success or failure, or a word for one such as repaid, default, 1 or 0"

Batch = list[dict[str, str]]
Send = Callable[[Batch], Mapping[str, Any]]  # what the service answers to a batch


class OutcomesImport(msgspec.Struct, frozen=True):
    """What became of the lines: ``recorded`` now, ``repeated`` (recorded before), ``awaited`` (without an outcome yet),
    ``refused``; ``told`` says of the first problems where, what and why, and ``untold`` lines have others."""

    lines: int = 0
    recorded: int = 0
    repeated: int = 0
    awaited: int = 0
    refused: int = 0
    told: tuple[str, ...] = ()
    untold: int = 0

    def describe(self) -> str:
        """In words.

        >>> print(OutcomesImport(5, 2, 1, 1, 1, ("line 3: outcome must be success or failure, not 'hm'",)).describe())
        5 lines read: 2 outcomes recorded, 1 recorded before, 1 without an outcome yet, 1 refused.
        line 3: outcome must be success or failure, not 'hm'
        """
        summary = f"{counted(self.lines, 'line')} read: {counted(self.recorded, 'outcome')} recorded"
        for number, what in ((self.repeated, "recorded before"), (self.awaited, "without an outcome yet")):
            summary += f", {number:,} {what}" if number else ""
        summary += f", {self.refused:,} refused." if self.refused else "."
        return "\n".join([summary, *self.told, *([f"and {self.untold:,} more"] if self.untold else [])])


class OutcomeLine(NamedTuple):
    """One outcome, and where it stands; ``wrong`` says what is wrong with it, if anything is."""

    where: str
    decision: str
    outcome: str
    wrong: str = ""


class OutcomeColumns(NamedTuple):
    """How lines are read: the columns, and what each word means (success, failure, or nothing: not known yet)."""

    decision: str
    outcome: str
    meaning: Mapping[str, str]
    references: bool = False  # and not ids


def import_outcomes(
    source: object,
    send: Send,
    decision: str = "id",
    outcome: str = "outcome",
    progress: Callable[[OutcomesImport], None] | None = None,
    words: tuple[Iterable[str], Iterable[str], Iterable[str]] = ((), (), ()),
    references: bool = False,
) -> OutcomesImport:
    """Read outcomes from a path or rows, send them in order, and say what became of them.

    ``words`` mean success, failure and not known yet, beside those that are known; with ``references`` that is
    what the column ``decision`` holds.
    """
    given = [[str(word).strip().lower() for word in some] for some in words]
    failures, successes = merge_words(("success", "failure"), FAILURE, SUCCESS, given[1], given[0], given[2])
    meaning = {str(word): "success" for word in successes} | {str(word): "failure" for word in failures}
    how = OutcomeColumns(decision, outcome, meaning | dict.fromkeys([*MISSING, *given[2]], ""), references)
    if not isinstance(source, str | Path | Mapping) and isinstance(source, Iterable):
        source = list(source)
    contradicting = _contradictions(source, how, [word for some in given for word in some])
    problems: dict[str, list[str]] = {}  # what is wrong, and with which lines
    done = OutcomesImport()
    lines = (_settled(line, contradicting) for line, _ in _lines(source, how))
    which = "reference" if references else "id"
    while some := list(islice(lines, BATCH_SIZE)):
        awaited = sum(not line.wrong and not line.outcome for line in some)
        good = [line for line in some if not line.wrong and line.outcome]
        refused = {line: line.wrong for line in some if line.wrong}
        answer = send([{which: line.decision, "outcome": line.outcome} for line in good]) if good else {}
        refused |= {good[one["position"]]: one["detail"] for one in answer.get("problems", ())}
        for line in some:
            if line in refused:
                problems.setdefault(refused[line], []).append(line.where)
        named = list(problems.items())[:MOST_TOLD]
        total = done.refused + sum(line in refused for line in some)
        done = OutcomesImport(
            done.lines + len(some),
            done.recorded + answer.get("recorded", 0),
            done.repeated + answer.get("repeated", 0),
            done.awaited + awaited,
            total,
            tuple(_together(wrong, where) for wrong, where in named),
            total - sum(len(where) for _, where in named),
        )
        if progress is not None:
            progress(done)
    return done


def _together(wrong: str, where: Sequence[str]) -> str:
    """A problem and its lines.

    >>> _together("outcome must be success", ["line 2", "line 7"]), _together("hm", ["line 2"])
    ('2 lines, the first line 2: outcome must be success', 'line 2: hm')
    """
    if len(where) == 1:
        return f"{where[0]}: {wrong}"
    return f"{counted(len(where), where[0].partition(' ')[0])}, the first {where[0]}: {wrong}"


def _contradictions(source: object, how: OutcomeColumns, given: Sequence[str]) -> dict[str, str]:
    """The decisions of which the lines say different things, and what is wrong with them; and that words occur."""
    first: dict[str, OutcomeLine] = {}
    contradictions: dict[str, str] = {}
    there: set[str] = set()
    for line, word in _lines(source, how):
        if given and len(there) < MOST_COMPARED:
            there.add(word)
        if line.wrong or not line.outcome:
            continue
        before = first.setdefault(line.decision, line)
        if before.outcome != line.outcome and line.decision not in contradictions:
            contradictions[line.decision] = (
                f"{before.where} says {before.outcome} of {_short(line.decision)!r} and {line.where} says "
                f"{line.outcome}: neither was recorded"
            )
    for word in given:
        if word not in {one.lower() for one in there} and len(there) < MOST_COMPARED:
            raise InputError.because(
                f"{word!r} does not occur in {how.outcome}",
                "outcome_column",
                label="",
                value=word,
                hint=suggest_value(word, sorted(there - {""})),
                code="unknown_name",
            )
    return contradictions


def _settled(line: OutcomeLine, contradicting: Mapping[str, str]) -> OutcomeLine:
    """A line, with what is wrong if others contradict it."""
    if line.wrong or not line.outcome or line.decision not in contradicting:
        return line
    return line._replace(wrong=contradicting[line.decision])


def _lines(source: object, how: OutcomeColumns) -> Iterator[tuple[OutcomeLine, str]]:
    """The lines, each with its word as it is written."""
    return _file(source, how) if isinstance(source, str | Path) else _rows(source, how)


def _file(path: str | Path, how: OutcomeColumns) -> Iterator[tuple[OutcomeLine, str]]:
    rows = read_rows(path)
    _, heading = next(rows)
    for name in (how.decision, how.outcome):
        if name not in heading:
            raise InputError.unknown_name("column", name, heading, "the columns")
    which, what = heading.index(how.decision), heading.index(how.outcome)
    for number, row in rows:
        where = f"line {number:,}"
        if len(row) != len(heading):
            yield OutcomeLine(where, "", "", f"there must be {counted(len(heading), 'value')}, not {len(row):,}"), ""
        else:
            yield _read(where, row[which], row[what], how)


def _rows(rows: object, how: OutcomeColumns) -> Iterator[tuple[OutcomeLine, str]]:
    decision, outcome = how.decision, how.outcome
    allowed = f"a path, a mapping of decisions to outcomes, or rows with {decision} and {outcome}"
    if isinstance(rows, Mapping):
        rows = ({decision: one, outcome: became} for one, became in rows.items())
    if not isinstance(rows, Iterable) or isinstance(rows, bytes):
        raise InputError("outcomes", rows, allowed)
    for number, row in enumerate(rows, start=1):
        where = f"row {number:,}"
        pair = row if isinstance(row, tuple | list) and len(row) == 2 else None
        if isinstance(row, Mapping) and decision in row and outcome in row:
            pair = (row[decision], row[outcome])
        if pair is None:
            raise InputError.because(f"must be {allowed}; {where} is {row!r}", "outcomes", value=row, allowed=allowed)
        yield _read(where, pair[0], pair[1], how)


def _read(where: str, which: object, what: object, how: OutcomeColumns) -> tuple[OutcomeLine, str]:
    identity, word = ("" if value is None else str(value).strip() for value in (which, what))
    if not identity or len(identity) > DECISION_ID_LENGTH or not re.match(PLAIN_TEXT, identity):
        kind = "reference" if how.references else "id"
        allowed = f"the {kind} of a decision, of at most {DECISION_ID_LENGTH} letters without control characters"
        return OutcomeLine(where, "", "", f"{how.decision} must be {allowed}, not {_short(identity)!r}"), word
    meant = how.meaning.get(word.lower())
    if meant is None:
        return OutcomeLine(where, identity, "", f"{how.outcome} must be {ALLOWED}, not {_short(word)!r}"), word
    return OutcomeLine(where, identity, meant), word


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
