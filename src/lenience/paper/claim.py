"""Claim: what the paper says, what was found, and what is added; and the setting of its Figure 1."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from lenience.core.belief import Belief
from lenience.solvers.stopping.paper_values import PaperTable, paper_values

HOLDS, CORRECTED, PRECISE, FAILS = "holds", "holds with a correction", "made precise", "fails"
COST, DISCOUNTS, N = 0.8, (0.99, 0.95), 1000
FLAT = Belief(2, 1)
ROUNDING = 1e-9
CONFIDENCE = 0.999  # of an interval that decides a verdict: one in a thousand would fail by bad luck


class Claim(msgspec.Struct, frozen=True):
    """A claim, what was found, and what is added to it."""

    section: str
    claim: str
    verdict: str
    evidence: str
    addition: str = ""

    @property
    def stands(self) -> bool:
        """Whether nothing contradicts it."""
        return self.verdict != FAILS


def verdict(true: bool, kind: str = HOLDS) -> str:
    """The verdict of a kind if nothing contradicts the claim, and *fails* otherwise."""
    return kind if true else FAILS


def difference(value: float, width: float) -> str:
    """A difference from a value that is known to within a width: where that is all there is, only what it is below.

    >>> difference(0.0284, 1e-10), difference(5.9e-11, 1.2e-10)
    ('0.028', 'below 1e-9')
    """
    if abs(value) > width:
        return f"{value:.2g}"
    return f"below 1e{math.ceil(math.log10(abs(value) + width))}"


def figure_one() -> dict[float, PaperTable]:
    """V^N(n, ·) as in Figure 1, by discount factor."""
    return {discount: paper_values(COST, discount, [1, 2, 5, 10, 20, 50, 100, N, N + 1], N) for discount in DISCOUNTS}


def counted(claims: list[Claim]) -> Iterator[tuple[str, int]]:
    """How many claims have each verdict."""
    for verdict in (HOLDS, PRECISE, CORRECTED, FAILS):
        yield verdict, sum(claim.verdict == verdict for claim in claims)
