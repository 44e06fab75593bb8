"""Errors about input: the field, the value, what is allowed and what to type instead, as data.

Callers compare :attr:`InputError.code` and :attr:`InputError.field`. Nobody parses the sentence: it is composed here,
for people only.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args

from msgspec import UNSET

MOST_NAMED = 30  # the largest number of names that a sentence lists
LONGEST = 80  # the largest number of characters of a value or a name that a sentence shows

Code = Literal[
    "invalid_value",
    "missing",
    "unknown_name",
    "unknown_field",
    "duplicate",
    "length_mismatch",
    "conflicting_fields",
    "decides_by_protected",
    "unsupported_offers",
    "insufficient_data",
    "too_large",
    "tolerance_not_reached",
    "missing_file",
    "unreadable_file",
    "invalid_file",
    "invalid_json",
    "missing_package",
    "database_in_use",
    "database_unusable",
    "schema_mismatch",
    "address_unusable",
]
CODES: tuple[str, ...] = get_args(Code)

Error = TypeVar("Error", bound="InputError")


class InputError(ValueError):
    """Report a value that cannot be used.

    The sentence is "FIELD must be ALLOWED, not VALUE", followed by the hint. Use :meth:`because` where "must be" does
    not fit.

    Parameters
    ----------
    field
        The parameter, column or option at fault, or several of them. ``None`` if it is not known.
    value
        What was given. Leave it out if there is nothing to show.
    allowed
        What is allowed, as a phrase that follows "must be".
    hint
        What to type instead, as a sentence.
    code
        What kind of error it is, one of :data:`CODES`. Codes do not change between versions.
    label
        How the sentence names the field, if not by its own name. An empty label leaves the field out of the sentence.
    place
        Where the field is, such as a file and its line. The sentence begins with it.

    Attributes
    ----------
    fields : tuple of str
        All fields at fault; :attr:`field` is the first one.
    reason : str
        What is wrong, without the place, the field and the hint.

    Examples
    --------
    >>> error = InputError("cost", 1.5, "a number strictly between 0 and 1")
    >>> error
    InputError('cost must be a number strictly between 0 and 1, not 1.5')
    >>> error.field, error.value, error.allowed, error.code
    ('cost', 1.5, 'a number strictly between 0 and 1', 'invalid_value')
    """

    def __init__(
        self,
        field: str | Iterable[str] | None,
        value: object = UNSET,
        allowed: str | None = None,
        *,
        hint: str | None = None,
        code: Code = "invalid_value",
        label: str | None = None,
        place: str | None = None,
    ) -> None:
        given = "" if value is UNSET else f", not {_shown(value)}"
        self._set(field, value, allowed, f"must be {allowed}{given}", hint, code, label, place)

    @classmethod
    def because(
        cls,
        reason: str,
        field: str | Iterable[str] | None = None,
        *,
        value: object = UNSET,
        allowed: str | None = None,
        hint: str | None = None,
        code: Code = "invalid_value",
        label: str | None = None,
        place: str | None = None,
    ) -> InputError:
        """Return an error with its own reason: a sentence, or what follows the field in one.

        Parameters
        ----------
        reason
            What follows the field in the sentence; the whole sentence if there is no field or its label is empty.
        field, value, allowed, hint, code, label, place
            As for the class.

        Returns
        -------
        InputError
            The error, to be raised.

        Examples
        --------
        >>> InputError.because("must have no value in common; both have 'paid'", ("success", "failure"))
        InputError("success and failure must have no value in common; both have 'paid'")
        >>> InputError.because("Give --discount or --horizon", "discount", label="", code="missing").field
        'discount'
        """
        error = InputError.__new__(InputError)
        error._set(field, value, allowed, reason, hint, code, label, place)
        return error

    @classmethod
    def unknown_name(
        cls, field: str, name: object, known: Iterable[str], what: str = "", label: str | None = None
    ) -> InputError:
        """Return the error for an unknown name, with the known one that is most like it.

        Parameters
        ----------
        field
            The field that holds the name.
        name
            The name that was given.
        known
            The names that are allowed.
        what
            What the names are, such as "the columns".
        label
            How the sentence names the field, if not by its own name.

        Returns
        -------
        InputError
            An error with the code ``unknown_name``.

        Examples
        --------
        >>> InputError.unknown_name("policy", "tompson", ["greedy", "thompson"])
        InputError("policy must be one of greedy, thompson, not 'tompson'. Did you mean 'thompson'?")
        >>> InputError.unknown_name("accepted", "aproved", ["region", "approved"], "the columns").hint
        "Did you mean 'approved'?"
        """
        from difflib import get_close_matches

        names = list(known)
        some = ", ".join(_cut(one) for one in names[:MOST_NAMED])
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        near = get_close_matches(str(name).replace("_", "-"), [one.replace("_", "-") for one in names], 1)
        meant = next((one for one in names if one.replace("_", "-") in near), None)
        hint = None if meant is None else f"Did you mean {meant!r}?"
        allowed = f"one of {what}{' ' if what else ''}{some}{more}"
        return cls(field, name, allowed, hint=hint, code="unknown_name", label=label)

    @classmethod
    def unreadable(
        cls, field: str, path: object, reason: Exception | str, code: Code = "unreadable_file"
    ) -> InputError:
        """Return the error for a file that cannot be read.

        Parameters
        ----------
        field
            The parameter that names the file.
        path
            The file.
        reason
            What is wrong: a phrase, or the error that reading raised.
        code
            ``invalid_file`` if the file can be read, but not what it holds.

        Returns
        -------
        InputError
            The error, to be raised.

        Examples
        --------
        >>> InputError.unreadable("source", "loans.csv", PermissionError(13, "Permission denied"))
        InputError("source 'loans.csv' cannot be read: permission denied")
        """
        hint = None
        if isinstance(reason, InputError):
            text, hint, code = reason.sentence, reason.hint, reason.code
        else:
            text = reason if isinstance(reason, str) else in_words(reason)
        reason = f"{str(path)!r} cannot be read: {text}"
        return cls.because(reason, field, value=str(path), hint=hint, code=code)

    @classmethod
    def missing_package(cls, purpose: str, package: str, extra: str) -> InputError:
        """Return the error for an optional package that is not installed.

        Parameters
        ----------
        purpose
            What needs it, in the plural, as the subject of the sentence.
        package
            The package.
        extra
            The extra of lenience that installs it.

        Returns
        -------
        InputError
            An error with the code ``missing_package``.

        Examples
        --------
        >>> InputError.missing_package("figures", "matplotlib", "plot")
        InputError("figures need matplotlib. Install it: pip install 'lenience[plot]'")
        """
        hint = f"Install it: pip install 'lenience[{extra}]'"
        return cls.because(f"{purpose} need {package}", value=package, hint=hint, code="missing_package")

    @property
    def field(self) -> str | None:
        """The field at fault, the first one if there are several."""
        return self.fields[0] if self.fields else None

    @property
    def sentence(self) -> str:
        """What is wrong, with its place and its field and without the hint."""
        subject = " and ".join(self.fields) if self.label is None else self.label
        text = f"{subject} {self.reason}" if subject else self.reason
        return text if self.place is None else f"{self.place}: {text}"

    def with_fields(self, names: Mapping[str, str]) -> InputError:
        """Return the same error with other names for its fields, such as the options of a command.

        Parameters
        ----------
        names
            The new name of each field that has one.

        Returns
        -------
        InputError
            A copy of the same class.

        Examples
        --------
        >>> InputError("discount_rate", 0, "a number above 0").with_fields({"discount_rate": "--discount-rate"})
        InputError('--discount-rate must be a number above 0, not 0')
        """
        return self._copy(fields=tuple(names.get(field, field) for field in self.fields))

    def with_hint(self, hint: str | None) -> InputError:
        """Return the same error with another hint.

        Parameters
        ----------
        hint
            What to type instead, as a sentence. ``None`` for no hint.

        Returns
        -------
        InputError
            A copy of the same class.

        Examples
        --------
        >>> error = InputError("cost", 1.2, "between 0 and 1")
        >>> print(error.with_hint("For 80%, write 0.8."))
        cost must be between 0 and 1, not 1.2. For 80%, write 0.8.
        """
        return self._copy(hint=hint)

    def at(self, place: str) -> InputError:
        """Return the same error with the place where its field is, in front of a place that it has already.

        Parameters
        ----------
        place
            The place, such as a file and its line.

        Returns
        -------
        InputError
            A copy of the same class.

        Examples
        --------
        >>> InputError("cost", 2, "a number below 1").at("sweep.toml, line 3")
        InputError('sweep.toml, line 3: cost must be a number below 1, not 2')
        """
        return self._copy(place=place if self.place is None else f"{place}: {self.place}")

    def _set(
        self,
        field: str | Iterable[str] | None,
        value: object,
        allowed: str | None,
        reason: str,
        hint: str | None,
        code: Code,
        label: str | None,
        place: str | None,
    ) -> None:
        self.fields: tuple[str, ...] = () if field is None else (field,) if isinstance(field, str) else tuple(field)
        self.value = value
        self.allowed = allowed
        self.reason = reason
        self.hint = hint
        self.code: Code = code
        self.label = label
        self.place = place
        self._compose()

    def _compose(self) -> None:
        text = self.sentence
        self.args = (text if self.hint is None else f"{text}. {self.hint}",)

    def _copy(self: Error, **changes: Any) -> Error:
        other = copy.copy(self)
        vars(other).update(changes)
        other._compose()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error, because errors cross processes. A value that cannot be pickled is replaced by its text."""
        state = dict(vars(self))
        try:
            pickle.dumps(self.value)
        except Exception:  # The caller's object may raise anything.
            state["value"] = repr(self.value)
        return _restore, (type(self), state)


class TooLargeError(InputError):
    """Report a problem that would take more time or memory than allowed.

    Parameters
    ----------
    work
        What would take so much, as the subject of the sentence.
    seconds, allowed_seconds
        The estimated time and the most that is allowed.
    size, allowed_size, unit
        The amount of work and the most that is allowed, in units such as "states".
    detail
        More about the size, in parentheses.
    allowed
        What is allowed, where the numbers do not say all of it.
    field, value
        The parameter that makes it large, and what was given.
    hint
        What to ask for instead, as a sentence.
    reason
        What is wrong, as a sentence of its own where there is no estimate.

    Examples
    --------
    >>> error = TooLargeError("Solving this", seconds=720, allowed_seconds=60, hint="Use a larger tolerance.")
    >>> error
    TooLargeError('Solving this would take about 12 minutes, more than the 60 s allowed. Use a larger tolerance.')
    >>> error.seconds, error.allowed_seconds, error.code
    (720, 60, 'too_large')
    >>> TooLargeError("A table", size=2e12, allowed_size=10_000, unit="rows")
    TooLargeError('A table would take 2e+12 rows, more than the 10,000 allowed')
    """

    def __init__(
        self,
        work: str,
        *,
        seconds: float | None = None,
        allowed_seconds: float | None = None,
        size: float | None = None,
        allowed_size: float | None = None,
        unit: str = "",
        detail: str | None = None,
        allowed: str | None = None,
        field: str | Iterable[str] | None = None,
        value: object = UNSET,
        hint: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.seconds, self.allowed_seconds = seconds, allowed_seconds
        self.size, self.allowed_size, self.unit = size, allowed_size, unit
        amount = "" if size is None or (detail is not None and seconds is not None) else f"{_amount(size)} {unit}"
        if seconds is not None:
            amount = f"about {_duration(seconds)}{f' ({amount})' if amount else ''}"
        if allowed is None and allowed_seconds is not None:
            allowed = _duration(allowed_seconds)
        elif allowed is None and allowed_size is not None:
            allowed = f"{_amount(allowed_size)}{f' {unit}' if seconds is not None else ''}"
        more = "" if detail is None else f" ({detail})"
        reason = reason or f"{work} would take {amount}{more}, more than the {allowed} allowed"
        self._set(field, value, allowed, reason, hint, "too_large", "", None)


def _restore(kind: type[Error], state: Mapping[str, Any]) -> Error:
    error = kind.__new__(kind)
    vars(error).update(state)
    error._compose()
    return error


def _shown(value: object) -> str:
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _amount(number: float) -> str:
    return f"{number:,.10g}" if number < 1e9 else f"{number:.2g}"


def _duration(seconds: float) -> str:
    """Write a time in words.

    >>> [_duration(seconds) for seconds in (0.25, 90, 600, 36_000, 1e9)]
    ['0.25 s', '90 s', '10 minutes', '10 hours', '280,000 hours']
    """
    if seconds <= 300:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:,.0f} s"
    size, unit = (seconds / 60, "minutes") if seconds <= 7200 else (seconds / 3600, "hours")
    if size >= 1e9:
        return f"{size:.1g} {unit}"
    return f"{float(f'{size:.2g}'):,.10g} {unit}"


def in_words(error: Exception) -> str:
    """Return an error's message, without the number that the operating system has for it.

    >>> in_words(FileNotFoundError(2, "No such file or directory", "loans.csv"))
    "'loans.csv': no such file or directory"
    """
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    text = error.strerror[:1].lower() + error.strerror[1:]
    return text if error.filename is None else f"{error.filename!r}: {text}"
