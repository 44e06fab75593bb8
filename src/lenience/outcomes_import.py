"""Outcomes from a file, or rows, of any number to a running service: read as they come, sent in batches that it takes.

A line that cannot be read, or that the service refuses, is named and does not hinder the others. It is safe to import a
file again, whole or longer than before: an outcome counts once, and those that are recorded already are only counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lenience.columns import rows_of
from lenience.errors import InputError
from lenience.policy.words import counted
from lenience.service import limits
from lenience.vocabulary import FAILURE, NOTHING, SUCCESS

MOST_TOLD = 20  # lines that were refused, of those that are named
ALLOWED = "success or failure, or a word for one such as repaid, default, 1 or 0"

Batch = list[dict[str, str]]
Send = Callable[[Batch], Mapping[str, Any]]  # what the service answers to a batch


class OutcomesImport(msgspec.Struct, frozen=True):
    """What became of the lines: ``recorded`` now, ``repeated`` (recorded before), ``awaited`` (without an outcome yet),
    ``refused``; ``told`` says of the first of these where, what and why."""

    lines: int = 0
    recorded: int = 0
    repeated: int = 0
    awaited: int = 0
    refused: int = 0
    told: tuple[str, ...] = ()

    def describe(self) -> str:
        """In words.

        >>> print(OutcomesImport(5, 2, 1, 1, 1, ("line 3: outcome must be success or failure, not 'hm'",)).describe())
        5 lines read: 2 outcomes recorded, 1 recorded before, 1 without an outcome yet, 1 refused.
        line 3: outcome must be success or failure, not 'hm'
        """
        said = f"{counted(self.lines, 'line')} read: {counted(self.recorded, 'outcome')} recorded"
        for number, what in ((self.repeated, "recorded before"), (self.awaited, "without an outcome yet")):
            said += f", {number:,} {what}" if number else ""
        said += f", {self.refused:,} refused." if self.refused else "."
        more = self.refused - len(self.told)
        return "\n".join([said, *self.told, *([f"and {more:,} more"] if more else [])])


class Line(NamedTuple):
    """One outcome, and where it stands; ``wrong`` says what is wrong with it, if anything is."""

    where: str
    decision: str
    outcome: str
    wrong: str = ""


def import_outcomes(
    source: object,
    send: Send,
    decision: str = "id",
    outcome: str = "outcome",
    progress: Callable[[OutcomesImport], None] | None = None,
) -> OutcomesImport:
    """Read outcomes from a path or rows, send them in order, and say what became of them."""
    done = OutcomesImport()
    lines = _file(source, decision, outcome) if isinstance(source, str | Path) else _rows(source, decision, outcome)
    while some := list(islice(lines, limits.BATCH)):
        awaited = sum(not line.wrong and not line.outcome for line in some)
        good = [line for line in some if not line.wrong and line.outcome]
        refused = {line: line.wrong for line in some if line.wrong}
        answer = send([{"id": line.decision, "outcome": line.outcome} for line in good]) if good else {}
        refused |= {good[one["position"]]: one["detail"] for one in answer.get("problems", ())}
        told = [f"{line.where}: {refused[line]}" for line in some if line in refused]
        done = OutcomesImport(
            done.lines + len(some),
            done.recorded + answer.get("recorded", 0),
            done.repeated + answer.get("repeated", 0),
            done.awaited + awaited,
            done.refused + len(told),
            (*done.told, *told)[:MOST_TOLD],
        )
        if progress is not None:
            progress(done)
    return done


def _file(path: str | Path, decision: str, outcome: str) -> Iterator[Line]:
    rows = rows_of(path)
    _, heading = next(rows)
    for name in (decision, outcome):
        if name not in heading:
            raise InputError(f"column {name!r} must be one of {', '.join(heading)}")
    which, what = heading.index(decision), heading.index(outcome)
    for number, row in rows:
        where = f"line {number:,}"
        if len(row) != len(heading):
            yield Line(where, "", "", f"there must be {counted(len(heading), 'value')}, not {len(row):,}")
        else:
            yield _read(where, decision, row[which], outcome, row[what])


def _rows(rows: object, decision: str, outcome: str) -> Iterator[Line]:
    allowed = f"a path, a mapping of decisions to outcomes, or rows with {decision} and {outcome}"
    if isinstance(rows, Mapping):
        rows = ({decision: one, outcome: became} for one, became in rows.items())
    if not isinstance(rows, Iterable) or isinstance(rows, bytes):
        raise InputError(f"outcomes must be {allowed}, not {rows!r}")
    for number, row in enumerate(rows, start=1):
        where = f"row {number:,}"
        pair = row if isinstance(row, tuple | list) and len(row) == 2 else None
        if isinstance(row, Mapping) and decision in row and outcome in row:
            pair = (row[decision], row[outcome])
        if pair is None:
            raise InputError(f"outcomes must be {allowed}, and {where} is {row!r}")
        yield _read(where, decision, pair[0], outcome, pair[1])


def _read(where: str, decision: str, which: object, outcome: str, what: object) -> Line:
    identity, word = ("" if value is None else str(value).strip() for value in (which, what))
    if not identity or len(identity) > limits.DECISION or not re.match(limits.PLAIN, identity):
        allowed = f"the id of a decision, of at most {limits.DECISION} letters without control characters"
        return Line(where, "", "", f"{decision} must be {allowed}, not {_short(identity)!r}")
    if word.lower() in NOTHING:
        return Line(where, identity, "")
    for meaning, words in (("success", SUCCESS), ("failure", FAILURE)):
        if word.lower() in words:
            return Line(where, identity, meaning)
    return Line(where, identity, "", f"{outcome} must be {ALLOWED}, not {_short(word)!r}")


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
