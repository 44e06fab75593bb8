"""What policies earned in a replay: the results that :func:`lenience.replay` returns."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.simulation.replay_periods import ReplayPeriod

ReplayObjective = Discounted | FiniteHorizon | Delayed


class PolicyResult(msgspec.Struct, frozen=True, eq=False):
    """The result of one policy in a replay.

    Parameters
    ----------
    policy : str
        The name of the policy.
    discounted : ndarray
        The discounted reward of each run.
    total : ndarray
        The undiscounted reward of each run.
    regret : ndarray
        The regret of each run, against the model that knows all outcomes.
    accepted : float
        The share accepted.
    by_group : dict of str to float
        The share accepted in each group.
    curve : ndarray
        The mean total reward up to each of the ``marks`` of the replay.
    decisions : ndarray of bool
        Whether each arrival was accepted: one row per run, one column per arrival.
    choices : ndarray of int, optional
        If rows offer a choice: the position in the row's menu of the offer that was best, for each arrival.
    assumed : float, optional
        If rows offer a choice: the share of acceptances whose outcome is assumed, because another offer was made.
    """

    policy: str
    discounted: np.ndarray[Any, np.dtype[np.float64]]
    total: np.ndarray[Any, np.dtype[np.float64]]
    regret: np.ndarray[Any, np.dtype[np.float64]]
    accepted: float
    by_group: dict[str, float]
    curve: np.ndarray[Any, np.dtype[np.float64]]
    decisions: np.ndarray[Any, np.dtype[np.bool_]]
    choices: np.ndarray[Any, np.dtype[np.int64]] | None = None
    assumed: float | None = None

    @property
    def mean(self) -> float:
        """The mean discounted reward."""
        return float(self.discounted.mean())

    @property
    def half_width(self) -> float:
        """The half-width of the 95% interval of the mean discounted reward."""
        return half_width(self.discounted)

    def behind(self, other: PolicyResult) -> tuple[float, float]:
        """Return how much less this policy earned than another, with the half-width of the paired 95% interval.

        Parameters
        ----------
        other : PolicyResult
            The other policy of the same replay.

        Returns
        -------
        tuple of float and float
            The mean difference of the discounted rewards, and its half-width.
        """
        difference = other.discounted - self.discounted
        return float(difference.mean()), half_width(difference)

    def __repr__(self) -> str:
        return f"PolicyResult({self.policy!r}, {self.mean:.2f} ± {self.half_width:.2f}, accepted {self.accepted:.3f})"


class ReplayResult(msgspec.Struct, frozen=True, eq=False):
    """The results of every policy of a replay, on the same arrivals. Print it for a table.

    Parameters
    ----------
    objective : Discounted, FiniteHorizon or Delayed
        The objective.
    arrivals : int
        The number of arrivals in each run.
    warm : int
        The number of labels that every policy knows at the start.
    seeds : int
        The number of runs.
    success_rate : float
        The share of successes in the data.
    known : float
        The mean discounted reward of the model that knows all outcomes.
    marks : tuple of int
        The arrivals at which the curves are recorded.
    policies : tuple of PolicyResult
        The results, one per policy. ``result["greedy"]`` selects one by name.
    full_information : PolicyResult
        The result of the default model if it sees the outcome of every arrival.
    rows : ndarray of int
        The row of X that arrived: one row per run, one column per arrival, as in each policy's ``decisions``.
    left_out : int
        The number of rows that were left out because their outcome is not known.
    periods : tuple of ReplayPeriod
        The results over time, if ``times`` were given.

    Examples
    --------
    >>> from lenience import replay
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.5
    >>> result = replay(X, y, Discounted(cost=0.6, discount=0.9), seeds=2, arrivals=20)
    >>> result["always"].accepted
    1.0

    The decisions, for metrics of your own, such as the success rate of the accepted:

    >>> accepted = result["lenience"].decisions
    >>> bool(0 < y[result.rows[accepted]].mean() < 1)
    True
    """

    objective: ReplayObjective
    arrivals: int
    warm: int
    seeds: int
    success_rate: float
    known: float
    marks: tuple[int, ...]
    policies: tuple[PolicyResult, ...]
    full_information: PolicyResult
    rows: np.ndarray[Any, np.dtype[np.int64]]
    left_out: int = 0
    periods: tuple[ReplayPeriod, ...] = ()

    def decisions_frame(self, backend: str | None = None) -> Any:
        """Return the decisions of all policies as a data frame.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars" or "pyarrow"; by default one that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            One row per run and arrival: the numbers of the run, of the arrival and of the row of X, and for each policy
            whether it accepted.

        Examples
        --------
        >>> from lenience import replay
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.5
        >>> result = replay(X, y, Discounted(cost=0.6, discount=0.9), seeds=2, arrivals=20)
        >>> frame = result.decisions_frame("pyarrow")
        >>> frame.num_rows, frame.column_names[:4]
        (40, ['run', 'arrival', 'row', 'lenience'])
        """
        from lenience.core.frames import to_frame

        runs, arrivals = self.rows.shape
        columns: dict[str, NDArray[Any]] = {
            "run": np.repeat(np.arange(runs), arrivals),
            "arrival": np.tile(np.arange(arrivals), runs),
            "row": self.rows.ravel(),
        }
        columns |= {outcome.policy: outcome.decisions.ravel() for outcome in self.policies}
        return to_frame({name: values.tolist() for name, values in columns.items()}, backend)

    def __getitem__(self, policy: str) -> PolicyResult:
        for result in self.policies:
            if result.policy == policy:
                return result
        raise InputError.unknown_name("policy", policy, [result.policy for result in self.policies])

    def summary(self) -> list[dict[str, Any]]:
        """Summarise the results of all policies.

        Returns
        -------
        list of dict
            One row per policy: its discounted reward, how far it is behind the first policy, both with the half-widths
            of 95% intervals (None for a single run), its total reward, its regret, and the share accepted overall and
            by group.

        Examples
        --------
        >>> from lenience import replay
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.5
        >>> result = replay(X, y, Discounted(cost=0.6, discount=0.9), seeds=2, arrivals=20)
        >>> row = result.summary()[0]
        >>> row["policy"], row["behind"]
        ('lenience', 0.0)
        """
        first = self.policies[0]
        return [
            {
                "policy": result.policy,
                "discounted": result.mean,
                "half_width": result.half_width if self.seeds > 1 else None,
                "behind": result.behind(first)[0],
                "behind_half_width": result.behind(first)[1] if self.seeds > 1 else None,
                "total": float(result.total.mean()),
                "regret": float(result.regret.mean()),
                "accepted": result.accepted,
                **({} if result.assumed is None else {"assumed": result.assumed}),
                "by_group": result.by_group,
            }
            for result in self.policies
        ]

    def frame(self, backend: str | None = None) -> Any:
        """Return the summary as a data frame.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars" or "pyarrow"; by default one that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            One row per policy. The acceptance of each group is a separate column.

        Examples
        --------
        >>> from lenience import replay
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.5
        >>> result = replay(X, y, Discounted(cost=0.6, discount=0.9), seeds=2, arrivals=20)
        >>> result.frame("pyarrow").column_names[:3]
        ['policy', 'discounted', 'half_width']
        """
        from lenience.core.frames import to_frame

        rows = []
        for row in self.summary():
            by_group = row.pop("by_group")
            rows.append({**row, **{f"accepted: {group}": share for group, share in by_group.items()}})
        return to_frame(rows, backend)

    def __str__(self) -> str:
        from lenience.simulation.replay_table import replay_rows
        from lenience.simulation.result import aligned

        headings, rows = replay_rows(self)
        return aligned([headings, *rows])

    def __repr__(self) -> str:
        return f"ReplayResult({len(self.policies)} policies, {self.seeds} runs of {self.arrivals} arrivals)"


def half_width(values: NDArray[np.float64]) -> float:
    """Return half the width of the 95% interval of a mean, by Student's t distribution because runs may be few."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return math.inf
    return float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))
