"""Simulation: the results of policies run side by side, with confidence intervals.

Means over replications have normal intervals; shares of replications have Wilson intervals. All policies meet the same
individuals, so two policies are compared by their differences in each replication. The interval of such a difference
is often much narrower than the intervals of the two policies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.frames import to_frame
from lenience.core.intervals import wilson_interval
from lenience.core.money import UNITS, Money
from lenience.core.validation import real
from lenience.simulation.block import COLUMNS, ReplicationBlock

if TYPE_CHECKING:
    from lenience.core.offers import Offers
    from lenience.simulation.stream import World

METRICS = ("discounted", "reward", "regret", "accepted", "shut_out", "stopped", "learning_cost", "red_until")
SHARES = ("shut_out", "stopped")
REWARDS = ("discounted", "expected", "reward", "regret", "behind", "learning_cost")  # amounts of money
SHOWN = ("discounted", "regret", "behind", "accepted", "shut_out", "learning_cost")


class Estimate(msgspec.Struct, frozen=True):
    """An estimated mean and its confidence interval. ``x in estimate`` tests whether the interval contains x.

    Parameters
    ----------
    mean : float
        The estimated mean.
    lower : float
        The lower end of the interval.
    upper : float
        The upper end of the interval.

    Examples
    --------
    >>> print(Estimate(3.14159, 3.0, 3.28318))
    3.14 ± 0.14
    """

    mean: float
    lower: float
    upper: float

    @classmethod
    def of_mean(cls, values: NDArray[np.float64], confidence: float = 0.95) -> Estimate:
        """Estimate a mean from independent values, by the normal approximation.

        Parameters
        ----------
        values : ndarray
            The values.
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        Estimate
            The mean and its interval.

        Examples
        --------
        >>> print(Estimate.of_mean(np.array([1.0, 2.0, 3.0, 4.0])))
        2.5 ± 1.3
        """
        return cls.of_sums(float(values.sum()), float((values**2).sum()), values.size, confidence, values)

    @classmethod
    def of_sums(
        cls, total: float, squares: float, count: int, confidence: float, values: NDArray[np.float64] | None = None
    ) -> Estimate:
        """Estimate a mean from the sum and the sum of squares of independent values.

        Parameters
        ----------
        total : float
            The sum of the values.
        squares : float
            The sum of their squares.
        count : int
            The number of values.
        confidence : float
            The confidence level of the interval, strictly between 0 and 1.
        values : ndarray, optional
            The values themselves, if known. Their variance is then computed without cancellation.

        Returns
        -------
        Estimate
            The mean and its interval, which is infinite for a single value.

        Examples
        --------
        >>> print(Estimate.of_sums(10.0, 30.0, 4, 0.95))
        2.5 ± 1.3
        """
        mean = total / count
        if count == 1:
            return cls(mean, -math.inf, math.inf)
        variance = float(values.var(ddof=1)) if values is not None else (squares - total * mean) / (count - 1)
        half = z_of(confidence) * math.sqrt(max(variance, 0.0) / count)
        return cls(mean, mean - half, mean + half)

    @classmethod
    def of_share(cls, share: float, count: int, confidence: float = 0.95) -> Estimate:
        """Estimate a probability from the share of independent trials that succeeded, by Wilson's interval.

        Parameters
        ----------
        share : float
            The share that succeeded.
        count : int
            The number of trials.
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        Estimate
            The share and its interval.

        Examples
        --------
        >>> print(Estimate.of_share(0.0, 100))
        0 [0, 0.037]
        """
        interval = wilson_interval(round(share * count), count, confidence)
        return cls(share, interval.lower, interval.upper)

    def __contains__(self, number: float) -> bool:
        return self.lower <= number <= self.upper

    def __str__(self) -> str:
        half = (self.upper - self.lower) / 2
        if half == 0:
            return f"{self.mean:.4g}"
        if not math.isfinite(half):
            return f"{self.mean:.3g}"
        digits = max(0, 1 - math.floor(math.log10(half)))
        if abs((self.upper + self.lower) / 2 - self.mean) > 0.02 * half:
            digits = max(digits, 3) if self.mean else digits
            return (
                f"{self.mean:.{digits}f} [{self.lower:.{digits}f}, {self.upper:.{digits}f}]"
                if self.mean
                else (f"0 [{self.lower:.2g}, {self.upper:.2g}]")
            )
        return f"{self.mean:.{digits}f} ± {half:.2g}"


class Simulation:
    """The results of policies that ran side by side in one world.

    :func:`~lenience.simulation.compare.compare_policies` returns it. Print it for a table.

    Parameters
    ----------
    world : World
        The world.
    cost : float
        The break-even success rate; with offers, the lowest one.
    discount : float
        The discount factor from one arrival to the next.
    horizon : int
        The number of arrivals in each replication.
    prior : Belief or tuple of Belief
        The belief at the start, or one for each segment.
    seed : int
        Seed of the random numbers.
    checkpoints : ndarray of int
        The arrivals at which acceptance and regret are recorded.
    runs : mapping of str to ReplicationBlock
        The results of each policy, replication by replication.
    baseline : str or None
        The policy that the others are compared with.
    note : str, optional
        Which assumptions of the optimum the world violates, in a sentence.
    offers : Offers or None, optional
        What arrivals bring. Rewards are then in money.

    Examples
    --------
    >>> from lenience import compare_policies
    >>> from lenience.policies import Greedy
    >>> from lenience.simulation import Bernoulli
    >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
    >>> simulation.policies, simulation.replications
    (['optimum', 'greedy'], 20)
    >>> simulation.behind("greedy").mean > 0
    True
    """

    def __init__(
        self,
        *,
        world: World,
        cost: float,
        discount: float,
        horizon: int,
        prior: Belief | tuple[Belief, ...],
        seed: int,
        checkpoints: NDArray[np.int64],
        runs: Mapping[str, ReplicationBlock],
        baseline: str | None,
        note: str = "",
        offers: Offers | None = None,
    ) -> None:
        self.world, self.cost, self.discount, self.horizon = world, cost, discount, horizon
        self.prior, self.seed, self.checkpoints = prior, seed, checkpoints
        self.offers = offers
        self.runs = dict(runs)
        self.baseline = baseline  # the policy that the others are compared with
        self.note = note  # which assumptions of the optimum the world violates

    @property
    def policies(self) -> list[str]:
        """The names of the policies. The optimum comes first if it ran along."""
        return list(self.runs)

    @property
    def replications(self) -> int:
        """The number of replications of each policy."""
        return next(iter(self.runs.values())).p.size

    def values(self, policy: str, metric: str) -> NDArray[np.float64]:
        """Return a metric of a policy in every replication.

        Parameters
        ----------
        policy : str
            The name of the policy.
        metric : str
            A column of :mod:`lenience.simulation.block`, such as "discounted" or "accepted", or "regret".

        Returns
        -------
        ndarray
            One number per replication.

        Raises
        ------
        InputError
            If the policy or the metric is unknown.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> simulation.values("greedy", "accepted").shape
        (20,)
        """
        if policy not in self.runs:
            raise InputError.unknown_name("policy", policy, self.runs)
        run = self.runs[policy]
        if metric == "regret":
            return run.clairvoyant - run.expected
        if metric not in COLUMNS:
            raise InputError.unknown_name("metric", metric, sorted({*COLUMNS, "regret"}))
        values: NDArray[np.float64] = getattr(run, metric)
        return values

    def estimate(self, policy: str, metric: str, confidence: float = 0.95) -> Estimate:
        """Estimate the mean of a metric over the replications.

        Parameters
        ----------
        policy : str
            The name of the policy.
        metric : str
            A metric, as in :meth:`values`.
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        Estimate
            The mean and its interval.

        Raises
        ------
        InputError
            If the policy or the metric is unknown.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Constant
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Constant(1), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> print(simulation.estimate("constant (probability=1)", "accepted"))
        50
        """
        level = real("confidence", confidence, above=0, below=1)
        values = self.values(policy, metric)
        if metric in SHARES and np.all((values == 0.0) | (values == 1.0)):
            return Estimate.of_share(float(values.mean()), values.size, level)
        return Estimate.of_mean(values, level)

    def compare(self, policy: str, other: str, metric: str = "expected", confidence: float = 0.95) -> Estimate:
        """Estimate by how much one policy exceeds another, from the differences in each replication.

        Parameters
        ----------
        policy : str
            The name of the policy.
        other : str
            The name of the policy to compare it with.
        metric : str, optional
            A metric, as in :meth:`values`.
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        Estimate
            The mean of ``policy`` minus ``other``, and its interval.

        Raises
        ------
        InputError
            If a policy or the metric is unknown.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=200)
        >>> simulation.compare("optimum", "greedy").lower > 0
        True
        """
        level = real("confidence", confidence, above=0, below=1)
        return Estimate.of_mean(self.values(policy, metric) - self.values(other, metric), level)

    def behind(self, policy: str, confidence: float = 0.95) -> Estimate:
        """Estimate how much less a policy earns than the baseline, in expected discounted reward.

        Parameters
        ----------
        policy : str
            The name of the policy.
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        Estimate
            The difference; it is negative if the policy earns more.

        Raises
        ------
        InputError
            If the simulation has no baseline: it ran with ``optimum=False``.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import FromPrior
        >>> simulation = compare_policies(Greedy(0.5), FromPrior(Belief(2, 1)), cost=0.5, horizon=50, replications=200)
        >>> simulation.behind("optimum").mean, simulation.behind("greedy").mean > 0
        (0.0, True)
        """
        if self.baseline is None:
            raise InputError.because(
                "must run along: call compare_policies with optimum=True", "optimum", code="missing"
            )
        return self.compare(self.baseline, policy, "expected", confidence)

    def acceptance_over_time(self, policy: str, confidence: float = 0.95) -> list[Estimate]:
        """Estimate the share accepted between one checkpoint and the next.

        Parameters
        ----------
        policy : str
            The name of the policy.
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        list of Estimate
            One estimate per checkpoint.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Constant
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Constant(1), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> print(simulation.acceptance_over_time("constant (probability=1)")[-1])
        1
        """
        run = self.runs[policy]
        return self._along(run.acceptance, run.acceptance_squares, confidence)

    def regret_over_time(self, policy: str, confidence: float = 0.95) -> list[Estimate]:
        """Estimate the undiscounted regret from the first arrival to each checkpoint.

        Parameters
        ----------
        policy : str
            The name of the policy.
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        list of Estimate
            One estimate per checkpoint. Regret is measured against a policy that knows p.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Constant
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Constant(1), Bernoulli(0.4), cost=0.5, horizon=50, replications=20)
        >>> regret = simulation.regret_over_time("constant (probability=1)")[-1]
        >>> round(regret.mean, 6)  # each of 50 acceptances loses 0.1
        5.0
        """
        run = self.runs[policy]
        return self._along(run.regret, run.regret_squares, confidence)

    def summary(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Summarise the main metrics of all policies.

        Parameters
        ----------
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.

        Returns
        -------
        list of dict
            One row per policy and metric, with the keys policy, metric, mean, lower and upper.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> row = simulation.summary()[0]
        >>> row["policy"], row["metric"]
        ('optimum', 'discounted')
        """
        rows: list[dict[str, Any]] = []
        for name in self.runs:
            result = {metric: self.estimate(name, metric, confidence) for metric in METRICS}
            if self.baseline is not None:
                result["behind"] = self.behind(name, confidence)
            rows += [
                {"policy": name, "metric": metric, "mean": each.mean, "lower": each.lower, "upper": each.upper}
                for metric, each in result.items()
            ]
        return rows

    def frame(self, backend: str | None = None) -> Any:
        """Return the summary as a data frame.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars" or "pyarrow"; by default one that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            One row per policy and metric.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> simulation.frame("pyarrow").column_names
        ['policy', 'metric', 'mean', 'lower', 'upper']
        """
        return to_frame(self.summary(), backend)

    def replications_frame(self, backend: str | None = None) -> Any:
        """Return every replication of every policy as a data frame.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars" or "pyarrow"; by default one that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            One row per policy and replication, one column per metric.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> simulation.replications_frame("pyarrow").num_rows  # 20 of the optimum and 20 of greedy
        40
        """
        columns: dict[str, list[Any]] = {"policy": [], "replication": []}
        for name in self.runs:
            columns["policy"] += [name] * self.replications
            columns["replication"] += range(self.replications)
            for metric in (*COLUMNS, "regret"):
                columns.setdefault(metric, []).extend(self.values(name, metric).tolist())
        return to_frame(columns, backend)

    def over_time_frame(self, backend: str | None = None) -> Any:
        """Return acceptance and regret over time as a data frame.

        Parameters
        ----------
        backend : str, optional
            "pandas", "polars" or "pyarrow"; by default one that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The columns policy, arrival, metric, mean, lower and upper.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> simulation.over_time_frame("pyarrow").column_names
        ['policy', 'arrival', 'metric', 'mean', 'lower', 'upper']
        """
        rows = [
            {"policy": name, "arrival": int(at), "metric": metric, "mean": e.mean, "lower": e.lower, "upper": e.upper}
            for name in self.runs
            for metric, along in (
                ("acceptance", self.acceptance_over_time(name)),
                ("regret", self.regret_over_time(name)),
            )
            for at, e in zip(self.checkpoints, along, strict=True)
        ]
        return to_frame(rows, backend)

    def save(self, folder: str | Path) -> list[Path]:
        """Write summary.parquet, replications.parquet and over_time.parquet into a folder.

        Parameters
        ----------
        folder : str or Path
            The folder. It is created if it does not exist.

        Returns
        -------
        list of Path
            The files.

        Examples
        --------
        >>> import tempfile
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print([path.name for path in simulation.save(folder)])
        ['summary.parquet', 'replications.parquet', 'over_time.parquet']
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        frames = {
            "summary": self.frame(),
            "replications": self.replications_frame(),
            "over_time": self.over_time_frame(),
        }
        return [save_frame(frame, target / f"{name}.parquet") for name, frame in frames.items()]

    def table(self, confidence: float = 0.95, money: Money = UNITS) -> list[list[str]]:
        """Format the main metrics as text.

        Parameters
        ----------
        confidence : float, optional
            The confidence level of the interval, strictly between 0 and 1.
        money : Money, optional
            How to show rewards; by default in units of gain + loss.

        Returns
        -------
        list of list of str
            The headings, then one line per policy.

        Examples
        --------
        >>> from lenience import compare_policies
        >>> from lenience.policies import Greedy
        >>> from lenience.simulation import Bernoulli
        >>> simulation = compare_policies(Greedy(0.5), Bernoulli(0.6), cost=0.5, horizon=50, replications=20)
        >>> [line[0] for line in simulation.table()]
        ['policy', 'optimum', 'greedy']
        """

        def show(metric: str, estimate: Estimate) -> str:
            if not money.known or metric not in REWARDS:
                return str(estimate)
            return money.format_interval(estimate.mean, estimate.lower, estimate.upper)

        shown = [metric for metric in SHOWN if metric != "behind" or self.baseline is not None]
        titles = {"behind": f"behind {self.baseline}"}
        lines = [["policy", *(titles.get(metric, metric.replace("_", " ")) for metric in shown)]]
        for name in self.runs:
            result = [
                self.behind(name, confidence) if metric == "behind" else self.estimate(name, metric, confidence)
                for metric in shown
            ]
            lines.append([name, *(show(metric, each) for metric, each in zip(shown, result, strict=True))])
        return lines

    def __str__(self) -> str:
        return aligned(self.table()) + (f"\n{self.note}" if self.note else "")

    def __repr__(self) -> str:
        return f"Simulation({len(self.runs)} policies, {self.replications} replications of {self.horizon} arrivals)"

    def _along(self, sums: NDArray[np.float64], squares: NDArray[np.float64], confidence: float) -> list[Estimate]:
        """Return an estimate for each checkpoint, from sums over the replications."""
        level = real("confidence", confidence, above=0, below=1)
        count = self.replications
        return [
            Estimate.of_sums(float(total), float(square), count, level)
            for total, square in zip(sums, squares, strict=True)
        ]


def z_of(confidence: float) -> float:
    """Return the normal quantile of a two-sided confidence level.

    >>> round(z_of(0.95), 4)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * confidence))


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Format lines of cells as text in columns.

    >>> print(aligned([["a", "b"], ["long", "c"]]))
    a      b
    long   c
    """
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "   ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def save_frame(frame: Any, path: str | Path) -> Path:
    """Write a data frame as CSV or Parquet, by the ending of the file name."""
    import narwhals as nw

    target = check_frame_path(path)
    eager = nw.from_native(frame, eager_only=True)
    if target.suffix.lower() == ".csv":
        eager.write_csv(target)
    else:
        eager.write_parquet(target)
    return target


def check_frame_path(path: str | Path) -> Path:
    """Check the path of a data frame before anything is computed."""
    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet"):
        raise InputError("output", str(path), "a file name ending in .csv or .parquet")
    if not target.parent.is_dir():
        raise InputError("output", str(target.parent), "in a folder that exists", code="missing_file")
    return target
