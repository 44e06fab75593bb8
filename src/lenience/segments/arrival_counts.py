"""ArrivalCounts: estimate the segments' shares from everyone who arrives, accepted or rejected.

Shares have a Dirichlet belief: with counts N_x and a pseudo-count a for each of K segments, the share of x is
Beta(N_x + a, N − N_x + (K − 1)a), with mean (N_x + a)/(N + Ka). Decisions do not bias it: every arrival is observed,
accepted or not, so there is no selection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import mapped, real, whole


class ArrivalCounts(msgspec.Struct, frozen=True):
    """How many members of each segment have arrived, accepted or rejected.

    Parameters
    ----------
    counts
        The number of arrivals by segment.
    pseudo
        The pseudo-count of each segment, above 0: how many arrivals the prior of equal shares is worth.

    Examples
    --------
    >>> seen = ArrivalCounts({"north": 0, "south": 0}).observe(["north", "north", "south"])
    >>> seen.shares()
    {'north': 0.625, 'south': 0.375}
    """

    counts: dict[str, int]
    pseudo: float = 0.5

    def __post_init__(self) -> None:
        if not mapped("counts", self.counts, "a mapping of segments to counts"):
            raise InputError.because("must name at least one segment", "counts", code="missing")
        for name, count in self.counts.items():
            whole("counts", count, label=f"count of {name}")
        msgspec.structs.force_setattr(self, "pseudo", real("pseudo", self.pseudo, above=0))

    @property
    def total(self) -> int:
        """The number of all arrivals."""
        return sum(self.counts.values())

    def observe(self, arrived: Iterable[str] | Mapping[str, int]) -> ArrivalCounts:
        """Return the counts after more arrivals.

        Parameters
        ----------
        arrived : iterable of str or mapping
            The segment of each arrival, or the number of arrivals by segment.

        Returns
        -------
        ArrivalCounts
            The new counts.

        Raises
        ------
        InputError
            If a segment is unknown or a count is invalid.

        Examples
        --------
        >>> ArrivalCounts({"north": 3, "south": 1}).observe({"south": 2}).counts
        {'north': 3, 'south': 3}
        """
        counts = dict(self.counts)
        several = arrived.items() if isinstance(arrived, Mapping) else ((name, 1) for name in arrived)
        for name, count in several:
            if name not in counts:
                raise InputError("arrivals", name, f"of one of the {len(counts):,} segments", code="unknown_name")
            counts[name] += whole("counts", count, label=f"count of {name}")
        return ArrivalCounts(counts, self.pseudo)

    def belief(self, name: str) -> Belief:
        """Return the belief about a segment's share.

        Parameters
        ----------
        name : str
            The segment.

        Returns
        -------
        Belief
            The Beta distribution of the share.

        Examples
        --------
        >>> ArrivalCounts({"north": 3, "south": 1}).belief("north")
        Belief(n=5.0, s=3.5)
        """
        return Belief(n=self.total + self.pseudo * len(self.counts), s=self.counts[name] + self.pseudo)

    def shares(self) -> dict[str, float]:
        """Return the expected shares, which add up to 1.

        Returns
        -------
        dict
            The share of each segment.

        Examples
        --------
        >>> ArrivalCounts({"north": 3, "south": 1}).shares()
        {'north': 0.7, 'south': 0.3}
        """
        size = self.total + self.pseudo * len(self.counts)
        return {name: (count + self.pseudo) / size for name, count in self.counts.items()}

    def interval(self, name: str, probability: float = 0.95) -> Bounds:
        """Return the credible interval of a segment's share.

        Parameters
        ----------
        name : str
            The segment.
        probability : float
            The probability that the interval contains the share.

        Returns
        -------
        Bounds
            The ends of the interval.

        Examples
        --------
        >>> interval = ArrivalCounts({"north": 80, "south": 20}).interval("north")
        >>> round(interval.lower, 3), round(interval.upper, 3)
        (0.714, 0.869)
        """
        return self.belief(name).interval(probability)
