"""ArrivalCounts: shares learned from those who came, the rejected included, for their features are seen too.

Shares have a Dirichlet belief: with counts N_x and a pseudo-count a for each of K segments, the share of x is believed
to be Beta(N_x + a, N − N_x + (K − 1)a), mean (N_x + a)/(N + Ka). Decisions do not disturb it: arrivals are seen
whether accepted or not, so here there is no selection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.validation import mapped, real, whole


class ArrivalCounts(msgspec.Struct, frozen=True):
    """How many members of each segment have arrived, accepted or not.

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
        """All who have arrived."""
        return sum(self.counts.values())

    def observe(self, arrived: Iterable[str] | Mapping[str, int]) -> ArrivalCounts:
        """The counts after more arrivals: their segments one by one, or how many of each."""
        counts = dict(self.counts)
        several = arrived.items() if isinstance(arrived, Mapping) else ((name, 1) for name in arrived)
        for name, count in several:
            if name not in counts:
                raise InputError("arrivals", name, f"of one of the {len(counts):,} segments", code="unknown_name")
            counts[name] += whole("counts", count, label=f"count of {name}")
        return ArrivalCounts(counts, self.pseudo)

    def belief(self, name: str) -> Belief:
        """What is known of a segment's share."""
        return Belief(n=self.total + self.pseudo * len(self.counts), s=self.counts[name] + self.pseudo)

    def shares(self) -> dict[str, float]:
        """The expected shares; they add up to 1."""
        size = self.total + self.pseudo * len(self.counts)
        return {name: (count + self.pseudo) / size for name, count in self.counts.items()}

    def interval(self, name: str, probability: float = 0.95) -> Bounds:
        """The credible interval of a segment's share."""
        return self.belief(name).interval(probability)
