"""The commands that the writer runs, and how their answers are stored under an idempotency key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lenience.service.domain.receipts import CommandAnswer, Receipt, Sender
from lenience.service.storage.ledger import Ledger


class Command(Protocol):
    """A command names the chains it needs, then runs on them. It may fail only before it appends an event."""

    @property
    def sender(self) -> Sender:
        """The sender of the command."""

    @property
    def size(self) -> int:
        """About how many rows it writes."""

    @property
    def decisions(self) -> Sequence[str]:
        """The decisions it changes. The writer locates and reads those of all commands together."""

    def resolve(self, ledger: Ledger) -> None:
        """Load what must be known before chains are locked, or raise a Problem."""

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chains to lock."""

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Run the command on the locked chains."""


def store_answer(ledger: Ledger, sender: Sender, receipt: Receipt, chain: int, seq: int, answer: CommandAnswer) -> None:
    """Store the answer to a command that has a key."""
    if sender.key is not None:
        ledger.add_answer(sender.key, sender.request, receipt.salt, chain, seq, answer.status, answer.body.decode())
