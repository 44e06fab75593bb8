"""The answers in the form for a new policy: texts that each step passes to the next."""

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
EVERYONE = "*everyone*"  # in place of the column of decisions: everyone in the file was accepted
BANDS = "bands:"  # prefix of the form fields that hold the bands of a column
# Prefixes of the form fields about one column of a policy with features, by the name of the answers.
OF_COLUMNS = {"uses": "use:", "least": "least:", "most": "most:", "units": "unit:"}
MOST_COLUMNS = 500  # of a file, about which the form of features asks
ECONOMICS = ("gain_column", "loss_column", "amount_column", "rate_column", "term_column")
COLUMNS = (
    "segment",
    "bands",
    "accepted",
    "accepted_means",
    "outcome",
    "outcome_means",
    "time",
    "dates",
    "group",
    "score",
    "maturity",
    "outcome_time",
    "maturing",
    "decide_by_protected",
    "as_of",
    "half_life",
    "price_bands",
    "monitor",
    "priced",
    *ECONOMICS,
    *("loss_given_default", "funding_rate", "rate_unit", "term_unit", "currency"),
    *("kind", *OF_COLUMNS, "scale", "trust"),
)
OBJECTIVE = (
    *(
        "name",
        "description",
        "known",
        "cost",
        "gain",
        "loss",
        "money_currency",
        "future",
        "arrivals",
        "rate",
        "discount",
    ),
    *("delay", "usual", "floor", "cap", "expiry", "segment_costs"),
)
EVIDENCE = ("model", "prior_rate", "prior_worth", "doubt")


class FormError(InputError):
    """An invalid answer: the step and field of the form, a sentence and the error code."""

    def __init__(self, step: str, field: str, sentence: str, code: Code = "invalid_value") -> None:
        self.step = step
        self._set(field, UNSET, None, sentence, None, code, "", None)


class Answers(msgspec.Struct, frozen=True):
    """The answers of all steps, empty if not given.

    ``bands`` are pairs of a column and its bands. ``…_means`` map each value, with a prefix: ``yes:``, ``no:``,
    ``none:`` (not known yet) or ``bad:``.
    """

    file: str = ""
    segment: tuple[str, ...] = ()
    bands: tuple[tuple[str, str], ...] = ()
    accepted: str = ""
    accepted_means: tuple[str, ...] = ()
    outcome: str = ""
    outcome_means: tuple[str, ...] = ()
    time: str = ""
    dates: str = ""  # the order of day, month and year in dates such as 06/01/2011; empty if the column decides
    group: str = ""
    score: str = ""
    maturity: str = ""
    outcome_time: str = ""  # the column of the date when an outcome became known
    maturing: str = ""  # "yes" if pending outcomes count according to their age
    decide_by_protected: str = ""  # "yes" if decisions may differ by a protected attribute
    as_of: str = ""
    half_life: str = ""  # days after which an outcome counts half
    price_bands: str = ""  # by how many bands of break-evens segments are divided further
    monitor: tuple[str, ...] = ()  # columns that fairness is measured by and decisions do not look at
    priced: str = ""  # what the file has of each applicant: nothing, gain_loss or loan
    gain_column: str = ""
    loss_column: str = ""
    amount_column: str = ""
    rate_column: str = ""
    term_column: str = ""
    loss_given_default: str = ""
    funding_rate: str = ""
    rate_unit: str = ""
    term_unit: str = ""
    currency: str = ""
    kind: str = ""  # logistic or calibrated if applicants are decided by features, empty for segments
    uses: tuple[tuple[str, str], ...] = ()  # how columns are used: as number, category or monitor
    least: tuple[tuple[str, str], ...] = ()  # the range and the unit of columns of numbers
    most: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, str], ...] = ()
    scale: str = ""  # what the score is: failure, success, points or points_lower
    trust: str = ""  # how many outcomes the score is worth
    model: str = ""
    prior_rate: str = ""  # the expected success rate before any outcome, in percent
    prior_worth: str = ""  # and how many outcomes it is worth
    doubt: str = ""  # the probability that the prior is wrong, in percent
    name: str = ""
    description: str = ""
    known: str = "rate"
    cost: str = ""
    gain: str = ""
    loss: str = ""
    money_currency: str = ""
    future: str = "yearly"
    arrivals: str = ""
    rate: str = ""
    discount: str = ""
    delay: str = ""
    usual: str = ""  # the delay that the form suggested
    floor: str = ""
    cap: str = ""
    expiry: str = ""
    segment_costs: str = ""  # lines of a segment and its break-even in percent

    def pairs(self, without: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        """Return names and values for the hidden fields of a form."""
        pairs = []
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if (name == "bands" or name in OF_COLUMNS) and name not in without:
                prefix = OF_COLUMNS.get(name, BANDS)
                pairs += [(prefix + column, text) for column, text in value]
            elif name not in without:
                pairs += [(name, text) for text in (value if isinstance(value, tuple) else (value,)) if text]
        return pairs

    @property
    def query(self) -> str:
        """The answers as the query of an address."""
        return urlencode(self.pairs())

    def meaning(self, kind: str, meaning: str) -> tuple[str, ...]:
        """Return the values of a column that have a given meaning.

        >>> Answers(outcome_means=("yes:paid", "no:default")).meaning("outcome", "yes")
        ('paid',)
        """
        given: tuple[str, ...] = getattr(self, f"{kind}_means")
        return tuple(text.split(":", 1)[1] for text in given if text.startswith(f"{meaning}:"))


def read_answers(form: Any) -> Answers:
    """Read the answers from a form or a query. Raise InputError if they are too long or too many."""
    given: dict[str, Any] = {}
    for name in Answers.__struct_fields__:
        if name == "bands":  # only of selected columns: bands typed for other columns do not count
            wanted = [(column, str(form.get(BANDS + column, "")).strip()[:LONGEST]) for column in given["segment"]]
            given[name] = tuple((column, text) for column, text in wanted if text)
            continue
        if name in OF_COLUMNS:
            given[name] = _of_columns(form, OF_COLUMNS[name])
            continue
        texts = [str(value) for value in form.getall(name, [])]
        if len(texts) > MOST or any(len(text) > LONGEST for text in texts):
            raise InputError(name, allowed=f"at most {MOST} answers of {LONGEST:,} characters", code="too_large")
        # Keep white space in values that are compared with those of the file.
        several = name in ("segment", "accepted_means", "outcome_means", "monitor")
        if several:
            given[name] = tuple(text for text in texts if text)
        elif texts:
            columns = ("accepted", "outcome", "time", "outcome_time", "group", "score", *ECONOMICS)
            given[name] = texts[-1] if name in columns else texts[-1].strip()
    return Answers(**given)


def _of_columns(form: Any, prefix: str) -> tuple[tuple[str, str], ...]:
    """Read the answers about single columns, with the names of the columns after a prefix."""
    names = [name for name in dict.fromkeys(form.keys()) if name.startswith(prefix)]
    if len(names) > MOST_COLUMNS:
        raise InputError(prefix, allowed=f"at most {MOST_COLUMNS} columns", code="too_large")
    pairs = [(name.removeprefix(prefix), str(form.get(name, "")).strip()[:LONGEST]) for name in names]
    return tuple((column, text) for column, text in pairs if text)


def number(step: str, field: str, label: str, text: str, **bounds: float) -> float:
    """Read a number as typed, possibly with a percent sign or spaces between thousands.

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
    """Read a percentage as a fraction. Below ``smallest`` the text must have a percent sign, to rule out a fraction.

    >>> percent("objective", "cost", "The break-even", "85", above=0, below=100)
    0.85
    >>> percent("objective", "cost", "The break-even", "0.85", above=0, below=100)
    Traceback (most recent call last):
        ...
    lenience.dashboard.wizard.answers.FormError: The break-even would be 0.85%. Type 85 for 85%, or 0.85% for ...
    >>> percent("objective", "cost", "The break-even", "0.85 %", above=0, below=100)
    0.0085
    """
    value = number(step, field, f"{label} in percent", text, **bounds)
    if 0 < value < smallest and not text.rstrip().endswith("%"):
        more = f"{100 * value:g}"
        message = f"{label} would be {value:g}%. Type {more} for {more}%, or {value:g}% for {value:g}%"
        raise FormError(step, field, message)
    return value / 100


def optional(step: str, field: str, label: str, text: str, **bounds: float) -> float | None:
    """Read a number as typed, or None if the text is empty."""
    return number(step, field, label, text, **bounds) if text else None


def one_of(step: str, field: str, label: str, text: str, allowed: tuple[str, ...]) -> str:
    """Read one of a few allowed words."""
    if text not in allowed:
        raise FormError(step, field, str(InputError.unknown_name(label, text, allowed)))
    return text


def day(step: str, field: str, label: str, text: str) -> str:
    """Read a date such as 2024-12-31.

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
    """Format a text as a sentence.

    >>> sentence("cost must be a number")
    'Cost must be a number.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
