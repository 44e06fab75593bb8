"""Check arguments: return the value in the right type, or raise an InputError that names the field."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

from lenience.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def number(field: str, value: object, allowed: str, label: str | None = None) -> float:
    """Return ``value`` as a finite float, or raise an :class:`InputError` that names the field.

    >>> number("cost", 1, "strictly between 0 and 1")
    1.0
    >>> number("cost", "much", "strictly between 0 and 1")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: cost must be a number strictly between 0 and 1, not 'much'
    >>> number("arrivals", math.inf, "above 0")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: arrivals must be a finite number above 0, not inf
    """
    result = _float(value)
    if not math.isfinite(result):
        endless = allowed.startswith(("above", "of at least")) and "at most" not in allowed
        finite = "finite " if endless and math.isinf(result) else ""
        raise InputError(field, value, f"a {finite}number {allowed}", label=label)
    return result


def real(
    field: str,
    value: object,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    label: str | None = None,
) -> float:
    """Return ``value`` as a float with ``above < value < below`` and ``least <= value <= most``.

    >>> real("cost", 1.5, above=0, below=1)
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: cost must be a number strictly between 0 and 1, not 1.5
    """
    if type(value) is float and above < value < below and least <= value <= most:
        return value  # the usual case, without describing what is allowed
    allowed = _interval(above, below, least, most)
    result = number(field, value, allowed, label)
    if not (above < result < below and least <= result <= most):
        raise InputError(field, value, f"a number {allowed}", label=label)
    return result


def whole(field: str, value: object, *, least: int = 0, most: int | None = None, label: str | None = None) -> int:
    """Return ``value`` as an int of at least ``least`` (and at most ``most``).

    >>> whole("horizon", 0, least=1)
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: horizon must be a whole number of at least 1, not 0
    """
    allowed = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    result = _float(value)
    if not math.isfinite(result) or result != int(result) or result < least or (most is not None and result > most):
        raise InputError(field, value, allowed, label=label)
    return int(result)


def listed(field: str, value: object, allowed: str) -> list[Any]:
    """Return the items of a list or another collection; a text and a mapping are none.

    >>> listed("hazards", 3, "a list of probabilities")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: hazards must be a list of probabilities, not 3
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(field, value, allowed)
    return list(value)


def mapped(field: str, value: object, allowed: str) -> Mapping[Any, Any]:
    """Return what is a mapping."""
    if not isinstance(value, Mapping):
        raise InputError(field, value, allowed)
    return value


Thing = TypeVar("Thing")


def having(field: str, value: Thing, attribute: str, allowed: str) -> Thing:
    """Return an object that has what its kind must have; a class does not stand for its objects.

    >>> having("policy", 3, "acceptance", "a policy, such as Greedy(cost=0.8)")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: policy must be a policy, such as Greedy(cost=0.8), not 3
    """
    if isinstance(value, type) or not hasattr(value, attribute):
        raise InputError(field, value, allowed)
    return value


def floats(field: str, value: object) -> NDArray[np.float64]:
    """Return numbers as an array, of any shape.

    >>> floats("scores", {"a": 1})
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: scores must be numbers, not {'a': 1}
    """
    import numpy as np

    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(field, value, "numbers") from None


def _float(value: object) -> float:
    """Return a number as a float, or NaN if the value is not a number or too large."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _interval(above: float, below: float, least: float, most: float) -> str:
    """Describe the allowed interval in words."""
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


def check_cost(cost: object) -> float:
    """Return the cost as a float, or raise InputError."""
    return real("cost", cost, above=0, below=1)


def check_discount(discount: object) -> float:
    """Return the discount factor as a float, or raise InputError."""
    return real("discount", discount, least=0, below=1)


def check_tolerance(tolerance: object) -> float:
    """Return the tolerance as a float, or raise InputError."""
    return real("tolerance", tolerance, above=0, most=1)
