"""What is raised when the input cannot be used: one sentence with the field, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MOST_NAMED = 30  # names, where there are many


class InputError(ValueError):
    """A value that the software cannot work with."""


class TooLargeError(InputError):
    """A problem that would take more memory or time than allowed; the message says how much."""


def number(field: str, value: object, allowed: str) -> float:
    """Return ``value`` as a finite float, or raise an :class:`InputError` that names the field.

    >>> number("cost", 1, "strictly between 0 and 1")
    1.0
    >>> number("cost", "much", "strictly between 0 and 1")
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: cost must be a number strictly between 0 and 1, not 'much'
    >>> number("arrivals", math.inf, "above 0")
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: arrivals must be a finite number above 0, not inf
    """
    result = _float(value)
    if not math.isfinite(result):
        endless = allowed.startswith(("above", "of at least")) and "at most" not in allowed
        finite = "finite " if endless and math.isinf(result) else ""
        raise refusal(field, value, f"a {finite}number {allowed}")
    return result


def real(
    field: str,
    value: object,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> float:
    """Return ``value`` as a float with ``above < value < below`` and ``least <= value <= most``.

    >>> real("cost", 1.5, above=0, below=1)
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: cost must be a number strictly between 0 and 1, not 1.5
    """
    allowed = _interval(above, below, least, most)
    result = number(field, value, allowed)
    if not (above < result < below and least <= result <= most):
        raise refusal(field, value, f"a number {allowed}")
    return result


def whole(field: str, value: object, *, least: int = 0, most: int | None = None) -> int:
    """Return ``value`` as an int of at least ``least`` (and at most ``most``).

    >>> whole("horizon", 0, least=1)
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: horizon must be a whole number of at least 1, not 0
    """
    allowed = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    result = _float(value)
    if not math.isfinite(result) or result != int(result) or result < least or (most is not None and result > most):
        raise refusal(field, value, allowed)
    return int(result)


def listed(field: str, value: object, allowed: str) -> list[Any]:
    """Return the items of a list or another collection; a text and a mapping are none.

    >>> listed("hazards", 3, "a list of probabilities")
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: hazards must be a list of probabilities, not 3
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise refusal(field, value, allowed)
    return list(value)


def mapped(field: str, value: object, allowed: str) -> Mapping[Any, Any]:
    """Return what is a mapping."""
    if not isinstance(value, Mapping):
        raise refusal(field, value, allowed)
    return value


Thing = TypeVar("Thing")


def having(field: str, value: Thing, attribute: str, allowed: str) -> Thing:
    """Return an object that has what its kind must have; a class does not stand for its objects.

    >>> having("policy", 3, "acceptance", "a policy, such as Greedy(cost=0.8)")
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: policy must be a policy, such as Greedy(cost=0.8), not 3
    """
    if isinstance(value, type) or not hasattr(value, attribute):
        raise refusal(field, value, allowed)
    return value


def floats(field: str, value: object) -> NDArray[np.float64]:
    """Return numbers as an array, of any shape.

    >>> floats("scores", {"a": 1})
    Traceback (most recent call last):
        ...
    lenience.errors.InputError: scores must be numbers, not {'a': 1}
    """
    import numpy as np

    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise refusal(field, value, "numbers") from None


def _float(value: object) -> float:
    """A number as a float, and NaN for what is none (or too large to be one)."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


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


def _interval(above: float, below: float, least: float, most: float) -> str:
    if above > -math.inf and below < math.inf:
        return f"strictly between {above:g} and {below:g}"
    if least > -math.inf and most < math.inf:
        return f"from {least:g} to {most:g}, both included"
    if least > -math.inf and below < math.inf:
        return f"from {least:g} to below {below:g}"
    if above > -math.inf and most < math.inf:
        return f"above {above:g} and at most {most:g}"
    if above > -math.inf:
        return f"above {above:g}"
    if least > -math.inf:
        return f"of at least {least:g}"
    return "that is finite"
