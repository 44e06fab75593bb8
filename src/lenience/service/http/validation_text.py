"""A validator's message as a sentence with the field, the value and what is allowed."""

from __future__ import annotations

import re
from typing import Any

# What may stand where a word is one of a few: the validator names only the word that is wrong.
ALLOWED = {
    "outcome": "success or failure",
    "decision": "accept or reject",
    "status": "pending, success, failure, expired or rejected",
    "history_model": "own, shared or curve",
    "type": "discounted, horizon or delayed",
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
ABSENT: Any = object()  # no value is known


def in_words(field: str, message: str, value: Any = ABSENT) -> str:
    """A validator's message as a sentence.

    >>> in_words("outcome", "Invalid enum value 'Success'")
    "outcome must be success or failure, not 'Success'"
    >>> in_words("cost", "Expected `float`, got `str`", "0.8")
    "cost must be a number, not '0.8'"
    >>> in_words("exposure_cap", "Expected `int | null`, got `float`", 1.5)
    'exposure_cap must be a whole number or null, not 1.5'
    >>> in_words("cost", "Expected `float` < 1.0", 1.2)
    'cost must be a number below 1, not 1.2'
    >>> in_words("decisions", "Expected `array` of length <= 1000", [{}] * 1001)
    'decisions must be a list of at most 1,000 entries, not of 1,001'
    >>> in_words("data", "'data'")
    'body must be JSON, and it is empty'
    """
    field = "body" if field == "data" else field.removeprefix("data.")
    message = message.split(" - at ")[0]
    if field == "body" and message == "'data'":
        return "body must be JSON, and it is empty"
    if message == "Number out of range":
        return f"{field} must be a number below 1.8e308 in size"
    given = message.removeprefix("Invalid enum value ").removeprefix("Invalid value ")
    last = field.rsplit(".", 1)[-1]
    if given != message:
        return f"{field} must be {ALLOWED[last]}, not {given}" if last in ALLOWED else f"{field} cannot be {given}"
    expected = re.fullmatch(r"Expected `([^`]+)`(?:, got `\w+`)?(.*)", message, re.DOTALL)
    if expected is None or not all(kind in KINDS for kind in expected[1].split(" | ")):
        return _objects(field, message)
    kinds = [KINDS[kind] for kind in expected[1].split(" | ")]
    return f"{field} must be {_limited(kinds, expected[2].strip(), value)}"


def _limited(kinds: list[str], limit: str, value: Any) -> str:
    """The kinds allowed, with what limits them, and the value that is something else."""
    allowed = " or ".join(kinds)
    if limit.startswith("matching regex"):
        if NAME_PATTERN in limit:
            form = "that begins with a letter or digit and has only letters, digits, dots, dashes and underscores"
        elif "[0-9a-f-]" in limit:
            return f"the id of a decision{_not(value)}"
        else:
            form = "without control characters"
        return f"{allowed} {form}{_not(value)}"
    length = re.fullmatch(r"of length (>=|<=) (\d+)", limit)
    if length is not None:
        number = int(length[2])
        unit = ("letter", "letters") if kinds == ["text"] else ("entry", "entries")
        text = f"{allowed} {BOUNDS[length[1]]} {number:,} {unit[number != 1]}"
        return text if value is ABSENT else f"{text}, not of {len(value):,}"
    bound = re.fullmatch(r"(>=|<=|>|<) (\S+)", limit)
    if bound is not None:
        return f"{allowed} {BOUNDS[bound[1]]} {float(bound[2]):,.12g}{_not(value)}"
    return f"{allowed}{f' {limit}' if limit else ''}{_not(value)}"


def _objects(field: str, message: str) -> str:
    """What is said of an object that lacks a field, or has one too many; other messages are sentences already."""
    inside = "" if field == "body" else f"{field}."
    missing = re.fullmatch(r"Object missing required field `([^`]+)`", message)
    if missing is not None:
        return f"{inside}{missing[1]} must be given"
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)
    if unknown is not None:
        return f"{inside}{unknown[1][:80]} is no field here"
    return message if field == "body" or message.startswith(f"{field} ") else f"{field}: {message}"


def _not(value: Any) -> str:
    if value is ABSENT:
        return ""
    shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return f", not {shown if len(shown) <= 80 else shown[:77] + '...'}"
