"""Guess what the columns of a file mean from their names and values, for a person to correct."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from lenience.dashboard.wizard.answers import EVERYONE
from lenience.dashboard.wizard.past_file import Column, follows, without
from lenience.files.value_guesses import guess_meaning
from lenience.files.vocabulary import FAILURE, NO, SUCCESS, YES, yes_or_no

WORDS: dict[str, tuple[str, ...]] = {
    "accepted": ("accept", "approv", "grant", "decision", "decided_as", "hired", "admitted", "bail", "released"),
    "outcome": (
        "outcome",
        "repaid",
        "default",
        "success",
        "label",
        "target",
        "paid",
        "status",
        "result",
        "good",
        "bad",
    ),
    "time": ("date", "time", "decided", "day", "month", "when", "_at", "_on"),
    "outcome_time": ("closed", "outcome", "settled", "repaid", "paid_off", "defaulted", "charged_off", "known"),
    "birth": ("birth", "dob"),  # dates of birth are not dates of decisions
    "group": ("group", "race", "sex", "gender", "ethnic", "nationality", "age_band"),
    "score": ("score", "fico", "rating", "points"),
    "segment": ("segment", "region", "grade", "band", "product", "channel", "branch", "type", "purpose", "class"),
}
LOAN = {"amount": ("amount", "amnt", "principal", "loan size"), "rate": ("rate", "interest", "apr"), "term": ("term",)}
FILLED = 0.5  # share of rows that must have a value in a column that is suggested as a segment
DECIDED = (
    frozenset(YES) - frozenset(SUCCESS),
    frozenset(NO) - frozenset(FAILURE),
)  # words for decisions, not for outcomes


def guess_columns(columns: Sequence[Column]) -> dict[str, str]:
    """Return the most likely column for each meaning, empty if there is none.

    A group must be among the segments, so the guess is the segment column if that looks like a group.

    >>> names = {"region": (), "approved": (), "repaid": (), "decided": ("2024-01-31",), "score": ("612",)}
    >>> made = [Column(name, tuple(values), 3, name == "score", name == "decided") for name, values in names.items()]
    >>> guess_columns(made)
    {'outcome': 'repaid', 'accepted': 'approved', 'time': 'decided', 'score': 'score', 'segment': 'region', 'group': ''}
    """
    guessed: dict[str, str] = {}
    tests: dict[str, Callable[[Column], bool]] = {
        "outcome": lambda column: column.different <= 20 and not column.dates and not _of_decisions(column),
        "accepted": lambda column: column.different <= 20 and not column.dates,
        "time": lambda column: column.dates and not _named(column, "birth"),
        "score": lambda column: (column.numbers or column.bands) and column.different > 2,
        "segment": lambda column: 1 <= column.different <= 200 and column.filled >= FILLED and not column.dates,
    }
    banded = {column.name for column in columns if column.bands}
    for meaning, fits in tests.items():
        taken = set(guessed.values())
        if meaning == "segment":  # a column of score bands can be a segment too
            taken -= banded
        free = [column for column in columns if column.name not in taken and fits(column)]
        named = [column.name for column in free if _named(column, meaning)]
        if meaning == "outcome":  # a name such as verification_status says less than values such as Charged Off
            named.sort(key=lambda name: not any(_has_both(column) for column in free if column.name == name))
        if not named and meaning == "accepted":
            named = [column.name for column in free if _of_decisions(column)]
        if not named and meaning == "time":
            named = [column.name for column in free]
        if not named and meaning == "segment":
            # Protected characteristics come last: a person must choose to use one.
            named = [
                column.name for column in sorted(free, key=lambda column: (_named(column, "group"), column.numbers))
            ]
        guessed[meaning] = named[0] if named else ""
    of_group = any(column.name == guessed["segment"] and _named(column, "group") for column in columns)
    return guessed | {"group": guessed["segment"] if of_group else ""}


def _has_both(column: Column) -> bool:
    """Return whether some values mean success and some failure, as far as they are known.

    >>> words = {"verification_status": ("Verified", "Not Verified"), "loan_status": ("Fully Paid", "Charged Off")}
    >>> [_has_both(Column(name, (), 2, False, False, values=values)) for name, values in words.items()]
    [False, True]
    """
    meanings = {guess_meaning("outcome", column.name, value) for value in column.values or column.examples}
    return {"yes", "no"} <= meanings


def guess_loan(columns: Sequence[Column]) -> dict[str, str]:
    """Return the columns of amount, rate and term if the file has all of them and they are clear; empty otherwise.

    >>> made = {"loan_amnt": ("5000", "900"), "int_rate": ("13.5%", "7.1%"), "term": ("36 months",)}
    >>> guess_loan([Column(name, values, 2, False, False) for name, values in made.items()])
    {'amount_column': 'loan_amnt', 'rate_column': 'int_rate', 'term_column': 'term'}
    >>> guess_loan([Column("amount", ("5000",), 9, True, False), Column("rate", ("12",), 9, True, False)])
    {}
    """
    clear: dict[str, Callable[[str], bool]] = {
        "amount": lambda value: any(digit.isdigit() for digit in value),
        "rate": lambda value: value.endswith("%") or re.fullmatch(r"0?\.\d+", value) is not None,
        "term": lambda value: re.search(r"\d\s*(month|year|mo\b|yr)", value.lower()) is not None,
    }
    guessed = {}
    for meaning, fits in clear.items():
        named = (
            column.name
            for column in columns
            if any(word in column.name.lower() for word in LOAN[meaning])
            and column.examples
            and all(fits(value.strip()) for value in column.examples)
        )
        if (name := next(named, None)) is None:
            return {}
        guessed[f"{meaning}_column"] = name
    return guessed if len(set(guessed.values())) == 3 else {}


def other_dates(columns: Sequence[Column], time: str) -> list[str]:
    """Return the columns of dates that may hold the date of the outcome: not of the decision, not of birth."""
    return [column.name for column in columns if column.dates and column.name != time and not _named(column, "birth")]


def guess_outcome_time(columns: Sequence[Column], time: str) -> str:
    """Return the column of dates whose name says that it holds the date of the outcome, or an empty text.

    >>> made = [Column(name, (), 3, False, True) for name in ("decided", "due", "date_closed")]
    >>> guess_outcome_time(made, "decided"), guess_outcome_time(made[:2], "decided")
    ('date_closed', '')
    """
    if not time:
        return ""
    dates = other_dates(columns, time)
    return next((column.name for column in columns if column.name in dates and _named(column, "outcome_time")), "")


def guess_accepted(path: Path, columns: Sequence[Column], guessed: dict[str, str]) -> str:
    """Return the column that shows who was accepted, everyone if all rows have an outcome, or nothing if it is unclear.

    A yes/no column without a telling name is chosen if outcomes are present for yes and missing for no.
    """
    outcome = guessed["outcome"]
    if guessed["accepted"] or not outcome:
        return guessed["accepted"]
    for column in columns:
        if column.name in guessed.values() or column.different != 2:
            continue
        by_meaning = {yes_or_no(value): value for value in column.examples}
        both = by_meaning.keys() == {True, False}
        if both and follows(path, outcome, column.name, by_meaning[True], by_meaning[False]):
            return column.name
    return "" if without(path, outcome) else EVERYONE


def _of_decisions(column: Column) -> bool:
    """Return whether the first values are words for decisions, some accepting and some rejecting.

    >>> [_of_decisions(Column("status", words, 2, False, False)) for words in (("approved", "Declined"), ("yes", "no"))]
    [True, False]
    """
    words = {value.strip().lower() for value in column.examples}
    return all(words & some for some in DECIDED)


def _named(column: Column, meaning: str) -> bool:
    return any(word in column.name.lower() for word in WORDS[meaning])
