"""What the columns of a file probably mean: guessed from their names and values, for a person to put right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from lenience.dashboard.wizard.answers import EVERYONE
from lenience.dashboard.wizard.past_file import Column, follows, without
from lenience.files.vocabulary import ABROAD, FAILURE, MISSING, NO, SUCCESS, YES, yes_or_no

Kind = Literal["accepted", "outcome"]
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
    "birth": ("birth", "dob"),  # dates that are not the decision's
    "group": ("group", "race", "sex", "gender", "ethnic", "nationality", "age_band"),
    "score": ("score", "fico", "rating", "points"),
    "segment": ("segment", "region", "grade", "band", "product", "channel", "branch", "type", "purpose", "class"),
}
# Columns in which 1 is the bad end.
TURNED = ("default", "bad", "charged", "delinq", "fail", "loss", "fraud", "ausfall", "défaut", "impago", "verlust")
DECIDED = frozenset(YES) - frozenset(SUCCESS), frozenset(NO) - frozenset(FAILURE)  # said of a decision alone
AWAITED = ("current", "pending", "open", "active", "in progress", "unknown", *MISSING)
PLAIN = ("1", "1.0", "true", "t", "yes", "y", "0", "0.0", "false", "f", "no", "n", *ABROAD)


def guess_columns(columns: Sequence[Column]) -> dict[str, str]:
    """For each meaning the column that probably has it; empty where none does.

    A group must be among the segments, so it is one only if the segment is.

    >>> names = {"region": (), "approved": (), "repaid": (), "decided": ("2024-01-31",), "score": ("612",)}
    >>> made = [Column(name, tuple(values), 3, name == "score", name == "decided") for name, values in names.items()]
    >>> guess_columns(made)
    {'outcome': 'repaid', 'accepted': 'approved', 'time': 'decided', 'score': 'score', 'segment': 'region', 'group': ''}
    """
    found: dict[str, str] = {}
    tests: dict[str, Callable[[Column], bool]] = {
        "outcome": lambda column: column.different <= 20 and not column.dates and not _of_decisions(column),
        "accepted": lambda column: column.different <= 20 and not column.dates,
        "time": lambda column: column.dates and not _named(column, "birth"),
        "score": lambda column: (column.numbers or column.bands) and column.different > 2,
        "segment": lambda column: 1 <= column.different <= 200 and not column.dates,
    }
    banded = {column.name for column in columns if column.bands}
    for meaning, fits in tests.items():
        taken = set(found.values())
        if meaning == "segment":  # bands of a score divide the applicants too
            taken -= banded
        free = [column for column in columns if column.name not in taken and fits(column)]
        named = [column.name for column in free if _named(column, meaning)]
        if not named and meaning == "accepted":
            named = [column.name for column in free if _of_decisions(column)]
        if not named and meaning == "time":
            named = [column.name for column in free]
        if not named and meaning == "segment":
            # A protected characteristic last: to decide by it is for a person to choose.
            named = [column.name for column in sorted(free, key=lambda one: (_named(one, "group"), one.numbers))]
        found[meaning] = named[0] if named else ""
    of_group = any(column.name == found["segment"] and _named(column, "group") for column in columns)
    return found | {"group": found["segment"] if of_group else ""}


def other_dates(columns: Sequence[Column], time: str) -> list[str]:
    """The columns of dates that may say when an outcome came: not the decision's, nor a birthday."""
    return [one.name for one in columns if one.dates and one.name != time and not _named(one, "birth")]


def guess_accepted(path: Path, columns: Sequence[Column], guessed: dict[str, str]) -> str:
    """The column that says who was accepted; everyone, where all have an outcome; or nothing, for a person to say.

    One that says yes and no and goes by no telling name is it if the outcomes go by it: there for yes, missing for no.
    """
    outcome = guessed["outcome"]
    if guessed["accepted"] or not outcome:
        return guessed["accepted"]
    for column in columns:
        if column.name in guessed.values() or column.different != 2:
            continue
        said = {yes_or_no(value): value for value in column.examples}
        if said.keys() == {True, False} and follows(path, outcome, column.name, said[True], said[False]):
            return column.name
    return "" if without(path, outcome) else EVERYONE


def _of_decisions(column: Column) -> bool:
    """Whether the first values are words that are said of decisions, some that accept and some that reject.

    >>> [_of_decisions(Column("status", words, 2, False, False)) for words in (("approved", "Declined"), ("yes", "no"))]
    [True, False]
    """
    words = {value.strip().lower() for value in column.examples}
    return all(words & some for some in DECIDED)


def _named(column: Column, meaning: str) -> bool:
    return any(word in column.name.lower() for word in WORDS[meaning])


def guess_meaning(kind: Kind, column: str, value: str) -> str:
    """Whether a value probably means yes, no, nothing yet ("none"), or nothing at all ("bad").

    >>> guess_meaning("outcome", "repaid", "1"), guess_meaning("outcome", "defaulted", "1")
    ('yes', 'no')
    >>> guess_meaning("outcome", "status", "Charged Off"), guess_meaning("outcome", "status", "Current")
    ('no', 'none')
    >>> guess_meaning("accepted", "bewilligt", "nein"), guess_meaning("outcome", "Ausfall", "Nein")
    ('no', 'yes')
    >>> guess_meaning("outcome", "status", "??"), guess_meaning("accepted", "decision", "withdrawn")
    ('bad', 'bad')
    """
    word = re.sub(r"[\s_-]+", " ", value.strip().lower())
    turned = kind == "outcome" and any(part in column.lower() for part in TURNED) and word in PLAIN
    said = yes_or_no(word)
    if said is None:
        said = ABROAD.get(word)
    if said is not None:
        return "yes" if said != turned else "no"
    return "none" if kind == "outcome" and word in AWAITED else "bad"
