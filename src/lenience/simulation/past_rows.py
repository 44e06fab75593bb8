"""PastRows: a world of past rows, drawn without replacement; the outcome of a row is shown only if it is accepted.

The rows must be those of *everyone* who came (an experiment that accepted all, or a data set with all outcomes):
the accepted of an old policy answer questions about its accepted alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.counter_rng import replication_keys
from lenience.core.errors import InputError, in_words, refusal
from lenience.files.columns import columns_of
from lenience.files.vocabulary import yes_or_no
from lenience.simulation.stream import Stream


class PastRows:
    """A world of rows. ``segments`` are labels, one a row (by default all alike); ``features`` one record a row.

    A row's success probability, against which regret is counted, is taken to be its segment's share of successes.

    >>> world = PastRows(outcomes=[1, 1, 0, 1], segments=["a", "a", "b", "b"])
    >>> world.rates.tolist()
    [1.0, 0.5]
    """

    def __init__(
        self, outcomes: ArrayLike, segments: ArrayLike | None = None, features: ArrayLike | None = None
    ) -> None:
        given = np.asarray(outcomes)
        if given.ndim != 1 or given.size == 0 or not np.all((given == 0) | (given == 1)):
            raise InputError("outcomes must be a column of 0 and 1, with at least one row")
        self.outcomes: NDArray[np.bool_] = given.astype(bool)
        labels = np.zeros(given.size, dtype=np.int64) if segments is None else np.asarray(segments)
        if labels.shape != given.shape:
            raise InputError(f"segments must be as many as outcomes: {given.size}, not {labels.size}")
        self.names, self.segment = np.unique(labels, return_inverse=True)
        self.features = None if features is None else np.asarray(features)
        if self.features is not None and len(self.features) != given.size:
            raise InputError(f"features must have as many rows as outcomes: {given.size}, not {len(self.features)}")
        count = np.bincount(self.segment)
        self.rates: NDArray[np.float64] = np.bincount(self.segment, weights=self.outcomes.astype(np.float64)) / count

    @classmethod
    def from_file(cls, file: str, outcome: str = "outcome", segment: str | None = None) -> PastRows:
        """From a CSV (as ``fit_history`` reads it) or Parquet file, by the names of its columns."""
        columns = _parquet(file) if file.endswith(".parquet") else columns_of(file)
        for column in (outcome, segment):
            if column is not None and column not in columns:
                raise refusal("column", column, f"one of {', '.join(columns)} of {file}")
        result = [yes_or_no(str(value)) for value in columns[outcome]]
        if None in result:
            value = columns[outcome][result.index(None)]
            raise refusal(outcome, value, "1 or 0 in every row, or a word such as repaid or default")
        return cls([value is True for value in result], None if segment is None else np.asarray(columns[segment]))

    def __len__(self) -> int:
        return self.outcomes.size

    def __repr__(self) -> str:
        return f"PastRows(rows={len(self)}, segments={len(self.names)})"

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """The rows in an order of its own for each replication."""
        if horizon > len(self):
            raise InputError(f"horizon must be at most the {len(self)} past rows, not {horizon}")
        return _PastStream(keys, self, horizon)

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Nothing: rows are drawn without replacement."""

    def order(self, key: np.uint64) -> NDArray[np.int64]:
        """The order of the rows in the replication of a key."""
        return np.random.default_rng(int(key)).permutation(len(self))

    def play(
        self, decide: Callable[[Any], bool], learn: Callable[[Any, bool], None], seed: int = 0
    ) -> Iterator[tuple[int, bool]]:
        """Put the rows, one by one, to a decision of any kind, which learns only of those it accepts.

        ``decide`` gets the features of a row and says whether to accept; ``learn`` gets the features and the outcome of
        those accepted. Yields each row's number and whether it was accepted.

        >>> world = PastRows(outcomes=[1, 0, 1], features=[[0.2], [0.9], [0.4]])
        >>> seen = []
        >>> played = list(world.play(lambda x: x[0] < 0.5, lambda x, y: seen.append(y), seed=1))
        >>> sorted(row for row, accepted in played if accepted), seen
        ([0, 2], [True, True])
        """
        if self.features is None:
            raise InputError("features must be given to play the rows to a decision")
        for row in self.order(replication_keys(seed, 0, 1)[0]):
            accepted = bool(decide(self.features[row]))
            if accepted:
                learn(self.features[row], bool(self.outcomes[row]))
            yield int(row), accepted


def _parquet(file: str) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        result: dict[str, list[Any]] = pyarrow.parquet.read_table(file).to_pydict()
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"file {file!r} cannot be read: {in_words(error)}") from error
    return result


class _PastStream(Stream):
    def __init__(self, keys: NDArray[np.uint64], world: PastRows, horizon: int) -> None:
        super().__init__(keys)
        self.segments = len(world.names)
        self._world = world
        self._order = np.stack([world.order(key)[:horizon] for key in keys])

    def rates(self, arrival: int) -> NDArray[np.float64]:
        return self._world.rates[self.segment(arrival)]

    def outcomes(self, arrival: int, rates: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._world.outcomes[self._order[:, arrival]]

    def segment(self, arrival: int) -> NDArray[np.int64]:
        return self._world.segment[self._order[:, arrival]]

    def by_segment(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        shares = np.bincount(self._world.segment) / len(self._world)
        return np.tile(self._world.rates, (self.keys.size, 1)), shares
