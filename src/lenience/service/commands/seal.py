"""Seal the log: append new events to its Merkle tree, and sign a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field

from lenience.service.domain.receipts import CommandAnswer, Sender
from lenience.service.domain.signed_note import Checkpoint, SigningKey
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.log_tree import LogTree, latest_checkpoint, store_checkpoint


@dataclass(slots=True)
class SealLog:
    """The command that seals a part of the log. ``more`` says afterwards whether there may be more to seal."""

    key: SigningKey | None
    sender: Sender = field(default_factory=lambda: Sender("seal"))
    more: bool = True

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 50

    @property
    def decisions(self) -> tuple[str, ...]:
        """Empty: it changes no decision."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Do nothing."""

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the system's chain, so that only one process seals at a time."""
        return [schema.SYSTEM_CHAIN]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Append events that are on the disk. Those of this transaction wait for the next time."""
        tree = LogTree(ledger.connection)
        self.more = tree.append_new()
        last = latest_checkpoint(ledger.connection)
        if self.key is not None and tree.size and (last is None or last.size < tree.size):
            checkpoint = Checkpoint(self.key.name, tree.size, tree.root(), ledger.time)
            store_checkpoint(ledger.connection, tree.size, ledger.now, self.key.sign(checkpoint.text))
        return CommandAnswer(204, b"")
