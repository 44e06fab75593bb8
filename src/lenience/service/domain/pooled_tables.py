"""PooledTable: decisions at any belief, for segments that borrow evidence from others.

A table of a segment that learns on its own holds the beliefs that its outcomes can lead to. What a segment borrows can
be any number, so thresholds are needed between these beliefs. They come from
:mod:`lenience.solvers.stopping.threshold_table`, which interpolates between nodes, with the error that
docs/features-method.md states. The part of that table that the segment needs is stored with the version. With a horizon
this is the part for every number of individuals left; a threshold is then that of a discount of 1 − 1/(number left).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.objective import StoppingObjective
from lenience.service.domain.stopping_tables import VALUE_SECONDS, StoppingBody, StoppingTable

if TYPE_CHECKING:
    from lenience.solvers.stopping.threshold_table import ThresholdTable

DIGITS = 12  # of a threshold; the last digits of a logarithm differ between machines


class Grid(msgspec.Struct, frozen=True):
    """A part of a table of thresholds, with its numbers as base64."""

    n0: float
    n_step: float
    g0: float
    g_step: float
    columns: int
    f: str


class PooledBody(StoppingBody, frozen=True, tag="pooled_stopping", tag_field="kind"):
    """A table as it is stored: the optimum without borrowed evidence, and thresholds at any belief."""

    grid: Grid = Grid(0.0, 1.0, 0.0, 1.0, 0, "")


class PooledTable(StoppingTable):
    """Accept where the success rate is above the threshold of the belief's size."""

    def __init__(self, body: PooledBody, outcomes: int = 0) -> None:
        super().__init__(body)
        self.pooled, self.outcomes = body, outcomes
        self.discount = min(body.objective.discount_at(outcomes), _MOST)
        self.grid = _decoded(self.cost, body.grid)

    def after(self, outcomes: int) -> PooledTable:
        """Return the table after a number of the segment's own outcomes, on which a horizon depends."""
        if self.horizon is None:
            return self
        return PooledTable(self.pooled, outcomes)

    def threshold(self, successes: float, failures: float) -> float:
        """Return c_n at the belief's size."""
        from lenience.solvers.stopping.threshold_table import look_up

        n = self.prior.n + successes + failures
        return round(float(look_up(*self.grid, n, self.discount)), DIGITS)

    def limit(self, successes: float, failures: float) -> int | None:
        """Return the exposure limit: 0, or None for no limit."""
        belief = self.belief(successes, failures)
        return None if belief.mean > min(self.threshold(successes, failures), self.cost) else 0

    def value(self, successes: float, failures: float, pending: int) -> tuple[Bounds | None, Bounds | None]:
        """Return the value from here on and the value of accepting the next individual, as if nothing were borrowed.

        The second is None after the horizon. Both are None if solving would take too long.
        """
        belief = self.belief(successes, failures)
        left = self.pooled.objective.remaining(self.outcomes)
        if left is None:
            return Bounds(0.0, 0.0), None
        tolerance = self.pooled.certificate.tolerance
        if left.solve_seconds(belief, 1, tolerance) > VALUE_SECONDS:
            return None, None
        return left.enclose(belief, tolerance)

    @property
    def statement(self) -> str:
        """What is stated about the thresholds."""
        return "Thresholds are interpolated in a table, because evidence is borrowed from other segments."

    @property
    def proved(self) -> bool:
        """False: thresholds are interpolated."""
        return False


_MOST = 1.0 - 1e-12


def grid_for(objective: StoppingObjective) -> Grid:
    """Return the part of the table of thresholds that an objective needs."""
    import math

    from lenience.solvers.stopping.threshold_table import threshold_table

    first = min(objective.discount_at(0), _MOST)
    table = threshold_table(objective.cost, min(first, 0.9999))
    low, high = 0, table.f.shape[1]
    if objective.horizon is None:
        place = (-math.log1p(-first) - table.g0) / table.g_step if first > 0.0 else 0.0
        low = min(max(int(place), 0), table.f.shape[1] - 2)
        high = low + 2
    part = table.f[:, low:high].astype("<f8")
    return Grid(
        n0=float(table.n0),
        n_step=float(table.n_step),
        g0=float(table.g0 + low * table.g_step),
        g_step=float(table.g_step),
        columns=high - low,
        f=b64encode(part.tobytes()).decode(),
    )


def _decoded(cost: float, grid: Grid) -> ThresholdTable:
    import numpy as np

    from lenience.solvers.stopping.threshold_table import ThresholdTable

    f = np.frombuffer(b64decode(grid.f), dtype="<f8").reshape(-1, grid.columns).astype(np.float64)
    return ThresholdTable(cost, grid.n0, grid.n_step, grid.g0, grid.g_step, f)
