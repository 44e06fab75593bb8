"""Parse policies and worlds written as name or name:parameter=value,parameter=value."""

from __future__ import annotations

from typing import Any

from lenience.core.errors import InputError


def parse_spec(field: str, text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a policy or world.

    Values that look like numbers become numbers. The items of a list are joined by +.

    Examples
    --------
    >>> parse_spec("policy", "epsilon-greedy:epsilon=0.1")
    ('epsilon-greedy', {'epsilon': 0.1})
    >>> parse_spec("world", "segments:shares=3+1,rates=0.9+0.6")
    ('segments', {'shares': [3, 1], 'rates': [0.9, 0.6]})
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise InputError(field, text, "name or name:parameter=value,…")
        items = [_number(item) for item in value.split("+")]
        parameters[key.replace("-", "_")] = items if len(items) > 1 else items[0]
    return name, parameters


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
