"""Claim: what the paper says, the result of checking it, and what we add; and the setting of the paper's Figure 1."""

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
CONFIDENCE = 0.999  # of intervals that decide a verdict, so that one check in a thousand fails by chance


class Claim(msgspec.Struct, frozen=True):
    """A claim of the paper and the result of checking it.

    Parameters
    ----------
    section : str
        Where the paper makes the claim, e.g. "3.1, (3)".
    claim : str
        What the paper says.
    verdict : str
        "holds", "holds with a correction", "made precise" or "fails".
    evidence : str
        The numbers that the check computed.
    addition : str, optional
        A correction, or a result beyond the paper.

    Examples
    --------
    >>> Claim("3.1", "V* is convex in p̂.", "holds", "No second difference is below 0.").stands
    True
    """

    section: str
    claim: str
    verdict: str
    evidence: str
    addition: str = ""

    @property
    def stands(self) -> bool:
        """Whether no number contradicts the claim."""
        return self.verdict != FAILS


def verdict(true: bool, kind: str = HOLDS) -> str:
    """Return the given verdict if nothing contradicts the claim, and "fails" otherwise."""
    return kind if true else FAILS


def difference(value: float, width: float) -> str:
    """Format a difference from a value that is known to within a width.

    If the difference is within the width, the text only gives a bound.

    >>> difference(0.0284, 1e-10), difference(5.9e-11, 1.2e-10)
    ('0.028', 'below 1e-9')
    """
    if abs(value) > width:
        return f"{value:.2g}"
    return f"below 1e{math.ceil(math.log10(abs(value) + width))}"


def figure_one() -> dict[float, PaperTable]:
    """Return V^N(n, ·) as in Figure 1 of the paper, by discount factor."""
    return {discount: paper_values(COST, discount, [1, 2, 5, 10, 20, 50, 100, N, N + 1], N) for discount in DISCOUNTS}


def counted(claims: list[Claim]) -> Iterator[tuple[str, int]]:
    """Yield each verdict with the number of claims that have it."""
    for verdict in (HOLDS, PRECISE, CORRECTED, FAILS):
        yield verdict, sum(claim.verdict == verdict for claim in claims)
