"""PastRows: a world of past rows, drawn without replacement. A policy sees the outcome of a row only if it accepts it.

The rows must cover *everyone* who arrived, e.g. an experiment that accepted all, or a data set with all outcomes. Rows
that an old policy accepted only answer questions about those it accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.counter_rng import replication_keys
from lenience.core.errors import InputError
from lenience.files.columns import read_columns
from lenience.files.outcome_words import OutcomeWords, Words, read_outcomes
from lenience.simulation.stream import Stream


class PastRows:
    """A world of past rows with known outcomes.

    The success probability of a row, against which regret is counted, is the share of successes in its segment.

    Parameters
    ----------
    outcomes : array_like
        The outcome of each row, 0 or 1.
    segments : array_like, optional
        The segment of each row; by default all rows are in one segment.
    features : array_like, optional
        The features of each row, for :meth:`play`.

    Examples
    --------
    >>> world = PastRows(outcomes=[1, 1, 0, 1], segments=["a", "a", "b", "b"])
    >>> world.rates.tolist()
    [1.0, 0.5]
    """

    def __init__(
        self, outcomes: ArrayLike, segments: ArrayLike | None = None, features: ArrayLike | None = None
    ) -> None:
        given = np.asarray(outcomes)
        if given.ndim != 1 or given.size == 0 or not np.all((given == 0) | (given == 1)):
            raise InputError("outcomes", allowed="a column of 0 and 1, with at least one row")
        self.outcomes: NDArray[np.bool_] = given.astype(bool)
        labels = np.zeros(given.size, dtype=np.int64) if segments is None else np.asarray(segments)
        if labels.shape != given.shape:
            raise InputError.because(
                f"must have one label for each of the {given.size} outcomes, not {labels.size}",
                "segments",
                value=labels.size,
                code="length_mismatch",
            )
        self.names, self.segment = np.unique(labels, return_inverse=True)
        self.features = None if features is None else np.asarray(features)
        if self.features is not None and len(self.features) != given.size:
            raise InputError.because(
                f"must have one row for each of the {given.size} outcomes, not {len(self.features)}",
                "features",
                value=len(self.features),
                code="length_mismatch",
            )
        count = np.bincount(self.segment)
        self.rates: NDArray[np.float64] = np.bincount(self.segment, weights=self.outcomes.astype(np.float64)) / count

    @classmethod
    def from_file(
        cls,
        file: str,
        outcome: str = "outcome",
        segment: str | None = None,
        success: Words = None,
        failure: Words = None,
        pending: Words = None,
        sheet: str | None = None,
    ) -> PastRows:
        """Read past rows from a file.

        Parameters
        ----------
        file : str
            The path of a CSV or Excel file (as ``fit_history`` reads it) or a Parquet file.
        outcome : str, optional
            The column of outcomes: 1 or 0, or words such as "repaid" and "default".
        segment : str, optional
            The column of segments.
        success, failure : str or sequence of str, optional
            Values of the outcome that mean success and failure, in addition to the usual words.
        pending : str or sequence of str, optional
            Values of the outcome that mean "not known yet" (``""`` for empty cells). These rows are left out.
        sheet : str, optional
            The sheet of an Excel file.

        Returns
        -------
        PastRows
            The world.

        Raises
        ------
        InputError
            If the file has no such column, or an outcome is neither a success nor a failure nor pending.

        Examples
        --------
        >>> import os, pathlib, tempfile
        >>> lines = ["outcome,region", "1,north", "0,north", "1,south"]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "past.csv"
        ...     _ = file.write_text(os.linesep.join(lines))
        ...     world = PastRows.from_file(str(file), segment="region")
        >>> world.rates.tolist()
        [0.5, 1.0]
        """
        columns = read_columns(file, sheet=sheet)
        for column in (outcome, segment):
            if column is not None and column not in columns:
                raise InputError("column", column, f"one of {', '.join(columns)} of {file}")
        words = OutcomeWords.of(success, failure, pending)
        values = read_outcomes(outcome, columns[outcome], words)
        unknown = np.isnan(values)
        allowed = {str(word).strip().lower() for word in words.pending}
        for value in np.array(columns[outcome], dtype=object)[unknown]:
            text = "" if value is None or value != value else str(value).strip().lower()
            if text not in allowed:
                raise InputError(
                    "outcome",
                    value,
                    "known in every row",
                    label=f"column {outcome!r}",
                    hint=f"Leave such rows out with pending=[{text!r}].",
                )
        labels = None if segment is None else np.asarray(columns[segment])[~unknown]
        return cls(values[~unknown], labels)

    def __len__(self) -> int:
        return self.outcomes.size

    def __repr__(self) -> str:
        return f"PastRows(rows={len(self)}, segments={len(self.names)})"

    def open(self, keys: NDArray[np.uint64], horizon: int) -> Stream:
        """Open a stream of the rows, in a different random order for each replication.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.
        horizon : int
            The number of arrivals, at most the number of rows.

        Returns
        -------
        Stream
            The rows, in the same order whenever the keys are the same.

        Raises
        ------
        InputError
            If there are fewer rows than arrivals.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> stream = PastRows(outcomes=[1, 1, 1]).open(replication_keys(seed=1, first=0, count=2), horizon=3)
        >>> stream.outcomes(0, stream.rates(0))
        array([ True,  True])
        """
        if horizon > len(self):
            raise InputError("horizon", horizon, f"at most the {len(self)} past rows")
        return _PastStream(keys, self, horizon)

    def fixed_rates(self, keys: NDArray[np.uint64]) -> None:
        """Return nothing, because rows are drawn without replacement.

        Parameters
        ----------
        keys : ndarray of uint64
            The random keys of the replications, one each.
        """

    def order(self, key: np.uint64) -> NDArray[np.int64]:
        """Return the order of the rows in a replication.

        Parameters
        ----------
        key : numpy.uint64
            The random key of the replication.

        Returns
        -------
        ndarray of int
            The numbers of the rows, in the order of their arrival.

        Examples
        --------
        >>> from lenience.core.counter_rng import replication_keys
        >>> [key] = replication_keys(seed=1, first=0, count=1)
        >>> sorted(PastRows(outcomes=[1, 0, 1]).order(key).tolist())
        [0, 1, 2]
        """
        return np.random.default_rng(int(key)).permutation(len(self))

    def play(
        self, decide: Callable[[Any], bool], learn: Callable[[Any, bool], None], seed: int = 0
    ) -> Iterator[tuple[int, bool]]:
        """Present the rows one by one to any decision rule, which learns only the outcomes of those it accepts.

        Parameters
        ----------
        decide : callable
            Takes the features of a row and returns whether to accept it.
        learn : callable
            Takes the features and the outcome of an accepted row.
        seed : int, optional
            Seed of the order of the rows.

        Yields
        ------
        tuple of int and bool
            The number of the row, and whether it was accepted.

        Raises
        ------
        InputError
            If the world has no features.

        Examples
        --------
        >>> world = PastRows(outcomes=[1, 0, 1], features=[[0.2], [0.9], [0.4]])
        >>> seen = []
        >>> played = list(world.play(lambda x: x[0] < 0.5, lambda x, y: seen.append(y), seed=1))
        >>> sorted(row for row, accepted in played if accepted), seen
        ([0, 2], [True, True])
        """
        if self.features is None:
            raise InputError.because(
                "must be given to replay the rows to a policy that decides by features", "features", code="missing"
            )
        for row in self.order(replication_keys(seed, 0, 1)[0]):
            accepted = bool(decide(self.features[row]))
            if accepted:
                learn(self.features[row], bool(self.outcomes[row]))
            yield int(row), accepted


class _PastStream(Stream):
    """The stream of past rows."""

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
