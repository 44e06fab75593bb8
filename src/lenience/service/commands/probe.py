"""A command that changes nothing and shows that the writer can commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from lenience.service.domain.receipts import CommandAnswer, Sender
from lenience.service.storage.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Probe:
    """The command behind /ready. Its answer is empty."""

    sender: Sender = field(default_factory=lambda: Sender("probe"))

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 1

    @property
    def decisions(self) -> tuple[str, ...]:
        """Empty: it changes no decision."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Do nothing."""

    def chains(self, ledger: Ledger) -> list[int]:
        """Return an empty list: it locks no chain."""
        return []

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Write without changing a row. Raise Unavailable if the database cannot be written."""
        ledger.store.probe(ledger.connection)
        return CommandAnswer(204, b"")
