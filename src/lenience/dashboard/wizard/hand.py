"""Segments that a person lists in the form, without past decisions."""

from __future__ import annotations

import math
import re

import msgspec

from lenience.core.belief import Belief
from lenience.dashboard.wizard.answers import (
    FormError,
    number,
    percent,
)
from lenience.service.domain import limits


class ByHand(msgspec.Struct, frozen=True):
    """Segments listed by the user, and one prior for all of them."""

    shares: dict[str, float]
    prior: Belief


def read_hand(text: str, rate: str, worth: str) -> ByHand:
    """Read a list of segments: one per line, with an optional share after the last comma.

    >>> read_hand("north, 60 %\\nsouth, 40", "50", "2").shares
    {'north': 0.6, 'south': 0.4}
    >>> read_hand("north\\nsouth", "70", "10").prior
    Belief(n=10.0, s=7.0)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise FormError("start", "segments", "Name at least one segment, one per line")
    if len(lines) > limits.SEGMENTS:
        raise FormError("start", "segments", f"A policy has at most {limits.SEGMENTS:,} segments, not {len(lines):,}")
    shares: dict[str, float] = {}
    for line in lines:
        name, comma, share = line.rpartition(",")
        name = name.strip() if comma else line
        _name_alone(line, name, bool(comma))
        if name in shares:
            raise FormError("start", "segments", f"The names of segments must be unique; {name!r} appears twice")
        if not name or len(name) > 200:
            raise FormError("start", "segments", f"The name of a segment must have 1 to 200 characters, not {name!r}")
        label = f"The share of {name!r} in percent"
        shares[name] = (
            number("start", "segments", label, share, above=0, most=100) / 100 if comma and share.strip() else math.nan
        )
    if all(share < 0.01 for share in shares.values()) and math.isclose(sum(shares.values()), 0.01, rel_tol=0.02):
        first = f"{1e4 * next(iter(shares.values())):g}"
        message = f"The shares are in percent and add up to only 1%. Type {first} for {first}%"
        raise FormError("start", "segments", message)
    given = math.fsum(share for share in shares.values() if not math.isnan(share))
    left = [name for name, share in shares.items() if math.isnan(share)]
    if given > 1 + 1e-9 or (left and given >= 1):
        raise FormError("start", "segments", f"The shares must add up to at most 100%, not {100 * given:g}%")
    for name in left:
        shares[name] = (1 - given) / len(left)
    mean = percent("start", "rate", "The expected success rate", rate or "50", above=0, below=100)
    size = number("start", "worth", "The confidence in outcomes", worth or "2", above=0, most=1e6)
    return ByHand(shares, Belief(size, size * mean))


def _name_alone(line: str, name: str, comma: bool) -> None:
    """Raise FormError if a name seems to include the share, without a comma or with a decimal comma."""
    ending = re.fullmatch(r"(.*\S)\s+(\d[\d.]*)\s*%?|(.*[^\d.])(\d[\d.]*)\s*%", line) if not comma else None
    if ending is not None:
        before, share = (ending[1] or ending[3]).strip(), ending[2] or ending[4]
        message = f"Type “{before}, {share}” if {share}% is the share of {before!r}, or “{line},” if that is its name"
        raise FormError("start", "segments", message)
    decimal = re.fullmatch(r"(.*),\s*(\d+)", name) if comma else None
    if decimal is not None:
        part = line.rpartition(",")[2].strip()
        raise FormError(
            "start", "segments", f"Type a decimal point in a share: “{decimal[1].strip()}, {decimal[2]}.{part}”"
        )
