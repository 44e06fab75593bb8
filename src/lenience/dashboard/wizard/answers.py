"""What has been answered so far in the form for a new policy: texts, as they travel from step to step."""

from __future__ import annotations

import datetime as dt
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET

from lenience.core.errors import Code, InputError
from lenience.core.validation import real
from lenience.files.vocabulary import how_to_write

LONGEST = 2_000  # characters of one answer
MOST = 60  # answers of one name
EVERYONE = "*everyone*"  # in place of the column that says who was accepted: nobody in the file was rejected
BANDS = "bands:"  # and a column: the field that says how it is cut
COLUMNS = (
    "segment",
    "bands",
    "accepted",
    "accepted_means",
    "outcome",
    "outcome_means",
    "time",
    "group",
    "score",
    "maturity",
    "as_of",
)
OBJECTIVE = (
    *("name", "description", "known", "cost", "gain", "loss", "future", "arrivals", "rate", "discount"),
    *("delay", "usual", "floor", "cap", "expiry"),
)


class FormError(InputError):
    """An answer that cannot be used: at which step, in which field of the form, a sentence and the error's code."""

    def __init__(self, step: str, field: str, sentence: str, code: Code = "invalid_value") -> None:
        self.step = step
        self._set(field, UNSET, None, sentence, None, code, "", None)


class Answers(msgspec.Struct, frozen=True):
    """The answers of all steps; those not given are empty. ``bands`` are pairs of a column and how it is cut;
    ``…_means`` say of each value ``yes:``, ``no:``, ``none:`` (not yet) or ``bad:``."""

    file: str = ""
    segment: tuple[str, ...] = ()
    bands: tuple[tuple[str, str], ...] = ()
    accepted: str = ""
    accepted_means: tuple[str, ...] = ()
    outcome: str = ""
    outcome_means: tuple[str, ...] = ()
    time: str = ""
    group: str = ""
    score: str = ""
    maturity: str = ""
    as_of: str = ""
    model: str = ""
    name: str = ""
    description: str = ""
    known: str = "rate"
    cost: str = ""
    gain: str = ""
    loss: str = ""
    future: str = "yearly"
    arrivals: str = ""
    rate: str = ""
    discount: str = ""
    delay: str = ""
    usual: str = ""  # the delay as the form filled it in
    floor: str = ""
    cap: str = ""
    expiry: str = ""

    def pairs(self, without: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        """Names and values as hidden fields carry them."""
        found = []
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name == "bands" and name not in without:
                found += [(BANDS + column, text) for column, text in self.bands]
            elif name not in without:
                found += [(name, one) for one in (value if isinstance(value, tuple) else (value,)) if one]
        return found

    @property
    def query(self) -> str:
        """The same as the query of an address."""
        return urlencode(self.pairs())

    def meaning(self, kind: str, meaning: str) -> tuple[str, ...]:
        """The values of a column that were said to mean something.

        >>> Answers(outcome_means=("yes:paid", "no:default")).meaning("outcome", "yes")
        ('paid',)
        """
        given: tuple[str, ...] = getattr(self, f"{kind}_means")
        return tuple(one.split(":", 1)[1] for one in given if one.startswith(f"{meaning}:"))


def read_answers(form: Any) -> Answers:
    """The answers in a form or a query; what is too long or too much is refused."""
    given: dict[str, Any] = {}
    for name in Answers.__struct_fields__:
        if name == "bands":  # of the columns that were ticked: what is typed beside others means nothing
            wanted = [(column, str(form.get(BANDS + column, "")).strip()[:LONGEST]) for column in given["segment"]]
            given[name] = tuple((column, text) for column, text in wanted if text)
            continue
        texts = [str(one) for one in form.getall(name, [])]
        if len(texts) > MOST or any(len(text) > LONGEST for text in texts):
            raise InputError(name, allowed=f"at most {MOST} answers of {LONGEST:,} characters", code="too_large")
        # A value's own blanks matter where it is compared with the file's.
        several = name in ("segment", "accepted_means", "outcome_means")
        if several:
            given[name] = tuple(text for text in texts if text)
        elif texts:
            given[name] = texts[-1] if name in ("accepted", "outcome", "time", "group", "score") else texts[-1].strip()
    return Answers(**given)


def number(step: str, field: str, label: str, text: str, **bounds: float) -> float:
    """A number that someone has typed, perhaps with a per cent sign or blanks between thousands.

    >>> number("objective", "cost", "The break-even", "80 %", above=0, below=100)
    80.0
    >>> number("objective", "cost", "The break-even", "much", above=0, below=100)
    Traceback (most recent call last):
        ...
    lenience.dashboard.wizard.answers.FormError: The break-even must be a number strictly between 0 and 100, not 'much'
    """
    plain = "".join(text.split()).removesuffix("%").replace("\N{NARROW NO-BREAK SPACE}", "")
    try:
        value: object = float(plain)
    except ValueError:
        value = text
    try:
        return real(label, value, label=None, **bounds)
    except InputError as error:
        if not text:
            raise FormError(step, field, f"{label} is missing", "missing") from None
        raise FormError(step, field, str(error.with_hint(how_to_write(plain) or None))) from None


def percent(step: str, field: str, label: str, text: str, smallest: float = 1.0, **bounds: float) -> float:
    """A share in per cent, as a fraction. Below ``smallest`` it may have been typed as one: a per cent sign tells.

    >>> percent("objective", "cost", "The break-even", "85", above=0, below=100)
    0.85
    >>> percent("objective", "cost", "The break-even", "0.85", above=0, below=100)
    Traceback (most recent call last):
        ...
    lenience.dashboard.wizard.answers.FormError: The break-even would be 0.85%: type 85 for 85%, or 0.85% if ...
    >>> percent("objective", "cost", "The break-even", "0.85 %", above=0, below=100)
    0.0085
    """
    value = number(step, field, f"{label} in per cent", text, **bounds)
    if 0 < value < smallest and not text.rstrip().endswith("%"):
        more = f"{100 * value:g}"
        said = f"{label} would be {value:g}%: type {more} for {more}%, or {value:g}% if that is meant"
        raise FormError(step, field, said)
    return value / 100


def optional(step: str, field: str, label: str, text: str, **bounds: float) -> float | None:
    """The same, where nothing may be said."""
    return number(step, field, label, text, **bounds) if text else None


def one_of(step: str, field: str, label: str, text: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if text not in allowed:
        raise FormError(step, field, str(InputError.unknown_name(label, text, allowed)))
    return text


def day(step: str, field: str, label: str, text: str) -> str:
    """A date, as 2024-12-31.

    >>> day("columns", "as_of", "The date of the count", "yesterday")
    Traceback (most recent call last):
        ...
    lenience.dashboard.wizard.answers.FormError: The date of the count must be a date such as ..., not 'yesterday'
    """
    try:
        return dt.date.fromisoformat(text).isoformat()
    except ValueError:
        raise FormError(step, field, str(InputError(label, text, "a date such as 2024-12-31"))) from None


def sentence(text: str) -> str:
    """A text as a sentence.

    >>> sentence("cost must be a number")
    'Cost must be a number.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
