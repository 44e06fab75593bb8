"""Simulation: what came of policies run side by side, with confidence intervals.

Means over replications have normal intervals, shares of replications Wilson's. All policies met the same individuals,
so two of them are compared by the differences replication by replication: their interval is often far narrower than
either's own.
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
from lenience.core.errors import InputError, refusal
from lenience.core.frames import to_frame
from lenience.core.validation import real
from lenience.simulation.block import COLUMNS, Block

if TYPE_CHECKING:
    from lenience.simulation.stream import World

METRICS = ("discounted", "reward", "regret", "accepted", "shut_out", "stopped", "learning_cost", "red_until")
SHARES = ("shut_out", "stopped")
SHOWN = ("discounted", "regret", "behind", "accepted", "shut_out", "learning_cost")


class Estimate(msgspec.Struct, frozen=True):
    """An estimated mean and its confidence interval.

    >>> print(Estimate(3.14159, 3.0, 3.28318))
    3.14 ± 0.14
    """

    mean: float
    lower: float
    upper: float

    @classmethod
    def of_mean(cls, values: NDArray[np.float64], confidence: float = 0.95) -> Estimate:
        """From independent values, by the normal approximation."""
        return cls.of_sums(float(values.sum()), float((values**2).sum()), values.size, confidence, values)

    @classmethod
    def of_sums(
        cls, total: float, squares: float, count: int, confidence: float, values: NDArray[np.float64] | None = None
    ) -> Estimate:
        """From the sum and the sum of squares of independent values."""
        mean = total / count
        if count == 1:
            return cls(mean, -math.inf, math.inf)
        variance = float(values.var(ddof=1)) if values is not None else (squares - total * mean) / (count - 1)
        half = z_of(confidence) * math.sqrt(max(variance, 0.0) / count)
        return cls(mean, mean - half, mean + half)

    @classmethod
    def of_share(cls, share: float, count: int, confidence: float = 0.95) -> Estimate:
        """From the share of independent trials, by Wilson's interval.

        >>> print(Estimate.of_share(0.0, 100))
        0 [0, 0.037]
        """
        z = z_of(confidence)
        centre = (share + z * z / (2 * count)) / (1 + z * z / count)
        half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
        return cls(share, min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share))

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
    """Policies run side by side; ``runs`` holds what each brought, replication by replication."""

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
        runs: Mapping[str, Block],
        baseline: str | None,
        note: str = "",
    ) -> None:
        self.world, self.cost, self.discount, self.horizon = world, cost, discount, horizon
        self.prior, self.seed, self.checkpoints = prior, seed, checkpoints
        self.runs = dict(runs)
        self.baseline = baseline  # the policy that the others are compared with
        self.note = note  # what the world breaks of what the optimum assumes

    @property
    def policies(self) -> list[str]:
        """The names of the policies, the optimum first where it ran along."""
        return list(self.runs)

    @property
    def replications(self) -> int:
        """How many replications each policy went through."""
        return next(iter(self.runs.values())).p.size

    def values(self, policy: str, metric: str) -> NDArray[np.float64]:
        """One number a replication: any column of :mod:`lenience.simulation.block`, or the regret."""
        if policy not in self.runs:
            raise refusal("policy", policy, f"one of {', '.join(self.runs)}")
        run = self.runs[policy]
        if metric == "regret":
            return run.clairvoyant - run.expected
        if metric not in COLUMNS:
            raise refusal("metric", metric, f"one of {', '.join(sorted({*COLUMNS, 'regret'}))}")
        found: NDArray[np.float64] = getattr(run, metric)
        return found

    def estimate(self, policy: str, metric: str, confidence: float = 0.95) -> Estimate:
        """The mean of a metric over the replications, with its interval."""
        level = real("confidence", confidence, above=0, below=1)
        values = self.values(policy, metric)
        if metric in SHARES and np.all((values == 0.0) | (values == 1.0)):
            return Estimate.of_share(float(values.mean()), values.size, level)
        return Estimate.of_mean(values, level)

    def compare(self, policy: str, other: str, metric: str = "expected", confidence: float = 0.95) -> Estimate:
        """By how much ``policy`` exceeds ``other``, by the differences replication by replication."""
        level = real("confidence", confidence, above=0, below=1)
        return Estimate.of_mean(self.values(policy, metric) - self.values(other, metric), level)

    def behind(self, policy: str, confidence: float = 0.95) -> Estimate:
        """What a policy earns less than the optimum, or other reference, that ran along (discounted, by expected
        rewards)."""
        if self.baseline is None:
            raise InputError("optimum must have run along: compare_policies(…, optimum=True)")
        return self.compare(self.baseline, policy, "expected", confidence)

    def acceptance_over_time(self, policy: str, confidence: float = 0.95) -> list[Estimate]:
        """The share accepted between one checkpoint and the next."""
        run = self.runs[policy]
        return self._along(run.acceptance, run.acceptance_squares, confidence)

    def regret_over_time(self, policy: str, confidence: float = 0.95) -> list[Estimate]:
        """The undiscounted regret against one who knows p, from the first arrival to each checkpoint."""
        run = self.runs[policy]
        return self._along(run.regret, run.regret_squares, confidence)

    def summary(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """One row a policy and metric: policy, metric, mean, lower, upper."""
        rows: list[dict[str, Any]] = []
        for name in self.runs:
            found = {metric: self.estimate(name, metric, confidence) for metric in METRICS}
            if self.baseline is not None:
                found["behind"] = self.behind(name, confidence)
            rows += [
                {"policy": name, "metric": metric, "mean": each.mean, "lower": each.lower, "upper": each.upper}
                for metric, each in found.items()
            ]
        return rows

    def frame(self, backend: str | None = None) -> Any:
        """The summary as a data frame: pandas, polars or pyarrow, by default whichever is installed."""
        return to_frame(self.summary(), backend)

    def replications_frame(self, backend: str | None = None) -> Any:
        """Every replication of every policy as a data frame, one row each."""
        columns: dict[str, list[Any]] = {"policy": [], "replication": []}
        for name in self.runs:
            columns["policy"] += [name] * self.replications
            columns["replication"] += range(self.replications)
            for metric in (*COLUMNS, "regret"):
                columns.setdefault(metric, []).extend(self.values(name, metric).tolist())
        return to_frame(columns, backend)

    def over_time_frame(self, backend: str | None = None) -> Any:
        """Acceptance and regret along time as a data frame: policy, arrival, metric, mean, lower, upper."""
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
        """Write summary.parquet, replications.parquet and over_time.parquet into a folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        frames = {
            "summary": self.frame(),
            "replications": self.replications_frame(),
            "over_time": self.over_time_frame(),
        }
        return [save_frame(frame, target / f"{name}.parquet") for name, frame in frames.items()]

    def table(self, confidence: float = 0.95) -> list[list[str]]:
        """The main metrics as text: a head, then one line a policy."""
        shown = [metric for metric in SHOWN if metric != "behind" or self.baseline is not None]
        titles = {"behind": f"behind {self.baseline}"}
        lines = [["policy", *(titles.get(metric, metric.replace("_", " ")) for metric in shown)]]
        for name in self.runs:
            found = [
                self.behind(name, confidence) if metric == "behind" else self.estimate(name, metric, confidence)
                for metric in shown
            ]
            lines.append([name, *(str(each) for each in found)])
        return lines

    def __str__(self) -> str:
        return aligned(self.table()) + (f"\n{self.note}" if self.note else "")

    def __repr__(self) -> str:
        return f"Simulation({len(self.runs)} policies, {self.replications} replications of {self.horizon} arrivals)"

    def _along(self, sums: NDArray[np.float64], squares: NDArray[np.float64], confidence: float) -> list[Estimate]:
        level = real("confidence", confidence, above=0, below=1)
        count = self.replications
        return [
            Estimate.of_sums(float(total), float(square), count, level)
            for total, square in zip(sums, squares, strict=True)
        ]


def z_of(confidence: float) -> float:
    """The normal quantile of a two-sided confidence.

    >>> round(z_of(0.95), 4)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * confidence))


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text, in columns.

    >>> print(aligned([["a", "b"], ["long", "c"]]))
    a      b
    long   c
    """
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "   ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def save_frame(frame: Any, path: str | Path) -> Path:
    """Write any data frame as CSV or Parquet, by the ending of the name."""
    import narwhals as nw

    target = check_frame_path(path)
    eager = nw.from_native(frame, eager_only=True)
    if target.suffix.lower() == ".csv":
        eager.write_csv(target)
    else:
        eager.write_parquet(target)
    return target


def check_frame_path(path: str | Path) -> Path:
    """The path of a frame, or an error before anything is computed."""
    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet"):
        raise refusal("output", str(path), "a file name ending in .csv or .parquet")
    if not target.parent.is_dir():
        raise InputError(f"output must be in a folder that exists, not {str(target.parent)!r}")
    return target
