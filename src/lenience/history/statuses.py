"""What the values of a column mean that says who was accepted, or what became of them.

A value is yes, no, missing (of an outcome: not known yet) or none of these. Beside the words that are known anyway
others can be given; where one is given that usually means the opposite, only those given count. A word that is given
and does not occur is mistyped more often than not, and is refused with the one that may have been meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from lenience.core.errors import InputError
from lenience.files.vocabulary import MISSING, NO, YES

if TYPE_CHECKING:
    import ibis.expr.types as ir

FALSE, TRUE, UNKNOWN, BAD = 0, 1, 2, 3  # what a value may mean
MOST_NAMED = 4  # values that mean nothing, of those there are
MOST_COMPARED = 1_000  # values of a column that a word is compared with


class GivenWords(NamedTuple):
    """The values given beside those known: of outcomes, and of decisions."""

    success: Sequence[object] = ()
    failure: Sequence[object] = ()
    pending: Sequence[object] = ()
    accepted: Sequence[object] = ()
    rejected: Sequence[object] = ()
    only: bool = False  # no other value has a meaning, and texts are compared as they are written


class ColumnCode(NamedTuple):
    """A column as small codes, and what they mean."""

    value: Any
    meaning: Callable[[Any], Any]


def outcome_codes(backend: Any, column: Any, words: GivenWords) -> ColumnCode:
    """The column of outcomes: true is success, missing is pending."""
    return _code(backend, column, ("success", "failure"), words.success, words.failure, words.pending, only=words.only)


def decision_codes(backend: Any, column: Any, words: GivenWords) -> ColumnCode:
    """The column that says who was accepted."""
    return _code(
        backend, column, ("accepted_values", "rejected_values"), words.accepted, words.rejected, only=words.only
    )


def check_words(backend: Any, table: ir.Table, accepted: str, outcome: str, words: GivenWords) -> None:
    """Refuse a word that was given and does not occur in its column."""
    if words.only:  # the caller has shown the values that occur
        return
    for name, given in (
        (outcome, (*words.success, *words.failure, *words.pending)),
        (accepted, (*words.accepted, *words.rejected)),
    ):
        if not given:
            continue
        column = table[name]
        value = column.strip().lower() if column.type().is_string() else column
        meant = as_column_values(column, given)
        there = _different(backend, table.select(value=value).filter(value.isin(meant)), len(meant))
        for word, one in zip(given, meant, strict=True):
            if one not in there:
                values = _different(backend, table.select(value=trimmed(column)), MOST_COMPARED)
                raise InputError.because(
                    f"{word!r} does not occur in {name}",
                    name,
                    label="",
                    value=word,
                    hint=suggest_value(str(one), [str(v) for v in values]),
                    code="unknown_name",
                )


def strange_values(
    backend: Any, table: ir.Table, segments: Sequence[str], accepted: str, outcome: str, words: GivenWords
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The values that are no outcome, of rows that are otherwise sound, and those that are no decision; of each the
    most frequent first."""
    import ibis

    taken, label = decision_codes(backend, table[accepted], words), outcome_codes(backend, table[outcome], words)
    judged = table.select(
        became_text=trimmed(table[outcome]),
        decided=trimmed(table[accepted]),
        became=label.meaning(label.value),
        taken=taken.meaning(taken.value),
        whole=ibis.and_(*[trimmed(table[name]).notnull() for name in segments]),
    )
    sound = judged.filter(judged.whole & (judged.taken < UNKNOWN) & (judged.became == BAD))
    return (
        _most_frequent(backend, sound, "became_text"),
        _most_frequent(backend, judged.filter(judged.whole & (judged.taken == BAD)), "decided"),
    )


def trimmed(column: Any) -> Any:
    """A column without the white space around its texts; a text of nothing else is missing."""
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
    """A column that says yes or no as the position of its value in a list of known ones; none where it is unknown."""
    import ibis

    kind = column.type()
    value, nothing = column, list[object]()
    no: list[object]
    yes: list[object]
    if kind.is_boolean():
        if not (success or failure or pending):
            return ColumnCode(column, lambda flag: ibis.cases((flag.isnull(), UNKNOWN), (flag, TRUE), else_=FALSE))
        no, yes = [False], [True]
    elif kind.is_numeric():
        no, yes = [0], [1]
    elif kind.is_string():
        value, no, yes, nothing = column.strip().lower(), list(NO), list(YES), list(MISSING)
    else:
        raise InputError(f"column {column.get_name()}", str(kind), "one of truth values, numbers or words")
    if only and kind.is_string():
        value, no, yes, nothing = trimmed(column), list(failure), list(success), []
        later = list(pending)
    else:
        later = as_column_values(column, pending)
        no, yes = merge_words(
            names, no, yes, as_column_values(column, failure), as_column_values(column, success), later
        )
    nothing += later
    if kind.is_floating():
        nothing.append(math.nan)
    known = [*no, *yes, *nothing]

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
        nothing = later
    if nothing:
        missing = missing | value.isin(nothing)
    position = ibis.cases(
        (missing, len(known) + 1), (value.isin(no), 1), (value.isin(yes), len(no) + 1), else_=ibis.null("int32")
    )
    return ColumnCode(position, meaning)


def _list_position(kind: Any) -> Any:
    """DuckDB's own function: where a value stands in a list, from 1 on."""
    import ibis
    import ibis.expr.datatypes as types

    def list_position(listed, value): ...  # type: ignore[no-untyped-def]

    return ibis.udf.scalar.builtin(list_position, signature=((types.Array(kind), kind), types.int32))


def merge_words(
    names: tuple[str, str],
    no: Sequence[object],
    yes: Sequence[object],
    failure: Sequence[object],
    success: Sequence[object],
    pending: Sequence[object],
) -> tuple[list[object], list[object]]:
    """The values that mean no and yes, with those given."""
    for (first, ones), (second, others) in combinations(
        ((names[0], success), (names[1], failure), ("pending", pending)), 2
    ):
        for one in ones:
            if one in others:
                raise InputError.because(
                    f"must have no value in common; {one!r} is in both",
                    (first, second),
                    value=one,
                    code="conflicting_fields",
                )
    turned = [*(one for one in success if one in no), *(one for one in failure if one in yes)]
    if turned:
        if not (success and failure):
            raise InputError.because(
                f"must both be given, because {turned[0]!r} has its opposite meaning here",
                names,
                value=turned[0],
                code="missing",
            )
        return list(failure), list(success)
    no, yes = ([one for one in known if one not in pending] for known in (no, yes))
    return [*no, *failure], [*yes, *success]


def as_column_values(column: Any, values: Sequence[object]) -> list[object]:
    """Given values as the column has them: on the command line numbers and truth values are text."""
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
    import ibis

    frequent = table.group_by(value=table[column]).agg(rows=table.count())
    frequent = frequent.order_by(ibis.desc("rows"), "value").limit(MOST_NAMED)
    return [(str(row["value"]), int(row["rows"])) for row in backend.to_pyarrow(frequent).to_pylist()]


def _different(backend: Any, column: Any, most: int) -> list[Any]:
    values = backend.to_pyarrow(column.distinct().limit(most)).column("value").to_pylist()
    return [value for value in values if value is not None]


def suggest_value(word: str, values: Sequence[str]) -> str | None:
    """What may have been meant by a word that does not occur.

    >>> suggest_value("ausgefalen", ["Ausgefallen", "laufend"]), suggest_value("x", ["b", "a"])
    ("Did you mean 'Ausgefallen'?", "There are 'a', 'b'.")
    """
    by_lower = {value.lower(): value for value in sorted(values)}
    near = get_close_matches(word, by_lower, n=1)
    if near:
        return f"Did you mean {by_lower[near[0]]!r}?"
    some = list(by_lower.values())[: 2 * MOST_NAMED]
    more = ", …" if len(by_lower) > len(some) else ""
    return f"There are {', '.join(repr(value) for value in some)}{more}." if some else None
