"""Turn a validator's message into an error with the field, the value and what is allowed."""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from lenience.core.errors import InputError
from lenience.service.domain.alerts import KINDS as ALERTS

# Allowed words per field, because the validator names only the invalid word.
ALLOWED = {
    "outcome": "success, failure, late or current",
    "decision": "accept or reject",
    "status": "pending, success, failure, expired or rejected",
    "history_model": "own, shared or curve",
    "type": "discounted, horizon or delayed",
    "per": "month or year",
    "kinds": f"one of {', '.join(ALERTS)}",
}
KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
BOUNDS = {">=": "of at least", ">": "above", "<=": "of at most", "<": "below"}
NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]*"


def explained(field: str, message: str, value: Any = UNSET) -> InputError:
    """Return the error for a validator's message.

    >>> explained("outcome", "Invalid enum value 'Success'")
    InputError("outcome must be success, failure, late or current, not 'Success'")
    >>> explained("cost", "Expected `float`, got `str`", "0.8")
    InputError("cost must be a number, not '0.8'")
    >>> explained("exposure_cap", "Expected `int | null`, got `float`", 1.5)
    InputError('exposure_cap must be a whole number or null, not 1.5')
    >>> explained("cost", "Expected `float` < 1.0", 1.2).allowed
    'a number below 1'
    >>> explained("decisions", "Expected `array` of length <= 1000", [{}] * 1001)
    InputError('decisions must be a list of at most 1,000 entries, not of 1,001')
    >>> explained("data", "'data'").code
    'invalid_json'
    """
    field = "body" if field == "data" else field.removeprefix("data.")
    message = message.split(" - at ")[0]
    if field == "body" and message == "'data'":
        return InputError.because("must be JSON; it is empty", field, code="invalid_json")
    if message == "Number out of range":
        return InputError(field, allowed="a number below 1.8e308 in size")
    given = message.removeprefix("Invalid enum value ").removeprefix("Invalid value ")
    last = re.sub(r"\[\d+\]$", "", field.rsplit(".", 1)[-1])
    if given != message:
        if last not in ALLOWED:
            return InputError.because(f"cannot be {given}", field, value=value)
        return InputError.because(f"must be {ALLOWED[last]}, not {given}", field, value=value, allowed=ALLOWED[last])
    expected = re.fullmatch(r"Expected `([^`]+)`(?:, got `\w+`)?(.*)", message, re.DOTALL)
    if expected is None or not all(kind in KINDS for kind in expected[1].split(" | ")):
        return _of_object(field, message)
    kinds = [KINDS[kind] for kind in expected[1].split(" | ")]
    allowed, size = _limited(kinds, expected[2].strip())
    given = _not(value) if not size or value is UNSET else f", not of {len(value):,}"
    return InputError.because(f"must be {allowed}{given}", field, value=value, allowed=allowed)


def _limited(kinds: list[str], limit: str) -> tuple[str, bool]:
    """Return the allowed kinds with their limits, and whether the limit is a length."""
    allowed = " or ".join(kinds)
    if limit.startswith("matching regex"):
        if NAME_PATTERN in limit:
            form = "that begins with a letter or digit and has only letters, digits, dots, dashes and underscores"
        elif "[0-9a-f-]" in limit:
            return "the id of a decision", False
        elif "[0-9]{4}-" in limit:
            return "a date such as 2026-01-31 or a time such as 2026-01-31T00:00:00Z", False
        else:
            form = "without control characters"
        return f"{allowed} {form}", False
    length = re.fullmatch(r"of length (>=|<=) (\d+)", limit)
    if length is not None:
        number = int(length[2])
        unit = ("letter", "letters") if kinds == ["text"] else ("entry", "entries")
        return f"{allowed} {BOUNDS[length[1]]} {number:,} {unit[number != 1]}", True
    bound = re.fullmatch(r"(>=|<=|>|<) (\S+)", limit)
    if bound is not None:
        return f"{allowed} {BOUNDS[bound[1]]} {float(bound[2]):,.12g}", False
    return f"{allowed}{f' {limit}' if limit else ''}", False


def _of_object(field: str, message: str) -> InputError:
    """Return the error for a missing or unknown field of an object. Other messages are already sentences."""
    inside = "" if field == "body" else f"{field}."
    missing = re.fullmatch(r"Object missing required field `([^`]+)`", message)
    if missing is not None:
        return InputError.because("must be given", f"{inside}{missing[1]}", code="missing")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)
    if unknown is not None:
        return InputError.because("is not a field here", f"{inside}{unknown[1][:80]}", code="unknown_field")
    place = None if field == "body" or message.startswith(f"{field} ") else field
    return InputError.because(message, field, label="", place=place)


def _not(value: Any) -> str:
    if value is UNSET:
        return ""
    shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return f", not {shown if len(shown) <= 80 else shown[:77] + '...'}"
