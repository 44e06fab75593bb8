"""SolveProgress: how far the solve of a version has come, and whether it should stop."""

from __future__ import annotations

from dataclasses import dataclass

from lenience.service.domain.problems import Conflict


@dataclass(slots=True)
class SolveProgress:
    """What a solver thread and the requests that wait for it share: how far it is, and whether it should stop."""

    done: int = 0  # segments that are solved
    total: int = 0  # segments of the version; 0 before the solve starts
    started: bool = False
    cancelled: bool = False

    def begin(self, total: int) -> None:
        """Note that the solve has started."""
        self.total, self.started = total, True

    def check(self) -> None:
        """Raise Conflict if the solve was cancelled."""
        if self.cancelled:
            raise Conflict("the solve was cancelled, and nothing was stored", code="solve_cancelled")

    def advance(self) -> None:
        """Count one more segment, and raise Conflict if the solve was cancelled."""
        self.done += 1
        self.check()
