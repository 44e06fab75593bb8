"""What the values of an outcome column mean: success, failure, not known yet, or nothing.

A value without a meaning is never a failure: an open loan ("Current", "Late") has not failed. Callers that read whole
columns raise an error that lists such values; :mod:`lenience.history.statuses` gives the same words a meaning inside a
database, and counts the rows without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.files.vocabulary import MISSING, NO, YES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_NAMED = 4  # values without a meaning that a message names
HINT = (
    "Say what each means with --success, --failure or --pending (not known yet); in Python with success=, failure= "
    "or pending=."
)
Words = str | float | Iterable[object] | None  # one word or number, or several


class OutcomeWords(NamedTuple):
    """The words that the caller gives in addition to the usual ones."""

    success: tuple[object, ...] = ()
    failure: tuple[object, ...] = ()
    pending: tuple[object, ...] = ()

    @classmethod
    def of(cls, success: Words = None, failure: Words = None, pending: Words = None) -> OutcomeWords:
        """Return the words; each of the arguments is one word or several.

        >>> OutcomeWords.of("gut", pending=["offen", "läuft"])
        OutcomeWords(success=('gut',), failure=(), pending=('offen', 'läuft'))
        """
        return cls(
            *(() if word is None else (word,) if isinstance(word, str | int | float) else tuple(word)
              for word in (success, failure, pending))
        )  # fmt: skip


def read_outcomes(
    column: str, values: Sequence[Any], words: OutcomeWords | None = None, field: str = "outcome"
) -> NDArray[np.float64]:
    """Return 1 for success, 0 for failure, and NaN where the outcome is missing or not known yet.

    Parameters
    ----------
    column
        The name of the column, for messages.
    values
        Its values: words, numbers or truth values.
    words
        The words that the caller gives.
    field
        The parameter that names the column.

    Raises
    ------
    InputError
        If a value has no meaning, or a given word does not occur.

    Examples
    --------
    >>> read_outcomes("status", ["Fully Paid", "Charged Off", "Current", ""], OutcomeWords.of(pending="current"))
    array([ 1.,  0., nan, nan])
    >>> read_outcomes("status", ["Fully Paid", "Current", "Current"])
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: column 'status' has 1 value without a meaning: 'Current' (2 rows). Say what ...
    """
    import numpy as np

    given = OutcomeWords() if words is None else words
    success, failure, pending = ([_key(word) for word in some] for some in given)
    no, yes = merge_words(
        ("success", "failure"), [_key(word) for word in NO], [_key(word) for word in YES], failure, success, pending
    )
    meaning: dict[object, float] = dict.fromkeys([*MISSING, *pending], np.nan)
    meaning |= dict.fromkeys(no, 0.0) | dict.fromkeys(yes, 1.0)
    key_of = {value: _key(value) for value in dict.fromkeys(values)}  # columns repeat a few values
    keys = [key_of[value] for value in values]
    occurring = set(keys)
    for word, key in zip([word for some in given for word in some], [*success, *failure, *pending], strict=True):
        if key not in occurring:
            raise InputError.because(
                f"{word!r} does not occur in {column}",
                next(name for name, some in zip(OutcomeWords._fields, given, strict=True) if word in some),
                label="",
                value=word,
                hint=suggest_value(key, sorted({str(value).strip() for value in key_of} - {""})),
                code="unknown_name",
            )
    unknown = Counter(str(value).strip() for value, key in zip(values, keys, strict=True) if key not in meaning)
    if unknown:
        named = ", ".join(f"{value!r} ({counted(rows, 'row')})" for value, rows in unknown.most_common(MOST_NAMED))
        others = unknown.total() - sum(rows for _, rows in unknown.most_common(MOST_NAMED))
        more = f", others ({others:,})" if others else ""
        raise InputError.because(
            f"has {counted(len(unknown), 'value')} without a meaning: {named}{more}",
            field,
            label=f"column {column!r}" if column != field else field,
            value=unknown.most_common(1)[0][0],
            allowed="a word for success, for failure, or for an outcome that is not known yet",
            hint=HINT,
        )
    return np.array([meaning[key] for key in keys], dtype=np.float64)


def known_or_pending(y: Any, rows: int, words: OutcomeWords, field: str = "outcomes") -> NDArray[np.float64]:
    """Return outcomes as 1, 0 and NaN (missing or pending), one per row: numbers, truth values or words.

    >>> known_or_pending([1, None, 0], 3, OutcomeWords())
    array([ 1., nan,  0.])
    """
    import numpy as np

    given = np.asarray(y)
    if given.shape != (rows,):
        raise InputError.because(
            f"must be one for each of the {rows} rows, not of shape {given.shape}",
            field,
            value=given.shape,
            code="length_mismatch",
        )
    if given.dtype.kind in "buif" and not any(words):
        outcomes = given.astype(np.float64)
        wrong = ~np.isnan(outcomes) & (outcomes != 0.0) & (outcomes != 1.0)
        if not wrong.any():
            return outcomes
    return read_outcomes(field, given.tolist(), words, field)


def _key(value: object) -> str:
    """Return a value as words are compared: without case and outer white space, and 1.0 as 1.

    >>> [_key(value) for value in (" Repaid", 1.0, "1.50", True, None, float("nan"))]
    ['repaid', '1', '1.5', 'true', '', '']
    """
    if value is None or value != value:
        return ""
    text = str(value).strip().lower()
    if not text[-1:].isdigit() and not text.endswith("."):
        return text
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text


def merge_words(
    names: tuple[str, str],
    no: Sequence[object],
    yes: Sequence[object],
    failure: Sequence[object],
    success: Sequence[object],
    pending: Sequence[object],
) -> tuple[list[object], list[object]]:
    """Return the words that mean no and those that mean yes, including the given ones."""
    for (first, first_words), (second, second_words) in combinations(
        ((names[0], success), (names[1], failure), ("pending", pending)), 2
    ):
        for word in first_words:
            if word in second_words:
                raise InputError.because(
                    f"must have no value in common; {word!r} is in both",
                    (first, second),
                    value=word,
                    code="conflicting_fields",
                )
    reversed_words = [*(word for word in success if word in no), *(word for word in failure if word in yes)]
    if reversed_words:
        if not (success and failure):
            raise InputError.because(
                f"must both be given, because {reversed_words[0]!r} usually means the opposite",
                names,
                value=reversed_words[0],
                code="missing",
            )
        return list(failure), list(success)
    no, yes = ([word for word in known if word not in pending] for known in (no, yes))
    return [*no, *failure], [*yes, *success]


def suggest_value(word: str, values: Sequence[str]) -> str | None:
    """Suggest a value that occurs, for a word that does not.

    Examples
    --------
    >>> suggest_value("ausgefalen", ["Ausgefallen", "laufend"]), suggest_value("x", ["b", "a"])
    ("Did you mean 'Ausgefallen'?", "The values are 'a', 'b'.")
    """
    by_lower = {value.lower(): value for value in sorted(values)}
    similar = get_close_matches(word, by_lower, n=1)
    if similar:
        return f"Did you mean {by_lower[similar[0]]!r}?"
    examples = list(by_lower.values())[: 2 * MOST_NAMED]
    more = ", …" if len(by_lower) > len(examples) else ""
    return f"The values are {', '.join(repr(value) for value in examples)}{more}." if examples else None
