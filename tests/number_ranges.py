"""Check which numbers a function takes: the smallest and largest ones, and the first ones beyond."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rejections import rejected


class Range(NamedTuple):
    """A field, a call with one number for it, numbers that are allowed and numbers that are not."""

    field: str
    call: Callable[[Any], object]
    valid: list[float]
    invalid: list[float]

    def check(self) -> None:
        for number in self.valid:
            self.call(number)
        for number in self.invalid:
            with rejected(self.field):
                self.call(number)


def names_of(ranges: list[Range]) -> list[str]:
    """Return a name for each range, for test reports."""
    return [f"{i}-{each.field}" for i, each in enumerate(ranges)]
