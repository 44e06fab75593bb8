"""The meaning of values in the columns of decisions and outcomes.

A value means yes, no, missing (for an outcome: not known yet) or nothing. The caller can give words in addition to the
usual ones. If a given word usually means the opposite, only given words count. A given word that does not occur in the
column is probably a typing error, so it raises an error that suggests a similar value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lenience.core.errors import InputError
from lenience.files.outcome_words import MOST_NAMED, merge_words, suggest_value
from lenience.files.vocabulary import MISSING, NO, YES

if TYPE_CHECKING:
    import ibis.expr.types as ir

FALSE, TRUE, UNKNOWN, BAD = 0, 1, 2, 3  # the meanings of a value
MOST_COMPARED = 1_000  # values of a column among which to look for a similar word


class GivenWords(NamedTuple):
    """The words that the caller gives in addition to the usual ones, for outcomes and for decisions."""

    success: Sequence[object] = ()
    failure: Sequence[object] = ()
    pending: Sequence[object] = ()
    accepted: Sequence[object] = ()
    rejected: Sequence[object] = ()
    only: bool = False  # no other value has a meaning, and texts are compared as they are written


class ColumnCode(NamedTuple):
    """A column as small integer codes, and a function from codes to meanings."""

    value: Any
    meaning: Callable[[Any], Any]


def outcome_codes(backend: Any, column: Any, words: GivenWords) -> ColumnCode:
    """Return the codes of the outcome column: true is success, missing is pending."""
    return _code(backend, column, ("success", "failure"), words.success, words.failure, words.pending, only=words.only)


def decision_codes(backend: Any, column: Any, words: GivenWords) -> ColumnCode:
    """Return the codes of the column that says who was accepted."""
    return _code(
        backend, column, ("accepted_values", "rejected_values"), words.accepted, words.rejected, only=words.only
    )


def check_words(backend: Any, table: ir.Table, accepted: str, outcome: str, words: GivenWords) -> None:
    """Raise InputError if a given word does not occur in its column."""
    if words.only:  # the caller took the words from the values that occur
        return
    for name, given in (
        (outcome, (*words.success, *words.failure, *words.pending)),
        (accepted, (*words.accepted, *words.rejected)),
    ):
        if not given:
            continue
        column = table[name]
        value = column.strip().lower() if column.type().is_string() else column
        expected = as_column_values(column, given)
        occurring = _different(backend, table.select(value=value).filter(value.isin(expected)), len(expected))
        for word, expected_value in zip(given, expected, strict=True):
            if expected_value not in occurring:
                values = _different(backend, table.select(value=trimmed(column)), MOST_COMPARED)
                raise InputError.because(
                    f"{word!r} does not occur in {name}",
                    name,
                    label="",
                    value=word,
                    hint=suggest_value(str(expected_value), [str(v) for v in values]),
                    code="unknown_name",
                )


def strange_values(
    backend: Any, table: ir.Table, segments: Sequence[str], accepted: str, outcome: str, words: GivenWords
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the most frequent outcomes and the most frequent decisions that have no meaning.

    Outcomes are taken only from rows that are otherwise usable.
    """
    import ibis

    decision = decision_codes(backend, table[accepted], words)
    label = outcome_codes(backend, table[outcome], words)
    rows = table.select(
        outcome_text=trimmed(table[outcome]),
        decision_text=trimmed(table[accepted]),
        outcome_meaning=label.meaning(label.value),
        decision_meaning=decision.meaning(decision.value),
        has_segment=ibis.and_(*[trimmed(table[name]).notnull() for name in segments]),
    )
    bad_outcomes = rows.filter(rows.has_segment & (rows.decision_meaning < UNKNOWN) & (rows.outcome_meaning == BAD))
    bad_decisions = rows.filter(rows.has_segment & (rows.decision_meaning == BAD))
    return (
        _most_frequent(backend, bad_outcomes, "outcome_text"),
        _most_frequent(backend, bad_decisions, "decision_text"),
    )


def trimmed(column: Any) -> Any:
    """Return a column without the white space around its texts; a blank text becomes missing."""
    return column.strip().nullif("") if column.type().is_string() else column


def _code(
    backend: Any,
    column: Any,
    names: tuple[str, str],
    success: Sequence[object],
    failure: Sequence[object],
    pending: Sequence[object] = (),
    only: bool = False,
) -> ColumnCode:
    """Code each value of a yes/no column as its position in a list of known values; an unknown value is null."""
    import ibis

    kind = column.type()
    value, missing_words = column, list[object]()
    no: list[object]
    yes: list[object]
    if kind.is_boolean():
        if not (success or failure or pending):
            return ColumnCode(column, lambda flag: ibis.cases((flag.isnull(), UNKNOWN), (flag, TRUE), else_=FALSE))
        no, yes = [False], [True]
    elif kind.is_numeric():
        no, yes = [0], [1]
    elif kind.is_string():
        value, no, yes, missing_words = column.strip().lower(), list(NO), list(YES), list(MISSING)
    else:
        raise InputError(f"column {column.get_name()}", str(kind), "one of truth values, numbers or words")
    if only and kind.is_string():
        value, no, yes, missing_words = trimmed(column), list(failure), list(success), []
        pending_words = list(pending)
    else:
        pending_words = as_column_values(column, pending)
        no, yes = merge_words(
            names, no, yes, as_column_values(column, failure), as_column_values(column, success), pending_words
        )
    missing_words += pending_words
    if kind.is_floating():
        missing_words.append(math.nan)
    known = [*no, *yes, *missing_words]

    def meaning(position: Any) -> Any:
        return ibis.cases(
            (position.isnull(), BAD),
            (position <= len(no), FALSE),
            (position <= len(no) + len(yes), TRUE),
            else_=UNKNOWN,
        )

    if backend.name == "duckdb":
        listed = ibis.literal([*known, None], type=f"array<{kind.copy(nullable=True)}>")
        return ColumnCode(_list_position(kind)(listed, value), meaning)
    missing = value.isnull()
    if kind.is_floating():
        missing = missing | value.isnan()
        missing_words = pending_words
    if missing_words:
        missing = missing | value.isin(missing_words)
    position = ibis.cases(
        (missing, len(known) + 1), (value.isin(no), 1), (value.isin(yes), len(no) + 1), else_=ibis.null("int32")
    )
    return ColumnCode(position, meaning)


def _list_position(kind: Any) -> Any:
    """Return DuckDB's function for the position of a value in a list, counted from 1."""
    import ibis
    import ibis.expr.datatypes as types

    def list_position(listed, value): ...  # type: ignore[no-untyped-def]

    return ibis.udf.scalar.builtin(list_position, signature=((types.Array(kind), kind), types.int32))


def as_column_values(column: Any, values: Sequence[object]) -> list[object]:
    """Convert given values to the column's type; on the command line numbers and truth values are text."""
    kind, words = column.type(), [str(value).strip().lower() for value in values]
    field, label = column.get_name(), f"values of {column.get_name()}"
    if kind.is_boolean():
        if not {*words} <= {*YES, *NO}:
            raise InputError(field, list(values), "true or false, as the column's are", label=label)
        return [word in YES for word in words]
    if not kind.is_numeric():
        return list(words)
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise InputError(field, list(values), "numbers, as the column's are", label=label) from error
    return [int(number) if number.is_integer() else number for number in numbers]


def _most_frequent(backend: Any, table: Any, column: str) -> list[tuple[str, int]]:
    """Return the most frequent values of a column, each with the number of its rows."""
    import ibis

    frequent = table.group_by(value=table[column]).agg(rows=table.count())
    frequent = frequent.order_by(ibis.desc("rows"), "value").limit(MOST_NAMED)
    return [(str(row["value"]), int(row["rows"])) for row in backend.to_pyarrow(frequent).to_pylist()]


def _different(backend: Any, column: Any, most: int) -> list[Any]:
    """Return at most ``most`` different values of the column ``value``, without the missing one."""
    values = backend.to_pyarrow(column.distinct().limit(most)).column("value").to_pylist()
    return [value for value in values if value is not None]
