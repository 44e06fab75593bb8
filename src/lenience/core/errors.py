"""What is raised when the input cannot be used: one sentence with the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAMED = 30  # names, where there are many


class InputError(ValueError):
    """A value that the software cannot work with."""


class TooLargeError(InputError):
    """A problem that would take more memory or time than allowed; the message says how much."""


def refusal(field: str, value: object, allowed: str) -> InputError:
    """The error for a field whose value is not one of those allowed."""
    shown = repr(value)
    return InputError(f"{field} must be {allowed}, not {shown if len(shown) <= 80 else shown[:77] + '...'}")


def unknown(field: str, name: object, known: Iterable[str], what: str = "") -> InputError:
    """The error for a name that is none of those known, with the one that may be meant; ``what`` says what they are.

    >>> unknown("policy", "tompson", ["greedy", "thompson"])
    InputError("policy must be one of greedy, thompson, not 'tompson': did you mean 'thompson'?")
    >>> unknown("accepted", "aproved", ["region", "approved"], "the columns")
    InputError("accepted must be one of the columns region, approved, not 'aproved': did you mean 'approved'?")
    """
    from difflib import get_close_matches

    names = list(known)
    some = ", ".join(one if len(one) <= 80 else f"{one[:77]}..." for one in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    near = get_close_matches(str(name).replace("_", "-"), [one.replace("_", "-") for one in names], 1)
    meant = next((one for one in names if one.replace("_", "-") in near), None)
    error = refusal(field, name, f"one of {what}{' ' if what else ''}{some}{more}")
    return error if meant is None else InputError(f"{error}: did you mean {meant!r}?")


def in_words(error: Exception) -> str:
    """What an error says, without the number that the operating system has for it.

    >>> in_words(FileNotFoundError(2, "No such file or directory", "loans.csv"))
    "'loans.csv': no such file or directory"
    """
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    said = error.strerror[:1].lower() + error.strerror[1:]
    return said if error.filename is None else f"{error.filename!r}: {said}"
