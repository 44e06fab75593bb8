"""What the writer runs: commands, and how their answers are stored under an idempotency key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lenience.service.domain.receipts import CommandAnswer, Receipt, Sender
from lenience.service.storage.ledger import Ledger


class Command(Protocol):
    """A command: it says which chains it needs, then runs on them. Until it appends its first event it may refuse."""

    @property
    def sender(self) -> Sender:
        """Who sent it."""

    @property
    def size(self) -> int:
        """About how many rows it writes."""

    @property
    def decisions(self) -> Sequence[str]:
        """The decisions it is about: found, and read once their chains are locked, for all commands together."""

    def resolve(self, ledger: Ledger) -> None:
        """Know what must be known before chains are locked, or refuse."""

    def chains(self, ledger: Ledger) -> list[int]:
        """The chains to lock."""

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Do it."""


def store_answer(ledger: Ledger, sender: Sender, given: Receipt, chain: int, seq: int, answer: CommandAnswer) -> None:
    """Keep an answer given under a key."""
    if sender.key is not None:
        ledger.add_answer(sender.key, sender.request, given.salt, chain, seq, answer.status, answer.body.decode())
