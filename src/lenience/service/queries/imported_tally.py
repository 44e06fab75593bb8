"""ImportedTally: what an import has brought, to compare its batches with the rows in the segments' chains."""

from __future__ import annotations

from dataclasses import dataclass

from lenience.service.domain.events import Imported, RowsImported
from lenience.service.storage import schema


@dataclass(slots=True)
class ImportedTally:
    """What an import has brought, by its batches or by the rows in the segments' chains."""

    recorded: int = 0
    accepted: int = 0
    pending: int = 0
    successes: int = 0
    failures: int = 0

    def add_batch(self, batch: RowsImported) -> None:
        """Add a batch."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(batch, name))

    def add_row(self, row: Imported) -> None:
        """Add a row."""
        self.recorded += 1
        self.accepted += row.decision == "accept"
        self.pending += row.status == schema.PENDING
        self.successes += row.status == schema.SUCCESS
        self.failures += row.status == schema.FAILURE

    def add(self, other: ImportedTally) -> None:
        """Add another tally."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
